package wasi

import (
	"syscall"

	"golang.org/x/sys/windows"
)

// systemErrno returns the error number of an error that only Windows has; 0 for any other.
func systemErrno(e syscall.Errno) Errno {
	switch e {
	case windows.ERROR_CANT_RESOLVE_FILENAME:
		return ELOOP
	case windows.ERROR_DIR_NOT_EMPTY:
		return ENOTEMPTY
	case windows.ERROR_DIRECTORY:
		return ENOTDIR
	case windows.ERROR_DISK_FULL, windows.ERROR_HANDLE_DISK_FULL:
		return ENOSPC
	case windows.ERROR_FILENAME_EXCED_RANGE:
		return ENAMETOOLONG
	case windows.ERROR_INVALID_HANDLE:
		return EBADF
	case windows.ERROR_INVALID_NAME, windows.ERROR_INVALID_PARAMETER, windows.ERROR_NEGATIVE_SEEK, windows.ERROR_NOT_A_REPARSE_POINT:
		return EINVAL
	case windows.ERROR_LOCK_VIOLATION, windows.ERROR_SHARING_VIOLATION:
		return EBUSY
	case windows.ERROR_NOT_SAME_DEVICE:
		return EXDEV
	case windows.ERROR_TOO_MANY_OPEN_FILES:
		return EMFILE
	case windows.ERROR_WRITE_PROTECT:
		return EROFS
	}
	return 0
}
