//go:build unix

package preview1_test

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/stockade-dev/stockade/host/sandbox/wasi"
)

func namesOf(list []dirent) []string {
	var names []string
	for _, e := range list {
		names = append(names, e.name)
	}
	return names
}

func TestReaddir(t *testing.T) {
	h := newHost(t)
	plant(h)
	g := newGuest(t, h.options([]string{"ws/masked", "ws/later"}, h.rw("ws"), h.ro("ro")))
	ws := g.directory(h, "ws")
	list := g.list(ws, 4096)
	if list[0].name != "." || list[1].name != ".." || list[0].ino != g.stat(ws).ino {
		t.Errorf("first %+v", list[:2])
	}
	got := map[string]int{}
	for _, e := range list[2:] {
		got[e.name] = e.typ
		if st, errno := g.pathStat(ws, 0, e.name); errno != 0 || st.ino != e.ino || st.typ != e.typ {
			t.Errorf("%+v listed, %+v by stat, %v", e, st, errno)
		}
	}
	want := map[string]int{
		"d": tDirectory, "empty": tDirectory, "f.txt": tRegular, "hard": tRegular, "fifo": tUnknown,
		"l": tSymlink, "dl": tSymlink, "loop": tSymlink, "dangling": tSymlink, "abs": tSymlink, "rel": tSymlink, "up": tSymlink, "ml": tSymlink,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("listed %v, want %v", got, want)
	}
	// The directories above the mounts list the way to them, and nothing else.
	dir := preopen
	for p := h.name("ro"); ; {
		names := namesOf(g.list(dir, 4096))[2:]
		first, rest, more := cutPath(p)
		if !more {
			slices.Sort(names)
			if !slices.Equal(names, []string{"ro", "ws"}) {
				t.Errorf("listed %v", names)
			}
			break
		}
		if !slices.Equal(names, []string{first}) {
			t.Errorf("listed %v, want %s", names, first)
		}
		dir, p = g.opened(dir, first, openOptions{oflags: oDirectory, base: rReading, inheriting: rAll}), rest
	}
	empty := g.directory(h, "ws/empty")
	if names := namesOf(g.list(empty, 4096)); !slices.Equal(names, []string{".", ".."}) {
		t.Errorf("an empty directory lists %v", names)
	}
	fd := g.opened(ws, "f.txt", openOptions{base: rAll})
	g.want(wasi.ENOTDIR, "fd_readdir", fd, 8192, 100, 0, resultAt)
}

func cutPath(p string) (first, rest string, more bool) {
	for i := range p {
		if p[i] == '/' {
			return p[:i], p[i+1:], true
		}
	}
	return p, "", false
}

// A large directory, with buffers of every kind.
func TestReaddirOfMany(t *testing.T) {
	h := newHost(t)
	const count = 2500
	h.Dir("many")
	for i := range count {
		if err := os.WriteFile(h.Path(fmt.Sprintf("many/entry-%05d", i)), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	g := h.mounted(h.rw("many"))
	dir := g.directory(h, "many")
	var first []dirent
	for _, size := range []int{36, 40, 100, 4096, 65536} {
		list := g.list(dir, size)
		seen := map[string]bool{}
		for _, e := range list {
			seen[e.name] = true
		}
		if len(list) != count+2 || len(seen) != count+2 {
			t.Fatalf("a buffer of %d bytes: %d entries, %d names", size, len(list), len(seen))
		}
		if first != nil && !slices.Equal(first, list) {
			t.Errorf("a buffer of %d bytes: another list", size)
		}
		first = list
	}
	// From anywhere.
	for i := count; i >= 0; i -= 379 {
		part, _, errno := g.readdir(dir, 100, first[i].next)
		if errno != 0 || len(part) == 0 || part[0] != first[i+1] {
			t.Fatalf("from entry %d: %v, %v", i, part, errno)
		}
	}
	if part, full, errno := g.readdir(dir, 100, first[count+1].next); len(part) != 0 || full || errno != 0 {
		t.Errorf("at the end: %v, %v, %v", part, full, errno)
	}
	// A tiny buffer is filled with a part of one entry, again and again.
	for _, size := range []int{1, 23, 24, 35} {
		for range 100 {
			if _, full, errno := g.readdir(dir, size, first[count/2].next); !full || errno != 0 {
				t.Fatalf("a buffer of %d bytes: %v, %v", size, full, errno)
			}
		}
	}
	if _, full, errno := g.readdir(dir, 0, 0); !full || errno != 0 {
		t.Errorf("no buffer: %v, %v", full, errno)
	}
	// Cookies that were never given.
	for _, cookie := range []uint64{1, 3, 1 << 20, 1 << 40, 1<<63 - 1, 1 << 63, 1<<63 + 3, 1<<64 - 2} {
		part, _, _ := g.readdir(dir, 4096, cookie)
		for _, e := range part {
			if e.name != "." && e.name != ".." && !slices.ContainsFunc(first, func(f dirent) bool { return f.name == e.name }) {
				t.Errorf("cookie %#x gave %v", cookie, e)
			}
		}
	}
}

// Reading a directory takes the same memory however large it is.
func TestReaddirAllocatesLittle(t *testing.T) {
	h := newHost(t)
	h.Dir("many")
	for i := range 500 {
		h.File(fmt.Sprintf("many/%d", i), "")
	}
	g := h.mounted(h.rw("many"))
	dir := g.directory(h, "many")
	part, _, _ := g.readdir(dir, 4096, 0)
	cookie := part[len(part)-1].next
	perCall := testing.AllocsPerRun(100, func() {
		if _, full, errno := g.readdir(dir, 1, cookie); !full || errno != 0 {
			t.Error(full, errno)
		}
	})
	if perCall > 50 {
		t.Errorf("%v allocations for a buffer of one byte", perCall)
	}
}

// A guest that removes what it lists sees everything once.
func TestReaddirWhileRemoving(t *testing.T) {
	h := newHost(t)
	h.Dir("many")
	for i := range 500 {
		h.File(fmt.Sprintf("many/%d", i), "")
	}
	g := h.mounted(h.rw("many"))
	dir := g.directory(h, "many")
	removed := 0
	for cookie := uint64(0); ; {
		part, full, errno := g.readdir(dir, 300, cookie)
		if errno != 0 {
			t.Fatal(errno)
		}
		for _, e := range part {
			if e.name != "." && e.name != ".." {
				g.must("path_unlink_file", dir, e.name)
				removed++
			}
		}
		if !full {
			break
		}
		cookie = part[len(part)-1].next
	}
	if left, err := os.ReadDir(h.Path("many")); removed != 500 || len(left) != 0 || err != nil {
		t.Errorf("%d removed, %d left, %v", removed, len(left), err)
	}
}

// Names that are not UTF-8 are left out, however many there are.
func TestReaddirLeavesOutWhatIsNotUTF8(t *testing.T) {
	h := newHost(t)
	h.Dir("many")
	for i := range 300 {
		if err := os.WriteFile(h.Path(fmt.Sprintf("many/\xff%d", i)), nil, 0o666); err != nil {
			return // no such names here
		}
	}
	h.File("many/a", "")
	h.File("many/b", "")
	g := h.mounted(h.ro("many"))
	dir := g.directory(h, "many")
	for _, size := range []int{26, 30, 4096} {
		names := namesOf(g.list(dir, size))
		slices.Sort(names)
		if !slices.Equal(names, []string{".", "..", "a", "b"}) {
			t.Errorf("a buffer of %d bytes: %v", size, names)
		}
	}
}

func TestReaddirEndsWithTheGuest(t *testing.T) {
	h := newHost(t)
	h.Dir("many")
	for i := range 500 {
		h.File(fmt.Sprintf("many/%d", i), "")
	}
	ends := &endAfter{after: 3}
	opts := h.options(nil, h.ro("many"))
	opts.MustEnd = ends.check
	g := newGuest(t, opts)
	dir := g.directory(h, "many")
	if _, err := g.try("fd_readdir", dir, 8192, 100_000, 0, resultAt); err == nil {
		t.Error("it went on")
	} else {
		ends.want(t, err)
	}
}
