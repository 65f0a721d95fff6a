package jail

import (
	"os/exec"

	"golang.org/x/sys/unix"
)

// reap kills what the command left in its group, then waits for it. The kill
// comes between the end of the leader and its reaping: until then the group's
// number cannot be another's, and nothing that stays behind can hold the
// streams open.
func reap(c *exec.Cmd) error {
	for unix.Waitid(unix.P_PID, c.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	_ = killGroup(c.Process.Pid)
	return c.Wait()
}
