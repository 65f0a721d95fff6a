//go:build !linux

package beneath

import "syscall"

// SetLinkTimes has no safe way to change the times of a symbolic link here.
func SetLinkTimes(Root, string, int64, int64) error { return syscall.ENOTSUP }

// HoldsMountPoint is not known here. What a bind mount or its like shows of a
// masked path inside a mount is not hidden on this system.
func HoldsMountPoint(string) bool { return false }
