package jail

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"time"
)

// Helper is this program itself, to be started again for work that must be
// possible to stop.
type Helper struct {
	Args []string
	Dir  string // absolute
}

// HelperEnded is what became of it.
type HelperEnded struct {
	Code   *int // nil when a signal ended the process
	Signal *int
	CPU    time.Duration // of the user and of the system
	Stdout []byte
	Stderr []byte
}

const (
	helperOutput = 16 << 10 // bytes of each stream that are kept
	// helperMark is all that a helper finds in its environment. It keeps a
	// program that does not know the arguments of a helper from becoming
	// another one of itself, and so on.
	helperMark = "STOCKADE_HELPER"
)

// RunHelper starts this program with the arguments, and waits for its end. The
// process needs no grant because it is not a tool's: it has our code, an empty
// environment, no standard input and no open file of ours. When ctx ends it is
// killed; on Linux also when this program is killed. An error means that it
// was not started.
func RunHelper(ctx context.Context, h Helper) (HelperEnded, error) {
	if os.Getenv(helperMark) != "" {
		return HelperEnded{}, errors.New("a helper starts no helpers")
	}
	self, err := self()
	if err != nil {
		return HelperEnded{}, fmt.Errorf("find this program: %w", err)
	}
	c := exec.CommandContext(ctx, self, h.Args...)
	c.Args[0] = os.Args[0]
	c.Dir = h.Dir
	c.Env = []string{helperMark + "=1"}
	stdout, stderr := newHeadTail(helperOutput, nil), newHeadTail(helperOutput, nil)
	c.Stdout, c.Stderr = stdout, stderr
	if err := runGroup(c); err != nil {
		return HelperEnded{}, fmt.Errorf("start this program again: %w", err)
	}
	out := HelperEnded{
		CPU:    c.ProcessState.UserTime() + c.ProcessState.SystemTime(),
		Stdout: stdout.bytes(), Stderr: stderr.bytes(),
	}
	out.Code, out.Signal = status(c.ProcessState)
	return out, nil
}

// self is a name of the program that runs. On Linux it holds even when the
// file has been replaced by another version.
func self() (string, error) {
	const link = "/proc/self/exe"
	if runtime.GOOS == "linux" {
		if _, err := os.Stat(link); err == nil {
			return link, nil
		}
	}
	return os.Executable()
}
