package jail

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"github.com/stockade-dev/stockade/host/services"
)

const (
	helperOutput = 16 << 10 // bytes of each output stream in the result of RunHelper; of more the middle is cut
	// helperMark is the only variable in the environment of RunHelper's process. It keeps a
	// program that does not know the arguments of a helper from starting helpers without end.
	helperMark = "STOCKADE_HELPER"
)

// RunHelper starts this program again with arguments, in a directory, for work that must be
// stoppable, and waits for its end. The process needs no grant: it runs our code, without our
// environment, standard input and open files. When ctx ends the process is killed; on Linux
// also when this program is killed. A failure of the process is no error: an error means that
// it was not started, or that its end is not known. A helper cannot start a helper.
func RunHelper(ctx context.Context, dir string, args ...string) (services.CommandResult, error) {
	if os.Getenv(helperMark) != "" {
		return services.CommandResult{}, errors.New("a helper starts no helpers")
	}
	self, err := self()
	if err != nil {
		return services.CommandResult{}, fmt.Errorf("find this program: %w", err)
	}
	c := exec.CommandContext(ctx, self, args...)
	c.Args[0] = os.Args[0]
	c.Dir = dir
	c.Env = []string{helperMark + "=1"}
	stdout, stderr := newHeadTail(helperOutput), newHeadTail(helperOutput)
	c.Stdout, c.Stderr = stdout, stderr
	if err := runGroup(c); err != nil {
		return services.CommandResult{}, fmt.Errorf("start this program again: %w", err)
	}
	out := endOf(c.ProcessState)
	out.Stdout, out.Stderr, out.Truncated = stdout.bytes(), stderr.bytes(), stdout.isCut() || stderr.isCut()
	return out, nil
}

// self returns a path of the running program's file. On Linux it is valid even after the file
// was replaced by another version.
func self() (string, error) {
	const link = "/proc/self/exe"
	if runtime.GOOS == "linux" {
		if _, err := os.Stat(link); err == nil {
			return link, nil
		}
	}
	return os.Executable()
}
