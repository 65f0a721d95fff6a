package sqlite

import (
	"fmt"
	"math"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const noFollow = unix.O_NOFOLLOW | unix.O_NONBLOCK

// allocate reserves disk space for a part of a file. With grow, it makes the file large enough.
func allocate(f *os.File, from, size int64, grow bool) error {
	mode := uint32(unix.FALLOC_FL_KEEP_SIZE)
	if grow {
		mode = 0
	}
	return unix.Fallocate(int(f.Fd()), mode, from, size)
}

// makeReserve creates a file of size bytes on the disk. The file gets its name last, so that
// no other process sees a smaller file and takes it for a reserve of which a part is used.
func makeReserve(name string, size int64) error {
	fd, err := unix.Open(filepath.Dir(name), unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Fallocate(fd, 0, 0, size); err != nil {
		return err
	}
	return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, name, unix.AT_SYMLINK_FOLLOW)
}

// freeBytes returns the bytes of disk space that this user can use beside the file; 0: unknown.
func freeBytes(name string) int64 {
	var st unix.Statfs_t
	if unix.Statfs(filepath.Dir(name), &st) != nil {
		return 0
	}
	return int64(min(st.Bavail*uint64(st.Bsize), math.MaxInt64))
}
