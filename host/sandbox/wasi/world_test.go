package wasi

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stockade-dev/stockade/host/policy"
)

// canary is in files that no guest may read.
const canary = "canary: not for guests"

// world is a directory of the host with a workspace and things beside it.
type world struct {
	t    *testing.T
	base string
}

// newWorld makes
//
//	ws/            the workspace
//	   f.txt       "inside"
//	   d/g.txt     "deeper"
//	out/           what nobody was granted
//	   secret      the canary
//	   dir/
func newWorld(t *testing.T) *world {
	t.Helper()
	base, err := os.MkdirTemp("", "wasi") // short: it also holds a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	if base, err = filepath.EvalSymlinks(base); err != nil {
		t.Fatal(err)
	}
	w := &world{t, base}
	w.dir("ws/d")
	w.dir("out/dir")
	w.file("ws/f.txt", "inside")
	w.file("ws/d/g.txt", "deeper")
	w.file("out/secret", canary)
	return w
}

func (w *world) path(p string) string { return filepath.Join(w.base, filepath.FromSlash(p)) }

func (w *world) dir(p string) {
	w.t.Helper()
	if err := os.MkdirAll(w.path(p), 0o777); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) file(p, content string) {
	w.t.Helper()
	w.dir(filepath.Dir(p))
	if err := os.WriteFile(w.path(p), []byte(content), 0o666); err != nil {
		w.t.Fatal(err)
	}
}

// link plants a symbolic link. A target that starts with "out" is made
// absolute.
func (w *world) link(p, target string) {
	w.t.Helper()
	if strings.HasPrefix(target, "out") {
		target = w.path(target)
	}
	if err := os.Symlink(target, w.path(p)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) hardLink(p, existing string) {
	w.t.Helper()
	if err := os.Link(w.path(existing), w.path(p)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) rename(from, to string) {
	w.t.Helper()
	if err := os.Rename(w.path(from), w.path(to)); err != nil {
		w.t.Fatal(err)
	}
}

// rw and ro are mounts of a directory of the world.
func (w *world) rw(p string) policy.Mount { return policy.Mount{Host: w.path(p), Write: true} }
func (w *world) ro(p string) policy.Mount { return policy.Mount{Host: w.path(p)} }

func (w *world) open(mounts ...policy.Mount) *guestFS { return w.openMasked(nil, mounts...) }

func (w *world) openMasked(masked []string, mounts ...policy.Mount) *guestFS {
	w.t.Helper()
	for i := range masked {
		masked[i] = w.path(masked[i])
	}
	f, err := New(mounts, masked, Limits{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { f.Close() })
	return &guestFS{f, w}
}

// state is everything about the world that a guest might change.
func (w *world) state() map[string]string {
	w.t.Helper()
	state := map[string]string{}
	err := filepath.WalkDir(w.base, func(p string, d fs.DirEntry, err error) error {
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
		rel, err := filepath.Rel(w.base, p)
		state[rel] = desc
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return state
}

// unchanged fails the test if the world is not as it was before.
func (w *world) unchanged(before map[string]string) {
	w.t.Helper()
	if diff := cmp.Diff(before, w.state()); diff != "" {
		w.t.Errorf("the host was changed (-before +after):\n%s", diff)
	}
}

// guestFS is an FS with names relative to the world.
type guestFS struct {
	*FS
	w *world
}

func (g *guestFS) name(p string) string {
	if strings.HasPrefix(p, "/") {
		return p
	}
	// As text: cleaning is what is tested.
	return strings.TrimPrefix(guestName(g.w.base), "/") + "/" + p
}

// try opens a name, reads what it can, writes if it was opened for that, and
// closes it. The test fails if the canary comes out.
func (g *guestFS) try(p string, flag Flag) Errno {
	g.w.t.Helper()
	_, errno := g.content(p, flag)
	return errno
}

func (g *guestFS) content(p string, flag Flag) (string, Errno) {
	g.w.t.Helper()
	h, errno := g.Open(g.name(p), flag)
	if errno != 0 {
		return "", errno
	}
	defer h.Close()
	if d, ok := h.(*Dir); ok {
		return strings.Join(names(g.w.t, d), "\n"), 0
	}
	f := h.(*File)
	var out strings.Builder
	buf := make([]byte, 512)
	for {
		n, errno := f.Read(buf)
		out.Write(buf[:n])
		if n == 0 || errno != 0 {
			break
		}
	}
	if strings.Contains(out.String(), canary) {
		g.w.t.Errorf("open %q with flags %#x gave the canary", p, flag)
	}
	if flag&(ReadWrite|WriteOnly) != 0 {
		if n, errno := f.Write([]byte("overwritten")); errno != 0 {
			return out.String(), errno
		} else if n != len("overwritten") {
			g.w.t.Errorf("short write of %d to %q without an error", n, p)
		}
	}
	return out.String(), 0
}

// list returns the names in a directory, sorted.
func (g *guestFS) list(p string) []string {
	g.w.t.Helper()
	d, errno := g.dir(p)
	if errno != 0 {
		g.w.t.Errorf("open directory %s: %v", p, errno)
		return nil
	}
	defer d.Close()
	return names(g.w.t, d)
}

func names(t *testing.T, d *Dir) []string {
	t.Helper()
	names := []string{}
	for cookie := uint64(0); ; {
		e, more, errno := d.Entry(cookie)
		if errno != 0 {
			t.Errorf("list %s: %v", d.Name(), errno)
		}
		if !more {
			break
		}
		if e.Name != "" && e.Name != "." && e.Name != ".." {
			names = append(names, e.Name)
		}
		cookie = e.Next
	}
	slices.Sort(names)
	return names
}

// file opens a regular file.
func (g *guestFS) file(p string, flag Flag) (*File, Errno) {
	g.w.t.Helper()
	h, errno := g.Open(g.name(p), flag)
	if errno != 0 {
		return nil, errno
	}
	f, ok := h.(*File)
	if !ok {
		g.w.t.Fatalf("%s is a %T", p, h)
	}
	return f, 0
}

// dir opens a directory.
func (g *guestFS) dir(p string) (*Dir, Errno) {
	g.w.t.Helper()
	h, errno := g.Open(g.name(p), DirectoryOnly)
	if errno != 0 {
		return nil, errno
	}
	return h.(*Dir), 0
}

func wantErrno(t *testing.T, what string, got Errno, want ...Errno) {
	t.Helper()
	if !slices.Contains(want, got) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// promptly fails the test if op does not return at once.
func promptly(t *testing.T, op func()) {
	t.Helper()
	within(t, 10*time.Second, op)
}

// within fails the test if op takes longer.
func within(t *testing.T, limit time.Duration, op func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		op()
	}()
	select {
	case <-done:
	case <-ctx.Done():
		t.Fatal("the host is blocked")
	}
}
