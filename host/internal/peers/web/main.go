//go:build bench

// Command web measures what http_fetch takes for a page of 1 MB and of 8 MB from a
// server on this machine, in the sandbox and with a grant, next to curl, which only
// throws the page away, and to lynx and w3m, which make text of it, if they are there.
//
// Run it in host/internal/peers, on Linux, when the machine is otherwise idle, after
// make build; it needs curl:
//
//	go run -tags bench ./web [-rounds N] [-json FILE]
//
// "first" is a call in a process that runs, as it is for an agent: it returns the first
// 50,000 bytes of text. "last" returns the last ones, for which the whole page has to
// be read. "process" is stockade call, with its record on the disk. The others are
// processes, and their start counts. All ways take turns, and a figure is the ratio of
// two that were made one after the other: its median. "noise" is first against itself.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/stockade-dev/stockade/host/door"
	"github.com/stockade-dev/stockade/host/internal/peers/bench"
	"github.com/stockade-dev/stockade/host/internal/peers/call/guest"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/tool"
)

// results is what a run of the benchmark found out.
type results struct {
	Rounds                int
	LoadBefore, LoadAfter string
	Pages                 []*measured
	Figures               []bench.Figure
}

// measured is what came of one page.
type measured struct {
	Name string
	Took map[string][]time.Duration
	Last tool.Usage
}

func main() {
	guest.Compile()
	rounds := flag.Int("rounds", 7, "how often each page is fetched")
	file := flag.String("json", "", "also write everything that was measured to this `file`")
	flag.Parse()
	if err := run(*rounds, *file); err != nil {
		fmt.Fprintln(os.Stderr, "web:", err)
		os.Exit(1)
	}
}

// page is HTML of so many bytes, as an ordinary document has it.
func page(size int) string {
	const section = `<h2 id="s">A heading</h2><p class="text">Some words of a <b>page</b> with <a href="/docs/other.html" title="x">a link</a> and an &eacute; in it,
 and more words that go on for a while until the paragraph is at its end.</p><ul class="list"><li>one thing</li><li><a href="https://other.example/x">another</a></li></ul>
<table><tr><th>name</th><th>value</th></tr><tr><td>a</td><td><code>1</code></td></tr></table><pre>func main() {}</pre><script>track("x")</script>
`
	return "<!doctype html><html><head><title>A page</title></head><body>" + strings.Repeat(section, size/len(section)) + "</body></html>"
}

func run(rounds int, file string) (err error) {
	pages := map[string]string{"/1mb": page(1_000_000), "/8mb": page(8_000_000)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, pages[r.URL.Path])
	}))
	defer server.Close()
	program, err := filepath.Abs("../../../bin/stockade")
	if err != nil {
		return err
	}
	home, err := os.MkdirTemp("", "bench-web-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(home)
	work := filepath.Join(home, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		return err
	}
	rule, err := network.ParseRule(server.URL)
	if err != nil {
		return err
	}
	allow := policy.Rule{Effect: policy.Allow, Tool: "http_fetch", Source: policy.SourceFlag}
	d := door.New(door.Options{})
	defer func() { err = errors.Join(err, d.Close()) }()
	s, err := d.Open(context.Background(), door.SessionOptions{Workspace: work, Policy: policy.Options{Rules: []policy.Rule{allow}, Network: network.New([]network.Rule{rule})}})
	if err != nil {
		return err
	}
	calls := 0
	var last tool.Usage
	fetch := func(url string, offset int) error {
		calls++
		r, err := s.Call(context.Background(), tool.Call{
			ID: fmt.Sprint(calls), Tool: "http_fetch", Args: tool.Marshal(map[string]any{"url": url, "offset": offset}), Caller: tool.CallerPerson, Cwd: work,
		})
		if err == nil && r.Err != nil {
			err = errors.New(r.Summary())
		}
		last = r.Usage
		return err
	}
	command := func(name string, args ...string) func(string) error {
		return func(url string) error {
			cmd := exec.Command(name, append(args, url)...)
			cmd.Env = append(os.Environ(), "HOME="+home)
			return cmd.Run() // what it writes is thrown away
		}
	}
	offsets := map[string]int{"/1mb": 400_000, "/8mb": 3_200_000}
	names := []string{"first", "last", "curl"}
	ways := map[string]func(url string) error{
		"first": func(url string) error { return fetch(url, 0) },
		"last":  func(url string) error { return fetch(url, offsets[strings.TrimPrefix(url, server.URL)]) },
		"noise": func(url string) error { return fetch(url, 0) },
		"curl":  command("curl", "-s"),
		"lynx":  command("lynx", "-dump", "-nolist", "-force_html"),
		"w3m":   command("w3m", "-dump", "-T", "text/html"),
		"process": func(url string) error {
			return command(program, "-C", work, "call", "--allow", "http_fetch", "--allow-net", server.URL, "http_fetch")("url=" + url)
		},
	}
	for _, name := range []string{"lynx", "w3m"} {
		if _, err := exec.LookPath(name); err == nil {
			names = append(names, name)
		}
	}
	names = append(names, "process", "noise")
	r := results{Rounds: rounds, LoadBefore: bench.Load()}
	for _, path := range []string{"/1mb", "/8mb"} {
		m := &measured{Name: path[1:], Took: map[string][]time.Duration{}}
		for round := range rounds + 1 { // the first one warms up
			bench.Progress("round %d of %d: %s", round, rounds, m.Name)
			for _, name := range names {
				start := time.Now()
				if err := ways[name](server.URL + path); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				if name == "last" {
					m.Last = last
				}
				if round > 0 {
					m.Took[name] = append(m.Took[name], time.Since(start))
				}
			}
		}
		r.Pages = append(r.Pages, m)
		for _, name := range names[2 : len(names)-2] {
			for _, own := range []string{"first", "last", "process"} {
				r.Figures = append(r.Figures, bench.Figure{Name: m.Name + " " + own + " / " + name, Measured: bench.PairedRatio(m.Took[own], m.Took[name]), NoTarget: true, Unit: bench.Ratio})
			}
		}
	}
	r.LoadAfter = bench.Load()
	fmt.Printf("%d rounds, load %s before and %s after; medians in ms\n\n", r.Rounds, r.LoadBefore, r.LoadAfter)
	t := bench.Table(os.Stdout, tabwriter.AlignRight)
	fmt.Fprintf(t, "\t%s\tnoise ratio\tMfuel\tpeak MiB\t\n", strings.Join(names, "\t"))
	for _, m := range r.Pages {
		fmt.Fprintf(t, "%s\t", m.Name)
		for _, name := range names {
			fmt.Fprintf(t, "%.1f\t", bench.MS(bench.Median(m.Took[name])))
		}
		fmt.Fprintf(t, "%.3f\t%d\t%d\t\n", bench.PairedRatio(m.Took["first"], m.Took["noise"]), m.Last.FuelUsed/1e6, m.Last.PeakMemoryBytes>>20)
	}
	t.Flush()
	fmt.Println()
	bench.PrintFigures(os.Stdout, r.Figures)
	return bench.WriteJSON(file, r)
}
