//go:build unix

package wasi

import (
	"os"
	"testing"
)

// TestAFileThatReplacesAnotherTakesItsMode: a guest has no other way to keep a script
// executable.
func TestAFileThatReplacesAnotherTakesItsMode(t *testing.T) {
	w := newWorld(t)
	g := w.open(w.rw("ws"))
	for _, mode := range []os.FileMode{0o755, 0o640, 0o600} {
		w.File("ws/script", "old")
		w.File("ws/new", "new")
		if err := os.Chmod(w.Path("ws/script"), mode); err != nil {
			t.Fatal(err)
		}
		wantErrno(t, "rename", g.Rename(g.name("ws/new"), g.name("ws/script")), 0)
		st, err := os.Stat(w.Path("ws/script"))
		if err != nil || st.Mode() != mode {
			t.Errorf("mode %v after replacing a file of mode %v: %v", st.Mode(), mode, err)
		}
	}
}
