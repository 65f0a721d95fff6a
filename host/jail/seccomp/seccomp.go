//go:build linux && (amd64 || arm64)

// Package seccomp makes and installs the filter of system calls of a jailed
// command. It is one wall of several: it closes what Landlock and namespaces do
// not know (sockets, tracing, keyrings, io_uring, mounts), and all ways by
// which a command could take a wall down.
//
// A call that the filter does not name is allowed, but for those that are newer
// than the filter: nobody has judged them, so to the command they do not exist.
package seccomp

import (
	"maps"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Options say what the other walls of a command leave to the filter. The zero
// value is for one with namespaces and without TCP.
type Options struct {
	// Network allows TCP. It is for a command in a network namespace
	// of its own, in which there are only its own servers, and our proxy.
	Network bool
	// NoNamespaces is for a command that sees the processes and the System V
	// IPC of its user, and may touch neither: calls that change a process take
	// pid 0 only, which is itself. Signals are left to Landlock.
	NoNamespaces bool
	// Renames has a listener answer every call that renames, see [Listen].
	Renames bool
}

// setID are the bits of a mode that lend the rights of a file's owner. A
// command may not set them: what it leaves behind is run by others. That breaks
// git init --shared, since a filter cannot tell directories, where they are
// harmless, from files.
const setID = unix.S_ISUID | unix.S_ISGID

// namespaces are the flags of clone that make one. CLONE_NEWTIME is not among
// them: in clone, its bit belongs to the number of a signal.
const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// creates are the flags with which open uses its mode. Without them it is what
// happens to be in the register.
const creates = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY

// lastCall is the newest call that the lists below were made with.
const lastCall = unix.SYS_RSEQ_SLICE_YIELD

// denied fail with EPERM whatever their arguments are.
var denied = [...]uint32{
	// Other processes, and what watches them.
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE,
	unix.SYS_PROCESS_MRELEASE, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP, unix.SYS_PERF_EVENT_OPEN,
	unix.SYS_FANOTIFY_INIT, unix.SYS_FANOTIFY_MARK, unix.SYS_LOOKUP_DCOOKIE,
	// What does the work of other calls unseen, and large parts of the kernel
	// of which builds have no use.
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

// deniedShared fail with EPERM where there are no namespaces.
var deniedShared = [...]uint32{
	unix.SYS_MOVE_PAGES, unix.SYS_MIGRATE_PAGES,
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL,
	unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL,
	unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL,
}

// processCalls take a process as their first argument, and change it.
var processCalls = [...]uint32{
	unix.SYS_PRLIMIT64, unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETATTR,
}

// Filter is the program of a command with the options.
func Filter(opts Options) []unix.SockFilter {
	p := actions{}
	for _, call := range denied {
		p.on(call, fail(unix.EPERM))
	}
	for _, call := range deniedOnArch {
		p.on(call, fail(unix.EPERM))
	}
	// The arguments of these two are in memory, where a filter cannot look.
	// Programs know kernels without them, and use clone and openat.
	p.on(unix.SYS_CLONE3, fail(unix.ENOSYS))
	p.on(unix.SYS_OPENAT2, fail(unix.ENOSYS))

	// Threads must share the open files of their process, which are counted by process.
	p.on(unix.SYS_CLONE, argument(0), when(anyOf, namespaces), fail(unix.EPERM),
		masked(unix.CLONE_THREAD|unix.CLONE_FILES), when(equal, unix.CLONE_THREAD), fail(unix.EPERM), allow)
	p.on(unix.SYS_CLOSE_RANGE, argument(2), when(anyOf, unix.CLOSE_RANGE_UNSHARE), fail(unix.EPERM), allow)
	// Leases and notifications make the kernel delay others who open a file, or report them.
	// They need only read permission, so the file could be the user's.
	p.on(unix.SYS_FCNTL, argument(1), when(equal, unix.F_SETLEASE), fail(unix.EPERM),
		when(equal, unix.F_SETDELEG), fail(unix.EPERM), when(equal, unix.F_NOTIFY), fail(unix.EPERM), allow)
	const ask = 0xffffffff // which one it is
	p.on(unix.SYS_PERSONALITY, argument(0), unless(equal, ask), fail(unix.EPERM), allow)
	p.on(unix.SYS_IOCTL,
		argument(1), // all 32 bits of a request, whatever else is in the register

		// Typing on the user's terminal, and loading modules.
		when(equal, unix.TIOCSTI), fail(unix.EPERM),
		when(equal, unix.TIOCLINUX), fail(unix.EPERM),
		when(equal, unix.TIOCSETD), fail(unix.EPERM),
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
		program{when(above, lastCall), fail(unix.ENOSYS)},
		p.search(slices.Sorted(maps.Keys(p))))
}

// sockets is what may be made to speak with others. EACCES is an error that
// socket is known to have: curl, git, Python and Node.js end with it at once,
// and say so. For EAFNOSUPPORT some look for another family.
func (p actions) sockets(opts Options) {
	p.on(unix.SYS_SOCKETPAIR, argument(0), unless(equal, unix.AF_UNIX), fail(unix.EACCES), allow)
	if !opts.Network {
		p.on(unix.SYS_SOCKET, fail(unix.EACCES))
		return
	}
	const kind = 0xf                             // of a type; the other bits are SOCK_CLOEXEC and SOCK_NONBLOCK
	const version = unix.AF_INET ^ unix.AF_INET6 // the bit in which these two differ
	p.on(unix.SYS_SOCKET,
		argument(0), masked(^uint32(version)), unless(equal, unix.AF_INET&^version), fail(unix.EACCES),
		argument(1), masked(kind), unless(equal, unix.SOCK_STREAM), fail(unix.EACCES),
		argument(2), when(equal, 0), allow, when(equal, unix.IPPROTO_TCP), allow, // not MPTCP, SCTP, SMC
		fail(unix.EACCES))
}

// restrictShared is for a command among the other processes of its user.
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

// onlySelf refuses all but pid 0 for what takes the kind of a number (a process,
// a group or a user), then the number.
func onlySelf(process uint32) program {
	return program{
		argument(0), unless(equal, process), fail(unix.EPERM),
		argument(1), unless(equal, 0), fail(unix.EPERM), allow,
	}
}

// noSetID refuses a mode, which is argument i, that has set-id bits.
func noSetID(i uint32) program {
	return program{argument(i), when(anyOf, setID), fail(unix.EPERM), allow}
}

// noSetIDOpen is noSetID for what has a mode only with certain flags.
func noSetIDOpen(flags, mode uint32) program {
	return append(program{argument(flags), unless(anyOf, creates), allow}, noSetID(mode)...)
}

// noDevice refuses a mode of what is no regular file, named pipe or socket, or
// has set-id bits.
func noDevice(i uint32) program {
	p := program{argument(i), when(anyOf, setID), fail(unix.EPERM), masked(unix.S_IFMT)}
	for _, kind := range []uint32{0, unix.S_IFREG, unix.S_IFIFO, unix.S_IFSOCK} {
		p = append(p, when(equal, kind), allow)
	}
	return append(p, fail(unix.EPERM))
}

func (p actions) notifyRenames(calls ...uint32) {
	for _, call := range calls {
		p.on(call, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF})
	}
}

// Install puts a filter on the calling thread, to which the caller has locked
// its goroutine, and for which it has set no_new_privs. The processes that the
// thread becomes or starts have it too. It cannot be taken off again.
func Install(filter []unix.SockFilter) error {
	// Before Linux 5.16 a filter turns off a part of speculation in the whole
	// process, which protects a process from parts of itself only.
	const flags = unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW
	_, err := install(filter, flags)
	return err
}

// Listen is Install for a filter with [Options].Renames. The listener is a
// descriptor from which those calls are received. Where the process is listened to
// already it is EBUSY.
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
