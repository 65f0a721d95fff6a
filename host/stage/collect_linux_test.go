package stage

import (
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/internal/hosttest"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/rootedfs"
)

// overlay writes to a layer like an overlay of the kernel. Package jail tests real ones.
type overlay struct {
	*world
	*Layer
	area  *Area
	since time.Time
}

func newOverlay(w *world) *overlay {
	w.T.Helper()
	w.Dir("stages")
	area := NewArea(w.Path("stages"), w.T.Logf)
	w.T.Cleanup(func() { _ = area.Close() })
	l, err := area.NewLayer(w.Path("ws"))
	if err != nil {
		w.T.Fatal(err)
	}
	NoteWrite() // the files of the host were made just now
	return &overlay{w, l, area, FileClockNow()}
}

// at returns the path of a file in the upper directory, and makes the directories above
// with the modes that they have on the host.
func (o *overlay) at(name string) string {
	o.T.Helper()
	dir := o.Upper
	for part := range strings.SplitSeq(filepath.Dir(name), "/") {
		dir = filepath.Join(dir, part)
		o.must(os.MkdirAll(dir, 0o755))
	}
	return filepath.Join(o.Upper, name)
}

func (o *overlay) must(err error) {
	o.T.Helper()
	if err != nil {
		o.T.Fatal(err)
	}
}

func (o *overlay) write(name, text string) { o.must(os.WriteFile(o.at(name), []byte(text), 0o644)) }

func (o *overlay) whiteout(name string) { o.must(unix.Mknod(o.at(name), unix.S_IFCHR, 0)) }

func (o *overlay) opaque(name string) {
	o.must(os.MkdirAll(o.at(name), 0o755))
	o.must(unix.Setxattr(o.at(name), "user.overlay.opaque", []byte("y"), 0))
}

func (o *overlay) collect() (*Set, error) {
	s, err := New(&Options{Dir: o.area.Dir()})
	o.must(err)
	o.T.Cleanup(func() { _ = s.Drop() })
	return s, s.Collect(o.T.Context(), o.Layer, o.since)
}

// all does everything once. With far the layer seems to be on another file system.
func everythingOnTop(t *testing.T, far bool) (*overlay, *Set) {
	t.Helper()
	w := newFull(t)
	for _, p := range []string{"modes", "od/x", "od/y", "typed/x", "flat", "b\xffd/\xfe"} {
		w.File("ws/"+p, "content of "+p)
	}
	if err := os.Symlink("f.txt", w.Path("ws/link")); err != nil {
		t.Fatal(err)
	}
	o := newOverlay(w)
	o.canRename = o.canRename && !far
	o.write("f.txt", "overwritten")
	o.must(unix.Setxattr(o.at("f.txt"), "user.overlay.origin", nil, 0)) // set on files that were copied
	o.write("new", "new")
	o.write("b\xffd/\xfe", "overwritten") // no text
	o.write("nd/x", "new")
	o.write("nd/e/y", "deep")
	o.must(os.Link(o.at("nd/x"), o.at("twin")))
	o.must(os.Symlink("nd/x", o.at("nd/link")))
	o.whiteout("gone")
	o.whiteout("gd")
	o.whiteout("never")
	o.opaque("od")
	o.write("od/x", "another")
	o.whiteout("link")
	o.must(os.Remove(o.at("link")))
	o.must(os.Symlink("r", o.at("link")))
	o.write("typed", "a file now")
	o.write("flat/x", "a directory now")
	o.write("modes", "content of modes")
	o.must(os.Chmod(o.at("modes"), 0o755))
	o.write("times", "content of times")
	o.must(os.Chtimes(o.at("times"), time.Unix(1e9, 0), time.Unix(1e9, 0)))
	o.write("a", "content of a") // nothing
	if fi, err := os.Stat(w.Path("ws/a")); err == nil {
		o.must(os.Chtimes(o.at("a"), fi.ModTime(), fi.ModTime()))
	}
	o.must(unix.Mkfifo(o.at("nd/fifo"), 0o644))
	o.write("nd/run", "#!")
	o.must(os.Chmod(o.at("nd/run"), 0o755|fs.ModeSetuid))
	s, err := o.collect()
	if err != nil {
		t.Fatal(err)
	}
	return o, s
}

// modesOnTop changes modes, and the content of directories and files whose modes forbid it to
// their owner: the command has changed the modes meanwhile. TestAsNobody runs it without root.
func modesOnTop(t *testing.T, far bool) (*overlay, *Set) {
	t.Helper()
	w := newWorld(t)
	t.Cleanup(func() { _ = rootedfs.RemoveAll(w.Path("ws")) })
	for _, p := range []string{"shut/x", "shut/gone", "shut/in/x", "ro/x", "ro/ro/gone", "rogone/x", "rogone/ro/x", "by/way/x", "dark", "darker", "hush", "times"} {
		w.File("ws/"+p, "content of "+p)
	}
	w.Dir("ws/opens")
	chmod := func(dir string, modes ...any) {
		for i := 0; i < len(modes); i += 2 {
			w.T.Helper()
			if err := os.Chmod(filepath.Join(dir, modes[i].(string)), fs.FileMode(modes[i+1].(int))); err != nil {
				w.T.Fatal(err)
			}
		}
	}
	chmod(w.Path("ws"), "ro/ro", 0o500, "ro", 0o500, "rogone/ro", 0o500, "rogone", 0o555, "by/way", 0o100, "by", 0o100, "dark", 0, "darker", 0o200, "times", 0, "opens", 0)
	o := newOverlay(w)
	o.canRename = o.canRename && !far
	o.write("shut/x", "overwritten")
	o.write("shut/new", "new")
	o.whiteout("shut/gone")
	o.write("shut/in/x", "overwritten")
	o.write("ro/x", "overwritten")
	o.whiteout("ro/ro/gone")
	o.whiteout("rogone")
	o.write("by/way/x", "overwritten")
	for _, p := range []string{"dark", "darker", "hush", "times"} {
		o.write(p, "content of "+p)
	}
	o.must(os.Chtimes(o.at("times"), time.Unix(1e9, 0), time.Unix(1e9, 0)))
	o.must(os.Mkdir(o.at("opens"), 0o755))
	o.write("nd/x", "new")
	o.write("nd/in/x", "new")
	o.write("mute", "new")
	chmod(o.Upper, "shut/in", 0o500, "shut", 0o644, "ro/ro", 0o500, "ro", 0o500, "by/way", 0o100, "by", 0o100, "darker", 0o755, "hush", 0, "times", 0,
		"nd/in/x", 0o200, "nd/in", 0o100, "nd/x", 0, "nd", 0, "mute", 0, ".", 0)
	s, err := o.collect()
	if err != nil {
		t.Fatal(err)
	}
	return o, s
}

func TestModesThatKeepTheirOwnerOut(t *testing.T) {
	for _, far := range []bool{false, true} {
		o, s := modesOnTop(t, far)
		changes, err := s.Changes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		read := func() {
			for _, c := range changes {
				if c.After != nil && c.After.Mode.IsRegular() {
					if _, err := c.After.SHA256(); err != nil {
						t.Error(err)
					}
				}
			}
		}
		read()
		// A failed commit leaves the layer readable as before.
		errTest := errors.New("disk full")
		s.stepHook = func(op, _ string) error {
			if op == "note the mode of" {
				return errTest
			}
			return nil
		}
		if err := s.Commit(t.Context()); !errors.Is(err, errTest) {
			t.Fatal(err)
		}
		read()
		s.stepHook = nil
		if err := s.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		tree := o.Tree()
		for name, want := range map[string]string{
			"shut": "dir drw-r--r--", "shut/in": "dir dr-x------", "shut/x": "file  overwritten", "shut/new": "file  new", "shut/in/x": "file  overwritten", "shut/gone": "",
			"ro": "dir dr-x------", "ro/x": "file  overwritten", "ro/ro": "dir dr-x------", "ro/ro/gone": "", "rogone": "", "opens": "dir",
			"by": "dir d--x------", "by/way": "dir d--x------", "by/way/x": "file  overwritten",
			"dark": "file  content of dark", "darker": "file -rwxr-xr-x content of darker",
			"nd": "dir d---------", "nd/in": "dir d--x------",
		} {
			if tree[name] != want {
				t.Errorf("%s is %q, want %q", name, tree[name], want)
			}
		}
		for name, mode := range map[string]string{"hush": "---------- ", "times": "---------- ", "nd/x": "---------- ", "nd/in/x": "--w------- ", "mute": "---------- "} {
			if !strings.HasPrefix(tree[name], "file "+mode) {
				t.Errorf("%s is %q", name, tree[name])
			}
		}
		if fi, err := os.Stat(o.Path("ws/times")); err != nil || fi.ModTime().Unix() != 1e9 {
			t.Error(fi.ModTime(), err)
		}
	}
}

func TestWhatAnOverlayHasChanged(t *testing.T) {
	for _, far := range []bool{false, true} {
		o, s := everythingOnTop(t, far)
		before := o.StateButDirTimes()
		changes, err := s.Changes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range changes {
			got = append(got, string(c.Kind)+" "+strings.TrimPrefix(c.Path, o.Path("ws")+"/"))
		}
		slices.Sort(got)
		want := []string{
			"created flat/x", "created link", "created nd/e/y", "created nd/link", "created nd/run", "created nd/x", "created new", "created twin", "created typed",
			"directory created flat", "directory created nd", "directory created nd/e", "directory removed gd", "directory removed typed",
			"mode modes", "modified b\xffd/\xfe", "modified f.txt", "modified od/x", "removed flat", "removed gd/x", "removed gone", "removed link", "removed od/y", "removed typed/x", "times times",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("changes (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(before, o.StateButDirTimes()); diff != "" {
			t.Errorf("to look has changed something:\n%s", diff)
		}
		if err := s.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		tree := o.Tree()
		for name, want := range map[string]string{
			"f.txt": "file  overwritten", "nd/e/y": "file  deep", "od/x": "file  another", "typed": "file  a file now", "flat/x": "file  a directory now",
			"gone": "", "gd": "", "od/y": "", "nd/fifo": "",
		} {
			if tree[name] != want {
				t.Errorf("%s is %q, want %q", name, tree[name], want)
			}
		}
		for name, mode := range map[string]fs.FileMode{"modes": 0o755, "nd/run": 0o755} {
			if fi, err := os.Stat(o.Path("ws/" + name)); err != nil || fi.Mode() != mode {
				t.Errorf("%s: %v, %v", name, fi.Mode(), err)
			}
		}
		if target, _ := os.Readlink(o.Path("ws/link")); target != "r" {
			t.Errorf("the link leads to %q", target)
		}
		x, _ := os.Stat(o.Path("ws/nd/x"))
		twin, _ := os.Stat(o.Path("ws/twin"))
		if !far && !os.SameFile(x, twin) {
			t.Error("two names are not one file any more")
		}
		if names, err := unix.Listxattr(o.Path("ws/nd"), nil); err == nil && names > 0 {
			t.Error("the new directory has attributes of an overlay")
		}
		for name := range tree {
			if strings.Contains(name, ".stockade-") {
				t.Errorf("%s is left", name)
			}
		}
	}
}

// Wherever a commit fails, and wherever the process is killed, nothing is half made.
func TestACommitOfAnOverlayIsWhole(t *testing.T) {
	for name, onTop := range map[string]func(*testing.T, bool) (*overlay, *Set){"everything": everythingOnTop, "modes": modesOnTop} {
		t.Run(name, func(t *testing.T) { wholeEverywhere(t, onTop) })
	}
}

func wholeEverywhere(t *testing.T, onTop func(*testing.T, bool) (*overlay, *Set)) {
	for _, far := range []bool{false, true} {
		if far && hosttest.NoOpenat2() {
			break // TestWhatAnOverlayHasChanged looks the names up
		}
		o, s := onTop(t, far)
		if err := s.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		killEverywhere(t, o.Tree(), func() (*world, *Set) {
			o, s := onTop(t, far)
			return o.world, s
		})
		errTest := errors.New("disk full")
		for fail, failed := 0, true; failed; fail++ {
			o, s := onTop(t, far)
			before, n := o.StateButDirTimes(), 0
			s.stepHook = func(op, path string) error {
				if n++; op != "tidy up" && n == fail+1 {
					return errTest
				}
				return nil
			}
			err := s.Commit(t.Context())
			if failed = err != nil; !failed {
				if n <= fail {
					break
				}
				failed = true // it was tidied up
				continue
			}
			left, _ := errors.AsType[*CommitError](err)
			if !errors.Is(err, errTest) || left == nil || len(left.Left) > 0 {
				t.Fatalf("step %d: %v", fail, err)
			}
			if diff := cmp.Diff(before, o.StateButDirTimes()); diff != "" {
				t.Fatalf("step %d, %s: (-before +after):\n%s", fail, left.Op, diff)
			}
		}
	}
}

// No change that others make while the command runs or while the person thinks is lost: the
// commit is refused as a whole, or does not touch their files.
func TestOthersChangeTheSame(t *testing.T) {
	file := func(name, text string) func(*world) { return func(w *world) { w.File("ws/"+name, text) } }
	remove := func(name string) func(*world) {
		return func(w *world) { os.RemoveAll(w.Path("ws/" + name)) }
	}
	saved := func(name string) func(*world) {
		return func(w *world) {
			w.File("ws/t", "the host")
			w.Rename("ws/t", "ws/"+name)
		}
	}
	for name, c := range map[string]struct {
		host     func(*world)
		harmless bool // no file of the command is concerned
		late     bool // only visible while the person thinks
	}{
		"a modified file is edited":             {host: file("f.txt", "the host")},
		"a modified file is saved":              {host: saved("f.txt")},
		"a modified file is removed":            {host: remove("f.txt")},
		"a modified file becomes a link":        {host: func(w *world) { os.Remove(w.Path("ws/f.txt")); w.Link("ws/f.txt", "../out/secret") }},
		"a modified file becomes a directory":   {host: func(w *world) { os.Remove(w.Path("ws/f.txt")); w.Dir("ws/f.txt") }},
		"a modified file gets a mode":           {host: func(w *world) { os.Chmod(w.Path("ws/f.txt"), 0o600) }},
		"a modified file gets another name":     {host: func(w *world) { w.HardLink("out/h", "ws/f.txt") }},
		"a removed file is edited":              {host: file("gone", "the host")},
		"a removed file is saved":               {host: saved("gone")},
		"a file of a removed directory is":      {host: file("gd/x", "the host")},
		"a removed directory gets a file":       {host: file("gd/more", "the host")},
		"a removed directory gets a directory":  {host: file("gd/more/x", "the host")},
		"a file of an opaque directory":         {host: file("od/y", "the host")},
		"a file in an opaque directory":         {host: file("od/z", "the host"), late: true, harmless: true},
		"a file where one is made":              {host: file("new", "the host")},
		"a directory where a file is made":      {host: func(w *world) { w.Dir("ws/new") }},
		"a link where a file is made":           {host: func(w *world) { w.Link("ws/new", "../out/new") }},
		"a directory where one is made":         {host: func(w *world) { w.Dir("ws/nd") }, late: true},
		"a link where a directory is made":      {host: func(w *world) { w.Link("ws/nd", "../out") }},
		"a file where a directory is made":      {host: file("nd", "the host")},
		"a directory above becomes a link":      {host: func(w *world) { w.Rename("ws/od", "ws/was"); w.Link("ws/od", "../out") }},
		"a directory above is moved":            {host: func(w *world) { w.Rename("ws/od", "ws/was") }, late: true},
		"a directory above is another":          {host: func(w *world) { w.Rename("ws/od", "ws/was"); w.File("ws/od/x", "the host") }},
		"the mode that changes":                 {host: func(w *world) { os.Chmod(w.Path("ws/modes"), 0o600) }},
		"the file whose mode changes":           {host: file("modes", "the host")},
		"the file whose times change":           {host: saved("times")},
		"a link that is replaced":               {host: func(w *world) { os.Remove(w.Path("ws/link")); w.Link("ws/link", "a") }},
		"a type that is replaced":               {host: file("flat", "the host")},
		"a directory that a file replaces":      {host: file("typed/more", "the host")},
		"another file":                          {host: file("b", "the host"), harmless: true},
		"another directory":                     {host: file("other/x", "the host"), harmless: true},
		"a file beside":                         {host: file("beside", "the host"), harmless: true},
		"a file of no change":                   {host: remove("over"), harmless: true},
		"a directory is moved that nothing has": {host: func(w *world) { w.Rename("ws/p", "ws/moved") }, harmless: true},
	} {
		for _, early := range []bool{true, false} {
			if early && c.late {
				continue
			}
			t.Run(name+map[bool]string{true: ", while it runs", false: ", while the person thinks"}[early], func(t *testing.T) {
				o, s := everythingOnTop(t, false)
				if early { // again, with the change of others
					c.host(o.world)
					fresh, err := New(&Options{Dir: o.area.Dir()})
					o.must(err)
					t.Cleanup(func() { _ = fresh.Drop() })
					err = fresh.Collect(t.Context(), o.Layer, o.since)
					if err == nil {
						_, err = fresh.Changes(t.Context())
					}
					s.layers = nil // it must not be dropped twice
					s = fresh
					if errors.Is(err, policy.ErrChanged) != !c.harmless {
						// The commit finds the changes that cannot be seen yet.
						if err != nil || c.harmless {
							t.Fatal(err)
						}
					}
					if err != nil {
						return
					}
				} else if _, err := s.Changes(t.Context()); err != nil {
					t.Fatal(err)
				} else {
					c.host(o.world)
				}
				before := o.StateButDirTimes()
				err := s.Commit(context.Background())
				switch {
				case c.harmless && err != nil:
					t.Error(err)
				case c.harmless:
				case !errors.Is(err, policy.ErrChanged):
					t.Errorf("the commit says %v", err)
				default:
					if diff := cmp.Diff(before, o.StateButDirTimes()); diff != "" {
						t.Errorf("it has changed something (-before +after):\n%s", diff)
					}
				}
			})
		}
	}
}

// Changes that others make between the last check and a step of the commit are not lost,
// either.
func TestTheHostInterferesWithACommitOfAnOverlay(t *testing.T) {
	for _, c := range []struct{ op, at, writes string }{
		{"move aside", "gone", "gone"},
		{"move aside", "gd", "gd/x"},
		{"move aside", "gd", "gd/more"},
		{"move aside", "typed", "typed/x"},
		{"put in place", "f.txt", "f.txt"},
		{"put in place", "od/x", "od/x"},
		{"put in place", "new", "new"},
		{"put in place", "nd", "nd"},
		{"check", "od", "od/x"}, // in another directory of that name
	} {
		for _, far := range []bool{false, true} {
			o, s := everythingOnTop(t, far)
			s.stepHook = func(op, path string) error {
				if op == c.op && path == o.Path("ws/"+c.at) {
					if op == "check" {
						o.Rename("ws/od", "ws/was")
					}
					o.File("ws/"+c.writes, "the host")
				}
				return nil
			}
			if err := s.Commit(t.Context()); err == nil {
				t.Errorf("%+v: it is made", c)
			}
			if got := o.Content("ws/" + c.writes); got != "the host" {
				t.Errorf("%+v: what the host wrote is lost: %q", c, got)
			}
		}
	}
}

// If a command could write to a layer what only the kernel can, it would gain nothing.
func TestForgedLayers(t *testing.T) {
	attribute := func(o *overlay, name, key, value string) {
		o.must(unix.Setxattr(o.at(name), "user.overlay."+key, []byte(value), 0))
	}
	const large = 10 << 30
	for name, c := range map[string]struct {
		forge func(*overlay)
		want  map[string]string // a part of the description of a file; "" if there is none
	}{
		"redirects": {func(o *overlay) {
			for _, dir := range []string{"od", "nd"} {
				o.write(dir+"/z", "new")
				attribute(o, dir, "redirect", "/../out")
			}
			o.write("f.txt", "mine")
			attribute(o, "f.txt", "redirect", "/../out/secret")
		}, map[string]string{"od/x": "content of od/x", "od/z": "new", "nd/z": "new", "od/secret": "", "nd/secret": "", "f.txt": "mine"}},
		"metadata only": {func(o *overlay) {
			o.write("f.txt", "")
			attribute(o, "f.txt", "metacopy", "")
			o.write("new", "mine")
			attribute(o, "new", "metacopy", "")
			attribute(o, "new", "redirect", "/../out/secret")
		}, map[string]string{"f.txt": "file  ", "new": "mine"}},
		"another opaque": {func(o *overlay) {
			o.write("od/z", "new")
			attribute(o, "od", "opaque", "x")
			attribute(o, "od", "whiteouts", "y")
		}, map[string]string{"od/x": "content of od/x", "od/y": "content of od/y", "od/z": "new"}},
		"a whiteout with attributes": {func(o *overlay) {
			o.write("f.txt", "")
			attribute(o, "f.txt", "whiteout", "y")
			attribute(o, "", "opaque", "x")
		}, map[string]string{"f.txt": "file  "}},
		"set-id bits": {func(o *overlay) {
			o.write("f.txt", "mine")
			o.write("od/x", "content of od/x")
			o.write("nd/e/x", "new")
			for name, mode := range map[string]fs.FileMode{"f.txt": 0o4755, "od/x": 0o6755, "od": 0o3777, "nd/e": 0o2755, "nd/e/x": 0o2755} {
				o.must(unix.Chmod(o.at(name), uint32(mode)))
			}
		}, map[string]string{"f.txt": "mine", "nd/e/x": "new"}},
		"an ACL for what is made later": {func(o *overlay) {
			o.write("nd/e/x", "new")
			o.write("od/nd/x", "new")
			var acl []byte // with entries for the owner, the group and others
			for _, entry := range [][2]uint16{{1, 7}, {4, 7}, {0x20, 7}} {
				acl = binary.LittleEndian.AppendUint16(acl, entry[0])
				acl = binary.LittleEndian.AppendUint16(acl, entry[1])
				acl = append(acl, 0xff, 0xff, 0xff, 0xff)
			}
			for _, dir := range []string{"od", "od/nd", "nd", "nd/e"} {
				if err := unix.Setxattr(o.at(dir), defaultACL, append([]byte{2, 0, 0, 0}, acl...), 0); err != unix.ENOTSUP {
					o.must(err)
				}
			}
		}, map[string]string{"nd/e/x": "new", "od/nd/x": "new"}},
		"no files": {func(o *overlay) {
			o.must(unix.Mkfifo(o.at("fifo"), 0o666))
			o.must(unix.Mknod(o.at("nd/socket"), unix.S_IFSOCK|0o666, 0))
			o.must(unix.Mkfifo(o.at("f.txt"), 0o666))
			o.must(unix.Mkfifo(o.at("gd"), 0o666))
		}, map[string]string{"fifo": "", "nd/socket": "", "f.txt": "", "gd": "", "gd/x": ""}},
		"a large file without content": {func(o *overlay) {
			o.write("new", "begin")
			o.must(os.Truncate(o.at("new"), large))
			o.write("f.txt", "")
			o.must(os.Truncate(o.at("f.txt"), large))
		}, nil},
		"names": {func(o *overlay) {
			for _, name := range []string{"a\nb", "\xff\xfe", "\x1b[2J", " ", strings.Repeat("x", 255)} {
				o.write("nd/"+name+"/"+name, "new")
			}
		}, map[string]string{"nd/a\nb/a\nb": "new", "nd/\xff\xfe/\xff\xfe": "new"}},
	} {
		for _, far := range []bool{false, true} {
			w := newFull(t)
			w.File("ws/od/x", "content of od/x")
			w.File("ws/od/y", "content of od/y")
			o := newOverlay(w)
			o.canRename = o.canRename && !far
			outside := w.Outside()
			maps.DeleteFunc(outside, func(name, _ string) bool { return strings.HasPrefix(name, "stages") })
			c.forge(o)
			s, err := o.collect()
			if err == nil {
				_, err = s.Changes(t.Context())
			}
			skipped := len(s.Skipped())
			if err == nil {
				err = s.Commit(t.Context())
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if want := map[string]int{"no files": 4}[name]; skipped != want {
				t.Errorf("%s: %d are skipped", name, skipped)
			}
			blocks, sized := int64(0), 0
			_ = filepath.WalkDir(w.Path("ws"), func(at string, d fs.DirEntry, err error) error {
				info, _ := d.Info()
				if info.Mode()&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky) != 0 || !info.Mode().IsDir() && !info.Mode().IsRegular() && info.Mode().Type() != fs.ModeSymlink {
					t.Errorf("%s: %s is %v", name, at, info.Mode())
				}
				if n, err := unix.Llistxattr(at, nil); err == nil && n > 0 && !strings.HasSuffix(at, "/od") { // which is not new
					t.Errorf("%s: %s has attributes", name, at)
				}
				blocks += info.Sys().(*syscall.Stat_t).Blocks
				if info.Size() == large {
					sized++
					return os.Truncate(at, 0) // nobody may need to read it
				}
				return nil
			})
			if blocks > 10_000 || sized != map[string]int{"a large file without content": 2}[name] {
				t.Errorf("%s: %d blocks, %d large files", name, blocks, sized)
			}
			if c.want != nil {
				tree := w.Tree()
				for file, want := range c.want {
					if got, there := tree[file]; there != (want != "") || !strings.Contains(got, want) {
						t.Errorf("%s: %s is %q, want %q", name, file, got, want)
					}
				}
			}
			o.must(o.area.Close())
			after := w.Outside()
			maps.DeleteFunc(after, func(name, _ string) bool { return strings.HasPrefix(name, "stages") })
			if diff := cmp.Diff(outside, after); diff != "" {
				t.Errorf("%s: outside is changed:\n%s", name, diff)
			}
		}
	}
}

func TestTooManyChangesOfAnOverlay(t *testing.T) {
	w := newWorld(t)
	o := newOverlay(w)
	deep := strings.Repeat("d/", maxDepth+1)
	o.must(os.MkdirAll(filepath.Join(o.Upper, deep), 0o755))
	if _, err := o.collect(); !errors.Is(err, unix.ENAMETOOLONG) {
		t.Errorf("a deep tree: %v", err)
	}
	defer func(most int) { maxCollected = most }(maxCollected)
	maxCollected = 1000
	o = newOverlay(newWorld(t))
	o.whiteout("0")
	for i := range maxCollected {
		o.must(os.Link(o.at("0"), filepath.Join(o.Upper, strconv.Itoa(i+1))))
	}
	if _, err := o.collect(); !errors.Is(err, errTooMuch) {
		t.Errorf("many names: %v", err)
	}
}

// Who looks at a repository while a command runs has not changed it: git has refreshed its index.
func TestAnIndexThatIsRefreshedWhileACommandRuns(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile []string // arguments of git
		changed   bool
	}{
		"a look":             {[]string{"status"}, false},
		"another file":       {[]string{"add", "new.txt"}, true},
		"a flag of a file":   {[]string{"update-index", "--assume-unchanged", "f.txt"}, true},
		"a look that failed": {[]string{"status", "--no-such-option"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			git := func(args ...string) {
				cmd := exec.Command("git", append([]string{"-C", w.Path("ws")}, args...)...)
				cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
				_ = cmd.Run()
			}
			git("init", "-q")
			git("add", ".")
			w.File("ws/new.txt", "new")
			o := newOverlay(w)
			o.NoteIndex()
			o.must(os.Chtimes(w.Path("ws/f.txt"), time.Unix(1e9, 0), time.Unix(1e9, 0)))
			before, err := os.Stat(w.Path("ws/.git/index"))
			o.must(err)
			git(c.meanwhile...)
			if after, err := os.Stat(w.Path("ws/.git/index")); err != nil || os.SameFile(before, after) != (name == "a look that failed") {
				t.Fatal("git has not written its index, or has", err)
			}
			o.write(".git/index", "the index of the command")
			s, err := o.collect()
			if err == nil {
				_, err = s.Changes(t.Context())
			}
			if errors.Is(err, policy.ErrChanged) != c.changed {
				t.Fatal(err)
			}
			if err == nil {
				o.must(s.Commit(t.Context()))
			}
		})
	}
}
