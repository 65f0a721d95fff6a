package rootedfs

import (
	"io/fs"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// hostInfo is an [fs.FileInfo] that does not need an [os.File], as one of package os would.
// Sys returns the same type, so that [SameFile] and [StatOf] accept both.
type hostInfo struct {
	name string
	sys  syscall.Stat_t
}

// syscall and unix both define the struct of the kernel, but only unix has the call.
var _ [unsafe.Sizeof(syscall.Stat_t{})]byte = [unsafe.Sizeof(unix.Stat_t{})]byte{}

// fstatat sets i.sys to the state of a name in a directory. flags are those of fstatat.
func (i *hostInfo) fstatat(dir int, name string, flags int) error {
	_, err := RetryEINTR(func() (int, error) {
		return 0, unix.Fstatat(dir, name, (*unix.Stat_t)(unsafe.Pointer(&i.sys)), flags)
	})
	return err
}

// statPath sets i.sys to the state of a name below a directory. It uses O_PATH, which needs no
// permission for the file and has no effect on the file. flags are added to it.
func (i *hostInfo) statPath(dir int, name string, flags int) error {
	fd, err := openat2(dir, name, unix.OpenHow{Flags: uint64(unix.O_PATH | flags)})
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = RetryEINTR(func() (int, error) { return 0, syscall.Fstat(fd, &i.sys) })
	return err
}

func (i *hostInfo) Name() string       { return i.name }
func (i *hostInfo) Size() int64        { return i.sys.Size }
func (i *hostInfo) IsDir() bool        { return i.Mode().IsDir() }
func (i *hostInfo) ModTime() time.Time { return time.Unix(i.sys.Mtim.Unix()) }
func (i *hostInfo) Sys() any           { return &i.sys }

func (i *hostInfo) Mode() fs.FileMode {
	m := fs.FileMode(i.sys.Mode&0o777) | typeOf(i.sys.Mode)
	if i.sys.Mode&syscall.S_ISUID != 0 {
		m |= fs.ModeSetuid
	}
	if i.sys.Mode&syscall.S_ISGID != 0 {
		m |= fs.ModeSetgid
	}
	if i.sys.Mode&syscall.S_ISVTX != 0 {
		m |= fs.ModeSticky
	}
	return m
}

func typeOf(mode uint32) fs.FileMode {
	switch mode & syscall.S_IFMT {
	case syscall.S_IFREG:
		return 0
	case syscall.S_IFBLK:
		return fs.ModeDevice
	case syscall.S_IFCHR:
		return fs.ModeDevice | fs.ModeCharDevice
	case syscall.S_IFDIR:
		return fs.ModeDir
	case syscall.S_IFIFO:
		return fs.ModeNamedPipe
	case syscall.S_IFLNK:
		return fs.ModeSymlink
	case syscall.S_IFSOCK:
		return fs.ModeSocket
	}
	return fs.ModeIrregular
}
