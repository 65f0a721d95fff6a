package sandbox_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stockade-dev/stockade/host/jail"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/sandbox/admit"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// subject is a target of the benchmarks: a module of a few hundred bytes, an equally small
// plugin, and the files tools if they were built.
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
	code, err := os.ReadFile(filepath.Join("..", "..", "guests", "wasm", "files.wasm"))
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

// BenchmarkChild measures a child that does nothing.
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

// BenchmarkCommand measures a call of a command that prints a few words: assembled, with the
// library of C (clang and wasi-libc needed), and with the library of Go.
func BenchmarkCommand(b *testing.B) {
	c := filepath.Join(b.TempDir(), "hello.c")
	mustWrite(b, c, "#include <stdio.h>\nint main() { puts(\"hello\"); return 0; }\n")
	for _, m := range []struct {
		name string
		code func() ([]byte, error)
		run  tool.Run
	}{
		{"assembled", func() ([]byte, error) { return saying(1, "hello"), nil }, tool.Run{}},
		{"C", func() ([]byte, error) {
			if out, err := exec.Command("clang-19", "--target=wasm32-wasi", "-Oz", "-Wl,-s", "-o", c+".wasm", c).CombinedOutput(); err != nil {
				return nil, fmt.Errorf("%w: %s", err, out)
			}
			return os.ReadFile(c + ".wasm")
		}, tool.Run{}},
		{"Go", gocommand, tool.Run{Args: []string{"--schema"}}},
	} {
		b.Run(m.name, func(b *testing.B) {
			code, err := m.code()
			if err != nil {
				b.Skip(err)
			}
			// As in every process but the first.
			opts := sandbox.Options{CacheDir: filepath.Join(b.TempDir(), "cache")}
			j := granted(b, described(b, code, m.run), ask{})
			output(b, j.mustRun(b, newBox(b, opts)))
			box := newBox(b, opts)
			output(b, j.mustRun(b, box))
			b.ReportAllocs()
			for b.Loop() {
				if r := j.mustRun(b, box); r.Err != nil {
					b.Fatal(r.Err)
				}
			}
		})
	}
}
