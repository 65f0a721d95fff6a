package tool

import (
	"errors"
	"syscall"
)

// outsideGrants reports whether WASI refused in one of the ways that package
// syscall does not count as a permission: the directory's rights do not
// include the operation, or no granted directory holds the path.
func outsideGrants(err error) bool {
	return errors.Is(err, syscall.ENOTCAPABLE) || errors.Is(err, syscall.EBADF)
}
