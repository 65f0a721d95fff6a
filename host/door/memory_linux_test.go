package door

import (
	"os"
	"path/filepath"
	"testing"
)

// A directory below a shared parent is used only if it belongs to the user alone.
func TestADirectoryOfOurOwn(t *testing.T) {
	for name, c := range map[string]struct {
		plant func(name string) error
		good  bool
	}{
		"nothing":             {plant: func(string) error { return nil }, good: true},
		"ours":                {plant: func(name string) error { return os.Mkdir(name, 0o700) }, good: true},
		"others can write":    {plant: func(name string) error { return os.MkdirAll(name, 0o777) }},
		"others can look":     {plant: func(name string) error { return os.Mkdir(name, 0o750) }},
		"a file":              {plant: func(name string) error { return os.WriteFile(name, nil, 0o700) }},
		"a link to ours":      {plant: func(name string) error { return os.Symlink(t.TempDir(), name) }},
		"a link to nothing":   {plant: func(name string) error { return os.Symlink("nowhere", name) }},
		"somebody else's dir": {plant: func(name string) error { return os.Symlink("/", name) }},
	} {
		dir := filepath.Join(t.TempDir(), "d")
		if err := c.plant(dir); err != nil {
			t.Fatal(err)
		}
		if os.Geteuid() == 0 && name == "somebody else's dir" {
			if err := os.Remove(dir); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Chown(dir, 65534, 65534); err != nil {
				t.Fatal(err)
			}
		}
		if err := makePrivateDir(dir); (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}
