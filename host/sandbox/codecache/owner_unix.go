//go:build unix

package codecache

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

func writableByOthers(st fs.FileInfo) bool { return st.Mode().Perm()&0o022 != 0 }

func ownedByUser(st fs.FileInfo) bool {
	sys, ok := st.Sys().(*syscall.Stat_t)
	return ok && int(sys.Uid) == os.Geteuid()
}

// isHardlinked reports whether a file has more than one name.
func isHardlinked(st fs.FileInfo) bool {
	sys, ok := st.Sys().(*syscall.Stat_t)
	return !ok || sys.Nlink > 1 // none: it was removed meanwhile
}

// identity tells a file from a copy of it, and from itself before it was last
// written to: the time of the last change of an inode is nobody's to set.
func identity(st fs.FileInfo) string {
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprint(sys.Ino, changeTime(sys))
}
