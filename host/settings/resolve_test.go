package settings

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/internal/private"
)

// linked returns a directory with symbolic links.
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

// The user's file may be a link to another place. That of a workspace may not be a link,
// and can be read by others.
func TestWriteAgentTOML(t *testing.T) {
	dir := t.TempDir()
	d := Dirs{Config: filepath.Join(dir, "config")}
	kept, project, led := filepath.Join(dir, "dotfiles", "agent.toml"), filepath.Join(dir, "agent.toml"), filepath.Join(dir, "other", "agent.toml")
	for _, name := range []string{kept, d.AgentTOML(), led} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{d.AgentTOML(), led} {
		if err := os.Symlink(kept, name); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{d.AgentTOML(), project} {
		if err := d.WriteAgentTOML(path, []byte("a = 1\n")); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := d.WriteAgentTOML(led, []byte("a = 2\n")); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("a link in a workspace: %v", err)
	}
	for path, mode := range map[string]fs.FileMode{kept: 0o600, project: 0o644, d.AgentTOML(): fs.ModeSymlink, led: fs.ModeSymlink} {
		st, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := st.Mode(); got.Type() != mode.Type() || mode.IsRegular() && private.HasModes && got != mode {
			t.Errorf("%s has mode %v, not %v", path, got, mode)
		}
		if data, err := os.ReadFile(path); err != nil || string(data) != "a = 1\n" {
			t.Errorf("%s: %q, %v", path, data, err)
		}
	}
}
