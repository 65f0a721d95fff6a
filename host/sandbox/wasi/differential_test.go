//go:build unix

package wasi

import (
	"encoding/binary"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stockade-dev/stockade/host/policy"
)

var sequences = flag.Int("sequences", 120, "sequences of operations that the differential test tries")

// subject is something that operations are done on. What each returns is all
// that a guest sees, as text.
type subject interface {
	do(op operation) string
}

// operation is one call of a guest. The numbers choose among what there is.
type operation struct {
	what, slot byte
	a, b       string
	flag       Flag
	n          int
	text       string
}

func (o operation) String() string {
	return fmt.Sprintf("%s slot=%d a=%s b=%s flag=%#x n=%d text=%d bytes", operations[o.what], o.slot, o.a, o.b, o.flag, o.n, len(o.text))
}

var operations = []string{
	"open", "open", "open", "read", "pread", "write", "write", "pwrite", "seek", "truncate", "grow", "fstat", "close",
	"list", "stat", "lstat", "mkdir", "rmdir", "unlink", "rename", "rename", "rename", "readlink", "times", "append", "fdtimes",
}

var someNames = []string{"a", "b", "c", "d", "d/a", "d/b", "d/e", "d/e/a", "x", "x/b", "l/a", "l", "x/d/a", "big", "dl", "run", "up/a", "e/a", "out"}

const slots = 4

// decode makes operations of bytes, so that a fuzzer can make them too.
func decode(b []byte) (ops []operation) {
	for ; len(b) >= 8 && len(ops) < 200; b = b[8:] {
		op := operation{
			what: b[0] % byte(len(operations)),
			slot: b[1] % slots,
			a:    someNames[int(b[2])%len(someNames)],
			b:    someNames[int(b[3])%len(someNames)],
			flag: Flag(b[4]) % 256,
			n:    int(binary.LittleEndian.Uint16(b[5:])) % 13000,
		}
		if op.flag&accessMask > ReadWrite {
			op.flag &^= 1
		}
		op.text = strings.Repeat(string('a'+rune(b[7]%26)), op.n%50*(1+int(b[7])%7*40))
		ops = append(ops, op)
	}
	return ops
}

func randomOperations(seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	b := make([]byte, 8*(10+r.IntN(90)))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// real is an FS as a subject.
type real struct {
	g     *guestFS
	slots [slots]Handle
}

func (s *real) do(op operation) string {
	name, other := s.g.name("ws/"+op.a), s.g.name("ws/"+op.b)
	h := s.slots[op.slot]
	f, isFile := h.(*File)
	switch what := operations[op.what]; what {
	case "open":
		if h != nil {
			h.Close()
		}
		var errno Errno
		s.slots[op.slot], errno = s.g.Open(name, op.flag)
		return errno.String()
	case "close":
		if h != nil {
			h.Close()
		}
		s.slots[op.slot] = nil
		return ""
	case "list":
		d, isDir := h.(*Dir)
		if !isDir {
			return "no dir"
		}
		return listing(d)
	case "fstat":
		if h == nil {
			return "none"
		}
		return shownStat(h.Stat())
	case "fdtimes":
		if h == nil {
			return "none"
		}
		return h.SetTimes(5e9, int64(op.n+1)*1e9).String()
	case "stat":
		return shownStat(s.g.Stat(name))
	case "lstat":
		return shownStat(s.g.Lstat(name))
	case "mkdir":
		return s.g.Mkdir(name).String()
	case "rmdir":
		return s.g.Rmdir(name).String()
	case "unlink":
		return s.g.Unlink(name).String()
	case "rename":
		return s.g.Rename(name, other).String()
	case "readlink":
		target, errno := s.g.Readlink(name)
		return target + errno.String()
	case "times":
		return s.g.SetTimes(name, op.n%2 == 0, 5e9, int64(op.n+1)*1e9).String()
	default:
		if !isFile {
			return "no file"
		}
		buf := make([]byte, op.n)
		switch what {
		case "read":
			n, errno := f.Read(buf)
			return string(buf[:n]) + errno.String()
		case "pread":
			n, errno := f.Pread(buf, int64(op.n/2))
			return string(buf[:n]) + errno.String()
		case "write":
			n, errno := f.Write([]byte(op.text))
			return fmt.Sprint(n, f.at, errno)
		case "pwrite":
			n, errno := f.Pwrite([]byte(op.text), int64(op.n))
			return fmt.Sprint(n, errno)
		case "seek":
			at, errno := f.SeekTo(int64(op.n-200), Whence(op.n%3))
			return fmt.Sprint(at, errno)
		case "truncate":
			return f.Truncate(int64(op.n)).String()
		case "grow":
			return f.Grow(int64(op.n)).String()
		case "append":
			return f.SetAppend(op.n%2 == 0).String()
		}
	}
	panic(operations[op.what])
}

func listing(d *Dir) string {
	var out []string
	for cookie := uint64(0); ; {
		e, more, errno := d.Entry(cookie)
		if errno != 0 {
			return fmt.Sprint(out, errno)
		}
		if !more {
			slices.Sort(out)
			return fmt.Sprint(out)
		}
		if e.Name != "." && e.Name != ".." && e.Name != "" {
			out = append(out, fmt.Sprint(e.Name, e.Type))
		}
		cookie = e.Next
	}
}

func shownStat(st Stat, errno Errno) string {
	if errno != 0 {
		return errno.String()
	}
	return showStat(st.Type, int(st.Size), st.Mtim)
}

func showStat(t FileType, size int, mtim int64) string {
	if t != RegularFile {
		return fmt.Sprint(t)
	}
	if mtim > 1e16 {
		mtim = 0 // the host's, not the guest's
	}
	return fmt.Sprint(t, size, mtim)
}

// model is a subject too.
type modelSubject struct {
	m     *model
	slots [slots]*modelFile
}

func (s *modelSubject) do(op operation) string {
	f := s.slots[op.slot]
	isFile := f != nil && f.n.kind != Directory
	switch what := operations[op.what]; what {
	case "open":
		var errno Errno
		s.slots[op.slot], errno = s.m.open(op.a, op.flag)
		return errno.String()
	case "close":
		s.slots[op.slot] = nil
		return ""
	case "list":
		if f == nil || isFile {
			return "no dir"
		}
		var out []string
		if f.n.gone {
			return fmt.Sprint(out, ENOENT)
		}
		for name, n := range f.n.entries {
			out = append(out, fmt.Sprint(name, n.kind))
		}
		slices.Sort(out)
		return fmt.Sprint(out)
	case "fstat":
		if f == nil {
			return "none"
		}
		return showStat(f.n.kind, len(f.n.content), f.n.mtim)
	case "fdtimes":
		if f == nil {
			return "none"
		}
		f.n.mtim = int64(op.n+1) * 1e9
		return Errno(0).String()
	case "stat", "lstat":
		_, _, n, _, errno := s.m.find(op.a, what == "stat")
		if errno == 0 && n == nil {
			errno = ENOENT
		}
		if errno != 0 {
			return errno.String()
		}
		return showStat(n.kind, len(n.content), n.mtim)
	case "mkdir":
		return s.m.mkdir(op.a).String()
	case "rmdir":
		return s.m.remove(op.a, true).String()
	case "unlink":
		return s.m.remove(op.a, false).String()
	case "rename":
		return s.m.rename(op.a, op.b).String()
	case "readlink":
		_, _, n, _, errno := s.m.find(op.a, false)
		switch {
		case errno != 0:
			return errno.String()
		case n == nil:
			return ENOENT.String()
		case n.kind != SymbolicLink:
			return EINVAL.String()
		case n.target[0] == '/' || climbs(filepath.Dir(op.a)+"/"+n.target):
			return EPERM.String()
		}
		return n.target + Errno(0).String()
	case "times":
		_, _, n, _, errno := s.m.find(op.a, op.n%2 == 0)
		if errno == 0 && n == nil {
			errno = ENOENT
		}
		if errno == 0 {
			n.mtim = int64(op.n+1) * 1e9
		}
		return errno.String()
	default:
		if !isFile {
			return "no file"
		}
		return s.file(what, op, f)
	}
}

func (s *modelSubject) file(what string, op operation, f *modelFile) string {
	switch what {
	case "read":
		p, errno := f.pread(op.n, f.at)
		f.at += int64(len(p))
		return p + errno.String()
	case "pread":
		p, errno := f.pread(op.n, int64(op.n/2))
		return p + errno.String()
	case "write":
		end, errno := f.pwrite(op.text, f.at)
		if errno != 0 || op.text == "" {
			return fmt.Sprint(0, f.at, errno)
		}
		f.at = end
		return fmt.Sprint(len(op.text), f.at, errno)
	case "pwrite":
		_, errno := f.pwrite(op.text, int64(op.n))
		if errno != 0 {
			return fmt.Sprint(0, errno)
		}
		return fmt.Sprint(len(op.text), errno)
	case "seek":
		base := []int64{0, f.at, int64(len(f.n.content))}[op.n%3] + int64(op.n-200)
		if base < 0 {
			return fmt.Sprint(0, EINVAL)
		}
		f.at = base
		return fmt.Sprint(base, Errno(0))
	case "truncate", "grow":
		if !f.writes {
			return EBADF.String()
		}
		if what == "truncate" || op.n > len(f.n.content) {
			f.n.resize(op.n)
		}
		return Errno(0).String()
	case "append":
		f.append = op.n%2 == 0
		return Errno(0).String()
	}
	panic(what)
}

// newDifferential makes what sequences begin with, on the host and as a model.
func newDifferential(t *testing.T) (*world, *model) {
	w := newWorld(t)
	if err := os.RemoveAll(w.path("ws")); err != nil {
		t.Fatal(err)
	}
	w.dir("ws/d/e")
	m := &model{root: newModelDir(nil)}
	m.put("d", newModelDir(nil))
	m.put("d/e", newModelDir(nil))
	for name, content := range map[string]string{
		"a": "content of a", "d/b": "content of b", "d/e/a": "", "big": strings.Repeat("0123456789", 2000), "run": "#!/bin/sh\n",
	} {
		w.file("ws/"+name, content)
		mode := fs.FileMode(0o644)
		if name == "run" {
			mode = 0o755
		}
		if err := os.Chmod(w.path("ws/"+name), mode); err != nil {
			t.Fatal(err)
		}
		m.put(name, &modelNode{kind: RegularFile, content: []byte(content), mode: modeText(mode)})
	}
	for name, target := range map[string]string{"l": "d/e", "dl": "nothing", "d/up": "../d/b", "up": "d", "out": "../out/secret", "x": "d/../d"} {
		w.link("ws/"+name, target)
		m.put(name, &modelNode{kind: SymbolicLink, target: target})
	}
	return w, m
}

// modeText is empty for the mode of new files.
func modeText(mode fs.FileMode) string {
	mask := syscall.Umask(0o022)
	syscall.Umask(mask)
	if mode.Perm() == newFileMode&^fs.FileMode(mask) {
		return ""
	}
	return mode.Perm().String()
}

// tree is the workspace as [model.tree] has it.
func (w *world) tree() map[string]string {
	w.t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(w.path("ws"), func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(w.path("ws"), p)
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			out[rel] = "dir"
		case d.Type() == fs.ModeSymlink:
			target, err := os.Readlink(p)
			out[rel] = "-> " + target
			return err
		default:
			content, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			fi, err := d.Info()
			if err != nil {
				return err
			}
			out[rel] = "file " + modeText(fi.Mode()) + " " + string(content)
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// openStaged is an FS on a stage of its own.
func (w *world) openStaged(opts *StageOptions, masked []string, mounts ...policy.Mount) (*guestFS, *Stage) {
	w.t.Helper()
	s, err := NewStage(opts)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { s.Drop() })
	for i := range masked {
		masked[i] = w.path(masked[i])
	}
	f, err := NewWith(mounts, masked, &Options{Stage: s})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { f.Close() })
	return &guestFS{f, w}, s
}

// runDifferential does the same on the model, on an FS that writes through and
// on one that is staged.
func runDifferential(t *testing.T, program []byte, commit bool) {
	w, m := newDifferential(t)
	through := newThrough(t)
	staged, s := w.openStaged(&StageOptions{Dir: w.path("out"), MemoryBytes: 16 << 10}, nil, w.rw("ws"))
	a, b, c := &modelSubject{m: m}, &real{g: through}, &real{g: staged}
	before := w.state()
	var log []string
	for i, op := range decode(program) {
		want, got, mine := a.do(op), b.do(op), c.do(op)
		log = append(log, fmt.Sprintf("%d: %v = %.60q", i, op, mine))
		if want != got || got != mine {
			t.Fatalf("model   %.300q\nthrough %.300q\nstaged  %.300q\n%s", want, got, mine, strings.Join(log, "\n"))
		}
	}
	w.unchangedWorkspace(before)
	if diff := cmp.Diff(m.tree(), through.w.tree()); diff != "" {
		t.Fatalf("written through (-model +host):\n%s\n%s", diff, strings.Join(log, "\n"))
	}
	changes, err := s.Changes()
	if err != nil {
		t.Fatal(err)
	}
	staged.Close()
	if !commit {
		if err := s.Drop(); err != nil {
			t.Fatal(err)
		}
		w.unchangedWorkspace(before)
		return
	}
	if err := s.Commit(t.Context()); err != nil {
		t.Fatalf("%v\n%v\n%s", err, changes, strings.Join(log, "\n"))
	}
	if diff := cmp.Diff(m.tree(), w.tree()); diff != "" {
		t.Fatalf("staged (-model +host):\n%s\n%v\n%s", diff, changes, strings.Join(log, "\n"))
	}
}

// runMasked is runDifferential for a mount with things to hide, of which the
// model knows nothing.
func runMasked(t *testing.T, program []byte) {
	w, _ := newDifferential(t)
	other, _ := newDifferential(t)
	masked := func() []string { return []string{"ws/d/e", "ws/c/later"} }
	staged, s := w.openStaged(nil, masked(), w.rw("ws"))
	b, c := &real{g: other.openMasked(masked(), other.rw("ws"))}, &real{g: staged}
	before := w.state()
	var log []string
	for i, op := range decode(program) {
		want, got := b.do(op), c.do(op)
		log = append(log, fmt.Sprintf("%d: %v = %.60q", i, op, got))
		if want != got {
			t.Fatalf("through %.300q\nstaged  %.300q\n%s", want, got, strings.Join(log, "\n"))
		}
	}
	w.unchangedWorkspace(before)
	if err := s.Commit(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, strings.Join(log, "\n"))
	}
	if diff := cmp.Diff(other.tree(), w.tree()); diff != "" {
		t.Fatalf("(-through +staged):\n%s\n%s", diff, strings.Join(log, "\n"))
	}
}

func newThrough(t *testing.T) *guestFS {
	w, _ := newDifferential(t)
	return w.open(w.rw("ws"))
}

func (w *world) unchangedWorkspace(before map[string]string) {
	w.t.Helper()
	after := w.state()
	for _, state := range []map[string]string{before, after} {
		for p := range state {
			if p == "out" || strings.Contains(p, ".stockade-stage") {
				delete(state, p) // where the stage is
			}
		}
	}
	if diff := cmp.Diff(before, after); diff != "" {
		w.t.Fatalf("the host was changed (-before +after):\n%s", diff)
	}
}

func TestAStagedGuestSeesWhatAnyOtherSees(t *testing.T) {
	for seed := range uint64(*sequences) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { runDifferential(t, randomOperations(seed), seed%5 != 0) })
		if seed%3 == 0 {
			t.Run(fmt.Sprint(seed, " masked"), func(t *testing.T) { runMasked(t, randomOperations(seed)) })
		}
		if t.Failed() {
			return
		}
	}
}

func FuzzStage(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(randomOperations(seed), seed%2 == 0)
	}
	f.Fuzz(func(t *testing.T, program []byte, masked bool) {
		if masked {
			runMasked(t, program)
		} else {
			runDifferential(t, program, true)
		}
	})
}
