package wasm_test

import (
	"bytes"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/wasm"
	"github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// component assembles a component from sections.
func component(sections ...[]byte) []byte {
	return append(wasmtest.ComponentHeader(), bytes.Join(sections, nil)...)
}

// nestedComponents returns a component nested in components, levels deep.
func nestedComponents(levels int) []byte {
	data := component()
	for range levels {
		data = component(wasmtest.Section(4, data))
	}
	return data
}

func externs(kind wasm.ExternKind, names ...string) (out []wasm.Extern) {
	for _, name := range names {
		out = append(out, wasm.Extern{Name: name, Kind: kind})
	}
	return out
}

func TestDecodeComponentFindsNamesAndModules(t *testing.T) {
	small := wasmtest.New().Bytes()
	b := wasmtest.New()
	b.ImportFunc("wasi_snapshot_preview1", "fd_write", nil, nil)
	b.Func("_start", nil, nil, nil)
	command := b.Bytes()
	o := wasmtest.ComponentOptions{
		Imports:    append(externs(wasm.ExternInstance, "wasi:io/streams@0.2.3"), externs(wasm.ExternModule, "m")...),
		Exports:    externs(wasm.ExternInstance, "wasi:cli/run@0.2.3"),
		Modules:    [][]byte{small, command},
		Components: [][]byte{wasmtest.Component(wasmtest.ComponentOptions{Exports: externs(wasm.ExternFunc, "inner"), Modules: [][]byte{small}})},
	}
	data := append(wasmtest.Component(o), wasmtest.Section(0, wasmtest.Name("producers"), []byte("x"))...)
	c, err := wasm.DecodeComponent(data)
	if err != nil {
		t.Fatal(err)
	}
	c.Customs[0].Offset = 0
	want := &wasm.Component{
		Raw: data, Imports: o.Imports, Exports: o.Exports, Components: 1,
		Modules: [][]byte{small, command, small}, Customs: []wasm.Custom{{Name: "producers", Data: []byte("x")}},
	}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got, want := wasm.ClassifyComponent(c).String(), `a component of WASI 0.2 (exports "wasi:cli/run@0.2.3")`; got != want {
		t.Errorf("it is %q, want %q", got, want)
	}
	if _, main := c.LargestModule(); main.Kind != wasm.Command {
		t.Errorf("its main module is %s", main)
	}
}

func TestDecodeComponentReadsEveryFormOfANameAndAType(t *testing.T) {
	name := wasmtest.Name
	imports := [][]byte{
		{0}, name("a"), {1, 0}, // a function of type 0
		{1}, name("b"), {2, 0, 0}, // a value, equal to another
		{0}, name("c"), {2, 1, 0x73}, // a value of type string
		{0}, name("d"), {3, 0, 7}, // a type, equal to another
		{2}, name("e"), {2, 0}, name("x:y/z"), {1}, name(".1"), {3, 1}, // with options; a resource
		{0}, name("f"), {4, 0},
		{0}, name("g"), {5, 0x80, 1},
	}
	exports := [][]byte{{0}, name("h"), {0, 0x11, 0, 0}, {0}, name("i"), {1, 3, 1, 1, 2}}
	c, err := wasm.DecodeComponent(component(
		wasmtest.Section(10, []byte{7}, bytes.Join(imports, nil)), wasmtest.Section(11, []byte{2}, bytes.Join(exports, nil)),
	))
	if err != nil {
		t.Fatal(err)
	}
	wantImports := []wasm.Extern{
		{Name: "a", Kind: wasm.ExternFunc}, {Name: "b", Kind: wasm.ExternValue}, {Name: "c", Kind: wasm.ExternValue}, {Name: "d", Kind: wasm.ExternType},
		{Name: "e", Kind: wasm.ExternType}, {Name: "f", Kind: wasm.ExternComponent}, {Name: "g", Kind: wasm.ExternInstance},
	}
	if diff := cmp.Diff(wantImports, c.Imports); diff != "" {
		t.Errorf("imports (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]wasm.Extern{{Name: "h", Kind: wasm.ExternModule}, {Name: "i", Kind: wasm.ExternFunc}}, c.Exports); diff != "" {
		t.Errorf("exports (-want +got):\n%s", diff)
	}
}

// malformedComponents are refused by DecodeComponent with these errors.
func malformedComponents() map[string]struct {
	data []byte
	says string
} {
	name := wasmtest.Name
	many := bytes.Repeat(wasmtest.Section(7), wasm.MaxComponentSections+1)
	return map[string]struct {
		data []byte
		says string
	}{
		"a section of no known kind":              {component([]byte{13, 0}), "unknown section id 13"},
		"a section that is cut off":               {component([]byte{7, 5, 0}), "section of a component has 5 bytes, but only 1 are left"},
		"too many sections":                       {component(many), "more than 16384 sections"},
		"too many sections on two levels":         {component(wasmtest.Section(4, component(many[:len(many)-4])), many[:8]), "more than 16384 sections"},
		"components that nest too deep":           {nestedComponents(17), "nest deeper than 16 levels"},
		"a module that is none":                   {component(wasmtest.Section(1, []byte("text, not code"))), "a nested core module has the wrong header"},
		"a component in the place of a module":    {component(wasmtest.Section(1, component())), "a nested core module has the wrong header"},
		"a module in the place of a component":    {component(wasmtest.Section(4, wasmtest.Header())), "a nested component has the wrong header"},
		"a module without a header":               {component(wasmtest.Section(1)), "header of a nested core module"},
		"more imports than bytes":                 {component(wasmtest.Section(10, wasmtest.U32(9999))), "cannot fit"},
		"more imports than the limit":             {component(wasmtest.Section(10, wasmtest.U32(1<<30))), "more than the limit"},
		"a name of an unknown form":               {component(wasmtest.Section(10, []byte{1, 3}, name("a"), []byte{1, 0})), "unknown form 0x03"},
		"a name that is too long":                 {component(wasmtest.Section(10, []byte{1, 0}, name(strings.Repeat("n", 5000)), []byte{1, 0})), "more than the limit of 4096"},
		"a name that is no UTF-8":                 {component(wasmtest.Section(10, []byte{1, 0}, name("\xff"), []byte{1, 0})), "not valid UTF-8"},
		"a name with more options than there are": {component(wasmtest.Section(10, []byte{1, 2}, name("a"), wasmtest.U32(900), []byte{1, 0})), "cannot fit"},
		"an import of an unknown kind":            {component(wasmtest.Section(10, []byte{1, 0}, name("a"), []byte{6, 0})), "unknown kind 0x06"},
		"an import of an unknown bound":           {component(wasmtest.Section(10, []byte{1, 0}, name("a"), []byte{3, 2})), "unknown bound 0x02"},
		"an import of something core":             {component(wasmtest.Section(10, []byte{1, 0}, name("a"), []byte{0, 0, 0})), "unknown core kind"},
		"an export of an unknown kind":            {component(wasmtest.Section(11, []byte{1, 0}, name("a"), []byte{6, 0, 0})), "unknown kind 0x06"},
		"an export of a core function":            {component(wasmtest.Section(11, []byte{1, 0}, name("a"), []byte{0, 0, 0, 0})), "a core item that is no module"},
		"bytes behind the imports":                {component(wasmtest.Section(10, []byte{1, 0}, name("a"), []byte{1, 0, 9})), "bytes too many"},
	}
}

func TestDecodeComponentRefusesWhatIsMalformed(t *testing.T) {
	for name, test := range malformedComponents() {
		c, err := wasm.DecodeComponent(test.data)
		if _, ok := errors.AsType[*wasm.FormatError](err); !ok || c != nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: got %v, %v; want %q", name, c, err, test.says)
		}
	}
	if _, err := wasm.DecodeComponent(wasmtest.New().Bytes()); err == nil {
		t.Error("a core module is taken for a component")
	}
	if _, err := wasm.DecodeComponent([]byte("\x00asm\x0a\x00\x01\x00")); !errors.Is(err, wasm.ErrVersion) {
		t.Errorf("an old version: %v", err)
	}
	if _, err := wasm.DecodeComponent(nestedComponents(16)); err != nil {
		t.Errorf("as deep as may be: %v", err)
	}
}

func FuzzComponent(f *testing.F) {
	f.Add([]byte{})
	f.Add(wasmtest.Tool(wasmtest.ToolOptions{}))
	f.Add(nestedComponents(3))
	f.Add(wasmtest.Component(wasmtest.ComponentOptions{
		Imports: externs(wasm.ExternInstance, "wasi:io/streams@0.2.3"), Exports: externs(wasm.ExternFunc, "run", "stop"),
		Modules: [][]byte{wasmtest.Tool(wasmtest.ToolOptions{})}, Components: [][]byte{component()},
	}))
	for _, test := range malformedComponents() {
		if len(test.data) < 1024 {
			f.Add(test.data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		c, err := wasm.DecodeComponent(data)
		runtime.ReadMemStats(&after)
		// As its documentation promises; the fuzzing engine allocates in addition.
		if got := after.TotalAlloc - before.TotalAlloc; got > uint64(32*len(data)+5<<20) {
			t.Errorf("%d bytes allocated for %d", got, len(data))
		}
		if (c == nil) != (err != nil) {
			t.Fatalf("got component %v and error %v", c, err)
		}
		if c == nil {
			return
		}
		total := 0
		for _, m := range c.Modules {
			total += len(m)
		}
		if total > len(data) {
			t.Errorf("its modules have %d bytes, the file %d", total, len(data))
		}
		_ = wasm.ClassifyComponent(c).String()
		if m, shape := c.LargestModule(); m == nil && shape.Kind != wasm.Unknown {
			t.Errorf("no main module, which is %s", shape)
		}
		for _, e := range append(c.Imports, c.Exports...) {
			_ = e.Kind.String()
		}
	})
}
