//go:build unix && !linux

package linear

import "golang.org/x/sys/unix"

func reserve(size uint64) ([]byte, error) {
	return unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
}

func release(b []byte) { _ = unix.Munmap(b) }
