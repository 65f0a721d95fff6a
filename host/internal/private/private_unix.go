//go:build unix

package private

import (
	"io/fs"
	"os"
	"syscall"
)

// HasModes reports whether permission bits have a meaning here.
const HasModes = true

// Owner returns the user ID of the owner of a file, and reports whether this is the user of
// the process.
func Owner(info fs.FileInfo) (owner uint32, mine bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return stat.Uid, int(stat.Uid) == os.Geteuid()
}

// SyncFolder waits until the disk has the names in a folder.
func SyncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
