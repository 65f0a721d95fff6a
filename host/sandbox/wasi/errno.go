package wasi

import (
	"errors"
	"io"
	"io/fs"
	"syscall"

	"github.com/tetratelabs/wazero/experimental/sys"
)

// What a guest is told, by reason. The package documentation has the list.
const (
	errOutside  = sys.EPERM
	errReadOnly = sys.EROFS
	errKind     = sys.EACCES // not a regular file or directory
	errLinked   = sys.EACCES // several hard links
	errNoRoom   = sys.ERANGE
	errCrossing = sys.ENOTSUP
	errBusy     = sys.EAGAIN // no descriptor left, or replaced meanwhile
)

// errnoOf turns an error of the os package into what the guest is told.
func errnoOf(err error) sys.Errno {
	if err == nil || err == io.EOF {
		return 0
	}
	if errors.Is(err, fs.ErrClosed) {
		return sys.EBADF
	}
	var host syscall.Errno
	if !errors.As(err, &host) {
		// The only error of os.Root that comes from no system call says that
		// the name leaves the root.
		return errOutside
	}
	switch host {
	case syscall.EXDEV:
		return errCrossing
	case syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG:
		return errNoRoom
	case syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EBUSY, syscall.ETXTBSY:
		return errBusy
	case syscall.ENXIO, syscall.ENODEV, syscall.EOPNOTSUPP:
		// A socket, a FIFO without a reader, a device without a driver.
		return errKind
	}
	return sys.UnwrapOSError(host)
}
