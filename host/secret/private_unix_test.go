//go:build unix

package secret

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stockade-dev/stockade/host/internal/private"
)

// TestFilesOfOthersAreNotUsed checks files that another user may have written, or can read:
// they are neither used nor extended.
func TestFilesOfOthersAreNotUsed(t *testing.T) {
	for _, name := range []string{filepath.Join("data", "s"), filepath.Join("state", "k")} {
		for what, spoil := range map[string]func(path string) error{
			"read by others":    func(path string) error { return os.Chmod(path, 0o644) },
			"written by others": func(path string) error { return os.Chmod(path, 0o620) },
			"a link": func(path string) error {
				if err := os.Rename(path, path+".real"); err != nil {
					return err
				}
				return os.Symlink(path+".real", path)
			},
			"a pipe":      func(path string) error { return join(os.Remove(path), syscall.Mkfifo(path, 0o600)) },
			"a directory": func(path string) error { return join(os.Remove(path), os.Mkdir(path, 0o700)) },
		} {
			dir := kept(t)
			if err := spoil(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
			f := newTestFile(t, dir)
			r, err := f.Get(t.Context(), "TOKEN")
			if err == nil {
				t.Errorf("%s, %s: it says %v", name, what, r)
			}
			if err := f.Set(t.Context(), aRecord("NEW", "another-value")); err == nil {
				t.Errorf("%s, %s: it is written to", name, what)
			}
		}
	}
	dir := kept(t)
	if err := os.Chmod(filepath.Join(dir, "data"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := newTestFile(t, dir).Set(t.Context(), aRecord("NEW", "another-value")); err == nil || !strings.Contains(err.Error(), "chmod 700") {
		t.Errorf("a folder that others may write to: %v", err)
	}
}

// TestOwners creates files of another user if the tests run as root.
func TestOwners(t *testing.T) {
	info, err := os.Stat("/proc/self/..")
	if err != nil {
		if info, err = os.Stat("/"); err != nil {
			t.Fatal(err)
		}
	}
	stat := *info.Sys().(*syscall.Stat_t)
	stat.Uid = uint32(os.Geteuid()) + 1
	if _, mine := private.Owner(owned{info, &stat}); mine {
		t.Error("another user's file is ours")
	}
	stat.Uid = uint32(os.Geteuid())
	if _, mine := private.Owner(owned{info, &stat}); !mine {
		t.Error("our own file is another's")
	}
}

type owned struct {
	os.FileInfo
	stat *syscall.Stat_t
}

func (o owned) Sys() any { return o.stat }

func join(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
