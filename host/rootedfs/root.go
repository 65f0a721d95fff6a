package rootedfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// Root is an open directory of the host, and the only way to what is below. A
// name that leads out of it, by way of a symbolic link or of what is renamed
// meanwhile, is an error that has no error number. An absolute link leads out
// wherever it points to. Otherwise the methods are those of [os.Root]; names
// are clean, slashes separate them, and only the links of the host have "..".
//
// Close may be called at any time. What is under way ends as it would have.
type Root interface {
	// OpenRoot opens a directory to look up names in it. To list it, or to
	// synchronize it, Open(".").
	OpenRoot(name string) (Root, error)
	Open(name string) (*os.File, error)
	// OpenFile waits for nobody if Nonblock is among the flags, and says
	// nothing about what it opens: that is for the caller to look at.
	OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error)
	// OpenNoSymlinks is OpenFile for what exists. A name that has symbolic links,
	// or of which that cannot be told, is ELOOP.
	OpenNoSymlinks(name string, flag int) (*os.File, error)
	Stat(name string) (os.FileInfo, error)
	// The others do not follow a link that is the last of the name.
	Lstat(name string) (os.FileInfo, error)
	Readlink(name string) (string, error)
	Mkdir(name string, perm fs.FileMode) error
	Symlink(target, name string) error
	Remove(name string) error
	Rename(oldName, newName string) error
	// RenameReplacesEmptyDir says that Rename replaces a directory that is empty, and does
	// not refuse to.
	RenameReplacesEmptyDir() bool
	// ListsInodes says that the file system lists the inode number that each file
	// has. One that lies over others may have another number there.
	ListsInodes() bool
	// RefuseKernelFile refuses what was opened in the directory if it is on a file
	// system of the kernel. fi is what it is.
	RefuseKernelFile(f *os.File, fi os.FileInfo) error
	// MaxSymlinks is how many symbolic links a name may have.
	MaxSymlinks() int
	Close() error

	// refuseKernelDir is AdmitFile for the directory itself. It is asked before anything
	// else, unless the directory is one that was admitted, opened again.
	refuseKernelDir(fi os.FileInfo) error
}

// ContentRoot is a root that opens a regular file at less than what an
// [os.File] costs. It follows no link, which is ELOOP, and waits for nobody.
type ContentRoot interface {
	OpenContent(name string) (Content, os.FileInfo, error)
}

// Content is a regular file that is open to be read.
type Content interface {
	io.ReaderAt
	io.Closer
}

// Open opens a directory of the host and says what it is. Links in its name
// are followed, once.
func Open(name string) (Root, os.FileInfo, error) { return checkedRoot(openRoot(name)) }

// OpenOSRoot is Open without openat2, which is what Open is where that cannot be
// used.
func OpenOSRoot(name string) (Root, os.FileInfo, error) { return checkedRoot(openOSRoot(name)) }

// OpenDir opens a directory in dir and says what it is.
func OpenDir(dir Root, name string) (Root, os.FileInfo, error) {
	// The dot makes every other name one that must be a directory. A FIFO
	// that has just taken the place of one would block otherwise.
	return checkedRoot(dir.OpenRoot(name + "/."))
}

func checkedRoot(r Root, err error) (Root, os.FileInfo, error) {
	if err != nil {
		return nil, nil, err
	}
	fi, err := r.Stat(".")
	if err == nil {
		err = r.refuseKernelDir(fi)
	}
	if err != nil {
		_ = r.Close()
		return nil, nil, err
	}
	return r, fi, nil
}

// Errors without an error number.
var (
	errEscapes = errors.New("name leads out of the directory")
	errKernel  = errors.New("it is on a file system that shows the kernel and its processes, which no tool is shown; leave this mount out")
)
