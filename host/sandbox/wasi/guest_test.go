//go:build unix

package wasi

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental/sysfs"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"golang.org/x/sys/unix"
)

// The numbers of WASI.
const (
	wasiACCES    = 2
	wasiAGAIN    = 6
	wasiBADF     = 8
	wasiEXIST    = 20
	wasiINVAL    = 28
	wasiLOOP     = 32
	wasiNOENT    = 44
	wasiNOTDIR   = 54
	wasiNOTEMPTY = 55
	wasiNOTSUP   = 58
	wasiPERM     = 63
	wasiRANGE    = 68
	wasiROFS     = 69
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

// compiled keeps what wazero made of the guest.
var compiled = wazero.NewCompilationCache()

// op is an operation of the guest, with names relative to the world, and the
// answer.
type op struct {
	do   string // the operation and its arguments, separated by spaces
	want string
}

func fails(n int) string { return fmt.Sprintf("errno %d", n) }

// run lets a guest do the operations, in one instance, through all of wazero's
// WASI layer.
func (g *guestFS) run(ops []op) {
	t := g.w.t
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
			in.WriteString(strings.ReplaceAll(arg, "@", guestName(g.w.base)+"/"))
		}
		in.WriteByte('\n')
	}
	runtime := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfigInterpreter().WithCompilationCache(compiled))
	defer runtime.Close(t.Context())
	wasi_snapshot_preview1.MustInstantiate(t.Context(), runtime)
	_, err = runtime.InstantiateWithConfig(t.Context(), module, wazero.NewModuleConfig().
		WithStdin(&in).WithStdout(&out).WithStderr(&stderr).
		WithFSConfig(wazero.NewFSConfig().(sysfs.FSConfig).WithSysFSMount(g.FS, "/")))
	if err != nil {
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

// plantAttacks puts into the workspace what a hostile repository might.
func plantAttacks(w *world) {
	w.link("ws/abs", "out/secret")
	w.link("ws/rel", "../out/secret")
	w.link("ws/up", "../out")
	w.link("ws/proc", "/proc/self")
	w.link("ws/good", "d/g.txt")
	w.link("ws/loop", "loop")
	w.file("out/shared", "shared")
	w.hardLink("ws/hard", "out/shared")
	if err := unix.Mkfifo(w.path("ws/fifo"), 0o666); err != nil {
		w.t.Fatal(err)
	}
}

// attacks fail in the same way on every kind of workspace, and change nothing.
var attacks = []op{
	{"read @out/secret", fails(wasiPERM)},
	{"read @ws/../out/secret", fails(wasiPERM)},
	{"read @ws/no/../../out/secret", fails(wasiPERM)},
	{"read /../../../../etc/passwd", fails(wasiPERM)}, // the guest's library cleans this one
	{"open @ws/../out/secret 0 2 0", fails(wasiPERM)},
	{"open /etc/passwd 0 2 0", fails(wasiPERM)},
	{"open ../../../../etc/passwd 0 2 0", fails(wasiPERM)},
	{`open "a\x00b" 0 2 0`, fails(wasiINVAL)},
	{`open "\xff\xfe" 0 2 0`, fails(wasiPERM)}, // wazero says this
	{`open "" 0 2 0`, fails(wasiINVAL)},
	{"read /etc/passwd", fails(wasiPERM)},
	{"read /no/such", fails(wasiPERM)},
	{"write @out/new x", fails(wasiPERM)},
	{"mkdir @out/new", fails(wasiPERM)},
	{"stat @out", fails(wasiPERM)},
	{"list @out", fails(wasiPERM)},
	{"unlink @out/secret", fails(wasiPERM)},
	{"rmdir @out/dir", fails(wasiPERM)},
	{"chtimes @out/secret", fails(wasiPERM)},
	{"rename @out/secret @out/moved", fails(wasiPERM)},
	{"renumber /", fails(wasiNOTSUP)},
}

// inside are attacks by way of a workspace that can be read.
var inside = []op{
	{"read @ws/abs", fails(wasiPERM)},
	{"read @ws/rel", fails(wasiPERM)},
	{"read @ws/up/secret", fails(wasiPERM)},
	{"list @ws/up", fails(wasiPERM)},
	{"read @ws/proc/environ", fails(wasiPERM)},
	{"readlink @ws/abs", fails(wasiPERM)},
	{"readlink @ws/rel", fails(wasiPERM)},
	{"openat @ws up/secret", fails(wasiPERM)},
	{"openat @ws ../out/secret", fails(wasiPERM)},
	{"openat @ws /etc/passwd", fails(wasiPERM)},
	{"read @ws/loop", fails(wasiLOOP)},
	{"read @ws/fifo", fails(wasiACCES)},
	{"read @ws/good", "ok deeper"},
	{"readlink @ws/good", "ok d/g.txt"},
	{"read @ws/hard", "ok shared"},
	{"openat @ws d/g.txt", "ok"},
	{"openat @ws d/../d/g.txt", "ok"},
	{"openat @ws/d nothing", fails(wasiNOENT)},
	{"read @ws/f.txt/", fails(wasiNOTDIR)},
	{"exhaust @ws/f.txt", fmt.Sprintf("errno %d %d", wasiAGAIN, defaultOpenFiles-1)}, // the preopen is one
	{"read @ws/f.txt", "ok inside"},
	{"list @ws", "ok abs d f.txt fifo good hard loop proc rel up"},
	{"readdir @ws 120", "ok 12"}, // and two dots
	{"readdir @ws 4294967295", "ok 12"},
	{"stat @ws/f.txt", "ok ---------- 6"},
}

func TestGuestWithoutMounts(t *testing.T) {
	w := newWorld(t)
	plantAttacks(w)
	g := w.open()
	before := w.state()
	g.run(append([]op{
		{"list /", "ok"},
		{"read @ws/f.txt", fails(wasiPERM)},
		{"write @ws/f.txt x", fails(wasiPERM)},
		{"list @ws", fails(wasiPERM)},
		{"mkdir /x", fails(wasiPERM)},
		{"symlink a /x", fails(wasiPERM)},
	}, attacks...))
	w.unchanged(before)
}

func TestGuestWithReadOnlyMount(t *testing.T) {
	w := newWorld(t)
	plantAttacks(w)
	g := w.open(w.ro("ws"))
	before := w.state()
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
		"setflags @ws/f.txt 0",
		"pwrite @ws/f.txt 0",
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
		ops = append(ops, op{do, fails(wasiROFS)})
	}
	g.run(ops)
	w.unchanged(before)
}

func TestGuestWithWritableMount(t *testing.T) {
	w := newWorld(t)
	plantAttacks(w)
	w.file("ws/secrets/key", canary)
	w.link("ws/sl", "secrets")
	w.file("ro/x", "x")
	g := w.openMasked([]string{"ws/secrets", "ws/later"}, w.rw("ws"), w.ro("ro"))
	before := w.state()
	g.run(append([]op{
		{"read @ws/secrets/key", fails(wasiPERM)},
		{"read @ws/sl/key", fails(wasiPERM)},
		{"mkdir @ws/later", fails(wasiPERM)},
		{"mkdirall @ws/later/x", fails(wasiPERM)},
		{"rename @ws/d @ws/later", fails(wasiPERM)},
		{"rename @ws/secrets @ws/d/s", fails(wasiPERM)},
		{"list @ws", "ok abs d f.txt fifo good hard loop proc rel sl up"},
		{"write @ws/rel x", fails(wasiPERM)},
		{"write @ws/up/new x", fails(wasiPERM)},
		{"open @ws/rel 8 2 0", fails(wasiPERM)},
		{"mkdir @ws/up/new", fails(wasiPERM)},
		{"unlink @ws/up/secret", fails(wasiPERM)},
		{"rename @ws/up/secret @ws/s", fails(wasiPERM)},
		{"rename @ws/f.txt @ws/up/s", fails(wasiPERM)},
		{"rename @ws/f.txt @out/s", fails(wasiPERM)},
		{"rename @ws/f.txt @ro/s", fails(wasiROFS)},
		{"rename @ro/x @ws/s", fails(wasiROFS)},
		{"chtimes @ws/rel", fails(wasiPERM)},
		{"symlink ../out/secret @ws/new", fails(wasiPERM)},
		{"symlink f.txt @ws/new", fails(wasiPERM)},
		{"link @ws/f.txt @ws/new", fails(wasiPERM)},
		{"write @ws/hard x", fails(wasiACCES)},
		{"append @ws/hard x", fails(wasiACCES)},
		{"open @ws/hard 8 2 0", fails(wasiACCES)},
		{"settimes @ws/hard", fails(wasiACCES)},
		{"chtimes @ws/hard", fails(wasiACCES)},
		{"truncate @ws/hard 0", fails(wasiACCES)},
		{"write @ws/fifo x", fails(wasiACCES)},
		{"pwrite @ws/f.txt 4611686018427387904", fails(wasiRANGE)},
		{"setsize @ws/f.txt 1152921504606846976", fails(wasiRANGE)},
		{"allocate @ws/f.txt 1152921504606846976", fails(wasiRANGE)},
	}, attacks...))
	w.unchanged(before)

	g.run([]op{
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
		{"mkdir @ws/n/m", fails(wasiEXIST)},
		{"rmdir @ws/n", fails(wasiNOTEMPTY)},
		{"rmdir @ws/n/m", "ok"},
		{"list @ws/n", "ok"},
		{"unlink @ws/d/x", "ok"},
		{"list @ws/d", "ok g.txt"},
	})
}

// What one guest has open is not what another may open.
func TestGuestsDoNotShareLimits(t *testing.T) {
	w := newWorld(t)
	for range 2 {
		f, err := New([]policy.Mount{w.rw("ws")}, nil, Limits{MaxOpenFiles: 20})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		(&guestFS{f, w}).run([]op{
			{"exhaust @ws/f.txt", fmt.Sprintf("errno %d 19", wasiAGAIN)},
			{"exhaust @ws/f.txt", fmt.Sprintf("errno %d 19", wasiAGAIN)},
		})
	}
}

func TestGuestOutlivesItsFiles(t *testing.T) {
	w := newWorld(t)
	g := w.open(w.rw("ws"))
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	before := w.state()
	// wazero looks at the preopen first, which must not be a panic.
	g.run([]op{
		{"read @ws/f.txt", fails(wasiBADF)},
		{"write @ws/f.txt x", fails(wasiBADF)},
	})
	w.unchanged(before)
}
