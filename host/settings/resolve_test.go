package settings

import (
	"os"
	"path/filepath"
	"testing"
)

// linked is a directory with links in it.
func linked(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "real"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "real", "a"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{
		"link": "real", "file": "real/a", "nothing": "real/none", "chain": filepath.Join(dir, "link"), "loop": "loop",
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestResolve(t *testing.T) {
	dir := linked(t)
	for path, want := range map[string]string{
		"real/a": "real/a", "real/new": "real/new", "real/new/er": "real/new/er",
		"link/a": "real/a", "link/new/er": "real/new/er", "file": "real/a", "nothing": "real/none", "nothing/x": "real/none/x", "chain/a": "real/a",
		"loop": "loop", "loop/x": "loop/x",
	} {
		if got := Resolve(dir + "/" + path); got != dir+"/"+want {
			t.Errorf("%s leads to %s, want %s", path, got, want)
		}
	}
}
