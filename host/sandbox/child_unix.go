//go:build linux || darwin

package sandbox

import (
	"os"

	"golang.org/x/sys/unix"
)

// wallPerCPU is how long a child may live for each second of processor time
// that it may have. It counts only where the machine has little to give.
const wallPerCPU = 10

func setLimits(limits map[int]uint64) error {
	for resource, n := range limits {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: n, Max: n}); err != nil {
			return os.NewSyscallError("setrlimit", err)
		}
	}
	return nil
}
