//go:build unix

package preview1_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"
	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/sandbox/wasi"
	"github.com/stockade-dev/stockade/host/sandbox/wasi/preview1"
)

// guestModule is testdata/guest, built once.
var guestModule = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "guest")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "guest.wasm")
	cmd := exec.Command("go", "build", "-o", out, "./testdata/guest")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=")
	if log, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the guest: %w\n%s", err, log)
	}
	return os.ReadFile(out)
})

// compiled caches wazero's compiled code of the guest.
var compiled = wazero.NewCompilationCache()

// op is an operation of the guest, with names relative to the world, and the
// answer.
type op struct {
	do   string // the operation and its arguments, separated by spaces
	want string
}

func fails(n wasi.Errno) string { return fmt.Sprintf("errno %d", n) }

// run lets a guest do the operations on a tree, in one instance.
func (h *host) run(fs *wasi.FS, ops []op) {
	t := h.T
	t.Helper()
	module, err := guestModule()
	if err != nil {
		t.Fatal(err)
	}
	var in, out, stderr bytes.Buffer
	for _, o := range ops {
		for i, arg := range strings.Fields(o.do) {
			if i > 0 {
				in.WriteByte('\t')
			}
			in.WriteString(strings.ReplaceAll(arg, "@", h.Base+"/"))
		}
		in.WriteByte('\n')
	}
	runtime := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfigInterpreter().WithCompilationCache(compiled))
	defer runtime.Close(t.Context())
	// A guest has no standard input that says anything.
	_, err = runtime.NewHostModuleBuilder("test").NewFunctionBuilder().
		WithFunc(func(_ context.Context, mod api.Module, ptr, n uint32) uint32 {
			b, _ := mod.Memory().Read(ptr, n)
			got, _ := in.Read(b)
			return uint32(got)
		}).Export("read").Instantiate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := preview1.Instantiate(t.Context(), runtime, preview1.ModuleName); err != nil {
		t.Fatal(err)
	}
	w := preview1.New(&preview1.Options{FS: fs, Stdout: &out, Stderr: &stderr})
	defer w.Close()
	_, err = runtime.InstantiateWithConfig(preview1.WithWorld(t.Context(), w), module, wazero.NewModuleConfig())
	if exit, ok := errors.AsType[*sys.ExitError](err); err != nil && (!ok || exit.ExitCode() != 0) {
		t.Fatalf("run the guest: %v\n%s", err, stderr.String())
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != len(ops) {
		t.Fatalf("%d answers to %d operations:\n%s", len(lines), len(ops), out.String())
	}
	for i, o := range ops {
		if got := strings.TrimSpace(lines[i]); got != o.want {
			t.Errorf("%s: got %q, want %q", o.do, got, o.want)
		}
		if strings.Contains(lines[i], canary) {
			t.Errorf("%s gave the canary", o.do)
		}
	}
}

// plantAttacks makes files in the workspace that a hostile repository might have.
func plantAttacks(w *host) {
	w.Link("ws/abs", "out/secret")
	w.Link("ws/rel", "../out/secret")
	w.Link("ws/up", "../out")
	w.Link("ws/proc", "/proc/self")
	w.Link("ws/good", "d/g.txt")
	w.Link("ws/loop", "loop")
	w.File("out/shared", "shared")
	w.HardLink("ws/hard", "out/shared")
	if err := unix.Mkfifo(w.Path("ws/fifo"), 0o666); err != nil {
		w.T.Fatal(err)
	}
}

// attacks fail in the same way on every kind of workspace, and change nothing.
var attacks = []op{
	{"read @out/secret", fails(wasi.EPERM)},
	{"read @ws/../out/secret", fails(wasi.EPERM)},
	{"read @ws/no/../../out/secret", fails(wasi.EPERM)},
	{"read /../../../../etc/passwd", fails(wasi.EPERM)}, // the guest's library cleans this one
	{"open @ws/../out/secret 0 2 0", fails(wasi.EPERM)},
	{"open /etc/passwd 0 2 0", fails(wasi.EPERM)},
	{"open ../../../../etc/passwd 0 2 0", fails(wasi.EPERM)},
	{`open "a\x00b" 0 2 0`, fails(wasi.EINVAL)},
	{`open "\xff\xfe" 0 2 0`, fails(wasi.EILSEQ)},
	{`open "" 0 2 0`, fails(wasi.EINVAL)},
	{"read /etc/passwd", fails(wasi.EPERM)},
	{"read /no/such", fails(wasi.EPERM)},
	{"write @out/new x", fails(wasi.EPERM)},
	{"mkdir @out/new", fails(wasi.EPERM)},
	{"stat @out", fails(wasi.EPERM)},
	{"list @out", fails(wasi.EPERM)},
	{"unlink @out/secret", fails(wasi.EPERM)},
	{"rmdir @out/dir", fails(wasi.EPERM)},
	{"chtimes @out/secret", fails(wasi.EPERM)},
	{"rename @out/secret @out/moved", fails(wasi.EPERM)},
}

// inside are attacks through a workspace that can be read.
var inside = []op{
	{"read @ws/abs", fails(wasi.EPERM)},
	{"read @ws/rel", fails(wasi.EPERM)},
	{"read @ws/up/secret", fails(wasi.EPERM)},
	{"list @ws/up", fails(wasi.EPERM)},
	{"read @ws/proc/environ", fails(wasi.EPERM)},
	{"readlink @ws/abs", fails(wasi.EPERM)},
	{"readlink @ws/rel", fails(wasi.EPERM)},
	{"openat @ws up/secret", fails(wasi.EPERM)},
	{"openat @ws ../out/secret", fails(wasi.EPERM)},
	{"openat @ws /etc/passwd", fails(wasi.EPERM)},
	{"read @ws/loop", fails(wasi.ELOOP)},
	{"read @ws/fifo", fails(wasi.EACCES)},
	{"read @ws/good", "ok deeper"},
	{"readlink @ws/good", "ok d/g.txt"},
	{"read @ws/hard", "ok shared"},
	{"openat @ws d/g.txt", "ok"},
	{"openat @ws d/../d/g.txt", "ok"},
	{"openat @ws/d nothing", fails(wasi.ENOENT)},
	{"read @ws/f.txt/", fails(wasi.ENOTDIR)},
	{"exhaust @ws/f.txt", fmt.Sprintf("errno %d %d", wasi.EMFILE, 256)},
	{"read @ws/f.txt", "ok inside"},
	{"list @ws", "ok abs d f.txt fifo good hard loop proc rel up"},
	{"readdir @ws 120", "ok 12"}, // and two dots
	{"readdir @ws 1048576", "ok 12"},
	{"readdir @ws 4294967295", fails(wasi.EFAULT)}, // no memory is that large
	{"stat @ws/f.txt", "ok ---------- 6"},
}

func TestGuestWithoutMounts(t *testing.T) {
	w := newHost(t)
	plantAttacks(w)
	fs := w.fs(nil, wasi.Limits{})
	before := w.State()
	w.run(fs, append([]op{
		{"list /", "ok"},
		{"read @ws/f.txt", fails(wasi.EPERM)},
		{"write @ws/f.txt x", fails(wasi.EPERM)},
		{"list @ws", fails(wasi.EPERM)},
		{"mkdir /x", fails(wasi.EPERM)},
		{"symlink a /x", fails(wasi.EPERM)},
	}, attacks...))
	w.CheckUnchanged(before)
}

func TestGuestWithReadOnlyMount(t *testing.T) {
	w := newHost(t)
	plantAttacks(w)
	fs := w.fs(nil, wasi.Limits{}, w.ro("ws"))
	before := w.State()
	ops := append(append([]op(nil), inside...), attacks...)
	for _, do := range []string{
		"open @ws/f.txt 8 2 0",  // O_TRUNC and the right to read
		"open @ws/f.txt 8 0 0",  // O_TRUNC and no right
		"open @ws/new 1 2 0",    // O_CREAT and the right to read
		"open @ws/new 1 0 0",    // O_CREAT and no right
		"open @ws/f.txt 1 2 0",  // O_CREAT of what is there
		"open @ws/f.txt 0 2 1",  // append and the right to read
		"open @ws/f.txt 0 64 0", // the right to write
		"open @ws/f.txt 0 66 0",
		"open @ws/rel 8 2 0",
		"open @ws/hard 8 2 0",
		"setflags @ws/f.txt 1",
		"allocate @ws/f.txt 100",
		"setsize @ws/f.txt 0",
		"settimes @ws/f.txt",
		"settimesnofollow @ws/f.txt",
		"write @ws/f.txt x",
		"write @ws/new x",
		"append @ws/f.txt x",
		"truncate @ws/f.txt 0",
		"chtimes @ws/f.txt",
		"chtimes @ws/d",
		"mkdir @ws/new",
		"unlink @ws/f.txt",
		"rmdir @ws/d",
		"rename @ws/f.txt @ws/new",
		"symlink f.txt @ws/new",
		"link @ws/f.txt @ws/new",
		"chtimes /",
	} {
		ops = append(ops, op{do, fails(wasi.EROFS)})
	}
	for _, do := range []string{"setflags @ws/f.txt 0", "pwrite @ws/f.txt 0"} {
		ops = append(ops, op{do, fails(wasi.ENOTCAPABLE)}) // opened without the right to write
	}
	w.run(fs, ops)
	w.CheckUnchanged(before)
}

func TestGuestWithWritableMount(t *testing.T) {
	w := newHost(t)
	plantAttacks(w)
	w.File("ws/secrets/key", canary)
	w.Link("ws/sl", "secrets")
	w.File("ro/x", "x")
	newFS := func() *wasi.FS {
		return w.fs([]string{"ws/secrets", "ws/later"}, wasi.Limits{}, w.rw("ws"), w.ro("ro"))
	}
	before := w.State()
	w.run(newFS(), append([]op{
		{"read @ws/secrets/key", fails(wasi.EPERM)},
		{"read @ws/sl/key", fails(wasi.EPERM)},
		{"mkdir @ws/later", fails(wasi.EPERM)},
		{"mkdirall @ws/later/x", fails(wasi.EPERM)},
		{"rename @ws/d @ws/later", fails(wasi.EPERM)},
		{"rename @ws/secrets @ws/d/s", fails(wasi.EPERM)},
		{"list @ws", "ok abs d f.txt fifo good hard loop proc rel sl up"},
		{"write @ws/rel x", fails(wasi.EPERM)},
		{"write @ws/up/new x", fails(wasi.EPERM)},
		{"open @ws/rel 8 2 0", fails(wasi.EPERM)},
		{"mkdir @ws/up/new", fails(wasi.EPERM)},
		{"unlink @ws/up/secret", fails(wasi.EPERM)},
		{"rename @ws/up/secret @ws/s", fails(wasi.EPERM)},
		{"rename @ws/f.txt @ws/up/s", fails(wasi.EPERM)},
		{"rename @ws/f.txt @out/s", fails(wasi.EPERM)},
		{"rename @ws/f.txt @ro/s", fails(wasi.EROFS)},
		{"rename @ro/x @ws/s", fails(wasi.EROFS)},
		{"chtimes @ws/rel", fails(wasi.EPERM)},
		{"symlink ../out/secret @ws/new", fails(wasi.EPERM)},
		{"symlink f.txt @ws/new", fails(wasi.EPERM)},
		{"link @ws/f.txt @ws/new", fails(wasi.EPERM)},
		{"write @ws/hard x", fails(wasi.EACCES)},
		{"append @ws/hard x", fails(wasi.EACCES)},
		{"open @ws/hard 8 2 0", fails(wasi.EACCES)},
		{"settimes @ws/hard", fails(wasi.EACCES)},
		{"chtimes @ws/hard", fails(wasi.EACCES)},
		{"truncate @ws/hard 0", fails(wasi.EACCES)},
		{"write @ws/fifo x", fails(wasi.EACCES)},
		{"pwrite @ws/f.txt 4611686018427387904", fails(wasi.EFBIG)},
		{"setsize @ws/f.txt 1152921504606846976", fails(wasi.EFBIG)},
		{"allocate @ws/f.txt 1152921504606846976", fails(wasi.EFBIG)},
	}, attacks...))
	w.CheckUnchanged(before)

	w.run(newFS(), []op{
		{"mkdirall @ws/n/m", "ok"},
		{"write @ws/n/m/x hello", "ok"},
		{"append @ws/n/m/x !", "ok"},
		{"read @ws/n/m/x", "ok hello!"},
		{"setflags @ws/n/m/x 1", "ok"},
		{"read @ws/n/m/x", "ok hello!x"},
		{"truncate @ws/n/m/x 2", "ok"},
		{"pwrite @ws/n/m/x 0", "ok"},
		{"read @ws/n/m/x", "ok xe"},
		{"allocate @ws/n/m/x 10", "ok"},
		{"stat @ws/n/m/x", "ok ---------- 10"},
		{"open @ws/n/m/x 8 2 0", "ok"}, // truncates
		{"stat @ws/n/m/x", "ok ---------- 0"},
		{"settimes @ws/n/m/x", "ok"},
		{"settimesnofollow @ws/n/m/x", "ok"},
		{"chtimes @ws/n", "ok"},
		{"rename @ws/n/m/x @ws/d/x", "ok"},
		{"mkdir @ws/n/m", fails(wasi.EEXIST)},
		{"rmdir @ws/n", fails(wasi.ENOTEMPTY)},
		{"rmdir @ws/n/m", "ok"},
		{"list @ws/n", "ok"},
		{"unlink @ws/d/x", "ok"},
		{"list @ws/d", "ok g.txt"},
	})
}

// The Go toolchain's own handle of a directory.
func TestGuestWithARoot(t *testing.T) {
	w := newHost(t)
	w.Link("ws/up", "../out")
	fs := w.fs(nil, wasi.Limits{}, w.rw("ws"))
	w.run(fs, []op{
		{"root @ws d/new one", "ok one"},
		{"root @ws d/new two!", "ok two!"},
		{"root @ws/d new three", "ok three"},
		{"root @ws up/new x", "error"},
		{"root @ws ../out/new x", "error"},
	})
	if got := w.Content("ws/d/new"); got != "three" {
		t.Errorf("the file has %q", got)
	}
	if _, err := os.Lstat(w.Path("out/new")); err == nil {
		t.Error("a file was made outside")
	}
}

// Files that one guest has open do not count for another.
func TestGuestsDoNotShareLimits(t *testing.T) {
	w := newHost(t)
	for range 2 {
		w.run(w.fs(nil, wasi.Limits{MaxOpenFiles: 20}, w.rw("ws")), []op{
			{"exhaust @ws/f.txt", fmt.Sprintf("errno %d 20", wasi.EMFILE)},
			{"exhaust @ws/f.txt", fmt.Sprintf("errno %d 20", wasi.EMFILE)},
		})
	}
}

func TestGuestOutlivesItsFiles(t *testing.T) {
	w := newHost(t)
	fs := w.fs(nil, wasi.Limits{}, w.rw("ws"))
	if err := fs.Close(); err != nil {
		t.Fatal(err)
	}
	before := w.State()
	w.run(fs, []op{
		{"read @ws/f.txt", fails(wasi.EBADF)},
		{"write @ws/f.txt x", fails(wasi.EBADF)},
	})
	w.CheckUnchanged(before)
}
