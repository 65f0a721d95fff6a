//go:build !windows

package wasi

import "syscall"

// systemErrno returns 0: there are no errors here beyond those that every system has.
func systemErrno(syscall.Errno) Errno { return 0 }
