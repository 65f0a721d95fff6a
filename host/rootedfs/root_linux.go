package rootedfs

import (
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// openRoot does the work of [Open]. See RATIONALE, "Why openat2, and os.Root only where it is
// missing?"
func openRoot(name string) (Root, error) {
	if hasOpenat2() {
		return openKernelRoot(name)
	}
	return openOSRoot(name)
}

// hasOpenat2 reports whether openat2 exists and works. It does not before Linux 5.6, or if a
// filter of system calls, such as that of a container, does not know it. The test is made
// once, before any lookup for a guest, so that no error of a lookup is taken for the lack of
// the call.
var hasOpenat2 = sync.OnceValue(func() bool {
	fd, err := unix.Openat2(unix.AT_FDCWD, "/", &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: resolve})
	if err == nil {
		_ = unix.Close(fd)
	}
	return err == unix.EXDEV
})

const (
	// resolve makes the kernel refuse every step out of the directory in which a lookup
	// starts: through "..", an absolute link or, in a mount of proc, a magic link.
	resolve = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS

	// noWaitFlags are added to every open of a file, because its type is only known once it is
	// open. Until then a FIFO must not make the host wait, nor a terminal become its
	// controlling terminal.
	noWaitFlags = unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_LARGEFILE

	// maxTries limits the attempts at a lookup that ends with EAGAIN. The kernel gives up
	// after a ".." if anything was renamed anywhere on the system, because it cannot be sure
	// then that the parent is inside. An attacker who renames all the time delays a guest by
	// less than a millisecond; then the guest gets EAGAIN.
	maxTries = 128
)

// kernelRoot is a root for which the kernel looks up names. It uses the descriptor without an
// [os.File], which would cost more than a lookup for each directory of a guarded mount.
type kernelRoot struct {
	name string // for errors
	device

	mu     sync.Mutex
	fd     int
	users  int // number of running calls that use fd
	closed bool
}

// openKernelRoot opens the directory of a mount. It does not use O_PATH: a directory that
// cannot be listed is refused here, as by os.Root, and not in the middle of a guest's work.
func openKernelRoot(name string) (Root, error) {
	fd, err := RetryEINTR(func() (int, error) {
		return unix.Open(name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return &kernelRoot{name: name, fd: fd}, nil
}

// acquire keeps the descriptor open until release is called. After Close: [fs.ErrClosed].
func (r *kernelRoot) acquire() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return fs.ErrClosed
	}
	r.users++
	return nil
}

func (r *kernelRoot) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.users--
	r.closeUnused()
}

func (r *kernelRoot) on(op func(fd int) error) error {
	if err := r.acquire(); err != nil {
		return err
	}
	defer r.release()
	return op(r.fd)
}

func (r *kernelRoot) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.closeUnused()
	return nil
}

// closeUnused closes the descriptor of a closed root that no call uses. The caller holds mu.
func (r *kernelRoot) closeUnused() {
	if r.closed && r.users == 0 && r.fd >= 0 {
		_ = unix.Close(r.fd)
		r.fd = -1
	}
}

func (r *kernelRoot) MaxSymlinks() int { return 40 } // MAXSYMLINKS of the kernel

// openName opens a name below the directory, with the flags of how and those of resolve.
func (r *kernelRoot) openName(name string, how unix.OpenHow) (int, error) {
	if err := r.acquire(); err != nil {
		return -1, err
	}
	defer r.release()
	return openat2(r.fd, name, how)
}

// openat2 opens a name below a directory. If the kernel gives up, it tries up to maxTries
// times.
func openat2(dir int, name string, how unix.OpenHow) (int, error) {
	how.Flags |= unix.O_CLOEXEC
	how.Resolve |= resolve
	for try := 1; ; {
		fd, err := unix.Openat2(dir, name, &how)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN && try < maxTries:
			try++
			continue
		case err == unix.EXDEV:
			return -1, errEscapes
		}
		return fd, err
	}
}

// openNoSymlinks opens an existing file, and refuses symbolic links anywhere in its name.
func (r *kernelRoot) openNoSymlinks(name string, flag int) (int, error) {
	return r.openName(name, unix.OpenHow{Flags: uint64(flag | noWaitFlags), Resolve: unix.RESOLVE_NO_SYMLINKS})
}

func (r *kernelRoot) OpenRoot(name string) (Root, error) {
	fd, err := r.openName(name, unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY})
	if err != nil {
		return nil, &fs.PathError{Op: "openat2", Path: name, Err: err}
	}
	return &kernelRoot{name: r.path(name), device: r.device, fd: fd}, nil
}

func (r *kernelRoot) path(name string) string { return r.name + "/" + name }

func (r *kernelRoot) Open(name string) (*os.File, error) { return r.OpenFile(name, os.O_RDONLY, 0) }

func (r *kernelRoot) OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	if flag&os.O_CREATE == 0 {
		perm = 0 // the kernel refuses any other mode
	}
	fd, err := r.openName(name, unix.OpenHow{Flags: uint64(flag | noWaitFlags), Mode: uint64(perm)})
	return r.file(name, flag, fd, err)
}

func (r *kernelRoot) OpenNoSymlinks(name string, flag int) (*os.File, error) {
	fd, err := r.openNoSymlinks(name, flag)
	return r.file(name, flag, fd, err)
}

// file makes an [os.File] of a descriptor that was just opened, unless err is set.
func (r *kernelRoot) file(name string, flag, fd int, err error) (*os.File, error) {
	if err != nil {
		return nil, &fs.PathError{Op: "openat2", Path: name, Err: err}
	}
	// With O_NONBLOCK package os would try epoll: four calls, in vain for a file.
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFL, flag&os.O_APPEND); err != nil {
		_ = unix.Close(fd)
		return nil, &fs.PathError{Op: "fcntl", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), r.path(name)), nil
}

// OpenContent uses no [os.File]: no read has to wait, and none runs during the Close.
func (r *kernelRoot) OpenContent(name string) (Content, os.FileInfo, error) {
	fd, err := r.openNoSymlinks(name, unix.O_RDONLY)
	if err != nil {
		return nil, nil, err
	}
	fi := &hostInfo{name: name}
	_, err = RetryEINTR(func() (int, error) { return 0, syscall.Fstat(fd, &fi.sys) })
	switch {
	case err != nil:
	case fi.IsDir():
		err = unix.EISDIR
	case !fi.Mode().IsRegular():
		err = unix.EACCES
	case !r.holds(fi):
		err = RefuseKernelFd(fd)
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, nil, err
	}
	return descriptor(fd), fi, nil
}

type descriptor int

func (d descriptor) ReadAt(p []byte, off int64) (done int, _ error) {
	for done < len(p) {
		n, err := RetryEINTR(func() (int, error) { return unix.Pread(int(d), p[done:], off+int64(done)) })
		if err != nil {
			return done, err
		}
		if n == 0 {
			return done, io.EOF
		}
		done += n
	}
	return done, nil
}

func (d descriptor) Close() error { return unix.Close(int(d)) }

// isSingleName reports whether the kernel looks up a name in the directory itself, so that it
// cannot lead out unless a symbolic link is followed.
func isSingleName(name string) bool { return name != ".." && strings.IndexByte(name, '/') < 0 }

func (r *kernelRoot) Lstat(name string) (os.FileInfo, error) { return r.stat(name, unix.O_NOFOLLOW) }

func (r *kernelRoot) Stat(name string) (os.FileInfo, error) {
	if isSingleName(name) {
		fi, err := r.stat(name, unix.O_NOFOLLOW)
		if err != nil || fi.Mode().Type() != fs.ModeSymlink {
			return fi, err
		}
	}
	return r.stat(name, 0)
}

func (r *kernelRoot) stat(name string, flags int) (os.FileInfo, error) {
	fi := &hostInfo{name: path.Base(name)}
	err := r.acquire()
	if err == nil {
		defer r.release()
		if flags&unix.O_NOFOLLOW != 0 && isSingleName(name) {
			err = fi.fstatat(r.fd, name, unix.AT_SYMLINK_NOFOLLOW)
		} else {
			err = fi.statPath(r.fd, name, flags)
		}
	}
	if err != nil {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	return fi, nil
}

// inParentDir looks up the parent directory of a name. It calls do with this directory and the
// last part of the name, which do must not follow. Each error, also of do, becomes a
// [fs.PathError] with op and name.
func (r *kernelRoot) inParentDir(op, name string, do func(dir int, last string) error) error {
	err := r.acquire()
	if err == nil {
		defer r.release()
		err = inParentDir(r.fd, name, do)
	}
	if err != nil {
		return &fs.PathError{Op: op, Path: name, Err: err}
	}
	return nil
}

// inParentDir is the method of the same name for the descriptor of a directory. Its errors
// have no op and no name.
func inParentDir(dir int, name string, do func(dir int, last string) error) error {
	up, last := path.Split(name)
	if last == "" || last == ".." {
		return unix.EINVAL // not a clean name
	}
	if up == "" {
		return do(dir, last)
	}
	fd, err := openat2(dir, up, unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY})
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return do(fd, last)
}

func (r *kernelRoot) Readlink(name string) (target string, err error) {
	err = r.inParentDir("readlinkat", name, func(dir int, last string) error {
		for size := 128; ; size *= 2 {
			buf := make([]byte, size)
			n, err := RetryEINTR(func() (int, error) { return unix.Readlinkat(dir, last, buf) })
			if err != nil {
				return err
			}
			if n < size {
				target = string(buf[:n])
				return nil
			}
		}
	})
	return target, err
}

func (r *kernelRoot) Mkdir(name string, perm fs.FileMode) error {
	return r.inParentDir("mkdirat", name, func(dir int, last string) error {
		_, err := RetryEINTR(func() (int, error) { return 0, unix.Mkdirat(dir, last, uint32(perm.Perm())) })
		return err
	})
}

func (r *kernelRoot) Symlink(target, name string) error {
	return r.inParentDir("symlinkat", name, func(dir int, last string) error { return unix.Symlinkat(target, dir, last) })
}

// Remove tries to remove a file and then a directory: its caller may have seen another type.
func (r *kernelRoot) Remove(name string) error { return r.inParentDir("unlinkat", name, unlink) }

func (r *kernelRoot) Rename(oldName, newName string) error {
	return r.inParentDir("renameat", oldName, func(oldDir int, oldLast string) error {
		return inParentDir(r.fd, newName, func(newDir int, newLast string) error {
			return unix.Renameat(oldDir, oldLast, newDir, newLast)
		})
	})
}

func (r *kernelRoot) ListsInodes() bool {
	if r.acquire() != nil {
		return false
	}
	defer r.release()
	switch kind, err := fileSystem(r.fd); kind {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.TMPFS_MAGIC:
		return err == nil
	}
	return false
}

func (r *kernelRoot) RenameReplacesEmptyDir() bool { return true }

// RetryEINTR calls op again as long as a signal interrupts the call.
func RetryEINTR(op func() (int, error)) (int, error) {
	for {
		n, err := op()
		if err != unix.EINTR {
			return n, err
		}
	}
}
