//go:build bench

// Command web measures http_fetch for a page of 1 MB and of 8 MB from a server on this
// machine, in the sandbox and with a grant, beside curl, which discards the page, and
// lynx and w3m, which convert it to text, if they are installed.
//
// Run it in host/internal/peers, on Linux, when the machine is otherwise idle, after
// make build; it needs curl:
//
//	go run -tags bench ./web [-rounds N] [-only names] [-json FILE]
//
// "first" is a call in a running process, as for an agent: it returns the first 50,000
// bytes of text. "last" returns the last ones, for which the whole page has to be read.
// "process" is stockade call, with its record on the disk. The others are processes, and
// their start counts. All ways take turns, and a figure is the ratio of two that were
// made one after the other: its median. "noise" is first against itself.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/stockade-dev/stockade/host/door"
	"github.com/stockade-dev/stockade/host/internal/peers/bench"
	"github.com/stockade-dev/stockade/host/internal/peers/call/guest"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/tool"
)

func main() {
	guest.RunCompileChild()
	bench.Main("web", 7, "1mb", run)
}

// page returns HTML of about size bytes, like that of an ordinary document.
func page(size int) string {
	const section = `<h2 id="s">A heading</h2><p class="text">Some words of a <b>page</b> with <a href="/docs/other.html" title="x">a link</a> and an &eacute; in it,
 and more words that go on for a while until the paragraph is at its end.</p><ul class="list"><li>one thing</li><li><a href="https://other.example/x">another</a></li></ul>
<table><tr><th>name</th><th>value</th></tr><tr><td>a</td><td><code>1</code></td></tr></table><pre>func main() {}</pre><script>track("x")</script>
`
	return "<!doctype html><html><head><title>A page</title></head><body>" + strings.Repeat(section, size/len(section)) + "</body></html>"
}

func run(o bench.Options) (err error) {
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
			return cmd.Run() // the output is discarded
		}
	}
	offsets := map[string]int{"/1mb": 400_000, "/8mb": 3_200_000}
	names := []string{"first", "last", "curl"} // ours are first and last
	ways := map[string]func(url string) error{
		"first":     func(url string) error { return fetch(url, 0) },
		"last":      func(url string) error { return fetch(url, offsets[strings.TrimPrefix(url, server.URL)]) },
		bench.Noise: func(url string) error { return fetch(url, 0) },
		"curl":      command("curl", "-s"),
		"lynx":      command("lynx", "-dump", "-nolist", "-force_html"),
		"w3m":       command("w3m", "-dump", "-T", "text/html"),
		"process": func(url string) error {
			return command(program, "-C", work, "call", "--allow", "http_fetch", "--allow-net", server.URL, "http_fetch")("url=" + url)
		},
	}
	for _, name := range []string{"lynx", "w3m"} {
		if _, err := exec.LookPath(name); err == nil {
			names = append(names, name)
		}
	}
	names = append(names, "process", bench.Noise)
	var jobs []bench.Job
	for _, page := range []string{"1mb", "8mb"} {
		jobs = append(jobs, bench.Job{Name: page, Measure: func() (*bench.JobResult, error) {
			m := &bench.JobResult{Name: page, Ways: names}
			return m, m.Turns(o.Rounds, func(_ int, way string) (time.Duration, error) {
				start := time.Now()
				err := ways[way](server.URL + "/" + page)
				took := time.Since(start)
				if way == "last" {
					m.FuelUsed, m.PeakBytes = last.FuelUsed, last.PeakMemoryBytes
				}
				return took, err
			})
		}})
	}
	return o.Compare("", jobs, func(m *bench.JobResult) (out []bench.Figure) {
		for _, name := range names[2 : len(names)-2] {
			for _, own := range []string{"first", "last", "process"} {
				out = append(out, m.RatioTo(own, name))
			}
		}
		return out
	})
}
