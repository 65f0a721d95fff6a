//go:build unix

package preview1_test

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/sandbox/wasi"
	"github.com/stockade-dev/stockade/host/sandbox/wasi/preview1"
)

// canary is in files that no guest may read.
const canary = "canary: not for guests"

// host is a directory of the host with a workspace and things beside it.
type host struct {
	t    *testing.T
	base string
}

// newHost makes
//
//	ws/            the workspace
//	   f.txt       "inside"
//	   d/g.txt     "deeper"
//	out/           what nobody was granted
//	   secret      the canary
//	   dir/
func newHost(t *testing.T) *host {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := &host{t, base}
	h.dir("ws/d")
	h.dir("out/dir")
	h.file("ws/f.txt", "inside")
	h.file("ws/d/g.txt", "deeper")
	h.file("out/secret", canary)
	return h
}

func (h *host) path(p string) string { return filepath.Join(h.base, filepath.FromSlash(p)) }

// name is the name that a guest has for p, below its preopen.
func (h *host) name(p string) string {
	return strings.TrimPrefix(h.path(p), "/")
}

func (h *host) dir(p string) {
	h.t.Helper()
	if err := os.MkdirAll(h.path(p), 0o777); err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) file(p, content string) {
	h.t.Helper()
	h.dir(filepath.Dir(p))
	if err := os.WriteFile(h.path(p), []byte(content), 0o666); err != nil {
		h.t.Fatal(err)
	}
}

// link plants a symbolic link. A target that starts with "out" is made
// absolute.
func (h *host) link(p, target string) {
	h.t.Helper()
	if strings.HasPrefix(target, "out") {
		target = h.path(target)
	}
	if err := os.Symlink(target, h.path(p)); err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) hardLink(p, existing string) {
	h.t.Helper()
	if err := os.Link(h.path(existing), h.path(p)); err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) read(p string) string {
	h.t.Helper()
	b, err := os.ReadFile(h.path(p))
	if err != nil {
		h.t.Error(err)
	}
	return string(b)
}

func (h *host) rw(p string) policy.Mount { return policy.Mount{Host: h.path(p), Write: true} }
func (h *host) ro(p string) policy.Mount { return policy.Mount{Host: h.path(p)} }

func (h *host) fs(masked []string, limits wasi.Limits, mounts ...policy.Mount) *wasi.FS {
	h.t.Helper()
	var paths []string
	for _, p := range masked {
		paths = append(paths, h.path(p))
	}
	f, err := wasi.New(mounts, paths, limits)
	if err != nil {
		h.t.Fatal(err)
	}
	return f
}

// state is everything that a guest might change.
func (h *host) state() map[string]string {
	h.t.Helper()
	state := map[string]string{}
	err := filepath.WalkDir(h.base, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		desc := fmt.Sprint(fi.Mode(), " ", fi.ModTime().UnixNano())
		switch {
		case fi.Mode().IsRegular():
			content, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			desc += fmt.Sprintf(" %d %x", fi.Size(), sha256.Sum256(content))
		case fi.Mode().Type() == fs.ModeSymlink:
			target, err := os.Readlink(p)
			if err != nil {
				return err
			}
			desc += " -> " + target
		}
		rel, err := filepath.Rel(h.base, p)
		state[rel] = desc
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return state
}

// unchanged fails the test if the host is not as it was before.
func (h *host) unchanged(before map[string]string) {
	h.t.Helper()
	if diff := cmp.Diff(before, h.state()); diff != "" {
		h.t.Errorf("the host was changed (-before +after):\n%s", diff)
	}
}

// options is a tree with these mounts, and nothing else.
func (h *host) options(masked []string, mounts ...policy.Mount) *preview1.Options {
	h.t.Helper()
	return &preview1.Options{FS: h.fs(masked, wasi.Limits{}, mounts...)}
}
