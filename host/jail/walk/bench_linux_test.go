package walk

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stockade-dev/stockade/host/stage"
)

// 20,000 names in 2,000 directories, and what find takes for the same.
func BenchmarkLook(b *testing.B) {
	ws := b.TempDir()
	for i := range 2000 {
		dir := filepath.Join(ws, "d"+string(rune('a'+i%20)), "e"+string(rune('a'+i/20%100)))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			b.Fatal(err)
		}
		for j := range 9 {
			os.WriteFile(filepath.Join(dir, "file"+string(rune('a'+j))+".go"), nil, 0o644)
		}
	}
	b.Run("look", func(b *testing.B) {
		for b.Loop() {
			s, err := Scan(b.Context(), []Root{{ws, true}}, nil, Budget{})
			if err != nil || !s.Complete {
				b.Fatal(err)
			}
			b.ReportMetric(float64(s.Names), "names")
		}
	})
	b.Run("find", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("find", ws).Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	s, _ := Scan(b.Context(), []Root{{ws, true}}, nil, Budget{})
	b.Run("changes", func(b *testing.B) {
		for b.Loop() {
			t0 := stage.FileClockNow()
			if _, err := s.Changes(b.Context(), t0, Budget{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
