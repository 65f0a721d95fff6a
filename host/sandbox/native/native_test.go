package native_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/stockade-dev/stockade/host/sandbox/native"
	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// In another version the engine may read code in another way: see EngineVersion.
func TestTheEngineIsTheOneInGoMod(t *testing.T) {
	mod, err := os.ReadFile(filepath.Join("..", "..", "..", "go.mod"))
	must(t, err)
	m := regexp.MustCompile(`github.com/tetratelabs/wazero (v\S+)`).FindSubmatch(mod)
	if m == nil || string(m[1]) != native.EngineVersion {
		t.Errorf("go.mod has %q, this package was written for %s", m, native.EngineVersion)
	}
	if got := native.LinkedVersion(); !strings.HasPrefix(got, native.EngineVersion) {
		t.Errorf("this program has %s", got)
	}
	if !native.Supported() {
		t.Error("the engine does not take our files")
	}
}

// adder returns a module with a function that adds its parameters, and a number of others.
func adder(more int) []byte {
	b := w.New()
	b.Memory(1, 1)
	b.Func("add", []w.ValType{w.I32, w.I32}, []w.ValType{w.I32}, nil, w.LocalGet(0), w.LocalGet(1), w.I32Add())
	for range more {
		b.Func("", []w.ValType{w.I32}, nil, nil, bytes.Repeat(slices.Concat(w.LocalGet(0), w.I32Const(1), w.I32Store(0)), 500))
	}
	return b.Bytes()
}

// fileVersion has the engine compile a module, and returns its file and ours.
func fileVersion(t testing.TB, code []byte) (theirs, ours string) {
	t.Helper()
	ctx, dir := context.Background(), t.TempDir()
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	must(t, err)
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler().WithCompilationCache(cache))
	_, err = rt.CompileModule(ctx, code)
	must(t, errors.Join(err, rt.Close(ctx), cache.Close(ctx)))
	files, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the engine wrote %v, %v", files, err)
	}
	ours = filepath.Join(dir, "native")
	must(t, align(ours, files[0]))
	return files[0], ours
}

func align(to, from string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	return errors.Join(native.Align(out, f), out.Close())
}

func open(t testing.TB, name string) *native.File {
	t.Helper()
	f, err := os.Open(name)
	must(t, err)
	file, err := native.Open(f)
	must(t, err)
	t.Cleanup(func() { file.Close() })
	return file
}

var errNotThere = errors.New("there is no code")

// run loads the code of a module, which it does not compile, and adds with it.
func run(name string, f *native.File, code []byte, while func()) (uint64, error) {
	ctx := context.Background()
	cache, asked := native.NewCache(name, f)
	defer cache.Close(ctx)
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler().WithCompilationCache(cache))
	defer rt.Close(ctx)
	ended, end := context.WithCancel(ctx)
	end()
	if _, err := rt.CompileModule(experimental.WithCompilationWorkers(ended, 2), code); err != nil {
		if errors.Is(err, context.Canceled) && asked() != "" {
			err = errNotThere
		}
		return 0, err
	}
	mod, err := rt.Instantiate(ctx, code)
	if err != nil {
		return 0, err
	}
	while()
	sum, err := mod.ExportedFunction("add").Call(ctx, 2, 3)
	if err != nil {
		return 0, err
	}
	return sum[0], nil
}

func TestCodeRuns(t *testing.T) {
	for name, code := range map[string][]byte{"less than a page": adder(0), "many pages": adder(100)} {
		t.Run(name, func(t *testing.T) {
			theirs, ours := fileVersion(t, code)
			sum, err := run(filepath.Base(theirs), open(t, ours), code, func() { checkMapped(t, ours) })
			if sum != 5 || err != nil {
				t.Errorf("got %d, %v", sum, err)
			}
		})
	}
}

func TestOnlyTheModuleGetsTheCode(t *testing.T) {
	code := adder(0)
	theirs, ours := fileVersion(t, code)
	name, file := filepath.Base(theirs), open(t, ours)
	nothing := func() { t.Error("it is loaded") }
	if _, err := run(name, file, adder(1), nothing); !errors.Is(err, errNotThere) {
		t.Errorf("another module: %v", err)
	}
	if _, err := run("", file, code, nothing); !errors.Is(err, errNotThere) {
		t.Errorf("another name: %v", err)
	}
	if _, err := run(name, nil, code, nothing); !errors.Is(err, errNotThere) {
		t.Errorf("no file: %v", err)
	}
}

// The hash of a cache covers all that the engine does not check.
func TestRestIsAllButTheCode(t *testing.T) {
	theirs, ours := fileVersion(t, adder(0))
	whole, err := os.ReadFile(theirs)
	must(t, err)
	rest := open(t, ours).HeadAndTail()
	at := bytes.Index(whole, rest[:len(rest)-30])
	if at != 0 || !bytes.HasSuffix(whole, rest[len(rest)-5:]) || len(rest) >= len(whole) {
		t.Errorf("%d of %d bytes: %x", len(rest), len(whole), rest)
	}
	size := binary.LittleEndian.Uint64(whole[headLen(whole)-8:])
	if len(whole)-len(rest) != int(size) {
		t.Errorf("%d bytes are not in it, the code has %d", len(whole)-len(rest), size)
	}
}

func headLen(b []byte) int {
	at := 7 + int(b[6]) + 4
	return at + 8*int(binary.LittleEndian.Uint32(b[at-4:])) + 8
}

// Files that are no native code, or not all of it, are errors in time.
func TestWhatIsNoNativeCode(t *testing.T) {
	code := adder(2)
	theirs, ours := fileVersion(t, code)
	f, err := os.OpenFile(ours, os.O_RDWR, 0)
	must(t, err)
	must(t, f.Truncate(64<<10+1000)) // within the code
	if _, err := native.Open(f); err == nil {
		t.Error("half of one is opened")
	}
	whole, err := os.ReadFile(theirs)
	must(t, err)
	head := headLen(whole)
	changed := func(at int, to ...byte) []byte {
		b := bytes.Clone(whole)
		copy(b[at:], to)
		return b
	}
	for name, content := range map[string][]byte{
		"empty":                       nil,
		"half the magic":              whole[:3],
		"another magic":               changed(0, 'w'),
		"no number of functions":      whole[:10],
		"half the offsets":            whole[:head-20],
		"no length":                   whole[:head-8],
		"no code":                     whole[:head],
		"half the code":               whole[:(head+len(whole))/2],
		"more functions than any has": changed(head-8-8*3-4, 0xff, 0xff, 0xff, 0xff),
		"more code than there is":     changed(head-8, 0xff, 0xff, 0xff, 0xff),
		"more code than fits a disk":  changed(head-8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f),
		"a negative length":           changed(head-8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
			must(t, os.WriteFile(from, content, 0o600))
			if err := align(to, from); err == nil {
				t.Error("it is aligned")
			}
		})
	}
}

// FuzzOpen: any file is opened or refused, and the engine gets no more than the file has.
func FuzzOpen(f *testing.F) {
	_, ours := fileVersion(f, adder(1))
	whole, err := os.ReadFile(ours)
	must(f, err)
	f.Add(whole)
	f.Add(whole[:64<<10])
	f.Add([]byte("WAZEVO\x03dev\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, content []byte) {
		name := filepath.Join(t.TempDir(), "native")
		must(t, os.WriteFile(name, content, 0o600))
		f, err := os.Open(name)
		must(t, err)
		file, err := native.Open(f)
		if err != nil {
			if _, err := f.Seek(0, io.SeekStart); !errors.Is(err, os.ErrClosed) {
				t.Error("it stays open")
			}
			return
		}
		defer file.Close()
		if len(file.HeadAndTail()) > len(content) {
			t.Errorf("%d bytes of %d", len(file.HeadAndTail()), len(content))
		}
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
