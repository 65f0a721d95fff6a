//go:build unix

package export

import "syscall"

// noFollow makes open fail if the file is a symbolic link.
const noFollow = syscall.O_NOFOLLOW
