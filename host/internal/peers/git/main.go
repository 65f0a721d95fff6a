//go:build bench

// Command git measures the built-in tool git, in the sandbox and with a grant, beside git
// itself and the tool's own code as a native program.
//
// Run it in host/internal/peers, on Linux, when the machine is otherwise idle, after
// make build; it needs git:
//
//	go run -tags bench ./git [-rounds N] [-only names] [-json FILE]
//
// The repositories are made once, in bin/peers: one of 10,000 files of the source of Go
// and 600 commits, each of which changes a single file of 2000 lines, and one of 60,000
// commits, few of which change the file asked about, with a commit-graph. All ways take turns,
// and a figure is the ratio of two calls that were made one after the other: its median.
// git and the native program are processes, and their start counts; ours is a call in a
// running process. "noise" is our call against itself. All must print the same.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/stockade-dev/stockade/host/internal/peers/bench"
	"github.com/stockade-dev/stockade/host/internal/peers/call/guest"
)

const (
	files       = 10_000
	commits     = 600
	lines       = 2000
	longCommits = 60_000 // commits of the other repository
)

// operation is a call of the tool, with the git command that prints the same.
type operation struct {
	Name   string
	Args   string
	git    []string
	onLong bool // in the repository of many commits
}

var operations = []operation{
	{"status", `{"operation":"status"}`, []string{"status", "--short", "--branch"}, false},
	{"log", `{"operation":"log","limit":100}`, []string{"log", "--oneline", "-100"}, false},
	{"log-path", `{"operation":"log","path":"long.txt","limit":200}`, []string{"log", "--oneline", "-200", "--", "long.txt"}, false},
	{"diff", `{"operation":"diff","revision":"HEAD~50..HEAD"}`, []string{"diff", "HEAD~50..HEAD"}, false},
	{"show", `{"operation":"show"}`, []string{"show"}, false},
	{"blame", `{"operation":"blame","path":"long.txt","revision":"HEAD","limit":300}`, []string{"blame", "--date=short", "-L1,300", "HEAD", "--", "long.txt"}, false},
	{"long-log-path", `{"operation":"log","path":"rare.txt"}`, []string{"log", "--oneline", "--", "rare.txt"}, true},
	{"long-range", `{"operation":"log","revision":"HEAD~55000..HEAD","limit":100}`, []string{"log", "--oneline", "-100", "HEAD~55000..HEAD"}, true},
	{"long-blame", `{"operation":"blame","path":"rare.txt","revision":"HEAD","limit":300}`, []string{"blame", "--date=short", "-L1,300", "HEAD", "--", "rare.txt"}, true},
}

const (
	native     = "native"
	gitCommand = "git"
)

func main() {
	guest.RunCompileChild()
	debug.SetGCPercent(400) // as the program does
	bench.Main("git", 7, "log*,blame,long-*", run)
}

func run(o bench.Options) (err error) {
	const out = "../../../bin/peers"
	code, err := os.ReadFile("../../../guests/wasm/git.wasm")
	if err != nil {
		return fmt.Errorf("%w: run make guests", err)
	}
	dir, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	program := filepath.Join(dir, "git-native")
	usual, ofLong := filepath.Join(dir, "git-repository"), filepath.Join(dir, "git-long")
	if err := errors.Join(bench.BuildGuest("git", program), makeRepository(usual), makeLong(ofLong)); err != nil {
		return err
	}
	cache, err := guest.Cache(out)
	if err != nil {
		return err
	}
	box := guest.NewSandbox(cache)
	defer func() { err = errors.Join(err, box.Close()) }()
	var jobs []bench.Job
	for _, op := range operations {
		repository := usual
		if op.onLong {
			repository = ofLong
		}
		jobs = append(jobs, bench.Job{Name: op.Name, Measure: func() (*bench.JobResult, error) {
			call, err := guest.New("git", code, repository, op.Args)
			if err == nil {
				err = box.Compile(context.Background(), call.Module)
			}
			if err != nil {
				return nil, err
			}
			m := &bench.JobResult{Name: op.Name, Ways: []string{bench.Ours, gitCommand, native, bench.Noise}}
			return m, op.measure(m, o.Rounds, func(way string) (string, error) {
				switch way {
				case gitCommand:
					out, err := command(repository, op.git...).Output()
					return strings.TrimSuffix(string(out), "\n"), err
				case native:
					return textOf(bench.RunNative(program, repository, []byte(op.Args)))
				}
				out, usage, err := call.Measure(context.Background(), box)
				m.FuelUsed, m.PeakBytes = usage.FuelUsed, usage.PeakMemoryBytes
				return textOf(out, err)
			})
		}})
	}
	return o.Compare(fmt.Sprintf("%d files, %d commits, ", files, commits), jobs, func(m *bench.JobResult) []bench.Figure {
		return []bench.Figure{m.RatioTo(bench.Ours, gitCommand), m.RatioTo(bench.Ours, native)}
	})
}

// measure makes a call in all ways, which must print the same.
func (op operation) measure(m *bench.JobResult, rounds int, call func(way string) (string, error)) error {
	want := ""
	return m.Turns(rounds, func(round int, way string) (time.Duration, error) {
		start := time.Now()
		got, err := call(way)
		took := time.Since(start)
		if round == 0 && way == bench.Ours {
			want = got
		}
		if err == nil && got != want {
			err = fmt.Errorf("prints something else than %s:\n%.2000s\n---\n%.2000s", bench.Ours, got, want)
		}
		return took, err
	})
}

// textOf returns the output of our tool without the notes at its end.
func textOf(result []byte, err error) (string, error) {
	var r struct {
		Output string `json:"output"`
	}
	if err == nil {
		err = json.Unmarshal(result, &r)
	}
	if err != nil {
		return "", err
	}
	text := r.Output
	for strings.HasPrefix(text[strings.LastIndexByte(text, '\n')+1:], "[") {
		text = text[:max(strings.LastIndexByte(text, '\n'), 0)]
	}
	return text, nil
}

func command(dir string, args ...string) *exec.Cmd {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull,
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.org", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.org")
	return cmd
}

// makeRepository makes the repository of many files, unless it exists.
func makeRepository(dir string) error {
	mark := filepath.Join(dir, ".git", "made")
	want := fmt.Sprintf("%d files, %d commits, %s\n", files, commits, runtime.Version())
	if have, err := os.ReadFile(mark); err == nil && string(have) == want {
		return nil
	}
	bench.Progress("make %s", dir)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	made, src := 0, filepath.Join(runtime.GOROOT(), "src")
	err := filepath.WalkDir(src, func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		if made == files {
			return filepath.SkipAll
		}
		made++
		rel, err := filepath.Rel(src, name)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return put(filepath.Join(dir, "src", rel), data)
	})
	if err != nil {
		return err
	}
	// The repository is inside of this module, and must not be a part of it.
	if err := put(filepath.Join(dir, "go.mod"), []byte("module tree\n")); err != nil {
		return err
	}
	if err := git(dir, nil, "init", "-q", "-b", "main"); err != nil {
		return err
	}
	if err := git(dir, nil, "add", "-A"); err != nil {
		return err
	}
	if err := git(dir, nil, "commit", "-q", "-m", "the source"); err != nil {
		return err
	}
	if err := git(dir, history(), "fast-import", "--quiet"); err != nil {
		return err
	}
	if err := git(dir, nil, "reset", "-q", "--hard"); err != nil {
		return err
	}
	if err := git(dir, nil, "repack", "-q", "-a", "-d"); err != nil {
		return err
	}
	return put(mark, []byte(want))
}

// makeLong makes the repository of many commits, unless it exists.
func makeLong(dir string) error {
	mark := filepath.Join(dir, ".git", "made")
	want := fmt.Sprintf("%d commits\n", longCommits)
	if have, err := os.ReadFile(mark); err == nil && string(have) == want {
		return nil
	}
	bench.Progress("make %s", dir)
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o777)); err != nil {
		return err
	}
	var in bytes.Buffer
	text := make([]string, lines/4)
	for i := range text {
		text[i] = fmt.Sprintf("line %d of the first text\n", i)
	}
	put := func(name, data string) { fmt.Fprintf(&in, "M 100644 inline %s\ndata %d\n%s\n", name, len(data), data) }
	for n := range longCommits {
		fmt.Fprintf(&in, "commit refs/heads/main\ncommitter Ada <ada@example.org> %d +0000\ndata <<E\nchange %d\nE\n", 1_500_000_000+n*600, n)
		put(fmt.Sprintf("src/d%d/f%d.txt", n%20, n/20%20), fmt.Sprintf("commit %d\n", n))
		if n%4000 == 0 {
			text[n/4000*31%len(text)] = fmt.Sprintf("line of commit %d\n", n)
			put("rare.txt", strings.Join(text, ""))
		}
	}
	for _, step := range []struct {
		stdin []byte
		args  []string
	}{
		{nil, []string{"init", "-q", "-b", "main"}},
		{in.Bytes(), []string{"fast-import", "--quiet"}},
		{nil, []string{"reset", "-q", "--hard"}},
		{nil, []string{"repack", "-q", "-a", "-d"}},
		{nil, []string{"commit-graph", "write", "--reachable", "--changed-paths"}},
	} {
		if err := git(dir, step.stdin, step.args...); err != nil {
			return err
		}
	}
	return os.WriteFile(mark, []byte(want), 0o666)
}

func git(dir string, stdin []byte, args ...string) error {
	cmd := command(dir, args...)
	cmd.Stdin = bytes.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w\n%s", args[0], err, out)
	}
	return nil
}

// history returns the commits that change a file, for git fast-import.
func history() []byte {
	var out bytes.Buffer
	text := make([]string, lines)
	for i := range text {
		text[i] = fmt.Sprintf("line %d of the first text\n", i)
	}
	for n := range commits {
		for k := range 3 {
			text[(n*37+k*613)%lines] = fmt.Sprintf("line of commit %d, the %d.\n", n, k)
		}
		message := fmt.Sprintf("change %d", n)
		fmt.Fprintf(&out, "commit refs/heads/main\ncommitter Ada <ada@example.org> %d +0000\ndata %d\n%s\n", 1_900_000_000+n*3600, len(message), message)
		if n == 0 {
			out.WriteString("from refs/heads/main^0\n")
		}
		data := strings.Join(text, "")
		fmt.Fprintf(&out, "M 100644 inline long.txt\ndata %d\n%s\n", len(data), data)
	}
	return out.Bytes()
}

func put(name string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return err
	}
	return os.WriteFile(name, data, 0o666)
}
