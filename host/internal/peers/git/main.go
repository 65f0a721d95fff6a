//go:build bench

// Command git measures what the built-in tool git takes, in the sandbox and with a
// grant, next to git itself and to the tool's own code as a native program.
//
// Run it in host/internal/peers, on Linux, when the machine is otherwise idle, after
// make build; it needs git:
//
//	go run -tags bench ./git [-rounds N] [-only names] [-json FILE]
//
// The repository is made once, in bin/peers: 10,000 files of the source of Go, and 600
// commits, each of which changes one file of 2000 lines. All ways take turns, and a
// figure is the ratio of two calls that were made one after the other: its median. git
// and the native program are processes, and their start counts; ours is a call in a
// process that runs. "noise" is our call against itself. All have to print the same.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/stockade-dev/stockade/host/internal/peers/bench"
	"github.com/stockade-dev/stockade/host/internal/peers/call/guest"
	"github.com/stockade-dev/stockade/host/tool"
)

const (
	files   = 10_000
	commits = 600
	lines   = 2000
)

// operation is what is looked at, and what git prints of it.
type operation struct {
	Name string
	Args string
	git  []string
}

var operations = []operation{
	{"status", `{"operation":"status"}`, []string{"status", "--short", "--branch"}},
	{"log", `{"operation":"log","limit":100}`, []string{"log", "--oneline", "-100"}},
	{"log-path", `{"operation":"log","path":"long.txt","limit":200}`, []string{"log", "--oneline", "-200", "--", "long.txt"}},
	{"diff", `{"operation":"diff","revision":"HEAD~50..HEAD"}`, []string{"diff", "HEAD~50..HEAD"}},
	{"show", `{"operation":"show"}`, []string{"show"}},
	{"blame", `{"operation":"blame","path":"long.txt","revision":"HEAD","limit":300}`, []string{"blame", "--date=short", "-L1,300", "HEAD", "--", "long.txt"}},
}

const (
	ours   = "ours"
	noise  = "noise"
	native = "native"
	itself = "git"
)

var ways = []string{ours, itself, native, noise}

type measured struct {
	Operation operation
	Took      map[string][]time.Duration
	Usage     tool.Usage
}

type results struct {
	Rounds                int
	LoadBefore, LoadAfter string
	Operations            []*measured
	Targets               []bench.Figure
}

func main() {
	guest.Compile()
	debug.SetGCPercent(400) // as the program does
	rounds := flag.Int("rounds", 7, "how often each call is made")
	only := flag.String("only", "", "comma-separated patterns of operations, such as 'log*,blame'")
	file := flag.String("json", "", "also write everything that was measured to this `file`")
	flag.Parse()
	if err := run(*rounds, bench.Selection(*only), *file); err != nil {
		fmt.Fprintln(os.Stderr, "git:", err)
		os.Exit(1)
	}
}

func run(rounds int, selected func(string) bool, file string) (err error) {
	const out = "../../../bin/peers"
	code, err := os.ReadFile("../../../guests/dist/git.wasm")
	if err != nil {
		return fmt.Errorf("%w: run make guests", err)
	}
	dir, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	repository, program := filepath.Join(dir, "git-repository"), filepath.Join(dir, "git-native")
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", program, "./guests/git")
	cmd.Dir = "../../.."
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the native program: %w\n%s", err, output)
	}
	if err := makeRepository(repository); err != nil {
		return err
	}
	cache, err := guest.Cache(out)
	if err != nil {
		return err
	}
	box := guest.Box(cache)
	defer func() { err = errors.Join(err, box.Close()) }()
	r := results{Rounds: rounds, LoadBefore: bench.Load()}
	for _, op := range operations {
		if !selected(op.Name) {
			continue
		}
		call, err := guest.New("git", code, repository, op.Args)
		if err != nil {
			return err
		}
		if err := box.Compile(context.Background(), call.Module); err != nil {
			return err
		}
		m := &measured{Operation: op, Took: map[string][]time.Duration{}}
		sandboxed := func() (string, error) {
			result, _, err := box.Run(context.Background(), call.Grant, call.Module, call.Call, nil)
			if err == nil && result.Err != nil {
				err = errors.New(result.Summary())
			}
			m.Usage = result.Usage
			if err != nil {
				return "", err
			}
			return textOf(result.Output)
		}
		all := map[string]func() (string, error){ours: sandboxed, noise: sandboxed,
			native: func() (string, error) {
				cmd := exec.Command(program)
				cmd.Dir, cmd.Stdin, cmd.Stderr = repository, strings.NewReader(op.Args), os.Stderr
				cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
				out, err := cmd.Output()
				if err != nil {
					return "", err
				}
				return textOf(out)
			},
			itself: func() (string, error) {
				out, err := command(repository, op.git...).Output()
				return strings.TrimSuffix(string(out), "\n"), err
			},
		}
		if err := m.measure(all, rounds); err != nil {
			return fmt.Errorf("%s: %w", op.Name, err)
		}
		r.Operations = append(r.Operations, m)
	}
	r.LoadAfter = bench.Load()
	r.print()
	return bench.WriteJSON(file, r)
}

// measure makes a call in all ways, round after round. What comes before the first one
// warms the caches and compares what is printed.
func (m *measured) measure(all map[string]func() (string, error), rounds int) error {
	want := ""
	for round := range rounds + 1 {
		bench.Progress("round %d of %d: %s", round, rounds, m.Operation.Name)
		for _, way := range ways {
			start := time.Now()
			got, err := all[way]()
			took := time.Since(start)
			if err != nil {
				return fmt.Errorf("%s: %w", way, err)
			}
			if round > 0 {
				m.Took[way] = append(m.Took[way], took)
			} else if way == ours {
				want = got
			} else if got != want {
				return fmt.Errorf("%s prints something else than %s:\n%.2000s\n---\n%.2000s", way, ours, got, want)
			}
		}
	}
	return nil
}

func (r *results) print() {
	fmt.Printf("%d files, %d commits, %d rounds, load %s before and %s after; medians in ms\n\n", files, commits, r.Rounds, r.LoadBefore, r.LoadAfter)
	t := bench.Table(os.Stdout, tabwriter.AlignRight)
	fmt.Fprint(t, "\t")
	for _, way := range ways {
		fmt.Fprintf(t, "%s\t", way)
	}
	fmt.Fprint(t, "noise\tMfuel\tpeak MiB\t\n")
	for _, m := range r.Operations {
		fmt.Fprintf(t, "%s\t", m.Operation.Name)
		for _, way := range ways {
			fmt.Fprintf(t, "%.1f\t", bench.MS(bench.Median(m.Took[way])))
		}
		fmt.Fprintf(t, "%.3f\t%d\t%d\t\n", bench.PairedRatio(m.Took[ours], m.Took[noise]), m.Usage.FuelUsed/1e6, m.Usage.PeakMemoryBytes>>20)
		for _, way := range []string{itself, native} {
			r.Targets = append(r.Targets, bench.Figure{Name: m.Operation.Name + " / " + way, Measured: bench.PairedRatio(m.Took[ours], m.Took[way]), NoTarget: true, Unit: bench.Ratio})
		}
	}
	t.Flush()
	fmt.Println()
	bench.PrintFigures(os.Stdout, r.Targets)
}

// textOf is the output of our tool without what is said at its end.
func textOf(result []byte) (string, error) {
	var r struct {
		Output string `json:"output"`
	}
	if err := json.Unmarshal(result, &r); err != nil {
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

// makeRepository makes it, unless it is there.
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
	// It is inside of this module, which it must not be a part of.
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

func git(dir string, stdin []byte, args ...string) error {
	cmd := command(dir, args...)
	cmd.Stdin = bytes.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w\n%s", args[0], err, out)
	}
	return nil
}

// history is the commits that change a file, for git fast-import.
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
