//go:build unix

package jail

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup makes the process lead a new group, in a session without a terminal. So it can
// neither read the keyboard nor be stopped by it.
func ownGroup(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	dieWithUs(c.SysProcAttr)
}

func killGroup(pid int) error { return syscall.Kill(-pid, syscall.SIGKILL) }

func status(s *os.ProcessState) (code, signal *int) {
	ws, ok := s.Sys().(syscall.WaitStatus)
	if ok && ws.Signaled() {
		n := int(ws.Signal())
		return nil, &n
	}
	n := s.ExitCode()
	return &n, nil
}
