//go:build unix

package codecache

import (
	"fmt"
	"io/fs"
	"syscall"
)

func isHardlinked(st fs.FileInfo) bool {
	sys, ok := st.Sys().(*syscall.Stat_t)
	return !ok || sys.Nlink > 1 // 0: it was removed in the meantime
}

// identity returns a text that differs between a file and its copies, and changes when the
// file is written to: nobody can set the change time of an inode.
func identity(st fs.FileInfo) string {
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprint(sys.Ino, changeTime(sys))
}
