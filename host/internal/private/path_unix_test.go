//go:build unix

package private

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWhoCouldPutSomethingElseAtAPath(t *testing.T) {
	const another = 65534
	isRoot := os.Getuid() == 0
	for name, c := range map[string]struct {
		change func(base string) error
		want   string // a part of the error; empty: none
		root   bool   // only root can make the change
	}{
		"nobody":                          {func(string) error { return nil }, "", false},
		"what is not there yet":           {func(b string) error { return os.RemoveAll(b + "/a/b") }, "", false},
		"all, by the directory above":     {func(b string) error { return os.Chmod(b+"/a", 0o777) }, "/a (mode 0777)", false},
		"all, by one further up":          {func(b string) error { return os.Chmod(b, 0o707) }, "(mode 0707)", false},
		"a group that is not the user's":  {func(b string) error { return errors.Join(os.Chown(b+"/a", 0, 50), os.Chmod(b+"/a", 0o775)) }, "/a (mode 0775)", true},
		"nobody, with the sticky bit":     {func(b string) error { return os.Chmod(b+"/a", 0o777|os.ModeSticky) }, "", false},
		"another user, above":             {func(b string) error { return os.Chown(b+"/a", another, another) }, "/a, which leads to", true},
		"nobody, by a link of the user's": {func(b string) error { return errors.Join(os.Rename(b+"/a", b+"/r"), os.Symlink("r", b+"/a")) }, "", false},
		"another user, by a link": {func(b string) error {
			return errors.Join(os.Rename(b+"/a", b+"/r"), os.Symlink("r", b+"/a"), os.Lchown(b+"/a", another, another))
		}, "/a, which leads to", true},
		"all, where a link leads": {func(b string) error {
			return errors.Join(os.Rename(b+"/a", b+"/r"), os.Symlink(b+"/r", b+"/a"), os.Chmod(b+"/r", 0o777))
		}, "/r (mode 0777)", false},
		"all, where the path itself leads": {func(b string) error {
			return errors.Join(os.Mkdir(b+"/r", 0o700), os.Rename(b+"/a/b", b+"/r/b"), os.Symlink("../r/b", b+"/a/b"), os.Chmod(b+"/r", 0o777))
		}, "/r (mode 0777)", false},
		"a link in a circle": {func(b string) error { return errors.Join(os.RemoveAll(b+"/a"), os.Symlink("a", b+"/a")) }, "too many", false},
	} {
		if c.root && !isRoot {
			continue
		}
		t.Run(name, func(t *testing.T) {
			base := filepath.Join(t.TempDir(), "base")
			if err := errors.Join(os.MkdirAll(base+"/a/b", 0o700), c.change(base)); err != nil {
				t.Fatal(err)
			}
			err := CheckPath(base + "/a/b")
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
