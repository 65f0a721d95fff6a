//go:build unix

package instructions

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Opening a FIFO without a writer would block forever.
func TestAFIFOIsNotWaitedFor(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "AGENTS.md"), 0o600); err != nil {
		t.Fatal(err)
	}
	for kernel, open := range opens {
		if f, err := readIn(t, open, dir); err == nil || !strings.Contains(err.Error(), "no regular file") {
			t.Errorf("%s: got %+v, %v", kernel, f, err)
		}
	}
}
