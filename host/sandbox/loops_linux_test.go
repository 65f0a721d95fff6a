package sandbox_test

import (
	"bufio"
	"bytes"
	"context"
	goflag "flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/jail"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/tool"
)

var (
	allLoops  = goflag.Bool("loops", false, "run all loops, not only some: make test-engine-memory")
	loopFirst = goflag.Duration("loop-first", 300*time.Millisecond, "how long a loop runs at first")
	loopLong  = goflag.Duration("loop-long", 2*time.Second, "how long a loop runs that grew")

	// Of a process that measures:
	measured      = goflag.String("measured", "", "the loops to run, with '|' between them")
	measuredFor   = goflag.Duration("measured-for", time.Second, "how long each runs")
	measuredCalls = goflag.Int("measured-calls", 1, "how many calls of it run at once")
	measuredCache = goflag.String("measured-cache", "", "the directory for compiled code")
)

const (
	loopMemory   = 128 << 20 // tool_memory
	loopTogether = 384 << 20 // tool_memory_total
	loopMargin   = 64 << 20  // limit of the process beyond the memory of one call
	allMargin    = 256 << 20 // limit of the process beyond the memory of six calls
	loopGrown    = 8 << 20
)

// resident returns a value of /proc/self/status, in bytes.
func resident(tb testing.TB, key string) int {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		tb.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(line, []byte(key+":")); ok {
			n, err := strconv.Atoi(strings.Fields(string(rest))[0])
			if err != nil {
				tb.Fatal(err)
			}
			return n << 10
		}
	}
	tb.Fatalf("no %s in /proc/self/status", key)
	return 0
}

// TestMeasuredLoops runs loops for TestLoopsAreBounded, in a process of its own. For each it
// prints a line: its name, and the memory of the process before it and at most.
func TestMeasuredLoops(t *testing.T) {
	if *measured == "" {
		return
	}
	sandbox.LimitGarbage(400) // as the program does
	debug.SetMemoryLimit(loopTogether + allMargin)
	all := loops()
	for _, name := range strings.Split(*measured, "|") {
		l := all[slices.IndexFunc(all, func(l endless) bool { return l.name == name })]
		before, most := measure(t, l)
		fmt.Printf("loop\t%s\t%d\t%d\n", name, before, most)
	}
}

func measure(t *testing.T, l endless) (before, most int) {
	dir, stages := t.TempDir(), t.TempDir()
	for i := range 1000 {
		mustWrite(t, filepath.Join(dir, "n", fmt.Sprintf("file %d", i)), "")
	}
	box := sandbox.New(sandbox.Options{
		CacheDir: *measuredCache, MemoryBytes: loopTogether, StageDir: func() string { return stages }, Spawn: jail.RunHelper,
	})
	mods := l.mods(t)
	for _, m := range mods {
		must(t, box.Compile(t.Context(), m))
	}
	debug.FreeOSMemory()
	before = resident(t, "VmRSS")
	must(t, os.WriteFile("/proc/self/clear_refs", []byte("5"), 0o600)) // the most is counted from now on
	share := max(*measuredFor/time.Duration(len(mods)), 20*time.Millisecond)
	for _, m := range mods {
		end := time.Now().Add(share)
		var wg sync.WaitGroup
		for range *measuredCalls {
			wg.Go(func() {
				for left := share; left > 0; left = time.Until(end) {
					callLoop(t, box, m, dir, left)
				}
			})
		}
		wg.Wait()
	}
	most = resident(t, "VmHWM")
	must(t, box.Close())
	return before, most
}

// callLoop makes one call. It ignores the result, unless the host is at fault.
func callLoop(t *testing.T, box *sandbox.Sandbox, m *tool.Module, dir string, timeout time.Duration) {
	j := granted(t, m, ask{
		caps: tool.Capabilities{Files: tool.FilesWrite, Store: true}, mounts: []policy.Mount{{Host: dir, Write: true}}, cwd: dir, rehearsal: true,
		limits: policy.Limits{MemoryBytes: loopMemory, Timeout: timeout, Fuel: 1 << 50, HostCalls: 1 << 40},
	})
	_, staged, err := box.Run(context.Background(), j.grant, j.mod, j.call, func(tool.Progress) {})
	if staged != nil {
		_ = staged.Drop()
	}
	if err != nil {
		t.Errorf("the host is blamed: %v", err)
	}
}

// held is the memory of the process before a loop, and its maximum.
type held struct{ before, most int }

// measureApart runs loops in new processes, without memory of other tests. A process that
// does not end by itself fails the test.
func measureApart(t *testing.T, names []string, each time.Duration, calls int, cache string) map[string]held {
	t.Helper()
	out := map[string]held{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	const batch = 12
	chunks := make(chan []string)
	for range max(1, 2/calls) {
		wg.Go(func() {
			for chunk := range chunks {
				cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMeasuredLoops$", "-measured="+strings.Join(chunk, "|"),
					"-measured-for="+each.String(), fmt.Sprint("-measured-calls=", calls), "-measured-cache="+cache)
				text, err := cmd.CombinedOutput()
				if err != nil {
					t.Errorf("%s: %v\n%.4000s", strings.Join(chunk, ", "), err, text)
				}
				mu.Lock()
				for s := bufio.NewScanner(bytes.NewReader(text)); s.Scan(); {
					if f := strings.Split(s.Text(), "\t"); len(f) == 4 && f[0] == "loop" {
						before, _ := strconv.Atoi(f[2])
						most, _ := strconv.Atoi(f[3])
						out[f[1]] = held{before, most}
					}
				}
				mu.Unlock()
			}
		})
	}
	for chunk := range slices.Chunk(names, batch) {
		chunks <- chunk
	}
	close(chunks)
	wg.Wait()
	return out
}

// TestLoopsAreBounded: whatever guests do for ever, in one call or in six at once, this
// process takes little more memory than the calls may have.
func TestLoopsAreBounded(t *testing.T) {
	var names []string
	for _, l := range loops() {
		if *allLoops || slices.Contains(always, l.name) {
			names = append(names, l.name)
		}
	}
	cache := filepath.Join(t.TempDir(), "cache")
	within := func(got map[string]held, names []string, limit int, what string) {
		t.Helper()
		for _, name := range names {
			if n, ok := got[name]; !ok {
				t.Errorf("%s, %s: it was not measured", name, what)
			} else if n.most > limit {
				t.Errorf("%s, %s: %d MiB, more than %d; it began with %d", name, what, n.most>>20, limit>>20, n.before>>20)
			}
		}
	}
	first := measureApart(t, names, *loopFirst, 1, cache)
	within(first, names, loopMemory+loopMargin, "at first")
	var grown []string
	for _, name := range names {
		if n := first[name]; n.most-n.before > loopGrown {
			grown = append(grown, name)
			t.Logf("%s grew from %d to %d MiB", name, n.before>>20, n.most>>20)
		}
	}
	if !*allLoops {
		return
	}
	within(measureApart(t, grown, *loopLong, 1, cache), grown, loopMemory+loopMargin, "for longer")
	slices.SortStableFunc(grown, func(a, b string) int { return (first[b].most - first[b].before) - (first[a].most - first[a].before) })
	six := grown[:min(len(grown), 20)]
	within(measureApart(t, six, *loopFirst*2, 6, cache), six, loopTogether+allMargin, "six at once")
}
