//go:build linux && (amd64 || arm64)

package seccomp

import (
	"slices"

	"golang.org/x/sys/unix"
)

// program is a list of instructions of classic BPF. A condition skips only the next
// instruction, so that only [actions.search] has to count instructions.
type program []unix.SockFilter

// Offsets in struct seccomp_data. Both architectures are little endian: the lower half of an
// argument comes first.
const (
	offsetCall = 0
	offsetArch = 4
	offsetArgs = 16
)

// Tests of a condition.
const (
	equal   = unix.BPF_JEQ
	above   = unix.BPF_JGT
	atLeast = unix.BPF_JGE
	anyOf   = unix.BPF_JSET // at least one of the bits is set
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

// argument loads the lower half of the argument i of the call: the whole value of an int.
func argument(i uint32) unix.SockFilter { return load(offsetArgs + 8*i) }

func masked(bits uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: bits}
}

// onlyIf executes the next instruction only if the test of the loaded value is true.
func onlyIf(test uint16, k uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | test | unix.BPF_K, K: k, Jf: 1}
}

// unless executes the next instruction only if the test of the loaded value is false.
func unless(test uint16, k uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | test | unix.BPF_K, K: k, Jt: 1}
}

// actions maps the numbers of system calls to programs, which decide about the call.
type actions map[uint32]program

func (a actions) on(call uint32, what ...unix.SockFilter) { a[call] = what }

// search returns a program that finds the number of the call among numbers by binary search,
// and runs the program for it. It allows other calls. For each number the kernel tries the
// program once when it is installed, and runs it later only for calls that depend on their
// arguments.
func (a actions) search(numbers []uint32) program {
	if len(numbers) == 1 {
		what := a[numbers[0]]
		isIt := unix.SockFilter{Code: unix.BPF_JMP | equal | unix.BPF_K, K: numbers[0], Jf: uint8(len(what))}
		return slices.Concat(program{isIt}, what, program{allow})
	}
	half := len(numbers) / 2
	lower, upper := a.search(numbers[:half]), a.search(numbers[half:])
	skip := unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JA, K: uint32(len(lower))}
	return slices.Concat(program{onlyIf(atLeast, numbers[half]), skip}, lower, upper)
}
