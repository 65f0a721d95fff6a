package sandbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/guests/gueststest"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/tool"
	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// searches returns a module that searches a file and answers with the first byte of the
// result, which reports an error.
func searches(file, pattern string, filesLen, patternLen int32) w.ToolOptions {
	const patternAt = pathAt + 4096
	return w.ToolOptions{
		Imports: []w.Import{own("search", "begin", i32s(9)...), own("search", "collect", i32s(1)...)},
		Data:    []w.Segment{{Offset: pathAt, Bytes: []byte(file)}, {Offset: patternAt, Bytes: []byte(pattern)}},
		Call: code(
			w.I32Const(pathAt), w.I32Const(filesLen), w.I32Const(patternAt), w.I32Const(patternLen),
			w.I32Const(0), w.I32Const(-1), w.I32Const(-1), w.I32Const(-1), w.I32Const(resultA), w.Call(0),
			w.I32Const(resultA), w.I32Load8U(0), w.If(
				w.I32Const(resultA), w.I32Load8U(4), w.If(w.ReturnOK("invalid"), w.Return()),
				w.ReturnOK("denied"), w.Return(),
			),
			w.I32Const(resultA), w.Call(1),
			w.I32Const(resultA), w.I32Load8U(0), w.If(w.ReturnOK("not collected"), w.Return()),
			w.I32Const(resultA), w.I32Load(8), w.If(w.ReturnOK("found"), w.Return()),
			w.ReturnOK("nothing"),
		),
		Edit: func(b *w.Builder) { b.ExportFunc("cabi_realloc", 2) },
	}
}

// begins returns a module that begins to search a file and then does something else. Function
// 1 is search.collect, and 2 is proc_exit.
func begins(file string, then ...[]byte) w.ToolOptions {
	o := searches(file, "zebra", int32(len(file)), 5)
	o.Imports = append(o.Imports, w.Import{Module: "wasi_snapshot_preview1", Name: "proc_exit", Params: i32s(1)})
	o.Edit = func(b *w.Builder) { b.ExportFunc("cabi_realloc", 3) }
	o.Call = code(append([][]byte{beginQuery(file)}, then...)...)
	return o
}

// beginQuery calls search.begin for the query in the memory of begins.
func beginQuery(file string) []byte {
	return code(
		w.I32Const(pathAt), w.I32Const(int32(len(file))), w.I32Const(pathAt+4096), w.I32Const(5),
		w.I32Const(0), w.I32Const(-1), w.I32Const(-1), w.I32Const(-1), w.I32Const(resultA), w.Call(0),
	)
}

// Only one query runs at a time, and only a query that was begun is collected. The guest pays
// for the work in any case.
func TestQueriesTakeTurns(t *testing.T) {
	box := newBox(t, sandbox.Options{})
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file, sparse := filepath.Join(dir, "f"), filepath.Join(dir, "sparse")
	mustWrite(t, file, "zebra\n")
	mustWrite(t, sparse, strings.Repeat("x", 9000))
	if err := os.Truncate(sparse, 1<<42); err != nil {
		t.Fatal(err)
	}
	collect := code(w.I32Const(resultA), w.Call(1))
	answer := code( // ok, or the case of the error
		w.I32Const(resultA), w.I32Load8U(0), w.If(
			w.I32Const(resultA), w.I32Load8U(4), w.If(w.ReturnOK("invalid"), w.Return()),
			w.ReturnOK("denied"), w.Return(),
		),
		w.ReturnOK("fine"),
	)
	a := ask{caps: tool.Capabilities{Files: tool.FilesRead}, mounts: []policy.Mount{{Host: dir}}, cwd: dir}
	none := a
	none.caps, none.mounts = tool.Capabilities{}, nil
	first := begins(file)
	first.Call = code(collect, answer)
	for _, c := range []struct {
		name   string
		module w.ToolOptions
		ask    ask
		want   string
	}{
		{"begun and collected", begins(file, collect, answer), a, "fine"},
		{"two begun", begins(sparse, beginQuery(sparse), answer), a, "invalid"},
		{"one after the other", begins(file, collect, beginQuery(file), collect, answer), a, "fine"},
		{"collected twice", begins(file, collect, collect, answer), a, "invalid"},
		{"collected first", first, a, "invalid"},
		{"not granted", begins(file, answer), none, "denied"},
		{"not granted, collected", begins(file, collect, answer), none, "denied"},
		{"a result outside of memory", begins(file, w.I32Const(-4), w.Call(1), answer), a, ""},
		{"the second result outside of memory", begins(sparse, w.I32Const(pathAt), w.I32Const(9), w.I32Const(pathAt+4096), w.I32Const(5),
			w.I32Const(0), w.I32Const(0), w.I32Const(0), w.I32Const(0), w.I32Const(-4), w.Call(0), answer), a, ""},
	} {
		r := granted(t, probe(c.module), c.ask).mustRun(t, box)
		if c.want == "" && r.Err == nil || c.want != "" && !strings.Contains(output(t, r), c.want) {
			t.Errorf("%s: %s, want %q", c.name, r.Summary(), c.want)
		}
	}
	// The fuel is the same in every run, and what is left behind is paid for too.
	var want uint64
	job := granted(t, probe(begins(file, collect, answer)), a)
	for run := range 50 {
		if r := job.mustRun(t, box); run == 0 {
			want = r.Usage.FuelUsed
		} else if r.Usage.FuelUsed != want {
			t.Errorf("run %d takes %d units of fuel, and %d before", run, r.Usage.FuelUsed, want)
		}
	}
}

// Ten calls that search without end do not delay a call with a short search.
func TestAShortSearchAmongLongOnes(t *testing.T) {
	box := newBox(t, sandbox.Options{})
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file, sparse := filepath.Join(dir, "f"), filepath.Join(dir, "sparse")
	mustWrite(t, file, "zebra\n")
	mustWrite(t, sparse, strings.Repeat("x", 9000))
	if err := os.Truncate(sparse, 1<<42); err != nil {
		t.Fatal(err)
	}
	a := ask{caps: tool.Capabilities{Files: tool.FilesRead}, mounts: []policy.Mount{{Host: dir}}, cwd: dir}
	a.limits = policy.Limits{MemoryBytes: 1 << 20, Timeout: time.Hour, Fuel: 1 << 50}
	short := granted(t, probe(searches(file, "zebra", int32(len(file)), 5)), a)
	short.mustRun(t, box)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var hogs sync.WaitGroup
	for i := range 10 {
		hog := granted(t, probe(begins(sparse, [][]byte{w.Spin(), code(w.I32Const(resultA), w.Call(1), w.ReturnOK("ok"))}[i%2])), a)
		hogs.Go(func() { _, _ = hog.run(ctx, box) })
	}
	for end := time.Now().Add(time.Minute); sandbox.MemoryInUse(box) < 10<<16; runtime.Gosched() { // each has some pages
		if time.Now().After(end) {
			t.Fatal("they do not run")
		}
	}
	var took []time.Duration
	for range 20 {
		start := time.Now()
		if r := short.mustRun(t, box); !strings.Contains(output(t, r), "found") {
			t.Error(r.Summary())
		}
		took = append(took, time.Since(start))
	}
	cancel()
	hogs.Wait()
	slices.Sort(took)
	t.Logf("it takes %v, and %v at most", took[10], took[19])
	if took[10] > 5*time.Second {
		t.Error("it is held up")
	}
}

func TestSearchReachesWhatIsGranted(t *testing.T) {
	box := newBox(t, sandbox.Options{})
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	inside, outside := filepath.Join(dir, "ws", "f"), filepath.Join(dir, "f")
	mustWrite(t, inside, "key\n")
	mustWrite(t, outside, "key\n")
	mounts := []policy.Mount{{Host: filepath.Dir(inside)}}
	reads := tool.Capabilities{Files: tool.FilesRead}
	for _, c := range []struct {
		name, file, pattern string
		caps                tool.Capabilities
		want                string
	}{
		{"granted", inside, "key", reads, "found"},
		{"no match", inside, "nokey", reads, "nothing"},
		{"outside", outside, "key", reads, "nothing"},
		{"not granted", inside, "key", tool.Capabilities{}, "denied"},
		{"not a pattern", inside, "(", reads, "invalid"},
		{"a long pattern", inside, strings.Repeat("k", 1025), reads, "invalid"},
	} {
		mod := probe(searches(c.file, c.pattern, int32(len(c.file)), int32(len(c.pattern))))
		r := granted(t, mod, ask{caps: c.caps, mounts: mounts, cwd: filepath.Dir(inside)}).mustRun(t, box)
		if got := output(t, r); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	for name, lengths := range map[string][2]int32{"files": {-1, 1}, "outside of memory": {1 << 19, 1}, "a pattern of 4 GiB": {1, -1}} {
		r := granted(t, probe(searches(inside, "k", lengths[0], lengths[1])), ask{caps: reads, mounts: mounts, cwd: filepath.Dir(inside)}).mustRun(t, box)
		if r.Err == nil && !strings.Contains(output(t, r), "invalid") {
			t.Errorf("%s: %s", name, r.Output)
		}
	}
	// Empty names: few bytes of the guest's, and many of the host's.
	for n, want := range map[int32]string{60_000: "nothing", 75_000: "invalid"} {
		r := granted(t, probe(searches("", "k", n, 1)), ask{caps: reads, mounts: mounts, cwd: filepath.Dir(inside)}).mustRun(t, box)
		if got := output(t, r); !strings.Contains(got, want) {
			t.Errorf("%d empty names: %s, want %s", n, got, want)
		}
	}
}

// stats returns a module that asks for the status of a name.
func stats(name string, size int32) w.ToolOptions {
	return w.ToolOptions{
		Imports: []w.Import{own("search", "stat", i32s(3)...)},
		Data:    []w.Segment{{Offset: pathAt, Bytes: []byte(name)}},
		Call: code(
			w.I32Const(pathAt), w.I32Const(size), w.I32Const(resultA), w.Call(0),
			w.I32Const(resultA), w.I32Load8U(0), w.If(
				w.I32Const(resultA), w.I32Load8U(4), w.If(w.ReturnOK("invalid"), w.Return()),
				w.ReturnOK("denied"), w.Return(),
			),
			w.I32Const(resultA), w.I32Load(4), w.I32Load8U(0), w.If(
				w.I32Const(resultA), w.I32Load(4), w.I32Load8U(8), w.If(w.ReturnOK("has bytes"), w.Return()),
				w.ReturnOK("is empty"), w.Return(),
			),
			w.ReturnOK("nothing"),
		),
		Edit: func(b *w.Builder) { b.ExportFunc("cabi_realloc", 1) },
	}
}

func TestStatReachesWhatIsGranted(t *testing.T) {
	box := newBox(t, sandbox.Options{})
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	inside, empty, outside := filepath.Join(dir, "ws", "f"), filepath.Join(dir, "ws", "e"), filepath.Join(dir, "f")
	mustWrite(t, inside, "key\n")
	mustWrite(t, empty, "")
	mustWrite(t, outside, "key\n")
	reads := tool.Capabilities{Files: tool.FilesRead}
	for _, c := range []struct {
		name, file string
		more       int32
		caps       tool.Capabilities
		want       string
	}{
		{"granted", inside, 0, reads, "has bytes"},
		{"an empty file", empty, 0, reads, "is empty"},
		{"outside", outside, 0, reads, "nothing"},
		{"a way out", filepath.Dir(inside) + "/../f", 0, reads, "nothing"},
		{"not granted", inside, 0, tool.Capabilities{}, "denied"},
		{"too many names", inside, 75_000, reads, "invalid"},
		{"4 GiB of names", inside, -1 - int32(len(inside)), reads, "invalid"},
	} {
		mod := probe(stats(c.file, int32(len(c.file))+c.more))
		r := granted(t, mod, ask{caps: c.caps, mounts: []policy.Mount{{Host: filepath.Dir(inside)}}, cwd: filepath.Dir(inside)}).mustRun(t, box)
		if got := output(t, r); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// The deadline of the call ends a search, and its fuel pays for it.
func TestASearchEndsWithItsCall(t *testing.T) {
	box := newBox(t, sandbox.Options{})
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "f")
	mustWrite(t, file, strings.Repeat("x", 9000))
	if err := os.Truncate(file, 1<<42); err != nil {
		t.Fatal(err)
	}
	mod := probe(searches(file, "zebra", int32(len(file)), 5))
	a := ask{caps: tool.Capabilities{Files: tool.FilesRead}, mounts: []policy.Mount{{Host: dir}}, cwd: dir}
	a.limits = quick
	start := time.Now()
	if r := granted(t, mod, a).mustRun(t, box); r.Err == nil || r.Err.Code != tool.CodeTimeout {
		t.Errorf("without time: %s", r.Summary())
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
	a.limits = policy.Limits{Fuel: 200_000, Timeout: time.Minute}
	if r := granted(t, mod, a).mustRun(t, box); r.Err == nil || r.Err.Code != tool.CodeFuel {
		t.Errorf("without fuel: %s", r.Summary())
	}
}

// grep finds the same with and without the host's help. With a pattern that is too long for
// the host it searches by itself.
func TestGrepFindsTheSameWithoutTheHost(t *testing.T) {
	gueststest.Need(t)
	code, err := os.ReadFile(filepath.Join("..", "..", "guests", "wasm", "files.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"a.txt": "one\nhit two\r\nthree\n", "b/c/d.txt": "hit\n\nhit\n\n\n\nHIT\nlast hit", "b/x.bin": "hit\x00", "b/.hidden": "hit\n",
		".gitignore": "*.log\n/b/out/\n", "b/y.log": "hit\n", "b/out/z": "hit\n", "long": strings.Repeat("ü", 100_000) + "hit\nhit\n",
		"b/.gitignore": "!keep.log\n", "b/keep.log": "bad \xff hit\n", "many": strings.Repeat("a hit\n", 300), "empty": "",
	} {
		mustWrite(t, filepath.Join(dir, name), text)
	}
	box := newBox(t, sandbox.Options{AllowLarge: true, CacheDir: sharedCache})
	long := strings.Repeat("(?:)", 300)
	for _, args := range []map[string]any{
		{}, {"context": 2}, {"ignore_case": true, "max_results": 3, "context": 1}, {"path": "b/c/d.txt", "context": 20},
		{"include_hidden": true, "ignore_gitignore": true, "max_results": 1000},
	} {
		var results [2][]byte
		for i, pattern := range []string{"h[i]t", "h[i]t" + long} {
			args["pattern"] = pattern
			text, err := json.Marshal(args)
			if err != nil {
				t.Fatal(err)
			}
			r := granted(t, module(code), ask{
				tool: "grep", args: string(text), cwd: dir,
				mounts: []policy.Mount{{Host: dir}}, caps: tool.Capabilities{Files: tool.FilesRead},
			}).mustRun(t, box)
			output(t, r)
			results[i] = r.Output
		}
		if !bytes.Equal(results[0], results[1]) || !bytes.Contains(results[0], []byte("hit")) {
			t.Errorf("%v\nwith the host:\n%s\nwithout:\n%s", args, results[0], results[1])
		}
	}
}
