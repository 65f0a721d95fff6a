//go:build unix

package sandbox

import "golang.org/x/sys/unix"

// reserve asks the kernel for address space that costs nothing until it is
// touched, so that memory grows in place and no copy is ever made.
func reserve(size uint64) ([]byte, error) {
	return unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|noReserve)
}

func release(b []byte) { _ = unix.Munmap(b) }
