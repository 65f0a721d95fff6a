//go:build unix

package main

import "syscall"

// noFollow refuses a link where a file is to be written.
const noFollow = syscall.O_NOFOLLOW
