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
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stockade-dev/stockade/host/jail"
	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/tool"
	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// cached runs a module in a new sandbox over a cache directory. It returns the answer, the
// number of compilations, and the operator's log.
func cached(t *testing.T, dir string, mod *tool.Module) (answer string, compiled int, log string) {
	t.Helper()
	logger, said := logBuffer()
	box := sandbox.New(sandbox.Options{CacheDir: dir, Spawn: jail.RunHelper, Logger: logger, OnCompile: func(*tool.Module) { compiled++ }})
	answer = output(t, granted(t, mod, ask{}).mustRun(t, box))
	if err := box.Close(); err != nil {
		t.Error(err)
	}
	return answer, compiled, said.String()
}

// codeFile returns the file with the native code of the only module in a cache.
func codeFile(t *testing.T, dir string) string { return entryOf(t, dir, "") }

// entryOf returns the file with the native code of the only module in a cache; an entry that
// begins with but does not count.
func entryOf(t *testing.T, dir, but string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "native"))
	must(t, err)
	files = slices.DeleteFunc(files, func(f string) bool { return but != "" && strings.HasPrefix(f, filepath.Join(dir, but)) })
	if len(files) != 1 {
		t.Fatalf("the cache holds %v", files)
	}
	return files[0]
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

// If the engine cannot use our files it has its own, which are hashed completely.
func TestCompiledCodeInTheEnginesFiles(t *testing.T) {
	defer sandbox.WithoutOurFiles()()
	dir := filepath.Join(t.TempDir(), "cache")
	mod := probe(w.ToolOptions{})
	try := func(title string, compiles int) {
		t.Helper()
		answer, compiled, log := cached(t, dir, mod)
		if answer != "ok" || compiled != compiles || (log != "") != (title == "damaged") {
			t.Errorf("%s: answer %q, compiled %d times, want %d, log %q", title, answer, compiled, compiles, log)
		}
	}
	try("new", 1)
	try("again", 0)
	files, err := filepath.Glob(filepath.Join(dir, "*", "*", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the engine has %v, %v", files, err)
	}
	code, err := os.ReadFile(files[0])
	must(t, err)
	code[len(code)/2] ^= 1
	must(t, os.WriteFile(files[0], code, 0o600))
	try("damaged", 1)
	try("mended", 0)
}

// A file that is cut off while it is loaded, or that the disk cannot read, is an error and
// does not end the process.
func TestCodeThatIsGoneIsAnError(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	cached(t, dir, probe(w.ToolOptions{}))
	code := codeFile(t, dir)
	if err := sandbox.LinkAfter(filepath.Dir(code), func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := sandbox.LinkAfter(filepath.Dir(code), func() error { return os.Truncate(code, 0) }); err == nil {
		t.Error("it is loaded")
	}
}

func parents(dir, file string) map[string]bool {
	out := map[string]bool{}
	for ; len(file) >= len(dir); file = filepath.Dir(file) {
		out[file] = true
	}
	return out
}

// TestDamagedCodeIsMadeAgain: whatever happens to an entry, the answer is right, and the
// entry is made again once and then works like new.
func TestDamagedCodeIsMadeAgain(t *testing.T) {
	mod := probe(w.ToolOptions{})
	type damage func(t *testing.T, entry, native string)
	change := func(name string, f func([]byte) []byte) damage {
		return func(t *testing.T, entry, native string) {
			file := native
			if name != "native" {
				file = filepath.Join(entry, name)
			}
			data, err := os.ReadFile(file)
			must(t, err)
			must(t, os.WriteFile(file, f(data), 0o600))
		}
	}
	flip := func(name string, at func(n int) int) damage {
		return change(name, func(b []byte) []byte { b[at(len(b))] ^= 0x10; return b })
	}
	// Also with sums that fit: so little of it is believed.
	summed := func(name string, f func([]byte) []byte) damage {
		return func(t *testing.T, entry, native string) {
			before, err := os.ReadFile(native)
			must(t, err)
			if name != "native" {
				before, err = os.ReadFile(filepath.Join(entry, name))
				must(t, err)
			}
			after := f(bytes.Clone(before))
			change(name, func([]byte) []byte { return after })(t, entry, native)
			change("sums", func(b []byte) []byte {
				return bytes.ReplaceAll(b, fmt.Appendf(nil, "%x", sha256.Sum256(before)), fmt.Appendf(nil, "%x", sha256.Sum256(after)))
			})(t, entry, native)
		}
	}
	remove := func(name string) damage {
		return func(t *testing.T, entry, _ string) { must(t, os.RemoveAll(filepath.Join(entry, name))) }
	}
	add := func(name string) damage {
		return func(t *testing.T, entry, _ string) { mustWrite(t, filepath.Join(entry, name), "extra") }
	}
	first, half, last := func(int) int { return 0 }, func(n int) int { return n / 2 }, func(n int) int { return n - 1 }
	cut := func(b []byte) []byte { return b[:len(b)/2] }
	none := func([]byte) []byte { return nil }
	longer := func(b []byte) []byte { return append(b, 0) }
	text := func([]byte) []byte { return bytes.Repeat([]byte("x"), 4096) }
	const version = len("WAZEVO") + 1
	for name, spoil := range map[string]damage{
		"native code that is empty":                        change("native", none),
		"native code cut in half":                          change("native", cut),
		"native code without its last byte":                change("native", func(b []byte) []byte { return b[:len(b)-1] }),
		"native code with a byte more":                     change("native", longer),
		"native code that is text":                         change("native", text),
		"a flipped bit in the magic":                       flip("native", first),
		"a flipped bit in the version":                     flip("native", func(int) int { return version + 1 }),
		"a flipped bit in the number of functions":         flip("native", func(int) int { return version + len("v1.12.0") + 3 }),
		"a flipped bit in an offset":                       flip("native", func(int) int { return version + len("v1.12.0") + 4 }),
		"a flipped bit in the code":                        flip("native", half),
		"a flipped last bit":                               flip("native", last),
		"a flipped bit in the image":                       flip("image", half),
		"a flipped bit in the state":                       flip("state", half),
		"an image cut in half":                             change("image", cut),
		"no image":                                         remove("image"),
		"no state":                                         remove("state"),
		"a state that is text, with the sum that it needs": summed("state", text),
		"an empty image, with the sum that it needs":       summed("image", func([]byte) []byte { return nil }),
		"no native code":                                   func(t *testing.T, _, native string) { must(t, os.Remove(native)) },
		"native code under another name":                   func(t *testing.T, _, native string) { must(t, os.Rename(native, native+"0")) },
		"another version's native code with the right sum": summed("native", func(b []byte) []byte { b[version+1] ^= 1; return b }),
		"empty native code with the right sum":             summed("native", none),
		"half the native code with the right sum":          summed("native", cut),
		"text as native code with the right sum":           summed("native", text),
		"a module that is empty":                           change("module.wasm", none),
		"a module cut in half":                             change("module.wasm", cut),
		"a module with a byte more":                        change("module.wasm", longer),
		"a flipped bit in the module":                      flip("module.wasm", half),
		"a flipped first bit in the module":                flip("module.wasm", first),
		"another module with the right sum":                summed("module.wasm", func([]byte) []byte { return w.Tool(w.ToolOptions{Call: w.EchoArgs()}) }),
		"text as the module with the right sum":            summed("module.wasm", text),
		"no module":                                        remove("module.wasm"),
		"no sums":                                          remove("sums"),
		"empty sums":                                       change("sums", none),
		"sums cut in half":                                 change("sums", cut),
		"sums with a byte more":                            change("sums", longer),
		"a flipped bit in the entry's name":                flip("sums", func(int) int { return len("entry ") + 5 }),
		"a flipped bit in a sum":                           flip("sums", half),
		"one more file":                                    add("more"),
		"one more file beside the native code":             func(t *testing.T, _, native string) { mustWrite(t, native+".1.tmp", "") },
		"one more directory with a file":                   add("more/used"),
		"nothing at all": func(t *testing.T, entry, _ string) {
			must(t, os.RemoveAll(entry))
			must(t, os.Mkdir(entry, 0o700))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "cache")
			cached(t, dir, mod)
			native := codeFile(t, dir)
			spoil(t, filepath.Dir(native), native)
			if answer, compiled, log := cached(t, dir, mod); answer != "ok" || compiled != 1 || !strings.Contains(log, "damaged") {
				t.Errorf("answer %q, compiled %d times, log %q", answer, compiled, log)
			}
			if answer, compiled, log := cached(t, dir, mod); answer != "ok" || compiled != 0 || log != "" {
				t.Errorf("in the end: answer %q, compiled %d times, log %q", answer, compiled, log)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
				t.Errorf("the cache holds %v, %v", left, err)
			}
		})
	}
	t.Run("the entry of another module", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "cache")
		cached(t, dir, mod)
		entry := filepath.Dir(codeFile(t, dir))
		must(t, os.Rename(entry, filepath.Join(dir, "aside")))
		other := probe(w.ToolOptions{Call: w.ReturnOK("other")})
		cached(t, dir, other)
		wrong := filepath.Dir(entryOf(t, dir, "aside"))
		must(t, os.RemoveAll(wrong))
		must(t, os.Rename(filepath.Join(dir, "aside"), wrong))
		if answer, compiled, _ := cached(t, dir, other); answer != "other" || compiled != 1 {
			t.Errorf("answer %q, compiled %d times", answer, compiled)
		}
	})
}

// TestACacheThatOthersCouldWriteTo: nothing of it is run, nor is anything
// compiled into it.
func TestACacheThatOthersCouldWriteTo(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "made")
	mod := probe(touches(file))
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
	module := func(_, file string) string { return filepath.Dir(file) }
	itself := func(_, file string) string { return file }
	wasmOf := func(_, file string) string { return filepath.Join(filepath.Dir(file), "module.wasm") }
	sumsOf := func(_, file string) string { return filepath.Join(filepath.Dir(file), "sums") }
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
		"the code is a symbolic link":                    {link(itself), itself, "symbolic link; remove it"},
		"the directory belongs to another user":          {chown(whole), whole, ""},
		"the module's directory belongs to another user": {chown(module), module, ""},
		"the code belongs to another user":               {chown(itself), itself, ""},
		"the directory can be written to by everybody":   {chmod(0o707, whole), whole, "chmod -R go-rwx"},
		"the directory can be written to by the group":   {chmod(0o770, whole), whole, "chmod -R go-rwx"},
		"the module's directory can be written to":       {chmod(0o777, module), module, "chmod -R go-rwx"},
		"the module's directory, by the group":           {chmod(0o770, module), module, "chmod -R go-rwx"},
		"the code can be written to":                     {chmod(0o666, itself), itself, "chmod -R go-rwx"},
		"there is a FIFO": {func(t *testing.T, _, code string) {
			must(t, os.Remove(code))
			must(t, syscall.Mkfifo(code, 0o600))
		}, itself, "special file; remove it"},
		"the code has another name": {func(t *testing.T, _, code string) {
			must(t, os.Link(code, filepath.Join(t.TempDir(), "elsewhere")))
		}, itself, "another name"},
		"the module has another name": {func(t *testing.T, _, code string) {
			must(t, os.Link(wasmOf("", code), filepath.Join(t.TempDir(), "elsewhere")))
		}, wasmOf, "another name"},
		"the module can be written to":  {chmod(0o666, wasmOf), wasmOf, "chmod -R go-rwx"},
		"the module is a symbolic link": {link(wasmOf), wasmOf, "symbolic link; remove it"},
		"the sums can be written to":    {chmod(0o622, sumsOf), sumsOf, "chmod -R go-rwx"},
		"the sums are a symbolic link":  {link(sumsOf), sumsOf, "symbolic link; remove it"},
		"a file that does not belong there can be written to": {func(t *testing.T, _, code string) {
			mustWrite(t, code+"2", "")
			must(t, os.Chmod(code+"2", 0o666))
		}, itself, "chmod -R go-rwx"},
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
			box := newBox(t, sandbox.Options{CacheDir: cache, OnCompile: func(*tool.Module) { t.Error("it is compiled") }})
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

// TestACacheThatCannotBeWrittenTo: the call works, with one warning for each module. The test
// runs in a process of another user, because root can write anywhere.
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
		box := newBox(t, sandbox.Options{CacheDir: filepath.Join(t.TempDir(), "cache"), OnCompile: func(*tool.Module) { compiled.Add(1) }})
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
					box := sandbox.New(sandbox.Options{CacheDir: dir, Spawn: jail.RunHelper})
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
