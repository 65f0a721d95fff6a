package sqlite

import (
	"math"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const noFollow = unix.O_NOFOLLOW | unix.O_NONBLOCK

// allocate reserves disk space for a part of a file. With grow, the file grows to
// have it as content.
func allocate(f *os.File, from, size int64, grow bool) error {
	mode := uint32(unix.FALLOC_FL_KEEP_SIZE)
	if grow {
		mode = 0
	}
	return unix.Fallocate(int(f.Fd()), mode, from, size)
}

// room returns how many bytes of disk space this user may still take.
func room(name string) int64 {
	var st unix.Statfs_t
	if unix.Statfs(filepath.Dir(name), &st) != nil {
		return 0
	}
	return int64(min(st.Bavail*uint64(st.Bsize), math.MaxInt64))
}
