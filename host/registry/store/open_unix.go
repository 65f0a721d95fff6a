//go:build unix

package store

import "syscall"

// noFollow makes open refuse a link, and not wait for a named pipe.
const noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK
