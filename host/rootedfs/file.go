package rootedfs

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"syscall"
)

// Stat is what the host says about a file beside its [os.FileInfo], see
// [StatOf]. Times are nanoseconds since 1970.
type Stat struct {
	Dev, Ino         uint64 // zero where the host has no such numbers
	Nlink            uint64
	Atim, Mtim, Ctim int64
}

// Entry is an entry of a directory, see [DirReader].
type Entry struct {
	Name     string
	Type     fs.FileMode // the bits of [fs.ModeType]
	Dev, Ino uint64
	Next     uint64 // the cookie of the entry that follows
}

// OmitTime is a time that is not to be changed.
const OmitTime int64 = math.MinInt64

// RefuseHardLinks refuses a regular file that has several hard links, with EACCES: a
// change would be visible under its other names, and there may be some outside
// the directory.
func RefuseHardLinks(f *os.File, fi os.FileInfo) error {
	if fi.Mode().IsRegular() && linkCount(f, fi) > 1 {
		return syscall.EACCES
	}
	return nil
}

// renameChecked is RenameNew in two steps.
func renameChecked(from Root, oldName string, to Root, newName string) error {
	if _, err := to.Lstat(newName); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(fs.ErrExist, err)
	}
	return RenameBetween(from, oldName, to, newName)
}
