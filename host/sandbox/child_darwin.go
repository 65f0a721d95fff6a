package sandbox

import (
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"
)

// missingLimits names the limits on a child that this system lacks: it has a limit on memory,
// but does not enforce it.
const missingLimits = "memory"

func (j childJob) limitProcess() error {
	over := make(chan os.Signal, 1)
	signal.Notify(over, unix.SIGXCPU) // Go ignores the signal, and the system sends no other
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
