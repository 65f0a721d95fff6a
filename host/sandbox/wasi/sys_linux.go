package wasi

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// setTimes changes the times of an open file. It is futimens, which has no
// name in Go: utimensat without a path.
func setTimes(f *os.File, atim, mtim int64) error {
	ts := [2]unix.Timespec{timespec(atim), timespec(mtim)}
	return onFd(f, func(fd int) error {
		_, _, errno := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(fd), 0, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
		if errno != 0 {
			return errno
		}
		return nil
	})
}

func timespec(nanos int64) unix.Timespec {
	ts := unix.NsecToTimespec(nanos)
	if nanos == OmitTime {
		ts.Nsec = unix.UTIME_OMIT
	}
	return ts
}

// setLinkTimes changes the times of the symbolic link that has a name in a
// directory. A handle is taken first, so that nothing which takes the link's
// place is changed.
func setLinkTimes(dir root, name string, atim, mtim int64) Errno {
	d, err := dir.Open(".")
	if err != nil {
		return errnoOf(err)
	}
	defer d.Close()
	return errnoOf(onFd(d, func(dirFd int) error {
		fd, err := unix.Openat(dirFd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return err
		}
		if st.Mode&unix.S_IFMT != unix.S_IFLNK || st.Nlink > 1 {
			return unix.EAGAIN
		}
		return unix.UtimesNanoAt(fd, "", []unix.Timespec{timespec(atim), timespec(mtim)}, unix.AT_EMPTY_PATH)
	}))
}

// entries reads a directory as the kernel has it: the os package would ask for
// the status of every entry, although type and inode number are here already.
// A cookie is the kernel's own offset, so that going on anywhere costs the
// same, and the entries seen before need not be remembered.
type entries struct {
	buf  []byte
	rest []byte
	dev  uint64
}

const (
	direntHeader = 19 // inode, offset, length, type
	direntBuffer = 8 << 10
)

// seek makes the entry of a cookie the next one, and says how many it passed.
// Zero is the first. What a cookie that was never given leads to is the
// kernel's affair: some entry of this directory, the end, or an error.
func (e *entries) seek(f *os.File, cookie uint64) (passed uint64, _ error) {
	if e.rest = nil; cookie == 0 && e.buf == nil {
		return 0, nil // nothing was read yet
	}
	_, err := f.Seek(int64(cookie), io.SeekStart)
	return 0, err
}

// read returns the next entry, or false at the end.
func (e *entries) read(f *os.File) (_ hostEntry, more bool, _ error) {
	if len(e.rest) == 0 {
		if e.buf == nil {
			e.buf = make([]byte, direntBuffer)
			fi, err := f.Stat()
			if err != nil {
				return hostEntry{}, false, err
			}
			e.dev = hostStat(fi).Dev
		}
		n := 0
		err := onFd(f, func(fd int) (err error) {
			for {
				if n, err = unix.Getdents(fd, e.buf); err != unix.EINTR {
					return err
				}
			}
		})
		if err != nil || n <= 0 {
			return hostEntry{}, false, err
		}
		e.rest = e.buf[:n]
	}
	d := e.rest
	if len(d) < direntHeader {
		return hostEntry{}, false, unix.EIO
	}
	size := int(binary.NativeEndian.Uint16(d[16:]))
	if size < direntHeader || size > len(d) {
		return hostEntry{}, false, unix.EIO
	}
	e.rest = d[size:]
	name := d[direntHeader:size]
	if i := bytes.IndexByte(name, 0); i >= 0 {
		name = name[:i]
	}
	out := hostEntry{dev: e.dev, Dirent: Dirent{
		Next: binary.NativeEndian.Uint64(d[8:]),
		Ino:  binary.NativeEndian.Uint64(d),
		Name: string(name),
	}}
	switch d[18] {
	case unix.DT_REG:
		out.Type = RegularFile
	case unix.DT_DIR:
		out.Type = Directory
	case unix.DT_LNK:
		out.Type = SymbolicLink
	case unix.DT_SOCK:
		out.Type = SocketStream
	case unix.DT_CHR:
		out.Type = CharacterDevice
	case unix.DT_BLK:
		out.Type = BlockDevice
	case unix.DT_FIFO:
		out.Type = Unknown
	default:
		out.Type = typeOf(f, out.Name)
	}
	return out, true, nil
}

// typeOf asks for the type of an entry where the file system does not tell
// with the name.
func typeOf(f *os.File, name string) FileType {
	var st unix.Stat_t
	if err := onFd(f, func(fd int) error {
		return unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	}); err != nil {
		return Unknown
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return RegularFile
	case unix.S_IFDIR:
		return Directory
	case unix.S_IFLNK:
		return SymbolicLink
	}
	return Unknown
}

// holdsMountPoint reports whether a file system is mounted somewhere below
// dir. If that cannot be found out, one is.
func holdsMountPoint(dir string) bool {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return true
	}
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return true
	}
	for line := range strings.Lines(string(table)) {
		// id, parent, device, root, mount point, …
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		if rel, inside := below(real, unescape(fields[4])); inside && rel != "." {
			return true
		}
	}
	return false
}

// unescape undoes the octal escapes of white space in the mount table.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(c))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
