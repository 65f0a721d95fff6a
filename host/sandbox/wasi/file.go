package wasi

import (
	"io"
	"math"
	"os"

	"github.com/stockade-dev/stockade/host/policy/paths"
	"github.com/stockade-dev/stockade/host/rootedfs"
)

// File is an open regular file. The position is stored here and not by the host, so that
// every write is at a known offset, except in append mode. A File may be used by one goroutine
// only.
type File struct {
	// Fixed at creation.
	fs                 *FS
	m                  *mount
	backing            backingFile
	shown              string // absolute name under which the guest opened the file
	readable, writable bool
	realPath           string        // absolute name for the guest, without links; in a writable mount only
	forbiddenBy        paths.Special // special path that forbids changes of the file
	changeForbidden    bool          // whether forbiddenBy applies

	pos    int64 // position, in bytes
	size   int64 // size known to this handle, in bytes; others may have changed it
	append bool  // append mode, see SetAppend
	closed bool
}

func (f *File) stat() (os.FileInfo, Errno) {
	f.fs.limits.Charge(costSyscall)
	fi, err := f.backing.Stat()
	return fi, errnoOf(err)
}

// Stat describes the file.
func (f *File) Stat() (Stat, Errno) {
	fi, errno := f.stat()
	if errno != 0 {
		return Stat{}, errno
	}
	return f.m.describe(fi, f.shown), 0
}

// SetAppend turns append mode on or off, in which every write goes to the end of the file.
func (f *File) SetAppend(on bool) Errno {
	switch {
	case on == f.append:
		return 0
	case on && !f.m.write:
		return errReadOnly
	}
	f.fs.limits.Charge(costSyscall)
	if errno := errnoOf(f.backing.setAppend(on)); errno != 0 {
		return errno
	}
	f.append = on
	return 0
}

// Read reads at the position and advances the position. At the end of the file it returns 0.
func (f *File) Read(buf []byte) (int, Errno) {
	n, errno := f.Pread(buf, f.pos)
	f.pos += int64(n)
	return n, errno
}

// Pread reads at an offset, without the position. EBADF: the file is not open for reading.
func (f *File) Pread(buf []byte, off int64) (int, Errno) {
	switch {
	case !f.readable:
		return 0, EBADF
	case off < 0:
		return 0, EINVAL
	}
	n, err := f.backing.ReadAt(buf, off)
	f.fs.limits.Charge(costSyscall + uint64(n)>>costShift)
	return n, errnoOf(err)
}

// Whence is the origin of an offset.
type Whence uint8

// The numbers of WASI preview 1.
const (
	FromStart   Whence = 0
	FromCurrent Whence = 1
	FromEnd     Whence = 2
)

// SeekTo moves the position, also beyond the end of the file, and returns the new position.
func (f *File) SeekTo(off int64, whence Whence) (int64, Errno) {
	base := int64(0)
	switch whence {
	case FromStart:
	case FromCurrent:
		base = f.pos
	case FromEnd:
		fi, errno := f.stat()
		if errno != 0 {
			return 0, errno
		}
		base = fi.Size()
	default:
		return 0, EINVAL
	}
	if off < -base || off > math.MaxInt64-base {
		return 0, EINVAL
	}
	f.pos = base + off
	return f.pos, 0
}

// checkWrite returns the error for a change of the content; 0: it is allowed.
func (f *File) checkWrite() Errno {
	switch {
	case !f.m.write:
		return errReadOnly
	case !f.writable:
		return EBADF
	}
	return 0
}

// Write writes at the position (append mode: at the end of the file) and advances it.
func (f *File) Write(buf []byte) (int, Errno) {
	n, errno := f.Pwrite(buf, f.pos)
	if n > 0 {
		f.pos += int64(n)
		if f.append {
			f.pos = f.size
		}
	}
	return n, errno
}

// Pwrite writes at an offset, without the position. In append mode it ignores the offset, like
// Linux. It writes less than buf only with an error.
func (f *File) Pwrite(buf []byte, off int64) (int, Errno) {
	if errno := f.checkWrite(); errno != 0 {
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
		return 0, EINVAL
	case length == 0:
		return 0, 0
	case length > f.fs.limits.MaxFileBytes || off > f.fs.limits.MaxFileBytes-length:
		return 0, errTooLarge
	}
	cost := length + max(0, off-f.size)
	if errno := f.fs.countWritten(cost); errno != 0 {
		return 0, errno
	}
	n, err := f.backing.writeAt(buf, off, f.append)
	f.fs.limits.Charge(costSyscall + uint64(n)>>costShift)
	f.size = max(f.size, off+int64(n))
	return n, errnoOf(err)
}

func (f *File) Truncate(size int64) Errno {
	if errno := f.checkWrite(); errno != 0 {
		return errno
	}
	switch {
	case size < 0:
		return EINVAL
	case size > f.fs.limits.MaxFileBytes:
		return errTooLarge
	}
	if errno := f.fs.countWritten(max(0, size-f.size)); errno != 0 {
		return errno
	}
	f.fs.limits.Charge(costPath)
	if err := f.backing.Truncate(size); err != nil {
		return errnoOf(err)
	}
	f.size = size
	return 0
}

// Grow makes the file at least size bytes long. The new bytes are zero. They count as written,
// but the host may not have room for them yet.
func (f *File) Grow(size int64) Errno {
	if errno := f.checkWrite(); errno != 0 {
		return errno
	}
	fi, errno := f.stat()
	if errno != 0 {
		return errno
	}
	f.size = fi.Size()
	if size <= f.size {
		return 0
	}
	return f.Truncate(size)
}

// Sync waits until the written content is on the disk. It does nothing on a stage, or if the file
// is not open for writing.
func (f *File) Sync() Errno {
	if !f.writable {
		return 0 // this handle has written nothing
	}
	f.fs.limits.Charge(costPath)
	return errnoOf(f.backing.Sync())
}

// SetTimes changes the times of the file, see [FS.SetTimes].
func (f *File) SetTimes(atim, mtim int64) Errno {
	switch {
	case !f.m.write:
		return errReadOnly
	case f.changeForbidden:
		return f.fs.recordRefusal(f.m, f.realPath, f.forbiddenBy)
	}
	fi, errno := f.stat()
	if errno != 0 {
		return errno
	}
	return f.backing.setTimes(fi, atim, mtim)
}

// Close closes the file. Further calls do nothing.
func (f *File) Close() {
	if !f.closed {
		f.closed = true
		f.fs.release(f.backing)
		f.backing.release()
		_ = f.backing.Close() // FS.Close may have done it
	}
}

// backingFile is the file behind an open [File]: a file of the host, or a staged one.
type backingFile interface {
	io.ReaderAt
	Stat() (os.FileInfo, error)
	// writeAt writes at an offset or, if end is set and the host can append, at the end.
	writeAt(buf []byte, off int64, end bool) (int, error)
	Truncate(size int64) error
	Sync() error
	setAppend(on bool) error
	setTimes(fi os.FileInfo, atim, mtim int64) Errno
	// release ends the guest's use of the file. Close may have been called before, also by
	// another goroutine.
	release()
	Close() error
}

// hostFile is a file of the host: writes go to it directly.
type hostFile struct{ *os.File }

func (b hostFile) writeAt(buf []byte, off int64, end bool) (int, error) {
	if end && rootedfs.HasAppend {
		return b.Write(buf)
	}
	return b.WriteAt(buf, off)
}

func (b hostFile) setAppend(on bool) error { return rootedfs.SetAppend(b.File, on) }

func (b hostFile) setTimes(fi os.FileInfo, atim, mtim int64) Errno {
	if err := rootedfs.RefuseHardLinks(b.File, fi); err != nil {
		return errnoOf(err)
	}
	return errnoOf(rootedfs.SetTimes(b.File, atim, mtim))
}

func (b hostFile) release() {}
