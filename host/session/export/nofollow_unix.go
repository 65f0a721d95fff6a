//go:build unix

package export

import "syscall"

// noFollow refuses a link where a file is to be written.
const noFollow = syscall.O_NOFOLLOW
