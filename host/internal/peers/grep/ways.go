//go:build bench

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/internal/peers/bench"
	"github.com/stockade-dev/stockade/host/internal/peers/call/guest"
	"github.com/stockade-dev/stockade/host/sandbox"
)

// The ways to search, besides ours.
const (
	process = "process"
	ripgrep = "ripgrep"
	native  = "native"
)

// search is one search.
type search struct {
	Name       string
	Pattern    string
	IgnoreCase bool
	Small      bool // in the small files
}

var searches = []search{
	{Name: "literal", Pattern: "ErrUnexpectedEOF = "},
	{Name: "regexp", Pattern: `func \(\w+ \*?\w+\) ServeHTTP\(\w+ `},
	{Name: "ignore-case", Pattern: "deprecated: use net", IgnoreCase: true},
	{Name: "alternatives", Pattern: `(panic|Fatalf)\("(unreachable|not reached)"`},
	{Name: "no-hit", Pattern: "zebra crossing ahead"},
	{Name: "small-literal", Pattern: "ErrUnexpectedEOF = ", Small: true},
	{Name: "small-no-hit", Pattern: "zebra crossing ahead", Small: true},
}

func (q search) args() []byte {
	data, err := json.Marshal(map[string]any{"pattern": q.Pattern, "ignore_case": q.IgnoreCase, "path": ".", "max_results": 1000})
	if err != nil {
		panic(err) // strings and numbers only
	}
	return data
}

// setup holds everything that the searches share.
type setup struct {
	source, small string // the trees that are searched

	native  string // the guest's code as a program of this machine
	program string
	home    string // of the program
	rg      string
	box     *sandbox.Sandbox
	code    []byte
}

func setUp() (*setup, error) {
	const out = "../../../bin/peers"
	s := &setup{}
	var err error
	if s.rg, err = exec.LookPath("rg"); err != nil {
		return nil, fmt.Errorf("%w: install ripgrep", err)
	}
	if s.code, err = os.ReadFile("../../../guests/wasm/files.wasm"); err != nil {
		return nil, fmt.Errorf("%w: run make guests", err)
	}
	dir, err := filepath.Abs(out)
	if err != nil {
		return nil, err
	}
	s.source, s.small = filepath.Join(dir, "grep-tree"), filepath.Join(dir, "grep-small")
	s.native, s.home = filepath.Join(dir, "files-native"), filepath.Join(dir, "grep-home")
	s.program = filepath.Join(filepath.Dir(dir), "stockade")
	if _, err := os.Stat(s.program); err != nil {
		return nil, fmt.Errorf("%w: run make build", err)
	}
	if err := errors.Join(bench.BuildGuest("files", s.native), makeSource(s.source), makeSmall(s.small), os.MkdirAll(s.home, 0o700)); err != nil {
		return nil, err
	}
	cache, err := guest.Cache(out)
	if err != nil {
		return nil, err
	}
	s.box = guest.NewSandbox(cache)
	return s, nil
}

// searcher carries out a search and returns the matching lines, as file:line.
type searcher func() ([]string, error)

// ways prepares the ways to carry out a search. Fuel and memory of ours go to m.
func (s *setup) ways(q search, m *bench.JobResult) (map[string]searcher, error) {
	dir := s.source
	if q.Small {
		dir = s.small
	}
	call, err := guest.New("grep", s.code, dir, string(q.args()))
	if err != nil {
		return nil, err
	}
	bench.Progress("compile the module")
	if err := s.box.Compile(context.Background(), call.Module); err != nil {
		return nil, err
	}
	sandboxed := func() ([]string, error) {
		out, usage, err := call.Measure(context.Background(), s.box)
		m.FuelUsed, m.PeakBytes = usage.FuelUsed, usage.PeakMemoryBytes
		return linesOf(out, err)
	}
	return map[string]searcher{bench.Ours: sandboxed, bench.Noise: sandboxed, ripgrep: s.ripgrep(q, dir), native: s.nativeProgram(q, dir), process: s.process(q, dir)}, nil
}

func (s *setup) ripgrep(q search, dir string) searcher {
	args := []string{"--no-config", "--no-ignore-global", "--no-ignore-exclude", "--no-heading", "--color=never", "-n"}
	if q.IgnoreCase {
		args = append(args, "-i")
	}
	args = append(args, "-e", q.Pattern, ".")
	return func() ([]string, error) {
		cmd := exec.Command(s.rg, args...)
		cmd.Dir = dir
		out, err := cmd.Output()
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 1 {
			err = nil // no line matches
		}
		return lineRefs(out), err
	}
}

func (s *setup) nativeProgram(q search, dir string) searcher {
	return func() ([]string, error) { return linesOf(bench.RunNative(s.native, dir, q.args())) }
}

// process is our tool as a process: the program from its start.
func (s *setup) process(q search, dir string) searcher {
	return func() ([]string, error) {
		cmd := exec.Command(s.program, "call", "--json", "grep", string(q.args()))
		cmd.Dir, cmd.Env = dir, []string{"HOME=" + s.home}
		out, err := cmd.Output()
		if err != nil {
			return nil, err
		}
		var envelope struct {
			Result json.RawMessage `json:"result"`
		}
		err = json.Unmarshal(out, &envelope)
		return linesOf(envelope.Result, err)
	}
}

// linesOf reads the result of our tool.
func linesOf(result []byte, err error) ([]string, error) {
	var r struct {
		Output    string `json:"output"`
		Truncated bool   `json:"truncated"`
	}
	if err == nil {
		err = json.Unmarshal(result, &r)
	}
	if err != nil {
		return nil, err
	}
	if r.Truncated {
		return nil, errors.New("there are more hits than a result holds: choose another pattern")
	}
	return lineRefs([]byte(r.Output)), nil
}

var lineRef = regexp.MustCompile(`(?m)^(?:\./)?([^:\n]+:[0-9]+):`)

func lineRefs(out []byte) []string {
	var all []string
	for _, m := range lineRef.FindAllSubmatch(out, -1) {
		all = append(all, string(m[1]))
	}
	slices.Sort(all)
	return all
}

// diffLines shows the differences between two results.
func diffLines(a, b []string) string {
	var out []string
	for _, x := range a {
		if !slices.Contains(b, x) {
			out = append(out, "-"+x)
		}
	}
	for _, x := range b {
		if !slices.Contains(a, x) {
			out = append(out, "+"+x)
		}
	}
	return strings.Join(out[:min(len(out), 10)], "\n")
}
