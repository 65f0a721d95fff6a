package rootedfs

import (
	"bytes"
	"encoding/binary"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// DirReader reads a directory as the kernel has it: the os package would ask for
// the status of every entry, although type and inode number are here already.
// A cookie is the kernel's own offset, so that going on anywhere costs the
// same, and the entries seen before need not be remembered.
type DirReader struct {
	buf  []byte
	rest []byte
	dev  uint64
}

const (
	direntHeader = 19 // inode, offset, length, type
	direntBuffer = 8 << 10
)

// Seek makes the entry of a cookie the next one, and says how many it passed.
// Zero is the first. What a cookie that was never given leads to is the
// kernel's affair: some entry of this directory, the end, or an error.
func (e *DirReader) Seek(f *os.File, cookie uint64) (passed uint64, _ error) {
	if e.rest = nil; cookie == 0 && e.buf == nil {
		return 0, nil // nothing was read yet
	}
	_, err := f.Seek(int64(cookie), io.SeekStart)
	return 0, err
}

// Read returns the next entry, or false at the end.
func (e *DirReader) Read(f *os.File) (_ Entry, more bool, _ error) {
	if len(e.rest) == 0 {
		if e.buf == nil {
			e.buf = make([]byte, direntBuffer)
			fi, err := f.Stat()
			if err != nil {
				return Entry{}, false, err
			}
			e.dev = StatOf(fi).Dev
		}
		n := 0
		err := onFd(f, func(fd int) (err error) {
			n, err = retryEINTR(func() (int, error) { return unix.Getdents(fd, e.buf) })
			return err
		})
		if err != nil || n <= 0 {
			return Entry{}, false, err
		}
		e.rest = e.buf[:n]
	}
	d := e.rest
	if len(d) < direntHeader {
		return Entry{}, false, unix.EIO
	}
	size := int(binary.NativeEndian.Uint16(d[16:]))
	if size < direntHeader || size > len(d) {
		return Entry{}, false, unix.EIO
	}
	e.rest = d[size:]
	name := d[direntHeader:size]
	if i := bytes.IndexByte(name, 0); i >= 0 {
		name = name[:i]
	}
	out := Entry{
		Dev:  e.dev,
		Next: binary.NativeEndian.Uint64(d[8:]),
		Ino:  binary.NativeEndian.Uint64(d),
		Name: string(name),
	}
	// What is told is the type of the mode, shifted. Some file systems do not tell.
	if out.Type = typeOf(uint32(d[18]) << 12); out.Type == fs.ModeIrregular {
		var fi hostInfo // stays irregular if it cannot be looked at
		_ = onFd(f, func(fd int) error { return fi.fstatat(fd, out.Name, unix.AT_SYMLINK_NOFOLLOW) })
		out.Type = fi.Mode().Type()
	}
	return out, true, nil
}
