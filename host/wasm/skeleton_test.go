package wasm_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/wasm"
	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

func TestSkeleton(t *testing.T) {
	b := w.New()
	b.Memory(1, 2)
	b.Table(3, 3)
	b.ImportFunc("env", "host", nil, nil)
	b.Global(w.I64, true, w.I64Const(1))
	f := b.Func("f", []w.ValType{w.I32}, nil, []w.ValType{w.I64}, w.Call(0), w.LocalGet(0), w.Drop())
	b.Func("g", nil, nil, nil)
	b.Elem(1, f)
	b.Data(5, []byte("hello"))
	b.Custom("note", []byte("x"))
	m, err := wasm.Decode(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	s, err := wasm.Decode(wasm.Skeleton(m))
	if err != nil {
		t.Fatal(err)
	}
	for what, pair := range map[string][2]any{
		"types": {m.Types, s.Types}, "imports": {m.Imports, s.Imports}, "functions": {m.Funcs, s.Funcs},
		"tables": {m.Tables, s.Tables}, "memories": {m.Memories, s.Memories}, "exports": {m.Exports, s.Exports},
		"globals": {m.MutableGlobals, s.MutableGlobals}, "elements": {m.NumElements, s.NumElements},
		"data": {0, s.NumDataSegments}, "custom sections": {0, len(s.Customs)},
	} {
		if diff := cmp.Diff(pair[0], pair[1]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	bodies := s.Bodies()
	for range s.Funcs {
		body, ok := bodies.Next()
		if !ok || len(body.Instrs) != 2 || body.Instrs[0].Op != wasm.OpUnreachable {
			t.Errorf("a body is %+v, %v", body, bodies.Err())
		}
	}
}
