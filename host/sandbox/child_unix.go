//go:build linux || darwin

package sandbox

import (
	"os"

	"golang.org/x/sys/unix"
)

func setLimits(limits map[int]uint64) error {
	for resource, n := range limits {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: n, Max: n}); err != nil {
			return os.NewSyscallError("setrlimit", err)
		}
	}
	return nil
}
