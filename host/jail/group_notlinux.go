//go:build unix && !linux

package jail

import (
	"os/exec"
	"syscall"
)

func dieWithUs(*syscall.SysProcAttr) {}

// reap waits for the command and then kills the rest of its group. If no process of the group
// is left, its number could belong to another group by then: these systems have no wait that
// keeps the leader.
func reap(c *exec.Cmd) error {
	err := c.Wait()
	_ = killGroup(c.Process.Pid)
	return err
}

// closeOnExec does nothing here: processes may inherit files that were open when this program
// started.
func closeOnExec() {}
