//go:build unix

package preview1_test

import (
	"slices"
	"testing"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/sandbox/wasi"
	"github.com/stockade-dev/stockade/host/sandbox/wasi/preview1"
	"github.com/stockade-dev/stockade/host/stage"
)

// A guest of WASI writes on a stage like anywhere else.
func TestStagedGuest(t *testing.T) {
	h := newHost(t)
	set, err := stage.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Drop()
	fs, err := wasi.New([]policy.Mount{h.rw("ws")}, nil, &wasi.Options{Stage: set})
	if err != nil {
		t.Fatal(err)
	}
	g := newGuest(t, &preview1.Options{FS: fs})
	before := h.State()
	dir := g.directory(h, "ws")
	fd := g.opened(dir, "f.txt", openOptions{base: rFDRead | rFDWrite | rFDSeek | rFDFilestatGet})
	if n, errno := g.write(fd, "staged"); n != 6 || errno != 0 {
		t.Errorf("write: %d, %v", n, errno)
	}
	if st := g.stat(fd); st.size != 6 {
		t.Errorf("size %d", st.size)
	}
	g.must("fd_close", g.opened(dir, "t", openOptions{oflags: oCreat, base: rFDWrite}))
	g.must("path_rename", dir, "t", dir, "d/t")
	names := []string{}
	for cookie := uint64(0); ; {
		part, full, errno := g.readdir(dir, 100, cookie)
		if errno != 0 {
			t.Fatal(errno)
		}
		for _, e := range part {
			names = append(names, e.name)
		}
		if !full {
			break
		}
		cookie = part[len(part)-1].next
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{".", "..", "d", "f.txt"}) {
		t.Errorf("names %v", names)
	}
	h.CheckUnchanged(before)
	if err := fs.Close(); err != nil {
		t.Error(err)
	}
	if err := set.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := h.Content("ws/f.txt") + h.Content("ws/d/t"); got != "staged" {
		t.Errorf("the host has %q", got)
	}
}
