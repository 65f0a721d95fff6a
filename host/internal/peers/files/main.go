//go:build bench

// Command files measures the built-in file tools on large inputs, in the sandbox and with
// a grant, beside the commands that a person would run: a page at the end of a file of
// 100 MB (sed -n), a directory of 10,000 entries (ls -l), a line of a file of 8 MB (sed
// -i), and a patch of 100 files (git apply, and patch).
//
// Run it in host/internal/peers, on Linux, when the machine is otherwise idle, after
// make build; it needs git and patch:
//
//	go run -tags bench ./files [-rounds N] [-only names] [-json FILE]
//
// All ways take turns, each on files of its own in /dev/shm, and a figure is the median
// of the ratios of two that ran one after the other. The commands are processes, and
// their start counts; ours is a call in a running process, as for an agent, whose changes
// are staged and then committed. The stage is most of the cost of a patch: a file is
// written on the stage, then beside the old one, which is moved aside, while git writes
// it once. "noise" is ours against itself.
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
	"runtime/debug"
	"strings"
	"time"

	"github.com/stockade-dev/stockade/host/internal/peers/bench"
	"github.com/stockade-dev/stockade/host/internal/peers/call/guest"
	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/tool"
)

// job is a task that is done by a tool and by commands.
type job struct {
	Name    string
	Tool    string
	changes bool
	setUp   func(dir string) error
	args    func(round int) map[string]any
	native  []string // names of the commands
	command func(way string, round int) []string
	// wantOutput is a text that every result, and every output of a command, must
	// contain.
	wantOutput string
}

const (
	largeLines   = 1_000_000 // of 100 bytes
	editedLines  = 83_000
	entries      = 10_000
	patchedFiles = 100
)

var jobs = []job{
	{
		Name: "page", Tool: "file_read", native: []string{"sed -n"}, wantOutput: fmt.Sprintf("%8d ", largeLines-100),
		setUp: func(dir string) error { return os.WriteFile(filepath.Join(dir, "f"), numbered(largeLines), 0o644) },
		args:  func(int) map[string]any { return map[string]any{"path": "f", "offset": largeLines - 100, "limit": 20} },
		command: func(string, int) []string {
			return []string{"sed", "-n", fmt.Sprintf("%d,%dp;%dq", largeLines-100, largeLines-81, largeLines-81), "f"}
		},
	},
	{
		Name: "ls", Tool: "ls", native: []string{"ls -l"}, wantOutput: "file00999",
		setUp: func(dir string) error {
			for i := range entries {
				if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("file%05d", i)), nil, 0o644); err != nil {
					return err
				}
			}
			return nil
		},
		args:    func(int) map[string]any { return map[string]any{"path": ".", "max_entries": 1000} },
		command: func(string, int) []string { return []string{"ls", "-l"} },
	},
	{
		Name: "replace", Tool: "replace_lines", changes: true, native: []string{"sed -i"},
		setUp: func(dir string) error { return os.WriteFile(filepath.Join(dir, "f"), numbered(editedLines), 0o644) },
		args: func(round int) map[string]any {
			return map[string]any{"path": "f", "line_start": editedLines / 2, "line_end": editedLines / 2, "new_content": fmt.Sprint("round ", round)}
		},
		command: func(_ string, round int) []string {
			return []string{"sed", "-i", fmt.Sprintf("%dcround %d", editedLines/2, round), "f"}
		},
	},
	{
		Name: "patch", Tool: "apply_patch", changes: true, native: []string{"git apply", "patch"},
		setUp: func(dir string) error {
			for i := range patchedFiles {
				if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%02d", i)), numbered(100), 0o644); err != nil {
					return err
				}
			}
			return os.WriteFile(filepath.Join(dir, "diff"), []byte(unifiedDiff()), 0o644)
		},
		args: func(round int) map[string]any {
			old, changed := line(50), "changed"
			if round%2 == 1 { // changed back every other round
				old, changed = changed, old
			}
			var b strings.Builder
			b.WriteString("*** Begin Patch\n")
			for i := range patchedFiles {
				fmt.Fprintf(&b, "*** Update File: f%02d\n@@\n %s\n-%s\n+%s\n %s\n", i, line(49), old, changed, line(51))
			}
			return map[string]any{"patch": b.String() + "*** End Patch"}
		},
		command: func(way string, round int) []string {
			argv := []string{"git", "apply", "diff"}
			if way == "patch" {
				argv = []string{"patch", "-s", "-p1", "-i", "diff"}
			}
			if round%2 == 1 {
				argv = append(argv, "-R")
			}
			return argv
		},
	},
}

func line(n int) string { return fmt.Sprintf("%8d ", n) + strings.Repeat("x", 90) }

func numbered(lines int) []byte {
	var b bytes.Buffer
	for i := range lines {
		b.WriteString(line(i+1) + "\n")
	}
	return b.Bytes()
}

func unifiedDiff() string {
	var b strings.Builder
	for i := range patchedFiles {
		fmt.Fprintf(&b, "--- a/f%02d\n+++ b/f%02d\n@@ -49,3 +49,3 @@\n %s\n-%s\n+changed\n %s\n", i, i, line(49), line(50), line(51))
	}
	return b.String()
}

func main() {
	guest.RunCompileChild()
	debug.SetGCPercent(400) // as the program does
	bench.Main("files", 7, "page,ls", run)
}

func run(o bench.Options) (err error) {
	code, err := os.ReadFile("../../../guests/wasm/files.wasm")
	if err != nil {
		return fmt.Errorf("%w: run make guests", err)
	}
	cache, err := guest.Cache("../../../bin/peers")
	if err != nil {
		return err
	}
	box := guest.NewSandbox(cache)
	defer func() { err = errors.Join(err, box.Close()) }()
	var all []bench.Job
	for _, j := range jobs {
		all = append(all, bench.Job{Name: j.Name, Measure: func() (*bench.JobResult, error) { return j.measure(box, code, o.Rounds) }})
	}
	return o.Compare("", all, func(m *bench.JobResult) (out []bench.Figure) {
		for _, way := range m.Ways[1 : len(m.Ways)-1] {
			out = append(out, m.RatioTo(bench.Ours, way))
		}
		return out
	})
}

// measure does a job in all ways.
func (j job) measure(box *sandbox.Sandbox, code []byte, rounds int) (*bench.JobResult, error) {
	m := &bench.JobResult{Name: j.Name, Ways: append(append([]string{bench.Ours}, j.native...), bench.Noise)}
	dirs := map[string]string{}
	for _, way := range m.Ways {
		dir, err := os.MkdirTemp("/dev/shm", "stockade-bench-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		if dirs[way] = dir; j.setUp(dir) != nil {
			return nil, j.setUp(dir)
		}
	}
	bench.Progress("%s: compile the module", j.Name)
	if err := box.Compile(context.Background(), tool.NewModule(j.Tool, tool.OriginFile, j.Tool+".wasm", code)); err != nil {
		return nil, err
	}
	err := m.Turns(rounds, func(round int, way string) (time.Duration, error) {
		c, err := j.prepare(code, dirs[way], round)
		if err != nil {
			return 0, err
		}
		start := time.Now()
		var out []byte
		if way == bench.Ours || way == bench.Noise {
			var usage tool.Usage
			out, usage, err = c.Measure(context.Background(), box)
			m.FuelUsed, m.PeakBytes = usage.FuelUsed, usage.PeakMemoryBytes
		} else {
			argv := j.command(way, round)
			cmd := exec.Command(argv[0], argv[1:]...)
			cmd.Dir = dirs[way]
			out, err = cmd.CombinedOutput()
		}
		took := time.Since(start)
		if err != nil {
			return 0, fmt.Errorf("%w %.300s", err, out)
		}
		if !bytes.Contains(out, []byte(j.wantOutput)) {
			return 0, fmt.Errorf("%q is not in %.300s", j.wantOutput, out)
		}
		return took, nil
	})
	if err != nil {
		return nil, err
	}
	return m, j.compare(m.Ways, dirs)
}

// prepare does the part that is not measured, because the program does it once for all
// calls: it hashes the module.
func (j job) prepare(code []byte, dir string, round int) (*guest.Call, error) {
	args, err := json.Marshal(j.args(round))
	if err != nil {
		return nil, err
	}
	make := guest.New
	if j.changes {
		make = guest.NewWriting
	}
	return make(j.Tool, code, dir, string(args))
}

// compare fails if the ways have made different files.
func (j job) compare(ways []string, dirs map[string]string) error {
	if !j.changes {
		return nil
	}
	list, err := os.ReadDir(dirs[bench.Ours])
	if err != nil {
		return err
	}
	for _, e := range list {
		want, err := os.ReadFile(filepath.Join(dirs[bench.Ours], e.Name()))
		if err != nil {
			return err
		}
		for _, way := range ways {
			if got, err := os.ReadFile(filepath.Join(dirs[way], e.Name())); err != nil || !bytes.Equal(got, want) {
				return fmt.Errorf("%s has made another %s, %v", way, e.Name(), err)
			}
		}
	}
	return nil
}
