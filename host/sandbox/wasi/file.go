package wasi

import (
	"io"
	"math"
	"os"

	"github.com/tetratelabs/wazero/experimental/sys"
	wsys "github.com/tetratelabs/wazero/sys"
)

// file is an open regular file. The position is kept here and not by the
// host, so that every write is at a known offset; only one goroutine uses it.
type file struct {
	sys.UnimplementedFile

	// Fixed at creation.
	fs            *FS
	m             *mount
	host          *os.File
	shown         string
	reads, writes bool

	at     int64
	size   int64 // what this handle knows; others may have made the file longer
	append bool
	closed bool
}

var _ sys.File = (*file)(nil)

func (f *file) stat() (os.FileInfo, sys.Errno) {
	fi, err := f.host.Stat()
	return fi, errnoOf(err)
}

func (f *file) Stat() (wsys.Stat_t, sys.Errno) {
	f.fs.limits.Fuel(costSyscall)
	fi, errno := f.stat()
	if errno != 0 {
		return wsys.Stat_t{}, errno
	}
	return f.m.describe(fi, f.shown), 0
}

func (f *file) Dev() (uint64, sys.Errno) { return f.m.dev, 0 }

func (f *file) Ino() (wsys.Inode, sys.Errno) {
	st, errno := f.Stat()
	return st.Ino, errno
}

func (f *file) IsDir() (bool, sys.Errno) { return false, 0 }

func (f *file) IsAppend() bool { return f.append }

// SetAppend is part of every change of flags, so it is refused only where it
// would promise a write that cannot be.
func (f *file) SetAppend(on bool) sys.Errno {
	if on && !f.m.write {
		return errReadOnly
	}
	if on != f.append {
		if errno := errnoOf(setAppend(f.host, on)); errno != 0 {
			return errno
		}
		f.append = on
	}
	return 0
}

func (f *file) Read(buf []byte) (int, sys.Errno) {
	n, errno := f.Pread(buf, f.at)
	f.at += int64(n)
	return n, errno
}

func (f *file) Pread(buf []byte, off int64) (int, sys.Errno) {
	switch {
	case !f.reads:
		return 0, sys.EBADF
	case off < 0:
		return 0, sys.EINVAL
	}
	n, err := f.host.ReadAt(buf, off)
	f.fs.limits.Fuel(costSyscall + uint64(n)>>costShift)
	return n, errnoOf(err)
}

// offset is int64 under a name of its own, which keeps go vet from taking Seek
// for a botched io.Seeker: its result is wazero's.
type offset = int64

func (f *file) Seek(off offset, whence int) (int64, sys.Errno) {
	base := int64(0)
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		base = f.at
	case io.SeekEnd:
		fi, errno := f.stat()
		if errno != 0 {
			return 0, errno
		}
		base = fi.Size()
	default:
		return 0, sys.EINVAL
	}
	if off < -base || off > math.MaxInt64-base {
		return 0, sys.EINVAL
	}
	f.at = base + off
	return f.at, 0
}

// canWrite is asked before every change of the content.
func (f *file) canWrite() sys.Errno {
	switch {
	case !f.m.write:
		return errReadOnly
	case !f.writes:
		return sys.EBADF
	}
	return 0
}

func (f *file) Write(buf []byte) (int, sys.Errno) {
	n, errno := f.Pwrite(buf, f.at)
	if n > 0 {
		f.at += int64(n)
		if f.append {
			f.at = f.size
		}
	}
	return n, errno
}

// Pwrite ignores the offset when appending, as Linux does.
func (f *file) Pwrite(buf []byte, off int64) (int, sys.Errno) {
	if errno := f.canWrite(); errno != 0 {
		return 0, errno
	}
	if f.append {
		fi, errno := f.stat()
		if errno != 0 {
			return 0, errno
		}
		off, f.size = fi.Size(), fi.Size()
	}
	length := int64(len(buf))
	switch {
	case off < 0:
		return 0, sys.EINVAL
	case length == 0:
		return 0, 0
	case length > f.fs.limits.MaxFileBytes || off > f.fs.limits.MaxFileBytes-length:
		return 0, errNoRoom
	}
	cost := length + max(0, off-f.size)
	if errno := f.fs.charge(cost); errno != 0 {
		return 0, errno
	}
	n, err := 0, error(nil)
	if f.append && hostAppends {
		n, err = f.host.Write(buf)
	} else {
		n, err = f.host.WriteAt(buf, off)
	}
	f.fs.limits.Fuel(costSyscall + uint64(n)>>costShift)
	f.size = max(f.size, off+int64(n))
	return n, errnoOf(err)
}

func (f *file) Truncate(size int64) sys.Errno {
	if errno := f.canWrite(); errno != 0 {
		return errno
	}
	switch {
	case size < 0:
		return sys.EINVAL
	case size > f.fs.limits.MaxFileBytes:
		return errNoRoom
	}
	if errno := f.fs.charge(max(0, size-f.size)); errno != 0 {
		return errno
	}
	f.fs.limits.Fuel(costPath)
	if err := f.host.Truncate(size); err != nil {
		return errnoOf(err)
	}
	f.size = size
	return 0
}

func (f *file) Sync() sys.Errno {
	if !f.writes {
		return 0 // nothing of ours is unwritten
	}
	f.fs.limits.Fuel(costPath)
	return errnoOf(f.host.Sync())
}

func (f *file) Datasync() sys.Errno { return f.Sync() }

func (f *file) Utimens(atim, mtim int64) sys.Errno {
	if !f.m.write {
		return errReadOnly
	}
	fi, errno := f.stat()
	if errno != 0 {
		return errno
	}
	if errno := single(f.host, fi); errno != 0 {
		return errno
	}
	return errnoOf(setTimes(f.host, atim, mtim))
}

func (f *file) Close() sys.Errno {
	if !f.closed {
		f.closed = true
		f.fs.release(f.host)
		_ = f.host.Close() // FS.Close may have done it
	}
	return 0
}
