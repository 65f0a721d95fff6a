package door

import (
	"fmt"
	"os"
	"syscall"
)

// memoryStages is a directory in memory for what calls change, for where the user's
// own directories are on a file system that takes no overlay, as in a container. Its
// place is everybody's.
var memoryStages = fmt.Sprintf("/dev/shm/stockade-%d", os.Getuid())

// makePrivateDir makes a directory in a place that is everybody's, or reports why one that is
// there cannot be trusted: it is not ours, or others can write to it.
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
