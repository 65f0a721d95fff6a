package sandbox_test

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/tool"
	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// TestNothingIsLeft: after every kind of end, memory, files and goroutines of a call are gone
// when Run has returned.
func TestNothingIsLeft(t *testing.T) {
	const limit = 64 << 20
	dir := t.TempDir()
	a := ask{
		mounts: []policy.Mount{{Host: dir, Write: true}}, caps: tool.Capabilities{Files: tool.FilesWrite},
		limits: policy.Limits{MemoryBytes: limit},
	}
	imports, open, path := touch(filepath.Join(dir, "open"))
	opens := w.ToolOptions{Imports: imports, Data: []w.Segment{path}, Locals: i32s(1)}
	with := func(change func(*w.ToolOptions)) w.ToolOptions {
		o := opens
		change(&o)
		return o
	}
	sparse := filepath.Join(dir, "sparse")
	mustWrite(t, sparse, strings.Repeat("x", 9000))
	if err := os.Truncate(sparse, 1<<42); err != nil { // it takes hours to search
		t.Fatal(err)
	}
	reads := a
	reads.mounts, reads.caps = []policy.Mount{{Host: dir}}, tool.Capabilities{Files: tool.FilesRead}
	spins := reads
	spins.limits.Timeout = quick.Timeout / 10
	poor := reads
	poor.limits.Fuel = 2_000_000
	spin := a
	spin.limits.Timeout = quick.Timeout / 10
	for _, c := range []struct {
		name   string
		module w.ToolOptions
		ask    ask
	}{
		{"a good call", w.ToolOptions{}, a},
		{"files left open", with(func(o *w.ToolOptions) { o.Call = code(open, w.ReturnOK("ok")) }), a},
		{"a trap with open files", with(func(o *w.ToolOptions) { o.Call = code(open, w.Unreachable()) }), a},
		{"a trap of the start function with open files", with(func(o *w.ToolOptions) {
			o.Edit = func(b *w.Builder) { b.Start(b.Func("", nil, nil, nil, open, open, w.Unreachable())) }
		}), a},
		{"a deadline with open files", with(func(o *w.ToolOptions) { o.Call = code(open, w.Spin()) }), spin},
		{"a query left behind", begins(sparse, w.ReturnOK("ok")), reads},
		{"a query left behind, on a stage", begins(filepath.Join(dir, "none"), w.ReturnOK("ok")), a},
		{"a trap with a query", begins(sparse, w.Unreachable()), reads},
		{"an exit with a query", begins(sparse, w.I32Const(0), w.Call(2)), reads},
		{"a deadline with a query", begins(sparse, w.Spin()), spins},
		{"no fuel with a query", begins(sparse, w.Spin()), poor},
		{"no memory to start with", w.ToolOptions{MemoryMin: limit>>16 + 1}, a},
		{"an import that is missing", w.ToolOptions{Imports: []w.Import{wasi("no_such")}}, a},
	} {
		t.Run(c.name, func(t *testing.T) {
			box := newBox(t, sandbox.Options{})
			j := granted(t, probe(c.module), c.ask)
			j.mustRun(t, box)
			before := usage(t)
			for range 50 {
				j.mustRun(t, box)
			}
			after := usage(t)
			if after.files > before.files {
				t.Errorf("descriptors went from %d to %d", before.files, after.files)
			}
			if grown := after.mapped - before.mapped; grown > 20*limit {
				t.Errorf("%d MiB of address space are still mapped", grown>>20)
			}
			for tries := 0; runtime.NumGoroutine() > before.goroutines; tries++ {
				if tries > 1_000_000 {
					t.Fatalf("goroutines went from %d to %d", before.goroutines, runtime.NumGoroutine())
				}
				runtime.Gosched() // the engine's watchers have been told to end
			}
		})
	}
}

type used struct{ files, mapped, goroutines int }

func usage(t *testing.T) used {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.Atoi(string(bytes.Fields(statm)[0]))
	if err != nil {
		t.Fatal(err)
	}
	return used{len(fds), pages * os.Getpagesize(), runtime.NumGoroutine()}
}
