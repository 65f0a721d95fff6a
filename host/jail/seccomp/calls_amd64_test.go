//go:build linux

package seccomp

import "golang.org/x/sys/unix"

// callsHere are the calls that only this architecture has.
var callsHere = []try{
	{"chmod, older", unix.SYS_CHMOD, args{aPath, 0o755}, unix.ENOENT},
	{"chmod, older, set-uid", unix.SYS_CHMOD, args{aPath, 0o4755}, unix.EPERM},
	{"creat", unix.SYS_CREAT, args{aPath, 0o644}, unix.ENOENT},
	{"creat, set-gid", unix.SYS_CREAT, args{aPath, 0o2755}, unix.EPERM},
	{"open, created", unix.SYS_OPEN, args{aPath, unix.O_CREAT, 0o644}, unix.ENOENT},
	{"open, created set-uid", unix.SYS_OPEN, args{aPath, unix.O_CREAT, 0o4755}, unix.EPERM},
	{"open, any register", unix.SYS_OPEN, args{aPath, 0, 0o7777}, unix.ENOENT},
	{"mknod, fifo", unix.SYS_MKNOD, args{aPath, unix.S_IFIFO | 0o644}, unix.ENOENT},
	{"mknod, character device", unix.SYS_MKNOD, args{aPath, unix.S_IFCHR | 0o644}, unix.EPERM},
	{"iopl", unix.SYS_IOPL, args{99}, unix.EPERM},
	{"ioperm", unix.SYS_IOPERM, args{none, none, 1}, unix.EPERM},
}

const machine = 62 // EM_X86_64

// foreignCode ends with 42, by its own way of calling, or else by the usual one.
var foreignCode = map[string][]byte{
	"int 0x80": {
		0xb8, 1, 0, 0, 0, 0xbb, 42, 0, 0, 0, 0xcd, 0x80, // exit(42) as on i386
		0xb8, 60, 0, 0, 0, 0xbf, 42, 0, 0, 0, 0x0f, 0x05, // exit(42)
	},
	"x32": {
		0xb8, 60, 0, 0, 0x40, 0xbf, 42, 0, 0, 0, 0x0f, 0x05, // exit(42) as on x32
		0xb8, 60, 0, 0, 0, 0xbf, 42, 0, 0, 0, 0x0f, 0x05, // exit(42)
	},
}
