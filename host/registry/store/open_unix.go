//go:build unix

package store

import "syscall"

// noFollow: a link is refused, and a pipe is not waited for.
const noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK
