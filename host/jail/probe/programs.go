//go:build linux

package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Exit codes of an inner process, which prints its error.
const (
	innerSucceeded  = 0
	innerBlocked    = 10
	innerImpossible = 11
)

// innerProbes are parts of probes that need a separate process.
var innerProbes = map[string]func() error{
	"nothing": func() error { return nil },
	"echo": func() error {
		_, err := io.Copy(os.Stdout, os.Stdin)
		return err
	},
	"mount": mountHere,
	"type":  func() error { return tiocsti(0) },
	"x32": func() error {
		const x32 = 1 << 30
		if _, _, err := unix.RawSyscall(unix.SYS_GETPID|x32, 0, 0, 0); err == unix.ENOSYS {
			return impossible("the kernel has no x32")
		} else if err != 0 {
			return err
		}
		return nil
	},
}

func innerMain(name string) int {
	do, ok := innerProbes[name]
	if !ok {
		fmt.Printf("there is no %q", name)
		return 1
	}
	err := do()
	var not impossible
	switch {
	case err == nil:
		return innerSucceeded
	case errors.As(err, &not):
		fmt.Print(err)
		return innerImpossible
	}
	fmt.Print(err)
	return innerBlocked
}

const self = "/proc/self/exe"

// patience limits the wait for the first output of a program, which is then killed.
const patience = 5 * time.Second

// command returns a command. The jail kills its process at the latest when the probe ends.
func command(path string, args ...string) *exec.Cmd {
	return exec.CommandContext(context.Background(), path, args...)
}

func startInner(name string, attr *syscall.SysProcAttr) error {
	cmd := command(self, Command, "inner", name)
	cmd.SysProcAttr = attr
	cmd.Stdin = strings.NewReader("pipe")
	return runInner(cmd, name)
}

func runInner(cmd *exec.Cmd, name string) error {
	out, err := cmd.Output()
	var ended *exec.ExitError
	switch {
	case err == nil && name == "echo" && string(out) != "pipe":
		return fmt.Errorf("it says %q", out)
	case errors.As(err, &ended) && ended.ExitCode() == innerBlocked:
		return errors.New(string(out))
	case errors.As(err, &ended) && ended.ExitCode() == innerImpossible:
		return impossible(out)
	}
	return stripPath(err)
}

// namespaces returns attributes that start a process in new namespaces, as their root.
func namespaces(flags uintptr) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Cloneflags:  flags,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
}

// find returns the path of the first of the names that is a program; "": none is.
func find(names ...string) string {
	for _, name := range names {
		for _, dir := range []string{"/usr/bin/", "/bin/"} {
			if st, err := os.Stat(dir + name); err == nil && st.Mode().IsRegular() {
				return dir + name
			}
		}
	}
	return ""
}

// setUID starts a set-uid program of root and checks its user while it waits for a password.
func setUID() error {
	if os.Getuid() == 0 {
		return impossible("this is root already")
	}
	path := find("su", "passwd")
	if st, err := os.Stat(path); err != nil || st.Mode()&os.ModeSetuid == 0 {
		return impossible("there is no such program")
	}
	cmd := command(path)
	_, end, err := firstWords(cmd)
	if err != nil {
		return err
	}
	defer end()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
	if err != nil {
		return stripPath(err)
	}
	_, ids, _ := strings.Cut(string(status), "\nUid:") // real, effective, saved, file system
	if ids := strings.Fields(ids); len(ids) < 2 || ids[1] != "0" {
		return errors.New("it runs without the rights of its owner")
	}
	return nil
}

// su makes this process another user: root or, if it is root, nobody.
func su() error {
	path := find("su")
	if path == "" {
		return impossible("there is no su")
	}
	user := "root"
	if os.Getuid() == 0 {
		user = "nobody"
	}
	output, end, err := firstWords(command(path, "-s", "/bin/sh", user, "-c", "id -u"))
	if err != nil {
		return err
	}
	defer end()
	if id, err := strconv.Atoi(output); err != nil {
		return fmt.Errorf("it says %q", output)
	} else if id == os.Getuid() {
		return errors.New("it is the same user")
	}
	return nil
}

// firstWords starts a program without a terminal, so that it asks on its streams, and returns
// its first output. The program runs until the caller calls end.
func firstWords(cmd *exec.Cmd) (output string, end func(), err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return "", nil, err
	}
	defer r.Close()
	defer w.Close()
	input, err := cmd.StdinPipe() // stays silent
	if err != nil {
		return "", nil, err
	}
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = w, w, &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return "", nil, stripPath(err)
	}
	end = func() {
		_ = cmd.Process.Kill() // we may kill it, whatever user it has become
		_ = input.Close()
		_ = cmd.Wait()
	}
	_ = w.Close()
	_ = r.SetReadDeadline(time.Now().Add(patience))
	words := make([]byte, 200)
	n, err := r.Read(words)
	if err != nil && err != io.EOF {
		end()
		return "", nil, stripPath(err)
	}
	return strings.TrimSpace(string(words[:n])), end, nil
}

func execMemory() error {
	program, err := os.ReadFile(find("true"))
	if err != nil {
		return impossible("there is no program to copy")
	}
	fd, err := unix.MemfdCreate("probe", unix.MFD_CLOEXEC)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), "probe")
	defer f.Close()
	if _, err := f.Write(program); err != nil {
		return stripPath(err)
	}
	return stripPath(command("/proc/self/fd/" + strconv.Itoa(fd)).Run())
}

// typeOnTerminal types on a terminal that reads its own input, which is as hard as typing on
// the user's.
func typeOnTerminal() error {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return typeOnNothing()
	}
	defer master.Close()
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		return err
	}
	fd, _, errno := unix.Syscall(unix.SYS_IOCTL, master.Fd(), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		return errno
	}
	terminal := os.NewFile(fd, "terminal")
	defer terminal.Close()
	cmd := command(self, Command, "inner", "type")
	cmd.Stdin, cmd.SysProcAttr = terminal, &syscall.SysProcAttr{Setsid: true, Setctty: true}
	return runInner(cmd, "type")
}

// typeOnNothing tests at least whether the system call is refused.
func typeOnNothing() error {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return stripPath(err)
	}
	defer null.Close()
	if err := tiocsti(int(null.Fd())); err != unix.ENOTTY {
		return err
	}
	return impossible("there is no terminal")
}

func tiocsti(fd int) error {
	x := byte('x')
	switch _, _, err := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCSTI, uintptr(unsafe.Pointer(&x))); err {
	case 0:
		return nil
	case unix.EIO:
		return impossible("the kernel is set up without it")
	default:
		return err
	}
}
