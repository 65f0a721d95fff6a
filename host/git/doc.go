// Package git reads what a change set does to repositories of git: whether the objects
// that it brings have the names under which git would find them, which commits come and
// go, and what commits and the index hold beside the files that a person sees.
//
// [Check] looks at all repositories of a change set, each as it was and as it would be.
// All that it reads may have been made to mislead it or to overwhelm it. Each object is
// believed only if its hash is its name. Sizes, counts and depths have bounds; what is
// beyond one is told as not looked at.
//
// Words: the git directory is what git calls $GIT_DIR; the common directory has what
// several worktrees share, usually the same. An id is the hash of an object, as bytes.
// A lie is something by which git would take one object for another, or find in a
// commit what is not in it.
package git
