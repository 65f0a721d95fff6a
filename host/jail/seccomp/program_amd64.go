//go:build linux

package seccomp

import "golang.org/x/sys/unix"

const arch = unix.AUDIT_ARCH_X86_64

// killForeignABI kills processes that use the call numbers of x32, which has the same arch.
var killForeignABI = program{onlyIf(anyOf, 1<<30), kill}

// deniedOnArch lists denied calls that only this architecture has.
var deniedOnArch = [...]uint32{unix.SYS_IOPL, unix.SYS_IOPERM}

// addOldCalls adds programs for the calls that newer architectures do not have.
func (p actions) addOldCalls(opts Options) {
	if opts.Renames {
		p.notifyRenames(unix.SYS_RENAME)
	}
	p.on(unix.SYS_CHMOD, noSetID(1)...)
	p.on(unix.SYS_CREAT, noSetID(1)...)
	p.on(unix.SYS_OPEN, noSetIDOpen(1, 2)...)
	p.on(unix.SYS_MKNOD, noDevice(1)...)
}
