// Command helper makes the world of one command, confines itself to it, and runs
// the command. Package jail starts it and tells it what to do, see package wire.
//
// It is a program of its own because namespaces are entered by a process that has
// one thread, which a Go program never has after its start, and because it has to
// be small: its start is most of what a command costs.
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
	runtime.LockOSThread() // some of what follows is of a thread, and its children's
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
		if privateDir != "" && (!commandRan || os.Getppid() != host) { // otherwise the host does it, and waits for our end first
			_ = rootedfs.RemoveAll(privateDir)
		}
		os.Exit(1)
	}
}

// commandRan says that a command has run.
var commandRan bool

// serve builds a world and runs a command in it. It reports whether the jail has
// heard of the end.
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

// raiseOOMScore lets this process, and its children, end before those of the user when
// the memory of the machine runs out: of 1000, half is added to what they use.
func raiseOOMScore() {
	const name, score = "/proc/self/oom_score_adj", 500
	data, err := os.ReadFile(name)
	if have, notNumber := strconv.Atoi(strings.TrimSpace(string(data))); err == nil && notNumber == nil && have < score {
		_ = os.WriteFile(name, []byte(strconv.Itoa(score)), 0)
	}
}

// stepError says which step of the set-up has failed.
type stepError struct {
	step string
	err  error
}

func (e *stepError) Error() string { return e.step + ": " + e.err.Error() }

// step is an error of a step, or nil.
func step(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return &stepError{fmt.Sprintf(format, args...), err}
}

func failed(err error) wire.Started {
	if at, ok := errors.AsType[*stepError](err); ok {
		return wire.Started{Step: at.step, Err: at.err.Error()}
	}
	return wire.Started{Step: "set up", Err: err.Error()}
}

// awaitCommand waits for the command. It reports whether the process that would become
// that is still there.
func awaitCommand() bool {
	p := poll(unix.PollFd{Fd: wire.Socket, Events: unix.POLLIN | unix.POLLRDHUP}, unix.PollFd{Fd: int32(innerSocket), Events: unix.POLLIN | unix.POLLRDHUP})
	return p[1].Revents == 0
}

// poll waits until there is something about one of the descriptors.
func poll(p ...unix.PollFd) []unix.PollFd {
	for {
		if _, err := unix.Poll(p, -1); err != unix.EINTR {
			return p
		}
	}
}

// hide keeps the command, which is the same user, from looking into this process,
// and from changing it. To become that user undoes it.
func hide() error {
	if isOmitted("dumpable") {
		return nil
	}
	return step(unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0), "prctl PR_SET_DUMPABLE")
}

// run runs the command and returns when nothing of it is left.
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
	_ = wire.Send(wire.Socket, wire.Started{}, listener...) // reap sees that the host is gone
	for _, fd := range append(listener, stdout, stderr) {
		unix.Close(fd)
	}
	commandRan = true
	ended := reap(pid, w.Limits.AllFiles)
	activeRenamer.stop()
	return ended, nil
}
