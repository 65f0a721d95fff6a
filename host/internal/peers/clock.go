package main

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime returns the CPU time of f on its thread. Other work on the machine disturbs it
// less than wall time.
func cpuTime(f func() error) (time.Duration, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start, err := threadTime()
	if err != nil {
		return 0, err
	}
	if err := f(); err != nil {
		return 0, err
	}
	end, err := threadTime()
	return end - start, err
}

func threadTime() (time.Duration, error) {
	var ts unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts)
	return time.Duration(ts.Nano()), err
}
