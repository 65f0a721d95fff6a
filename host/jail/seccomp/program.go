//go:build linux && (amd64 || arm64)

package seccomp

import (
	"slices"

	"golang.org/x/sys/unix"
)

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
	equal   = unix.BPF_JEQ
	above   = unix.BPF_JGT
	atLeast = unix.BPF_JGE
	anyOf   = unix.BPF_JSET // has one of the bits
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

// actions are what is done with calls, by their numbers. It ends with a result.
type actions map[uint32]program

func (a actions) on(call uint32, what ...unix.SockFilter) { a[call] = what }

// search finds the call that is loaded, of these, by halves: the kernel goes
// through the program for every number when it is installed, and for each call of
// which more than the number counts. Others are allowed.
func (a actions) search(numbers []uint32) program {
	if len(numbers) == 1 {
		what := a[numbers[0]]
		isIt := unix.SockFilter{Code: unix.BPF_JMP | equal | unix.BPF_K, K: numbers[0], Jf: uint8(len(what))}
		return slices.Concat(program{isIt}, what, program{allow})
	}
	half := len(numbers) / 2
	lower, upper := a.search(numbers[:half]), a.search(numbers[half:])
	skip := unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JA, K: uint32(len(lower))}
	return slices.Concat(program{when(atLeast, numbers[half]), skip}, lower, upper)
}
