//go:build bench && linux

// Command steps measures the cost of a step in a long turn: the processor time of the
// program between two requests to a scripted server, at the beginning of a turn of 400
// steps and at its end. Each step reads another file of 4 KB, so that the conversation
// grows to 2 MB if it may, and is cut again and again if it may not.
//
// Run it in host/internal/peers, on Linux, when the machine is otherwise idle, after
// make build:
//
//	go run -tags bench ./steps [-rounds N] [-only names] [-program FILE]
//
// The processor time is that of all threads of the process, counted by the scheduler of
// the kernel. A figure is the median of the rounds.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/stockade-dev/stockade/host/internal/peers/bench"
)

const steps = 400

// The ranges of steps that are compared. In earlier steps the program still reads code
// that runs for the first time.
var (
	early = [2]int{5, 25}
	late  = [2]int{375, 395}
)

// budgets lists limits of the conversation, in characters, by name.
var budgets = []struct {
	name   string
	budget int
}{{"whole", 8_000_000}, {"cut", 400_000}}

var program = flag.String("program", "../../../bin/stockade", "the program to measure")

func main() { bench.Main("steps", 5, "whole,cut", run) }

func run(o bench.Options) error {
	fmt.Printf("load average %s\n\n", bench.Load())
	var figures []bench.Figure
	for _, k := range budgets {
		if !o.IsSelected(k.name) {
			continue
		}
		var first, last, ratios, memory, fresh []float64
		for round := range o.Rounds {
			bench.Progress("%s: round %d of %d", k.name, round+1, o.Rounds)
			t, err := measure(k.budget)
			if err != nil {
				return err
			}
			a, b := t.step(early), t.step(late)
			first, last, ratios = append(first, a), append(last, b), append(ratios, b/a)
			memory, fresh = append(memory, t.memory), append(fresh, float64(t.rewritten))
		}
		figures = append(figures,
			bench.Figure{Name: k.name + ": a step at the beginning", Measured: median(first), Unit: bench.Millis, NoTarget: true, Note: "processor time"},
			bench.Figure{Name: k.name + ": a step at the end", Measured: median(last), Unit: bench.Millis, NoTarget: true, Note: "processor time"},
			bench.Figure{Name: k.name + ": the end by the beginning", Measured: median(ratios), AtMost: 1.2, Unit: bench.Ratio},
			bench.Figure{Name: k.name + ": requests that begin otherwise than the one before", Measured: median(fresh), AtMost: 20, Unit: bench.Runs, Note: fmt.Sprintf("of %d", steps)},
			bench.Figure{Name: k.name + ": memory at most", Measured: median(memory), Unit: bench.KiB, NoTarget: true},
		)
	}
	bench.PrintFigures(os.Stdout, figures)
	return nil
}

func median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	return x[len(x)/2]
}

// turn holds the measurements of a turn.
type turn struct {
	cpuTimes  []time.Duration // processor time at the arrival of each request
	rewritten int             // number of requests that do not begin with the messages of the one before
	memory    float64         // peak, in KiB
}

// step returns the mean time of the steps in a range, in milliseconds.
func (t *turn) step(of [2]int) float64 {
	return (t.cpuTimes[of[1]] - t.cpuTimes[of[0]]).Seconds() * 1000 / float64(of[1]-of[0])
}

// measure runs a turn in a home of its own.
func measure(budget int) (*turn, error) {
	bin, err := filepath.Abs(*program)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "stockade-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	home, work := filepath.Join(dir, "home"), filepath.Join(dir, "work")
	settings := filepath.Join(home, ".config", "stockade")
	if err := errors.Join(os.MkdirAll(settings, 0o700), os.MkdirAll(work, 0o700)); err != nil {
		return nil, err
	}
	text := fmt.Sprintf("max_tool_turns = %d\nhistory_char_budget = %d\n", steps+1, budget)
	if err := os.WriteFile(filepath.Join(settings, "agent.toml"), []byte(text), 0o600); err != nil {
		return nil, err
	}
	for i := range steps {
		text := strings.Repeat(fmt.Sprintf("line %d of a text that says something\n", i), 100)
		if err := os.WriteFile(filepath.Join(work, fmt.Sprintf("f%d.txt", i)), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	var t turn
	cmd := exec.Command(bin, "-C", work, "run", "--model", "scripted", "read them all")
	server := http.Server{Handler: t.serve(cmd)}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	cmd.Env = append(os.Environ(), "HOME="+home, "OPENAI_API_KEY=none", "OPENAI_BASE_URL=http://"+listener.Addr().String()+"/v1")
	for _, name := range []string{"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"} {
		cmd.Env = append(cmd.Env, name+"=")
	}
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, said.Bytes()[max(said.Len()-500, 0):])
	}
	if err := server.Close(); err != nil {
		return nil, err
	}
	<-served
	if len(t.cpuTimes) != steps+1 {
		return nil, fmt.Errorf("%d requests came, and not %d", len(t.cpuTimes), steps+1)
	}
	t.memory = float64(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)
	return &t, nil
}

// serve answers each request with another file to read, and the last with a text.
func (t *turn) serve(cmd *exec.Cmd) http.HandlerFunc {
	var before []byte // the messages of the last request
	return func(w http.ResponseWriter, r *http.Request) {
		t.cpuTimes = append(t.cpuTimes, processorTime(cmd.Process.Pid))
		body, err := io.ReadAll(r.Body)
		var request struct {
			Messages json.RawMessage `json:"messages"`
		}
		if err = errors.Join(err, json.Unmarshal(body, &request)); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if messages := bytes.TrimSuffix(request.Messages, []byte("]")); !bytes.HasPrefix(messages, before) {
			t.rewritten++
			before = bytes.Clone(messages)
		} else {
			before = append(before, messages[len(before):]...)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		n := len(t.cpuTimes) - 1
		if n == steps {
			fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"content":"I have read them."},"finish_reason":"stop"}]}`)
		} else {
			fmt.Fprintf(w, `data: {"choices":[{"index":0,"delta":{"content":"I read file %d.","tool_calls":[{"index":0,"id":"call_%d","type":"function","function":{"name":"file_read","arguments":"{\"path\":\"f%d.txt\"}"}}]},"finish_reason":"tool_calls"}]}`, n, n, n)
		}
		fmt.Fprint(w, "\n\ndata: [DONE]\n\n")
	}
}

// processorTime returns the processor time used by the threads of a process.
func processorTime(pid int) (sum time.Duration) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid)) // the pattern is right
	for _, file := range threads {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		used, _, _ := strings.Cut(string(text), " ")
		n, _ := strconv.ParseInt(used, 10, 64)
		sum += time.Duration(n)
	}
	return sum
}
