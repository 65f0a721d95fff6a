//go:build bench

package sandbox_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/sandbox"
)

// BenchmarkIsolation compares, in turn, a call that begins with the snapshot and a call in an
// instance with the state of the last call.
func BenchmarkIsolation(b *testing.B) {
	each(b, func(b *testing.B, s subject) {
		box := newBox(b, sandbox.Options{})
		j := granted(b, s.mod, s.ask(b))
		output(b, j.mustRun(b, box))
		leaky, err := sandbox.NewLeaky(b.Context(), box, s.mod, j.grant.Limits())
		if err != nil {
			b.Fatal(err)
		}
		defer leaky.Close()
		var fresh, reused []time.Duration
		for b.Loop() {
			start := time.Now()
			if r, _, err := box.Run(b.Context(), j.grant, j.mod, j.call, nil); err != nil || r.Err != nil {
				b.Fatal(err, r.Err)
			}
			fresh = append(fresh, time.Since(start))
			start = time.Now()
			if _, err := leaky.Call(b.Context(), j.grant, j.call); err != nil {
				b.Fatal(err)
			}
			reused = append(reused, time.Since(start))
		}
		slices.Sort(fresh)
		slices.Sort(reused)
		f, r := fresh[len(fresh)/2], reused[len(reused)/2]
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(float64(r), "ns/reused")
		b.ReportMetric(float64(f-r), "ns/isolation")
		b.ReportMetric(float64(f)/float64(r), "ratio")
	})
}
