// Command helper builds the world of one command, confines itself to it, and runs the
// command. Package jail starts it and sends it instructions, see package wire.
//
// It is a separate program for two reasons. Only a process with one thread can enter
// namespaces, which a Go program no longer is after its start. And it has to be small: its
// start is most of the cost of a command.
package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/jail/wire"
	"github.com/stockade-dev/stockade/host/rootedfs"
)

func main() {
	runtime.LockOSThread() // some settings below apply to one thread and its children
	isInner := len(os.Args) > 1 && os.Args[1] == wire.InnerArg
	if isInner || os.Getpid() == 1 {
		raiseOOMScore()
	}
	if isInner {
		becomeCommand()
		return
	}
	unix.CloseOnExec(wire.Socket)
	host := os.Getppid()
	var w wire.World
	if _, err := wire.Receive(wire.Socket, &w); err != nil {
		os.Exit(1)
	}
	if !serve(&w) {
		if privateDir != "" && (!commandRan || os.Getppid() != host) { // otherwise the host removes it, after our end
			_ = rootedfs.RemoveAll(privateDir)
		}
		os.Exit(1)
	}
}

// commandRan is set when a command has been started.
var commandRan bool

// serve builds a world and runs a command there. False: the jail has not received the result.
func serve(w *wire.World) bool {
	built := build(w)
	if wire.Send(wire.Socket, built) != nil || built.Err != "" {
		return false
	}
	start, notReady := prepareStart(w)
	wire.WarmUp()
	if !awaitCommand() {
		return false
	}
	var c wire.Command
	fds, err := wire.Receive(wire.Socket, &c)
	if err != nil || len(fds) != 2 {
		return false
	}
	ended, err := wire.Ended{}, notReady
	if err == nil {
		ended, err = run(w, start, &c, fds[0], fds[1])
	}
	if err != nil {
		_ = wire.Send(wire.Socket, failed(err))
		return false
	}
	return wire.Send(wire.Socket, ended) == nil
}

// raiseOOMScore makes the kernel end this process and its children before the user's other
// processes when memory runs out. The score adds half of the machine's memory to what they
// use.
func raiseOOMScore() {
	const name, score = "/proc/self/oom_score_adj", 500
	data, err := os.ReadFile(name)
	if have, notNumber := strconv.Atoi(strings.TrimSpace(string(data))); err == nil && notNumber == nil && have < score {
		_ = os.WriteFile(name, []byte(strconv.Itoa(score)), 0)
	}
}

// stepError is the failure of one step of the set-up.
type stepError struct {
	step string
	err  error
}

func (e *stepError) Error() string { return e.step + ": " + e.err.Error() }

// step returns err as the error of a step with a name; nil stays nil.
func step(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return &stepError{fmt.Sprintf(format, args...), err}
}

// failed returns the message to the jail for an error.
func failed(err error) wire.Started {
	if at, ok := errors.AsType[*stepError](err); ok {
		return wire.Started{Step: at.step, Err: at.err.Error()}
	}
	return wire.Started{Step: "set up", Err: err.Error()}
}

// awaitCommand waits for the message with the command. It returns false if the inner process,
// which would become the command, has ended meanwhile.
func awaitCommand() bool {
	p := poll(unix.PollFd{Fd: wire.Socket, Events: unix.POLLIN | unix.POLLRDHUP}, unix.PollFd{Fd: int32(innerSocket), Events: unix.POLLIN | unix.POLLRDHUP})
	return p[1].Revents == 0
}

// poll waits until one of the descriptors has an event, and returns p with the events.
func poll(p ...unix.PollFd) []unix.PollFd {
	for {
		if _, err := unix.Poll(p, -1); err != unix.EINTR {
			return p
		}
	}
}

// hide keeps the command, which runs as the same user, from inspecting and changing this
// process. A later [become] undoes it.
func hide() error {
	if isOmitted("dumpable") {
		return nil
	}
	return step(unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0), "prctl PR_SET_DUMPABLE")
}

// run runs the command and returns when all of its processes have ended.
func run(w *wire.World, start starter, c *wire.Command, stdout, stderr int) (wire.Ended, error) {
	if w.Namespaces {
		if err := cover(w, c); err != nil {
			return wire.Ended{}, err
		}
	}
	var listener []int
	if w.Network {
		fd, port, err := listen()
		if err != nil {
			return wire.Ended{}, err
		}
		listener = append(listener, fd)
		c.Env = withPort(c.Env, port)
	}
	pid, err := start(c, stdout, stderr)
	if err != nil {
		killAll()
		return wire.Ended{}, err
	}
	_ = wire.Send(wire.Socket, wire.Started{}, listener...) // reap notices if the host is gone
	for _, fd := range append(listener, stdout, stderr) {
		unix.Close(fd)
	}
	commandRan = true
	ended := reap(pid, w.Limits.AllFiles)
	activeRenamer.stop()
	return ended, nil
}
