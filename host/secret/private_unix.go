//go:build unix

package secret

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// hasModes tells that permission bits mean something here.
const hasModes = true

// openPrivate opens a file and never waits for one that is no file. A link is
// not followed: whoever may make one says which file is read.
func openPrivate(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.EMLINK) {
		return nil, fmt.Errorf("%s is a symbolic link: it is not followed", path)
	}
	return f, err
}

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
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
