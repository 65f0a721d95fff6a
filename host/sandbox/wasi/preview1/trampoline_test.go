//go:build unix

package preview1_test

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/sandbox/wasi"
	"github.com/stockade-dev/stockade/host/sandbox/wasi/preview1"
	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// The numbers of the specification.
const (
	rFDDatasync uint64 = 1 << iota
	rFDRead
	rFDSeek
	rFDFdstatSetFlags
	rFDSync
	rFDTell
	rFDWrite
	rFDAdvise
	rFDAllocate
	rPathCreateDirectory
	rPathCreateFile
	rPathLinkSource
	rPathLinkTarget
	rPathOpen
	rFDReaddir
	rPathReadlink
	rPathRenameSource
	rPathRenameTarget
	rPathFilestatGet
	rPathFilestatSetSize
	rPathFilestatSetTimes
	rFDFilestatGet
	rFDFilestatSetSize
	rFDFilestatSetTimes
	rPathSymlink
	rPathRemoveDirectory
	rPathUnlinkFile
	rPollFDReadwrite
	rSockShutdown
	rSockAccept

	rAll     = rSockAccept<<1 - 1
	rReading = rAll &^ (rFDWrite | rFDAllocate | rFDFilestatSetSize)
)

const (
	oCreat, oDirectory, oExcl, oTrunc             = 1, 2, 4, 8
	fAppend, fDsync, fNonblock, fRsync, fSync     = 1, 2, 4, 8, 16
	sAtim, sAtimNow, sMtim, sMtimNow              = 1, 2, 4, 8
	tUnknown, tDirectory, tRegular, tSymlink      = 0, 3, 4, 7
	preopen                                       = 3
	memoryPages, memoryBytes                      = 4, 4 << 16
	scratchAt, resultAt                       int = 4096, 64
)

// trampoline is a module with its own memory and, for each function of WASI, an export
// that calls it.
var trampoline = sync.OnceValue(func() []byte { return trampolineTo(preview1.ModuleName, "memory") })

// trampolineNoMemory is a trampoline that does not export its memory under its name.
func trampolineNoMemory() []byte { return trampolineTo(preview1.ModuleName, "hidden") }

func trampolineTo(module, memory string) []byte {
	b := w.New()
	b.Memory(memoryPages, 4*memoryPages)
	b.ExportMemory(memory)
	types := func(in []api.ValueType) []w.ValType {
		var out []w.ValType
		for _, t := range in {
			out = append(out, w.ValType(t))
		}
		return out
	}
	functions := preview1.Functions()
	var names []string
	for name, sig := range functions {
		names = append(names, name)
		b.ImportFunc(module, name, types(sig.Params), types(sig.Results))
	}
	for i, name := range names {
		sig := functions[name]
		var body []byte
		for p := range sig.Params {
			body = append(body, w.LocalGet(uint32(p))...)
		}
		b.Func(name, types(sig.Params), types(sig.Results), nil, body, w.Call(uint32(i)))
	}
	return b.Bytes()
}

// engine is shared by all tests: the state of a guest is in its world.
var engine = sync.OnceValues(func() (wazero.Runtime, error) {
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	return rt, errors.Join(preview1.Instantiate(ctx, rt, preview1.ModuleName), preview1.Instantiate(ctx, rt, preview1.UnstableName))
})

// guest is a guest that makes the calls of a test.
type guest struct {
	t   *testing.T
	ctx context.Context
	mod api.Module
	at  int // address of the next argument
}

func newGuest(t *testing.T, opts *preview1.Options) *guest {
	t.Helper()
	world := preview1.New(opts)
	t.Cleanup(func() { world.Close() })
	return guestIn(t, world)
}

func guestIn(t *testing.T, world *preview1.World) *guest {
	t.Helper()
	return guestOf(t, trampoline(), world)
}

func guestOf(t *testing.T, module []byte, world *preview1.World) *guest {
	t.Helper()
	rt, err := engine()
	if err != nil {
		t.Fatal(err)
	}
	mod, err := rt.InstantiateWithConfig(t.Context(), module, wazero.NewModuleConfig().WithName(""))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mod.Close(context.Background()) })
	return &guest{t: t, ctx: preview1.WithWorld(t.Context(), world), mod: mod, at: scratchAt}
}

// mounted returns a guest in a tree with these mounts.
func (h *host) mounted(mounts ...policy.Mount) *guest {
	h.T.Helper()
	return newGuest(h.T, &preview1.Options{FS: h.fs(nil, wasi.Limits{}, mounts...)})
}

// try calls a function that may trap.
func (g *guest) try(name string, args ...any) (wasi.Errno, error) {
	g.t.Helper()
	var stack []uint64
	for _, a := range args {
		switch a := a.(type) {
		case int:
			stack = append(stack, uint64(a))
		case uint32:
			stack = append(stack, uint64(a))
		case uint64:
			stack = append(stack, a)
		case string:
			ptr := g.put([]byte(a))
			stack = append(stack, uint64(ptr), uint64(len(a)))
		default:
			g.t.Fatalf("argument %T", a)
		}
	}
	g.at = scratchAt
	out, err := g.mod.ExportedFunction(name).Call(g.ctx, stack...)
	if errors.Is(err, preview1.ErrPanic) {
		g.t.Errorf("%s%v: %v", name, stack, err)
	}
	if err != nil || len(out) == 0 {
		return 0, err
	}
	return wasi.Errno(out[0]), nil
}

// call calls a function that must return.
func (g *guest) call(name string, args ...any) wasi.Errno {
	g.t.Helper()
	errno, err := g.try(name, args...)
	if err != nil {
		g.t.Fatalf("%s: %v", name, err)
	}
	return errno
}

// must fails the test unless a function succeeds.
func (g *guest) must(name string, args ...any) {
	g.t.Helper()
	g.want(0, name, args...)
}

// want fails the test unless a function returns this error.
func (g *guest) want(want wasi.Errno, name string, args ...any) {
	g.t.Helper()
	wantErrno(g.t, name, g.call(name, args...), want)
}

func wantErrno(t *testing.T, what string, got wasi.Errno, want ...wasi.Errno) {
	t.Helper()
	if !slices.Contains(want, got) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// put writes bytes to unused memory, for one call.
func (g *guest) put(b []byte) int {
	g.t.Helper()
	at := g.at
	if !g.mod.Memory().Write(uint32(at), b) {
		g.t.Fatalf("%d bytes do not fit", len(b))
	}
	g.at += (len(b) + 7) &^ 7
	return at
}

// room returns n unused bytes, until the next call.
func (g *guest) room(n int) int { return g.put(make([]byte, n)) }

func (g *guest) bytes(at, n int) []byte {
	g.t.Helper()
	b, ok := g.mod.Memory().Read(uint32(at), uint32(n))
	if !ok {
		g.t.Fatalf("no %d bytes at %d", n, at)
	}
	return b
}

func (g *guest) u32(at int) uint32 { return binary.LittleEndian.Uint32(g.bytes(at, 4)) }
func (g *guest) u64(at int) uint64 { return binary.LittleEndian.Uint64(g.bytes(at, 8)) }

// openOptions are the parameters of path_open.
type openOptions struct {
	oflags           int
	base, inheriting uint64
	fdflags          int
	follow           int
}

// all returns all rights.
func all() openOptions { return openOptions{base: rAll, inheriting: rAll} }

func (g *guest) open(dir int, p string, o openOptions) (int, wasi.Errno) {
	g.t.Helper()
	errno := g.call("path_open", dir, o.follow, p, o.oflags, o.base, o.inheriting, o.fdflags, resultAt)
	return int(g.u32(resultAt)), errno
}

// opened is open that must succeed.
func (g *guest) opened(dir int, p string, o openOptions) int {
	g.t.Helper()
	fd, errno := g.open(dir, p, o)
	if errno != 0 {
		g.t.Fatalf("open %s: %v", p, errno)
	}
	return fd
}

// directory opens a directory of the host, from the preopen.
func (g *guest) directory(h *host, p string) int {
	g.t.Helper()
	return g.opened(preopen, h.name(p), openOptions{oflags: oDirectory, base: rReading, inheriting: rAll})
}

// iovecs puts a list of buffers.
func (g *guest) iovecs(buffers ...[2]int) (at, n int) {
	var b []byte
	for _, v := range buffers {
		b = binary.LittleEndian.AppendUint32(b, uint32(v[0]))
		b = binary.LittleEndian.AppendUint32(b, uint32(v[1]))
	}
	return g.put(b), len(buffers)
}

func (g *guest) read(fd, n int) (string, wasi.Errno) {
	g.t.Helper()
	buf := g.room(n)
	at, count := g.iovecs([2]int{buf, n})
	errno := g.call("fd_read", fd, at, count, resultAt)
	if errno != 0 {
		return "", errno
	}
	out := string(g.bytes(buf, int(g.u32(resultAt))))
	if strings.Contains(out, canary) {
		g.t.Errorf("descriptor %d gave the canary", fd)
	}
	return out, 0
}

func (g *guest) pread(fd, n int, off uint64) (string, wasi.Errno) {
	g.t.Helper()
	buf := g.room(n)
	at, count := g.iovecs([2]int{buf, n})
	errno := g.call("fd_pread", fd, at, count, off, resultAt)
	if errno != 0 {
		return "", errno
	}
	return string(g.bytes(buf, int(g.u32(resultAt)))), 0
}

func (g *guest) write(fd int, pieces ...string) (int, wasi.Errno) {
	g.t.Helper()
	at, count := g.pieces(pieces)
	errno := g.call("fd_write", fd, at, count, resultAt)
	return int(g.u32(resultAt)), errno
}

func (g *guest) pwrite(fd int, off uint64, pieces ...string) (int, wasi.Errno) {
	g.t.Helper()
	at, count := g.pieces(pieces)
	errno := g.call("fd_pwrite", fd, at, count, off, resultAt)
	return int(g.u32(resultAt)), errno
}

func (g *guest) pieces(pieces []string) (at, n int) {
	var buffers [][2]int
	for _, p := range pieces {
		buffers = append(buffers, [2]int{g.put([]byte(p)), len(p)})
	}
	return g.iovecs(buffers...)
}

// seek calls fd_seek.
func (g *guest) seek(fd int, off int64, whence int) (uint64, wasi.Errno) {
	g.t.Helper()
	errno := g.call("fd_seek", fd, uint64(off), whence, resultAt)
	return g.u64(resultAt), errno
}

type fdstat struct {
	typ, flags       int
	base, inheriting uint64
}

func (g *guest) fdstat(fd int) (fdstat, wasi.Errno) {
	g.t.Helper()
	errno := g.call("fd_fdstat_get", fd, resultAt)
	b := g.bytes(resultAt, 24)
	le := binary.LittleEndian
	return fdstat{int(b[0]), int(le.Uint16(b[2:])), le.Uint64(b[8:]), le.Uint64(b[16:])}, errno
}

type filestat struct {
	dev, ino         uint64
	typ              int
	nlink, size      uint64
	atim, mtim, ctim uint64
}

func (g *guest) filestat() filestat {
	b := g.bytes(resultAt, 64)
	u := func(i int) uint64 { return binary.LittleEndian.Uint64(b[i:]) }
	return filestat{u(0), u(8), int(b[16]), u(24), u(32), u(40), u(48), u(56)}
}

func (g *guest) stat(fd int) filestat {
	g.t.Helper()
	g.must("fd_filestat_get", fd, resultAt)
	return g.filestat()
}

func (g *guest) pathStat(dir, follow int, p string) (filestat, wasi.Errno) {
	g.t.Helper()
	errno := g.call("path_filestat_get", dir, follow, p, resultAt)
	return g.filestat(), errno
}

type dirent struct {
	next, ino uint64
	typ       int
	name      string
}

// readdir reads one buffer of entries, without the entry that is cut off. full is set if
// the buffer was full.
func (g *guest) readdir(fd, size int, cookie uint64) (list []dirent, full bool, _ wasi.Errno) {
	g.t.Helper()
	buf := g.room(size)
	if errno := g.call("fd_readdir", fd, buf, size, cookie, resultAt); errno != 0 {
		return nil, false, errno
	}
	used := int(g.u32(resultAt))
	b := g.bytes(buf, used)
	le := binary.LittleEndian
	for len(b) >= 24 {
		n := int(le.Uint32(b[16:]))
		if len(b) < 24+n {
			break
		}
		list = append(list, dirent{le.Uint64(b), le.Uint64(b[8:]), int(b[20]), string(b[24 : 24+n])})
		b = b[24+n:]
	}
	return list, used == size, 0
}

// list reads a whole directory with buffers of size bytes.
func (g *guest) list(fd, size int) []dirent {
	g.t.Helper()
	var out []dirent
	cookie := uint64(0)
	for {
		part, full, errno := g.readdir(fd, size, cookie)
		if errno != 0 {
			g.t.Fatalf("readdir: %v", errno)
		}
		out = append(out, part...)
		if !full {
			return out
		}
		if len(part) == 0 {
			g.t.Fatalf("a buffer of %d bytes is too small", size)
		}
		cookie = part[len(part)-1].next
	}
}
