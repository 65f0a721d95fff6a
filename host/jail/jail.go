// Package jail starts the processes of tools, and ends them; and this program
// itself as a helper, for work that must be possible to stop.
//
// A command of a tool runs in a world of its own, which a small program makes (see
// package helper and [Tiers]): it sees the mounts of its grant, the system's
// programs and what it needs of the system's settings, and no network. It runs
// once, with a fixed environment, a home and a temporary directory that vanish
// afterwards, no standard input and no open file of ours. Its output is limited,
// and known secrets are taken out before it is cut. When it ends, or at its
// deadline, or when this program is killed, all that it has started ends.
//
// Below the home are toolchains of the user's, which can be read, and their caches.
// What a command changes in a cache goes to a layer of its own, which is kept for
// later commands of the same workspace, at most 30 days and not after another
// boot. Of two commands at the same time one has a layer that vanishes.
package jail

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/stockade-dev/stockade/host/githistory"
	"github.com/stockade-dev/stockade/host/jail/wire"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/redact"
	"github.com/stockade-dev/stockade/host/rootedfs"
	"github.com/stockade-dev/stockade/host/services"
	"github.com/stockade-dev/stockade/host/stage"
	"github.com/stockade-dev/stockade/host/visible"
)

// systemPath is the end of the PATH of every command: where systems keep their programs.
// Toolchains of the home come before it; nothing that a workspace or the caller's
// environment can choose is in there.
const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/go/bin:/opt/homebrew/bin"

// killGrace is how long after the deadline the streams of a killed process are
// still read. A process that left the group can hold them open.
const killGrace = 200 * time.Millisecond

// Options say what the commands of a jail have. The zero value of each field is
// its default.
type Options struct {
	// Redact takes secrets out of output before that is cut. Nil: none is known.
	Redact *redact.Redactor
	// Home is the user's home, of which a command sees what its grant mounts. Empty:
	// it is not known, and the command's own is elsewhere.
	Home string
	// LayersDir is a directory for what commands write to caches of the user's.
	// Empty: they have no caches.
	LayersDir string
	// Histories has what is known of the histories of repositories. Nil: only what this
	// process finds out.
	Histories *githistory.Store
	// Caches are those of [CacheNames] that commands may use, with the toolchains in the home
	// that go with them. What a command changes in a cache is for itself alone, and some of it
	// for later commands in the same directory. Unknown names are ignored.
	Caches []string

	// Areas are directories in which the changes of staged commands can be kept, the
	// best first. They are asked for when they are needed. Nil: there are none.
	Areas iter.Seq[*stage.Area]

	// Proxy serves commands that were granted hosts; nil: no command reaches any.
	Proxy Proxy

	// For tests: the highest tier to be used, that no root is made for a command,
	// and what is different in its world.
	maxTier policy.Tier
	noRoot  bool
	change  func(*wire.World)
}

// CacheNames are the names of all caches of [Options].
var CacheNames = []string{"go", "npm", "cargo", "pip"}

// Proxy is how a command reaches hosts. Package egress has it.
type Proxy interface {
	// ServeProxy serves a listener in the name of a grant, until it is closed.
	ServeProxy(ctx context.Context, l net.Listener, grant policy.Grant) error
}

// maxTries is how often a staged command runs while others change what it changes.
const maxTries = 3

// Jail starts the processes of tools. It is safe for concurrent use.
type Jail struct {
	Options
	tiers      func() (Tiers, mechanism)
	tiersKnown atomic.Bool // it is known what they are

	bestTierBlocked func() bool // whether something is known to be in the way of the best tier

	background sync.WaitGroup
	mu         sync.Mutex
	spare      *spareHelper // a helper that was started ahead; nil: none

	mentioned sync.Map // repositories that a result has said are hidden from commands

	startSem chan struct{} // is full while one starts for whom the next command waits

	areaMu    sync.Mutex
	area      *stage.Area // that [Jail.WhyNotStaged] has found; nil: none yet
	whyNoArea string      // why there is none
}

// New makes a jail. It starts nothing yet.
func New(opts Options) *Jail {
	if opts.maxTier == 0 {
		opts.maxTier = policy.MaxTier
	}
	if opts.Histories == nil {
		opts.Histories = githistory.New("")
	}
	j := &Jail{Options: opts, startSem: make(chan struct{}, 1)}
	j.bestTierBlocked = sync.OnceValue(bestTierBlocked)
	j.tiers = sync.OnceValues(func() (Tiers, mechanism) {
		defer j.tiersKnown.Store(true)
		return j.findTier()
	})
	return j
}

// Tiers tries, the first time, which tier there is: it takes some milliseconds.
func (j *Jail) Tiers() Tiers {
	t, _ := j.tiers()
	return t
}

// LikelyTier is the tier of [Jail.Tiers] if that was tried, or if it is known what is in the
// way of the best one, and that one otherwise. It can turn out to be wrong, and takes no
// time to tell.
func (j *Jail) LikelyTier() policy.Tier {
	if j.tiersKnown.Load() || j.bestTierBlocked() {
		return j.Tiers().Tier
	}
	return j.maxTier
}

// Run implements [services.Exec].
func (j *Jail) Run(ctx context.Context, grant policy.Grant, cmd services.Command) (services.CommandResult, error) {
	terms, err := grant.TakeExec(cmd.Argv, cmd.Dir)
	if err != nil {
		return services.CommandResult{}, denied(err)
	}
	limits := grant.Limits()
	timeout, maxOutput := limits.ExecTimeout, limits.ExecOutputBytes
	if cmd.Timeout > 0 {
		timeout = min(timeout, cmd.Timeout)
	}
	if cmd.MaxOutput > 0 {
		maxOutput = min(maxOutput, cmd.MaxOutput)
	}
	program, err := lookPath(cmd.Argv[0])
	if err != nil {
		return services.CommandResult{}, err
	}
	if err := j.checkUnchanged(terms, cmd); err != nil {
		return services.CommandResult{}, err
	}
	if cmd.Stage == nil && terms.Changes == policy.ChangesStaged || cmd.Stage != nil && terms.Changes == policy.ChangesDirect {
		return services.CommandResult{}, denied(errors.New("the command was allowed for another kind of changes"))
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var ended services.CommandResult
	for try := 1; ; try++ {
		var live *liveOutput
		if cmd.OnOutput != nil && cmd.MergeStderr && try == 1 {
			live = &liveOutput{show: cmd.OnOutput}
		}
		out := streams{ownRedactor: new(redact.Redactor)}
		clean := func(w io.Writer) *redact.Writer { return out.ownRedactor.Writer(j.Redact.Writer(w)) }
		for i := range out.buffers {
			out.buffers[i] = &outputBuffer{headTail: newHeadTail(maxOutput)}
			if k := out.buffers[i]; cmd.RenderTerminal {
				k.screenText = newHeadTail(maxOutput)
				k.clean = clean(k.screenText)
				k.screen = visible.NewScreen(k.clean)
			}
		}
		out.stdout, out.stderr = clean(io.MultiWriter(out.buffers[0], live)), clean(out.buffers[1])
		if cmd.MergeStderr {
			out.stderr = out.stdout
		}
		ended, err = j.runConfined(ctx, grant, terms, program, cmd, out)
		live.end()
		if err == nil && try > 1 {
			ended.Notes = append(ended.Notes, fmt.Sprintf("somebody else changed the same files while it ran; it ran %d times, and this is the last", try))
		}
		// Nothing has come of it yet.
		if !errors.Is(err, policy.ErrChanged) || try == maxTries {
			break
		}
	}
	returnUnusedExec(grant, err)
	if cmd.Stage != nil && err != nil && services.KindOf(err) != services.Denied {
		cmd.Stage.Fail(err) // whoever looks for its changes is told
	}
	if errors.Is(err, context.DeadlineExceeded) { // before it ran
		ended, err = killedEnd(0), nil
	}
	if err != nil {
		return services.CommandResult{}, fmt.Errorf("start %s: %w", cmd.Argv[0], err)
	}
	ended.TimedOut = errors.Is(ctx.Err(), context.DeadlineExceeded)
	remark(&ended)
	return ended, nil
}

// returnUnusedExec gives a permission back if its command did not run, and can be started again.
func returnUnusedExec(grant policy.Grant, err error) {
	if _, unknown := errors.AsType[*policy.HistoryError](err); unknown {
		grant.ReturnExec()
	}
}

type streams struct {
	stdout, stderr *redact.Writer
	ownRedactor    *redact.Redactor // knows what is secret in the output of this command only
	buffers        [2]*outputBuffer
}

// collect adds to a result what was written until then.
func (s streams) collect(ended *services.CommandResult) {
	_, _ = s.stdout.Flush(), s.stderr.Flush() // what they write to takes everything
	for i, out := range []*[]byte{&ended.Stdout, &ended.Stderr} {
		shown := s.buffers[i].finish()
		*out = shown.bytes()
		ended.Truncated = ended.Truncated || shown.isCut()
		if wrote := s.buffers[i].bytes(); !bytes.Equal(wrote, *out) {
			ended.RawOutput = append(ended.RawOutput, wrote...)
		}
	}
}

func denied(err error) error { return &services.Error{Kind: services.Denied, Err: err} }

// checkUnchanged refuses what has changed since the decision.
func (j *Jail) checkUnchanged(terms policy.Exec, cmd services.Command) error {
	if t := j.Tiers().Tier; t < terms.Tier {
		return denied(fmt.Errorf("the command was allowed for %s, and here is %s", terms.Tier, t))
	}
	if st, err := os.Stat(cmd.Dir); err != nil {
		return fmt.Errorf("start %s: working directory: %w", cmd.Argv[0], err)
	} else if !st.IsDir() {
		return fmt.Errorf("start %s: working directory: %s is not a directory", cmd.Argv[0], cmd.Dir)
	}
	// The directory was approved by its name; a link in its place leads elsewhere.
	if real, err := filepath.EvalSymlinks(cmd.Dir); err != nil || real != cmd.Dir {
		return denied(fmt.Errorf("the directory %s is not what it was when the command was approved", cmd.Dir))
	}
	return nil
}

// runUnconfined runs a command with the user's own rights.
func (j *Jail) runUnconfined(ctx context.Context, program string, cmd services.Command, out streams) (services.CommandResult, error) {
	scratch, err := os.MkdirTemp("", "stockade-exec-")
	if err != nil {
		return services.CommandResult{}, err
	}
	defer func() {
		_ = rootedfs.Discard(scratch, os.TempDir())
		rootedfs.Sweep(os.TempDir())
	}()
	c := exec.CommandContext(ctx, program, cmd.Argv[1:]...)
	c.Args[0] = cmd.Argv[0]
	c.Dir = cmd.Dir
	c.Env = environment(systemPath, scratch, scratch, cmd.Dir)
	c.Stdout, c.Stderr = out.stdout, out.stderr // os/exec makes one pipe of equal writers
	if err := runGroup(c); err != nil {
		return services.CommandResult{}, err
	}
	ended := endOf(c.ProcessState)
	out.collect(&ended)
	return ended, nil
}

// environment is that of every command.
func environment(path, home, tmp, dir string) []string {
	return []string{
		"PATH=" + path, "HOME=" + home, "TMPDIR=" + tmp, "PWD=" + dir,
		"LANG=C.UTF-8", "TERM=dumb", "PAGER=cat", "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_NOSYSTEM=1",
	}
}

func killedEnd(cpu time.Duration) services.CommandResult {
	signal := int(syscall.SIGKILL)
	return services.CommandResult{Signal: &signal, CPU: cpu}
}

func endOf(p *os.ProcessState) services.CommandResult {
	out := services.CommandResult{CPU: p.UserTime() + p.SystemTime()}
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

// removeTree removes a directory with whatever a command has left in it.
func removeTree(dir string) { _ = rootedfs.RemoveAll(dir) }

// lookPath finds a program in the fixed path; the caller's PATH has no say.
func lookPath(name string) (string, error) {
	if filepath.IsAbs(name) {
		return name, nil
	}
	if filepath.Base(name) == name {
		for _, dir := range filepath.SplitList(systemPath) {
			file := filepath.Join(dir, name)
			if st, err := os.Stat(file); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
				return file, nil
			}
		}
	}
	return "", &services.Error{Kind: services.NotFound, Err: fmt.Errorf("command not found: %s (looked in %s)", name, systemPath)}
}
