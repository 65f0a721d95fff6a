//go:build unix

package jail

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/rootedfs"
	"github.com/stockade-dev/stockade/host/services"
	"github.com/stockade-dev/stockade/host/tool"
)

// Options of these tests' jails, see [TestOtherTiersAndUsers].
var (
	tier   = flag.Int("tier", 3, "the highest tier of the jail; -1 is tier 0")
	noRoot = flag.Bool("no-root", false, "a command gets no root of its own")
)

var shared struct {
	sync.Once
	*Jail
}

// needHelper skips a test if the helper was not built, as [gueststest.Need] does for the
// built-in tools. Tests at tier 0 do not need it.
func needHelper(t testing.TB) {
	t.Helper()
	if *tier >= 0 && !HasHelper() && os.Getenv("REQUIRE_GUESTS") != "1" {
		t.Skip("the helper of the jail is not built: run `make helper`")
	}
}

// testJail returns the jail that tests share.
func testJail(t testing.TB) *Jail {
	t.Helper()
	needHelper(t)
	shared.Do(func() { shared.Jail = New(Options{maxTier: policy.Tier(*tier), noRoot: *noRoot}) })
	if want := policy.Tier(max(*tier, 0)); shared.Tiers().Tier != want {
		t.Fatalf("it is %+v, want %s", shared.Tiers(), want)
	}
	return shared.Jail
}

func newJail(t testing.TB, opts Options) *Jail {
	t.Helper()
	needHelper(t)
	opts.maxTier, opts.noRoot = policy.Tier(*tier), *noRoot
	j := New(opts)
	t.Cleanup(func() { _ = j.Close() })
	return j
}

// grantFor returns the grant for a call of bash that a person has approved.
func grantFor(t testing.TB, dir, command string, limits policy.Limits) policy.Grant {
	t.Helper()
	return grantWith(t, dir, command, policy.Options{Limits: limits, Mounts: []policy.Mount{{Host: dir, Write: true}}})
}

func grantWith(t testing.TB, dir, command string, opts policy.Options) policy.Grant {
	t.Helper()
	return grantOf(t, dir, map[string]any{"command": command}, opts)
}

func grantOf(t testing.TB, dir string, arguments map[string]any, opts policy.Options) policy.Grant {
	t.Helper()
	g, err := decisionOf(t, dir, arguments, opts).Approve(policy.Answer{Allow: true}, 1)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// decisionOf returns the decision of a policy about a call of bash.
func decisionOf(t testing.TB, dir string, arguments map[string]any, opts policy.Options) policy.Decision {
	t.Helper()
	args, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	entry := &tool.Entry{
		Spec:   tool.Spec{Definition: tool.Definition{Name: "bash"}, Capabilities: tool.Capabilities{Exec: "command", ExecNetwork: "network"}},
		Module: &tool.Module{Origin: tool.OriginBuiltin},
	}
	opts.Tier = func() policy.Tier { return testJail(t).Tiers().Tier }
	opts.Rules = append(opts.Rules, historyRules(opts)...)
	return policy.New(opts).Decide(tool.Call{ID: "c", Tool: "bash", Args: args, Cwd: dir}, entry, policy.Facts{})
}

// historyRules lets commands read every history, unless a rule is about histories, or a
// person can be asked.
func historyRules(opts policy.Options) []policy.Rule {
	if opts.CanAsk || slices.ContainsFunc(opts.Rules, func(r policy.Rule) bool { return r.HistoryDir != "" }) {
		return nil
	}
	return []policy.Rule{{Effect: policy.Allow, Tool: "bash", HistoryDir: "/", Source: policy.SourceFlag}}
}

func bash(dir, command string) services.Command {
	return services.Command{Argv: []string{"bash", "-c", command}, Dir: dir}
}

// run approves a command and runs it.
func run(t *testing.T, dir, command string, limits policy.Limits) services.CommandResult {
	t.Helper()
	out, err := testJail(t).Run(t.Context(), grantFor(t, dir, command, limits), bash(dir, command))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func ended(t *testing.T, out services.CommandResult, code int) {
	t.Helper()
	if out.Code == nil || *out.Code != code || out.Signal != nil || out.TimedOut {
		t.Fatalf("it did not exit with %d: %s", code, describe(out))
	}
}

func describe(o services.CommandResult) string {
	text := fmt.Sprintf("timed out %v, stdout %.300q, stderr %.300q", o.TimedOut, o.Stdout, o.Stderr)
	if o.Code != nil {
		text = fmt.Sprintf("code %d, ", *o.Code) + text
	}
	if o.Signal != nil {
		text = fmt.Sprintf("signal %d, ", *o.Signal) + text
	}
	return text
}

func TestNothingButTheApprovedCommandStarts(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	mark := filepath.Join(dir, "mark")
	good := "touch mark"
	for name, cmd := range map[string]services.Command{
		"another command":        bash(dir, "touch mark; true"),
		"another directory":      bash(other, good),
		"no directory":           bash("", good),
		"the same by its path":   {Argv: []string{"/bin/bash", "-c", good}, Dir: dir},
		"no shell":               {Argv: []string{"touch", mark}, Dir: dir},
		"an argument more":       {Argv: []string{"bash", "-c", good, "x"}, Dir: dir},
		"an option before":       {Argv: []string{"bash", "-x", "-c", good}, Dir: dir},
		"nothing":                {Dir: dir},
		"an empty program":       {Argv: []string{""}, Dir: dir},
		"another directory name": {Argv: []string{"bash", "-c", good}, Dir: dir + "/."},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := testJail(t).Run(t.Context(), grantFor(t, dir, good, policy.Limits{}), cmd)
			if services.KindOf(err) != services.Denied {
				t.Errorf("got %v", err)
			}
			for _, d := range []string{dir, other} {
				if _, err := os.Stat(filepath.Join(d, "mark")); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("it ran in %s", d)
				}
			}
		})
	}
	if _, err := testJail(t).Run(t.Context(), policy.Grant{}, bash(dir, good)); services.KindOf(err) != services.Denied || !errors.Is(err, policy.ErrNoGrant) {
		t.Errorf("the zero grant: %v", err)
	}
	if _, err := os.Stat(mark); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the zero grant ran it")
	}
	ended(t, run(t, dir, good, policy.Limits{}), 0)
	if _, err := os.Stat(mark); err != nil {
		t.Errorf("the approved command did not run: %v", err)
	}
}

func TestOneApprovalIsOneRun(t *testing.T) {
	needHelper(t)
	dir := t.TempDir()
	command := "echo run >> log"
	g := grantFor(t, dir, command, policy.Limits{})
	if _, err := testJail(t).Run(t.Context(), g, bash(dir, command)); err != nil {
		t.Fatal(err)
	}
	if _, err := testJail(t).Run(t.Context(), g, bash(dir, command)); services.KindOf(err) != services.Denied {
		t.Errorf("the second run: %v", err)
	}
	if log, _ := os.ReadFile(filepath.Join(dir, "log")); string(log) != "run\n" {
		t.Errorf("it ran as often as %q", log)
	}
}

func TestTheEnvironmentIsFixed(t *testing.T) {
	poison := t.TempDir()
	mark := filepath.Join(poison, "mark")
	for _, name := range []string{"bash", "env", "ls"} {
		if err := os.WriteFile(filepath.Join(poison, name), []byte("#!/bin/sh\ntouch "+mark+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	rc := filepath.Join(poison, "rc")
	if err := os.WriteFile(rc, []byte("touch "+mark+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for k, v := range map[string]string{
		"PATH": poison + ":" + os.Getenv("PATH"), "AWS_SECRET_ACCESS_KEY": "hunter2", "OPENAI_API_KEY": "hunter2",
		"LD_PRELOAD": filepath.Join(poison, "x.so"), "LD_LIBRARY_PATH": poison, "BASH_ENV": rc, "ENV": rc,
		"BASH_FUNC_env%%": "() { touch " + mark + "; }", "PROMPT_COMMAND": "touch " + mark, "SHELLOPTS": "xtrace", "IFS": "/",
		"GIT_SSH_COMMAND": "touch " + mark, "SSH_AUTH_SOCK": "/run/agent", "HOME": poison, "http_proxy": "http://127.0.0.1:1",
		"PERL5OPT": "-Mx", "PYTHONSTARTUP": rc, "GOFLAGS": "-toolexec=x", "NODE_OPTIONS": "--require x",
	} {
		t.Setenv(k, v)
	}
	dir := t.TempDir()
	out := run(t, dir, "env -0", policy.Limits{})
	ended(t, out, 0)
	got := map[string]string{}
	for pair := range strings.SplitSeq(strings.TrimSuffix(string(out.Stdout), "\x00"), "\x00") {
		k, v, _ := strings.Cut(pair, "=")
		got[k] = v
	}
	want := map[string]string{
		"PATH": systemPath, "PWD": dir, "LANG": "C.UTF-8", "TERM": "dumb", "PAGER": "cat", "GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_NOSYSTEM": "1",
		"HOME": got["HOME"], "TMPDIR": got["TMPDIR"],
		"SHLVL": got["SHLVL"], "_": got["_"], // bash's own
	}
	if _, ok := got["OLDPWD"]; ok {
		want["OLDPWD"] = "" // and this, in some versions
	}
	for k, v := range got {
		if w, ok := want[k]; !ok || v != w {
			t.Errorf("%s=%s, want %q", k, v, w)
		}
	}
	for k := range want {
		if _, ok := got[k]; !ok {
			t.Errorf("%s is missing", k)
		}
	}
	for _, name := range []string{"HOME", "TMPDIR"} {
		if got[name] == poison || !filepath.IsAbs(got[name]) {
			t.Errorf("%s is %q", name, got[name])
		}
	}
	if strings.Contains(string(out.Stderr), "+") {
		t.Errorf("the shell traces: %s", out.Stderr)
	}
	if _, err := os.Stat(mark); !errors.Is(err, fs.ErrNotExist) {
		t.Error("something of the poisoned directory ran")
	}
}

func TestStandardInputIsEmpty(t *testing.T) {
	typed := filepath.Join(t.TempDir(), "typed")
	if err := os.WriteFile(typed, []byte("what the user types\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(typed)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	defer func(old *os.File) { os.Stdin = old }(os.Stdin)
	os.Stdin = f
	out := run(t, t.TempDir(), `read -r line; echo "$? [$line]"; cat; readlink /proc/self/fd/0`, policy.Limits{})
	ended(t, out, 0)
	if got, _, _ := strings.Cut(string(out.Stdout), "\n"); got != "1 []" {
		t.Errorf("got %q", out.Stdout)
	}
}

func TestThereIsNoTerminal(t *testing.T) {
	out := run(t, t.TempDir(), `: < /dev/tty`, policy.Limits{})
	if out.Code == nil || *out.Code == 0 {
		t.Errorf("/dev/tty opens: %s", describe(out))
	}
}

func TestHomeIsFreshAndGoneAfterwards(t *testing.T) {
	for name, command := range map[string]string{
		"with files":                     "echo secret > $HOME/f; mkdir -p $HOME/a/b; touch $HOME/a/b/c",
		"with directories nobody writes": "mkdir -p $HOME/a/b; touch $HOME/a/b/c; chmod 0500 $HOME/a/b; chmod 0000 $HOME/a",
		"with a link out of it":          "ln -s $PWD $HOME/out; ln -s $PWD/keep $HOME/f",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "keep"), nil, 0o640); err != nil {
				t.Fatal(err)
			}
			const own = "left-by-a-test-of-the-jail"
			for _, home := range []string{"$HOME", "$TMPDIR"} { // a workspace may be below the second
				script := strings.ReplaceAll(command, "$HOME", home) + "; touch " + home + "/" + own + "; echo " + home
				out := run(t, dir, `ls -A "$HOME"; stat -c %a "$HOME"; ls "$TMPDIR" | grep `+own+`; `+script, policy.Limits{})
				ended(t, out, 0)
				testJail(t).background.Wait() // directories are removed when the call has ended
				rootedfs.AwaitRemovals(time.Minute)
				lines := strings.Split(strings.TrimSpace(string(out.Stdout)), "\n")
				if len(lines) != 2 || lines[0] != "700" {
					t.Fatalf("got %q, want an empty directory of mode 700", lines)
				}
				if _, err := os.Lstat(filepath.Join(lines[1], own)); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%s is still there: %v", lines[1], err)
				}
			}
			if st, err := os.Stat(filepath.Join(dir, "keep")); err != nil || st.Mode().Perm() != 0o640 {
				t.Errorf("the workspace was touched: %v %v", st, err)
			}
		})
	}
}

// removeTree makes closed directories accessible before it removes them. As root this
// test cannot fail, because root can write anywhere.
func TestRemoveTreeOpensWhatIsClosed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "scratch")
	if err := os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"a/b", "a"} {
		if err := os.Chmod(filepath.Join(dir, d), 0o000); err != nil {
			t.Fatal(err)
		}
	}
	removeTree(dir)
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("still there: %v", err)
	}
}

func TestTheParentsFilesAreNotPassedOn(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc, which only Linux has")
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("hunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(secret)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// One that this program got from its own parent: it is not closed on exec.
	inherited, err := syscall.Open(secret, syscall.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(inherited)
	// Not all tiers let a command list them.
	out := run(t, t.TempDir(), `for i in {0..1023}; do [ -L /proc/$$/fd/$i ] && echo "$i $(readlink /proc/$$/fd/$i)"; done; cat <&`+strconv.Itoa(inherited), policy.Limits{})
	if got := regexp.MustCompile(`:\[\d+\]`).ReplaceAllString(string(out.Stdout), ""); got != "0 /dev/null\n1 pipe\n2 pipe\n" {
		t.Errorf("the command has %q", got)
	}
}

func TestFilesMoveBetweenDirectories(t *testing.T) {
	ended(t, run(t, t.TempDir(), "mkdir a b && : > a/f && ln a/f b/g && mv a b/a && [ b/a/f -ef b/g ]", policy.Limits{}), 0)
}

func TestExitCodesAndSignals(t *testing.T) {
	for command, want := range map[string]string{
		"true": "0", "false": "1", "exit 7": "7", "exit 256": "0", "exit 255": "255", "no-such-program-at-all": "127",
		"/": "126", "kill -9 $$": "signal 9", "kill -TERM $$": "signal 15", "bash -c 'kill -9 $$'; exit 3": "3", "(": "2",
	} {
		out := run(t, t.TempDir(), command, policy.Limits{})
		got := "neither"
		switch {
		case out.Code != nil && out.Signal == nil:
			got = strconv.Itoa(*out.Code)
		case out.Signal != nil && out.Code == nil:
			got = fmt.Sprintf("signal %d", *out.Signal)
		}
		if got != want || out.TimedOut {
			t.Errorf("%s: got %s, want %s", command, got, want)
		}
	}
}

func TestStreams(t *testing.T) {
	dir := t.TempDir()
	command := "for i in 1 2 3; do echo out$i; echo err$i >&2; done"
	apart, err := testJail(t).Run(t.Context(), grantFor(t, dir, command, policy.Limits{}), bash(dir, command))
	if err != nil || string(apart.Stdout) != "out1\nout2\nout3\n" || string(apart.Stderr) != "err1\nerr2\nerr3\n" || apart.Truncated {
		t.Errorf("apart: %s, %v", describe(apart), err)
	}
	cmd := bash(dir, command)
	cmd.MergeStderr = true
	merged, err := testJail(t).Run(t.Context(), grantFor(t, dir, command, policy.Limits{}), cmd)
	if err != nil || string(merged.Stdout) != "out1\nerr1\nout2\nerr2\nout3\nerr3\n" || len(merged.Stderr) != 0 {
		t.Errorf("merged: %s, %v", describe(merged), err)
	}
}

func TestOutputKeepsItsHeadAndItsTail(t *testing.T) {
	out := run(t, t.TempDir(), "echo HEAD; yes | head -c 200000; echo TAIL; yes E | head -c 200000 >&2", policy.Limits{ExecOutputBytes: 1000})
	ended(t, out, 0)
	if !out.Truncated || !bytes.HasPrefix(out.Stdout, []byte("HEAD\ny\n")) || !bytes.HasSuffix(out.Stdout, []byte("y\nTAIL\n")) {
		t.Errorf("got %s", describe(out))
	}
	if !bytes.Contains(out.Stdout, []byte("\n... 199010 bytes left out ...\n")) {
		t.Errorf("it does not say what is missing: %s", out.Stdout)
	}
	for name, s := range map[string][]byte{"stdout": out.Stdout, "stderr": out.Stderr} {
		if len(s) < 1000 || len(s) > 1100 {
			t.Errorf("%s has %d bytes for a limit of 1000", name, len(s))
		}
	}
}

func TestACallCanLowerTheLimitsAndNotRaiseThem(t *testing.T) {
	dir := t.TempDir()
	command := "yes | head -c 100000"
	for asked, want := range map[int]int{0: 1000, 500: 500, 1 << 30: 1000, -1: 1000} {
		cmd := bash(dir, command)
		cmd.MaxOutput = asked
		out, err := testJail(t).Run(t.Context(), grantFor(t, dir, command, policy.Limits{ExecOutputBytes: 1000}), cmd)
		if err != nil || len(out.Stdout) < want || len(out.Stdout) > want+100 {
			t.Errorf("asked for %d: %d bytes, %v", asked, len(out.Stdout), err)
		}
	}
	for asked, limit := range map[time.Duration]time.Duration{20 * time.Millisecond: time.Hour, time.Hour: 20 * time.Millisecond, -1: 20 * time.Millisecond} {
		cmd := bash(dir, "sleep 1000")
		cmd.Timeout = asked
		out, err := testJail(t).Run(t.Context(), grantFor(t, dir, "sleep 1000", policy.Limits{ExecTimeout: limit, ExecTimeoutMax: limit}), cmd)
		if err != nil || !out.TimedOut {
			t.Errorf("asked for %v of %v: %s, %v", asked, limit, describe(out), err)
		}
	}
}

func TestMuchOutputDoesNotGrowMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	out := run(t, t.TempDir(), "yes | head -c 200M", policy.Limits{ExecOutputBytes: 64 << 10})
	runtime.ReadMemStats(&after)
	ended(t, out, 0)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 8<<20 {
		t.Errorf("%d bytes were allocated for 64 KiB that are kept", grown)
	}
}

func TestHeadTail(t *testing.T) {
	text := make([]byte, 5000)
	for i := range text {
		text[i] = byte('a' + i%26)
	}
	for _, limit := range []int{-5, 0, 1, 2, 3, 10, 64, 999, 1000} {
		for _, chunk := range []int{1, 2, 3, 7, 31, 32, 33, 499, 500, 501, 1000, 5000} {
			for _, n := range []int{0, 1, 2, 9, 10, 11, 63, 64, 65, 998, 999, 1000, 1001, 5000} {
				h := newHeadTail(limit)
				for rest := text[:n]; len(rest) > 0; {
					k := min(chunk, len(rest))
					if got, err := h.Write(rest[:k]); got != k || err != nil {
						t.Fatalf("wrote %d of %d: %v", got, k, err)
					}
					rest = rest[k:]
				}
				half := max(limit/2, 1)
				want := string(text[:n])
				if lost := n - 2*half; lost > 0 {
					want = fmt.Sprintf("%s\n... %d bytes left out ...\n%s", text[:half], lost, text[n-half:n])
				}
				if got := string(h.bytes()); got != want || h.isCut() != (n > 2*half) {
					t.Fatalf("limit %d, %d bytes in pieces of %d: got %.80q, want %.80q", limit, n, chunk, got, want)
				}
			}
		}
	}
}

// marks is the number of the last mark, see [newMark].
var marks atomic.Int64

// newMark returns the number of seconds that a command of a test sleeps. It is longer than
// the test may take, and no other process has this number.
func newMark() string { return fmt.Sprintf("1000.%d%06d", os.Getpid(), marks.Add(1)) }

// marked returns the processes with a mark among their arguments, by their ids outside. Ended
// processes have no arguments.
func marked(t *testing.T, mark string) map[int]string {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*")
	if err != nil || len(names) == 0 {
		t.Fatalf("list processes: %v, %v", names, err)
	}
	found := map[int]string{}
	for _, name := range names {
		args, _ := os.ReadFile(name + "/cmdline")
		if pid, err := strconv.Atoi(filepath.Base(name)); err == nil && bytes.Contains(args, []byte(mark)) {
			found[pid] = string(bytes.ReplaceAll(args, []byte{0}, []byte{' '}))
		}
	}
	return found
}

// gone fails the test if a process with the mark is left. A jail waits for the end of all
// processes; without one they were killed, and may need a moment.
func gone(t *testing.T, mark string) {
	t.Helper()
	for polls := 0; ; polls++ {
		left := marked(t, mark)
		if len(left) == 0 {
			return
		}
		if *tier > 0 || polls == 2000 {
			for pid := range left {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			t.Fatalf("left: %v", left)
		}
		runtime.Gosched()
	}
}

// lingering starts processes that sleep for MARK. The shell waits for a sign that they have
// started.
var lingering = map[string]string{
	"a child in the background":       `sleep MARK &`,
	"several":                         `for i in 1 2 3 4; do sleep MARK & done`,
	"a grandchild":                    `(sleep MARK & : > ready) & wait`,
	"one that ignores the signals":    `bash -c 'trap "" TERM INT HUP; : > ready; sleep MARK; :' &`,
	"one without the streams":         `sleep MARK < /dev/null > /dev/null 2>&1 &`,
	"one that nohup protects":         `nohup sleep MARK > /dev/null 2>&1 &`,
	"one that the shell has disowned": `sleep MARK & disown`,
	"a job in a group of its own":     `set -m; sleep MARK &`,
	"what timeout puts in a group":    `timeout 1000 bash -c ': > ready; sleep MARK; :' &`,
}

// awaited returns a command that waits for a sign of its processes that they have started.
func awaited(command string) string {
	if strings.Contains(command, "> ready") {
		command += "\nuntil [ -e ready ]; do :; done"
	}
	return command + "\n"
}

func TestWhatACommandLeavesBehindDiesWithIt(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc, which only Linux has")
	}
	for name, command := range lingering {
		t.Run(name, func(t *testing.T) {
			mark := newMark()
			command := strings.ReplaceAll(awaited(command), "MARK", mark)
			out := run(t, t.TempDir(), command+"exit 5", policy.Limits{ExecTimeout: time.Minute})
			ended(t, out, 5)
			gone(t, mark)
		})
	}
}

func TestTheDeadlineEndsEverything(t *testing.T) {
	needHelper(t)
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc, which only Linux has")
	}
	for name, command := range map[string]string{
		"the shell itself":                 ``,
		"a shell that ignores the signals": `trap "" TERM INT HUP`,
		"a stopped one":                    `sleep MARK & kill -STOP $!`,
	} {
		t.Run(name, func(t *testing.T) { endAtDeadline(t, command+"\n") })
	}
	for name, command := range lingering {
		t.Run(name, func(t *testing.T) { endAtDeadline(t, awaited(command)) })
	}
}

// endAtDeadline runs a command under a context whose deadline passes when the command has
// started its processes, so that a slow machine changes nothing.
func endAtDeadline(t *testing.T, command string) {
	t.Helper()
	dir, mark := t.TempDir(), newMark()
	fifo := filepath.Join(dir, "go")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, expire := newDeadline(t)
	script := strings.ReplaceAll(command+"echo x > go\nsleep MARK\n:", "MARK", mark)
	g := grantFor(t, dir, script, policy.Limits{ExecTimeout: time.Hour, ExecTimeoutMax: time.Hour})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = os.ReadFile(fifo) // returns when the command has written to it
		if len(marked(t, mark)) == 0 {
			t.Error("the mark is not seen")
		}
		expire()
	}()
	out, err := testJail(t).Run(ctx, g, bash(dir, script))
	<-done
	if err != nil {
		t.Fatal(err)
	}
	if !out.TimedOut || out.Signal == nil || *out.Signal != int(syscall.SIGKILL) {
		t.Errorf("got %s", describe(out))
	}
	gone(t, mark)
}

// deadline is a context whose deadline passes when the test says so.
type deadline struct {
	context.Context
	done chan struct{}
}

func newDeadline(t *testing.T) (context.Context, func()) {
	d := deadline{t.Context(), make(chan struct{})}
	return d, func() { close(d.done) }
}

func (d deadline) Done() <-chan struct{} { return d.done }

func (d deadline) Err() error {
	select {
	case <-d.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func TestOutputUpToTheDeadlineIsKept(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "go")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, expire := newDeadline(t)
	go func() {
		_, _ = os.ReadFile(fifo)
		expire()
	}()
	command := "echo partial; echo x > go; sleep 1000; :"
	out, err := testJail(t).Run(ctx, grantFor(t, dir, command, policy.Limits{ExecTimeout: time.Hour, ExecTimeoutMax: time.Hour}), bash(dir, command))
	if err != nil || !out.TimedOut || string(out.Stdout) != "partial\n" {
		t.Errorf("got %s, %v", describe(out), err)
	}
}

func TestACancelledCallEndsTheCommand(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "go")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = os.ReadFile(fifo)
		cancel()
	}()
	mark := newMark()
	command := "echo x > go; sleep " + mark + "; touch mark"
	out, err := testJail(t).Run(ctx, grantFor(t, dir, command, policy.Limits{ExecTimeout: time.Hour, ExecTimeoutMax: time.Hour}), bash(dir, command))
	if err != nil || out.TimedOut || out.Signal == nil || *out.Signal != int(syscall.SIGKILL) {
		t.Errorf("got %s, %v", describe(out), err)
	}
	gone(t, mark)
	if _, err := os.Stat(filepath.Join(dir, "mark")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the command went on")
	}
}

func TestACallThatWasCancelledStartsNothing(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := testJail(t).Run(ctx, grantFor(t, dir, "touch mark", policy.Limits{}), bash(dir, "touch mark")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "mark")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("it ran")
	}
}

func TestProgramsAreFoundInTheFixedPathOnly(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	t.Chdir(dir)
	if err := os.WriteFile(filepath.Join(dir, "evil"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"evil", "./evil", "sub/evil", "", ".", "..", "no-such-program"} {
		if got, err := lookPath(name); services.KindOf(err) != services.NotFound {
			t.Errorf("%q is %s, %v", name, got, err)
		}
	}
	if got, err := lookPath("bash"); err != nil || !strings.HasSuffix(got, "bin/bash") {
		t.Errorf("bash is %s, %v", got, err)
	}
}

func TestADirectoryThatIsNotThereIsNamed(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, where := range map[string]string{"missing": filepath.Join(dir, "gone"), "a file": file} {
		_, err := testJail(t).Run(t.Context(), grantFor(t, where, "true", policy.Limits{}), bash(where, "true"))
		if err == nil || !strings.Contains(err.Error(), "working directory") || !strings.Contains(err.Error(), where) || services.KindOf(err) == services.NotFound {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestALinkInPlaceOfTheDirectoryIsRefused: the directory was approved by its path.
func TestALinkInPlaceOfTheDirectoryIsRefused(t *testing.T) {
	needHelper(t)
	base := t.TempDir()
	dir, evil := filepath.Join(base, "ws"), filepath.Join(base, "evil")
	for _, d := range []string{dir, evil} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	g := grantFor(t, dir, "touch mark", policy.Limits{})
	if err := errors.Join(os.Rename(dir, dir+".old"), os.Symlink("evil", dir)); err != nil {
		t.Fatal(err)
	}
	if _, err := testJail(t).Run(t.Context(), g, bash(dir, "touch mark")); services.KindOf(err) != services.Denied {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(evil, "mark")); err == nil {
		t.Error("it ran where the link leads")
	}
}

// TestOutputIsWhatATerminalShows: text that was drawn over does not count, and is kept
// separately.
func TestOutputIsWhatATerminalShows(t *testing.T) {
	frames := `for i in $(seq 3000); do printf '\r\033[K%s%% of it' $i; done; echo; `
	for name, c := range map[string]struct {
		command     string
		limit       int
		out, wrote  string // of wrote, the end
		cut, rawCut bool
	}{
		"plain text":             {command: "printf 'a\\tb \\n'", out: "a\tb \n"},
		"frames":                 {command: "echo begin; " + frames + "echo end", limit: 1 << 20, out: "begin\n3000% of it\nend\n", wrote: "\r\x1b[K3000% of it\nend\n"},
		"more frames than limit": {command: "echo begin; " + frames + "echo end", limit: 100, out: "begin\n3000% of it\nend\n", wrote: "% of it\nend\n", rawCut: true},
		"lines between frames":   {command: "for n in 1 2 3; do echo $n; " + frames + "done", limit: 200, out: "1\n3000% of it\n2\n3000% of it\n3\n3000% of it\n", wrote: "% of it\n", rawCut: true},
		"much text, then frames": {command: "echo begin; seq 1000 1499; " + frames + "echo end", limit: 100, cut: true, rawCut: true,
			out: "begin\n1000\n1001\n1002\n1003\n1004\n1005\n1006\n1007\n1008\n... 2422 bytes left out ...\n493\n1494\n1495\n1496\n1497\n1498\n1499\n3000% of it\nend\n", wrote: "\nend\n"},
		"much text behind frames": {command: frames + "seq 1000 1499; echo end", limit: 100, cut: true, rawCut: true, wrote: "\n1499\nend\n",
			out: "3000% of it\n1000\n1001\n1002\n1003\n1004\n1005\n1006\n100\n... 2416 bytes left out ...\n\n1491\n1492\n1493\n1494\n1495\n1496\n1497\n1498\n1499\nend\n"},
		"a frame over both streams": {command: `printf 10%%; printf '\r20%%\n' >&2`, out: "20%\n", wrote: "10%\r20%\n"},
		"for no reader":             {command: `printf 'a\r\033[Kb\r\n'`, out: "a\r\x1b[Kb\r\n"},
		"nothing is left":           {command: `printf 'working\r\033[K'`, wrote: "working\r\x1b[K"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			cmd := bash(dir, c.command)
			cmd.MergeStderr, cmd.RenderTerminal = true, name != "for no reader"
			out, err := testJail(t).Run(t.Context(), grantFor(t, dir, c.command, policy.Limits{ExecOutputBytes: c.limit}), cmd)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(out.Stdout); got != c.out || out.Truncated != c.cut {
				t.Errorf("%s, cut %v", describe(out), out.Truncated)
			}
			if got := string(out.RawOutput); !strings.HasSuffix(got, c.wrote) || (got == "") != (c.wrote == "") || strings.Contains(got, " bytes left out ...\n") != c.rawCut {
				t.Errorf("it wrote %.300q", got)
			}
			if c.limit > 0 && len(out.RawOutput) > c.limit+100 {
				t.Errorf("%d bytes are kept for a limit of %d", len(out.RawOutput), c.limit)
			}
		})
	}
}
