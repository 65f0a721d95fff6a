package sandbox

import (
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"
)

// missingLimits are those that this system does not have: it knows limits on
// memory, and does not hold to them.
const missingLimits = "memory"

func (j childJob) limitProcess() error {
	over := make(chan os.Signal, 1)
	signal.Notify(over, unix.SIGXCPU) // which Go ignores, and nothing follows it here
	go func() {
		<-over
		os.Exit(childTooSlow)
	}()
	return setLimits(map[int]uint64{
		unix.RLIMIT_CPU:    uint64(j.cpu / time.Second),
		unix.RLIMIT_FSIZE:  j.file,
		unix.RLIMIT_NOFILE: 64,
		unix.RLIMIT_CORE:   0,
	})
}
