package main

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// without makes the kernel answer this process and its children as a kernel that lacks
// something: "namespaces", as in a container that forbids them, or "landlock". This way,
// the program itself finds fewer ways to confine commands.
func without(what string) error {
	ret := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	fails := func(with unix.Errno) unix.SockFilter { return ret(unix.SECCOMP_RET_ERRNO | uint32(with)) }
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	is := func(test uint16, k uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | test, K: k, Jt: yes, Jf: no}
	}
	const call, firstArgument = 0, 16 // in struct seccomp_data, little endian
	filter := []unix.SockFilter{load(call)}
	lacks := strings.Split(what, ",")
	if slices.Contains(lacks, "landlock") {
		filter = append(filter, is(unix.BPF_JEQ, unix.SYS_LANDLOCK_CREATE_RULESET, 0, 1), fails(unix.ENOSYS))
	}
	if slices.Contains(lacks, "namespaces") {
		filter = append(filter,
			is(unix.BPF_JEQ, unix.SYS_CLONE3, 0, 1), fails(unix.ENOSYS), // its flags are in memory
			is(unix.BPF_JEQ, unix.SYS_CLONE, 2, 0), is(unix.BPF_JEQ, unix.SYS_UNSHARE, 1, 0), ret(unix.SECCOMP_RET_ALLOW),
			load(firstArgument), is(unix.BPF_JSET, unix.CLONE_NEWUSER, 0, 1), fails(unix.EPERM))
	}
	filter = append(filter, ret(unix.SECCOMP_RET_ALLOW))
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return fmt.Errorf("seccomp: %w", errno)
	}
	return nil
}
