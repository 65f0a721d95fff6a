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
	// AttrAccess is enough to change times and mode through a handle.
	AttrAccess = os.O_RDONLY
	// HasAppend says that SetAppend has an effect.
	HasAppend = true
)

// StatOf is what the host says of a file.
func StatOf(fi os.FileInfo) Stat {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return Stat{Nlink: 1}
	}
	out := Stat{Dev: uint64(st.Dev), Ino: uint64(st.Ino), Nlink: uint64(st.Nlink)}
	out.Atim, out.Mtim, out.Ctim = times(st)
	return out
}

// SameFile is [os.SameFile], which knows only what package os has made.
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

// linkCount is the number of hard links of an open file.
func linkCount(_ *os.File, fi os.FileInfo) uint64 { return StatOf(fi).Nlink }

// CopyOwner gives a file the owner and the group of another, as far as the
// host lets us: only root gives files away, and a group must be one's own.
func CopyOwner(f *os.File, other os.FileInfo) {
	if st, ok := other.Sys().(*syscall.Stat_t); ok {
		_ = retryByName(f, f.Chown(int(st.Uid), int(st.Gid)), func(name string) error {
			return os.Chown(name, int(st.Uid), int(st.Gid))
		})
	}
}

// Chmod changes the permissions of an open file, also of one that [OpenForAttrs] has
// opened.
func Chmod(f *os.File, mode fs.FileMode) error {
	return retryByName(f, f.Chmod(mode.Perm()), func(name string) error { return os.Chmod(name, mode.Perm()) })
}

// CheckWritable asks whether a file could be opened to be written. It does not open
// it: that, and closing it, is what others take for a change.
func CheckWritable(dir Root, name string) error {
	return onDir(dir, func(fd int) error {
		return unix.Faccessat(fd, name, unix.W_OK, unix.AT_EACCESS|unix.AT_SYMLINK_NOFOLLOW)
	})
}

// onFd calls op with the descriptor, which stays open meanwhile.
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

// onDir calls op with a descriptor of a directory, which need not be one that
// may be listed.
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

// onBoth calls op with those of two directories.
func onBoth(a, b Root, op func(aFd, bFd int) error) error {
	return onDir(a, func(aFd int) error { return onDir(b, func(bFd int) error { return op(aFd, bFd) }) })
}

// RenameBetween renames from one directory to another, and replaces what is
// there. A root cannot: both names would have to be looked up from a common
// parent again, through whatever is there now. Neither name is followed.
func RenameBetween(from Root, oldName string, to Root, newName string) error {
	return onBoth(from, to, func(oldFd, newFd int) error { return unix.Renameat(oldFd, oldName, newFd, newName) })
}

// SetAppend changes O_APPEND of an open file, so that the host appends in one
// step also when others do.
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
