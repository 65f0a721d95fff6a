package main

import (
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/jail/wire"
)

// listen opens the socket of the proxy, on the loopback of the command's network namespace,
// where nobody else can reach it. It returns the descriptor and the port.
func listen() (fd, port int, err error) {
	fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, 0, step(err, "make the socket of the proxy")
	}
	addr := &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}
	if err := firstErr(unix.Bind(fd, addr), unix.Listen(fd, 64)); err != nil {
		return -1, 0, step(err, "listen for the proxy")
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		return -1, 0, step(err, "listen for the proxy")
	}
	return fd, name.(*unix.SockaddrInet4).Port, nil
}

func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	ifreq, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	ifreq.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifreq)
}

// starter starts the command c. stdout and stderr are the descriptors for its output.
type starter func(c *wire.Command, stdout, stderr int) (pid int, err error)

// prepareStart does the part of the start that does not need to know the command.
func prepareStart(w *wire.World) (starter, error) {
	switch {
	case w.NewRoot:
		return prepareStartHere(w)
	case w.Namespaces: // files are mounted for the command later, and no confined process can mount
		return func(c *wire.Command, stdout, stderr int) (int, error) {
			start, err := prepareStartInner(w)
			if err != nil {
				return 0, err
			}
			return start(c, stdout, stderr)
		}, nil
	}
	return prepareStartInner(w)
}

// prepareStartHere prepares this process to start the command as its child, in a pid
// namespace. There no process can inspect this process, and its end ends all others. Only its
// main thread and that of the renamer are confined.
func prepareStartHere(w *wire.World) (starter, error) {
	if os.Getpid() != 1 {
		return nil, step(errors.New("it is not the first process"), "enter a pid namespace")
	}
	null, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, step(err, "open /dev/null")
	}
	confined, err := prepare(w)
	if err == nil && confined.renamer != nil {
		activeRenamer = confined.renamer
		err = activeRenamer.begin(confined)
	}
	return func(c *wire.Command, stdout, stderr int) (int, error) {
		defer unix.Close(null)
		if err := firstErr(limit(w), confined.enter(), hide()); err != nil {
			return 0, err
		}
		pid, err := syscall.ForkExec(c.Program, c.Argv, &syscall.ProcAttr{
			Dir: c.Dir, Env: c.Env, Files: []uintptr{uintptr(null), uintptr(stdout), uintptr(stderr)}, Sys: &syscall.SysProcAttr{Setsid: true},
		})
		return pid, step(err, "start %s", c.Program)
	}, err
}

// innerSocket is our end of the socket to the inner process, which waits to become the
// command; -1: there is none.
var innerSocket = -1

// prepareStartInner starts an inner process, which confines itself and becomes the command.
// This process stays outside of the command's Landlock domain, so the command cannot kill it.
func prepareStartInner(w *wire.World) (starter, error) {
	if err := confineSignals(); err != nil {
		return nil, err
	}
	null, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, step(err, "open /dev/null")
	}
	defer unix.Close(null)
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, step(err, "socketpair")
	}
	innerSocket = pair[0]
	pid, err := syscall.ForkExec("/proc/self/exe", []string{os.Args[0], wire.InnerArg}, &syscall.ProcAttr{
		Dir: "/", Files: []uintptr{uintptr(null), uintptr(null), uintptr(null), uintptr(pair[1])}, Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	})
	unix.Close(pair[1])
	if err != nil {
		return nil, step(err, "start the helper again")
	}
	if err := wire.Send(innerSocket, w); err != nil {
		return nil, step(err, "tell the inner helper")
	}
	return func(c *wire.Command, stdout, stderr int) (int, error) {
		defer unix.Close(innerSocket)
		if err := hide(); err != nil {
			return 0, err
		}
		if err := wire.Send(innerSocket, c, stdout, stderr); err != nil {
			return 0, step(err, "tell the inner helper")
		}
		// The inner process sends an error, or its socket closes when it becomes the command.
		// The host may end before.
		p := poll(unix.PollFd{Fd: int32(innerSocket), Events: unix.POLLIN}, unix.PollFd{Fd: wire.Socket, Events: unix.POLLRDHUP})
		if p[0].Revents == 0 {
			return 0, step(io.EOF, "hear from the host")
		}
		var not wire.Started
		if _, err := wire.Receive(innerSocket, &not); errors.Is(err, io.EOF) {
			return pid, nil
		} else if err != nil {
			return 0, step(err, "hear from the inner helper")
		}
		return 0, &stepError{not.Step, errors.New(not.Err)}
	}, nil
}

// becomeCommand is the main function of the inner process.
func becomeCommand() {
	unix.CloseOnExec(wire.Socket)
	var w wire.World
	if _, err := wire.Receive(wire.Socket, &w); err != nil {
		os.Exit(1)
	}
	confined, err := prepare(&w)
	if err == nil {
		err = confined.enter()
	}
	wire.WarmUp()
	var c wire.Command
	fds, gone := wire.Receive(wire.Socket, &c)
	if gone != nil || len(fds) != 2 {
		os.Exit(1)
	}
	if err == nil {
		err = step(firstErr(unix.Dup3(fds[0], 1, 0), unix.Dup3(fds[1], 2, 0)), "connect the streams")
	}
	if err == nil {
		err = limit(&w)
	}
	if err == nil {
		err = step(unix.Chdir(c.Dir), "enter %s", c.Dir)
	}
	if err == nil {
		err = step(syscall.Exec(c.Program, c.Argv, c.Env), "start %s", c.Program)
	}
	_ = wire.Send(wire.Socket, failed(err))
	os.Exit(1)
}

// withPort replaces wire.PortMark in the environment by the port of the proxy.
func withPort(env []string, port int) []string {
	out := make([]string, len(env))
	for i, v := range env {
		out[i] = strings.ReplaceAll(v, wire.PortMark, strconv.Itoa(port))
	}
	return out
}
