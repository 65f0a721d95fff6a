//go:build bench

// Command agents measures the cost of a turn of stockade, beside codex, opencode and
// gemini-cli: the time until the process has ended, its memory, and the size of its first
// request.
//
// Run it on Linux, when the machine is otherwise idle, with make bench-agents: that
// installs the others (npm; 800 MB) and runs this command where only the machine itself
// can be reached:
//
//	bin/bench-agents [-rounds N] [-only names] [-json FILE] [-programs DIR]
//
// One server on this machine plays the model for all of them, in the wire format of each:
// chat completions for stockade and opencode, OpenAI's responses for codex, Google's own
// for gemini-cli. It answers at once, so that only the programs are measured. Each has a
// home and a workspace of its own, on the disk. Settings are the defaults, except for the
// model, and for updates and telemetry if they can be turned off. codex and opencode are
// started as the native programs that their launchers start; codex also by its launcher,
// the way it starts for everybody who has installed it with npm.
//
//	version  --version
//	turn     a turn that calls no tool
//	new      the same in a home that has only the settings
//	read     a turn in which the model has a small file read: with the shell if a
//	         program has no tool for it
//
// The programs take turns, and a figure is the median of the ratios of two programs in
// the same round. "noise" is stockade once more. Memory is the peak of the largest
// process of a program: a program with several processes takes more than that.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/internal/peers/bench"
)

// job is a task that all programs do.
type job struct {
	Name   string
	prompt string // empty: print the version
	fresh  bool   // in a home that has only the settings
	// atMost is the target: the largest share of the other program's time that ours may
	// take.
	atMost float64
	target string // the only other program with a target; empty: all
}

var jobs = []job{
	{Name: "version", atMost: 0.5, target: "codex by npm"},
	{Name: "turn", prompt: plainPrompt, atMost: 0.1},
	{Name: "new", prompt: plainPrompt, fresh: true, atMost: 0.1},
	{Name: "read", prompt: filePrompt, atMost: 0.1},
}

const (
	memoryAtMost  = 0.5  // as a share of the memory of each other program
	requestAtMost = 20.0 // in KB
)

// jobResult holds the measurements of a job, by program.
type jobResult struct {
	Name string
	Took map[string][]time.Duration
	CPU  map[string][]time.Duration
	// Memory is in KiB.
	Memory map[string][]float64
	// First is the size in bytes of the first request that offers tools, and Requests the
	// number of requests in a turn.
	First, Requests map[string]int
}

type results struct {
	Rounds                int
	LoadBefore, LoadAfter string
	Programs              []string
	Versions              map[string]string
	Jobs                  []*jobResult
	Figures               []bench.Figure
}

func main() {
	dir := flag.String("programs", "../../../bin/agents", "the folder that npm has installed the others into")
	bench.Main("agents", 7, "turn,read", func(o bench.Options) error { return run(o, *dir) })
}

func run(o bench.Options, installed string) (err error) {
	if err := loopback(); err != nil {
		return err
	}
	m := &model{}
	server := httptest.NewServer(m)
	defer server.Close()
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(cache, "stockade-agents-") // codex refuses a home in /tmp
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	programs, err := listPrograms(installed, dir, server.URL)
	if err != nil {
		return err
	}
	r := results{Rounds: o.Rounds, LoadBefore: bench.Load(), Versions: map[string]string{}}
	for _, p := range programs {
		if err := p.resetHome(); err != nil {
			return err
		}
		out, err := p.run("")
		if err != nil {
			return err
		}
		r.Programs = append(r.Programs, p.name)
		version := strings.TrimSpace(out.stdout)
		r.Versions[p.name] = version[strings.LastIndexByte(version, ' ')+1:]
	}
	for _, j := range jobs {
		if !o.IsSelected(j.Name) {
			continue
		}
		found, err := j.measure(programs, m, o.Rounds)
		if err != nil {
			return fmt.Errorf("%s: %w", j.Name, err)
		}
		r.Jobs = append(r.Jobs, found)
		r.Figures = append(r.Figures, j.figures(found, r.Programs)...)
	}
	r.LoadAfter = bench.Load()
	if err := r.checkMemory(); err != nil {
		return err
	}
	r.print(os.Stdout)
	return bench.WriteJSON(o.JSON, r)
}

// measure does a job with all programs, round after round. Round 0 warms the caches of
// the machine, and of each home.
func (j job) measure(programs []*program, m *model, rounds int) (*jobResult, error) {
	r := &jobResult{
		Name: j.Name, Took: map[string][]time.Duration{}, CPU: map[string][]time.Duration{}, Memory: map[string][]float64{},
		First: map[string]int{}, Requests: map[string]int{},
	}
	for round := range rounds + 1 {
		bench.Progress("round %d of %d: %s", round, rounds, j.Name)
		for i := range programs {
			p := programs[(round+i)%len(programs)]
			if j.prompt != "" && p.turn == nil {
				continue
			}
			if j.fresh {
				if err := p.resetHome(); err != nil {
					return nil, err
				}
			}
			m.takeRequests()
			out, err := p.run(j.prompt)
			if err != nil {
				return nil, err
			}
			requests := m.takeRequests()
			if err := j.check(out, requests); err != nil {
				return nil, fmt.Errorf("%s: %w\n%s", p.name, err, out.stdout)
			}
			if round == 0 {
				continue
			}
			r.Took[p.name] = append(r.Took[p.name], out.took)
			r.CPU[p.name] = append(r.CPU[p.name], out.cpu)
			r.Memory[p.name] = append(r.Memory[p.name], float64(out.memoryKiB))
			r.First[p.name], r.Requests[p.name] = firstRequestBytes(requests), len(requests)
		}
	}
	return r, nil
}

// check fails if a turn did not go as planned.
func (j job) check(out *outcome, requests []request) error {
	if j.prompt == "" {
		return nil
	}
	read := false
	for _, r := range requests {
		if r.err != nil {
			return r.err
		}
		read = read || r.result
	}
	switch {
	case !strings.Contains(out.stdout, answer):
		return errors.New("the answer was not printed")
	case read != (j.prompt == filePrompt):
		return fmt.Errorf("that the model was sent what the file holds is %t", read)
	}
	return nil
}

// firstRequestBytes returns the size of the first request that offers tools.
func firstRequestBytes(requests []request) int {
	for _, r := range requests {
		if r.tools > 0 {
			return len(r.body)
		}
	}
	return 0
}

func (j job) figures(m *jobResult, programs []string) (out []bench.Figure) {
	for _, other := range programs[1:] {
		if m.Took[other] == nil {
			continue
		}
		f := bench.Figure{
			Name: j.Name + " / " + other, Measured: bench.PairedRatio(m.Took[bench.Ours], m.Took[other]), AtMost: j.atMost, Unit: bench.Ratio,
			Note: fmt.Sprintf("CPU time %.3f", bench.PairedRatio(m.CPU[bench.Ours], m.CPU[other])),
		}
		f.NoTarget = other == bench.Noise || j.target != "" && j.target != other
		out = append(out, f)
	}
	if j.prompt == "" {
		return out
	}
	for _, other := range programs[1:] {
		if other != bench.Noise && m.Memory[other] != nil {
			out = append(out, bench.Figure{
				Name: "memory, " + j.Name + " / " + other, Measured: bench.Round(bench.Median(m.Memory[bench.Ours]) / bench.Median(m.Memory[other])),
				AtMost: memoryAtMost, Unit: bench.Ratio,
			})
		}
	}
	return append(out, bench.Figure{Name: "first request, " + j.Name, Measured: float64(m.First[bench.Ours]) / 1000, AtMost: requestAtMost, Unit: "KB"})
}

// checkMemory fails if this process had so much memory that the memory of the programs is
// unknown: the kernel's figure for a process includes the memory before exec.
func (r *results) checkMemory() error {
	var own unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &own); err != nil {
		return err
	}
	for _, m := range r.Jobs {
		for program, all := range m.Memory {
			if least := bench.Quantile(all, 0); least <= float64(own.Maxrss) {
				return fmt.Errorf("%s: the memory of %s is not known: %.0f KiB, and the benchmark had %d", m.Name, program, least, own.Maxrss)
			}
		}
	}
	return nil
}

func (r *results) print(w io.Writer) {
	fmt.Fprintf(w, "%d rounds, load %s before and %s after\n\n", r.Rounds, r.LoadBefore, r.LoadAfter)
	t := bench.Table(w, tabwriter.AlignRight)
	fmt.Fprintf(t, "\t%s\t\n", strings.Join(r.Programs, "\t"))
	row := func(name string, m *jobResult, value func(program string) string) {
		fmt.Fprintf(t, "%s\t", name)
		for _, p := range r.Programs {
			if m == nil || m.Took[p] != nil {
				fmt.Fprint(t, value(p))
			}
			fmt.Fprint(t, "\t")
		}
		fmt.Fprintln(t)
	}
	row("", nil, func(p string) string { return r.Versions[p] })
	for _, m := range r.Jobs {
		row(m.Name+", ms", m, func(p string) string { return fmt.Sprintf("%.0f", bench.MS(bench.Median(m.Took[p]))) })
		row("least, ms", m, func(p string) string { return fmt.Sprintf("%.0f", bench.MS(bench.Quantile(m.Took[p], 0))) })
		row("CPU time, ms", m, func(p string) string { return fmt.Sprintf("%.0f", bench.MS(bench.Median(m.CPU[p]))) })
		row("memory, MiB", m, func(p string) string { return fmt.Sprintf("%.0f", bench.Median(m.Memory[p])/1024) })
		if m.Requests[bench.Ours] > 0 {
			row("requests", m, func(p string) string { return fmt.Sprint(m.Requests[p]) })
			row("first request, bytes", m, func(p string) string { return fmt.Sprint(m.First[p]) })
		}
	}
	t.Flush()
	fmt.Fprintln(w)
	bench.PrintFigures(w, r.Figures)
}
