package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/dispatch"
	"github.com/stockade-dev/stockade/host/tool"
)

var soak = flag.Duration("soak", 0, "make calls for so long; otherwise a few hundred are made")

const (
	soakers     = 2   // goroutines that make calls
	soakSession = 500 // calls of a session
	soakShort   = 60  // calls of each goroutine where no time is given
)

// usage is the resources that this process holds at one time.
type usage struct {
	privateKB, goroutines, descriptors, files int
}

func (u usage) String() string {
	return fmt.Sprintf("%d kB of private memory, %d goroutines, %d descriptors, %d temporary files",
		u.privateKB, u.goroutines, u.descriptors, u.files)
}

// TestSoak makes calls of all built-in tools, including failing ones, with the whole
// program around them. It checks that the process holds no more at the end than after
// warming up.
func TestSoak(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	a := testApp(t)
	for i := range 20 {
		if err := os.WriteFile(filepath.Join(a.Workspace, fmt.Sprintf("file%d.txt", i)), []byte(content(i, 0)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx := t.Context()
	s := &soaking{t: t, a: a}
	s.warmUp(ctx)

	var group sync.WaitGroup
	for i := range soakers {
		group.Go(func() { s.calls(ctx, rand.New(rand.NewPCG(1, uint64(i))), i) })
	}
	done := make(chan struct{})
	go func() { group.Wait(); close(done) }()
	var samples []usage
	tick := time.NewTicker(max(*soak/200, 100*time.Millisecond))
	defer tick.Stop()
	for running := true; running; {
		select {
		case <-tick.C:
			samples = append(samples, s.usage(temp))
		case <-done:
			running = false
		}
	}
	s.mu.Lock()
	t.Logf("%d calls, %d of which failed as they should", s.made, s.failed)
	s.mu.Unlock()
	if n := len(samples); n >= 40 {
		compare(t, samples[n/4:n/2], samples[3*n/4:])
	}
	end := s.usage(temp)
	for deadline := time.Now().Add(10 * time.Second); end.files > 1 && time.Now().Before(deadline); end = s.usage(temp) {
		<-tick.C // stages are removed in the background
	}
	if end.files > 1 { // the stage of the next command
		t.Errorf("at the end there are %s", end)
	}
}

// compare holds the medians of two times against each other.
func compare(t *testing.T, before, after []usage) {
	t.Helper()
	median := func(samples []usage, of func(usage) int) int {
		var v []int
		for _, u := range samples {
			v = append(v, of(u))
		}
		slices.Sort(v)
		return v[len(v)/2]
	}
	for _, c := range []struct {
		name  string
		of    func(usage) int
		slack func(int) int
	}{
		{"kB of private memory", func(u usage) int { return u.privateKB }, func(v int) int { return v/20 + 4<<10 }},
		{"goroutines", func(u usage) int { return u.goroutines }, func(int) int { return 2 }},
		{"descriptors", func(u usage) int { return u.descriptors }, func(int) int { return 2 }},
		{"temporary files", func(u usage) int { return u.files }, func(int) int { return 2 }},
	} {
		was, is := median(before, c.of), median(after, c.of)
		t.Logf("%s: %d in the second quarter, %d in the last", c.name, was, is)
		if is > was+c.slack(was) {
			t.Errorf("%s: %d in the last quarter, and %d in the second", c.name, is, was)
		}
	}
}

// soaking is one run.
type soaking struct {
	t   *testing.T
	a   *app
	end time.Time

	mu           sync.Mutex
	made, failed int
}

// warmUp makes what is made once: the store, the sandbox, compiled modules.
func (s *soaking) warmUp(ctx context.Context) {
	d := testSession(s.t, s.a)
	for _, call := range []tool.Call{{Tool: "ls", Args: json.RawMessage(`{}`)}, {Tool: "bash", Args: json.RawMessage(`{"command":"true"}`)}} {
		call.ID, call.Caller, call.Cwd = "call_warm_"+call.Tool, tool.CallerPerson, s.a.Workspace
		if r, err := d.Call(ctx, call); err != nil || r.Err != nil {
			s.t.Fatalf("%s: %s, %v", call.Tool, r.Envelope(), err)
		}
	}
	s.end = time.Now().Add(*soak)
}

// calls makes calls until the time is up, in one session after another.
func (s *soaking) calls(ctx context.Context, random *rand.Rand, worker int) {
	var d *dispatch.Dispatcher
	for i := 0; *soak > 0 && time.Now().Before(s.end) || *soak == 0 && i < soakShort; i++ {
		if i%soakSession == 0 {
			d = testSession(s.t, s.a)
		}
		call, fails := s.call(random, worker)
		call.ID, call.Caller, call.Cwd = fmt.Sprintf("call_%d_%d", worker, i), tool.CallerPerson, s.a.Workspace
		r, err := d.Call(ctx, call)
		if err != nil {
			s.t.Errorf("%s %s: %v", call.Tool, call.Args, err)
			return
		}
		if (r.Err != nil) != fails {
			s.t.Errorf("%s %s: %s", call.Tool, call.Args, r.Envelope())
			return
		}
		s.mu.Lock()
		s.made++
		if fails {
			s.failed++
		}
		s.mu.Unlock()
	}
}

func content(i, version int) string {
	return fmt.Sprintf("file %d\nversion %d\n%s", i, version, strings.Repeat("the same line\n", i*20))
}

// call makes one of the calls that there are. Each goroutine changes files of
// its own.
func (s *soaking) call(random *rand.Rand, worker int) (_ tool.Call, fails bool) {
	make := func(name string, args map[string]any) tool.Call {
		data, err := json.Marshal(args)
		if err != nil {
			panic(err) // strings and numbers
		}
		return tool.Call{Tool: name, Args: data}
	}
	read, own := random.IntN(20), worker
	switch n := random.IntN(100); {
	case n < 25:
		return make("file_read", map[string]any{"path": fmt.Sprintf("file%d.txt", 2+read%18)}), false
	case n < 40:
		return make("ls", map[string]any{"path": "."}), false
	case n < 50:
		return make("glob", map[string]any{"pattern": "**/*1*.txt"}), false
	case n < 60:
		return make("grep", map[string]any{"pattern": "version [0-9]+"}), false
	case n < 75:
		return make("file_write", map[string]any{
			"path": fmt.Sprintf("file%d.txt", own), "content": content(own, random.IntN(1<<30)),
		}), false
	case n < 83:
		return make("file_edit", map[string]any{
			"path": fmt.Sprintf("file%d.txt", own), "old_string": fmt.Sprintf("file %d\n", own), "new_string": fmt.Sprintf("file %d\n+\n", own),
		}), false
	case n < 86:
		return make("bash", map[string]any{"command": "cat file5.txt"}), false
	case n < 89:
		return make("file_edit", map[string]any{"path": "file7.txt", "old_string": "nowhere", "new_string": "x"}), true
	case n < 92:
		return make("file_read", map[string]any{"path": "missing.txt"}), true
	case n < 95:
		return make("file_read", map[string]any{"path": "/etc/passwd"}), true
	case n < 97:
		return make("file_write", map[string]any{"path": "../outside.txt", "content": "x"}), true
	case n < 98:
		return make("bash", map[string]any{"command": "exit 3"}), false // it reports the exit code
	default:
		return make("file_read", map[string]any{"path": 7}), true
	}
}

// usage returns the resources that the process holds now.
func (s *soaking) usage(temp string) usage {
	u := usage{goroutines: runtime.NumGoroutine()}
	rollup, err := os.ReadFile("/proc/self/smaps_rollup")
	if err != nil {
		s.t.Error(err)
	}
	for line := range strings.Lines(string(rollup)) {
		var kB int
		for _, kind := range []string{"Private_Dirty:", "Private_Clean:"} {
			if _, err := fmt.Sscanf(line, kind+" %d kB", &kB); err == nil {
				u.privateKB += kB
			}
		}
	}
	if fds, err := os.ReadDir("/proc/self/fd"); err == nil {
		u.descriptors = len(fds)
	}
	for _, dir := range []string{temp, filepath.Join(s.a.Dirs.Stages())} {
		err := filepath.WalkDir(dir, func(name string, entry os.DirEntry, err error) error {
			// The directory of this process and its lock stay as long as it lives.
			if err == nil && name != dir && filepath.Dir(name) != s.a.Dirs.Stages() {
				u.files++
			}
			if strings.HasPrefix(entry.Name(), "layer-") { // the kernel owns the files below
				return filepath.SkipDir
			}
			return nil // an entry that is removed meanwhile does not count
		})
		if err != nil {
			s.t.Error(err)
		}
	}
	return u
}
