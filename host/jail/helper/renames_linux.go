package main

import (
	"crypto/rand"
	"path"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// renamer does for a staged command what an overlay does not: it renames no
// directory that was there before (EXDEV), for which few programs are prepared. The
// command's calls come here. What is no directory is left to the kernel; and
// nothing depends on that being so a moment later, because here is done with the
// rights of the command what it could do itself.
//
// A directory is moved file by file into a new one beside the target, which then
// gets its name. Others who look meanwhile see that; nobody outside of the stage
// does.
type renamer struct {
	jobs chan func() // is done by a thread that has the rights of the command

	// Held while something is moved. When it is locked for good nothing is changed
	// any more.
	moving sync.Mutex
}

// activeRenamer are those of this process; nil: none.
var activeRenamer *renamer

// begin starts the thread that moves.
func (r *renamer) begin(c *confinement) error {
	r.jobs = make(chan func())
	entered := make(chan error)
	go func() {
		runtime.LockOSThread()
		own := *c
		own.renamer = nil
		err := step(unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl PR_SET_NO_NEW_PRIVS")
		if err == nil {
			err = own.enterWithout("seccomp")
		}
		entered <- err
		if err != nil {
			return
		}
		for do := range r.jobs {
			do()
		}
	}()
	return <-entered
}

// stop waits for what is being moved, and lets nothing more be.
func (r *renamer) stop() {
	if r != nil {
		r.moving.Lock()
	}
}

// The structures of the kernel, see seccomp_unotify(2).
type notification struct {
	id    uint64
	pid   uint32
	flags uint32
	nr    int32
	arch  uint32
	ip    uint64
	args  [6]uint64
}

type response struct {
	id    uint64
	val   int64
	err   int32
	flags uint32
}

const (
	notifyReceive  = 0xc0502100
	notifySend     = 0xc0182101
	notifyIsValid  = 0x40082102
	notifyContinue = 1
)

// serve answers the calls of a listener, until the command is gone.
func (r *renamer) serve(listener int) {
	unix.CloseOnExec(listener)
	go func() {
		for {
			var n notification
			if _, _, err := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), notifyReceive, uintptr(unsafe.Pointer(&n))); err != 0 {
				if err == unix.EINTR || err == unix.ENOENT { // that process has ended
					if p := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}; err == unix.ENOENT {
						if _, err := unix.Poll(p, -1); err == nil && p[0].Revents&unix.POLLHUP != 0 {
							return
						}
					}
					continue
				}
				return
			}
			answer := response{id: n.id}
			if err, done := r.answer(listener, &n); done {
				answer.err = -int32(err)
				if err != 0 {
					answer.val = -1
				}
			} else {
				answer.flags = notifyContinue
			}
			_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(listener), notifySend, uintptr(unsafe.Pointer(&answer)))
		}
	}()
}

// place is a name in a directory.
type place struct {
	dir  int
	name string
}

// answer does a call, if it is about a directory.
func (r *renamer) answer(listener int, n *notification) (_ unix.Errno, done bool) {
	here := int32(unix.AT_FDCWD)
	from, to := [2]uint64{uint64(uint32(here)), n.args[0]}, [2]uint64{uint64(uint32(here)), n.args[1]}
	var flags uint
	if int(n.nr) != sysRename {
		from, to = [2]uint64{n.args[0], n.args[1]}, [2]uint64{n.args[2], n.args[3]}
		if n.nr == unix.SYS_RENAMEAT2 {
			flags = uint(uint32(n.args[4]))
		}
	}
	a, aName, err := openLookupStart(n.pid, from)
	if err != nil {
		return 0, false
	}
	defer unix.Close(a)
	b, bName, err := openLookupStart(n.pid, to)
	if err != nil {
		return 0, false
	}
	defer unix.Close(b)
	id := n.id
	if _, _, err := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), notifyIsValid, uintptr(unsafe.Pointer(&id))); err != 0 {
		return 0, false
	}
	r.moving.Lock()
	defer r.moving.Unlock()
	answered := make(chan error)
	r.jobs <- func() { answered <- renameAt(a, aName, b, bName, flags) }
	switch err := (<-answered).(type) {
	case nil:
		return 0, true
	case unix.Errno:
		return err, err != errLeaveToKernel
	}
	return unix.EIO, true
}

// errLeaveToKernel is of what the kernel can do, or refuses as it should.
const errLeaveToKernel = unix.Errno(0xfff)

// openLookupStart opens where the lookup of a name of a call begins, and returns the rest.
func openLookupStart(pid uint32, arg [2]uint64) (start int, rest string, err error) {
	name, err := readString(int(pid), uintptr(arg[1]))
	if err != nil {
		return -1, "", err
	}
	base := "/proc/" + strconv.Itoa(int(pid)) + "/cwd"
	if fd := int32(uint32(arg[0])); fd != unix.AT_FDCWD {
		base = "/proc/" + strconv.Itoa(int(pid)) + "/fd/" + strconv.Itoa(int(fd))
	}
	if strings.HasPrefix(name, "/") {
		base, name = "/", strings.TrimLeft(name, "/")
	}
	start, err = unix.Open(base, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	return start, name, err
}

// renameAt does a rename if it is about a directory.
func renameAt(a int, aName string, b int, bName string, flags uint) error {
	from, err := openPlace(a, aName)
	if err != nil {
		return errLeaveToKernel
	}
	defer unix.Close(from.dir)
	to, err := openPlace(b, bName)
	if err != nil {
		return errLeaveToKernel
	}
	defer unix.Close(to.dir)
	if !isDir(from) && (flags&unix.RENAME_EXCHANGE == 0 || !isDir(to)) {
		if flags&unix.RENAME_NOREPLACE != 0 || !isHardlinked(from) || !isHardlinked(to) {
			return errLeaveToKernel
		}
		// An overlay can take two names of one file for two files, and fail then. Of
		// one file there is nothing to be done.
		err := unix.Renameat2(from.dir, from.name, to.dir, to.name, flags)
		if err == unix.ESTALE {
			return nil
		}
		return err
	}
	return rename(from, to, flags)
}

func openPlace(start int, name string) (place, error) {
	up, last := path.Split(strings.TrimRight(name, "/"))
	if last == "" || last == "." || last == ".." {
		return place{}, unix.EINVAL
	}
	if up == "" {
		up = "."
	}
	dir, err := unix.Openat(start, up, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	return place{dir, last}, err
}

// readString reads a text from the memory of a process, page by page: the next one
// may not be there.
func readString(pid int, addr uintptr) (string, error) {
	const page = 4096
	var out []byte
	for len(out) < unix.PathMax {
		piece := make([]byte, page-int(addr%page))
		n, err := unix.ProcessVMReadv(pid, []unix.Iovec{{Base: &piece[0], Len: uint64(len(piece))}}, []unix.RemoteIovec{{Base: addr, Len: len(piece)}}, 0)
		if err != nil {
			return "", err
		}
		out = append(out, piece[:n]...)
		if i := strings.IndexByte(string(out), 0); i >= 0 {
			return string(out[:i]), nil
		}
		addr += uintptr(n)
	}
	return "", unix.ENAMETOOLONG
}

// isHardlinked reports whether a place has a file of several names.
func isHardlinked(p place) bool {
	var st unix.Stat_t
	return unix.Fstatat(p.dir, p.name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Nlink > 1
}

func isDir(p place) bool {
	var st unix.Stat_t
	return unix.Fstatat(p.dir, p.name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR
}

// rename is renameat2, also where that is EXDEV for a directory.
func rename(from, to place, flags uint) error {
	err := unix.Renameat2(from.dir, from.name, to.dir, to.name, flags)
	if err != unix.EXDEV {
		return err
	}
	if flags&unix.RENAME_EXCHANGE != 0 {
		aside := place{to.dir, tempName()}
		if err := rename(to, aside, 0); err != nil {
			return err
		}
		if err := rename(from, to, 0); err != nil {
			_ = rename(aside, to, 0)
			return err
		}
		return rename(aside, from, 0)
	}
	if err := makeReplaceable(from, to, flags); err != nil {
		return err
	}
	temp := place{to.dir, tempName()}
	if err := move(from, temp); err != nil {
		return err
	}
	if err := unix.Renameat2(temp.dir, temp.name, to.dir, to.name, flags&unix.RENAME_NOREPLACE); err != nil {
		_ = move(temp, from)
		return err
	}
	return removeEmpty(from)
}

func tempName() string { return ".stockade-" + rand.Text() + ".tmp" }

// makeReplaceable is the error of a rename of a directory to a name, or nil. What has
// that is an empty directory, which is removed.
func makeReplaceable(from, to place, flags uint) error {
	var source, target unix.Stat_t
	if err := unix.Fstatat(from.dir, from.name, &source, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	// To below itself.
	dir, err := unix.Dup(to.dir)
	for err == nil {
		var st, up unix.Stat_t
		if err = unix.Fstat(dir, &st); err != nil {
			break
		}
		if st.Dev == source.Dev && st.Ino == source.Ino {
			unix.Close(dir)
			return unix.EINVAL
		}
		var next int
		if next, err = unix.Openat(dir, "..", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
			break
		}
		unix.Close(dir)
		dir = next
		if err = unix.Fstat(dir, &up); err == nil && up.Dev == st.Dev && up.Ino == st.Ino {
			break // the root
		}
	}
	unix.Close(dir)
	if err != nil {
		return err
	}
	err = unix.Fstatat(to.dir, to.name, &target, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case err == unix.ENOENT:
		return nil
	case err != nil:
		return err
	case flags&unix.RENAME_NOREPLACE != 0:
		return unix.EEXIST
	case target.Mode&unix.S_IFMT != unix.S_IFDIR:
		return unix.ENOTDIR
	}
	return unix.Unlinkat(to.dir, to.name, unix.AT_REMOVEDIR)
}

// move makes a directory and moves into it what is in another, which stays, with
// its empty directories. If it fails it moves that back.
func move(from, to place) error {
	var st unix.Stat_t
	if err := unix.Fstatat(from.dir, from.name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	// To be moved it need not be open to its owner.
	if st.Mode&0o700 != 0o700 {
		if err := unix.Fchmodat(from.dir, from.name, st.Mode&0o777|0o700, 0); err != nil {
			return err
		}
	}
	source, err := unix.Openat(from.dir, from.name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(source)
	if err := unix.Mkdirat(to.dir, to.name, 0o700); err != nil && err != unix.EEXIST {
		return err
	}
	target, err := unix.Openat(to.dir, to.name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(target)
	names, err := list(source)
	for i, name := range names {
		a, b := place{source, name}, place{target, name}
		if err = unix.Renameat2(a.dir, a.name, b.dir, b.name, unix.RENAME_NOREPLACE); (err == unix.EXDEV || err == unix.EACCES) && isDir(a) {
			err = move(a, b)
		}
		if err != nil {
			for _, name := range names[:i] {
				moveBack(place{target, name}, place{source, name})
			}
			break
		}
	}
	if err != nil {
		_ = unix.Unlinkat(to.dir, to.name, unix.AT_REMOVEDIR)
		_ = unix.Fchmod(source, st.Mode&0o777)
		return err
	}
	times := []unix.Timespec{st.Atim, st.Mtim}
	return firstErr(unix.Fchmod(target, st.Mode&0o777), unix.UtimesNanoAt(to.dir, to.name, times, unix.AT_SYMLINK_NOFOLLOW))
}

// moveBack moves something back whose directory, if it is one, may have stayed.
func moveBack(from, to place) {
	if unix.Renameat2(from.dir, from.name, to.dir, to.name, unix.RENAME_NOREPLACE) != nil && isDir(from) {
		_ = move(from, to)
		_ = removeEmpty(from)
	}
}

func list(dir int) (names []string, err error) {
	buf := make([]byte, 32<<10)
	for {
		n, err := unix.ReadDirent(dir, buf)
		if err != nil || n == 0 {
			return names, err
		}
		for rest := buf[:n]; len(rest) > 0; {
			used, _, more := unix.ParseDirent(rest, -1, names)
			names, rest = more, rest[used:]
		}
	}
}

// removeEmpty removes a directory in which there are only empty ones.
func removeEmpty(p place) error {
	dir, err := unix.Openat(p.dir, p.name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	names, err := list(dir)
	for _, name := range names {
		if err == nil {
			err = removeEmpty(place{dir, name})
		}
	}
	if err != nil {
		return err
	}
	return unix.Unlinkat(p.dir, p.name, unix.AT_REMOVEDIR)
}
