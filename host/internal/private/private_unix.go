//go:build unix

package private

import (
	"io/fs"
	"os"
	"syscall"
)

// HasModes tells that permission bits mean something here.
const HasModes = true

// Owner returns the owner of a file and whether this is the user that the process
// acts as.
func Owner(info fs.FileInfo) (owner uint32, mine bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return stat.Uid, int(stat.Uid) == os.Geteuid()
}

// SyncFolder makes a new file's name durable.
func SyncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
