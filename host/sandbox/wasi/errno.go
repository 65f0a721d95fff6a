package wasi

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"
)

// Errno is an error number of WASI preview 1. Zero is success.
type Errno uint16

// The error numbers of WASI preview 1, as far as they are used here. The package documentation
// lists the reasons for which this package itself returns some of them.
const (
	EACCES       Errno = 2
	EAGAIN       Errno = 6
	EBADF        Errno = 8
	EBUSY        Errno = 10
	EDQUOT       Errno = 19
	EEXIST       Errno = 20
	EFAULT       Errno = 21
	EFBIG        Errno = 22
	EILSEQ       Errno = 25
	EINTR        Errno = 27
	EINVAL       Errno = 28
	EIO          Errno = 29
	EISDIR       Errno = 31
	ELOOP        Errno = 32
	EMFILE       Errno = 33
	EMLINK       Errno = 34
	ENAMETOOLONG Errno = 37
	ENFILE       Errno = 41
	ENOENT       Errno = 44
	ENOLCK       Errno = 46
	ENOMEM       Errno = 48
	ENOSPC       Errno = 51
	ENOSYS       Errno = 52
	ENOTDIR      Errno = 54
	ENOTEMPTY    Errno = 55
	ENOTSOCK     Errno = 57
	ENOTSUP      Errno = 58
	EOVERFLOW    Errno = 61
	EPERM        Errno = 63
	ERANGE       Errno = 68
	EROFS        Errno = 69
	ESPIPE       Errno = 70
	ESTALE       Errno = 72
	ETIMEDOUT    Errno = 73
	ETXTBSY      Errno = 74
	EXDEV        Errno = 75
	ENOTCAPABLE  Errno = 76
)

var errnoNames = [...]string{
	"success", "2BIG", "ACCES", "ADDRINUSE", "ADDRNOTAVAIL", "AFNOSUPPORT", "AGAIN", "ALREADY", "BADF", "BADMSG",
	"BUSY", "CANCELED", "CHILD", "CONNABORTED", "CONNREFUSED", "CONNRESET", "DEADLK", "DESTADDRREQ", "DOM", "DQUOT",
	"EXIST", "FAULT", "FBIG", "HOSTUNREACH", "IDRM", "ILSEQ", "INPROGRESS", "INTR", "INVAL", "IO",
	"ISCONN", "ISDIR", "LOOP", "MFILE", "MLINK", "MSGSIZE", "MULTIHOP", "NAMETOOLONG", "NETDOWN", "NETRESET",
	"NETUNREACH", "NFILE", "NOBUFS", "NODEV", "NOENT", "NOEXEC", "NOLCK", "NOLINK", "NOMEM", "NOMSG",
	"NOPROTOOPT", "NOSPC", "NOSYS", "NOTCONN", "NOTDIR", "NOTEMPTY", "NOTRECOVERABLE", "NOTSOCK", "NOTSUP", "NOTTY",
	"NXIO", "OVERFLOW", "OWNERDEAD", "PERM", "PIPE", "PROTO", "PROTONOSUPPORT", "PROTOTYPE", "RANGE", "ROFS",
	"SPIPE", "SRCH", "STALE", "TIMEDOUT", "TXTBSY", "XDEV", "NOTCAPABLE",
}

// String returns the name of the number, such as "ENOENT"; "success" for 0, and "errno 99" for a
// number that WASI does not have.
func (e Errno) String() string {
	switch {
	case e == 0:
		return errnoNames[0]
	case int(e) < len(errnoNames):
		return "E" + errnoNames[e]
	}
	return fmt.Sprintf("errno %d", uint16(e))
}

// The errors of this package, by reason. The package documentation has the list.
const (
	errOutside      = EPERM
	errReadOnly     = EROFS
	errNotFileOrDir = EACCES
	errNoRoom       = ENOSPC
	errTooLarge     = EFBIG
	errOtherMount   = EXDEV
	errTooManyOpen  = EMFILE
	errReplaced     = EAGAIN // the file was replaced meanwhile
)

// hostErrnos maps errors of the host to those of the guest, which have the same name except for
// the last few. Several host errors may share one number of the guest.
var hostErrnos = func() map[syscall.Errno]Errno {
	out := map[syscall.Errno]Errno{}
	for _, p := range []struct {
		host  syscall.Errno
		guest Errno
	}{
		{syscall.EACCES, EACCES},
		{syscall.EAGAIN, EAGAIN},
		{syscall.EBADF, EBADF},
		{syscall.EBUSY, EBUSY},
		{syscall.EDQUOT, EDQUOT},
		{syscall.EEXIST, EEXIST},
		{syscall.EFBIG, EFBIG},
		{syscall.EINTR, EINTR},
		{syscall.EINVAL, EINVAL},
		{syscall.EIO, EIO},
		{syscall.EISDIR, EISDIR},
		{syscall.ELOOP, ELOOP},
		{syscall.EMFILE, EMFILE},
		{syscall.EMLINK, EMLINK},
		{syscall.ENAMETOOLONG, ENAMETOOLONG},
		{syscall.ENFILE, ENFILE},
		{syscall.ENOENT, ENOENT},
		{syscall.ENOLCK, ENOLCK},
		{syscall.ENOMEM, ENOMEM},
		{syscall.ENOSPC, ENOSPC},
		{syscall.ENOSYS, ENOSYS},
		{syscall.ENOTDIR, ENOTDIR},
		{syscall.ENOTEMPTY, ENOTEMPTY},
		{syscall.EOVERFLOW, EOVERFLOW},
		{syscall.EPERM, EPERM},
		{syscall.ERANGE, ERANGE},
		{syscall.EROFS, EROFS},
		{syscall.ESPIPE, ESPIPE},
		{syscall.ESTALE, ESTALE},
		{syscall.ETIMEDOUT, ETIMEDOUT},
		{syscall.ETXTBSY, ETXTBSY},
		{syscall.EXDEV, EXDEV},
		{syscall.ENOTSUP, ENOTSUP}, // on some systems the same as EOPNOTSUPP below
		// A socket, a FIFO without a reader, a device without a driver.
		{syscall.ENXIO, errNotFileOrDir},
		{syscall.ENODEV, errNotFileOrDir},
		{syscall.EOPNOTSUPP, errNotFileOrDir},
	} {
		out[p.host] = p.guest
	}
	return out
}()

// errnoOf returns the error number for an error of the os package; 0 for nil and io.EOF.
func errnoOf(err error) Errno {
	if err == nil || err == io.EOF {
		return 0
	}
	if errors.Is(err, fs.ErrClosed) {
		return EBADF
	}
	host, ok := errors.AsType[syscall.Errno](err)
	if !ok {
		// The only error of a root that comes from no system call means that the name
		// leads out.
		return errOutside
	}
	if errno, ok := hostErrnos[host]; ok {
		return errno
	}
	if errno := systemErrno(host); errno != 0 {
		return errno
	}
	switch {
	case errors.Is(host, fs.ErrNotExist):
		return ENOENT
	case errors.Is(host, fs.ErrExist):
		return EEXIST
	case errors.Is(host, fs.ErrPermission):
		return EACCES
	}
	return EIO
}
