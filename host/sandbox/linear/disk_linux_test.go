package linear_test

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// onDisk returns the bytes of the disk that a file takes; 0 if it is or may be in memory,
// where it takes its whole size.
func onDisk(t *testing.T, f *os.File) int64 {
	t.Helper()
	var fs unix.Statfs_t
	var st unix.Stat_t
	if err := unix.Fstatfs(int(f.Fd()), &fs); err != nil {
		t.Fatal(err)
	}
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		t.Fatal(err)
	}
	if t := uint32(fs.Type); t == unix.TMPFS_MAGIC || t == unix.OVERLAYFS_SUPER_MAGIC {
		return 0
	}
	return st.Blocks * 512
}
