package rootedfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// Root is an open directory of the host, and the only way to the files below. A name that
// leads out of the directory, through a symbolic link or because something is renamed
// meanwhile, is an error without an error number. An absolute link always leads out. Otherwise
// the methods are those of [os.Root]. Names must be clean and separated by slashes; only links
// of the host contain "..".
//
// Close may be called at any time. Running operations end normally.
type Root interface {
	// OpenRoot opens a directory for lookups below. To list or synchronize it, use Open(".").
	// Unlike [OpenDir], it does not refuse a file system that shows the kernel.
	OpenRoot(name string) (Root, error)
	Open(name string) (*os.File, error)
	// OpenFile does not wait for another process if Nonblock is among the flags. It opens
	// files of any type: the caller must check the type.
	OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error)
	// OpenNoSymlinks is OpenFile for existing files. It returns ELOOP if the name contains
	// symbolic links, and also if it cannot find that out.
	OpenNoSymlinks(name string, flag int) (*os.File, error)
	Stat(name string) (os.FileInfo, error)
	// The methods below do not follow a symbolic link at the end of a name.
	Lstat(name string) (os.FileInfo, error)
	Readlink(name string) (string, error)
	Mkdir(name string, perm fs.FileMode) error
	Symlink(target, name string) error
	Remove(name string) error
	Rename(oldName, newName string) error
	// RenameReplacesEmptyDir reports whether Rename can replace an empty directory.
	RenameReplacesEmptyDir() bool
	// ListsInodes reports whether a listing is known to have the inode numbers that Stat has.
	// On a file system that lies over others the two may differ.
	ListsInodes() bool
	// RefuseKernelFile returns an error if a file that was opened below the directory is on a
	// file system that shows the kernel; only on Linux. fi is the state of the file.
	RefuseKernelFile(f *os.File, fi os.FileInfo) error
	MaxSymlinks() int // limit of symbolic links in a name
	Close() error

	// refuseKernelDir is RefuseKernelFile for the directory itself. It must be called before
	// any other method but Stat, unless the directory was checked when it was opened before.
	refuseKernelDir(fi os.FileInfo) error
}

// ContentRoot is a root that opens regular files at a lower cost than an [os.File].
// OpenContent does not wait for another process. It follows no symbolic link: a name with one
// is ELOOP. A directory is EISDIR, and any other file that is not regular EACCES.
type ContentRoot interface {
	OpenContent(name string) (Content, os.FileInfo, error)
}

// Content is a regular file that is open for reading.
type Content interface {
	io.ReaderAt
	io.Closer
}

// Open opens a directory of the host and returns its state. Its name may have symbolic links.
func Open(name string) (Root, os.FileInfo, error) { return checkedRoot(openRoot(name)) }

// OpenOSRoot is Open without openat2. Open does the same if openat2 cannot be used.
func OpenOSRoot(name string) (Root, os.FileInfo, error) { return checkedRoot(openOSRoot(name)) }

// OpenDir opens a directory in dir and returns its state.
func OpenDir(dir Root, name string) (Root, os.FileInfo, error) {
	// With the dot at the end the name must be a directory. Otherwise a FIFO that has just
	// taken its place would block.
	return checkedRoot(dir.OpenRoot(name + "/."))
}

// checkedRoot checks a root that was just opened, and returns the state of its directory.
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
