package sandbox

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// missingLimits are those that this system does not have.
const missingLimits = ""

func (j childJob) limitProcess() error {
	// For this thread and those that it starts; nothing here starts a program.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl", err)
	}
	return setLimits(map[int]uint64{
		// With a soft limit below the hard one there would be a signal first,
		// which Go ignores.
		unix.RLIMIT_CPU: uint64(j.cpu / time.Second),
		// Not RLIMIT_AS: Go reserves far more address space than it uses.
		unix.RLIMIT_DATA:   dataSize() + j.memory,
		unix.RLIMIT_FSIZE:  j.file,
		unix.RLIMIT_NOFILE: 64,
		unix.RLIMIT_CORE:   0,
	})
}

// dataSize is what RLIMIT_DATA counts of this process so far: the stacks of
// its threads and what Go has set aside, some 100 MiB; terabytes under the race
// detector.
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
