package mapped

import (
	"os"
	"testing"
)

// Other machines, and the kernel itself, may remove mapped content.
func TestLocal(t *testing.T) {
	for name, want := range map[string]bool{t.TempDir(): true, "/proc/version": false, "/sys/kernel": false} {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := IsLocal(f); got != want {
			t.Errorf("%s: %v", name, got)
		}
		_ = f.Close()
	}
}
