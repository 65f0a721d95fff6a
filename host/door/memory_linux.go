package door

import (
	"fmt"
	"os"
	"syscall"
)

// memoryStages is the directory for a stage area in memory. It is used if the directory Stages
// cannot be part of an overlay, as in a container. Every user can write to its parent.
var memoryStages = fmt.Sprintf("/dev/shm/stockade-%d", os.Getuid())

// makePrivateDir makes a directory below a parent that every user can write to. If the name is
// taken, it returns an error unless this is a directory that belongs to the user alone.
func makePrivateDir(name string) error {
	if err := os.Mkdir(name, 0o700); err == nil || !os.IsExist(err) {
		return err
	}
	st, err := os.Lstat(name)
	if err != nil {
		return err
	}
	if !st.IsDir() || st.Mode().Perm()&0o077 != 0 || st.Sys().(*syscall.Stat_t).Uid != uint32(os.Getuid()) {
		return fmt.Errorf("%s is not a directory of yours alone", name)
	}
	return nil
}
