// Package git describes what a change set does to git repositories: whether new objects have
// the names under which git would find them, which commits come and go, and which files
// commits and the index hold that differ from the files a person sees.
//
// [Check] looks at all repositories of a change set, before and after it. Everything that it
// reads may have been made to mislead or to overwhelm it. An object is believed only if its
// hash is its name. Sizes, counts and depths have limits; what is beyond one is reported as
// not looked at.
//
// Words: the git directory is git's $GIT_DIR; the common directory has the files that several
// worktrees share, and is usually the same. An id is the hash of an object, as bytes. A lie
// is anything by which git would take one object for another, or find in a commit a file that
// is not in it.
package git
