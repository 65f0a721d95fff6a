package main

import (
	"bytes"
	"os"
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/jail/wire"
)

func itoa(n int) string { return strconv.Itoa(n) }

// reap waits for the command, ends what it has left behind, and waits for that.
// Whoever loses its parent becomes a child of this process: when there is none,
// nothing is left.
func reap(w *wire.World, command int, ending *atomic.Bool) wire.Ended {
	var out wire.Ended
	done := false
	for {
		if done || ending.Load() {
			if w.NewRoot {
				_ = unix.Kill(-1, unix.SIGKILL) // all of the namespace but this one
			} else {
				killTree()
			}
		}
		var status unix.WaitStatus
		var usage unix.Rusage
		pid, err := unix.Wait4(-1, &status, 0, &usage)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil: // ECHILD: nothing is left
			return out
		}
		out.CPU += usage.Utime.Nano() + usage.Stime.Nano()
		if pid != command {
			if done {
				out.Killed++
			}
			continue
		}
		done = true
		code, signal := status.ExitStatus(), int(status.Signal())
		if status.Signaled() {
			out.Signal = &signal
		} else {
			out.Code = &code
		}
	}
}

// killTree kills every process below this one. Who calls it does so again, for
// those that were started meanwhile.
func killTree() {
	parents := map[int]int{}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return
	}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			parents[pid] = parent(pid)
		}
	}
	self := os.Getpid()
	for pid := range parents {
		for at, n := pid, 0; at > 1 && n < len(parents); at, n = parents[at], n+1 {
			if parents[at] == self {
				_ = unix.Kill(pid, unix.SIGKILL)
				break
			}
		}
	}
}

// parent reads the parent of a process from /proc/PID/stat: pid (name) state
// parent. The name may hold anything, so the fields are counted from its end.
func parent(pid int) int {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(fields) < 2 {
		return 0
	}
	n, _ := strconv.Atoi(string(fields[1]))
	return n
}
