package sandbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm"
	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// plain returns a module whose instances are never reset: its code changes a table.
func plain(o w.ToolOptions) w.ToolOptions {
	edit := o.Edit
	o.Edit = func(b *w.Builder) {
		if edit != nil {
			edit(b)
		}
		b.Table(1, 1)
		b.Func("", nil, nil, nil, w.I32Const(0), w.RefNull(w.FuncRef), []byte{0x26, 0})
	}
	return o
}

// both runs a test with a module that is reset and with one that is not.
func both(t *testing.T, o w.ToolOptions, test func(t *testing.T, mod *tool.Module)) {
	t.Run("put back", func(t *testing.T) { test(t, probe(o)) })
	t.Run("plain", func(t *testing.T) { test(t, probe(plain(o))) })
}

// The changes of a guest to its memory and its globals are gone in the next call, which finds
// the state after the start function.
func TestCallsLeaveNothingBehind(t *testing.T) {
	const at = 40_000
	const global = 1
	count := slices.Concat( // adds one to a global and to a word of memory
		w.GlobalGet(global), w.I32Const(1), w.I32Add(), w.GlobalSet(global),
		w.I32Const(at), w.I32Const(at), w.I32Load(0), w.I32Const(1), w.I32Add(), w.I32Store(0))
	once := func(v []byte) []byte { return slices.Concat(v, w.I32Const(1), w.I32Sub(), w.If(w.Unreachable())) }
	o := w.ToolOptions{
		Call: code(once(w.GlobalGet(global)), once(slices.Concat(w.I32Const(at), w.I32Load(0))), count, w.ReturnOK("ok")),
		Edit: func(b *w.Builder) {
			if g := b.Global(w.I32, true, w.I32Const(0)); g != global {
				panic(g)
			}
			b.Start(b.Func("", nil, nil, nil, count))
		},
	}
	both(t, o, func(t *testing.T, mod *tool.Module) {
		cache := filepath.Join(t.TempDir(), "cache")
		for i := range 6 {
			box := newBox(t, sandbox.Options{VerifyReset: true, CacheDir: cache, OnCompile: func(*tool.Module) {
				if i > 0 {
					t.Error("it is compiled again")
				}
			}})
			for k := range 3 {
				if r := granted(t, mod, ask{}).mustRun(t, box); r.Err != nil {
					t.Errorf("process %d, call %d: %s", i, k, r.Err.Message)
				}
			}
		}
	})
}

// A module that can be reset is cached as native code and snapshot: the rest of it is not
// even read again.
func TestWhatIsKept(t *testing.T) {
	both(t, w.ToolOptions{Edit: func(b *w.Builder) {
		b.Func("", nil, nil, nil, slices.Repeat(slices.Concat(w.I32Const(1), w.Drop()), 10_000))
	}}, func(t *testing.T, mod *tool.Module) {
		dir := filepath.Join(t.TempDir(), "cache")
		box := newBox(t, sandbox.Options{CacheDir: dir})
		if box.Ready(mod) {
			t.Error("it is kept before it was compiled")
		}
		output(t, granted(t, mod, ask{}).mustRun(t, box))
		if !box.Ready(mod) || box.Ready(probe(w.ToolOptions{MemoryMin: 9})) {
			t.Error("it is not kept, or another one is")
		}
		entries, err := filepath.Glob(filepath.Join(dir, "*", "*"))
		if err != nil {
			t.Fatal(err)
		}
		size := map[string]int64{}
		for _, e := range entries {
			st, err := os.Stat(e)
			if err != nil {
				t.Fatal(err)
			}
			size[filepath.Base(e)] = st.Size()
		}
		_, image := size["image"]
		_, state := size["state"]
		if small := size["module.wasm"] < 10_000; len(size) == 0 || image != small || !state || small == strings.HasSuffix(t.Name(), "plain") {
			t.Errorf("these files are kept: %v", size)
		}
	})
}

// An instance that trapped or exceeded a limit is not used again, and does no harm to the
// next call.
func TestWhatEndedBadlyIsThrownAway(t *testing.T) {
	for name, c := range map[string]struct {
		body   []byte
		limits policy.Limits
		code   tool.Code
	}{
		"trap": {w.Unreachable(), policy.Limits{}, tool.CodeTrap},
		"fuel": {w.Spin(), policy.Limits{Fuel: 1_000_000}, tool.CodeFuel},
		"time": {w.Spin(), policy.Limits{Timeout: 20 * time.Millisecond}, tool.CodeTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, sandbox.Options{VerifyReset: true})
			mod := probe(w.ToolOptions{Call: code(
				w.I32Const(40_000), w.I32Load(0), w.If(w.Unreachable()), // something is left
				w.I32Const(40_000), w.I32Const(1), w.I32Store(0),
				c.body)})
			var peak uint64
			for range 3 {
				r := granted(t, mod, ask{limits: c.limits}).mustRun(t, box)
				if r.Err == nil || r.Err.Code != c.code {
					t.Errorf("%+v, want %s", r.Err, c.code)
				}
				if peak != 0 && r.Usage.PeakMemoryBytes != peak {
					t.Errorf("peaks of %d and %d bytes", peak, r.Usage.PeakMemoryBytes)
				}
				peak = r.Usage.PeakMemoryBytes
			}
			if n := sandbox.Idle(box, mod); n != 0 {
				t.Errorf("%d instances wait for another call", n)
			}
		})
	}
}

// A memory that has grown is restored for the next call: it has its old size, and zeros where
// it grows. With all of its pages used, the call gets a new instance.
func TestWhatHasGrownIsUsedAgain(t *testing.T) {
	for name, c := range map[string]struct{ most, idle int }{
		"with room":  {-1, 1},
		"with none":  {5, 0},
		"some pages": {6, 1},
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, sandbox.Options{VerifyReset: true})
			mod := probe(w.ToolOptions{MemoryMin: 2, MemoryMax: c.most, Call: code(
				w.MemorySize(), w.I32Const(2), w.I32Ne(), w.If(w.Unreachable()),
				w.LocalGet(w.ParamArgsLen), w.I32Const(2), w.I32Ne(), w.If(w.I32Const(300_000), w.I32Load(0), w.Drop(), w.ReturnOK("read"), w.Return()),
				w.I32Const(3), w.MemoryGrow(), w.I32Const(2), w.I32Ne(), w.If(w.Unreachable()),
				w.I32Const(300_000), w.I32Load(0), w.If(w.Unreachable()), // something is left
				w.I32Const(300_000), w.I32Const(1), w.I32Store(0),
				w.ReturnOK("fine"))})
			for range 3 {
				r := granted(t, mod, ask{}).mustRun(t, box)
				output(t, r)
				if r.Usage.PeakMemoryBytes != 5<<16 {
					t.Errorf("a peak of %d bytes", r.Usage.PeakMemoryBytes)
				}
			}
			if n := sandbox.Idle(box, mod); n != c.idle {
				t.Errorf("%d instances wait for another call, want %d", n, c.idle)
			}
			if n := sandbox.MemoryInUse(box); n != 0 {
				t.Errorf("%d bytes are still held", n)
			}
			failure(t, granted(t, mod, ask{args: `{"beyond":1}`}).mustRun(t, box), tool.CodeTrap, tool.InternalError, "out of bounds")
		})
	}
}

// While a module initialises it has no files, whatever the call is granted, and a clock that
// stands still.
func TestNothingIsThereWhileAModuleInitialises(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "made")
	both(t, touchAtStart(file), func(t *testing.T, mod *tool.Module) {
		box := newBox(t, sandbox.Options{})
		a := ask{mounts: []policy.Mount{{Host: dir, Write: true}}, caps: tool.Capabilities{Files: tool.FilesWrite}, cwd: dir}
		granted(t, mod, a).mustRun(t, box)
		if _, err := os.Stat(file); err == nil {
			t.Error("a file was made")
		}
	})
}

// Two calls at once have two instances, and as many wait afterwards.
func TestInstancesAreUsedByOneCallAtATime(t *testing.T) {
	box := newBox(t, sandbox.Options{VerifyReset: true})
	mod := probe(w.ToolOptions{Locals: []w.ValType{w.I32}, Call: code(
		w.I32Const(40_000), w.I32Load(0), w.If(w.Unreachable()),
		w.I32Const(40_000), w.I32Const(1), w.I32Store(0),
		counts(100_000), w.ReturnOK("ok"))})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if r, err := granted(t, mod, ask{}).run(context.Background(), box); err != nil || r.Err != nil {
					t.Errorf("%v, %v", r.Err, err)
				}
			}
		})
	}
	wg.Wait()
	if n := sandbox.Idle(box, mod); n < 1 || n > sandbox.MostIdle {
		t.Errorf("%d instances wait for another call", n)
	}
}

// All memory is given back to the quota between calls.
func TestIdleInstancesHoldNoQuota(t *testing.T) {
	const page = 64 << 10
	box := newBox(t, sandbox.Options{MemoryBytes: 5 * page})
	for i := range 4 {
		mod := probe(w.ToolOptions{MemoryMin: 3, Call: w.ReturnOK(fmt.Sprint(i))})
		for range 2 {
			output(t, granted(t, mod, ask{}).mustRun(t, box))
		}
	}
}

// Slots that wait long are trimmed and then closed; calls do not notice.
func TestIdleInstancesAreTrimmed(t *testing.T) {
	box, mod := newBox(t, sandbox.Options{VerifyReset: true}), probe(counter())
	first := output(t, granted(t, mod, ask{}).mustRun(t, box))
	for _, step := range []struct {
		passed time.Duration
		idle   int
	}{{time.Second, 1}, {time.Minute, 1}, {time.Hour, 0}} {
		sandbox.Trim(box, step.passed)
		if n := sandbox.Idle(box, mod); n != step.idle {
			t.Errorf("after %s, %d instances wait", step.passed, n)
		}
		if got := output(t, granted(t, mod, ask{}).mustRun(t, box)); got != first {
			t.Errorf("after %s, a call returns %s, and the first %s", step.passed, got, first)
		}
	}
}

// Numbers that a Go program takes from its runtime differ from call to call,
// although every call begins with the same memory.
func TestGoGetsNewRandomNumbers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "random.wasm")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w", "-o", file, "./testdata/random")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	code, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	type answer struct {
		Init, Math, Map, Crypto string
		Left                    int
		Began                   int64
		Later                   bool
	}
	call := func(box *sandbox.Sandbox) (a answer) {
		r := granted(t, module(code), ask{tool: "random"}).mustRun(t, box)
		if r.Err != nil || json.Unmarshal(r.Output, &a) != nil {
			t.Fatalf("%+v: %s", r.Err, r.Output)
		}
		return a
	}
	box := newBox(t, sandbox.Options{VerifyReset: true})
	var answers []answer
	for range 4 {
		answers = append(answers, call(box))
	}
	first := answers[0]
	for _, a := range answers {
		if a.Left != 1 || !a.Later || a.Init != first.Init || a.Began != first.Began {
			t.Errorf("a call does not begin as the first one did: %+v", a)
		}
	}
	for _, a := range answers[1:] {
		if a.Math == first.Math || a.Map == first.Map || a.Crypto == first.Crypto {
			t.Errorf("two calls got the same random numbers:\n%+v\n%+v", first, a)
		}
	}
}

// Tables and segments are not in memory: a module that changes them gets an
// instance of its own for each call.
func TestTablesAndSegmentsAreNewToo(t *testing.T) {
	for name, o := range map[string]w.ToolOptions{
		"table.set": {
			Call: code(w.I32Const(0), []byte{0x25, 0, 0xd1}, w.If(w.Unreachable()), // table.get, ref.is_null
				w.I32Const(0), w.RefNull(w.FuncRef), []byte{0x26, 0}, w.ReturnOK("ok")),
			Edit: func(b *w.Builder) {
				b.Table(1, 1)
				b.Elem(0, b.Func("", nil, nil, nil))
			},
		},
		"table.grow": {
			Call: code([]byte{0xfc, 16, 0}, w.If(w.Unreachable()), // table.size
				w.RefNull(w.FuncRef), w.I32Const(1), w.TableGrow(0), w.Drop(), w.ReturnOK("ok")),
			Edit: func(b *w.Builder) { b.Table(0, 5) },
		},
		"data.drop": {
			Call: code(w.I32Const(40_000), w.I32Const(0), w.I32Const(1), []byte{0xfc, 8, 0, 0}, []byte{0xfc, 9, 0}, w.ReturnOK("ok")),
			Edit: func(b *w.Builder) { b.PassiveData([]byte("x")) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "cache")
			box, mod := newBox(t, sandbox.Options{VerifyReset: true, CacheDir: dir}), probe(o)
			for i := range 3 {
				if r := granted(t, mod, ask{}).mustRun(t, box); r.Err != nil {
					t.Errorf("call %d: %s", i, r.Err.Message)
				}
			}
			if n := sandbox.Idle(box, mod); n != 0 {
				t.Errorf("%d instances wait for another call", n)
			}
			for where, box := range map[string]*sandbox.Sandbox{"compiled": box, "from the cache": newBox(t, sandbox.Options{CacheDir: dir})} {
				if b, err := box.Snapshot(t.Context(), mod); err != nil || b.ImageBytes != 0 || !strings.Contains(b.Why, name) {
					t.Errorf("%s, it begins with %+v, %v", where, b, err)
				}
			}
		})
	}
}

func TestWhatCallsBeginWith(t *testing.T) {
	for name, c := range map[string]struct {
		tool w.ToolOptions
		want sandbox.SnapshotInfo
	}{
		"a snapshot":           {w.ToolOptions{MemoryMin: 3}, sandbox.SnapshotInfo{ImageBytes: 3 << 16}},
		"what cannot be begun": {w.ToolOptions{Edit: func(b *w.Builder) { b.Start(b.Func("", nil, nil, nil, w.Unreachable())) }}, sandbox.SnapshotInfo{Why: "it fails"}},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := newBox(t, sandbox.Options{}).Snapshot(t.Context(), probe(c.tool))
			if err != nil || b.ImageBytes != c.want.ImageBytes || !strings.Contains(b.Why, c.want.Why) || b.Reseeded != c.want.Reseeded {
				t.Errorf("it begins with %+v, %v", b, err)
			}
		})
	}
	b, err := newBox(t, sandbox.Options{Interpreter: true}).Snapshot(t.Context(), probe(w.ToolOptions{}))
	if err != nil || b.ImageBytes != 0 || b.Why == "" {
		t.Errorf("the interpreter begins with %+v, %v", b, err)
	}
}

// A module may have no memory at all when it begins.
func TestAModuleWithoutMemory(t *testing.T) {
	code := w.Tool(w.ToolOptions{})
	m, err := wasm.Decode(code)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range m.Sections {
		if s.ID == wasm.SectionMemory {
			code[s.PayloadOffset+2] = 0 // after the number of memories and the flags
		}
	}
	for _, dir := range []string{"", filepath.Join(t.TempDir(), "cache")} {
		box := newBox(t, sandbox.Options{CacheDir: dir})
		for range 2 {
			if r := granted(t, module(code), ask{}).mustRun(t, box); r.Err == nil || r.Err.Code == tool.CodeNotAdmitted {
				t.Errorf("%+v", r)
			}
		}
	}
}
