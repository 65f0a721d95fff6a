//go:build unix

package sandbox

import (
	"io/fs"
	"os"
	"syscall"
)

func writableByOthers(st fs.FileInfo) bool { return st.Mode().Perm()&0o022 != 0 }

func ownedByUser(st fs.FileInfo) bool {
	sys, ok := st.Sys().(*syscall.Stat_t)
	return ok && int(sys.Uid) == os.Geteuid()
}
