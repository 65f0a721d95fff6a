// Package git describes the effects of a change set on git repositories: whether new objects
// have the hashes under which git would find them, which commits are added and lost, and
// which files in commits and in the index differ from the files that a person sees.
//
// [Check] examines all repositories of a change set, before and after it. All data that it reads
// may have been made to mislead or to overload it. An object is used only if its hash is its
// name. Sizes, counts and depths have limits; changes beyond one are reported as not examined.
//
// Words: the git directory is git's $GIT_DIR. The common directory has the files that several
// worktrees share; mostly it is the same directory. An id is the hash of an object, as bytes.
// A side is the state before or after the change set. An integrity error is anything by which
// git would take one object for another, or find an object that was not verified.
package git
