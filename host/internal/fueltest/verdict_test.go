package fueltest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/stockade-dev/stockade/host/internal/fueltest/oracle"
	"github.com/stockade-dev/stockade/host/wasm"
	"github.com/stockade-dev/stockade/host/wasm/fuel"
)

// strictReasons lists the reasons for which functions that the engine accepts may be
// refused: parts that the engine reads in its own way, or ignores in dead code.
var strictReasons = []string{
	"64-bit",                   // memories and tables
	"reserved for the host",    // names
	"unknown instruction",      // padded numbers
	"relaxed SIMD",             // numbers of two bytes
	"unsupported value type",   // in block types
	"unsupported reference",    //
	"block type",               // padded ones
	"alignment of",             //
	"a byte that must be zero", //
	"is not a zero byte",       //
	"LEB128",                   //
	"undeclared reference",     //
}

// compareVerdicts compares the engine's verdicts on a module and on the instrumented one.
func compareVerdicts(tb testing.TB, module []byte) {
	tb.Helper()
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().
		WithCoreFeatures(api.CoreFeaturesV2|experimental.CoreFeaturesTailCall|experimental.CoreFeaturesExtendedConst))
	defer rt.Close(ctx)

	// A module that does not decode is not shown to the engine, which believes every
	// number and allocates for it.
	m, err := wasm.Decode(module)
	if err != nil {
		return
	}
	locals := 0
	code, ours := fuel.Rewrite(m, fuel.Options{MaxDepth: 1 << 20, MergeData: true, Inspect: func(b *wasm.Body) error {
		if locals += int(b.Locals); locals > 1<<16 {
			return errTooMuch
		}
		return nil
	}})
	if ours != nil && (ours == errTooMuch || strings.Contains(ours.Error(), "more than 50000 locals")) {
		return // the engine would take up to 8 GiB
	}
	// Nor are custom sections, which are left out and do not affect validity.
	plain := append([]byte(nil), module[:8]...)
	for _, s := range m.Sections {
		if s.ID != wasm.SectionCustom {
			plain = append(plain, module[s.Offset:s.End()]...)
		}
	}
	theirs := accepts(ctx, rt, plain)
	switch {
	case ours != nil && theirs == nil:
		for _, reason := range strictReasons {
			if strings.Contains(ours.Error(), reason) {
				return
			}
		}
		tb.Errorf("the engine takes a module that is refused: %v", ours)
	case ours == nil:
		after := accepts(ctx, rt, code)
		if (after == nil) != (theirs == nil) {
			tb.Errorf("the engine says %v of the original, and %v of what became of it", theirs, after)
		}
	}
}

// accepts returns the reason why the engine refuses a module, or nil. The engine panics
// on some.
func accepts(ctx context.Context, rt wazero.Runtime, module []byte) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	compiled, err := rt.CompileModule(ctx, module)
	if err == nil {
		_ = compiled.Close(ctx)
	}
	return err
}

type tooMuch struct{}

func (tooMuch) Error() string { return "too many locals for a test" }

var errTooMuch error = tooMuch{}

// mutate changes a few bytes, so that most modules are nearly valid.
func mutate(r *rand.Rand, module []byte) []byte {
	out := append([]byte(nil), module...)
	for range 1 + r.IntN(4) {
		if len(out) < 9 {
			break
		}
		at := 8 + r.IntN(len(out)-8)
		switch r.IntN(4) {
		case 0:
			out[at] = byte(r.Uint32())
		case 1:
			out[at]++
		case 2:
			out[at] ^= 1 << r.IntN(8)
		case 3:
			out[at] = []byte{0, 0x0b, 0x20, 0x23, 0x24, 0x10, 0x41, 0x7f, 0x80, 0xff, 0xfc, 0xfd}[r.IntN(12)]
		}
	}
	return out
}

// The added code must make neither an invalid module valid, nor a valid one invalid.
func TestVerdictOfTheEngineStays(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for n := range uint64(600) {
		module := oracle.Config{TailCalls: true}.Generate(oracle.Seed(n))
		compareVerdicts(t, module)
		for range 8 {
			compareVerdicts(t, mutate(r, module))
		}
		if t.Failed() {
			t.Fatalf("seed %d", n)
		}
	}
}

func FuzzVerdictOfTheEngineStays(f *testing.F) {
	for n := range uint64(30) {
		f.Add(oracle.Generate(oracle.Seed(n)))
	}
	files, err := filepath.Glob(filepath.Join(suitesDir(f), "v2", "testdata", "*.wasm"))
	if err != nil || len(files) == 0 {
		f.Fatalf("no suites: %v", err)
	}
	for i, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		if i%40 == 0 && len(data) < 4096 {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, module []byte) {
		if len(module) > 16<<10 {
			return
		}
		compareVerdicts(t, module)
	})
}
