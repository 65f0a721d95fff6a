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
)

func main() {
	runtime.LockOSThread() // some of what follows is of a thread, and its children's
	inner := len(os.Args) > 1 && os.Args[1] == wire.InnerArg
	if inner || os.Getpid() == 1 {
		goFirst()
	}
	if inner {
		becomeCommand()
		return
	}
	unix.CloseOnExec(wire.Socket)
	var w wire.World
	if _, err := wire.Receive(wire.Socket, &w); err != nil {
		os.Exit(1)
	}
	if !serve(&w) {
		if w.Remove != "" {
			_ = os.RemoveAll(w.Remove) // nobody else may be there to do so
		}
		os.Exit(1)
	}
}

// serve builds a world and runs a command in it. It reports whether the jail has
// heard of the end.
func serve(w *wire.World) bool {
	ready := build(w)
	if wire.Send(wire.Socket, ready) != nil || ready.Err != "" {
		return false
	}
	var c wire.Command
	fds, err := wire.Receive(wire.Socket, &c)
	if err != nil || len(fds) != 2 {
		return false
	}
	ended, err := run(w, &c, fds[0], fds[1])
	if err != nil {
		_ = wire.Send(wire.Socket, failed(err))
		return false
	}
	return wire.Send(wire.Socket, ended) == nil
}

// goFirst lets this process, and its children, end before those of the user when
// the memory of the machine runs out: of 1000, half is added to what they use.
func goFirst() {
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

// run runs the command and returns when nothing of it is left.
func run(w *wire.World, c *wire.Command, stdout, stderr int) (wire.Ended, error) {
	if w.Namespaces {
		if err := cover(w, c); err != nil {
			return wire.Ended{}, err
		}
	}
	// From here on the command could look into this process, and change it.
	if !without("dumpable") {
		if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
			return wire.Ended{}, step(err, "prctl PR_SET_DUMPABLE")
		}
	}
	var started wire.Started
	var listener []int
	if w.Network {
		fd, port, err := listen()
		if err != nil {
			return wire.Ended{}, err
		}
		started.Port, listener = port, append(listener, fd)
	}
	null, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return wire.Ended{}, step(err, "open /dev/null")
	}
	start := startHere
	if !w.NewRoot {
		start = startInner
		err = keepSignals()
	} else if os.Getpid() != 1 {
		err = step(errors.New("it is not the first process"), "enter a pid namespace")
	}
	if err != nil {
		return wire.Ended{}, err
	}
	pid, err := start(w, c, started.Port, []uintptr{uintptr(null), uintptr(stdout), uintptr(stderr)})
	if err != nil {
		end()
		return wire.Ended{}, err
	}
	_ = wire.Send(wire.Socket, started, listener...) // reap sees that the host is gone
	for _, fd := range append(listener, null, stdout, stderr) {
		unix.Close(fd)
	}
	return reap(pid), nil
}
