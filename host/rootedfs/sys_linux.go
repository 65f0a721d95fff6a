package rootedfs

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// SetTimes sets the times of an open file, in nanoseconds since 1970; [OmitTime] leaves a time
// unchanged. Package unix has no function for futimens, which is utimensat without a path, so
// the system call is made directly.
func SetTimes(f *os.File, atim, mtim int64) error {
	ts := [2]unix.Timespec{timespec(atim), timespec(mtim)}
	err := onFd(f, func(fd int) error {
		_, _, errno := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(fd), 0, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
		if errno != 0 {
			return errno
		}
		return nil
	})
	return retryByName(f, err, func(name string) error {
		return unix.UtimesNanoAt(unix.AT_FDCWD, name, ts[:], 0)
	})
}

// OpenForAttrs opens a file in a directory to change its mode, owner and times, although its
// mode may forbid to open it: the owner may change them anyway. It follows no link.
func OpenForAttrs(dir Root, name string) (f *os.File, err error) {
	err = onDir(dir, func(dirFd int) error {
		fd, err := unix.Openat(dirFd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err == nil {
			f = os.NewFile(uintptr(fd), name)
		}
		return err
	})
	return f, err
}

// retryByName returns err. If err shows that the kernel refuses a call for a descriptor of
// [OpenForAttrs], it instead calls op with a name of the open file: not all kernels have calls
// that accept such a descriptor.
func retryByName(f *os.File, err error, op func(name string) error) error {
	if !errors.Is(err, unix.EBADF) {
		return err
	}
	return onFd(f, func(fd int) error { return op(fmt.Sprintf("/proc/self/fd/%d", fd)) })
}

func timespec(nanos int64) unix.Timespec {
	ts := unix.NsecToTimespec(nanos)
	if nanos == OmitTime {
		ts.Nsec = unix.UTIME_OMIT
	}
	return ts
}

// SetLinkTimes sets the times of a symbolic link in a directory, see [SetTimes]. It opens the
// link first, so that it never changes a file that takes the place of the link. A file that is
// no link, or that has several hard links, is EAGAIN.
func SetLinkTimes(dir Root, name string, atim, mtim int64) error {
	return onDir(dir, func(dirFd int) error {
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
	})
}
