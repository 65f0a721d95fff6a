//go:build unix

package beneath

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// RenameBetween renames from one directory to another, and replaces what is
// there. A root cannot: both names would have to be looked up from a common
// parent again, through whatever is there now. Neither name is followed.
func RenameBetween(from Root, oldName string, to Root, newName string) error {
	return onBoth(from, to, func(oldFd, newFd int) error { return unix.Renameat(oldFd, oldName, newFd, newName) })
}

// onBoth calls op with the descriptors of two directories.
func onBoth(a, b Root, op func(aFd, bFd int) error) error {
	return withDir(a, func(x *os.File) error {
		return withDir(b, func(y *os.File) error {
			return onFd(x, func(aFd int) error { return onFd(y, func(bFd int) error { return op(aFd, bFd) }) })
		})
	})
}

func withDir(r Root, do func(*os.File) error) error {
	dir, err := r.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(do(dir), dir.Close())
}
