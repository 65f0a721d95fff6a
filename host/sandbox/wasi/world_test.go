package wasi

import (
	"slices"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/internal/hosttest"
	"github.com/stockade-dev/stockade/host/policy"
)

const canary = hosttest.Canary

// world is a directory of the host; guests see parts of it.
type world struct{ *hosttest.World }

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{hosttest.New(t)}
}

// rw and ro are mounts of a directory of the world.
func (w *world) rw(p string) policy.Mount { return policy.Mount{Host: w.Path(p), Write: true} }
func (w *world) ro(p string) policy.Mount { return policy.Mount{Host: w.Path(p)} }

func (w *world) open(mounts ...policy.Mount) *guestFS { return w.openMasked(nil, mounts...) }

func (w *world) openMasked(masked []string, mounts ...policy.Mount) *guestFS {
	w.T.Helper()
	for i := range masked {
		masked[i] = w.Path(masked[i])
	}
	f, err := New(mounts, masked, nil)
	if err != nil {
		w.T.Fatal(err)
	}
	w.T.Cleanup(func() { f.Close() })
	return &guestFS{f, w}
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
	// As text: the cleaning is under test.
	return strings.TrimPrefix(guestName(g.w.Base), "/") + "/" + p
}

// try opens a name, reads its content, writes if it was opened for writing, and closes
// it. The test fails if the canary comes out.
func (g *guestFS) try(p string, flag Flag) Errno {
	g.w.T.Helper()
	_, errno := g.content(p, flag)
	return errno
}

func (g *guestFS) content(p string, flag Flag) (string, Errno) {
	g.w.T.Helper()
	h, errno := g.Open(g.name(p), flag)
	if errno != 0 {
		return "", errno
	}
	defer h.Close()
	if d, ok := h.(*Dir); ok {
		return strings.Join(names(g.w.T, d), "\n"), 0
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
		g.w.T.Errorf("open %q with flags %#x gave the canary", p, flag)
	}
	if flag&(ReadWrite|WriteOnly) != 0 {
		if n, errno := f.Write([]byte("overwritten")); errno != 0 {
			return out.String(), errno
		} else if n != len("overwritten") {
			g.w.T.Errorf("short write of %d to %q without an error", n, p)
		}
	}
	return out.String(), 0
}

// list returns the names in a directory, sorted.
func (g *guestFS) list(p string) []string {
	g.w.T.Helper()
	d, errno := g.dir(p)
	if errno != 0 {
		g.w.T.Errorf("open directory %s: %v", p, errno)
		return nil
	}
	defer d.Close()
	return names(g.w.T, d)
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
	g.w.T.Helper()
	h, errno := g.Open(g.name(p), flag)
	if errno != 0 {
		return nil, errno
	}
	f, ok := h.(*File)
	if !ok {
		g.w.T.Fatalf("%s is a %T", p, h)
	}
	return f, 0
}

// dir opens a directory.
func (g *guestFS) dir(p string) (*Dir, Errno) {
	g.w.T.Helper()
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
