//go:build linux && (amd64 || arm64)

// Package seccomp makes and installs the filter of system calls for a jailed command. It is
// one of several layers. It covers what Landlock and namespaces do not (sockets, tracing,
// keyrings, io_uring, mounts), and all calls with which a command could remove a layer.
//
// The filter allows calls that it does not name. Calls that are newer than the filter fail
// with ENOSYS, because nobody has assessed them.
package seccomp

import (
	"maps"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Options describes the other layers around a command. The zero value is for a command with
// all namespaces and without TCP.
type Options struct {
	// Network allows TCP. It is for a command in a network namespace of its own, which
	// contains only its own servers and our proxy.
	Network bool
	// NoNamespaces is for a command that can see the processes, or also the System V IPC, of
	// its user. It may not touch either: calls that change a process accept only pid 0, the
	// process itself. Signals are left to Landlock.
	NoNamespaces bool
	// Renames sends every call that renames to a listener, see [Listen].
	Renames bool
}

// setID are the bits of a mode that lend a file the rights of its owner. A command may not
// set them, because others could run the file. That breaks git init --shared: a filter cannot
// distinguish directories, where the bits are harmless, from files.
const setID = unix.S_ISUID | unix.S_ISGID

// namespaces are the flags of clone that make a namespace. CLONE_NEWTIME is not included: in
// clone its bit belongs to the number of a signal.
const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// creates are the flags of open with which its argument mode is used. Without them that
// argument is undefined.
const creates = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY

// lastCall is the newest call that was assessed for the lists below.
const lastCall = unix.SYS_RSEQ_SLICE_YIELD

// denied lists calls that always fail with EPERM.
var denied = [...]uint32{
	// Other processes, and calls that watch them.
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE,
	unix.SYS_PROCESS_MRELEASE, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP, unix.SYS_PERF_EVENT_OPEN,
	unix.SYS_FANOTIFY_INIT, unix.SYS_FANOTIFY_MARK, unix.SYS_LOOKUP_DCOOKIE,
	// Calls that do the work of other calls unseen, and large parts of the kernel that builds
	// do not need.
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_BPF, unix.SYS_USERFAULTFD,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK, unix.SYS_MQ_TIMEDSEND, unix.SYS_MQ_TIMEDRECEIVE, unix.SYS_MQ_NOTIFY, unix.SYS_MQ_GETSETATTR,
	// Mounts, namespaces, and files that have no name.
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT,
	unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR, unix.SYS_MOVE_MOUNT, unix.SYS_MOUNT_SETATTR,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK,
	unix.SYS_LISTMOUNT, unix.SYS_STATMOUNT,
	unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_LISTNS,
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT,
	// The machine.
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_ACCT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_REBOOT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD,
	unix.SYS_SYSLOG, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_ADJTIMEX, unix.SYS_CLOCK_ADJTIME,
}

// deniedShared lists further calls that fail with EPERM if [Options].NoNamespaces is set.
var deniedShared = [...]uint32{
	unix.SYS_MOVE_PAGES, unix.SYS_MIGRATE_PAGES,
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL,
	unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL,
	unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL,
}

// processCalls lists calls that change the process in their first argument.
var processCalls = [...]uint32{
	unix.SYS_PRLIMIT64, unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETATTR,
}

// Filter returns the filter for a command with the options.
func Filter(opts Options) []unix.SockFilter {
	p := actions{}
	for _, call := range denied {
		p.on(call, fail(unix.EPERM))
	}
	for _, call := range deniedOnArch {
		p.on(call, fail(unix.EPERM))
	}
	// The arguments of these two calls are in memory, where a filter cannot read. Programs
	// can run on kernels without them, and use clone and openat.
	p.on(unix.SYS_CLONE3, fail(unix.ENOSYS))
	p.on(unix.SYS_OPENAT2, fail(unix.ENOSYS))

	// Threads must share the open files of their process, which are counted by process.
	p.on(unix.SYS_CLONE, argument(0), onlyIf(anyOf, namespaces), fail(unix.EPERM),
		masked(unix.CLONE_THREAD|unix.CLONE_FILES), onlyIf(equal, unix.CLONE_THREAD), fail(unix.EPERM), allow)
	p.on(unix.SYS_CLOSE_RANGE, argument(2), onlyIf(anyOf, unix.CLOSE_RANGE_UNSHARE), fail(unix.EPERM), allow)
	// Leases and notifications make the kernel delay others who open a file, or report them.
	// They need only read permission, so the file could be the user's.
	p.on(unix.SYS_FCNTL, argument(1), onlyIf(equal, unix.F_SETLEASE), fail(unix.EPERM),
		onlyIf(equal, unix.F_SETDELEG), fail(unix.EPERM), onlyIf(equal, unix.F_NOTIFY), fail(unix.EPERM), allow)
	const ask = 0xffffffff // asks for the current value
	p.on(unix.SYS_PERSONALITY, argument(0), unless(equal, ask), fail(unix.EPERM), allow)
	p.on(unix.SYS_IOCTL,
		argument(1), // a request has 32 bits; the rest of the register does not count

		// Typing on the user's terminal, and loading modules.
		onlyIf(equal, unix.TIOCSTI), fail(unix.EPERM),
		onlyIf(equal, unix.TIOCLINUX), fail(unix.EPERM),
		onlyIf(equal, unix.TIOCSETD), fail(unix.EPERM),
		allow)

	p.on(unix.SYS_FCHMOD, noSetID(1)...)
	p.on(unix.SYS_FCHMODAT, noSetID(2)...)
	p.on(unix.SYS_FCHMODAT2, noSetID(2)...)
	p.on(unix.SYS_OPENAT, noSetIDOpen(2, 3)...)
	p.on(unix.SYS_MKNODAT, noDevice(2)...)
	if opts.Renames {
		p.notifyRenames(unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2)
	}
	p.addOldCalls(opts)

	p.sockets(opts)
	if opts.NoNamespaces {
		p.restrictShared()
	}
	return slices.Concat(
		program{load(offsetArch), unless(equal, arch), kill, load(offsetCall)}, killForeignABI,
		program{onlyIf(above, lastCall), fail(unix.ENOSYS)},
		p.search(slices.Sorted(maps.Keys(p))))
}

// sockets restricts the calls that make sockets. They fail with EACCES, which programs expect
// from socket: curl, git, Python and Node.js stop at once and report it. After EAFNOSUPPORT
// some try another family.
func (p actions) sockets(opts Options) {
	p.on(unix.SYS_SOCKETPAIR, argument(0), unless(equal, unix.AF_UNIX), fail(unix.EACCES), allow)
	if !opts.Network {
		p.on(unix.SYS_SOCKET, fail(unix.EACCES))
		return
	}
	const kind = 0xf                             // bits of the type; the others are SOCK_CLOEXEC and SOCK_NONBLOCK
	const version = unix.AF_INET ^ unix.AF_INET6 // the bit in which the two differ
	p.on(unix.SYS_SOCKET,
		argument(0), masked(^uint32(version)), unless(equal, unix.AF_INET&^version), fail(unix.EACCES),
		argument(1), masked(kind), unless(equal, unix.SOCK_STREAM), fail(unix.EACCES),
		argument(2), onlyIf(equal, 0), allow, onlyIf(equal, unix.IPPROTO_TCP), allow, // not MPTCP, SCTP, SMC
		fail(unix.EACCES))
}

// restrictShared keeps a command from changing other processes of its user, except by signals.
func (p actions) restrictShared() {
	for _, call := range deniedShared {
		p.on(call, fail(unix.EPERM))
	}
	for _, call := range processCalls {
		p.on(call, argument(0), unless(equal, 0), fail(unix.EPERM), allow)
	}
	p.on(unix.SYS_SETPRIORITY, onlySelf(unix.PRIO_PROCESS)...)
	p.on(unix.SYS_IOPRIO_SET, onlySelf(ioprioProcess)...)
}

const ioprioProcess = 1

// onlySelf allows only pid 0 in calls whose first two arguments are the kind of an id
// (process, group or user) and the id. process is the number of the kind for processes.
func onlySelf(process uint32) program {
	return program{
		argument(0), unless(equal, process), fail(unix.EPERM),
		argument(1), unless(equal, 0), fail(unix.EPERM), allow,
	}
}

// noSetID refuses calls with set-id bits in the mode, which is argument i.
func noSetID(i uint32) program {
	return program{argument(i), onlyIf(anyOf, setID), fail(unix.EPERM), allow}
}

// noSetIDOpen does the same as noSetID for calls that use their mode only with the flags of
// creates. flags and mode are the indexes of these arguments.
func noSetIDOpen(flags, mode uint32) program {
	return append(program{argument(flags), unless(anyOf, creates), allow}, noSetID(mode)...)
}

// noDevice refuses calls with set-id bits in the mode, which is argument i, and with types
// other than regular file, named pipe and socket.
func noDevice(i uint32) program {
	p := program{argument(i), onlyIf(anyOf, setID), fail(unix.EPERM), masked(unix.S_IFMT)}
	for _, kind := range []uint32{0, unix.S_IFREG, unix.S_IFIFO, unix.S_IFSOCK} {
		p = append(p, onlyIf(equal, kind), allow)
	}
	return append(p, fail(unix.EPERM))
}

func (p actions) notifyRenames(calls ...uint32) {
	for _, call := range calls {
		p.on(call, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF})
	}
}

// Install installs a filter on the calling thread. The caller has locked its goroutine to the
// thread, and set no_new_privs. The filter also applies to the processes that the thread
// becomes or starts, and cannot be removed.
func Install(filter []unix.SockFilter) error {
	// Before Linux 5.16 a filter turns off a part of speculation in the whole process, which
	// would only protect the process from parts of itself.
	const flags = unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW
	_, err := install(filter, flags)
	return err
}

// Listen is Install for a filter with [Options].Renames. It returns a descriptor from which
// the renaming calls are received. The error is EBUSY if the process has a listener already.
func Listen(filter []unix.SockFilter) (listener int, err error) {
	const flags = unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW | unix.SECCOMP_FILTER_FLAG_NEW_LISTENER
	if listener, err = install(filter, flags|unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV); err == unix.EINVAL { // before Linux 5.19
		listener, err = install(filter, flags)
	}
	return listener, err
}

func install(filter []unix.SockFilter, flags uintptr) (int, error) {
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	fd, _, err := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	if err != 0 {
		return -1, err
	}
	return int(fd), nil
}
