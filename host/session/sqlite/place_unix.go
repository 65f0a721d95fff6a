//go:build unix

package sqlite

import (
	"io/fs"
	"os"
	"syscall"
)

// hasModes tells that permission bits mean something here.
const hasModes = true

// ownedByMe returns the owner of a file and whether this is the user that the
// process acts as.
func ownedByMe(info fs.FileInfo) (owner uint32, mine bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return stat.Uid, int(stat.Uid) == os.Geteuid()
}

// syncFolder makes a new file's name durable.
func syncFolder(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
