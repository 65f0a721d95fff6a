//go:build unix

package preview1_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/sandbox/wasi"
	"github.com/stockade-dev/stockade/host/sandbox/wasi/preview1"
)

func TestAllFunctionsAreThere(t *testing.T) {
	functions := preview1.Functions()
	if len(functions) != 46 {
		t.Errorf("%d functions", len(functions))
	}
	for name, sig := range functions {
		if void := len(sig.Results) == 0; void != (name == "proc_exit") {
			t.Errorf("%s has %d results", name, len(sig.Results))
		}
	}
}

// Pointers that are not in the memory are EFAULT before anything is done.
func TestFaults(t *testing.T) {
	h := newHost(t)
	h.Link("ws/l", "f.txt")
	h.Dir("ws/empty")
	g := h.mounted(h.rw("ws"))
	ws := g.directory(h, "ws")
	fd := g.opened(ws, "f.txt", openOptions{base: rAll})
	before := h.State()
	at := func(size int) []int { return []int{memoryBytes - size + 1, memoryBytes, -1, 1 << 31} }
	for name, tries := range map[string]func(ptr int) wasi.Errno{
		"args_sizes_get 4 count":   func(p int) wasi.Errno { return g.call("args_sizes_get", p, resultAt) },
		"environ_sizes_get 4 size": func(p int) wasi.Errno { return g.call("environ_sizes_get", resultAt, p) },
		"clock_res_get 8":          func(p int) wasi.Errno { return g.call("clock_res_get", 0, p) },
		"clock_time_get 8":         func(p int) wasi.Errno { return g.call("clock_time_get", 0, 0, p) },
		"fd_fdstat_get 24":         func(p int) wasi.Errno { return g.call("fd_fdstat_get", fd, p) },
		"fd_filestat_get 64":       func(p int) wasi.Errno { return g.call("fd_filestat_get", fd, p) },
		"fd_prestat_get 8":         func(p int) wasi.Errno { return g.call("fd_prestat_get", preopen, p) },
		"fd_prestat_dir_name 1":    func(p int) wasi.Errno { return g.call("fd_prestat_dir_name", preopen, p, 1) },
		"fd_read 8 iovecs":         func(p int) wasi.Errno { return g.call("fd_read", fd, p, 1, resultAt) },
		"fd_write 8 iovecs":        func(p int) wasi.Errno { return g.call("fd_write", fd, p, 1, resultAt) },
		"fd_pread 8 iovecs":        func(p int) wasi.Errno { return g.call("fd_pread", fd, p, 1, 0, resultAt) },
		"fd_pwrite 8 iovecs":       func(p int) wasi.Errno { return g.call("fd_pwrite", fd, p, 1, 0, resultAt) },
		"fd_read 1 buffer":         func(p int) wasi.Errno { at, n := g.iovecs([2]int{p, 1}); return g.call("fd_read", fd, at, n, resultAt) },
		"fd_write 1 buffer": func(p int) wasi.Errno {
			at, n := g.iovecs([2]int{p, 1})
			return g.call("fd_write", fd, at, n, resultAt)
		},
		"fd_pwrite 1 second buffer": func(p int) wasi.Errno {
			at, n := g.iovecs([2]int{0, 1}, [2]int{p, 1})
			return g.call("fd_pwrite", fd, at, n, 0, resultAt)
		},
		"fd_write 1 stdout": func(p int) wasi.Errno {
			at, n := g.iovecs([2]int{0, 1}, [2]int{p, 1})
			return g.call("fd_write", 1, at, n, resultAt)
		},
		"fd_read 4 result":             func(p int) wasi.Errno { at, n := g.iovecs([2]int{0, 1}); return g.call("fd_read", fd, at, n, p) },
		"fd_write 4 result":            func(p int) wasi.Errno { at, n := g.iovecs([2]int{0, 1}); return g.call("fd_write", fd, at, n, p) },
		"fd_pread 4 result":            func(p int) wasi.Errno { at, n := g.iovecs([2]int{0, 1}); return g.call("fd_pread", fd, at, n, 0, p) },
		"fd_pwrite 4 result":           func(p int) wasi.Errno { at, n := g.iovecs([2]int{0, 1}); return g.call("fd_pwrite", fd, at, n, 0, p) },
		"fd_readdir 100":               func(p int) wasi.Errno { return g.call("fd_readdir", ws, p, 100, 0, resultAt) },
		"fd_readdir 4 result":          func(p int) wasi.Errno { return g.call("fd_readdir", ws, 8192, 100, 0, p) },
		"fd_seek 8":                    func(p int) wasi.Errno { return g.call("fd_seek", fd, 5, 0, p) },
		"fd_tell 8":                    func(p int) wasi.Errno { return g.call("fd_tell", fd, p) },
		"path_create_directory 3":      func(p int) wasi.Errno { return g.call("path_create_directory", ws, p, 3) },
		"path_filestat_get 5":          func(p int) wasi.Errno { return g.call("path_filestat_get", ws, 0, p, 5, resultAt) },
		"path_filestat_get 64 result":  func(p int) wasi.Errno { return g.call("path_filestat_get", ws, 0, "f.txt", p) },
		"path_filestat_set_times 5":    func(p int) wasi.Errno { return g.call("path_filestat_set_times", ws, 0, p, 5, 0, 0, sMtim) },
		"path_link 5":                  func(p int) wasi.Errno { return g.call("path_link", ws, 0, p, 5, ws, "new") },
		"path_link 5 to":               func(p int) wasi.Errno { return g.call("path_link", ws, 0, "f.txt", ws, p, 5) },
		"path_open 5":                  func(p int) wasi.Errno { return g.call("path_open", ws, 0, p, 5, oCreat, rAll, 0, 0, resultAt) },
		"path_open 4 result":           func(p int) wasi.Errno { return g.call("path_open", ws, 0, "new", oCreat, rAll, 0, 0, p) },
		"path_open 4 result, truncate": func(p int) wasi.Errno { return g.call("path_open", ws, 0, "f.txt", oTrunc, rAll, 0, 0, p) },
		"path_readlink 1":              func(p int) wasi.Errno { return g.call("path_readlink", ws, p, 1, 8192, 10, resultAt) },
		"path_readlink 10 buffer":      func(p int) wasi.Errno { return g.call("path_readlink", ws, "l", p, 10, resultAt) },
		"path_readlink 4 result":       func(p int) wasi.Errno { return g.call("path_readlink", ws, "l", 8192, 10, p) },
		"path_remove_directory 5":      func(p int) wasi.Errno { return g.call("path_remove_directory", ws, p, 5) },
		"path_rename 5":                func(p int) wasi.Errno { return g.call("path_rename", ws, p, 5, ws, "new") },
		"path_rename 5 to":             func(p int) wasi.Errno { return g.call("path_rename", ws, "f.txt", ws, p, 5) },
		"path_symlink 5":               func(p int) wasi.Errno { return g.call("path_symlink", p, 5, ws, "new") },
		"path_symlink 5 name":          func(p int) wasi.Errno { return g.call("path_symlink", "x", ws, p, 5) },
		"path_unlink_file 5":           func(p int) wasi.Errno { return g.call("path_unlink_file", ws, p, 5) },
		"random_get 5":                 func(p int) wasi.Errno { return g.call("random_get", p, 5) },
	} {
		var size int
		if _, err := fmt.Sscanf(strings.Fields(name)[1], "%d", &size); err != nil {
			t.Fatal(err)
		}
		for _, ptr := range at(size) {
			wantErrno(t, fmt.Sprintf("%s at %#x", name, ptr), tries(ptr), wasi.EFAULT)
			g.at = scratchAt
		}
	}
	h.CheckUnchanged(before)
	// Nothing was opened, and nothing moved.
	if next := g.opened(ws, "f.txt", openOptions{}); next != fd+1 {
		t.Errorf("descriptor %d, want %d", next, fd+1)
	}
	if s, _ := g.read(fd, 100); s != "inside" {
		t.Errorf("read %q", s)
	}
}

// Lengths whose sum or product does not fit into 32 bits.
func TestLengthsThatOverflow(t *testing.T) {
	h := newHost(t)
	g := h.mounted(h.rw("ws"))
	ws := g.directory(h, "ws")
	fd := g.opened(ws, "f.txt", openOptions{base: rAll})
	before := h.State()
	for _, n := range []int{1025, 1 << 16, 1 << 28, 1<<29 + 1, 1 << 31, -1} {
		for _, name := range []string{"fd_read", "fd_write"} {
			g.want(wasi.EINVAL, name, fd, 0, n, resultAt)
		}
		g.want(wasi.EINVAL, "fd_pread", fd, 0, n, 0, resultAt)
		g.want(wasi.EINVAL, "fd_pwrite", fd, 0, n, 0, resultAt)
		g.want(wasi.ENAMETOOLONG, "path_open", ws, 0, 0, 4096+n&0x7fffffff+1, 0, 0, 0, 0, resultAt)
	}
	for _, n := range []int{memoryBytes + 1, 1 << 31, -1} {
		g.want(wasi.EFAULT, "random_get", 0, n)
		g.want(wasi.EFAULT, "fd_readdir", ws, 0, n, 0, resultAt)
		g.want(wasi.EFAULT, "path_readlink", ws, "f.txt", 0, n, resultAt)
		g.want(wasi.EFAULT, "fd_prestat_dir_name", preopen, 0, n)
		at, count := g.iovecs([2]int{4, n})
		g.want(wasi.EFAULT, "fd_read", fd, at, count, resultAt)
	}
	h.CheckUnchanged(before)
	// The same buffer a thousand times is more than the memory, and works.
	var buffers [][2]int
	for range 1024 {
		buffers = append(buffers, [2]int{0, 2048})
	}
	at, n := g.iovecs(buffers...)
	g.must("fd_write", fd, at, n, resultAt)
	if got := g.u32(resultAt); got != 1024*2048 {
		t.Errorf("%d bytes were written", got)
	}
}

// The price of a call grows with its work.
func TestCharges(t *testing.T) {
	h := newHost(t)
	h.File("ws/large", strings.Repeat("x", 200_000))
	h.Dir("ws/many")
	for i := range 300 {
		h.File(fmt.Sprintf("ws/many/%d", i), "")
	}
	var units uint64
	charge := func(n uint64) { units += n }
	g := newGuest(t, &preview1.Options{FS: h.fs(nil, wasi.Limits{Charge: charge}, h.rw("ws")), Charge: charge})
	ws := g.directory(h, "ws")
	fd := g.opened(ws, "large", openOptions{base: rAll})
	many := g.directory(h, "ws/many")
	cost := func(do func()) uint64 {
		units = 0
		do()
		return units
	}
	small, large := [2]int{8192, 8}, [2]int{8192, 200_000}
	transfer := func(name string, fd int, b ...[2]int) func() {
		return func() {
			at, n := g.iovecs(b...)
			g.must(name, fd, at, n, resultAt)
		}
	}
	for what, tc := range map[string]struct {
		little, much func()
		least        uint64 // the smallest allowed difference
	}{
		"read":       {transfer("fd_read", fd, small), func() { g.seek(fd, 0, 0); transfer("fd_read", fd, large)() }, 20_000},
		"write":      {transfer("fd_write", fd, small), transfer("fd_write", fd, large), 20_000},
		"stdout":     {transfer("fd_write", 1, small), transfer("fd_write", 1, large), 20_000},
		"iovecs":     {transfer("fd_write", 1, small), transfer("fd_write", 1, slices.Repeat([][2]int{{0, 1}}, 1000)...), 150_000},
		"iovecs in":  {transfer("fd_read", fd, small), func() { g.seek(fd, 0, 0); transfer("fd_read", fd, slices.Repeat([][2]int{{0, 1}}, 1000)...)() }, 650_000},
		"no bytes":   {transfer("fd_write", 1, small), transfer("fd_write", 1, slices.Repeat([][2]int{{0, 0}}, 1000)...), 3000},
		"random":     {func() { g.must("random_get", 8192, 8) }, func() { g.must("random_get", 8192, 200_000) }, 190_000},
		"readdir":    {func() { g.readdir(many, 40, 0) }, func() { g.readdir(many, 60_000, 0) }, 30_000},
		"poll":       {func() { g.poll(fdSub(1, evWrite, 1)) }, func() { g.poll(slices.Repeat([][]byte{fdSub(1, evWrite, 1)}, 1000)...) }, 40_000},
		"nothing":    {func() {}, func() { g.must("sched_yield") }, 50},
		"the clock":  {func() {}, func() { g.must("clock_time_get", 0, 0, resultAt) }, 50},
		"a bad call": {func() {}, func() { g.call("fd_close", 99) }, 50},
		"arguments":  {func() {}, func() { g.must("args_get", 0, 0) }, 50},
		"a path":     {func() {}, func() { g.pathStat(ws, 0, "no") }, 3000},
		"a deep one": {func() { g.pathStat(ws, 0, "no") }, func() { g.pathStat(ws, 0, strings.Repeat("d/", 500)+"x") }, 700_000},
		"a socket":   {func() {}, func() { g.call("sock_accept", 0, 0, 0) }, 50},
	} {
		little, much := cost(tc.little), cost(tc.much)
		if much < little+tc.least {
			t.Errorf("%s: %d units, and %d for much more", what, little, much)
		}
	}
}

// A long transfer ends with the guest, after one piece at most.
func TestLongTransfersEnd(t *testing.T) {
	h := newHost(t)
	h.File("ws/large", "")
	if err := os.Truncate(h.Path("ws/large"), 100<<20); err != nil {
		t.Fatal(err)
	}
	before := h.State()
	for _, name := range []string{"fd_read", "fd_write", "fd_pread"} {
		ends := &endAfter{after: 2}
		out := &countingWriter{}
		opts := h.options(nil, h.ro("ws"))
		opts.MustEnd, opts.Stdout = ends.check, out
		g := newGuest(t, opts)
		fd := 1
		if name != "fd_write" {
			fd = g.opened(g.directory(h, "ws"), "large", openOptions{base: rAll &^ rFDWrite})
		}
		at, n := g.iovecs(slices.Repeat([][2]int{{0, memoryBytes - 65536}}, 1000)...)
		args := []any{fd, at, n}
		if name == "fd_pread" {
			args = append(args, 0)
		}
		_, err := g.try(name, append(args, memoryBytes-8)...)
		ends.want(t, err)
		if out.n > 3<<20 {
			t.Errorf("%s: %d bytes were written", name, out.n)
		}
	}
	h.CheckUnchanged(before)
}

type countingWriter struct{ n int }

func (c *countingWriter) Write(p []byte) (int, error) {
	c.n += len(p)
	return len(p), nil
}

// A guest that exports no memory gets EFAULT.
func TestGuestWithoutMemory(t *testing.T) {
	g := guestOf(t, trampolineNoMemory(), preview1.New(nil))
	g.want(wasi.EFAULT, "random_get", 0, 1)
	g.want(wasi.EFAULT, "fd_fdstat_get", 1, 0)
	g.must("sched_yield")
}

// FuzzCalls lets a guest make calls with any arguments: files outside, masked or
// read-only are neither read nor changed, and nothing panics.
func FuzzCalls(f *testing.F) {
	functions := preview1.Functions()
	names := slices.Sorted(maps.Keys(functions))
	index := func(name string) byte { return byte(slices.Index(names, name)) }
	for _, name := range names {
		f.Add([]byte{index(name), 0, 1, 2, 3, 4, 5, 6, 7, 8, index("path_open"), 4, 1, 9, 0, 1, 3, 3, 0, 0, index(name), 5, 4, 3, 2, 1, 0})
		f.Add([]byte{index("path_open"), 3, 1, 0, 10, 0, 3, 3, 0, 0, index(name), 6, 20, 21, 22, 23, 24, 25, 26, 27, index(name), 5, 12, 13, 14})
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		h := newHost(t)
		plant(h)
		kept := func() map[string]string {
			state := h.State()
			maps.DeleteFunc(state, func(p, _ string) bool {
				return !slices.ContainsFunc([]string{"out", "ro", "ws/masked"}, func(keep string) bool {
					return p == keep || strings.HasPrefix(p, keep+"/")
				})
			})
			return state
		}
		ends := 0
		opts := h.options([]string{"ws/masked", "ws/later"}, h.rw("ws"), policy.Mount{Host: h.Path("ro")})
		opts.MustEnd = func() error { // no time to sleep
			if ends++; ends > 100 {
				return errEnd
			}
			return nil
		}
		world := preview1.New(opts)
		defer world.Close()
		world.SetProcess(preview1.Process{Args: []string{"prog", "-x"}, Env: []string{"A=b"}, Stdin: "input", Cwd: h.Path("ws")})
		g := guestIn(t, world)
		before := kept()
		// Values that a guest would have in its memory.
		const base = 1024
		paths := []string{h.name("ws"), h.name("ws/f.txt"), h.name("out/secret"), "f.txt", "../out/secret", "up/secret", "rel", "masked/key", "ml/key", "later", "new", "..", h.name("ro/x"), "hard", "d", "l", h.Path("out/secret"), h.Path("ws/masked/key"), "/"}
		var values []uint64
		for i, p := range paths {
			g.mod.Memory().Write(uint32(base+128*i), []byte(p))
			g.mod.Memory().Write(uint32(512+8*i), binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, uint32(base+128*i)), uint32(len(p))))
			values = append(values, uint64(base+128*i), uint64(len(p)))
		}
		values = append(values, 0, 1, 2, 3, 4, 5, 6, 7, 8, 15, 16, 31, 64, 512, 4096, 65536, memoryBytes-1, memoryBytes, 1<<31, math.MaxUint32, 1<<63, math.MaxUint64,
			rAll, rReading, rFDRead, rFDWrite, uint64(rAll)<<32)
		g.opened(g.opened(preopen, ".", openOptions{oflags: oDirectory, base: rReading, inheriting: rAll}), "f.txt", openOptions{base: rAll})
		for calls := 0; len(script) > 0 && calls < 100; calls++ {
			name := names[int(script[0])%len(names)]
			script = script[1:]
			if name == "poll_oneoff" {
				continue // it might sleep
			}
			var args []any
			for range functions[name].Params {
				v := uint64(0)
				if len(script) > 0 {
					v = values[int(script[0])%len(values)]
					script = script[1:]
				}
				args = append(args, v)
			}
			g.try(name, args...)
		}
		if b, _ := g.mod.Memory().Read(0, memoryBytes); strings.Contains(string(b), canary) {
			t.Error("the guest has the canary")
		}
		if diff := cmp.Diff(before, kept()); diff != "" {
			t.Errorf("something out of reach was changed (-before +after):\n%s", diff)
		}
		if _, err := os.Lstat(h.Path("ws/later")); err == nil {
			t.Error("a masked file was created")
		}
	})
}
