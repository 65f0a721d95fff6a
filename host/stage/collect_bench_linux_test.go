//go:build bench

package stage

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkAnOverlay measures a layer of 10,000 files of 1 KB that a command has made or
// written. It reports the microseconds for each file, until the changes are listed and
// until they are committed.
func BenchmarkAnOverlay(b *testing.B) {
	const dirs, files = 100, 100
	text := make([]byte, 1000)
	for _, kind := range []string{"a new tree", "new files in old directories", "old files"} {
		b.Run(kind, func(b *testing.B) {
			var collect, commit time.Duration
			for range b.N {
				b.StopTimer()
				base := b.TempDir()
				must := func(err error) {
					if err != nil {
						b.Fatal(err)
					}
				}
				host := filepath.Join(base, "host")
				must(os.Mkdir(host, 0o755))
				area := NewArea(filepath.Join(base, "stages"), b.Logf)
				l, err := area.NewLayer(host)
				must(err)
				fill := func(root string, with bool) {
					for d := range dirs {
						dir := filepath.Join(root, fmt.Sprintf("tree/d%d", d))
						must(os.MkdirAll(dir, 0o755))
						for f := range files {
							if with {
								must(os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%d", f)), text, 0o644))
							}
						}
					}
				}
				if kind != "a new tree" {
					fill(host, kind == "old files")
				}
				time.Sleep(20 * time.Millisecond) // more than a tick of the clock that stamps files
				since := FileClockNow()

				text = append(text, 0) // another size, so that the contents need not be compared
				fill(l.Upper, true)
				set, err := New(&Options{Dir: area.Dir()})
				must(err)
				b.StartTimer()
				start := time.Now()
				must(set.Collect(context.Background(), l, since))
				changes, err := set.Changes(context.Background())
				must(err)
				if len(changes) < dirs*files {
					b.Fatal(len(changes))
				}
				collect += time.Since(start)
				start = time.Now()
				must(set.Commit(context.Background()))
				commit += time.Since(start)
				b.StopTimer()
				must(set.Drop())
				must(area.Close())
				must(os.RemoveAll(base))
				b.StartTimer()
			}
			n := float64(b.N * dirs * files)
			b.ReportMetric(float64(collect.Microseconds())/n, "collect-us/file")
			b.ReportMetric(float64(commit.Microseconds())/n, "commit-us/file")
		})
	}
}
