//go:build linux

package seccomp

import "golang.org/x/sys/unix"

const arch = unix.AUDIT_ARCH_AARCH64

var (
	foreign    program
	deniedHere [0]uint32
)

func (actions) older(Options) {}
