package wasm_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stockade-dev/stockade/host/wasm"
	"github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// fill returns the memory that the data section of a module writes.
func fill(tb testing.TB, module []byte) []byte {
	tb.Helper()
	m, err := wasm.Decode(module)
	if err != nil {
		tb.Fatal(err)
	}
	memory := make([]byte, 1<<16)
	for _, s := range m.Sections {
		if s.ID != wasm.SectionData {
			continue
		}
		b := s.Payload
		next := func() (v int) {
			for shift := 0; ; shift += 7 {
				c := b[0]
				b = b[1:]
				v |= int(c&0x7f) << shift
				if c < 0x80 {
					return v
				}
			}
		}
		for range next() {
			b = b[2:] // active, i32.const
			offset := next()
			b = b[1:]
			size := next()
			copy(memory[offset:], b[:size])
			b = b[size:]
		}
	}
	return memory
}

func TestMergedDataFillsMemoryInTheSameWay(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	merged := 0
	for range 500 {
		b := wasmtest.New()
		b.Memory(1, 1)
		for range 2 + random.IntN(30) {
			content := make([]byte, random.IntN(40))
			for i := range content {
				content[i] = byte(random.IntN(255) + 1)
			}
			b.Data(uint32(random.IntN(8000)), content)
		}
		data := b.Bytes()
		m, err := wasm.Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		payload, n, ok := wasm.MergeDataSegments(m, 1+random.IntN(30))
		if !ok {
			continue
		}
		merged++
		out := data[:m.Sections[len(m.Sections)-1].Offset:m.Sections[len(m.Sections)-1].Offset]
		out = append(out, wasmtest.Section(wasm.SectionData, payload)...)
		after, err := wasm.Decode(out)
		if err != nil || after.NumDataSegments != n || n > m.NumDataSegments {
			t.Fatalf("%d segments became %d, said to be %d: %v", m.NumDataSegments, after.NumDataSegments, n, err)
		}
		if !bytes.Equal(fill(t, data), fill(t, out)) {
			t.Fatalf("another content: %x", data)
		}
	}
	if merged < 50 {
		t.Errorf("only %d of 500 modules could be merged", merged)
	}
}

func TestMergedDataLeavesAlone(t *testing.T) {
	segments := func(b *wasmtest.Builder) {
		b.Data(0, []byte("a"))
		b.Data(10, []byte("b"))
	}
	for name, edit := range map[string]func(*wasmtest.Builder){
		"one segment":     func(b *wasmtest.Builder) { b.Memory(1, 1); b.Data(0, []byte("a")) },
		"overlap":         func(b *wasmtest.Builder) { b.Memory(1, 1); b.Data(0, []byte("abc")); b.Data(1, []byte("x")) },
		"imported memory": func(b *wasmtest.Builder) { b.ImportMemory("env", "memory", 1, 1); segments(b) },
		"far and overlapping": func(b *wasmtest.Builder) {
			b.Memory(1, 1)
			b.Data(0xffff_fff0, []byte("b"))
			b.Data(0xffff_ffff, []byte("bbb"))
			b.Data(0, []byte("overlaps after wrapping"))
			b.Data(1, []byte("x"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := wasmtest.New()
			edit(b)
			m, err := wasm.Decode(b.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			if _, n, ok := wasm.MergeDataSegments(m, 1); ok {
				t.Errorf("merged into %d", n)
			}
		})
	}
}
