package selftest

import "os"

// openFiles returns the number of descriptors of this process.
func openFiles() int {
	names, _ := os.ReadDir("/proc/self/fd")
	return len(names)
}
