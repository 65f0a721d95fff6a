//go:build bench

package jail

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
)

// BenchmarkGo runs Go on this repository, in the jail and plainly in turn, after
// it was built outside. ratio is the median of jail/plain.
func BenchmarkGo(b *testing.B) {
	home, err := os.UserHomeDir()
	if err != nil {
		b.Fatal(err)
	}
	dir, err := filepath.Abs("../..")
	if err != nil {
		b.Fatal(err)
	}
	j := newJail(b, Options{Home: home, LayersDir: newLayers(b), Caches: CacheNames})
	for name, command := range map[string]string{
		"nothing": "true",
		"package": "go build ./host/redact",
		"all":     "go build ./...",
		"program": "go build -o $TMPDIR/program ./host/jail/helper",
		"vet":     "go vet ./host/redact",
		"test":    "go test ./host/redact",
	} {
		b.Run(name, func(b *testing.B) {
			confined := func() time.Duration {
				grant, begin := grantFor(b, dir, command, policy.Limits{ExecTimeout: time.Minute}), time.Now()
				out, err := j.Run(b.Context(), grant, bash(dir, command))
				if err != nil || out.Code == nil || *out.Code != 0 || len(out.Notes) > 0 {
					b.Fatal(err, describe(out), out.Notes)
				}
				return time.Since(begin)
			}
			plain := func() time.Duration {
				begin := time.Now()
				c := exec.Command("bash", "-c", command)
				c.Dir, c.Env = dir, environment(systemPath, home, b.TempDir(), dir)
				if out, err := c.CombinedOutput(); err != nil {
					b.Fatalf("%v: %s", err, out)
				}
				return time.Since(begin)
			}
			plain()
			confined()
			var ratios []float64
			for b.Loop() {
				p := plain()
				ratios = append(ratios, float64(confined())/float64(p))
			}
			slices.Sort(ratios)
			b.ReportMetric(ratios[len(ratios)/2], "ratio")
		})
	}
}
