//go:build linux

package seccomp

import "golang.org/x/sys/unix"

const arch = unix.AUDIT_ARCH_X86_64

// foreign kills what calls by the numbers of x32, which has the same
// architecture.
var foreign = program{when(anyOf, 1<<30), kill}

// deniedHere are calls that only this architecture has.
var deniedHere = [...]uint32{unix.SYS_IOPL, unix.SYS_IOPERM}

// older is about the calls that newer architectures do not have.
func (p actions) older(opts Options) {
	if opts.Renames {
		p.renames(unix.SYS_RENAME)
	}
	p.on(unix.SYS_CHMOD, noSetID(1)...)
	p.on(unix.SYS_CREAT, noSetID(1)...)
	p.on(unix.SYS_OPEN, noSetIDOpen(1, 2)...)
	p.on(unix.SYS_MKNOD, noDevice(1)...)
}
