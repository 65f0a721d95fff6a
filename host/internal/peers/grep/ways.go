//go:build bench

package main

import (
	"bytes"
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
	"github.com/stockade-dev/stockade/host/tool"
)

// The ways to search, by name. The first is ours; noise is ours once more.
const (
	ours    = "ours"
	noise   = "noise"
	ripgrep = "ripgrep"
	native  = "native"
)

var ways = []string{ours, ripgrep, native, noise}

// search is what is searched for.
type search struct {
	Name       string
	Pattern    string
	IgnoreCase bool
}

var searches = []search{
	{"literal", "ErrUnexpectedEOF = ", false},
	{"regexp", `func \(\w+ \*?\w+\) ServeHTTP\(\w+ `, false},
	{"ignore-case", "deprecated: use net", true},
	{"alternatives", `(panic|Fatalf)\("(unreachable|not reached)"`, false},
	{"no-hit", "zebra crossing ahead", false},
}

func (q search) args() []byte {
	data, err := json.Marshal(map[string]any{"pattern": q.Pattern, "ignore_case": q.IgnoreCase, "path": ".", "max_results": 1000})
	if err != nil {
		panic(err) // strings and numbers only
	}
	return data
}

// setup is what all searches share.
type setup struct {
	dir    string // that is searched
	native string // the guest's code as a program of this machine
	rg     string
	box    *sandbox.Sandbox
	code   []byte
}

func setUp() (*setup, error) {
	const out = "../../../bin/peers"
	s := &setup{}
	var err error
	if s.rg, err = exec.LookPath("rg"); err != nil {
		return nil, fmt.Errorf("%w: install ripgrep", err)
	}
	if s.code, err = os.ReadFile("../../../guests/dist/files.wasm"); err != nil {
		return nil, fmt.Errorf("%w: run make guests", err)
	}
	if s.dir, err = filepath.Abs(filepath.Join(out, "grep-tree")); err != nil {
		return nil, err
	}
	s.native = filepath.Join(filepath.Dir(s.dir), "files-native")
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", s.native, "./guests/files")
	cmd.Dir = "../../.."
	if output, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the native program: %w\n%s", err, output)
	}
	if err := makeTree(s.dir); err != nil {
		return nil, err
	}
	cache, err := guest.Cache(out)
	if err != nil {
		return nil, err
	}
	s.box = guest.Box(cache)
	return s, nil
}

// searcher carries out a search and says which lines match, as file:line.
type searcher func() ([]string, error)

// ways makes the ways to carry out a search ready.
func (s *setup) ways(q search) (map[string]searcher, error) {
	call, err := guest.New("grep", s.code, s.dir, string(q.args()))
	if err != nil {
		return nil, err
	}
	bench.Progress("compile the module")
	if err := s.box.Compile(context.Background(), call.Module); err != nil {
		return nil, err
	}
	sandboxed := func() ([]string, error) {
		r, _, err := s.box.Run(context.Background(), call.Grant, call.Module, call.Call, nil)
		if err == nil && r.Err != nil {
			err = errors.New(r.Summary())
		}
		if err != nil {
			return nil, err
		}
		s.note(q, r)
		return linesOf(r.Output)
	}
	return map[string]searcher{ours: sandboxed, noise: sandboxed, ripgrep: s.ripgrep(q), native: s.nativeProgram(q)}, nil
}

// used is the fuel and the memory of our last search, by its name.
var used = map[string]tool.Usage{}

func (s *setup) note(q search, r tool.Result) { used[q.Name] = r.Usage }

func (s *setup) ripgrep(q search) searcher {
	args := []string{"--no-config", "--no-ignore-global", "--no-ignore-exclude", "--no-heading", "--color=never", "-n"}
	if q.IgnoreCase {
		args = append(args, "-i")
	}
	args = append(args, "-e", q.Pattern, ".")
	return func() ([]string, error) {
		cmd := exec.Command(s.rg, args...)
		cmd.Dir = s.dir
		out, err := cmd.Output()
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 1 {
			err = nil // no line matches
		}
		return places(out), err
	}
}

func (s *setup) nativeProgram(q search) searcher {
	return func() ([]string, error) {
		cmd := exec.Command(s.native)
		cmd.Dir, cmd.Stdin, cmd.Stderr = s.dir, bytes.NewReader(q.args()), os.Stderr
		cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
		out, err := cmd.Output()
		if err != nil {
			return nil, err
		}
		return linesOf(out)
	}
}

// linesOf reads the result of our tool.
func linesOf(result []byte) ([]string, error) {
	var r struct {
		Output    string `json:"output"`
		Truncated bool   `json:"truncated"`
	}
	if err := json.Unmarshal(result, &r); err != nil {
		return nil, err
	}
	if r.Truncated {
		return nil, errors.New("there are more hits than a result holds: choose another pattern")
	}
	return places([]byte(r.Output)), nil
}

var place = regexp.MustCompile(`(?m)^(?:\./)?([^:\n]+:[0-9]+):`)

func places(out []byte) []string {
	var all []string
	for _, m := range place.FindAllSubmatch(out, -1) {
		all = append(all, string(m[1]))
	}
	slices.Sort(all)
	return all
}

// different shows where two results differ.
func different(a, b []string) string {
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
