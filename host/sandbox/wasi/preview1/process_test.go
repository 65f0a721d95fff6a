//go:build unix

package preview1_test

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/tetratelabs/wazero/sys"

	"github.com/stockade-dev/stockade/host/sandbox/wasi"
	"github.com/stockade-dev/stockade/host/sandbox/wasi/preview1"
)

// endAfter ends the guest after a number of checks.
type endAfter struct{ after, asked int }

var errEnd = errors.New("the guest has to end")

func (e *endAfter) check() error {
	e.asked++
	if e.asked > e.after {
		return errEnd
	}
	return nil
}

func (e *endAfter) want(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, errEnd) {
		t.Errorf("it ended with %v", err)
	}
	if e.asked != e.after+1 {
		t.Errorf("asked %d times, want %d", e.asked, e.after+1)
	}
}

func TestNoArgumentsAndNoEnvironment(t *testing.T) {
	t.Setenv("STOCKADE_SECRET", canary)
	g := newGuest(t, nil)
	for _, name := range []string{"args", "environ"} {
		g.mod.Memory().Write(uint32(resultAt), bytes.Repeat([]byte{0xff}, 16))
		g.must(name+"_sizes_get", resultAt, resultAt+4)
		if g.u64(resultAt) != 0 {
			t.Errorf("%s: %d of %d bytes", name, g.u32(resultAt), g.u32(resultAt+4))
		}
		g.must(name+"_get", resultAt+8, resultAt+12)
		if g.u64(resultAt+8) != 1<<64-1 {
			t.Errorf("%s wrote something", name)
		}
	}
}

func TestExit(t *testing.T) {
	for _, code := range []uint32{0, 1, 3, 255, 1 << 31, 1<<32 - 1} {
		g := newGuest(t, nil)
		_, err := g.try("proc_exit", code)
		exit, ok := errors.AsType[*sys.ExitError](err)
		if !ok || exit.ExitCode() != code {
			t.Errorf("exit %d gave %v", code, err)
		}
	}
	g := newGuest(t, nil)
	for _, signal := range []int{0, 1, 6, 9, 99} {
		g.want(wasi.ENOSYS, "proc_raise", signal)
	}
}

func TestYield(t *testing.T) {
	ends := &endAfter{after: 1}
	g := newGuest(t, &preview1.Options{MustEnd: ends.check})
	g.must("sched_yield")
	_, err := g.try("sched_yield")
	ends.want(t, err)
}

func TestRandom(t *testing.T) {
	g := newGuest(t, nil)
	g.must("random_get", 8192, 32)
	first := bytes.Clone(g.bytes(8192, 32))
	g.must("random_get", 8192, 32)
	if bytes.Equal(first, g.bytes(8192, 32)) || bytes.Equal(first, make([]byte, 32)) {
		t.Error("not random")
	}
	g.must("random_get", 8192, 0)
	g.must("random_get", memoryBytes, 0)
	if bytes.Equal(g.bytes(8192, 32), first) {
		t.Error("changed by nothing")
	}
	g.want(wasi.EFAULT, "random_get", memoryBytes-10, 11)
	g.want(wasi.EFAULT, "random_get", 0, -1)
	g.want(wasi.EFAULT, "random_get", -1, 1)

	g = newGuest(t, &preview1.Options{Random: strings.NewReader("just enough")})
	g.must("random_get", 8192, 11)
	if got := string(g.bytes(8192, 11)); got != "just enough" {
		t.Errorf("got %q", got)
	}
	g.want(wasi.EIO, "random_get", 8192, 1)
	// In pieces, with a check of the time in between.
	ends := &endAfter{after: 2} // the call itself checks once
	read := &countingReader{}
	g = newGuest(t, &preview1.Options{Random: read, MustEnd: ends.check})
	_, err := g.try("random_get", 0, memoryBytes)
	ends.want(t, err)
	if read.n != 2*64<<10 {
		t.Errorf("%d bytes were made", read.n)
	}
}

type countingReader struct{ n int }

func (c *countingReader) Read(p []byte) (int, error) {
	c.n += len(p)
	return len(p), nil
}

func TestGuestWithoutAWorld(t *testing.T) {
	g := newGuest(t, nil)
	g.ctx = t.Context()
	for name, sig := range preview1.Functions() {
		args := make([]any, len(sig.Params))
		for i := range args {
			args[i] = 0
		}
		if _, err := g.try(name, args...); err == nil || !strings.Contains(err.Error(), "without a WASI world") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// One instance can serve several calls, and none sees what another left.
func TestOneInstanceManyWorlds(t *testing.T) {
	h := newHost(t)
	h.File("other/f.txt", "another")
	g := h.mounted(h.rw("ws"))
	ctx := g.ctx
	ws := g.directory(h, "ws")
	fd := g.opened(ws, "f.txt", openOptions{base: rAll})
	g.must("fd_close", 1)

	world := preview1.New(&preview1.Options{FS: h.fs(nil, wasi.Limits{}, h.ro("other"))})
	defer world.Close()
	g.ctx = preview1.WithWorld(t.Context(), world)
	g.want(wasi.EBADF, "fd_filestat_get", fd, resultAt)
	g.must("fd_fdstat_get", 1, resultAt)
	_, errno := g.open(preopen, h.name("ws/f.txt"), openOptions{base: rFDRead})
	wantErrno(t, "open what the other call has", errno, wasi.EPERM)
	other := g.directory(h, "other")
	if s, _ := g.read(g.opened(other, "f.txt", openOptions{base: rFDRead}), 100); s != "another" {
		t.Errorf("read %q", s)
	}
	g.ctx = ctx
	g.want(wasi.EBADF, "fd_fdstat_get", 1, resultAt)
	if s, _ := g.read(fd, 100); s != "inside" {
		t.Errorf("read %q", s)
	}
}

func TestNothingWorksAfterClose(t *testing.T) {
	h := newHost(t)
	var out bytes.Buffer
	opts := h.options(nil, h.rw("ws"))
	opts.Stdout = &out
	world := preview1.New(opts)
	g := guestIn(t, world)
	ws := g.directory(h, "ws")
	g.opened(ws, "f.txt", openOptions{base: rAll})
	for range 2 {
		if err := world.Close(); err != nil {
			t.Error(err)
		}
	}
	before := h.State()
	for name, sig := range preview1.Functions() {
		args := make([]any, len(sig.Params))
		for i := range args {
			args[i] = 4
		}
		if _, err := g.try(name, args...); err == nil {
			t.Errorf("%s worked", name)
		}
	}
	at, n := g.pieces([]string{"x"})
	if _, err := g.try("fd_write", 1, at, n, resultAt); err == nil || out.Len() != 0 {
		t.Errorf("write: %v, %q", err, &out)
	}
	h.CheckUnchanged(before)
}

// Close is called while the guest works, from another goroutine.
func TestCloseMeanwhile(t *testing.T) {
	h := newHost(t)
	for range 20 {
		world := preview1.New(h.options(nil, h.rw("ws")))
		g := guestIn(t, world)
		ws := g.directory(h, "ws")
		started := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			for i := 0; ; i++ {
				at := g.put([]byte("f.txt"))
				g.at = scratchAt
				_, err := g.mod.ExportedFunction("path_open").Call(g.ctx, uint64(ws), 0, uint64(at), 5, 0, rAll, 0, 0, uint64(resultAt))
				if i == 0 {
					close(started)
				}
				if err != nil {
					return
				}
				_, _ = g.mod.ExportedFunction("fd_close").Call(g.ctx, uint64(g.u32(resultAt)))
			}
		})
		<-started
		if err := world.Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
	}
}

// A bug of the host is not taken for a crash of the guest.
func TestPanicIsOurFault(t *testing.T) {
	g := newGuest(t, &preview1.Options{Stdout: panicWriter{}})
	at, n := g.pieces([]string{"x"})
	_, err := g.mod.ExportedFunction("fd_write").Call(g.ctx, 1, uint64(at), uint64(n), uint64(resultAt))
	if !errors.Is(err, preview1.ErrPanic) || !strings.Contains(err.Error(), "fd_write: a broken writer") {
		t.Errorf("got %v", err)
	}
	// An end of the guest on purpose is no bug.
	ends := &endAfter{}
	g = newGuest(t, &preview1.Options{MustEnd: ends.check})
	if _, err := g.try("sched_yield"); errors.Is(err, preview1.ErrPanic) {
		t.Errorf("got %v", err)
	}
}

type panicWriter struct{}

func (panicWriter) Write([]byte) (int, error) { panic("a broken writer") }

// A preopen that cannot be opened is an error of the function that needs it.
func TestPreopenThatCannotBeOpened(t *testing.T) {
	h := newHost(t)
	g := newGuest(t, &preview1.Options{FS: h.fs(nil, wasi.Limits{MaxOpenFiles: 1}, h.rw("ws"))})
	fd := g.opened(preopen, h.name("ws/f.txt"), openOptions{base: rFDRead})
	g.want(wasi.EMFILE, "fd_readdir", preopen, 8192, 100, 0, resultAt)
	g.want(wasi.EMFILE, "fd_filestat_get", preopen, resultAt)
	g.want(wasi.EMFILE, "fd_filestat_set_times", preopen, 0, 0, sMtim)
	g.must("fd_fdstat_get", preopen, resultAt)
	g.must("fd_prestat_get", preopen, resultAt)
	g.must("fd_close", fd)
	g.must("fd_filestat_get", preopen, resultAt)
}
