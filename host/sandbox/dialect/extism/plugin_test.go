package extism

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/sandbox/abi"
	"github.com/stockade-dev/stockade/host/sandbox/dialect"
	"github.com/stockade-dev/stockade/host/sandbox/meter"
	"github.com/stockade-dev/stockade/host/tool"
)

// FuzzFunctions calls host functions with the arguments that a plugin may pass: offsets of
// blocks, offsets beside them, and any number. Each call ends with a result, or with an error
// that names the fault.
func FuzzFunctions(f *testing.F) {
	call := func(name byte, kind byte, n uint64) []byte {
		return binary.LittleEndian.AppendUint64([]byte{name, kind}, n)
	}
	for i := range byte(len(functions)) {
		for _, n := range []uint64{0, 1, firstOffset, initOffset, 1 << 32, 1 << 63, math.MaxUint64 - 7, math.MaxUint64} {
			f.Add(append(call(0, 1, 64), call(i, 0, n)...))
			f.Add(append(call(0, 1, 8), call(i, 1, n)...))
		}
	}
	f.Fuzz(func(t *testing.T, ops []byte) {
		ctx := context.Background()
		p, err := newPlugin(ctx, &dialect.Guest{
			Account: meter.New(ctx, 1<<40, 0), ReserveHostBytes: upTo(4 << 20), Limits: policy.Limits{MemoryBytes: 4 << 20},
			Manifest: &tool.Manifest{Config: map[string]string{"": "of no name", "\x00": "of a zero"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		offset, err := p.put([]byte(`{"url":"http://a.example","level":"info","data":1}`))
		if err != nil {
			t.Fatal(err)
		}
		p.input = span{offset, p.length(offset)}
		for range 100 {
			if len(ops) < 10 {
				break
			}
			f := functions[int(ops[0])%len(functions)]
			n := binary.LittleEndian.Uint64(ops[2:])
			stack := []uint64{n, n}
			switch ops[1] % 4 {
			case 1: // beside the block that was asked for last
				stack[0] += offset
			case 2:
				stack[0] = offset
			case 3:
				stack[1] = offset
			}
			if f.name == "alloc" {
				stack[0] %= 1 << 22 // or most end here
			}
			ops = ops[10:]
			err := f.run(p, stack)
			_, fault := errors.AsType[*abi.Fault](err)
			_, failed := errors.AsType[*failure](err)
			_, over := errors.AsType[*dialect.MemoryError](err)
			if err != nil && !fault && !failed && !over {
				t.Fatalf("%s: %v", f.name, err)
			}
			if f.name == "alloc" && err == nil {
				offset = stack[0]
			}
		}
		if _, err := p.result(); err != nil {
			if _, ok := errors.AsType[*abi.Fault](err); !ok {
				t.Fatal(err)
			}
		}
		p.failureText()
		p.end()
	})
}
