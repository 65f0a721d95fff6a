package abi

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental/wazerotest"

	"github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

func memoryOf(b []byte) Memory { return Memory{&wazerotest.Memory{Bytes: b}, new(uint64)} }

func words(ws ...uint32) []byte {
	var out []byte
	for _, w := range ws {
		out = binary.LittleEndian.AppendUint32(out, w)
	}
	return out
}

// checkLifted checks a lifted value against the promises of the package.
func checkLifted(t *testing.T, err error, limit int, texts ...string) {
	t.Helper()
	if err != nil {
		if _, ok := errors.AsType[*Fault](err); !ok {
			t.Errorf("%v is not a fault of the guest", err)
		}
		return
	}
	sum := 0
	for _, s := range texts {
		sum += len(s)
		if !utf8.ValidString(s) {
			t.Errorf("%.40q is not UTF-8", s)
		}
	}
	if sum > 2*limit+len(texts) { // of bad UTF-8 every second byte can become three, and the first and last one be bad
		t.Errorf("%d bytes came out under a limit of %d", sum, limit)
	}
}

// FuzzLiftCall: the first argument is the beginning of the memory. The rest of the memory is
// as large as the host's limit makes interesting.
func FuzzLiftCall(f *testing.F) {
	const base = 64
	for _, image := range [][]byte{
		wasmtest.OKResult(base, "text", `{"n":1}`),
		wasmtest.OKResult(base, "\xff\xfe", ""),
		wasmtest.ErrorResult(base, wasmtest.ErrorDenied, "no"),
		wasmtest.ErrorResult(base, wasmtest.ErrorCancelled, ""),
		words(0, base+24, 1, 0, 0, 0, wasmtest.ContentImage, 0, 8, 0, 60, 0, 0, 0, 0),
		words(0, base+24, 1, 0, 0, 0, wasmtest.ContentResource, 0, 8, 1, 0, 8, 1, 0, 8),
		words(0, base, 0xffff_ffff, 1, 0xffff_ffff, 0xffff_ffff),
		words(1, 8, 0, 0xffff_ffff, 0, 0),
		words(0, 0, 1024, 0, 0, 0),
	} {
		f.Add(append(make([]byte, base), image...), uint32(base))
	}
	f.Fuzz(func(t *testing.T, start []byte, ptr uint32) {
		mem := make([]byte, 1<<17)
		copy(mem, start)
		out, failure, err := LiftCall(memoryOf(mem), ptr, nil)
		if err == nil && (out == nil) == (failure == nil) {
			t.Fatal("not exactly one of output and error")
		}
		var texts []string
		if out != nil {
			texts = append(texts, out.Structured)
			for _, c := range out.Content {
				texts = append(texts, c.Text, c.Title, c.Mime)
			}
		}
		if failure != nil && len(failure.Message) > 3*maxMessageBytes {
			t.Errorf("the message has %d bytes", len(failure.Message))
		}
		checkLifted(t, err, MaxResultBytes, texts...)
	})
}

func FuzzLiftDescribe(f *testing.F) {
	f.Add(append(words(8, 4), "json"...), uint32(0), 4)
	f.Add(append(words(8, 4), "json"...), uint32(0), 3)
	f.Add(words(0, 0xffff_ffff), uint32(0), 1<<20)
	f.Add(words(0xffff_fffc, 8), uint32(0), 1<<20)
	f.Add([]byte(nil), uint32(0xffff_fffc), 1<<20)
	f.Fuzz(func(t *testing.T, mem []byte, ptr uint32, limit int) {
		limit &= 1<<20 - 1
		text, err := LiftDescribe(memoryOf(mem), ptr, limit)
		checkLifted(t, err, limit, text)
	})
}

func FuzzStrings(f *testing.F) {
	f.Add(append(words(8, 4), "text"...), uint32(0), uint32(1), 64)
	f.Add(words(0, 8, 0, 8, 0, 8), uint32(0), uint32(3), 24)
	f.Add(words(0, 8), uint32(0), uint32(0xffff_ffff), 1<<20)
	f.Add(words(0, 8), uint32(0), uint32(0x2000_0001), 1<<20) // times 8 is 8
	f.Add(bytes.Repeat([]byte("a\xff"), 64), uint32(0), uint32(16), 1<<20)
	f.Fuzz(func(t *testing.T, mem []byte, ptr, n uint32, limit int) {
		limit &= 1<<20 - 1
		list, err := memoryOf(mem).Strings("argv", ptr, n, limit)
		checkLifted(t, err, limit, list...)
		if err == nil && (len(list) != int(n) || 8*len(list) > limit) {
			t.Errorf("%d strings for %d under a limit of %d", len(list), n, limit)
		}
	})
}

// TestBadUTF8DoesNotLiftTheLimit: replacing bad UTF-8 makes a text longer than the rest of
// the budget, which must end there and not start again.
func TestBadUTF8DoesNotLiftTheLimit(t *testing.T) {
	const size, at = 20 << 20, 4096
	mem := bytes.Repeat([]byte("a\xff"), size/2)
	result := words(0, 24, 3, 0, 0, 0)
	for range 3 {
		result = append(result, words(wasmtest.ContentText, at, size-at, 0, 0, 0, 0, 0, 0)...)
	}
	copy(mem, result)
	if out, _, err := LiftCall(memoryOf(mem), 0, nil); err == nil {
		sum := 0
		for _, c := range out.Content {
			sum += len(c.Text)
		}
		t.Errorf("%d MiB came out under a limit of %d", sum>>20, MaxResultBytes>>20)
	}
	list := append(words(16, 1000, 16, 1000), bytes.Repeat([]byte("a\xff"), 500)...)
	if out, err := memoryOf(list).Strings("argv", 0, 2, 1500); err == nil {
		t.Errorf("%d strings came out", len(out))
	}
}

func TestPrefix(t *testing.T) {
	m := memoryOf([]byte("hello\xffworld"))
	for _, c := range []struct {
		ptr, n uint32
		limit  int
		want   string
		fails  bool
	}{
		{0, 5, 5, "hello", false},
		{0, 5, 4, "hell ...", false},
		{0, 6, 6, "hello\uFFFD", false},
		{0, 11, 5, "hello ...", false},
		{0, 12, 5, "", true}, // what is not copied has to exist too
		{0, 0xffff_ffff, 5, "", true},
		{10, 0xffff_ffff, 5, "", true},
	} {
		got, err := m.Head("text", c.ptr, c.n, c.limit, nil)
		if got != c.want || (err != nil) != c.fails {
			t.Errorf("%d bytes at %d under %d: %q, %v", c.n, c.ptr, c.limit, got, err)
		}
	}
}

// returned is a realloc with a fixed answer.
func returned(values ...uint64) *wazerotest.Function {
	return &wazerotest.Function{
		ExportNames:      []string{"cabi_realloc"},
		GoModuleFunction: api.GoModuleFunc(func(_ context.Context, _ api.Module, stack []uint64) { copy(stack, values) }),
		ParamTypes:       Realloc.Params, ResultTypes: Realloc.Results[:len(values)],
	}
}

func TestLowerTrustsNoAllocator(t *testing.T) {
	for name, c := range map[string]struct {
		realloc *wazerotest.Function
		says    string
	}{
		"nothing":            {returned(), "returns 0 values"},
		"zero":               {returned(0), "pointer 0x0"},
		"not aligned":        {returned(6), "pointer 0x6"},
		"out of bounds":      {returned(0xffff_fff8), "outside"},
		"at the very end":    {returned(65536 - 8), "outside"},
		"rubbish above 2^32": {returned(0xdead_beef_0000_0008), ""},
	} {
		t.Run(name, func(t *testing.T) {
			memory := wazerotest.NewFixedMemory(wazerotest.PageSize)
			mod := wazerotest.NewModule(memory, c.realloc)
			alloc, err := AllocatorOf(mod, ImportRealloc)
			if err != nil {
				t.Fatal(err)
			}
			ptr, err := alloc.Lower(t.Context(), mod, []byte("nine byte"), 4)
			if c.says == "" {
				if err != nil || ptr != 8 || string(memory.Bytes[8:17]) != "nine byte" {
					t.Errorf("Lower says %#x, %v", ptr, err)
				}
				return
			}
			if _, ok := errors.AsType[*Fault](err); !ok || !strings.Contains(err.Error(), c.says) {
				t.Errorf("Lower says %v", err)
			}
		})
	}
}
