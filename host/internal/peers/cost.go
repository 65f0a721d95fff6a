package main

import (
	"runtime"
	"slices"
	"time"

	"github.com/stockade-dev/stockade/host/internal/peers/bench"
	"github.com/stockade-dev/stockade/host/wasm"
)

// moduleResult is the cost of instrumenting a module before it runs. The variant is the
// one that limits the depth of calls, which Stockade uses.
type moduleResult struct {
	Name               string
	Bytes              int
	CodeBytes          int
	Rewrite            time.Duration // decoding included
	RewriteMillisPerMB float64
	AllocPerByte       float64       // allocated bytes per byte of input
	SizeRatio          float64       // with custom sections, which are dropped, counted as kept
	CodeRatio          float64       // of the code section alone
	Compile            time.Duration // of the original
	CompileRatio       float64
}

// repeats is the number of times that a module is rewritten and compiled; small modules
// are done more often.
const repeats = 3

func measureModules(code map[string][]byte) ([]moduleResult, error) {
	var all []moduleResult
	for _, name := range []string{"go", "c"} {
		bench.Progress("rewrite and compile %s", name)
		r, err := measureModule(name, code[name])
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

func measureModule(name string, code []byte) (moduleResult, error) {
	r := moduleResult{Name: name, Bytes: len(code)}
	var instrumented []byte
	var rewrites, compiles []time.Duration
	var ratios []float64
	// A small module is done before the clock has moved much, and disturbances are large
	// by comparison.
	times := max(1, 1<<20/len(code))
	for range repeats {
		runtime.GC()
		before := allocated()
		rewrite, err := cpuTime(func() (err error) {
			for range times {
				if instrumented, err = instrument(code, depthLimit); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return r, err
		}
		r.AllocPerByte = float64(allocated()-before) / float64(times*len(code))
		rewrites = append(rewrites, rewrite/time.Duration(times))
	}
	original, err := withoutCustom(code)
	if err != nil {
		return r, err
	}
	for range repeats * min(times, 5) {
		base, err := compileTime(original, false)
		if err != nil {
			return r, err
		}
		variant, err := compileTime(instrumented, true)
		if err != nil {
			return r, err
		}
		compiles = append(compiles, base)
		ratios = append(ratios, float64(variant)/float64(base))
	}
	r.Rewrite = bench.Median(rewrites)
	r.RewriteMillisPerMB = float64(r.Rewrite.Microseconds()) / 1000 / (float64(len(code)) / (1 << 20))
	r.SizeRatio = 1 + float64(len(instrumented)-len(original))/float64(len(code))
	if r.CodeBytes, err = codeBytes(original); err != nil {
		return r, err
	}
	after, err := codeBytes(instrumented)
	if err != nil {
		return r, err
	}
	r.CodeRatio = float64(after) / float64(r.CodeBytes)
	r.Compile, r.CompileRatio = bench.Median(compiles), bench.Median(ratios)
	return r, nil
}

// compileTime returns the CPU time to compile with one worker, in a fresh runtime and
// without a cache.
func compileTime(code []byte, metered bool) (time.Duration, error) {
	p, err := newWazero(wazeroConfig(), metered)
	if err != nil {
		return 0, err
	}
	defer p.close()
	runtime.GC()
	return cpuTime(func() error { return p.compile(code) })
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// withoutCustom drops custom sections, as instrumenting does: they are mostly debug
// information.
func withoutCustom(code []byte) ([]byte, error) {
	m, err := wasm.Decode(code)
	if err != nil {
		return nil, err
	}
	kept := slices.Clone(code[:m.Sections[0].Offset])
	for _, s := range m.Sections {
		if s.ID != wasm.SectionCustom {
			kept = append(kept, code[s.Offset:s.End()]...)
		}
	}
	return kept, nil
}

func codeBytes(code []byte) (n int, err error) {
	m, err := wasm.Decode(code)
	if err != nil {
		return 0, err
	}
	for _, s := range m.Sections {
		if s.ID == wasm.SectionCode {
			n = len(s.Payload)
		}
	}
	return n, nil
}
