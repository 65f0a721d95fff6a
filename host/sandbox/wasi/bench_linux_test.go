package wasi

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/rootedfs"
)

// BenchmarkOpen opens, describes and closes a file, in turns with openat2 and with
// os.Root, so that both have the same machine. It reports medians, and the ratio of
// os.Root to openat2.
func BenchmarkOpen(b *testing.B) {
	if len(roots(b)) == 1 {
		b.Skip("there is no openat2 here")
	}
	for _, depth := range []int{1, 4, 8} {
		base := b.TempDir()
		name := path.Join(strings.Repeat("d/", depth-1), "file")
		if err := os.MkdirAll(path.Dir(path.Join(base, name)), 0o777); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(path.Join(base, name), nil, 0o666); err != nil {
			b.Fatal(err)
		}
		for _, masked := range []string{"", "masked"} {
			what := "plain"
			var masks []string
			if masked != "" {
				what, masks = "guarded", []string{path.Join(base, masked)}
			}
			var kinds [2]*FS
			for i, open := range []openRoot{rootedfs.Open, rootedfs.OpenOSRoot} {
				f, err := New([]policy.Mount{{Host: base}}, masks, nil)
				if err != nil {
					b.Fatal(err)
				}
				b.Cleanup(func() { f.Close() })
				_ = f.mounts[0].root.Close()
				if f.mounts[0].root, _, err = open(base); err != nil {
					b.Fatal(err)
				}
				kinds[i] = f
			}
			guest := guestName(path.Join(base, name))
			b.Run(fmt.Sprintf("%s/depth=%d", what, depth), func(b *testing.B) {
				var spent [2][]time.Duration
				for b.Loop() {
					for i, f := range kinds {
						start := time.Now()
						h, errno := f.Open(guest, ReadOnly)
						if errno != 0 {
							b.Fatal(errno)
						}
						if _, errno := h.Stat(); errno != 0 {
							b.Fatal(errno)
						}
						h.Close()
						spent[i] = append(spent[i], time.Since(start))
					}
				}
				var median [2]float64
				for i, all := range spent {
					slices.Sort(all)
					median[i] = float64(all[len(all)/2].Nanoseconds())
				}
				b.ReportMetric(median[0], "ns/openat2")
				b.ReportMetric(median[1], "ns/os.Root")
				b.ReportMetric(median[1]/median[0], "ratio")
				b.ReportMetric(0, "ns/op") // of both together
			})
		}
	}
}
