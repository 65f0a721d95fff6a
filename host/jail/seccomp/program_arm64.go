//go:build linux

package seccomp

import "golang.org/x/sys/unix"

const arch = unix.AUDIT_ARCH_AARCH64

var (
	killForeignABI program
	deniedOnArch   [0]uint32
)

func (actions) addOldCalls(Options) {}
