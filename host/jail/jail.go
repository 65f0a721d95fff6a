// Package jail starts the processes of tools, and ends them; and this program
// itself as a helper, for work that must be possible to stop.
//
// So far it does not confine them: a command runs with the user's own rights
// (tier 0). What it does hold to: it runs the approved command only, once,
// with a fixed environment, a home and a temporary directory of its own that
// vanish afterwards, no standard input and no open file of ours, a limit on
// output, from which known secrets are taken before it is cut, and a deadline
// after which its whole process group is killed; on Linux its whole session, so
// that what a shell or timeout(1) puts into groups of their own goes too.
//
// What escapes this: a process that starts a session of its own (setsid, a
// daemon's double fork) outlives the command, and so does whatever it has asked
// others to start (at, systemd-run, a container daemon).
package jail

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/stockade-dev/stockade/host/effect"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/redact"
)

// path is the PATH of every command: where systems keep their programs, and
// nothing that a workspace or the caller's environment can choose.
const path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/go/bin:/opt/homebrew/bin"

// killGrace is how long after the deadline the streams of a killed process are
// still read. A process that left the group can hold them open.
const killGrace = 200 * time.Millisecond

// Jail starts the processes of tools. Its zero value is ready, and knows no
// secret. It is safe for concurrent use.
type Jail struct {
	// Redact takes secrets out of output before that is cut.
	Redact *redact.Redactor
}

// Run implements [effect.Exec].
func (j Jail) Run(ctx context.Context, grant policy.Grant, cmd effect.Command) (effect.Ended, error) {
	if _, err := grant.TakeExec(cmd.Argv, cmd.Dir); err != nil {
		return effect.Ended{}, &effect.Error{Kind: effect.Denied, Err: err}
	}
	limits := grant.Limits()
	timeout := limits.ExecTimeout
	if cmd.Timeout > 0 {
		timeout = min(timeout, cmd.Timeout)
	}
	maxOutput := limits.ExecOutputBytes
	if cmd.MaxOutput > 0 {
		maxOutput = min(maxOutput, cmd.MaxOutput)
	}
	program, err := lookPath(cmd.Argv[0])
	if err != nil {
		return effect.Ended{}, err
	}
	// With a process group to set up, os/exec reports a missing directory as a
	// missing program.
	if st, err := os.Stat(cmd.Dir); err != nil {
		return effect.Ended{}, fmt.Errorf("start %s: working directory: %w", cmd.Argv[0], err)
	} else if !st.IsDir() {
		return effect.Ended{}, fmt.Errorf("start %s: working directory: %s is not a directory", cmd.Argv[0], cmd.Dir)
	}
	// The directory was approved by its name; a link in its place leads elsewhere.
	if real, err := filepath.EvalSymlinks(cmd.Dir); err != nil || real != cmd.Dir {
		return effect.Ended{}, &effect.Error{Kind: effect.Denied,
			Err: fmt.Errorf("the directory %s is not what it was when the command was approved", cmd.Dir)}
	}
	scratch, err := os.MkdirTemp("", "stockade-exec-")
	if err != nil {
		return effect.Ended{}, err
	}
	defer removeTree(scratch)

	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	c := exec.CommandContext(ctx, program, cmd.Argv[1:]...)
	c.Args[0] = cmd.Argv[0]
	c.Dir = cmd.Dir
	c.Env = []string{
		"PATH=" + path, "HOME=" + scratch, "TMPDIR=" + scratch, "PWD=" + cmd.Dir,
		"LANG=C.UTF-8", "TERM=dumb", "PAGER=cat", "GIT_TERMINAL_PROMPT=0",
	}
	stdout, stderr := newHeadTail(maxOutput), newHeadTail(maxOutput)
	cleanOut, cleanErr := j.Redact.Writer(stdout), j.Redact.Writer(stderr)
	c.Stdout, c.Stderr = cleanOut, cleanErr
	if cmd.MergeStderr {
		c.Stderr = cleanOut // os/exec makes one pipe of equal writers
	}
	if err := runGroup(c); err != nil {
		return effect.Ended{}, fmt.Errorf("start %s: %w", cmd.Argv[0], err)
	}
	_, _ = cleanOut.Flush(), cleanErr.Flush() // what they write to takes everything
	out := endOf(c.ProcessState, stdout, stderr)
	out.TimedOut = errors.Is(ctx.Err(), context.DeadlineExceeded)
	return out, nil
}

func endOf(p *os.ProcessState, stdout, stderr *headTail) effect.Ended {
	out := effect.Ended{
		CPU:    p.UserTime() + p.SystemTime(),
		Stdout: stdout.bytes(), Stderr: stderr.bytes(), Truncated: stdout.cut() || stderr.cut(),
	}
	out.Code, out.Signal = status(p)
	return out
}

// runGroup starts a process in a group of its own and waits for its end, with
// which all that it has left in the background ends too. When the context of
// the process ends they are killed.
func runGroup(c *exec.Cmd) error {
	// On Linux the process dies with the thread that started it; so the thread
	// stays until the process has ended.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c.WaitDelay = killGrace
	ownGroup(c)
	c.Cancel = func() error { return killGroup(c.Process.Pid) }
	closeOnExec()
	if err := c.Start(); err != nil {
		return err
	}
	if err := reap(c); c.ProcessState == nil {
		return fmt.Errorf("wait for it: %w", err)
	}
	return nil
}

// removeTree removes a directory also where a command has left directories in
// it that may not be written, as Go's module cache does.
func removeTree(dir string) {
	if os.RemoveAll(dir) == nil {
		return
	}
	root, err := os.OpenRoot(dir) // does not follow a link out of dir
	if err != nil {
		return
	}
	defer root.Close()
	_ = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && root.Chmod(name, 0o700) != nil || err != nil {
			return fs.SkipDir
		}
		return nil
	})
	_ = os.RemoveAll(dir)
}

// lookPath finds a program in the fixed path; the caller's PATH has no say.
func lookPath(name string) (string, error) {
	if filepath.IsAbs(name) {
		return name, nil
	}
	if filepath.Base(name) == name {
		for _, dir := range filepath.SplitList(path) {
			file := filepath.Join(dir, name)
			if st, err := os.Stat(file); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
				return file, nil
			}
		}
	}
	return "", &effect.Error{Kind: effect.NotFound, Err: fmt.Errorf("command not found: %s (looked in %s)", name, path)}
}

// headTail keeps the first and the last half of its limit of what is written
// to it, and never blocks the writer. It is safe for concurrent use.
type headTail struct {
	mu    sync.Mutex
	half  int
	head  []byte
	tail  []byte // a ring once it is full
	at    int    // where the ring begins
	total int64
}

func newHeadTail(limit int) *headTail { return &headTail{half: max(limit/2, 1)} }

func (h *headTail) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(p)
	h.total += int64(len(p))
	if room := h.half - len(h.head); room > 0 {
		room = min(room, len(p))
		h.head = append(h.head, p[:room]...)
		p = p[room:]
	}
	if over := len(p) - h.half; over > 0 {
		p = p[over:]
	}
	if room := h.half - len(h.tail); room > 0 {
		room = min(room, len(p))
		h.tail = append(h.tail, p[:room]...)
		p = p[room:]
	}
	for len(p) > 0 {
		k := copy(h.tail[h.at:], p)
		h.at = (h.at + k) % h.half
		p = p[k:]
	}
	return n, nil
}

func (h *headTail) cut() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.total > int64(len(h.head)+len(h.tail))
}

func (h *headTail) bytes() []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := append([]byte(nil), h.head...)
	if lost := h.total - int64(len(h.head)+len(h.tail)); lost > 0 {
		out = fmt.Appendf(out, "\n... %d bytes left out ...\n", lost)
	}
	out = append(out, h.tail[h.at:]...)
	return append(out, h.tail[:h.at]...)
}
