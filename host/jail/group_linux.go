package jail

import (
	"bytes"
	"math"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithUs makes the kernel kill the command when this program is killed. Processes that the
// command has started continue.
func dieWithUs(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// reap waits for the end of the command, and kills the remaining processes of its group and
// session. It kills between the end of the leader and its reaping: until then the numbers of
// the leader's group and session belong to nobody else. Processes in other sessions continue.
func reap(c *exec.Cmd) error {
	for unix.Waitid(unix.P_PID, c.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	_ = killGroup(c.Process.Pid)
	killSession(c.Process.Pid)
	return c.Wait()
}

// killSession kills the processes of a session, except for its leader, which has ended: the
// jobs of a shell with job control, and processes of timeout(1). It repeats the search until
// it finds none, because a process can fork meanwhile. The number of rounds is limited for
// processes that fork too fast.
func killSession(sid int) {
	for range 64 {
		found := false
		for _, pid := range processes() {
			if pid == sid {
				continue // the leader has ended
			}
			if inSession(pid, sid) && killIf(pid, func() bool { return inSession(pid, sid) }) {
				found = true
			}
		}
		if !found {
			return
		}
	}
}

// killIf kills the process pid if still returns true, and reports whether it did. If the
// process ends meanwhile and another process gets its number, none is killed.
func killIf(pid int, still func() bool) bool {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return still() && unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) == nil
}

func inSession(pid, sid int) bool {
	state, session, ok := stat(pid)
	return ok && session == sid && state != 'Z' && state != 'X'
}

func processes() []int {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// stat reads the state and the session of a process from /proc/PID/stat: pid (name) state
// parent group session. ok is false if there is no such process. The name may contain any
// character, so the fields are counted from its end.
func stat(pid int) (state byte, session int, ok bool) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0, false
	}
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(fields) < 4 {
		return 0, 0, false
	}
	session, err = strconv.Atoi(string(fields[3]))
	return fields[0][0], session, err == nil
}

// closeOnExec keeps processes from inheriting files that were open when this program started.
// Go opens its own files accordingly.
func closeOnExec() {
	const first = 3 // after the standard streams
	if unix.CloseRange(first, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	dir, err := os.ReadDir("/proc/self/fd") // before Linux 5.11
	if err != nil {
		return
	}
	for _, e := range dir {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd >= first {
			unix.CloseOnExec(fd)
		}
	}
}
