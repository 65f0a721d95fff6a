package jail

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/services"
)

var kills = flag.Int("kills", 52, "how many trees of processes are killed")

// shapes lists trees of processes, which sleep for MARK.
var shapes = []struct{ name, command string }{
	{"a child", ``},
	{"in the background", `sleep MARK &`},
	{"nohup", `nohup sleep MARK >/dev/null 2>&1 &`},
	{"disown", `sleep MARK & disown`},
	{"setsid", `setsid sleep MARK &`},
	{"double fork", `(sleep MARK >/dev/null 2>&1 &)`},
	{"setsid and double fork", `setsid bash -c '(sleep MARK >/dev/null 2>&1 &)' &`},
	{"trapped signals", `bash -c 'trap "" TERM HUP INT; sleep MARK; :' &`},
	{"many", `f() { (( $1 )) && { f $(( $1 - 1 )) & f $(( $1 - 1 )) & }; sleep MARK; }; f 5 &`},
	{"stopped", `sleep MARK & kill -STOP $!`},
	{"a chain", `f() { if (( $1 )); then ( f $(( $1 - 1 )); : ); else sleep MARK; fi; }; f 50 &`},
	{"an orphan that holds the output", `( (setsid sleep MARK) & )`},
	// What looks for it finds its number, and no process any more. Should it
	// survive it ends by itself.
	{"one that forks and exits, again and again", `f() { : MARK; (( $1 )) && f $(( $1 - 1 )) & }; f 20000`},
}

// killer runs a command until something ends it, and returns the time of the end. All
// processes have to be gone by then, or soon.
type killer func(t *testing.T, dir, command string, early time.Duration) time.Time

// TestKills ends commands at all moments, and in all possible ways. No process may be left.
func TestKills(t *testing.T) {
	if *tier < 1 || *kills == 0 {
		return // without confinement nothing finds what has left its session
	}
	// Whoever loses its parent becomes a child of this process.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	defer unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
	j := newJail(t, Options{})
	for _, way := range []struct {
		name string
		kill killer
	}{
		{"the end of the command", func(t *testing.T, dir, command string, _ time.Duration) time.Time {
			ended(t, runAt(t, t.Context(), j, dir, command+"\nexit 5"), 5)
			return time.Now()
		}},
		{"its deadline", func(t *testing.T, dir, command string, early time.Duration) time.Time {
			ctx, expire := newDeadline(t)
			return whileItRuns(t, ctx, j, dir, command, early, expire)
		}},
		{"a cancelled call", func(t *testing.T, dir, command string, early time.Duration) time.Time {
			ctx, cancel := context.WithCancel(t.Context())
			return whileItRuns(t, ctx, j, dir, command, early, cancel)
		}},
		{"the end of this program", func(t *testing.T, dir, command string, early time.Duration) time.Time {
			_ = j.Close() // a helper that starts for the next command would look like one that is left
			return killStandIn(t, dir, command, early)
		}},
	} {
		t.Run(way.name, func(t *testing.T) {
			var took []time.Duration
			for k, shape := range shapes {
				each := 4 * len(shapes)
				for i := range (*kills + each - 1) / each {
					// Every second time it is complete. Otherwise it is about to start.
					var early time.Duration
					if (i+k)%2 == 0 {
						early = rand.N(40 * time.Millisecond)
					}
					took = append(took, survivors(t, shape.name, shape.command, early, way.kill))
				}
			}
			slices.Sort(took)
			t.Logf("%d trees, gone after %v (half of them), %v (99%%), %v (all)", len(took), took[len(took)/2], took[len(took)*99/100], took[len(took)-1])
		})
	}
}

// survivors kills a command, waits until none of its processes is left, and returns the time
// that it took.
func survivors(t *testing.T, name, command string, early time.Duration, kill killer) time.Duration {
	t.Helper()
	dir, mark := t.TempDir(), newMark()
	if err := unix.Mkfifo(filepath.Join(dir, "ready"), 0o600); err != nil {
		t.Fatal(err)
	}
	begin, patience := kill(t, dir, strings.ReplaceAll(command, "MARK", mark), early), newPatience()
	for {
		left := marked(t, mark)
		took := time.Since(begin)
		if len(left) == 0 {
			return took
		}
		if patience.over() {
			for pid := range left {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
			t.Fatalf("%s, after %v: left: %v", name, early, left)
		}
	}
}

// patience is the time for something to happen. Times in which this process or the whole
// machine stands still do not count.
type patience struct {
	left time.Duration
	last time.Time
}

func newPatience() *patience { return &patience{10 * time.Second, time.Now()} }

func (p *patience) over() bool {
	now := time.Now()
	p.left -= min(now.Sub(p.last), 100*time.Millisecond)
	p.last = now
	return p.left < 0
}

func runAt(t *testing.T, ctx context.Context, j *Jail, dir, command string) services.CommandResult {
	t.Helper()
	limits := policy.Limits{ExecTimeout: time.Hour, ExecTimeoutMax: time.Hour}
	out, err := j.Run(ctx, grantFor(t, dir, command, limits), bash(dir, command))
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	return out
}

const sayReady = "\necho x >ready\nsleep 1000\n:"

// whileItRuns ends a command when it is complete, or earlier.
func whileItRuns(t *testing.T, ctx context.Context, j *Jail, dir, command string, early time.Duration, end func()) (ending time.Time) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		ready(t, dir, early)
		ending = time.Now()
		end()
	}()
	_ = runAt(t, ctx, j, dir, command+sayReady)
	<-done
	return ending
}

// ready returns when a command has started completely, or after a time if it is not 0.
func ready(t *testing.T, dir string, early time.Duration) {
	f, err := os.OpenFile(filepath.Join(dir, "ready"), os.O_RDWR, 0)
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close()
	until := early
	if early == 0 {
		until = 10 * time.Second
	}
	_ = f.SetReadDeadline(time.Now().Add(until))
	if _, err := f.Read(make([]byte, 1)); err != nil && (early == 0 || !errors.Is(err, os.ErrDeadlineExceeded)) {
		t.Errorf("it is not complete: %v", err)
	}
}

// killStandIn runs a command in another process like this one and kills that process. It
// waits until the helpers of the process are gone, too.
func killStandIn(t *testing.T, dir, command string, early time.Duration) time.Time {
	t.Helper()
	c := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestStandIn$", "-tier="+strconv.Itoa(*tier), fmt.Sprintf("-no-root=%v", *noRoot))
	c.Env = append(os.Environ(), again+"="+dir, "STOCKADE_TEST_COMMAND="+command, "TMPDIR="+t.TempDir())
	before := children()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(children(), c.Process.Pid) {
		t.Fatal("children are not seen")
	}
	ready(t, dir, early*5) // its start takes longer
	begin := time.Now()
	_ = c.Process.Kill()
	_ = c.Wait()
	waitForOrphans(t, before)
	return begin
}

// waitForOrphans waits until all children are gone that did not exist before.
func waitForOrphans(t *testing.T, before []int) {
	t.Helper()
	for patience := newPatience(); ; {
		left := slices.DeleteFunc(children(), func(pid int) bool {
			return slices.Contains(before, pid) || waited(pid)
		})
		if len(left) == 0 {
			return
		}
		if patience.over() {
			for _, pid := range left {
				for _, name := range []string{"cmdline", "status", "wchan", "stack"} {
					text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
					t.Logf("%d %s: %q", pid, name, text)
				}
			}
			t.Fatalf("children that are left: %v", left)
		}
	}
}

// TestAHelperThatIsKilled: processes that it leaves, if nothing else ends them, do not delay
// the call.
func TestAHelperThatIsKilled(t *testing.T) {
	if *tier < 1 {
		return
	}
	// The command may run before it is known here that it does. Then the kill was too
	// early for this test, which a busy machine can bring about several times.
	for range 10 {
		if !killHelper(t) {
			return
		}
	}
	t.Error("the helper was always killed before its command was known to run")
}

// killHelper kills the helper of a running command, and reports whether that was before the
// host knew that it runs.
func killHelper(t *testing.T) (early bool) {
	j, dir, mark := newJail(t, Options{}), t.TempDir(), newMark()
	if err := unix.Mkfifo(filepath.Join(dir, "ready"), 0o600); err != nil {
		t.Fatal(err)
	}
	command := "sleep " + mark + " & echo x >ready; wait"
	g := grantFor(t, dir, command, policy.Limits{ExecTimeout: time.Hour, ExecTimeoutMax: time.Hour})
	done := make(chan services.CommandResult)
	go func() {
		out, err := j.Run(t.Context(), g, bash(dir, command))
		if early = errors.Is(err, io.EOF); err != nil && !early {
			t.Error(err)
		}
		done <- out
	}()
	ready(t, dir, 0)
	for _, pid := range children() {
		if name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); string(name) == "stockade-jail\x00" {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
	if out := <-done; !early && (out.Signal == nil || !strings.Contains(strings.Join(out.Notes, "\n"), "the helper was killed")) {
		t.Errorf("it ended: %s, %q", describe(out), out.Notes)
	}
	for pid := range marked(t, mark) {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	return early
}

// TestHelpersStartOneByOne: no two helpers wait for this program at the same time.
func TestHelpersStartOneByOne(t *testing.T) {
	if *tier < 2 {
		return // they wait for nothing
	}
	j, dir := newJail(t, Options{}), t.TempDir()
	_, k := j.tiers()
	p, err := j.plan(k, policy.Exec{Mounts: []policy.Mount{{Host: dir}}}, dir)
	if err != nil {
		t.Fatal(err)
	}
	var starters sync.WaitGroup
	for range 4 {
		starters.Go(func() {
			for range 25 {
				h, err := startHelper(t.Context(), p.world)
				if err != nil {
					t.Error(err)
					return
				}
				h.kill()
			}
		})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		starters.Wait()
	}()
	ours, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	// waits reports whether a child is not the helper yet.
	waits := func(pid int) bool {
		exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		return exe == ours
	}
	seen := false
	for {
		select {
		case <-done:
			if !seen {
				t.Error("no start was seen")
			}
			return
		default:
		}
		pids := slices.DeleteFunc(children(), func(pid int) bool { return !waits(pid) })
		seen = seen || len(pids) > 0
		for i := range pids {
			if i > 0 && waits(pids[i]) && waits(pids[0]) {
				t.Fatalf("%v start at the same time", pids)
			}
		}
	}
}

// children returns the children of this process.
func children() (pids []int) {
	tasks, _ := filepath.Glob("/proc/self/task/*/children")
	for _, name := range tasks {
		data, _ := os.ReadFile(name)
		for _, field := range strings.Fields(string(data)) {
			if pid, err := strconv.Atoi(field); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// waited reports whether a child has ended and was waited for.
func waited(pid int) bool {
	got, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
	return got == pid || err != nil
}

// TestStandIn is the process that is killed. While its command runs others start, and a spare
// helper waits.
func TestStandIn(t *testing.T) {
	dir, command := os.Getenv(again), os.Getenv("STOCKADE_TEST_COMMAND")
	if command == "" && !filepath.IsAbs(dir) {
		return
	}
	j := newJail(t, Options{})
	runAt(t, t.Context(), j, dir, "true")
	command += sayReady
	g := grantFor(t, dir, command, policy.Limits{ExecTimeout: time.Hour, ExecTimeoutMax: time.Hour})
	go func() { _, _ = j.Run(t.Context(), g, bash(dir, command)) }()
	var others sync.WaitGroup
	for range 4 {
		others.Go(func() {
			for {
				runAt(t, t.Context(), j, dir, "true")
			}
		})
	}
	others.Wait()
}
