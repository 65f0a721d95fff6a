//go:build linux || darwin

package sandbox

import (
	"os"

	"golang.org/x/sys/unix"
)

// wallPerCPU is the lifetime of a child in seconds for each second of processor time that it
// may use. It matters only on a machine that is very busy.
const wallPerCPU = 10

func setLimits(limits map[int]uint64) error {
	for resource, n := range limits {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: n, Max: n}); err != nil {
			return os.NewSyscallError("setrlimit", err)
		}
	}
	return nil
}
