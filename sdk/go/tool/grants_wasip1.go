package tool

import (
	"errors"
	"syscall"
)

// outsideGrants reports whether WASI refused a path in a way that package syscall does not
// treat as a permission error: no granted directory holds the path, or its rights do not
// include the operation.
func outsideGrants(err error) bool {
	return errors.Is(err, syscall.ENOTCAPABLE) || errors.Is(err, syscall.EBADF)
}
