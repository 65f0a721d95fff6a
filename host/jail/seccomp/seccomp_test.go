//go:build linux && (amd64 || arm64)

package seccomp

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A job in the environment makes this test binary the process that is filtered.
const jobName = "STOCKADE_TEST_SECCOMP"

type job struct {
	Bare    bool // without a filter
	Options Options
	Calls   []call   // are made, and their errors printed, as JSON; or
	Exec    []string // becomes that program
}

type call struct {
	Number uintptr
	Args   args
}

type args [6]uintptr

func TestMain(m *testing.M) {
	if text := os.Getenv(jobName); text != "" {
		var j job
		err := json.Unmarshal([]byte(text), &j)
		if err == nil {
			err = j.do()
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(99)
	}
	os.Exit(m.Run())
}

func (j job) do() error {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if !j.Bare {
		if err := Install(Filter(j.Options)); err != nil {
			return err
		}
	}
	if j.Exec != nil {
		os.Unsetenv(jobName)
		return unix.Exec(j.Exec[0], j.Exec, os.Environ())
	}
	errnos := make([]unix.Errno, len(j.Calls))
	for i, c := range j.Calls {
		a := c.Args
		for i := range a {
			if a[i] == aPath {
				a[i] = uintptr(unsafe.Pointer(&[]byte("/none/file\x00")[0]))
			}
		}
		_, _, errnos[i] = unix.RawSyscall6(c.Number, a[0], a[1], a[2], a[3], a[4], a[5])
	}
	if err := json.NewEncoder(os.Stdout).Encode(errnos); err != nil {
		return err
	}
	os.Exit(0)
	return nil
}

func (j job) command(t *testing.T) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = append(os.Environ(), jobName+"="+string(text))
	cmd.Dir = t.TempDir()
	return cmd
}

// errnos makes the calls in one process and returns their errors.
func (j job) errnos(t *testing.T) (out []unix.Errno) {
	t.Helper()
	cmd := j.command(t)
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil || len(out) != len(j.Calls) {
		t.Fatalf("%v: %v: %s", j, err, text)
	}
	return out
}

const (
	bad    = 1            // an address that is nobody's, and an odd number
	none   = ^uintptr(0)  // a descriptor that is not open; a number of nothing
	maxPID = 0x7fffffff   // of no process
	noKind = 99           // of what has a priority; that of users would change all of theirs
	aPath  = 0xa0a0a0a0   // is replaced by the address of a path that is not there
	junk   = 0xbeef << 32 // what the kernel does not look at, above an int
)

// try is a call and the error that the filter returns for it; 0: the call works.
type try struct {
	name   string
	number uintptr
	args   args
	want   unix.Errno
}

// calls have arguments with which they do no harm if they are allowed, even to root: they
// fail in another way, or change this process only.
var calls = []try{
	{"chmod", unix.SYS_FCHMODAT, args{none, aPath, 0o1777}, unix.ENOENT},
	{"chmod, set-uid", unix.SYS_FCHMODAT, args{none, aPath, 0o4755}, unix.EPERM},
	{"chmod, set-gid", unix.SYS_FCHMODAT, args{none, aPath, 0o2755}, unix.EPERM},
	{"fchmodat2, set-uid", unix.SYS_FCHMODAT2, args{none, aPath, 0o4755}, unix.EPERM},
	{"fchmod", unix.SYS_FCHMOD, args{none, 0o755}, unix.EBADF},
	{"fchmod, set-uid", unix.SYS_FCHMOD, args{none, 0o4755}, unix.EPERM},
	{"fchmod, set-uid and more", unix.SYS_FCHMOD, args{none, junk | 0o4755}, unix.EPERM},
	{"openat, created", unix.SYS_OPENAT, args{none, aPath, unix.O_CREAT, 0o644}, unix.ENOENT},
	{"openat, created set-uid", unix.SYS_OPENAT, args{none, aPath, unix.O_CREAT, 0o4755}, unix.EPERM},
	{"openat, without name, set-gid", unix.SYS_OPENAT, args{none, aPath, unix.O_TMPFILE | unix.O_RDWR, 0o2755}, unix.EPERM},
	{"openat, any register", unix.SYS_OPENAT, args{none, aPath, unix.O_DIRECTORY, 0o7777}, unix.ENOENT},
	{"openat2", unix.SYS_OPENAT2, args{none, aPath, bad, 24}, unix.ENOSYS},
	{"mknodat, file", unix.SYS_MKNODAT, args{none, aPath, 0o644}, unix.ENOENT},
	{"mknodat, fifo", unix.SYS_MKNODAT, args{none, aPath, unix.S_IFIFO | 0o644}, unix.ENOENT},
	{"mknodat, file, set-uid", unix.SYS_MKNODAT, args{none, aPath, unix.S_IFREG | 0o4755}, unix.EPERM},
	{"mknodat, character device", unix.SYS_MKNODAT, args{none, aPath, unix.S_IFCHR | 0o644}, unix.EPERM},
	{"mknodat, block device", unix.SYS_MKNODAT, args{none, aPath, junk | unix.S_IFBLK | 0o644}, unix.EPERM},

	{"clone, thread", unix.SYS_CLONE, args{unix.CLONE_THREAD | unix.CLONE_FILES}, unix.EINVAL},
	{"clone, thread with files of its own", unix.SYS_CLONE, args{junk | unix.CLONE_THREAD}, unix.EPERM},
	{"close_range", unix.SYS_CLOSE_RANGE, args{maxPID, maxPID, unix.CLOSE_RANGE_CLOEXEC}, 0},
	{"close_range, files of its own", unix.SYS_CLOSE_RANGE, args{maxPID, maxPID, unix.CLOSE_RANGE_UNSHARE}, unix.EPERM},
	{"fcntl, lease", unix.SYS_FCNTL, args{2, unix.F_SETLEASE, unix.F_UNLCK}, unix.EPERM},
	{"fcntl, lease and more", unix.SYS_FCNTL, args{2, junk | unix.F_SETLEASE, unix.F_RDLCK}, unix.EPERM},
	{"fcntl, delegation", unix.SYS_FCNTL, args{2, unix.F_SETDELEG, bad}, unix.EPERM},
	{"fcntl, notify", unix.SYS_FCNTL, args{2, unix.F_NOTIFY, 0}, unix.EPERM},
	{"fcntl, get a lease", unix.SYS_FCNTL, args{none, unix.F_GETLEASE}, unix.EBADF},
	{"fcntl, a lock", unix.SYS_FCNTL, args{none, unix.F_SETLK, bad}, unix.EBADF},
	{"flock", unix.SYS_FLOCK, args{none, unix.LOCK_EX}, unix.EBADF},
	{"clone, mount namespace", unix.SYS_CLONE, args{unix.CLONE_THREAD | unix.CLONE_FILES | unix.CLONE_NEWNS}, unix.EPERM},
	{"clone, cgroup namespace", unix.SYS_CLONE, args{unix.CLONE_THREAD | unix.CLONE_FILES | unix.CLONE_NEWCGROUP}, unix.EPERM},
	{"clone, uts namespace", unix.SYS_CLONE, args{unix.CLONE_THREAD | unix.CLONE_FILES | unix.CLONE_NEWUTS}, unix.EPERM},
	{"clone, ipc namespace", unix.SYS_CLONE, args{unix.CLONE_THREAD | unix.CLONE_FILES | unix.CLONE_NEWIPC}, unix.EPERM},
	{"clone, user namespace", unix.SYS_CLONE, args{unix.CLONE_THREAD | unix.CLONE_FILES | unix.CLONE_NEWUSER}, unix.EPERM},
	{"clone, pid namespace", unix.SYS_CLONE, args{unix.CLONE_THREAD | unix.CLONE_FILES | unix.CLONE_NEWPID}, unix.EPERM},
	{"clone, net namespace", unix.SYS_CLONE, args{unix.CLONE_THREAD | unix.CLONE_FILES | unix.CLONE_NEWNET}, unix.EPERM},
	{"clone3", unix.SYS_CLONE3, args{bad, 0}, unix.ENOSYS},
	{"unshare", unix.SYS_UNSHARE, args{bad}, unix.EPERM},
	{"setns", unix.SYS_SETNS, args{none}, unix.EPERM},
	{"listns", unix.SYS_LISTNS, args{bad}, unix.EPERM},

	{"ioctl, any", unix.SYS_IOCTL, args{none, unix.TIOCGWINSZ, bad}, unix.EBADF},
	{"ioctl, TIOCSTI", unix.SYS_IOCTL, args{none, unix.TIOCSTI, bad}, unix.EPERM},
	{"ioctl, TIOCSTI and more", unix.SYS_IOCTL, args{none, junk | unix.TIOCSTI, bad}, unix.EPERM},
	{"ioctl, TIOCLINUX", unix.SYS_IOCTL, args{none, unix.TIOCLINUX, bad}, unix.EPERM},
	{"ioctl, TIOCSETD", unix.SYS_IOCTL, args{none, unix.TIOCSETD, bad}, unix.EPERM},
	{"personality, asked for", unix.SYS_PERSONALITY, args{0xffffffff}, 0},
	{"personality, asked for with more", unix.SYS_PERSONALITY, args{none}, 0},
	{"personality, fixed addresses", unix.SYS_PERSONALITY, args{0x40000}, unix.EPERM},
	{"memfd_create", unix.SYS_MEMFD_CREATE, args{aPath, 0}, 0},

	{"ptrace", unix.SYS_PTRACE, args{99}, unix.EPERM},
	{"process_vm_readv", unix.SYS_PROCESS_VM_READV, args{0, bad, 1, bad, 1, 1}, unix.EPERM},
	{"process_vm_writev", unix.SYS_PROCESS_VM_WRITEV, args{0, bad, 1, bad, 1, 1}, unix.EPERM},
	{"process_madvise", unix.SYS_PROCESS_MADVISE, args{none}, unix.EPERM},
	{"process_mrelease", unix.SYS_PROCESS_MRELEASE, args{none}, unix.EPERM},
	{"pidfd_getfd", unix.SYS_PIDFD_GETFD, args{none}, unix.EPERM},
	{"kcmp", unix.SYS_KCMP, args{none, none}, unix.EPERM},
	{"perf_event_open", unix.SYS_PERF_EVENT_OPEN, args{bad}, unix.EPERM},
	{"fanotify_init", unix.SYS_FANOTIFY_INIT, args{none}, unix.EPERM},
	{"fanotify_mark", unix.SYS_FANOTIFY_MARK, args{none}, unix.EPERM},
	{"lookup_dcookie", unix.SYS_LOOKUP_DCOOKIE, args{}, unix.EPERM},
	{"io_uring_setup", unix.SYS_IO_URING_SETUP, args{bad, bad}, unix.EPERM},
	{"io_uring_enter", unix.SYS_IO_URING_ENTER, args{none}, unix.EPERM},
	{"io_uring_register", unix.SYS_IO_URING_REGISTER, args{none}, unix.EPERM},
	{"bpf", unix.SYS_BPF, args{0xffff}, unix.EPERM},
	{"userfaultfd", unix.SYS_USERFAULTFD, args{none}, unix.EPERM},
	{"keyctl", unix.SYS_KEYCTL, args{0xffff}, unix.EPERM},
	{"add_key", unix.SYS_ADD_KEY, args{bad}, unix.EPERM},
	{"request_key", unix.SYS_REQUEST_KEY, args{bad}, unix.EPERM},
	{"mq_open", unix.SYS_MQ_OPEN, args{bad}, unix.EPERM},
	{"mq_unlink", unix.SYS_MQ_UNLINK, args{bad}, unix.EPERM},
	{"mq_timedsend", unix.SYS_MQ_TIMEDSEND, args{none}, unix.EPERM},
	{"mq_timedreceive", unix.SYS_MQ_TIMEDRECEIVE, args{none}, unix.EPERM},
	{"mq_notify", unix.SYS_MQ_NOTIFY, args{none}, unix.EPERM},
	{"mq_getsetattr", unix.SYS_MQ_GETSETATTR, args{none}, unix.EPERM},

	{"mount", unix.SYS_MOUNT, args{bad, bad, bad, 0, bad}, unix.EPERM},
	{"umount2", unix.SYS_UMOUNT2, args{bad}, unix.EPERM},
	{"pivot_root", unix.SYS_PIVOT_ROOT, args{bad, bad}, unix.EPERM},
	{"chroot", unix.SYS_CHROOT, args{bad}, unix.EPERM},
	{"open_tree", unix.SYS_OPEN_TREE, args{none, bad}, unix.EPERM},
	{"open_tree_attr", unix.SYS_OPEN_TREE_ATTR, args{none, bad}, unix.EPERM},
	{"move_mount", unix.SYS_MOVE_MOUNT, args{none, bad, none, bad}, unix.EPERM},
	{"mount_setattr", unix.SYS_MOUNT_SETATTR, args{none, bad}, unix.EPERM},
	{"fsopen", unix.SYS_FSOPEN, args{bad}, unix.EPERM},
	{"fsconfig", unix.SYS_FSCONFIG, args{none}, unix.EPERM},
	{"fsmount", unix.SYS_FSMOUNT, args{none}, unix.EPERM},
	{"fspick", unix.SYS_FSPICK, args{none, bad}, unix.EPERM},
	{"listmount", unix.SYS_LISTMOUNT, args{bad}, unix.EPERM},
	{"statmount", unix.SYS_STATMOUNT, args{bad}, unix.EPERM},
	{"open_by_handle_at", unix.SYS_OPEN_BY_HANDLE_AT, args{none, bad}, unix.EPERM},
	{"name_to_handle_at", unix.SYS_NAME_TO_HANDLE_AT, args{none, bad, bad, bad}, unix.EPERM},

	{"kexec_load", unix.SYS_KEXEC_LOAD, args{0, 99, bad, none}, unix.EPERM},
	{"kexec_file_load", unix.SYS_KEXEC_FILE_LOAD, args{none, none, 0, 0, none}, unix.EPERM},
	{"init_module", unix.SYS_INIT_MODULE, args{bad, 1, bad}, unix.EPERM},
	{"finit_module", unix.SYS_FINIT_MODULE, args{none, bad, none}, unix.EPERM},
	{"delete_module", unix.SYS_DELETE_MODULE, args{bad}, unix.EPERM},
	{"acct", unix.SYS_ACCT, args{bad}, unix.EPERM},
	{"swapon", unix.SYS_SWAPON, args{bad, none}, unix.EPERM},
	{"swapoff", unix.SYS_SWAPOFF, args{bad}, unix.EPERM},
	{"reboot", unix.SYS_REBOOT, args{bad}, unix.EPERM},
	{"quotactl", unix.SYS_QUOTACTL, args{none, bad}, unix.EPERM},
	{"quotactl_fd", unix.SYS_QUOTACTL_FD, args{none}, unix.EPERM},
	{"syslog", unix.SYS_SYSLOG, args{99}, unix.EPERM},
	{"settimeofday", unix.SYS_SETTIMEOFDAY, args{bad}, unix.EPERM},
	{"clock_settime", unix.SYS_CLOCK_SETTIME, args{99}, unix.EPERM},
	{"adjtimex", unix.SYS_ADJTIMEX, args{bad}, unix.EPERM},
	{"clock_adjtime", unix.SYS_CLOCK_ADJTIME, args{0, bad}, unix.EPERM},

	{"socket, local", unix.SYS_SOCKET, args{unix.AF_UNIX, unix.SOCK_STREAM}, unix.EACCES},
	{"socket, TCP", unix.SYS_SOCKET, args{unix.AF_INET, unix.SOCK_STREAM}, unix.EACCES},
	{"socketpair, local", unix.SYS_SOCKETPAIR, args{junk | unix.AF_UNIX, unix.SOCK_STREAM, 0, bad}, unix.EFAULT},
	{"socketpair, other", unix.SYS_SOCKETPAIR, args{unix.AF_TIPC, unix.SOCK_STREAM, 0, bad}, unix.EACCES},
}

// optional lists calls that depend on an option.
var optional = []struct {
	Options
	try
}{
	{Options{Network: true}, try{"TCP", unix.SYS_SOCKET, args{unix.AF_INET, unix.SOCK_STREAM}, 0}},
	{Options{Network: true}, try{"TCP by its number", unix.SYS_SOCKET, args{junk | unix.AF_INET, unix.SOCK_STREAM | unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK, unix.IPPROTO_TCP}, 0}},
	{Options{Network: true}, try{"MPTCP", unix.SYS_SOCKET, args{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP}, unix.EACCES}},
	{Options{Network: true}, try{"SCTP", unix.SYS_SOCKET, args{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP}, unix.EACCES}},
	{Options{Network: true}, try{"UDP", unix.SYS_SOCKET, args{unix.AF_INET, unix.SOCK_DGRAM}, unix.EACCES}},
	{Options{Network: true}, try{"raw", unix.SYS_SOCKET, args{unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP}, unix.EACCES}},
	{Options{Network: true}, try{"TCP over IPv6", unix.SYS_SOCKET, args{unix.AF_INET6, unix.SOCK_STREAM}, 0}},
	{Options{Network: true}, try{"UDP over IPv6", unix.SYS_SOCKET, args{unix.AF_INET6, unix.SOCK_DGRAM}, unix.EACCES}},
	{Options{Network: true}, try{"another family", unix.SYS_SOCKET, args{unix.AF_X25, unix.SOCK_STREAM}, unix.EACCES}},
	{Options{Network: true}, try{"local", unix.SYS_SOCKET, args{unix.AF_UNIX, unix.SOCK_STREAM}, unix.EACCES}},
	{Options{Network: true}, try{"netlink", unix.SYS_SOCKET, args{unix.AF_NETLINK, unix.SOCK_RAW}, unix.EACCES}},

	{Options{}, try{"limits of another", unix.SYS_PRLIMIT64, args{maxPID, unix.RLIMIT_NOFILE}, unix.ESRCH}},
	{Options{NoNamespaces: true}, try{"limits of another", unix.SYS_PRLIMIT64, args{maxPID, unix.RLIMIT_NOFILE}, unix.EPERM}},
	{Options{NoNamespaces: true}, try{"limits", unix.SYS_PRLIMIT64, args{junk, unix.RLIMIT_NOFILE}, 0}},
	{Options{NoNamespaces: true}, try{"priority of another", unix.SYS_SETPRIORITY, args{unix.PRIO_PROCESS, maxPID, 19}, unix.EPERM}},
	{Options{NoNamespaces: true}, try{"priority of another kind", unix.SYS_SETPRIORITY, args{noKind, 0, 19}, unix.EPERM}},
	{Options{NoNamespaces: true}, try{"priority", unix.SYS_SETPRIORITY, args{unix.PRIO_PROCESS, 0, 19}, 0}},
	{Options{NoNamespaces: true}, try{"i/o priority of another", unix.SYS_IOPRIO_SET, args{ioprioProcess, maxPID, 0}, unix.EPERM}},
	{Options{NoNamespaces: true}, try{"i/o priority of another kind", unix.SYS_IOPRIO_SET, args{noKind, 0, 0}, unix.EPERM}},
	{Options{NoNamespaces: true}, try{"i/o priority", unix.SYS_IOPRIO_SET, args{ioprioProcess, 0, 0}, 0}},
	{Options{NoNamespaces: true}, try{"processors of another", unix.SYS_SCHED_SETAFFINITY, args{maxPID, 8, bad}, unix.EPERM}},
	{Options{NoNamespaces: true}, try{"processors", unix.SYS_SCHED_SETAFFINITY, args{0, 8, bad}, unix.EFAULT}},
	{Options{NoNamespaces: true}, try{"scheduler of another", unix.SYS_SCHED_SETSCHEDULER, args{maxPID, 0, bad}, unix.EPERM}},
	{Options{NoNamespaces: true}, try{"scheduler's parameter of another", unix.SYS_SCHED_SETPARAM, args{maxPID, bad}, unix.EPERM}},
	{Options{NoNamespaces: true}, try{"scheduler's attributes of another", unix.SYS_SCHED_SETATTR, args{maxPID, bad}, unix.EPERM}},
	{Options{NoNamespaces: true}, try{"a signal", unix.SYS_KILL, args{maxPID, 0}, unix.ESRCH}},
	{Options{NoNamespaces: true}, try{"move_pages", unix.SYS_MOVE_PAGES, args{maxPID}, unix.EPERM}},
	{Options{NoNamespaces: true}, try{"migrate_pages", unix.SYS_MIGRATE_PAGES, args{maxPID}, unix.EPERM}},
	{Options{NoNamespaces: true}, try{"shmget", unix.SYS_SHMGET, args{bad}, unix.EPERM}},
	{Options{NoNamespaces: true}, try{"shmat", unix.SYS_SHMAT, args{none}, unix.EPERM}},
	{Options{NoNamespaces: true}, try{"shmctl", unix.SYS_SHMCTL, args{none}, unix.EPERM}},
	{Options{NoNamespaces: true}, try{"semget", unix.SYS_SEMGET, args{bad}, unix.EPERM}},
	{Options{NoNamespaces: true}, try{"semop", unix.SYS_SEMOP, args{none}, unix.EPERM}},
	{Options{NoNamespaces: true}, try{"semtimedop", unix.SYS_SEMTIMEDOP, args{none}, unix.EPERM}},
	{Options{NoNamespaces: true}, try{"semctl", unix.SYS_SEMCTL, args{none}, unix.EPERM}},
	{Options{NoNamespaces: true}, try{"msgget", unix.SYS_MSGGET, args{bad}, unix.EPERM}},
	{Options{NoNamespaces: true}, try{"msgsnd", unix.SYS_MSGSND, args{none}, unix.EPERM}},
	{Options{NoNamespaces: true}, try{"msgrcv", unix.SYS_MSGRCV, args{none}, unix.EPERM}},
	{Options{NoNamespaces: true}, try{"msgctl", unix.SYS_MSGCTL, args{none}, unix.EPERM}},
	{Options{}, try{"shmctl", unix.SYS_SHMCTL, args{none}, unix.EINVAL}},
}

func TestCalls(t *testing.T) {
	var all job
	for _, c := range slices.Concat(calls, callsHere) {
		all.Calls = append(all.Calls, call{c.number, c.args})
	}
	got := all.errnos(t)
	all.Bare = true
	bare := all.errnos(t)
	for i, c := range slices.Concat(calls, callsHere) {
		if got[i] != c.want {
			t.Errorf("%s: %v, want %v", c.name, name(got[i]), name(c.want))
		}
		refused := slices.Contains([]unix.Errno{unix.EPERM, unix.EACCES, unix.ENOSYS}, c.want)
		untold := bare[i] == unix.ENOSYS || os.Getuid() != 0 && bare[i] == unix.EPERM // no such call, or not for us
		if refused != (bare[i] != c.want) && !untold {
			t.Errorf("%s: %v without a filter: that says nothing about it", c.name, name(bare[i]))
		}
	}
}

func TestOptions(t *testing.T) {
	for _, c := range optional {
		j := job{Options: c.Options, Calls: []call{{c.number, c.args}}}
		if got := j.errnos(t)[0]; got != c.want {
			t.Errorf("%+v, %s: %v, want %v", c.Options, c.name, name(got), name(c.want))
		}
		j.Bare = true
		if bare := j.errnos(t)[0]; os.Getuid() == 0 && c.want == unix.EPERM && bare == c.want {
			t.Errorf("%s: %v without a filter: that says nothing about it", c.name, name(bare))
		}
	}
}

func name(err unix.Errno) string {
	if err == 0 {
		return "no error"
	}
	return unix.ErrnoName(err)
}

// TestEveryCallIsTried checks the lists of the filter against the tables.
func TestEveryCallIsTried(t *testing.T) {
	tried := map[uint32]bool{}
	for _, c := range slices.Concat(calls, callsHere) {
		tried[uint32(c.number)] = true
	}
	for _, c := range optional {
		tried[uint32(c.number)] = true
	}
	for _, number := range slices.Concat(denied[:], deniedOnArch[:], deniedShared[:], processCalls[:]) {
		if !tried[number] {
			t.Errorf("call %d is in no table", number)
		}
	}
}

// TestForeignCallsKill: a process that uses call numbers of another ABI is ended.
func TestForeignCallsKill(t *testing.T) {
	for what, code := range foreignCode {
		path := filepath.Join(t.TempDir(), "program")
		if err := os.WriteFile(path, executable(code), 0o700); err != nil {
			t.Fatal(err)
		}
		end := func(j job) syscall.WaitStatus {
			j.Exec = []string{path}
			cmd := j.command(t)
			_ = cmd.Run()
			return cmd.ProcessState.Sys().(syscall.WaitStatus)
		}
		if got := end(job{}); got.Signal() != unix.SIGSYS {
			t.Errorf("%s: it ended with %v and %v", what, got.ExitStatus(), got.Signal())
		}
		if got := end(job{Bare: true}); got.ExitStatus() != 42 {
			t.Errorf("%s: it ended with %v and %v without a filter", what, got.ExitStatus(), got.Signal())
		}
	}
}

// executable returns a program that consists of the code only.
func executable(code []byte) []byte {
	const at, head = 0x400000, 64 + 56
	le := binary.LittleEndian
	b := append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 9)...)
	b = le.AppendUint16(b, 2) // ET_EXEC
	b = le.AppendUint16(b, machine)
	b = le.AppendUint32(b, 1)
	b = le.AppendUint64(b, at+head) // where it starts
	b = le.AppendUint64(b, 64)      // its one segment
	b = le.AppendUint64(b, 0)
	b = le.AppendUint32(b, 0)
	for _, v := range []uint16{64, 56, 1, 0, 0, 0} {
		b = le.AppendUint16(b, v)
	}
	b = le.AppendUint32(b, 1) // PT_LOAD
	b = le.AppendUint32(b, 5) // read, execute
	for _, v := range []int{0, at, at, head + len(code), head + len(code), 0x1000} {
		b = le.AppendUint64(b, uint64(v))
	}
	return append(b, code...)
}

// TestNewerCalls: there is no kernel yet to try one with.
func TestNewerCalls(t *testing.T) {
	filter := Filter(Options{})
	i := slices.Index(filter, onlyIf(above, lastCall))
	if i < 0 || filter[i+1] != fail(unix.ENOSYS) {
		t.Error("a call that the filter does not know is let through")
	}
	for _, c := range slices.Concat(calls, callsHere) {
		if c.number > lastCall {
			t.Errorf("%s is newer than the last call", c.name)
		}
	}
}

// programs are everyday work that prints "works" at its end.
var programs = map[string]string{
	"Go":    "go version && echo works",
	"shell": `(sleep 0 & wait) && echo hello | (read x; echo "$x" > f) && mkfifo p && (echo works > p & cat p)`,
	"Python": `python3 -c '
import asyncio, subprocess, threading, multiprocessing as m
t = threading.Thread(target=print, args=("thread",)); t.start(); t.join()
async def f():
    p = await asyncio.create_subprocess_exec("echo", "works", stdout=-1)
    return (await p.communicate())[0].decode()
with m.get_context("fork").Pool(2) as p: assert p.map(abs, [-1, -2]) == [1, 2]
print(asyncio.run(f()), end="")'`,
	"git":          "git init -q r && cd r && echo 1 > f && git add f && git -c user.name=n -c user.email=e commit -qm c && git clone -q . ../c && git -C ../c fsck && echo works",
	"make and gcc": `printf 'int main(void) { return puts("works"), 0; }' > m.c && printf 'm: m.c\n\tgcc -w -o m m.c\n' > Makefile && make -j2 -s && ./m`,
	"tar":          "mkdir d && echo works > d/f && ln -s f d/l && chmod 700 d && tar -czf a.tgz d && rm -r d && tar -xzf a.tgz && cat d/l && cp -a d e && chmod 1777 e",
	"Node.js": `node -e '
new (require("worker_threads").Worker)("1", {eval: true}).on("exit", () =>
  require("child_process").exec("cat", (err, out) => console.log(err || "works")).stdin.end())'`,
}

func TestProgramsWork(t *testing.T) {
	for name, script := range programs {
		for _, options := range []Options{{}, {NoNamespaces: true}, {Network: true}} {
			t.Run(fmt.Sprintf("%s, %+v", name, options), func(t *testing.T) {
				t.Parallel()
				cmd := job{Options: options, Exec: []string{"/bin/bash", "-c", script}}.command(t)
				out, err := cmd.CombinedOutput()
				if err != nil || !strings.HasSuffix(string(out), "works\n") {
					t.Errorf("%v\n%s", err, out)
				}
			})
		}
	}
}

// TestNoNetworkIsSaid: programs soon end with an error that names the problem.
func TestNoNetworkIsSaid(t *testing.T) {
	for _, c := range []struct{ name, script, says string }{
		{"curl", "curl -sS http://192.0.2.1/", "Couldn't connect"},
		{"curl, a name", "curl -sS http://stockade.invalid/", "Could not resolve"},
		{"git", "git clone -q git://192.0.2.1/r", "Permission denied"},
		{"git, a name", "git clone -q http://stockade.invalid/r", "Could not resolve"},
		{"Python", `python3 -c 'import urllib.request as r; r.urlopen("http://192.0.2.1/")'`, "Permission denied"},
		{"bash", "echo > /dev/tcp/192.0.2.1/80", "Permission denied"},
		{"Node.js", `node -e 'fetch("http://192.0.2.1/").catch(err => { console.error(err.cause); process.exit(1) })'`, "EACCES"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out, err := job{Exec: []string{"/bin/bash", "-c", c.script}}.command(t).CombinedOutput()
			if err == nil || !strings.Contains(string(out), c.says) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// TestNetwork: servers on this machine can be reached if the network is granted.
func TestNetwork(t *testing.T) {
	t.Setenv("no_proxy", "*")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "works") }))
	defer server.Close()
	url := strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
	for name, script := range map[string]string{
		"curl":    "curl -sS " + url,
		"Python":  `python3 -c 'import urllib.request as r; print(r.urlopen("` + url + `").read())'`,
		"Node.js": `node -e 'fetch("` + url + `").then(r => r.text()).then(console.log)'`,
	} {
		out, err := job{Options: Options{Network: true}, Exec: []string{"/bin/bash", "-c", script}}.command(t).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "works") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}
