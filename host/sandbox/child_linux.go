package sandbox

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// missingLimits names the limits on a child that this system lacks: none.
const missingLimits = ""

func (j childJob) limitProcess() error {
	// This applies to this thread and its later threads, which suffices: no code here starts
	// a program.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl", err)
	}
	return setLimits(map[int]uint64{
		// Soft and hard limit are equal. With a lower soft limit a signal would come first,
		// which Go ignores.
		unix.RLIMIT_CPU: uint64(j.cpu / time.Second),
		// Not RLIMIT_AS: Go reserves far more address space than it uses.
		unix.RLIMIT_DATA:   dataSize() + j.memory,
		unix.RLIMIT_FSIZE:  j.file,
		unix.RLIMIT_NOFILE: 64,
		unix.RLIMIT_CORE:   0,
	})
}

// dataSize returns the number of bytes of this process that count against RLIMIT_DATA so far:
// stacks of threads and memory that Go has reserved. That is about 100 MiB, and terabytes
// under the race detector. 0: unknown.
func dataSize() uint64 {
	statm, err := os.ReadFile("/proc/self/statm")
	fields := bytes.Fields(statm)
	const data = 5
	if err != nil || len(fields) <= data {
		return 0
	}
	pages, _ := strconv.ParseUint(string(fields[data]), 10, 64)
	return pages * uint64(os.Getpagesize())
}
