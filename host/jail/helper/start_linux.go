package main

import (
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/jail/wire"
)

// listen makes the socket of the proxy: on the loopback of the command's network
// namespace, where nobody else can reach it.
func listen() (fd, port int, err error) {
	fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, 0, step(err, "make the socket of the proxy")
	}
	addr := &unix.SockaddrInet4{Addr: [4]byte(net.IPv4(127, 0, 0, 1).To4())}
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

// startHere confines this process, and starts the command from it: in a pid
// namespace nothing in there can end the first process, or look into it.
func startHere(w *wire.World, c *wire.Command, port int, streams []uintptr) (int, error) {
	if err := confine(w); err != nil {
		return 0, err
	}
	pid, err := syscall.ForkExec(c.Program, c.Argv, &syscall.ProcAttr{
		Dir: c.Dir, Env: withPort(c.Env, port), Files: streams, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	return pid, step(err, "start %s", c.Program)
}

// startInner starts a process that confines itself and becomes the command. This
// one stays outside of the command's Landlock domain, where it cannot be killed
// from.
func startInner(w *wire.World, c *wire.Command, port int, streams []uintptr) (int, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, step(err, "socketpair")
	}
	defer unix.Close(pair[0])
	pid, err := syscall.ForkExec("/proc/self/exe", []string{os.Args[0], wire.InnerArg}, &syscall.ProcAttr{
		Dir: "/", Files: append(streams, uintptr(pair[1])), Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	})
	unix.Close(pair[1])
	if err != nil {
		return 0, step(err, "start the helper again")
	}
	inner := *c
	inner.Env = withPort(c.Env, port)
	if err := wire.Send(pair[0], wire.Inner{World: *w, Command: inner}); err != nil {
		return 0, step(err, "tell the inner helper")
	}
	// It says why it could not, or is the command by the time at which its socket
	// is closed. The host may end first.
	p := []unix.PollFd{{Fd: int32(pair[0]), Events: unix.POLLIN}, {Fd: wire.Socket, Events: unix.POLLRDHUP}}
	for {
		if _, err := unix.Poll(p, -1); err == unix.EINTR {
			continue
		}
		break
	}
	if p[0].Revents == 0 {
		return 0, step(io.EOF, "hear from the host")
	}
	var not wire.Started
	if _, err := wire.Receive(pair[0], &not); errors.Is(err, io.EOF) {
		return pid, nil
	} else if err != nil {
		return 0, step(err, "hear from the inner helper")
	}
	return 0, &stepError{not.Step, errors.New(not.Err)}
}

// becomeCommand is the whole of the inner process.
func becomeCommand() {
	var in wire.Inner
	if _, err := wire.Receive(wire.Socket, &in); err != nil {
		os.Exit(1)
	}
	unix.CloseOnExec(wire.Socket)
	err := confine(&in.World)
	if err == nil {
		err = step(unix.Chdir(in.Command.Dir), "enter %s", in.Command.Dir)
	}
	if err == nil {
		err = step(syscall.Exec(in.Command.Program, in.Command.Argv, in.Command.Env), "start %s", in.Command.Program)
	}
	_ = wire.Send(wire.Socket, failed(err))
	os.Exit(1)
}

// withPort completes the variables that name the proxy.
func withPort(env []string, port int) []string {
	out := make([]string, len(env))
	for i, v := range env {
		out[i] = strings.ReplaceAll(v, wire.PortMark, strconv.Itoa(port))
	}
	return out
}
