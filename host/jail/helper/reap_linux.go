package main

import (
	"errors"
	"os"
	"time"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/jail/wire"
)

// confineSignals puts this thread into a new Landlock domain, which signals cannot leave. Its
// children are in the domain, too, and cannot leave it. So without a pid namespace [killAll]
// reaches exactly these processes.
func confineSignals() error {
	host := os.Getppid()
	if err := unix.Kill(host, 0); err != nil {
		return step(err, "see the host")
	}
	// Without this rule some kernels forbid renames between directories in any domain.
	fd, err := ll.LandlockCreateRuleset(&ll.RulesetAttr{HandledAccessFS: ll.AccessFSRefer, Scoped: ll.ScopeSignal}, 0)
	if err != nil {
		return step(err, "make a Landlock domain for signals")
	}
	defer unix.Close(fd)
	root, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return step(err, "open /")
	}
	defer unix.Close(root)
	if err := ll.LandlockAddPathBeneathRule(fd, &ll.PathBeneathAttr{AllowedAccess: ll.AccessFSRefer, ParentFd: root}, 0); err != nil {
		return step(err, "allow renames")
	}
	if err := firstErr(unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), ll.LandlockRestrictSelf(fd, 0)); err != nil {
		return step(err, "enter a Landlock domain for signals")
	}
	// Otherwise killAll would kill all processes of the user.
	if err := unix.Kill(host, 0); err != unix.EPERM || os.Getppid() != host {
		return step(errors.New("they get out"), "keep signals inside")
	}
	signalsConfined = true
	return nil
}

// signalsConfined is set after confineSignals has succeeded.
var signalsConfined bool

// killAll kills the command and all that it has started. It kills every process in the pid
// namespace or in the domain of [confineSignals], so only the main thread may call it. No
// process escapes by a fork: the kernel kills in one step, and a fork is either before it or
// fails.
func killAll() {
	if signalsConfined || os.Getpid() == 1 {
		_ = unix.Kill(-1, unix.SIGKILL)
	}
}

// reap waits for the command, kills the processes that it has left behind, and waits for them.
// It kills the command if the jail's end of the socket is closed, or if the command has more
// than mostFiles files open. Orphans become children of this process, so without children no
// process is left.
func reap(command int, mostFiles uint64) (out wire.Ended) {
	type death struct {
		pid    int
		status unix.WaitStatus
		usage  unix.Rusage
	}
	deaths, gone := make(chan death), make(chan struct{})
	go func() {
		defer close(deaths)
		for {
			var d death
			var err error
			if d.pid, err = unix.Wait4(-1, &d.status, 0, &d.usage); err == nil {
				deaths <- d
			} else if err != unix.EINTR { // ECHILD
				return
			}
		}
	}()
	go func() {
		// The host sends nothing more; the only event is its end.
		poll(unix.PollFd{Fd: wire.Socket, Events: unix.POLLIN | unix.POLLRDHUP})
		close(gone)
	}()
	look := time.NewTicker(countInterval)
	defer look.Stop()
	for {
		select {
		case <-look.C:
			if !out.TooManyFiles && tooManyFiles(mostFiles) {
				out.TooManyFiles = true
				killAll()
			}
		case <-gone:
			killAll()
			gone = nil
		case d, more := <-deaths:
			if !more {
				return out
			}
			out.CPU += d.usage.Utime.Nano() + d.usage.Stime.Nano()
			if d.pid != command {
				continue
			}
			killAll()
			code, signal := d.status.ExitStatus(), int(d.status.Signal())
			if d.status.Signaled() {
				out.Signal = &signal
			} else {
				out.Code = &code
			}
		}
	}
}
