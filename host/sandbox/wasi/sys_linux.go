package wasi

import (
	"bytes"
	"encoding/binary"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unsafe"

	"github.com/tetratelabs/wazero/experimental/sys"
	wsys "github.com/tetratelabs/wazero/sys"
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
	if nanos == sys.UTIME_OMIT {
		ts.Nsec = unix.UTIME_OMIT
	}
	return ts
}

// entries reads a directory as the kernel has it: the os package would ask for
// the status of every entry, although type and inode number are here already.
type entries struct {
	buf  []byte
	rest []byte
	dev  uint64
}

const (
	direntHeader = 19 // inode, offset, length, type
	direntBuffer = 8 << 10
)

// read returns the next entry, or false at the end.
func (e *entries) read(f *os.File) (_ hostEntry, more bool, _ error) {
	if len(e.rest) == 0 {
		if e.buf == nil {
			e.buf = make([]byte, direntBuffer)
			fi, err := f.Stat()
			if err != nil {
				return hostEntry{}, false, err
			}
			e.dev = wsys.NewStat_t(fi).Dev
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
	out := hostEntry{dev: e.dev, Dirent: sys.Dirent{
		Ino:  binary.NativeEndian.Uint64(d),
		Name: string(name),
	}}
	switch d[18] {
	case unix.DT_REG:
	case unix.DT_DIR:
		out.Type = fs.ModeDir
	case unix.DT_LNK:
		out.Type = fs.ModeSymlink
	case unix.DT_FIFO:
		out.Type = fs.ModeNamedPipe
	case unix.DT_SOCK:
		out.Type = fs.ModeSocket
	case unix.DT_CHR:
		out.Type = fs.ModeDevice | fs.ModeCharDevice
	case unix.DT_BLK:
		out.Type = fs.ModeDevice
	default:
		out.Type = typeOf(f, out.Name)
	}
	return out, true, nil
}

// typeOf asks for the type of an entry where the file system does not tell
// with the name.
func typeOf(f *os.File, name string) fs.FileMode {
	var st unix.Stat_t
	if err := onFd(f, func(fd int) error {
		return unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	}); err != nil {
		return fs.ModeIrregular
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return 0
	case unix.S_IFDIR:
		return fs.ModeDir
	case unix.S_IFLNK:
		return fs.ModeSymlink
	}
	return fs.ModeIrregular
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
