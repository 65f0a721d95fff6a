package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/stockade-dev/stockade/host/jail"
	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/sandbox/admit"
	"github.com/stockade-dev/stockade/host/services"
	"github.com/stockade-dev/stockade/host/tool"
	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// refused checks that an error is a refusal, and returns it.
func refused(t *testing.T, err error) *admit.RefusedError {
	t.Helper()
	var r *admit.RefusedError
	if !errors.As(err, &r) {
		t.Fatalf("the module is not refused: %v", err)
	}
	return r
}

// TestWhatAChildEndsWith: each exit code is assigned to the right fault, and its message fits
// on a terminal.
func TestWhatAChildEndsWith(t *testing.T) {
	exit := func(n int) *int { return &n }
	killed := exit(int(syscall.SIGKILL))
	code := w.Tool(w.ToolOptions{})
	for name, c := range map[string]struct {
		end  services.CommandResult
		says []string
	}{
		"the compiler refuses it": {services.CommandResult{Code: exit(65), Stdout: []byte("invalid \x1b[31mfunction\u202e[3]\nmore")},
			[]string{"it does not compile: invalid \ufffd[31mfunction\ufffd[3]"}},
		"it says far too much": {services.CommandResult{Code: exit(65), Stdout: bytes.Repeat([]byte("x"), 100_000)}, []string{"xxx ..."}},
		"it says nothing":      {services.CommandResult{Code: exit(65)}, []string{"it does not compile"}},
		"all processor time is used": {services.CommandResult{Signal: killed, CPU: 5 * time.Second},
			[]string{"5s of processor time", "split its largest functions"}},
		"Go gets no memory":  {services.CommandResult{Code: exit(2), Stderr: []byte("fatal error: runtime: out of memory\n\nruntime stack:")}, []string{"1024 MiB of memory"}},
		"Go gets no address": {services.CommandResult{Code: exit(2), Stderr: []byte("fatal error: runtime: cannot allocate memory\n")}, []string{"1024 MiB of memory"}},
		"Go gets no thread":  {services.CommandResult{Signal: exit(6), Stderr: []byte("runtime/cgo: pthread_create failed: Resource temporarily unavailable\n")}, []string{"of memory"}},
		"the collector gets none": {services.CommandResult{Code: exit(2), Stderr: []byte("SIGSEGV: segmentation violation\nPC=0x43989d m=3 sigcode=1 addr=0x0\n\n" +
			"goroutine 0 gp=0x2ea2a8d530e0 m=3 mp=0x2ea2a8da3008 [idle]:\nruntime.(*spanQueue).tryDrain(0x7fa100000400?)\n")}, []string{"1024 MiB of memory"}},
		"C code crashes": {services.CommandResult{Code: exit(2), Stderr: []byte("SIGSEGV: segmentation violation\nPC=0x43989d m=3 sigcode=1 addr=0x0\n" +
			"signal arrived during cgo execution\n\ngoroutine 0 gp=0x2 m=3 mp=0x2 [idle]:\nruntime.x()\n")}, []string{"down (SIGSEGV"}},
		"its code is too large": {services.CommandResult{Code: exit(73)}, []string{"64 MiB of native code"}},
		"it ends itself":        {services.CommandResult{Code: exit(75), CPU: 5 * time.Second}, []string{"5s of processor time"}},
		"it panics after long":  {services.CommandResult{Code: exit(2), CPU: 5 * time.Second, Stderr: []byte("panic: BUG")}, []string{"down (panic: BUG)"}},
		"it panics":             {services.CommandResult{Code: exit(2), Stderr: []byte("panic: BUG: \x1b[2J\n\ngoroutine 1")}, []string{"the compiler down (panic: BUG: \ufffd[2J)"}},
		"it is killed":          {services.CommandResult{Signal: killed, CPU: time.Second}, []string{"signal 9"}},
		"it ends oddly":         {services.CommandResult{Code: exit(1)}, []string{"exit code 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			box := newBox(t, sandbox.Options{Spawn: func(context.Context, string, ...string) (services.CommandResult, error) {
				asked++
				return c.end, nil
			}})
			sandbox.SetLimits(box, 5*time.Second, 1<<30, 64<<20)
			j := granted(t, module(code), ask{})
			r := j.mustRun(t, box)
			failure(t, r, tool.CodeNotAdmitted, tool.ValidationFailed, c.says[0])
			for _, says := range c.says {
				if !strings.Contains(r.Err.Message, says) {
					t.Errorf("%q does not say %q", r.Err.Message, says)
				}
			}
			if len(r.Err.Message) > 600 || strings.ContainsFunc(r.Err.Message, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("not fit for a terminal: %q", r.Err.Message)
			}
			j.mustRun(t, box)
			if asked != 1 {
				t.Errorf("it was compiled %d times, to be refused each time", asked)
			}
		})
	}
}

// TestAChildThatCannotWork is not the module's fault: the call fails with an error, and the
// next call tries again.
func TestAChildThatCannotWork(t *testing.T) {
	exit := func(n int) *int { return &n }
	for name, c := range map[string]struct {
		end  services.CommandResult
		err  error
		says string
	}{
		"it is not started":   {services.CommandResult{}, errors.New("resource temporarily unavailable"), "resource temporarily unavailable"},
		"the disk is full":    {services.CommandResult{Code: exit(74), Stdout: []byte("write x: no space left on device\n")}, nil, "no space left on device"},
		"it leaves no code":   {services.CommandResult{Code: exit(0)}, nil, "instead of native code"},
		"it has other orders": {services.CommandResult{Code: exit(74), Stdout: []byte("7 arguments, want 6\n")}, nil, "7 arguments, want 6"},
	} {
		t.Run(name, func(t *testing.T) {
			works := false
			logger, log := logBuffer()
			box := newBox(t, sandbox.Options{CacheDir: filepath.Join(t.TempDir(), "cache"), Logger: logger,
				Spawn: func(ctx context.Context, dir string, args ...string) (services.CommandResult, error) {
					if works {
						return jail.RunHelper(ctx, dir, args...)
					}
					return c.end, c.err
				}})
			j := granted(t, probe(w.ToolOptions{}), ask{})
			if r, err := j.run(t.Context(), box); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, %s", err, r.Summary())
			}
			works = true
			if got := output(t, j.mustRun(t, box)); got != "ok" {
				t.Errorf("then it answers %q; log: %s", got, log)
			}
		})
	}
}

// TestWhatAChildLeavesIsNotBelieved: only the native code of the given module is loaded, and
// nothing else gets into the cache.
func TestWhatAChildLeavesIsNotBelieved(t *testing.T) {
	native := func(t *testing.T, dir string) string {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(dir, "*", "*"))
		if err != nil || len(files) != 1 {
			t.Fatalf("the child left %v, %v", files, err)
		}
		return files[0]
	}
	write := func(t *testing.T, file, content string) { mustWrite(t, file, content) }
	for name, spoil := range map[string]func(t *testing.T, dir string){
		"garbage":                 func(t *testing.T, dir string) { write(t, native(t, dir), strings.Repeat("garbage ", 1000)) },
		"nothing":                 func(t *testing.T, dir string) { write(t, native(t, dir), "") },
		"code without its end":    func(t *testing.T, dir string) { truncate(t, native(t, dir), -1) },
		"code without its head":   func(t *testing.T, dir string) { truncate(t, native(t, dir), 10) },
		"code of another version": func(t *testing.T, dir string) { patch(t, native(t, dir), 8, '9') },
		"damaged code":            func(t *testing.T, dir string) { patch(t, native(t, dir), -100, '9') },
		"code by another name":    func(t *testing.T, dir string) { _ = os.Rename(native(t, dir), native(t, dir)+"0") },
		"code where ours lies":    func(t *testing.T, dir string) { _ = os.Rename(native(t, dir), filepath.Join(dir, "native")) },
		"a state in its place":    func(t *testing.T, dir string) { _ = os.Rename(native(t, dir), filepath.Join(dir, "state")) },
		"an image in its place":   func(t *testing.T, dir string) { _ = os.Rename(native(t, dir), filepath.Join(dir, "image")) },
		"one more file":           func(t *testing.T, dir string) { write(t, filepath.Join(dir, "more"), "") },
		"one more code":           func(t *testing.T, dir string) { write(t, native(t, dir)+"0", "") },
		"no module":               func(t *testing.T, dir string) { _ = os.Remove(filepath.Join(dir, "module.wasm")) },
		"another module":          func(t *testing.T, dir string) { write(t, filepath.Join(dir, "module.wasm"), "other") },
		"a link as the code": func(t *testing.T, dir string) {
			file := native(t, dir)
			elsewhere := filepath.Join(t.TempDir(), "elsewhere")
			if err := errors.Join(os.Rename(file, elsewhere), os.Symlink(elsewhere, file)); err != nil {
				t.Fatal(err)
			}
		},
		"a second name for the code": func(t *testing.T, dir string) {
			if err := os.Link(native(t, dir), filepath.Join(t.TempDir(), "elsewhere")); err != nil {
				t.Fatal(err)
			}
		},
		"code that others can write": func(t *testing.T, dir string) {
			if err := os.Chmod(native(t, dir), 0o666); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			cache := filepath.Join(t.TempDir(), "cache")
			asked := 0
			box := newBox(t, sandbox.Options{CacheDir: cache, Spawn: func(ctx context.Context, dir string, args ...string) (services.CommandResult, error) {
				asked++
				ended, err := jail.RunHelper(ctx, dir, args...)
				spoil(t, dir)
				return ended, err
			}})
			j := granted(t, probe(w.ToolOptions{}), ask{})
			r, err := j.run(t.Context(), box)
			if err == nil {
				t.Fatalf("it ran: %s", r.Summary())
			}
			if asked == 0 || asked > 2 {
				t.Errorf("%d children were started", asked)
			}
			if left, err := os.ReadDir(cache); err != nil || len(left) > 0 {
				t.Errorf("the cache holds %v, %v", left, err)
			}
		})
	}
}

func truncate(t *testing.T, file string, size int64) {
	t.Helper()
	st, err := os.Stat(file)
	if err == nil && size < 0 {
		size += st.Size()
	}
	if err == nil {
		err = os.Truncate(file, size)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func patch(t *testing.T, file string, at int, b byte) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err == nil {
		data[(at+len(data))%len(data)] ^= b
		err = os.WriteFile(file, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestWithoutASpawner: only modules of the program are compiled, because nothing could stop
// the compilation of others.
func TestWithoutASpawner(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "cache")
	compiled := 0
	open := func() *sandbox.Sandbox {
		box := sandbox.New(sandbox.Options{CacheDir: cache, OnCompile: func(*tool.Module) { compiled++ }})
		t.Cleanup(func() { _ = box.Close() })
		return box
	}
	stranger, ours := probe(w.ToolOptions{}), probe(w.ToolOptions{Call: w.ReturnOK("ours")})
	ours.Origin = tool.OriginBuiltin
	r := granted(t, stranger, ask{}).mustRun(t, open())
	failure(t, r, tool.CodeNotAdmitted, tool.ValidationFailed, "no separate process")
	if compiled > 0 {
		t.Error("it is compiled all the same")
	}
	for range 2 {
		if got := output(t, granted(t, ours, ask{}).mustRun(t, open())); got != "ours" {
			t.Errorf("our own answers %q", got)
		}
	}
	bad := probe(w.ToolOptions{Call: w.Drop()})
	bad.Origin = tool.OriginBuiltin
	failure(t, granted(t, bad, ask{}).mustRun(t, open()), tool.CodeNotAdmitted, tool.ValidationFailed, "does not compile")
	if compiled != 2 {
		t.Errorf("%d modules were compiled", compiled)
	}
	// What was compiled in a child before needs no other.
	output(t, granted(t, stranger, ask{}).mustRun(t, newBox(t, sandbox.Options{CacheDir: cache})))
	output(t, granted(t, stranger, ask{}).mustRun(t, open()))
}

// TestABuiltInModuleHasTime: it is compiled even if that takes a thousand times as long as on
// a common machine. A stranger's module is not.
func TestABuiltInModuleHasTime(t *testing.T) {
	const long = 1000 * 5 * time.Second
	var job []string
	var wall time.Duration
	box := newBox(t, sandbox.Options{Spawn: func(ctx context.Context, dir string, args ...string) (services.CommandResult, error) {
		job = args[1:]
		if end, ok := ctx.Deadline(); ok {
			wall = time.Until(end)
		}
		return jail.RunHelper(ctx, dir, args...)
	}})
	stranger, ours := probe(w.ToolOptions{}), probe(w.ToolOptions{Call: w.ReturnOK("ours")})
	ours.Origin = tool.OriginBuiltin
	var others [2][]string
	for i, mod := range []*tool.Module{stranger, ours} {
		output(t, granted(t, mod, ask{}).mustRun(t, box))
		const cpu = 1
		n, err := strconv.ParseInt(job[cpu], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if patient := mod == ours; (time.Duration(n) >= long) != patient || (wall >= long) != patient {
			t.Errorf("module %d may take %s of processor time, and live for %s", i, time.Duration(n), wall)
		}
		others[i] = job[cpu+1:]
	}
	if !slices.Equal(others[0], others[1]) {
		t.Errorf("the other limits differ: %v, %v", others[0], others[1])
	}
}

// TestALargeModuleTakesAPersonsWord: nothing is compiled without it.
func TestALargeModuleTakesAPersonsWord(t *testing.T) {
	large := w.Tool(w.ToolOptions{
		Data:      []w.Segment{{Offset: dataAt, Bytes: make([]byte, admit.LargeBytes)}},
		MemoryMin: (dataAt + admit.LargeBytes) >> 16,
	})
	j := granted(t, module(large), ask{})
	box := newBox(t, sandbox.Options{OnCompile: func(*tool.Module) { t.Error("it is compiled") }})
	failure(t, j.mustRun(t, box), tool.CodeNotAdmitted, tool.ValidationFailed, "above 16 MiB")
	if got := output(t, j.mustRun(t, newBox(t, sandbox.Options{AllowLarge: true}))); got != "ok" {
		t.Errorf("with it: %q", got)
	}
}

// TestNobodyWaitsForAModule: the child is killed when the last caller has left, and not
// before. A later caller compiles again.
func TestNobodyWaitsForAModule(t *testing.T) {
	started, killed := make(chan struct{}, 9), make(chan error, 9)
	var wait atomic.Bool
	wait.Store(true)
	goOn := make(chan struct{})
	box := newBox(t, sandbox.Options{Spawn: func(ctx context.Context, dir string, args ...string) (services.CommandResult, error) {
		started <- struct{}{}
		if wait.Load() {
			select {
			case <-ctx.Done():
				killed <- ctx.Err()
				n := int(syscall.SIGKILL)
				return services.CommandResult{Signal: &n}, nil
			case <-goOn:
			}
		}
		return jail.RunHelper(ctx, dir, args...)
	}})
	j := granted(t, probe(w.ToolOptions{}), ask{})
	call := func() (leave context.CancelFunc, result chan tool.Result) {
		ctx, cancel := context.WithCancel(t.Context())
		result = make(chan tool.Result, 1)
		go func() {
			r, err := j.run(ctx, box)
			if err != nil {
				t.Error(err)
			}
			result <- r
		}()
		return cancel, result
	}
	cancelled := func(r tool.Result) {
		t.Helper()
		if r.Err == nil || r.Err.Code != tool.CodeCancelled {
			t.Errorf("a caller that left got %s", r.Summary())
		}
	}

	leave, result := call()
	<-started
	leave()
	cancelled(<-result)
	if why := <-killed; errors.Is(why, context.DeadlineExceeded) {
		t.Errorf("it was not killed before its time was up: %v", why)
	}

	leaveFirst, first := call()
	<-started
	leaveSecond, second := call()
	for sandbox.Waiting(box, j.mod) < 2 {
		select {
		case r := <-second:
			t.Fatalf("the second caller does not wait: %s", r.Summary())
		default:
		}
	}
	leaveFirst()
	cancelled(<-first)
	select {
	case <-killed:
		t.Error("the first caller decided for the second")
	default:
	}
	close(goOn)
	output(t, <-second)
	leaveSecond()
	wait.Store(false)
	_, again := call()
	output(t, <-again)
	if n := len(started); n > 0 {
		t.Errorf("%d more children were started", n)
	}
}

// TestCloseStopsCompiling: Close returns when the child has ended.
func TestCloseStopsCompiling(t *testing.T) {
	started := make(chan struct{})
	var ended atomic.Bool
	box := sandbox.New(sandbox.Options{Spawn: func(ctx context.Context, dir string, args ...string) (services.CommandResult, error) {
		close(started)
		<-ctx.Done()
		time.AfterFunc(10*time.Millisecond, func() { ended.Store(true) })
		for !ended.Load() {
			runtime.Gosched()
		}
		n := int(syscall.SIGKILL)
		return services.CommandResult{Signal: &n}, nil
	}})
	j := granted(t, probe(w.ToolOptions{}), ask{})
	result := make(chan error)
	go func() {
		_, err := j.run(t.Context(), box)
		result <- err
	}()
	<-started
	if err := box.Close(); err != nil {
		t.Error(err)
	}
	if !ended.Load() {
		t.Error("the child goes on")
	}
	if err := <-result; err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("the call ends with %v", err)
	}
}

// TestProgressOfCompiling: the hooks are called when a module is compiled, and not when it is
// loaded.
func TestProgressOfCompiling(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "cache")
	good, bad := probe(w.ToolOptions{}), probe(w.ToolOptions{Call: w.Drop()})
	var told []string
	open := func() *sandbox.Sandbox {
		return newBox(t, sandbox.Options{CacheDir: cache,
			OnCompile: func(*tool.Module) { told = append(told, "compiling") },
			OnCompiled: func(_ *tool.Module, d time.Duration, err error) {
				if d <= 0 {
					t.Errorf("it took %s", d)
				}
				told = append(told, "compiled "+map[bool]string{true: "well", false: "badly"}[err == nil])
			}})
	}
	granted(t, good, ask{}).mustRun(t, open())
	granted(t, good, ask{}).mustRun(t, open())
	granted(t, bad, ask{}).mustRun(t, open())
	if got := strings.Join(told, ", "); got != "compiling, compiled well, compiling, compiled badly" {
		t.Error(got)
	}
}

// TestMissingLimitsAreSaidOnce: one warning about limits that the system lacks.
func TestMissingLimitsAreSaidOnce(t *testing.T) {
	logger, log := logBuffer()
	box := newBox(t, sandbox.Options{Logger: logger})
	sandbox.SetMissingLimits(box, "memory")
	for _, answer := range []string{"a", "b"} {
		granted(t, probe(w.ToolOptions{Call: w.ReturnOK(answer)}), ask{}).mustRun(t, box)
	}
	if n := strings.Count(log.String(), "missing=memory"); n != 1 {
		t.Errorf("it is said %d times: %s", n, log)
	}
}
