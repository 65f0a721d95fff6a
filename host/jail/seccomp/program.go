//go:build linux && (amd64 || arm64)

package seccomp

import "golang.org/x/sys/unix"

// A program is a list of instructions of classic BPF. A condition skips the one
// instruction that follows, so that none has to count.
type program []unix.SockFilter

// Where struct seccomp_data has what. Both architectures are little endian: the
// lower half of an argument comes first.
const (
	offsetCall = 0
	offsetArch = 4
	offsetArgs = 16
)

// The tests of a condition.
const (
	equal = unix.BPF_JEQ
	above = unix.BPF_JGT
	anyOf = unix.BPF_JSET // has one of the bits
)

var (
	allow = unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}
	kill  = unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_KILL_PROCESS}
)

func fail(with unix.Errno) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(with)}
}

func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

// argument loads the lower half of an argument: all of an int.
func argument(i uint32) unix.SockFilter { return load(offsetArgs + 8*i) }

func masked(bits uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: bits}
}

// when does the next instruction if the test of what is loaded is true.
func when(test uint16, k uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | test | unix.BPF_K, K: k, Jf: 1}
}

// unless does the next instruction if it is not.
func unless(test uint16, k uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | test | unix.BPF_K, K: k, Jt: 1}
}

// on adds what is done with a call. It ends with a result, so that what follows
// still has the number of the call.
func (p *program) on(call uint32, what ...unix.SockFilter) {
	*p = append(*p, unix.SockFilter{Code: unix.BPF_JMP | equal | unix.BPF_K, K: call, Jf: uint8(len(what))})
	*p = append(*p, what...)
}
