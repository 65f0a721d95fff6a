//go:build linux

package probe

import (
	"bytes"
	"errors"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// kernel lists attacks on the confinement itself: more rights, other views of the files, and
// parts of the kernel that commands do not need.
var kernel = []probe{
	{"io_uring", func(Spec) error {
		var params [120]byte // struct io_uring_params
		return descriptor(unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)), 0))
	}},
	{"user namespace", func(Spec) error {
		return anyOf(
			func() error { return startInner("nothing", namespaces(unix.CLONE_NEWUSER)) },
			func() error { return startInner("nothing", &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWUSER}) })
	}},
	{"mount in user namespace", func(Spec) error {
		return startInner("mount", namespaces(unix.CLONE_NEWUSER|unix.CLONE_NEWNS))
	}},
	{"mount", func(Spec) error {
		tmpfs := []byte("tmpfs\x00")
		return anyOf(mountHere,
			func() error {
				return descriptor(unix.Syscall(unix.SYS_FSOPEN, uintptr(unsafe.Pointer(&tmpfs[0])), 1, 0))
			},
			func() error {
				fd, err := unix.OpenTree(unix.AT_FDCWD, "/", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
				if err != nil {
					return err
				}
				return unix.Close(fd)
			})
	}},
	{"remount", func(Spec) error {
		var st unix.Statfs_t
		if err := unix.Statfs("/", &st); err != nil {
			return err
		}
		keep := uintptr(st.Flags) & (unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC)
		return unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND|keep, "") // without the flag for read-only
	}},
	{"chroot", func(Spec) error { return unix.Chroot("/") }},
	{"bpf", func(Spec) error {
		attr := [18]uint32{unix.BPF_MAP_TYPE_ARRAY, 4, 4, 1} // key, value and number of entries
		return descriptor(unix.Syscall(unix.SYS_BPF, unix.BPF_MAP_CREATE, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr)))
	}},
	{"perf", func(Spec) error {
		attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_TASK_CLOCK,
			Bits: unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv}
		attr.Size = uint32(unsafe.Sizeof(attr))
		fd, err := unix.PerfEventOpen(&attr, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
		if err != nil {
			return err
		}
		return unix.Close(fd)
	}},
	{"userfaultfd", func(Spec) error {
		const userModeOnly = 1
		return descriptor(unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|userModeOnly, 0, 0))
	}},
	{"add_key", func(s Spec) error {
		_, err := unix.AddKey("user", "stockade-"+s.ID, []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
		if err == unix.ENOSYS {
			return impossible("the kernel has no keys")
		}
		return err
	}},
	{"lease", func(s Spec) error {
		fd, err := unix.Open(s.ownFile("lease"), unix.O_CREAT|unix.O_EXCL|unix.O_RDONLY|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		_, err = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK)
		return err
	}},
	{"directory notification", func(Spec) error {
		fd, err := unix.Open(".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		const create = 0x4 // DN_CREATE
		_, err = unix.FcntlInt(uintptr(fd), unix.F_NOTIFY, create)
		return err
	}},
	{"keys of others", func(Spec) error {
		text, err := os.ReadFile("/proc/keys")
		if errors.Is(err, unix.ENOENT) {
			return impossible("the kernel shows no keys")
		}
		if err == nil && len(text) == 0 {
			err = errors.New("it is empty")
		}
		return stripPath(err)
	}},
	{"mount table", func(Spec) error {
		text, err := os.ReadFile("/proc/self/mountinfo")
		if err == nil && !bytes.Contains(text, []byte("/upper")) && !bytes.Contains(text, []byte("/stage-")) {
			err = errors.New("it names no directory in which changes are kept")
		}
		return stripPath(err)
	}},
	{"inotify instances", func(s Spec) error {
		for range s.Inotify/2 + 1 {
			fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
		}
		return nil
	}},
	{"set-uid program", func(Spec) error { return setUID() }},
	{"su", func(Spec) error { return su() }},
	{"memfd exec", func(Spec) error { return execMemory() }},
	{"TIOCSTI", func(Spec) error { return typeOnTerminal() }},
	{"x32", func(Spec) error {
		if runtime.GOARCH != "amd64" {
			return impossible("x32 is of amd64")
		}
		return startInner("x32", nil) // it may be killed
	}},
}

// descriptor returns the error of a system call that opens a descriptor; if none, it closes
// fd.
func descriptor(fd, _ uintptr, errno unix.Errno) error {
	switch errno {
	case 0:
		return unix.Close(int(fd))
	case unix.ENOSYS:
		return impossible("the kernel does not have it")
	}
	return errno
}

// anyOf returns nil if one of the ways succeeds, and otherwise the error of the first.
func anyOf(ways ...func() error) (first error) {
	for _, way := range ways {
		err := way()
		if err == nil {
			return nil
		}
		if first == nil {
			first = err
		}
	}
	return first
}

func mountHere() error {
	if err := unix.Mkdir("probe-mount", 0o700); err != nil && err != unix.EEXIST {
		return err
	}
	if err := unix.Mount("tmpfs", "probe-mount", "tmpfs", 0, "size=4k"); err != nil {
		return err
	}
	return unix.Unmount("probe-mount", unix.MNT_DETACH)
}
