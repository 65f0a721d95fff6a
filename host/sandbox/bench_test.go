package sandbox_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stockade-dev/stockade/host/jail"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/sandbox/admit"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// subject is what a benchmark runs: a module of a few hundred bytes, a plugin that is
// as small, and the files tools if they have been built.
type subject struct {
	name string
	mod  *tool.Module
	ask  func(testing.TB) ask
}

func subjects(b testing.TB) []subject {
	out := []subject{
		{"small", probe(wasmtest.ToolOptions{Call: wasmtest.ReturnOK("ok")}), func(testing.TB) ask { return ask{} }},
		{"plugin", vowels(), func(testing.TB) ask { return ask{args: `{"input":"count the vowels"}`} }},
	}
	code, err := os.ReadFile(filepath.Join("..", "..", "guests", "dist", "files.wasm"))
	if err != nil {
		b.Logf("without the files module, which make guests builds: %v", err)
		return out
	}
	return append(out, subject{"files", module(code), func(tb testing.TB) ask {
		dir := tb.TempDir()
		for _, name := range []string{"a.txt", "b.txt", "c/d.txt"} {
			mustWrite(tb, filepath.Join(dir, name), "one\ntwo\nthree\n")
		}
		return ask{
			tool: "ls", cwd: dir, mounts: []policy.Mount{{Host: dir}},
			caps: tool.Capabilities{Files: tool.FilesRead},
		}
	}})
}

func each(b *testing.B, f func(*testing.B, subject)) {
	for _, s := range subjects(b) {
		b.Run(s.name, func(b *testing.B) {
			b.ReportAllocs()
			f(b, s)
		})
	}
}

func BenchmarkAdmit(b *testing.B) {
	each(b, func(b *testing.B, s subject) {
		b.SetBytes(s.mod.Bytes)
		for b.Loop() {
			if _, err := admit.Check(s.mod, sandbox.Dialects); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// compile loads a module in a sandbox of its own.
func compile(b *testing.B, mod *tool.Module, dir string) {
	box := sandbox.New(sandbox.Options{CacheDir: dir, Spawn: jail.RunHelper})
	if err := sandbox.Load(box, mod); err != nil {
		b.Fatal(err)
	}
	if err := box.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkChild is what a child costs that does nothing.
func BenchmarkChild(b *testing.B) {
	for b.Loop() {
		if _, err := jail.RunHelper(context.Background(), "/", sandbox.ChildCommand); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompileCold(b *testing.B) {
	each(b, func(b *testing.B, s subject) {
		for b.Loop() {
			compile(b, s.mod, "")
		}
	})
}

func BenchmarkCompileWarm(b *testing.B) {
	each(b, func(b *testing.B, s subject) {
		dir := filepath.Join(b.TempDir(), "cache")
		compile(b, s.mod, dir)
		for b.Loop() {
			compile(b, s.mod, dir)
		}
	})
}

func BenchmarkInstantiate(b *testing.B) {
	each(b, func(b *testing.B, s subject) {
		box := newBox(b, sandbox.Options{})
		if err := sandbox.Load(box, s.mod); err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if err := sandbox.OpenOnce(context.Background(), box, s.mod); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkCall(b *testing.B) {
	each(b, func(b *testing.B, s subject) {
		box := newBox(b, sandbox.Options{})
		j := granted(b, s.mod, s.ask(b))
		for b.Loop() {
			if r := j.mustRun(b, box); r.Err != nil {
				b.Fatal(r.Err)
			}
		}
	})
}
