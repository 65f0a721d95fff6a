package rootedfs

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"syscall"
)

// Stat holds the facts about a file that [os.FileInfo] lacks, see [StatOf].
type Stat struct {
	Dev, Ino         uint64 // zero if the host has no such numbers
	Nlink            uint64 // number of hard links
	Atim, Mtim, Ctim int64  // times of access, modification and change, in nanoseconds since 1970
}

// Entry is an entry of a directory, see [DirReader].
type Entry struct {
	Name     string
	Type     fs.FileMode // the bits of [fs.ModeType]
	Dev, Ino uint64
	Next     uint64 // cookie with which DirReader.Seek continues after this entry
}

// OmitTime takes the place of a time, and leaves the time of a file unchanged.
const OmitTime int64 = math.MinInt64

// RefuseHardLinks returns EACCES for a regular file with several hard links: a change would
// show under its other names, of which some may be outside of the directory. fi is the state
// of f.
func RefuseHardLinks(f *os.File, fi os.FileInfo) error {
	if fi.Mode().IsRegular() && linkCount(f, fi) > 1 {
		return syscall.EACCES
	}
	return nil
}

// Glob returns the paths below dir that match a pattern of [path.Match] with slashes; directories
// that cannot be read are left out. Unlike in [filepath.Glob], characters of dir are no pattern.
func Glob(dir, pattern string) ([]string, error) {
	names, err := fs.Glob(os.DirFS(dir), pattern)
	for i, name := range names {
		names[i] = filepath.Join(dir, filepath.FromSlash(name))
	}
	return names, err
}

// renameChecked is RenameNoReplace in two steps, between which another file can take the name.
func renameChecked(from Root, oldName string, to Root, newName string) error {
	if _, err := to.Lstat(newName); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(fs.ErrExist, err)
	}
	return RenameBetween(from, oldName, to, newName)
}
