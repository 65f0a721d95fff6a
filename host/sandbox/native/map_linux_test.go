package native_test

import (
	"os"
	"strings"
	"testing"
)

// checkMapped checks that the process has mapped a file, executable and not writable.
func checkMapped(t *testing.T, file string) {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	must(t, err)
	found := false
	for line := range strings.Lines(string(maps)) {
		if strings.HasSuffix(line, " "+file+"\n") {
			found = true
			if !strings.Contains(line, " r-xp ") {
				t.Errorf("it is mapped as %s", line)
			}
		}
	}
	if !found {
		t.Error("it is not mapped")
	}
}
