package sandbox_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/sandbox"
	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// BenchmarkAmongHogs measures a call of about a millisecond, alone and among calls that never
// end: the median and the slowest of a hundred, in microseconds. "without turns" is the same
// with Go's scheduler only.
func BenchmarkAmongHogs(b *testing.B) {
	const turns = 1_000_000 // of a loop
	short := w.ToolOptions{Locals: i32s(1), Call: code(
		w.I32Const(turns), w.LocalSet(w.FirstLocal),
		w.Loop(w.LocalGet(w.FirstLocal), w.I32Const(1), w.I32Sub(), w.LocalTee(w.FirstLocal), w.BrIf(0)),
		w.ReturnOK("ok"))}
	for _, c := range []struct {
		name         string
		hogs, guests int
	}{
		{"alone", 0, 0}, {"10 hogs", 10, 0}, {"1000 hogs", 1000, 0},
		{"10 hogs without turns", 10, 1 << 20},
	} {
		b.Run(c.name, func(b *testing.B) {
			small := ask{limits: policy.Limits{MemoryBytes: 1 << 20, Timeout: time.Hour, Fuel: 1 << 50}}
			box := newBox(b, sandbox.Options{})
			sandbox.SetGuests(box, c.guests)
			call, hog := granted(b, probe(short), small), granted(b, probe(w.ToolOptions{Call: w.Spin()}), small)
			call.mustRun(b, box)
			ctx, cancel := context.WithCancel(b.Context())
			var hogs sync.WaitGroup
			for range c.hogs {
				hogs.Go(func() { _, _ = hog.run(ctx, box) })
			}
			for sandbox.MemoryInUse(box) < uint64(c.hogs)<<16 { // each has some pages
				runtime.Gosched()
			}
			var took []time.Duration
			for b.Loop() {
				start := time.Now()
				call.mustRun(b, box)
				took = append(took, time.Since(start))
			}
			b.StopTimer()
			cancel()
			hogs.Wait()
			slices.Sort(took)
			at := func(percent int) float64 { return float64(took[(len(took)-1)*percent/100].Microseconds()) }
			b.ReportMetric(at(50), "p50-µs")
			b.ReportMetric(at(99), "p99-µs")
			b.ReportMetric(0, "ns/op")
			if len(took) < 100 {
				b.Log(fmt.Sprint("only ", len(took), " calls"))
			}
		})
	}
}
