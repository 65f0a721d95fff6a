//go:build wasip1

// Guest executes the operations that it reads from the test, one a line, with arguments
// separated by tabs. It answers each with a line: "ok" and the result, or "errno" and the
// number that WASI returned.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

//go:wasmimport wasi_snapshot_preview1 path_open
func pathOpen(fd int32, dirflags uint32, path unsafe.Pointer, pathLen uint32, oflags uint32, rights, inheriting uint64, fdflags uint32, result unsafe.Pointer) uint32

//go:wasmimport wasi_snapshot_preview1 fd_close
func fdClose(fd int32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_fdstat_set_flags
func fdSetFlags(fd int32, flags uint32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_allocate
func fdAllocate(fd int32, offset, length uint64) uint32

//go:wasmimport wasi_snapshot_preview1 fd_filestat_set_size
func fdSetSize(fd int32, size uint64) uint32

//go:wasmimport wasi_snapshot_preview1 fd_filestat_set_times
func fdSetTimes(fd int32, atim, mtim uint64, flags uint32) uint32

//go:wasmimport wasi_snapshot_preview1 path_filestat_set_times
func pathSetTimes(fd int32, lookup uint32, path unsafe.Pointer, pathLen uint32, atim, mtim uint64, flags uint32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_pwrite
func fdPwrite(fd int32, iovs unsafe.Pointer, count uint32, offset uint64, result unsafe.Pointer) uint32

//go:wasmimport wasi_snapshot_preview1 fd_read
func fdRead(fd int32, iovs unsafe.Pointer, count uint32, result unsafe.Pointer) uint32

//go:wasmimport wasi_snapshot_preview1 fd_readdir
func fdReaddir(fd int32, buf unsafe.Pointer, size uint32, cookie uint64, result unsafe.Pointer) uint32

//go:wasmimport test read
func testRead(buf unsafe.Pointer, size uint32) uint32

// input reads the operations of the test.
type input struct{}

func (input) Read(p []byte) (int, error) {
	n := testRead(unsafe.Pointer(unsafe.SliceData(p)), uint32(len(p)))
	if n == 0 {
		return 0, io.EOF
	}
	return int(n), nil
}

const (
	preopen     = 3
	rightRead   = 1 << 1
	rightWrite  = 1 << 6
	allRights   = 1<<30 - 1
	oflagDir    = 1 << 1
	followLinks = 1
	setMtime    = 1 << 2
)

type iovec struct {
	ptr  uint32
	size uint32
}

func vec(b []byte) *iovec {
	return &iovec{uint32(uintptr(unsafe.Pointer(unsafe.SliceData(b)))), uint32(len(b))}
}

func errno(n uint32) error {
	if n == 0 {
		return nil
	}
	return syscall.Errno(n)
}

// relative returns the name below the preopen, which WASI wants.
func relative(p string) string {
	if p == "/" {
		return "."
	}
	return strings.TrimPrefix(p, "/")
}

func open(dir int32, p string, oflags uint32, rights uint64, fdflags uint32) (int32, error) {
	if dir == preopen {
		p = relative(p)
	}
	var fd int32
	n := pathOpen(dir, followLinks, unsafe.Pointer(unsafe.StringData(p)), uint32(len(p)), oflags, rights, allRights, fdflags, unsafe.Pointer(&fd))
	return fd, errno(n)
}

func num(s string) uint64 {
	n, err := strconv.ParseUint(s, 0, 64)
	if err != nil {
		panic(err)
	}
	return n
}

// withFile opens a name for reading and writing, if possible, else for reading.
func withFile(p string, do func(fd int32) uint32) error {
	fd, err := open(preopen, p, 0, allRights, 0)
	if err != nil {
		if fd, err = open(preopen, p, 0, allRights&^rightWrite, 0); err != nil {
			return err
		}
	}
	defer fdClose(fd)
	return errno(do(fd))
}

var errRoot = errors.New("")

func run(op string, args []string) (string, error) {
	switch op {
	case "read":
		b, err := os.ReadFile(args[0])
		return string(b), err
	case "write":
		return "", os.WriteFile(args[0], []byte(args[1]), 0o666)
	case "append":
		f, err := os.OpenFile(args[0], os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return "", err
		}
		defer f.Close()
		_, err = f.WriteString(args[1])
		return "", err
	case "root": // directory, path below it, content
		r, err := os.OpenRoot(args[0])
		if err != nil {
			return "", err
		}
		defer r.Close()
		if err := r.WriteFile(args[1], []byte(args[2]), 0o666); err != nil {
			return "", errRoot
		}
		b, err := r.ReadFile(args[1])
		return string(b), err
	case "mkdirall":
		return "", os.MkdirAll(args[0], 0o777)
	case "mkdir":
		return "", os.Mkdir(args[0], 0o777)
	case "unlink":
		return "", syscall.Unlink(args[0])
	case "rmdir":
		return "", syscall.Rmdir(args[0])
	case "rename":
		return "", os.Rename(args[0], args[1])
	case "symlink":
		return "", os.Symlink(args[0], args[1])
	case "link":
		return "", os.Link(args[0], args[1])
	case "readlink":
		return os.Readlink(args[0])
	case "chtimes":
		return "", os.Chtimes(args[0], time.Unix(1, 0), time.Unix(1, 0))
	case "truncate":
		return "", os.Truncate(args[0], int64(num(args[1])))
	case "stat":
		fi, err := os.Stat(args[0])
		if err != nil {
			return "", err
		}
		return fmt.Sprint(fi.Mode().Type(), " ", fi.Size()), nil
	case "list":
		entries, err := os.ReadDir(args[0])
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		sort.Strings(names)
		return strings.Join(names, " "), err
	case "open": // path, oflags, rights, fdflags: as in path_open
		fd, err := open(preopen, args[0], uint32(num(args[1])), num(args[2]), uint32(num(args[3])))
		if err != nil {
			return "", err
		}
		defer fdClose(fd)
		buf, n := make([]byte, 512), uint32(0)
		fdRead(fd, unsafe.Pointer(vec(buf)), 1, unsafe.Pointer(&n))
		return string(buf[:n]), nil
	case "openat": // directory, path
		dir, err := open(preopen, args[0], oflagDir, allRights&^rightWrite, 0)
		if err != nil {
			return "", err
		}
		defer fdClose(dir)
		fd, err := open(dir, args[1], 0, rightRead, 0)
		if err != nil {
			return "", err
		}
		fdClose(fd)
		return "", nil
	case "setflags": // path, flags: and then write
		return "", withFile(args[0], func(fd int32) uint32 {
			if n := fdSetFlags(fd, uint32(num(args[1]))); n != 0 {
				return n
			}
			var n uint32
			return fdPwrite(fd, unsafe.Pointer(vec([]byte("x"))), 1, 0, unsafe.Pointer(&n))
		})
	case "allocate":
		return "", withFile(args[0], func(fd int32) uint32 { return fdAllocate(fd, 0, num(args[1])) })
	case "setsize":
		return "", withFile(args[0], func(fd int32) uint32 { return fdSetSize(fd, num(args[1])) })
	case "settimes":
		return "", withFile(args[0], func(fd int32) uint32 { return fdSetTimes(fd, 0, 1e9, setMtime) })
	case "settimesnofollow":
		p := relative(args[0])
		return "", errno(pathSetTimes(preopen, 0, unsafe.Pointer(unsafe.StringData(p)), uint32(len(p)), 0, 1e9, setMtime))
	case "pwrite": // path, offset
		return "", withFile(args[0], func(fd int32) uint32 {
			var n uint32
			return fdPwrite(fd, unsafe.Pointer(vec([]byte("x"))), 1, num(args[1]), unsafe.Pointer(&n))
		})
	case "exhaust":
		var fds []int32
		defer func() {
			for _, fd := range fds {
				fdClose(fd)
			}
		}()
		for {
			fd, err := open(preopen, args[0], 0, rightRead, 0)
			if err != nil {
				return strconv.Itoa(len(fds)), err
			}
			fds = append(fds, fd)
		}
	case "readdir": // path, size of the buffer, which need not be true: returns the number of entries
		fd, err := open(preopen, args[0], oflagDir, allRights&^rightWrite, 0)
		if err != nil {
			return "", err
		}
		defer fdClose(fd)
		size := uint32(num(args[1]))
		buf := make([]byte, min(size, 1<<20))
		count, cookie := 0, uint64(0)
		for {
			var used uint32
			if n := fdReaddir(fd, unsafe.Pointer(&buf[0]), size, cookie, unsafe.Pointer(&used)); n != 0 {
				return "", errno(n)
			}
			rest, whole := buf[:used], 0
			for len(rest) >= 24 {
				next := *(*uint64)(unsafe.Pointer(&rest[0]))
				length := int(*(*uint32)(unsafe.Pointer(&rest[16])))
				if len(rest) < 24+length {
					break
				}
				rest, cookie = rest[24+length:], next
				whole++
			}
			count += whole
			if used < size || whole == 0 {
				return strconv.Itoa(count), nil
			}
		}
	}
	return "", errors.New("no such operation")
}

func main() {
	in := bufio.NewReader(input{})
	for {
		line, err := in.ReadString('\n')
		if err == io.EOF {
			return
		}
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		for i := range fields {
			if s, err := strconv.Unquote(fields[i]); err == nil {
				fields[i] = s
			}
		}
		out, err := run(fields[0], fields[1:])
		var n syscall.Errno
		switch {
		case errors.As(err, &n):
			fmt.Printf("errno %d %s\n", uint32(n), out)
		case err != nil:
			fmt.Printf("error %v\n", err)
		default:
			fmt.Printf("ok %s\n", strings.ReplaceAll(out, "\n", " "))
		}
	}
}
