//go:build unix

package sandbox_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/tool"
	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// cached runs a module in a new sandbox over a cache directory. It returns the
// answer, how often something was compiled, and what the operator reads.
func cached(t *testing.T, dir string, mod *tool.Module) (answer string, compiled int, log string) {
	t.Helper()
	logger, said := logBuffer()
	box := sandbox.New(sandbox.Options{CacheDir: dir, Logger: logger, Compiling: func(*tool.Module) { compiled++ }})
	answer = output(t, granted(t, mod, ask{}).mustRun(t, box))
	if err := box.Close(); err != nil {
		t.Error(err)
	}
	return answer, compiled, said.String()
}

// codeFile is the file with the native code of the only module in a cache.
func codeFile(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range files {
		if filepath.Ext(f) == "" {
			out = append(out, f)
		}
	}
	if len(out) != 1 {
		t.Fatalf("the cache holds %v", files)
	}
	return out[0]
}

func TestCompiledCodeIsReused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "cache")
	mod := probe(w.ToolOptions{})
	for i, want := range []int{1, 0, 0} {
		answer, compiled, log := cached(t, dir, mod)
		if answer != "ok" || compiled != want || log != "" {
			t.Errorf("sandbox %d: answer %q, compiled %d times, want %d, log %q", i, answer, compiled, want, log)
		}
	}
	for path := range parents(dir, codeFile(t, dir)) {
		st, err := os.Lstat(path)
		if err != nil || st.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v, %v", path, st.Mode(), err)
		}
	}
}

func parents(dir, file string) map[string]bool {
	out := map[string]bool{}
	for ; len(file) >= len(dir); file = filepath.Dir(file) {
		out[file] = true
	}
	return out
}

func TestDamagedCodeIsMadeAgain(t *testing.T) {
	mod := probe(w.ToolOptions{})
	damage := func(change func([]byte) []byte) func(*testing.T, string) {
		return func(t *testing.T, file string) {
			data, err := os.ReadFile(file)
			if err == nil {
				err = os.WriteFile(file, change(data), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	flip := func(at func(n int) int) func(*testing.T, string) {
		return damage(func(b []byte) []byte { b[at(len(b))] ^= 0x10; return b })
	}
	for name, f := range map[string]func(*testing.T, string){
		"empty":                      damage(func([]byte) []byte { return nil }),
		"cut in half":                damage(func(b []byte) []byte { return b[:len(b)/2] }),
		"without its last byte":      damage(func(b []byte) []byte { return b[:len(b)-1] }),
		"longer":                     damage(func(b []byte) []byte { return append(b, 0) }),
		"text":                       damage(func([]byte) []byte { return []byte("hello") }),
		"a flipped bit in the magic": flip(func(int) int { return 0 }),
		"a flipped bit in the number of functions": flip(func(int) int { return 7 + len("v1.12.0") + 3 }),
		"a flipped bit in an offset":               flip(func(int) int { return 7 + len("v1.12.0") + 4 }),
		"a flipped bit in the code":                flip(func(n int) int { return n / 2 }),
		"without its sum": func(t *testing.T, file string) {
			if err := os.Remove(file + ".sha256"); err != nil {
				t.Fatal(err)
			}
		},
		"with a damaged sum": func(t *testing.T, file string) { mustWrite(t, file+".sha256", "0") },
		"nonsense with the right sum": func(t *testing.T, file string) {
			data := bytes.Repeat([]byte("x"), 4096)
			mustWrite(t, file, string(data))
			mustWrite(t, file+".sha256", fmt.Sprintf("%x", sha256.Sum256(data)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "cache")
			cached(t, dir, mod)
			f(t, codeFile(t, dir))
			if answer, compiled, _ := cached(t, dir, mod); answer != "ok" || compiled != 1 {
				t.Errorf("answer %q, compiled %d times", answer, compiled)
			}
			for range 2 { // the first one may have gone without the cache
				cached(t, dir, mod)
			}
			if answer, compiled, log := cached(t, dir, mod); answer != "ok" || compiled != 0 || log != "" {
				t.Errorf("in the end: answer %q, compiled %d times, log %q", answer, compiled, log)
			}
		})
	}
}

// TestACacheThatOthersCouldWriteTo: nothing of it is run, nor is anything
// compiled into it.
func TestACacheThatOthersCouldWriteTo(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "made")
	mod := probe(touchAtStart(file))
	a := ask{}
	const nobody = 65534
	chown := func(path func(dir, file string) string) func(*testing.T, string, string) {
		return func(t *testing.T, cache, code string) {
			if os.Geteuid() != 0 {
				t.Log("only root can give a file away: this case proves nothing here")
				must(t, os.Chmod(path(cache, code), 0o777))
				return
			}
			must(t, os.Lchown(path(cache, code), nobody, nobody))
		}
	}
	chmod := func(mode os.FileMode, path func(dir, file string) string) func(*testing.T, string, string) {
		return func(t *testing.T, cache, code string) { must(t, os.Chmod(path(cache, code), mode)) }
	}
	whole := func(dir, _ string) string { return dir }
	module := func(_, file string) string { return filepath.Dir(filepath.Dir(file)) }
	engine := func(_, file string) string { return filepath.Dir(file) }
	itself := func(_, file string) string { return file }
	link := func(path func(dir, file string) string) func(*testing.T, string, string) {
		return func(t *testing.T, cache, code string) {
			from := path(cache, code)
			to := filepath.Join(t.TempDir(), "elsewhere")
			must(t, os.Rename(from, to))
			must(t, os.Symlink(to, from))
		}
	}
	for name, c := range map[string]struct {
		spoil func(t *testing.T, cache, code string)
		names func(dir, file string) string
		says  string
	}{
		"the directory is a symbolic link":               {link(whole), whole, "symbolic link; remove it"},
		"the module's directory is a symbolic link":      {link(module), module, "symbolic link; remove it"},
		"the engine's directory is a symbolic link":      {link(engine), engine, "symbolic link; remove it"},
		"the code is a symbolic link":                    {link(itself), itself, "symbolic link; remove it"},
		"the directory belongs to another user":          {chown(whole), whole, ""},
		"the module's directory belongs to another user": {chown(module), module, ""},
		"the code belongs to another user":               {chown(itself), itself, ""},
		"the directory can be written to by everybody":   {chmod(0o707, whole), whole, "chmod -R go-rwx"},
		"the directory can be written to by the group":   {chmod(0o770, whole), whole, "chmod -R go-rwx"},
		"the module's directory can be written to":       {chmod(0o777, module), module, "chmod -R go-rwx"},
		"the engine's directory can be written to":       {chmod(0o777, engine), engine, "chmod -R go-rwx"},
		"the code can be written to":                     {chmod(0o666, itself), itself, "chmod -R go-rwx"},
		"there is a FIFO": {func(t *testing.T, _, code string) {
			must(t, os.Remove(code))
			must(t, syscall.Mkfifo(code, 0o600))
		}, itself, "special file; remove it"},
		"it is a file": {func(t *testing.T, cache, _ string) {
			must(t, os.RemoveAll(cache))
			mustWrite(t, cache, "")
		}, whole, "file; remove it"},
	} {
		t.Run(name, func(t *testing.T) {
			cache := filepath.Join(t.TempDir(), "cache")
			cached(t, cache, mod)
			code := codeFile(t, cache)
			path := c.names(cache, code)
			c.spoil(t, cache, code)
			box := newBox(t, sandbox.Options{CacheDir: cache, Compiling: func(*tool.Module) { t.Error("it is compiled") }})
			j := granted(t, mod, a)
			r, err := j.run(t.Context(), box)
			if err == nil {
				t.Fatalf("it ran: %s", r.Summary())
			}
			if !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("the error does not name %s and say %q: %v", path, c.says, err)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestACacheThatCannotBeWrittenTo: the call works, and it is said once for each
// module why it is slow. It runs in a process of another user, for root can
// write anywhere.
func TestACacheThatCannotBeWrittenTo(t *testing.T) {
	const inside = "STOCKADE_TEST_READ_ONLY_CACHE"
	if dir := os.Getenv(inside); dir != "" {
		for range 2 {
			answer, compiled, log := cached(t, dir, probe(w.ToolOptions{}))
			if answer != "ok" || compiled != 1 || !strings.Contains(log, "not kept") || !strings.Contains(log, dir) {
				t.Errorf("answer %q, compiled %d times, log %q", answer, compiled, log)
			}
		}
		return
	}
	// Not t.TempDir, in which another user may not look.
	home, err := os.MkdirTemp("", "stockade-cache-")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	must(t, os.Chmod(home, 0o755))
	self, err := os.Executable()
	must(t, err)
	data, err := os.ReadFile(self)
	must(t, err)
	program := filepath.Join(home, "test")
	must(t, os.WriteFile(program, data, 0o755))
	cache, tmp := filepath.Join(home, "cache"), filepath.Join(home, "tmp")
	must(t, os.Mkdir(cache, 0o500))
	must(t, os.Mkdir(tmp, 0o700))

	cmd := exec.CommandContext(t.Context(), program, "-test.run=^"+t.Name()+"$", "-test.count=1")
	cmd.Dir = home
	cmd.Env = []string{inside + "=" + cache, "TMPDIR=" + tmp, "PATH=" + os.Getenv("PATH")}
	if os.Geteuid() == 0 {
		const nobody = 65534
		must(t, os.Chown(cache, nobody, nobody))
		must(t, os.Chown(tmp, nobody, nobody))
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestManyCompileTheSameModule(t *testing.T) {
	mod := probe(w.ToolOptions{})
	t.Run("in one sandbox, once", func(t *testing.T) {
		var compiled atomic.Int32
		box := newBox(t, sandbox.Options{CacheDir: filepath.Join(t.TempDir(), "cache"), Compiling: func(*tool.Module) { compiled.Add(1) }})
		j := granted(t, mod, ask{})
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if r, err := j.run(t.Context(), box); err != nil || r.Err != nil {
					t.Errorf("Run says %v, %s", err, r.Summary())
				}
			})
		}
		wg.Wait()
		if n := compiled.Load(); n != 1 {
			t.Errorf("it was compiled %d times", n)
		}
	})
	t.Run("in several over one cache", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "cache")
		j := granted(t, mod, ask{})
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 5 {
					box := sandbox.New(sandbox.Options{CacheDir: dir})
					if r, err := j.run(t.Context(), box); err != nil || r.Err != nil {
						t.Errorf("Run says %v, %s", err, r.Summary())
					}
					_ = box.Close()
				}
			})
		}
		wg.Wait()
		if _, compiled, log := cached(t, dir, mod); compiled != 0 || log != "" {
			t.Errorf("afterwards it is compiled %d times, log %q", compiled, log)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*", "*", "*.tmp")); len(left) > 0 {
			t.Errorf("temporary files are left: %v", left)
		}
	})
	t.Run("what a crash left behind is no code", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "cache")
		cached(t, dir, mod)
		file := codeFile(t, dir)
		must(t, os.Rename(file, file+".123.tmp"))
		if answer, compiled, _ := cached(t, dir, mod); answer != "ok" || compiled != 1 {
			t.Errorf("answer %q, compiled %d times", answer, compiled)
		}
		if st, err := os.Lstat(file); err != nil || st.Mode().Type() != fs.FileMode(0) {
			t.Error(err)
		}
	})
}
