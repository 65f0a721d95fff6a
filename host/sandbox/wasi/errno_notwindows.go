//go:build !windows

package wasi

import "syscall"

// systemErrno knows no errors beyond those that every system has.
func systemErrno(syscall.Errno) Errno { return 0 }
