//go:build unix

package rootedfs

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// Nonblock keeps the open of a FIFO or a device from waiting.
	Nonblock = unix.O_NONBLOCK
	// AttrAccess is the open flag that suffices to change times and mode through a handle.
	AttrAccess = os.O_RDONLY
	// HasAppend reports whether SetAppend has an effect.
	HasAppend = true
)

// StatOf returns the facts about a file. Only Nlink is set, to 1, if fi is not of the host.
func StatOf(fi os.FileInfo) Stat {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return Stat{Nlink: 1}
	}
	out := Stat{Dev: uint64(st.Dev), Ino: uint64(st.Ino), Nlink: uint64(st.Nlink)}
	out.Atim, out.Mtim, out.Ctim = times(st)
	return out
}

// SameFile is [os.SameFile] that also accepts infos of this package. It is false for others.
func SameFile(a, b os.FileInfo) bool {
	x, y := hostSys(a), hostSys(b)
	return x != nil && y != nil && x.Dev == y.Dev && x.Ino == y.Ino
}

func hostSys(fi os.FileInfo) *syscall.Stat_t {
	if fi == nil {
		return nil
	}
	st, _ := fi.Sys().(*syscall.Stat_t)
	return st
}

func linkCount(_ *os.File, fi os.FileInfo) uint64 { return StatOf(fi).Nlink }

// SameOwner reports whether two files have the same owner and group.
func SameOwner(a, b os.FileInfo) bool {
	x, y := a.Sys().(*syscall.Stat_t), b.Sys().(*syscall.Stat_t)
	return x.Uid == y.Uid && x.Gid == y.Gid
}

// CopyOwner gives f the owner and the group of another file, or neither if the host refuses
// one: only root gives files away, and the group must be one of the user's.
func CopyOwner(f *os.File, other os.FileInfo) {
	if st, ok := other.Sys().(*syscall.Stat_t); ok {
		_ = retryByName(f, f.Chown(int(st.Uid), int(st.Gid)), func(name string) error {
			return os.Chown(name, int(st.Uid), int(st.Gid))
		})
	}
}

// Chmod sets the permissions of an open file, also of a file from [OpenForAttrs].
func Chmod(f *os.File, mode fs.FileMode) error {
	return retryByName(f, f.Chmod(mode.Perm()), func(name string) error { return os.Chmod(name, mode.Perm()) })
}

// CheckWritable returns an error unless the user may write a file. It does not open the file:
// others take an open for writing and its close for a change.
func CheckWritable(dir Root, name string) error {
	return onDir(dir, func(fd int) error {
		return unix.Faccessat(fd, name, unix.W_OK, unix.AT_EACCESS|unix.AT_SYMLINK_NOFOLLOW)
	})
}

// onFd calls op with the descriptor of a file, which stays open meanwhile.
func onFd(f *os.File, op func(fd int) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var opErr error
	if err := raw.Control(func(fd uintptr) { opErr = op(int(fd)) }); err != nil {
		return err
	}
	return opErr
}

// onDir calls op with a descriptor of a directory, which may be an O_PATH descriptor.
func onDir(r Root, op func(fd int) error) error {
	if k, ok := r.(interface{ on(func(int) error) error }); ok {
		return k.on(op)
	}
	dir, err := r.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(onFd(dir, op), dir.Close())
}

func onBoth(a, b Root, op func(aFd, bFd int) error) error {
	return onDir(a, func(aFd int) error { return onDir(b, func(bFd int) error { return op(aFd, bFd) }) })
}

// RenameBetween renames a file from one directory to another, and replaces the file there. A
// [Root] cannot do that: both names would be looked up again from a common parent, whose
// directories may have changed by now. It follows no link in either name.
func RenameBetween(from Root, oldName string, to Root, newName string) error {
	return onBoth(from, to, func(oldFd, newFd int) error { return unix.Renameat(oldFd, oldName, newFd, newName) })
}

// SetAppend sets or clears O_APPEND of an open file. With it the host appends in one step even
// if others append, too.
func SetAppend(f *os.File, on bool) error {
	return onFd(f, func(fd int) error {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		if err != nil {
			return err
		}
		flags &^= unix.O_APPEND
		if on {
			flags |= unix.O_APPEND
		}
		_, err = unix.FcntlInt(uintptr(fd), unix.F_SETFL, flags)
		return err
	})
}
