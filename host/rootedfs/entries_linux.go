package rootedfs

import (
	"bytes"
	"encoding/binary"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// DirReader reads the entries of a directory from the kernel. Package os would ask for the
// state of every entry, although the listing itself has type and inode number. A cookie, the
// position of an entry, is the kernel's own offset, so that Seek to any entry costs the same,
// and no earlier entries need to be remembered. The zero value is ready to use.
type DirReader struct {
	buf  []byte // nil before the first read
	rest []byte // the unread part of buf
	dev  uint64 // device of the directory
}

const (
	direntHeader = 19 // bytes of inode, offset, length and type
	direntBuffer = 8 << 10
)

// Seek makes the entry with a cookie the next entry; zero is the first one. passed, the number
// of entries that it had to read, is zero on Linux. A cookie that no entry has had leads to some entry of
// this directory, to the end, or to an error, as the kernel decides.
func (e *DirReader) Seek(f *os.File, cookie uint64) (passed uint64, _ error) {
	if e.rest = nil; cookie == 0 && e.buf == nil {
		return 0, nil // nothing was read yet
	}
	_, err := f.Seek(int64(cookie), io.SeekStart)
	return 0, err
}

// Read returns the next entry, maybe "." or "..". more is false at the end.
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
			n, err = RetryEINTR(func() (int, error) { return unix.Getdents(fd, e.buf) })
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
	// The kernel shifts the type bits of the mode. Some file systems have no type here.
	if out.Type = typeOf(uint32(d[18]) << 12); out.Type == fs.ModeIrregular {
		var fi hostInfo // stays irregular after an error
		_ = onFd(f, func(fd int) error { return fi.fstatat(fd, out.Name, unix.AT_SYMLINK_NOFOLLOW) })
		out.Type = fi.Mode().Type()
	}
	return out, true, nil
}
