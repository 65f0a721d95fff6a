package wasi

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/policy"
)

// A view reads the same files as the FS, for the same fuel.
func TestAViewShowsTheSameFiles(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ws := filepath.Join(base, "ws")
	for name, text := range map[string]string{"ws/f": "inside", "ws/dir/f": "below", "ws/masked": "masked", "out": "outside", "ws/empty": ""} {
		name = filepath.Join(base, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o777), os.WriteFile(name, []byte(text), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"link": "f", "out": "../out", "abs": "/etc/passwd", "alias": "masked", "up": "dir", "loop": "loop"} {
		if err := os.Symlink(target, filepath.Join(ws, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, masked := range [][]string{nil, {filepath.Join(ws, "masked")}} {
		var fuel, viewFuel uint64
		f, err := New([]policy.Mount{{Host: ws}}, masked, &Options{Limits: Limits{Charge: func(u uint64) { fuel += u }}})
		if err != nil {
			t.Fatal(err)
		}
		v, ok := f.View(4, func(u uint64) { viewFuel += u })
		if !ok {
			t.Fatal("there is no view")
		}
		guest := guestName(ws)
		for _, name := range []string{
			guest + "/f", guest + "/dir/f", guest + "/empty", guest + "/masked", guest + "/link", guest + "/out", guest + "/abs", guest + "/alias",
			guest + "/up/f", guest + "/loop", guest + "/dir", guest + "/f/", guest + "/missing", guest + "/f/f", guest, "/", "", "f", "/etc/passwd",
			guest + "/../out", guest + "/out/../f", "\x00", guest + "/" + strings.Repeat("x", 5000), guest + "/\xff", "/proc/self/environ",
		} {
			fuel, viewFuel = 0, 0
			want, errno := read(f.OpenContent(name))
			got, viewErrno := read(v.OpenContent(name))
			if got != want || (viewErrno == 0) != (errno == 0) {
				t.Errorf("%.99q: %q, %v through a view, and %q, %v", name, got, viewErrno, want, errno)
			}
			if errno == 0 && fuel != viewFuel {
				t.Errorf("%.99q: %d units through a view, and %d", name, viewFuel, fuel)
			}
			if strings.Contains(got, "outside") || strings.Contains(got, "root") || len(masked) > 0 && strings.Contains(got, "masked") {
				t.Errorf("%.99q: reads %q", name, got)
			}
		}
		v.Close()
		if err := f.Close(); err != nil || f.openCount != 0 {
			t.Errorf("%v, %d are open", err, f.openCount)
		}
	}
}

func read(c Content, errno Errno) (string, Errno) {
	if errno != 0 {
		return "", errno
	}
	defer c.Close()
	text, err := io.ReadAll(io.NewSectionReader(c, 0, c.Size()))
	if err != nil {
		return err.Error(), EIO
	}
	return string(text), 0
}

// The files of a view are taken from those of the FS, once and for all.
func TestAViewHasFilesOfItsOwn(t *testing.T) {
	ws := t.TempDir()
	if err := os.WriteFile(filepath.Join(ws, "f"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := New([]policy.Mount{{Host: ws}}, nil, &Options{Limits: Limits{MaxOpenFiles: 7}})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	name := guestName(ws) + "/f"
	fill := func(open func(string) (Content, Errno)) (all []Content) {
		for {
			c, errno := open(name)
			if errno == EMFILE {
				return all
			}
			if errno != 0 {
				t.Fatal(errno)
			}
			all = append(all, c)
		}
	}
	v, _ := f.View(100, func(uint64) {})
	mine, theirs := fill(v.OpenContent), fill(f.OpenContent)
	if len(mine) != 4 || len(theirs) != 3 {
		t.Errorf("%d are open in the view, %d beside it", len(mine), len(theirs))
	}
	if none, ok := f.View(100, func(uint64) {}); !ok || len(fill(none.OpenContent)) != 0 {
		t.Error("there are files where there are none")
	}
	for _, c := range mine {
		c.Close()
		c.Close()
	}
	if n := len(fill(f.OpenContent)); n != 0 {
		t.Errorf("%d more can be opened while there is the view", n)
	}
	v.Close()
	if n := len(fill(f.OpenContent)); n != 4 {
		t.Errorf("%d more can be opened after it", n)
	}
	if _, ok := f.View(1, nil); !ok {
		t.Error("there is no view")
	}
	_ = f.Close()
	if _, ok := f.View(1, nil); ok {
		t.Error("there is a view of what is closed")
	}
}

// A directory that a view has open is used only as long as it has its name.
func TestAViewSeesWhatIsReplaced(t *testing.T) {
	for name, tc := range map[string]struct {
		replace func(w *world)
		want    string
		errno   Errno
	}{
		"nothing":                {func(*world) {}, "before", 0},
		"another directory":      {func(w *world) { w.Rename("ws/a/b", "ws/old"); w.File("ws/a/b/f", "after") }, "after", 0},
		"a directory above":      {func(w *world) { w.Rename("ws/a", "ws/old"); w.File("ws/a/b/f", "after") }, "after", 0},
		"nothing is there":       {func(w *world) { w.Rename("ws/a", "ws/old") }, "", ENOENT},
		"moved out":              {func(w *world) { w.Rename("ws/a/b", "out/moved") }, "", ENOENT},
		"a link inside":          {func(w *world) { w.Rename("ws/a/b", "ws/old"); w.File("ws/c/f", "after"); w.Link("ws/a/b", "../c") }, "after", 0},
		"a link outside":         {func(w *world) { w.Rename("ws/a", "ws/old"); w.Link("ws/a", "../out") }, "", errOutside},
		"a link to the masked":   {func(w *world) { w.Rename("ws/a", "ws/old"); w.Link("ws/a", "masked") }, "", errOutside},
		"the masked one":         {func(w *world) { w.Rename("ws/a", "ws/old"); w.Rename("ws/masked", "ws/a") }, "", errOutside},
		"a file":                 {func(w *world) { w.Rename("ws/a", "ws/old"); w.File("ws/a", "") }, "", ENOTDIR},
		"the file by a link":     {func(w *world) { w.Rename("ws/a/b/f", "ws/old"); w.Link("ws/a/b/f", "../../../out/b/f") }, "", errOutside},
		"the file by the masked": {func(w *world) { w.Rename("ws/masked/b/f", "ws/a/b/f") }, "", errOutside},
		"the file by a secret": {func(w *world) {
			w.Rename("ws/a/b/f", "ws/old")
			w.File("ws/a/b/.env", canary)
			w.Link("ws/a/b/f", ".env")
		}, "", errOutside},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.File("ws/a/b/f", "before")
			w.File("ws/masked/b/f", canary)
			w.File("out/b/f", canary)
			g := w.openMasked([]string{"ws/masked", "ws/masked/b/f"}, w.ro("ws"))
			v, ok := g.View(2, func(uint64) {})
			if !ok {
				t.Fatal("there is no view")
			}
			defer v.Close()
			row := []string{g.name("ws/a/b/f"), g.name("ws/a/b/f")}
			for c, errno := range v.Contents(row) {
				if text, errno := read(c, errno); text != "before" || errno != 0 {
					t.Fatal(text, errno)
				}
			}
			tc.replace(w)
			for c, errno := range v.Contents(row) {
				if text, errno := read(c, errno); text != tc.want || errno != tc.errno {
					t.Errorf("%q, %v, want %q, %v", text, errno, tc.want, tc.errno)
				}
			}
		})
	}
}

// OpenContent opens one file.
func (v *View) OpenContent(name string) (c Content, errno Errno) {
	for c, errno = range v.Contents([]string{name}) {
	}
	return c, errno
}
