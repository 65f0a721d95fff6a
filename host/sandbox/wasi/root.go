package wasi

import (
	"errors"
	"io/fs"
	"os"
)

// root is an open directory of the host, and the only way to what is below.
// No name leads out of it, by way of no symbolic link, whatever is renamed
// meanwhile: that is an error which is no error number, see [errnoOf]. An
// absolute link leads out wherever it points to. Otherwise the methods are
// those of [os.Root]; names are clean, slashes separate them, and only the
// links of the host have "..".
//
// Linux has one that lets the kernel look up all of a name at once; the
// others, and Linux where that is not possible, have [os.Root].
//
// Close may be called at any time. What is under way ends as it would have.
type root interface {
	// OpenRoot opens a directory to look up names in it. To list it, or to
	// synchronize it, Open(".").
	OpenRoot(name string) (root, error)
	Open(name string) (*os.File, error)
	// OpenFile waits for nobody if openNonblock is among the flags, and says
	// nothing about what it opens: that is for the caller to look at.
	OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error)
	Stat(name string) (os.FileInfo, error)
	// The others do not follow a link that is the last of the name.
	Lstat(name string) (os.FileInfo, error)
	Readlink(name string) (string, error)
	Mkdir(name string, perm fs.FileMode) error
	Remove(name string) error
	Rename(oldName, newName string) error
	// replacesEmpty says that Rename replaces a directory that is empty, and does
	// not refuse to.
	replacesEmpty() bool
	// admit refuses the directory if it is on a file system of the kernel. fi is
	// what it is. It is asked before anything else, unless the directory is one
	// that was admitted, opened again.
	admit(fi os.FileInfo) error
	// admitFile is admit for what was opened in the directory.
	admitFile(f *os.File, fi os.FileInfo) error
	// maxLinks is how many symbolic links a name may have.
	maxLinks() int
	Close() error
}

var errEscapes = errors.New("name leads out of the directory")
