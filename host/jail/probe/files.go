//go:build linux

package probe

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// work lists the things that a command must be able to do in its workspace.
var work = []probe{
	{"write a file", func(s Spec) error { return os.WriteFile(s.ownFile("work"), []byte("work"), 0o600) }},
	{"rename to another directory", func(s Spec) error {
		if err := os.Mkdir(s.ownFile("dir"), 0o700); err != nil {
			return err
		}
		return os.Rename(s.ownFile("work"), s.ownFile("dir")+"/work")
	}},
	{"talk to a subprocess", func(Spec) error { return startInner("echo", nil) }},
	{"read /etc/hostname", func(Spec) error {
		_, err := os.ReadFile("/etc/hostname")
		return err
	}},
}

// files lists attacks on files outside of the jail. The victim has a file with each name,
// except for those that the attacks "create" and "move out" would make.
var files = []probe{
	{"create", func(s Spec) error { return write(s.file("create"), unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY) }},
	{"truncate", func(s Spec) error { return unix.Truncate(s.file("truncate"), 0) }},
	{"open and truncate", func(s Spec) error { return write(s.file("open and truncate"), unix.O_TRUNC|unix.O_RDONLY) }},
	{"append", func(s Spec) error { return write(s.file("append"), unix.O_APPEND|unix.O_WRONLY) }},
	{"read", func(s Spec) error { return s.read(s.file("read")) }},
	{"unlink", func(s Spec) error { return unix.Unlink(s.file("unlink")) }},
	{"move in", func(s Spec) error { return unix.Rename(s.file("move in"), s.ownFile("moved")) }},
	{"move out", func(s Spec) error {
		if err := os.WriteFile(s.ownFile("out"), []byte("planted"), 0o600); err != nil {
			return err
		}
		return unix.Rename(s.ownFile("out"), s.file("move out"))
	}},
	{"hard link", func(s Spec) error { return unix.Link(s.file("hard link"), s.ownFile("hard")) }},
	{"write through symlink", func(s Spec) error {
		if err := unix.Symlink(s.file("write through symlink"), s.ownFile("write")); err != nil {
			return err
		}
		return write(s.ownFile("write"), unix.O_WRONLY)
	}},
	{"read through symlink", func(s Spec) error {
		if err := unix.Symlink(s.file("read"), s.ownFile("read")); err != nil {
			return err
		}
		return s.read(s.ownFile("read"))
	}},
	{"chmod", func(s Spec) error { return unix.Fchmodat(unix.AT_FDCWD, s.file("chmod"), 0o666, 0) }},
	{"utimes", func(s Spec) error {
		return unix.UtimesNanoAt(unix.AT_FDCWD, s.file("utimes"), make([]unix.Timespec, 2), 0)
	}},
	{"setxattr", func(s Spec) error {
		err := unix.Setxattr(s.file("setxattr"), xattr, []byte("1"), 0)
		if err == unix.ENOTSUP {
			return impossible("the file system has no extended attributes")
		}
		return err
	}},
	{"stat", func(s Spec) error {
		var st unix.Stat_t
		return unix.Lstat(s.file("read"), &st)
	}},
	{"chdir", func(s Spec) error {
		back, err := unix.Open(".", unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(back)
		if err := unix.Chdir(s.Outside); err != nil {
			return err
		}
		return unix.Fchdir(back)
	}},
	{"flock", func(s Spec) error {
		fd, err := unix.Open(s.file("read"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
	}},
	{"reopen descriptor", func(s Spec) error {
		fd, err := unix.Open(s.file("reopen descriptor"), unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return write("/proc/self/fd/"+strconv.Itoa(fd), unix.O_WRONLY)
	}},
	{"self root", func(s Spec) error { return write("/proc/self/root"+s.file("self root"), unix.O_WRONLY) }},
	{"sysctl", func(Spec) error {
		fd, err := unix.Open("/proc/sys/kernel/hostname", unix.O_WRONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		return unix.Close(fd)
	}},
	{"shared memory file", func(s Spec) error { return write(s.sharedFile(), unix.O_WRONLY) }},
	{"device", func(s Spec) error {
		return unix.Mknod(s.ownFile("device"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3)))
	}},
}

const xattr = "user.stockade"

// write opens a file and, if the flags allow it, writes to it.
func write(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if flags&unix.O_ACCMODE != unix.O_RDONLY {
		_, err = unix.Write(fd, []byte("planted"))
	}
	return err
}

// read reads a file. It is an error if the file does not contain the secret.
func (s Spec) read(path string) error {
	got, err := os.ReadFile(path)
	if err == nil && string(got) != s.Secret {
		err = fmt.Errorf("it has %d bytes of something else", len(got))
	}
	return stripPath(err)
}

// stripPath returns an error without its long path.
func stripPath(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
