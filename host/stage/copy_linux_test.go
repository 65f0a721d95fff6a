package stage

import (
	"fmt"
	"os"
	"syscall"
	"testing"
)

// blocks returns the bytes that a file takes on the disk.
func (w *world) blocks(p string) int64 {
	w.T.Helper()
	fi, err := os.Stat(w.Path(p))
	if err != nil {
		w.T.Fatal(err)
	}
	return fi.Sys().(*syscall.Stat_t).Blocks * 512
}

// A byte that is written to a sparse file does not fill its holes.
func TestACommitKeepsHoles(t *testing.T) {
	const size, most = 256 << 20, 1 << 20
	w := newWorld(t)
	w.File("ws/large", "begins")
	if err := os.Truncate(w.Path("ws/large"), size); err != nil {
		t.Fatal(err)
	}
	if w.blocks("ws/large") > most {
		t.Log("this file system has no holes")
		return
	}
	g, s := w.open(nil)
	f, err := g.file("ws/large", os.O_RDWR)
	wantErr(t, "open", err, nil)
	_, err = f.WriteAt([]byte("x"), 100<<20)
	wantErr(t, "write", err, nil)
	f.close()
	f, err = g.file("ws/new", os.O_WRONLY|os.O_CREATE)
	wantErr(t, "open", err, nil)
	_, err = f.WriteAt([]byte("y"), 900<<20)
	wantErr(t, "write", err, nil)
	f.close()
	if err := s.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	for p, want := range map[string]int64{"ws/large": size, "ws/new": 900<<20 + 1} {
		if fi, err := os.Stat(w.Path(p)); err != nil || fi.Size() != want {
			t.Errorf("%s has %d bytes, %v", p, fi.Size(), err)
		}
		if n := w.blocks(p); n > most {
			t.Errorf("%s takes %d bytes", p, n)
		}
	}
	file, err := os.Open(w.Path("ws/large"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	buf := make([]byte, 6)
	if _, err := file.ReadAt(buf, 0); err != nil || string(buf) != "begins" {
		t.Errorf("%q, %v", buf, err)
	}
	if _, err := file.ReadAt(buf, 100<<20); err != nil || string(buf) != "x\x00\x00\x00\x00\x00" {
		t.Errorf("%q, %v", buf, err)
	}
}

// A commit keeps the directories open that it touches, and not those that it makes.
func TestACommitHasFewFilesOpen(t *testing.T) {
	w := newWorld(t)
	g, s := w.open(nil)
	open := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	for i := range 200 {
		g.mkdir(fmt.Sprint("ws/", i))
		g.write(fmt.Sprint("ws/", i, "/x"), "x")
	}
	before, most := open(), 0
	s.stepHook = func(string, string) error { most = max(most, open()-before); return nil }
	if err := s.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if most > 20 {
		t.Errorf("it has %d open", most)
	}
}
