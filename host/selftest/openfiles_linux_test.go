package selftest

import "os"

// openFiles is how many descriptors this process has.
func openFiles() int {
	names, _ := os.ReadDir("/proc/self/fd")
	return len(names)
}
