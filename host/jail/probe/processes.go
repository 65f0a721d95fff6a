//go:build linux

package probe

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

var errOther = errors.New("it is something else")

// processes lists attacks on the victim's process, and on the program that started the jail.
// In a jail with a pid namespace their ids mean nothing, or other processes.
var processes = []probe{
	{"process environ", func(s Spec) error { return s.find(s.proc("environ")) }},
	{"process cmdline", func(s Spec) error {
		got, err := os.ReadFile(s.proc("cmdline"))
		if err == nil && !bytes.Contains(got, []byte(s.Outside)) {
			err = errOther
		}
		return stripPath(err)
	}},
	{"process root", func(s Spec) error { return s.read(s.proc("root") + s.file("read")) }},
	{"process cwd", func(s Spec) error {
		return write(s.proc("cwd/process cwd"), unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY)
	}},
	{"process mem", func(s Spec) error {
		f, err := os.Open(s.proc("mem"))
		if err != nil {
			return stripPath(err)
		}
		defer f.Close()
		got := make([]byte, len(s.Secret))
		if _, err := f.ReadAt(got, int64(s.Address)); err != nil {
			return stripPath(err)
		}
		return s.checkSecret(got)
	}},
	{"process fd", func(s Spec) error {
		entries, err := os.ReadDir(s.proc("fd"))
		if err != nil {
			return stripPath(err)
		}
		if !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == strconv.Itoa(s.FD) }) {
			return errOther
		}
		return nil
	}},
	{"self mem", func(Spec) error {
		page, err := unix.Mmap(-1, 0, 1, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			return err
		}
		defer func() { _ = unix.Munmap(page) }()
		f, err := os.OpenFile("/proc/self/mem", os.O_WRONLY, 0)
		if err != nil {
			return stripPath(err)
		}
		defer f.Close()
		_, err = f.WriteAt([]byte{1}, int64(uintptr(unsafe.Pointer(&page[0]))))
		return stripPath(err)
	}},
	{"signal victim", func(s Spec) error { return unix.Kill(s.Victim, 0) }},
	{"signal program", func(s Spec) error { return unix.Kill(s.Program, 0) }},
	{"ptrace", func(s Spec) error { return unix.PtraceSeize(s.Victim) }},
	{"process_vm_readv", func(s Spec) error {
		got := make([]byte, len(s.Secret))
		local := []unix.Iovec{{Base: &got[0]}}
		local[0].SetLen(len(got))
		if _, err := unix.ProcessVMReadv(s.Victim, local, []unix.RemoteIovec{{Base: uintptr(s.Address), Len: len(got)}}, 0); err != nil {
			return err
		}
		return s.checkSecret(got)
	}},
	{"pidfd_getfd", func(s Spec) error {
		pidfd, err := unix.PidfdOpen(s.Victim, 0)
		if err != nil {
			return err
		}
		defer unix.Close(pidfd)
		fd, err := unix.PidfdGetfd(pidfd, s.FD, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		_, err = unix.Write(fd, []byte("planted"))
		return err
	}},
	{"setpriority", func(s Spec) error { return unix.Setpriority(unix.PRIO_PROCESS, s.Victim, 19) }},
	{"sched_setaffinity", func(s Spec) error {
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(0, &set); err != nil {
			return err
		}
		for cpu := 0; set.Count() > 1; cpu++ {
			set.Clear(cpu)
		}
		return unix.SchedSetaffinity(s.Victim, &set)
	}},
	{"prlimit", func(s Spec) error {
		var limit unix.Rlimit
		if err := unix.Prlimit(0, unix.RLIMIT_NOFILE, nil, &limit); err != nil {
			return err
		}
		limit.Cur = 100
		return unix.Prlimit(s.Victim, unix.RLIMIT_NOFILE, &limit, nil)
	}},
	{"System V memory", func(s Spec) error {
		at, _, errno := unix.Syscall(unix.SYS_SHMAT, uintptr(s.Segment), 0, 0)
		if errno != 0 {
			return errno
		}
		var pipe [2]int
		if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
			return err
		}
		defer unix.Close(pipe[0])
		defer unix.Close(pipe[1])
		if _, err := unix.Write(pipe[1], []byte("x")); err != nil {
			return err
		}
		if _, _, errno := unix.Syscall(unix.SYS_READ, uintptr(pipe[0]), at, 1); errno != 0 { // the kernel writes to the memory
			return errno
		}
		return nil
	}},
}

func (s Spec) proc(name string) string { return fmt.Sprintf("/proc/%d/%s", s.Victim, name) }

// find returns an error if a file does not contain the secret.
func (s Spec) find(path string) error {
	got, err := os.ReadFile(path)
	if err == nil && !bytes.Contains(got, []byte(s.Secret)) {
		err = errOther
	}
	return stripPath(err)
}

func (s Spec) checkSecret(got []byte) error {
	if string(got) != s.Secret {
		return errOther
	}
	return nil
}
