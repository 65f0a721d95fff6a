//go:build !unix

package jail

import (
	"os"
	"os/exec"
)

// ownGroup does nothing: without process groups only the process itself is ended.
func ownGroup(*exec.Cmd) {}

func killGroup(pid int) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return p.Kill()
}

func status(s *os.ProcessState) (code, signal *int) {
	n := s.ExitCode()
	return &n, nil
}

func reap(c *exec.Cmd) error { return c.Wait() }

func closeOnExec() {}
