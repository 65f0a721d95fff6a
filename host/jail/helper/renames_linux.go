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

// renamer does renames for a staged command that overlays refuse: an overlay does not rename
// directories of its lower layer (EXDEV), and few programs can handle that. The command's
// calls are sent here. Most calls about other files are left to the kernel. It does no harm if
// a file changes meanwhile, because all work is done with the rights of the command.
//
// A directory is moved file by file into a new directory beside the target, which then gets
// the target's name. Other processes of the command can see that; nobody outside of the stage
// can.
type renamer struct {
	jobs chan func() // run by a thread with the rights of the command

	// moving is held while files are moved. When stop has locked it, no more are moved.
	moving sync.Mutex
}

// activeRenamer is the renamer of this process; nil: none.
var activeRenamer *renamer

// begin starts the thread that moves files.
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

// stop waits for the file or directory that is being moved, and prevents further moves.
func (r *renamer) stop() {
	if r != nil {
		r.moving.Lock()
	}
}

// notification and response are structures of the kernel, see seccomp_unotify(2).
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

// serve answers the calls that arrive at the seccomp listener, until the command has ended.
func (r *renamer) serve(listener int) {
	unix.CloseOnExec(listener)
	go func() {
		for {
			var n notification
			if _, _, err := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), notifyReceive, uintptr(unsafe.Pointer(&n))); err != 0 {
				if err == unix.EINTR || err == unix.ENOENT { // the calling process has ended
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

// place is a name in a directory, which is an open descriptor.
type place struct {
	dir  int
	name string
}

// answer carries out a call and returns its error number. done is false if the kernel has to
// carry out the call instead.
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

// errLeaveToKernel is returned if the kernel has to carry out the call.
const errLeaveToKernel = unix.Errno(0xfff)

// openLookupStart opens the directory at which the lookup of a call's name begins, and
// returns the rest of the name.
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

// renameAt carries out a rename that the kernel may refuse: of a directory, or between two
// files with hard links. For all others it returns errLeaveToKernel.
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
		// An overlay can take two names of one file for two files, and then fail. A rename
		// between them has nothing to do.
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

// readString reads a string that ends with NUL from the memory of a process. It reads page by
// page, because the page after the string may not exist.
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

func isHardlinked(p place) bool {
	var st unix.Stat_t
	return unix.Fstatat(p.dir, p.name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Nlink > 1
}

func isDir(p place) bool {
	var st unix.Stat_t
	return unix.Fstatat(p.dir, p.name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR
}

// rename renames like renameat2. After EXDEV for a directory it moves that file by file.
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

// makeReplaceable prepares a rename of the directory at from to the place to: it removes an
// empty directory there. Its error is the error that the rename must have.
func makeReplaceable(from, to place, flags uint) error {
	var source, target unix.Stat_t
	if err := unix.Fstatat(from.dir, from.name, &source, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	// The target must not be below the source.
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

// move makes a directory at the place to, and moves the content of the directory at from
// there. That directory stays, with its empty directories. If move fails, everything is moved
// back.
func move(from, to place) error {
	var st unix.Stat_t
	if err := unix.Fstatat(from.dir, from.name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	// A directory can be moved without being accessible to its owner.
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

// moveBack undoes the move of one name. If it is a directory, to may still exist.
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

// removeEmpty removes a directory that contains only empty directories.
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
