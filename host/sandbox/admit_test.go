package sandbox_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/sandbox/admit"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm"
	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// replace returns a module with another payload in one of its sections.
func replace(t *testing.T, code []byte, id byte, change func([]byte) []byte) []byte {
	t.Helper()
	m, err := wasm.Decode(code)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range m.Sections {
		if s.ID == id {
			payload := change(bytes.Clone(s.Payload))
			return bytes.Join([][]byte{code[:s.Offset], w.Section(id, payload), code[s.End():]}, nil)
		}
	}
	t.Fatalf("there is no section %d", id)
	return nil
}

// flag returns a change of one byte of a section.
func flag(at int, v byte) func([]byte) []byte {
	return func(p []byte) []byte { p[at] = v; return p }
}

func TestModulesThatAreNotAdmitted(t *testing.T) {
	good := w.Tool(w.ToolOptions{})
	edited := func(f func(*w.Builder)) []byte { return w.Tool(w.ToolOptions{Edit: f}) }
	imports := func(i w.Import) []byte { return w.Tool(w.ToolOptions{Imports: []w.Import{i}}) }
	withTable := edited(func(b *w.Builder) { b.Table(1, 2) })
	// The last function has no locals; its body becomes one that declares many.
	lastBody := func(body ...byte) []byte {
		return replace(t, edited(func(b *w.Builder) { b.Func("", nil, nil, nil) }), wasm.SectionCode, func(p []byte) []byte {
			return append(append(p[:len(p)-3], byte(len(body))), body...)
		})
	}
	noLocals := func(name string, params, results []w.ValType) func(*w.Builder) {
		return func(b *w.Builder) {
			var body []byte
			for range results {
				body = append(body, w.I32Const(2048)...)
			}
			b.Func(name, params, results, nil, body)
		}
	}
	without := func(name string) []byte { return bytes.Replace(good, []byte(name), []byte(strings.ToUpper(name)), 1) }

	for _, c := range []struct {
		name string
		code []byte
		says string
	}{
		{"an ELF file", []byte("\x7fELF\x02\x01\x01"), "ELF"},
		{"a web page", []byte("<!DOCTYPE html><html></html>"), "HTML"},
		{"gzip", []byte("\x1f\x8b\x08\x00\x00"), "gzip"},
		{"text", []byte("hello"), "text"},
		{"nothing", nil, "empty"},
		{"a module that is cut off", good[:len(good)/2], "malformed"},
		{"a component", []byte("\x00asm\x0d\x00\x01\x00"), "component"},
		{"another version of WebAssembly", []byte("\x00asm\x02\x00\x00\x00"), "version"},
		{"another version of the interface", w.Tool(w.ToolOptions{Version: "0.2.0"}), "0.2.0"},
		{"an unknown function", imports(own("files", "read", w.I32)), "files@0.1.0.read"},
		{"an unknown module", imports(w.Import{Module: "env", Name: "abort"}), "env.abort"},
		{"what came before preview 1", imports(w.Import{Module: "wasi_unstable", Name: "sched_yield", Results: i32s(1)}), "wasi_unstable.sched_yield"},
		{"an unknown function of WASI", imports(wasi("fd_teleport", w.I32)), "fd_teleport"},
		{"a function of WASI with another signature", imports(wasi("fd_write", w.I64)), "another signature"},
		{"a function with another signature", imports(own("exec", "run", i32s(8)...)), "another signature"},
		{"another version of a function", imports(w.Import{Module: "stockade:tool/exec@0.2.0", Name: "run", Params: i32s(9)}), "exec@0.2.0"},
		{"an imported memory", replaceMemory(t, func(b *w.Builder) { b.ImportMemory("env", "memory", 1, -1) }), "a memory"},
		{"an imported table", addImport(t, good, wasm.KindTable, 0x70, 0, 1), "a table"},
		{"an imported global", addImport(t, good, wasm.KindGlobal, 0x7f, 0), "a global"},
		{"no memory", replaceMemory(t, func(*w.Builder) {}), "memor"},
		{"two memories", edited(func(b *w.Builder) { b.Memory(1, -1) }), "several memories (multi-memory)"},
		{"a memory that is not exported", w.Tool(w.ToolOptions{NoMemory: true}), "memory"},
		{"a function that is exported as memory", w.Tool(w.ToolOptions{NoMemory: true, Edit: noLocals("memory", nil, nil)}), "memory"},
		{"a 64-bit memory", replace(t, good, wasm.SectionMemory, flag(1, 4)), "64-bit"},
		{"a shared memory", replace(t, w.Tool(w.ToolOptions{MemoryMax: 9}), wasm.SectionMemory, flag(1, 3)), "threads"},
		{"a 64-bit table", replace(t, withTable, wasm.SectionTable, flag(2, 5)), "64-bit"},
		{"a huge table", edited(func(b *w.Builder) { b.Table(1_000_001, -1) }), "1000001 elements"},
		{"a table of 2^31 elements", edited(func(b *w.Builder) { b.Table(1<<31, -1) }), "elements"},
		{"tables that are huge together", edited(func(b *w.Builder) {
			for range 16 {
				b.Table(100_000, -1)
			}
		}), "elements"},
		{"many tables", edited(func(b *w.Builder) {
			for range 17 {
				b.Table(0, -1)
			}
		}), "17 tables"},
		{"2^32-1 locals", lastBody(1, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x7f, 0x0b), "locals"},
		{"2^64-1 groups of locals", lastBody(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0x0b), "locals"},
		{"10001 locals", lastBody(1, 0x91, 0x4e, 0x7f, 0x0b), "10001 locals"},
		{"a body of more than 1 MiB", w.Tool(w.ToolOptions{Call: code(bytes.Repeat(w.Nop(), 1<<20), w.ReturnOK("ok"))}), "bytes"},
		{"a type with 161 parameters", edited(func(b *w.Builder) { b.Func("", i32s(161), nil, nil) }), "161 parameters"},
		{"no allocator", w.Tool(w.ToolOptions{NoRealloc: true}), "cabi_realloc"},
		{"an allocator without a result", w.Tool(w.ToolOptions{NoRealloc: true, Edit: noLocals("cabi_realloc", i32s(4), nil)}), "another signature"},
		{"an allocator with two results", w.Tool(w.ToolOptions{NoRealloc: true, Edit: noLocals("cabi_export_realloc", i32s(4), i32s(2))}), "another signature"},
		{"an allocator for imports with another signature", edited(noLocals("cabi_import_realloc", i32s(3), i32s(1))), "another signature"},
		{"_initialize with a parameter", edited(noLocals("_initialize", i32s(1), nil)), "another signature"},
		{"a host function as the allocator", w.Tool(w.ToolOptions{NoRealloc: true, Imports: []w.Import{wasi("fd_write", i32s(4)...)},
			Edit: func(b *w.Builder) { b.ExportFunc("cabi_realloc", 0) }}), "imported function"},
		{"no describe", without("#describe"), "describe"},
		{"a function that does not validate", w.Tool(w.ToolOptions{Call: w.Drop()}), "does not compile"},
		{"an instruction of a later version", w.Tool(w.ToolOptions{Call: []byte{0xfe, 0, 0, 0}}), "threads"},
		{"operands of the wrong types", w.Tool(w.ToolOptions{Call: []byte{0x6a, 0x1a}}), "does not compile"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			mod := module(c.code)
			r := granted(t, mod, ask{}).mustRun(t, newBox(t, sandbox.Options{}))
			failure(t, r, tool.CodeNotAdmitted, tool.ValidationFailed, c.says)
			if c.says == "does not compile" {
				return // the manifest is read without compiling
			}
			_, err := newBox(t, sandbox.Options{}).Describe(t.Context(), mod)
			if _, ok := errors.AsType[*admit.RefusedError](err); !ok {
				t.Errorf("Describe says %v", err)
			}
		})
	}
	t.Run("too large", func(t *testing.T) {
		mod := module(good)
		mod.Bytes = admit.MaxBytes + 1
		mod.Read = func() ([]byte, error) { t.Error("it was read"); return nil, nil }
		r := granted(t, mod, ask{}).mustRun(t, newBox(t, sandbox.Options{}))
		failure(t, r, tool.CodeNotAdmitted, tool.ValidationFailed, "limit")
	})
	t.Run("a file that cannot be read is the host's fault", func(t *testing.T) {
		mod := module(good)
		mod.Read = func() ([]byte, error) { return nil, errors.New("input/output error") }
		if r, err := granted(t, mod, ask{}).run(t.Context(), newBox(t, sandbox.Options{})); err == nil {
			t.Errorf("Run says %s", r.Summary())
		}
	})
}

// replaceMemory returns a module with the right exports and another memory.
func replaceMemory(t *testing.T, memory func(*w.Builder)) []byte {
	t.Helper()
	b := w.New()
	memory(b)
	b.Func("cabi_realloc", i32s(4), i32s(1), nil, w.I32Const(2048))
	b.Func("stockade:tool/tools@0.1.0#describe", nil, i32s(1), nil, w.I32Const(0))
	b.Func("stockade:tool/tools@0.1.0#call", w.CallParams(), i32s(1), nil, w.I32Const(0))
	m, err := wasm.Decode(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Memories)+len(m.Imports) > 0 {
		b.ExportMemory("memory")
	}
	return b.Bytes()
}

// addImport puts an import that is no function before all other imports.
func addImport(t *testing.T, code []byte, kind wasm.Kind, rest ...byte) []byte {
	t.Helper()
	m, err := wasm.Decode(code)
	if err != nil {
		t.Fatal(err)
	}
	after := m.Sections[0].End() // the types
	entry := bytes.Join([][]byte{w.U32(1), w.Name("env"), w.Name("thing"), {byte(kind)}, rest}, nil)
	return bytes.Join([][]byte{code[:after], w.Section(wasm.SectionImport, entry), code[after:]}, nil)
}

// TestTablesKeepWhatTheyMayGrow: a table can grow up to its own maximum, and up to the cap.
func TestTablesKeepWhatTheyMayGrow(t *testing.T) {
	grow := func(n int32) []byte { return code([]byte{0xd0, 0x70}, w.I32Const(n), []byte{0xfc, 15, 0}) }
	for name, c := range map[string]struct {
		min, max int
		grow     int32
		want     string
	}{
		"within the cap":         {10, -1, 999_990, "grown"},
		"beyond the cap":         {10, -1, 999_991, "refused"},
		"within its own maximum": {10, 20, 10, "grown"},
		"beyond its own maximum": {10, 20, 11, "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			o := w.ToolOptions{Edit: func(b *w.Builder) { b.Table(c.min, c.max) },
				Call: code(grow(c.grow), w.I32Const(-1), w.I32Eq(), w.If(w.ReturnOK("refused"), w.Return()), w.ReturnOK("grown"))}
			if got := output(t, granted(t, probe(o), ask{}).mustRun(t, newBox(t, sandbox.Options{}))); got != c.want {
				t.Errorf("the table has %s", got)
			}
		})
	}
}
