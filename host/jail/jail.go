// Package jail starts and ends the processes of tools. It also starts this program again as a
// helper, for work that must be stoppable.
//
// A command of a tool runs in a world of its own, which a small program builds (see package
// helper and [Tiers]). The command sees the mounts of its grant, the system's programs and a
// part of the system's settings, and no network, or only a [Proxy]. It has a fixed environment,
// no standard input and no open file of ours; its home and its temporary directory vanish
// afterwards. Its output is limited, and known secrets are removed before it is cut. All its
// processes end when it ends, at its deadline, and when this program is killed. Where nothing
// confines commands, they have the user's rights, and some of their processes can outlive them.
//
// Below the home are the user's toolchains, for reading, and their caches. A command's changes
// to a cache go to a layer. Some of them are kept for later commands of the same workspace,
// until the next boot, or until they were unused for 30 days. A staged command does not change
// the files of its mounts: its changes are collected in a [stage.Set], to be committed or
// dropped later.
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

// systemPath is the end of every command's PATH: the usual directories of programs.
// Toolchains of the home come before it. Neither a workspace nor the caller's environment can
// choose any of these directories.
const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/go/bin:/opt/homebrew/bin"

// killGrace is the time for which the streams of an ended process are still read. A process
// that has left the group can hold them open.
const killGrace = 200 * time.Millisecond

// Options configures a jail. The zero value of each field is its default.
type Options struct {
	// Redact removes known secrets from output before the output is cut. Nil: none are known.
	Redact *redact.Redactor
	// Home is the user's home. Commands see only the toolchains and caches in it, and the parts
	// that their grants mount. "": it is unknown, and commands have a home elsewhere.
	Home string
	// LayersDir is the directory of the layers that hold commands' changes to the user's
	// caches. "": commands have no caches.
	LayersDir string
	// Histories stores findings about the histories of repositories. Nil: they are lost with
	// this process.
	Histories *githistory.Store
	// Caches are names from [CacheNames]: caches that commands may use, with their toolchains
	// in the home. Changes of a command to a cache are visible to that command, and some of
	// them to later commands of the same workspace. Unknown names are ignored.
	Caches []string

	// Areas yields directories that can hold uncommitted changes of commands, the best first.
	// It is called when the first is needed. Nil: no command can run on a stage.
	Areas iter.Seq[*stage.Area]

	Proxy Proxy // serves confined commands that were granted hosts; nil: they are denied

	// For tests.
	maxTier policy.Tier       // highest tier that is tried; 0: policy.MaxTier
	noRoot  bool              // no command gets a root directory of its own
	change  func(*wire.World) // called with the planned world of each command; nil: not called
}

// CacheNames lists the names for Options.Caches.
var CacheNames = []string{"go", "npm", "cargo", "pip"}

// Proxy connects a command to hosts. Package egress implements it.
type Proxy interface {
	// ServeProxy serves the listener, with the rights of the grant, until l is closed or ctx ends.
	ServeProxy(ctx context.Context, l net.Listener, grant policy.Grant) error
}

// maxTries limits the runs of a staged command. It runs again if others have changed the same
// files meanwhile; after the last run that is an error.
const maxTries = 3

// Jail starts the processes of tools. It is safe for concurrent use.
type Jail struct {
	Options
	tiers      func() (Tiers, mechanism) // tries the tiers at the first call
	tiersKnown atomic.Bool               // set when tiers has returned

	bestTierBlocked func() bool // reports whether there is a known obstacle to the best tier

	background sync.WaitGroup // starts and removals of helpers, and removals of layers
	mu         sync.Mutex     // guards spare
	spare      *spareHelper   // helper that was started ahead; nil: none

	mentioned sync.Map // set of the repositories that addHistoryHints has named

	startSem chan struct{} // semaphore: held while a helper starts for which the next command waits

	areaMu    sync.Mutex  // guards area and whyNoArea
	area      *stage.Area // directory for changes of staged commands, see findStageArea; nil: none, or none was tried
	whyNoArea string      // reason why no directory suits; "": area was found, or none was tried
}

// New returns a jail. It starts nothing yet.
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

// Tiers returns the best tier that works on this machine, and the better ways that do not. The
// first call tries them, which takes milliseconds; further calls return the same result.
func (j *Jail) Tiers() Tiers {
	t, _ := j.tiers()
	return t
}

// LikelyTier returns the tier of [Jail.Tiers] if that is known, or if a known obstacle makes
// the best tier unlikely; then it calls Tiers. Otherwise it returns the best tier, which can
// be wrong.
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
		// Nothing has changed the files yet.
		if !errors.Is(err, policy.ErrChanged) || try == maxTries {
			break
		}
	}
	returnUnusedExec(grant, err)
	if cmd.Stage != nil && err != nil && services.KindOf(err) != services.Denied {
		cmd.Stage.Fail(err) // for readers of the changes
	}
	if errors.Is(err, context.DeadlineExceeded) { // the deadline came before it ran
		ended, err = killedEnd(0), nil
	}
	if err != nil {
		return services.CommandResult{}, fmt.Errorf("start %s: %w", cmd.Argv[0], err)
	}
	ended.TimedOut = errors.Is(ctx.Err(), context.DeadlineExceeded)
	remark(&ended)
	return ended, nil
}

// returnUnusedExec gives the grant its permission to start a command back, if the command was
// not started because a history has to be examined, or a person asked about it, first.
func returnUnusedExec(grant policy.Grant, err error) {
	if _, unknown := errors.AsType[*policy.HistoryError](err); unknown {
		grant.ReturnExec()
	}
}

type streams struct {
	stdout, stderr *redact.Writer
	ownRedactor    *redact.Redactor // knows the secrets of this command's output only
	buffers        [2]*outputBuffer
}

// collect stores the output so far in ended.
func (s streams) collect(ended *services.CommandResult) {
	_, _ = s.stdout.Flush(), s.stderr.Flush() // these writers never fail
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

// checkUnchanged returns an error if the tier of this machine is lower than that of the terms,
// or if the working directory is missing, is no directory, or has links in its path.
func (j *Jail) checkUnchanged(terms policy.Exec, cmd services.Command) error {
	if t := j.Tiers().Tier; t < terms.Tier {
		return denied(fmt.Errorf("the command was allowed for %s, and here is %s", terms.Tier, t))
	}
	if st, err := os.Stat(cmd.Dir); err != nil {
		return fmt.Errorf("start %s: working directory: %w", cmd.Argv[0], err)
	} else if !st.IsDir() {
		return fmt.Errorf("start %s: working directory: %s is not a directory", cmd.Argv[0], cmd.Dir)
	}
	// The directory was approved by its path, and a link would lead elsewhere.
	if real, err := filepath.EvalSymlinks(cmd.Dir); err != nil || real != cmd.Dir {
		return denied(fmt.Errorf("the directory %s is not what it was when the command was approved", cmd.Dir))
	}
	return nil
}

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
	c.Stdout, c.Stderr = out.stdout, out.stderr // os/exec uses one pipe for equal writers
	if err := runGroup(c); err != nil {
		return services.CommandResult{}, err
	}
	ended := endOf(c.ProcessState)
	out.collect(&ended)
	return ended, nil
}

// environment returns the variables that every command has. dir is the working directory.
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

// runGroup starts a process in a new group and waits for its end. Then it kills the rest of
// the group. When the context of the process ends, it kills the whole group. A failure of the
// process is no error.
func runGroup(c *exec.Cmd) error {
	// On Linux the process dies with the thread that started it, so the thread stays until
	// the process has ended.
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

func removeTree(dir string) { _ = rootedfs.RemoveAll(dir) }

// lookPath finds a program in systemPath. The caller's PATH does not count. An absolute name
// is returned unchecked; any other name with a slash is not found.
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
