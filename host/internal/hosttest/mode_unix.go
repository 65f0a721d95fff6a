//go:build unix

package hosttest

import (
	"io/fs"
	"syscall"
)

// ModeText is empty for the mode of new files.
func ModeText(mode fs.FileMode) string {
	mask := syscall.Umask(0o022)
	syscall.Umask(mask)
	if mode.Perm() == 0o666&^fs.FileMode(mask) {
		return ""
	}
	return mode.Perm().String()
}
