package sandbox_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/redact"
	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm"
	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// described returns a command with a manifest in it, whose tool "probe" is run like this.
func described(tb testing.TB, code []byte, run tool.Run, edit ...func(*tool.Manifest)) *tool.Module {
	tb.Helper()
	m := tool.Manifest{ABI: "wasi:command", Name: "prog", Tools: []tool.Spec{{
		Definition: tool.Definition{Name: "probe", Description: "A command.", Parameters: json.RawMessage(
			`{"type":"object","properties":{"text":{"type":"string"},"files":{"type":"array","items":{"type":"string"}}}}`)},
		Run: &run,
	}}}
	for _, e := range edit {
		e(&m)
	}
	code, err := wasm.AppendCustom(code, wasm.ManifestSection, tool.Marshal(m))
	if err != nil {
		tb.Fatal(err)
	}
	return module(code)
}

func command(body ...[]byte) []byte { return w.Command(slices.Concat(body...), nil) }

// saying returns a command that prints a text and continues with the body.
func saying(fd int32, text string, body ...[]byte) []byte {
	return w.Command(slices.Concat(w.CmdPrint(fd, w.CmdBase, int32(len(text))), slices.Concat(body...)), nil, w.Segment{Offset: w.CmdBase, Bytes: []byte(text)})
}

func TestWhatACommandIsGiven(t *testing.T) {
	box := newBox(t, sandbox.Options{VerifyReset: true})
	for name, c := range map[string]struct {
		code []byte
		run  tool.Run
		args string
		want string
	}{
		"its name":   {command(w.CmdCopyArgs()), tool.Run{}, `{}`, "prog\x00"},
		"arguments":  {command(w.CmdCopyArgs()), tool.Run{Args: []string{"-x", "{text}", "{files}"}}, `{"text":"a b","files":["1","2"]}`, "prog\x00-x\x00a b\x001\x002\x00"},
		"an input":   {command(w.CmdCopyInput()), tool.Run{Stdin: "<{text}>"}, `{"text":"` + strings.Repeat("long ", 3000) + `"}`, "<" + strings.Repeat("long ", 3000) + ">"},
		"none":       {command(w.CmdCopyInput()), tool.Run{}, `{"text":"x"}`, ""},
		"what it is": {saying(1, `{"a":1}`), tool.Run{}, `{}`, `{"a":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			mod := described(t, c.code, c.run)
			for range 2 {
				if got := output(t, granted(t, mod, ask{args: c.args}).mustRun(t, box)); got != c.want {
					t.Errorf("got %.200q, want %.200q", got, c.want)
				}
			}
		})
	}
}

func TestHowACommandEnds(t *testing.T) {
	known := new(redact.Redactor)
	known.Add("hunter2-hunter2")
	box := newBox(t, sandbox.Options{VerifyReset: true, Redact: known})
	both := func(body ...[]byte) []byte {
		return w.Command(slices.Concat(w.CmdPrint(1, w.CmdBase, 20), w.CmdPrint(2, w.CmdBase+20, 20), slices.Concat(body...)), nil,
			w.Segment{Offset: w.CmdBase, Bytes: []byte("out: hunter2-hunter2err: hunter2-hunter2")})
	}
	forever := w.Loop(w.CmdPrint(1, w.CmdBase, 1<<16), w.Br(0))
	for name, c := range map[string]struct {
		code           []byte
		limits         policy.Limits
		want           tool.Code // "" is success
		says           string
		result         string
		exit           int // -1 for none
		stdout, stderr string
	}{
		"it returns":                         {code: both(), result: `{"output":"out: [redacted]","stderr":"err: [redacted]","exit_code":0}`},
		"it exits with 0":                    {code: both(w.CmdExitWith(0), w.Unreachable()), result: `{"output":"out: [redacted]","stderr":"err: [redacted]","exit_code":0}`},
		"it says nothing":                    {code: command(), result: `{"output":"","exit_code":0}`},
		"it exits with 3":                    {code: both(w.CmdExitWith(3), w.Unreachable()), want: tool.CodeFailed, says: "probe exited with code 3", exit: 3, stdout: "out: [redacted]", stderr: "err: [redacted]"},
		"it exits with -1":                   {code: both(w.CmdExitWith(-1), w.Unreachable()), want: tool.CodeFailed, says: "code 4294967295", exit: 1<<32 - 1, stdout: "out: [redacted]", stderr: "err: [redacted]"},
		"as if it was late":                  {code: both(w.CmdExitWith(-0x1000_0001), w.Unreachable()), want: tool.CodeFailed, says: "exited with code", exit: 0xefff_ffff, stdout: "out: [redacted]", stderr: "err: [redacted]"},
		"it traps":                           {code: both(w.Unreachable()), want: tool.CodeTrap, says: "crashed", exit: -1, stdout: "out: [redacted]", stderr: "err: [redacted]"},
		"it never ends":                      {code: both(w.Loop(w.Br(0))), limits: quick, want: tool.CodeTimeout, says: "timed out", exit: -1, stdout: "out: [redacted]", stderr: "err: [redacted]"},
		"it has no fuel":                     {code: both(w.Loop(w.Br(0))), limits: policy.Limits{Fuel: 100_000}, want: tool.CodeFuel, says: "ran out of fuel", exit: -1, stdout: "out: [redacted]", stderr: "err: [redacted]"},
		"it pays late":                       {code: command(w.CmdPrint(1, w.CmdBase, 1<<16), w.CmdExitWith(0)), limits: policy.Limits{Fuel: 5000, OutputBytes: 100}, want: tool.CodeFuel, says: "ran out of fuel", exit: -1, stdout: strings.Repeat("\x00", 100)},
		"it has no memory":                   {code: both(w.GrowForever(), w.Drop()), limits: policy.Limits{MemoryBytes: 1 << 20}, want: tool.CodeMemory, says: "memory limit", exit: -1, stdout: "out: [redacted]", stderr: "err: [redacted]"},
		"it gives up where it has no memory": {code: both(w.I32Const(1000), w.MemoryGrow(), w.Drop(), w.CmdExitWith(2)), limits: policy.Limits{MemoryBytes: 1 << 20}, want: tool.CodeMemory, says: "memory limit of 1 MiB", exit: 2, stdout: "out: [redacted]", stderr: "err: [redacted]"},
		"it does without more memory":        {code: both(w.I32Const(1000), w.MemoryGrow(), w.Drop()), limits: policy.Limits{MemoryBytes: 1 << 20}, result: `{"output":"out: [redacted]","stderr":"err: [redacted]","exit_code":0}`},
		"it prints for ever":                 {code: command(forever), limits: policy.Limits{Fuel: 10_000_000, OutputBytes: 100}, want: tool.CodeFuel, says: "ran out of fuel", exit: -1, stdout: strings.Repeat("\x00", 100)},
		"its memory ends":                    {code: command(w.CmdPrint(1, w.CmdEnd-1, 2), w.CmdExitWith(4)), want: tool.CodeFailed, says: "code 4", exit: 4},
	} {
		t.Run(name, func(t *testing.T) {
			mod := described(t, c.code, tool.Run{})
			for range 2 {
				r := granted(t, mod, ask{limits: c.limits}).mustRun(t, box)
				if c.want == "" {
					if r.Err != nil || !strings.HasPrefix(string(r.Output), c.result) {
						t.Fatalf("got %s %+v, want %s", r.Output, r.Err, c.result)
					}
					continue
				}
				failure(t, r, c.want, tool.InternalError, c.says)
				code := -1
				if r.Err.ExitCode != nil {
					code = *r.Err.ExitCode
				}
				if code != c.exit || !strings.HasPrefix(r.Err.Stdout, c.stdout) || !strings.HasPrefix(r.Err.Stderr, c.stderr) || strings.Contains(r.Err.Stdout+r.Err.Stderr, "hunter2") {
					t.Errorf("exit code %d, stdout %.100q, stderr %.100q", code, r.Err.Stdout, r.Err.Stderr)
				}
				if len(r.Err.Stdout) > len(c.stdout)+20 {
					t.Errorf("stdout has %d bytes", len(r.Err.Stdout))
				}
			}
		})
	}
}

func TestWhatACommandPrintsIsCut(t *testing.T) {
	box := newBox(t, sandbox.Options{})
	many := slices.Concat(w.I32Const(w.CmdBase), w.I32Const('x'), w.I32Const(1<<16), w.MemoryFill(), slices.Repeat(w.CmdPrint(1, w.CmdBase, 1<<16), 20))
	mod := described(t, command(many), tool.Run{})
	r := granted(t, mod, ask{limits: policy.Limits{OutputBytes: 10_000}}).mustRun(t, box)
	text := output(t, r)
	if len(r.Output) > 12_000 || !strings.HasPrefix(text, "xxx") || !strings.HasSuffix(text, "have it print less]") || !strings.Contains(string(r.Output), `"truncated":true`) {
		t.Errorf("the result has %d bytes: %.60s ... %s", len(r.Output), text, text[max(0, len(text)-200):])
	}
	known := new(redact.Redactor)
	known.Add("hunter2-hunter2")
	box = newBox(t, sandbox.Options{Redact: known})
	copied := described(t, command(w.CmdCopyInput()), tool.Run{Stdin: "{text}"})
	for n := range 16 { // where it is cut, there is a secret
		args := `{"text":"` + strings.Repeat(".", n) + strings.Repeat("hunter2-hunter2 ", 3000) + `"}`
		text := output(t, granted(t, copied, ask{args: args, limits: policy.Limits{OutputBytes: 10_000}}).mustRun(t, box))
		if tail := text[len(text)-300:]; strings.Contains(text, "hunter") || !strings.Contains(tail, "\n[output truncated") {
			t.Errorf("behind %d bytes it ends in %q", n, tail)
		}
	}
	mod = described(t, command(many), tool.Run{}, func(m *tool.Manifest) { m.Tools[0].Run = nil })
	failure(t, granted(t, mod, ask{limits: policy.Limits{OutputBytes: 10_000}}).mustRun(t, box), tool.CodeFailed, tool.InternalError, "printed more than 19 KiB")
}

// An instance that has ended by itself is used again, and knows nothing of what was.
func TestACommandBeginsAnew(t *testing.T) {
	const at = 1 << 15
	count := slices.Concat(
		w.I32Const(at), w.I32Load8U(0), w.I32Const('0'), w.I32Sub(), w.If(w.Unreachable()), // it runs for the first time
		w.I32Const(at), w.I32Const('1'), w.I32Store8(0), w.CmdPrint(1, at, 1))
	for name, body := range map[string][]byte{
		"it returns":    count,
		"it exits":      slices.Concat(count, w.CmdExitWith(0)),
		"it fails":      slices.Concat(count, w.CmdExitWith(1)),
		"it grows":      slices.Concat(count, w.I32Const(1), w.MemoryGrow(), w.Drop()),
		"it ends badly": slices.Concat(count, w.Unreachable()),
	} {
		t.Run(name, func(t *testing.T) {
			cache := filepath.Join(t.TempDir(), "cache")
			mod := described(t, w.Command(body, nil, w.Segment{Offset: at, Bytes: []byte("0")}), tool.Run{})
			for range 2 {
				box := newBox(t, sandbox.Options{VerifyReset: true, CacheDir: cache})
				for i := range 3 {
					r := granted(t, mod, ask{}).mustRun(t, box)
					if text := string(r.Output); r.Err == nil && text != `{"output":"1","exit_code":0}` || r.Err != nil && r.Err.Stdout != "1" {
						t.Errorf("call %d: %s %+v", i, text, r.Err)
					}
				}
				info, err := box.Snapshot(t.Context(), mod)
				if err != nil || info.ImageBytes != w.CmdEnd {
					t.Errorf("its calls begin with %+v, %v", info, err)
				}
				waiting := sandbox.Idle(box, mod)
				if reused := name != "it ends badly"; reused != (waiting == 1) {
					t.Errorf("%d instances wait for the next call", waiting)
				}
			}
		})
	}
}

func TestCommandsThatAreNotAdmitted(t *testing.T) {
	spec := func(f func(*tool.Spec)) func(*tool.Manifest) { return func(m *tool.Manifest) { f(&m.Tools[0]) } }
	good := command()
	start := func(f func(*w.Builder)) []byte {
		b := w.New()
		b.Memory(1, -1)
		b.ExportMemory("memory")
		f(b)
		return b.Bytes()
	}
	imports := func(module, name string, params, results []w.ValType) func(*w.Builder) {
		return func(b *w.Builder) {
			b.ImportFunc(module, name, params, results)
			b.Func("_start", nil, nil, nil)
		}
	}
	one := i32s(1)
	for name, c := range map[string]struct {
		mod  *tool.Module
		says string
	}{
		"two previews": {module(start(func(b *w.Builder) {
			b.ImportFunc("wasi_unstable", "fd_close", one, one)
			imports("wasi_snapshot_preview1", "fd_sync", one, one)(b)
		})), "a module can use only one of them"},
		"a preview that never was": {module(start(imports("wasi_snapshot_preview2", "fd_close", one, one))), ""},
		"_start with a parameter":  {module(start(func(b *w.Builder) { b.Func("_start", one, nil, nil) })), "another signature"},
		"_start with a result":     {module(start(func(b *w.Builder) { b.Func("_start", nil, one, nil, w.I32Const(0)) })), "another signature"},
		"a host function as _start": {module(start(func(b *w.Builder) {
			b.ExportFunc("_start", b.ImportFunc("wasi_snapshot_preview1", "proc_exit", nil, nil))
		})), ""},
		"a function without an error number":    {module(start(imports("wasi_snapshot_preview1", "sock_open", one, nil))), "returns no error number"},
		"one with an argument that no host has": {module(start(imports("wasi_snapshot_preview1", "sock_open", []w.ValType{w.FuncRef}, one))), "not numbers"},
		"the same function twice": {module(start(func(b *w.Builder) {
			b.ImportFunc("wasi_snapshot_preview1", "sock_open", i32s(2), one)
			imports("wasi_snapshot_preview1", "sock_open", one, one)(b)
		})), "different types"},
		"a manifest of another kind":      {described(t, good, tool.Run{}, func(m *tool.Manifest) { m.ABI = "extism:plugin" }), "extism:plugin"},
		"a configuration":                 {described(t, good, tool.Run{}, func(m *tool.Manifest) { m.Config = map[string]string{"a": "b"} }), "config"},
		"a function of a plugin":          {described(t, good, tool.Run{Function: "run"}), "for plugins"},
		"an input of a plugin":            {described(t, good, tool.Run{Input: "x"}), "for plugins"},
		"needs that are inferred":         {described(t, good, tool.Run{}, func(m *tool.Manifest) { m.Inferred = true }), "inferred"},
		"notes":                           {described(t, good, tool.Run{}, func(m *tool.Manifest) { m.Notes = []string{"safe"} }), "notes"},
		"a network":                       {described(t, good, tool.Run{}, spec(func(s *tool.Spec) { s.Capabilities.Network = tool.NetworkHTTP })), "more than files"},
		"a secret":                        {described(t, good, tool.Run{}, spec(func(s *tool.Spec) { s.Capabilities.Secrets = []tool.Secret{{Name: "KEY"}} })), "more than files"},
		"bash":                            {described(t, good, tool.Run{}, spec(func(s *tool.Spec) { s.Capabilities.Exec = "text" })), "more than files"},
		"an argument that there is not":   {described(t, good, tool.Run{Args: []string{"{code}"}}), "{code} is not a parameter"},
		"tools of which one is not run":   {described(t, good, tool.Run{}, func(m *tool.Manifest) { s := m.Tools[0]; s.Name, s.Run = "other", nil; m.Tools = append(m.Tools, s) }), "how other is run"},
		"a variable that moves the guest": {described(t, good, tool.Run{Env: map[string]string{"PWD": "/"}}), "PWD"},
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, sandbox.Options{OnCompile: func(*tool.Module) {
				if c.says != "more than files" {
					t.Error("it is compiled")
				}
			}})
			if _, err := box.Describe(t.Context(), c.mod); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v", err)
			}
			failure(t, granted(t, c.mod, ask{}).mustRun(t, box), tool.CodeNotAdmitted, tool.ValidationFailed, c.says)
		})
	}
}

// Functions of WASI that the host does not have return ENOTSUP, and are listed.
func TestFunctionsThatACommandMisses(t *testing.T) {
	b := w.New()
	sock := b.ImportFunc("wasi_snapshot_preview1", "sock_open", []w.ValType{w.I32, w.I64, w.F64}, i32s(1))
	accept := b.ImportFunc("wasi_snapshot_preview1", "sock_accept", i32s(2), i32s(1))
	exit := b.ImportFunc("wasi_snapshot_preview1", "proc_exit", i32s(1), nil)
	b.Memory(1, -1)
	b.ExportMemory("memory")
	b.Func("_start", nil, nil, nil,
		w.I32Const(1), w.I64Const(2), []byte{0x44, 0, 0, 0, 0, 0, 0, 0, 0}, w.Call(sock),
		w.I32Const(1), w.I32Const(2), w.Call(accept), w.I32Add(), w.Call(exit))
	mod := described(t, b.Bytes(), tool.Run{})
	box := newBox(t, sandbox.Options{CacheDir: filepath.Join(t.TempDir(), "cache")})
	for range 2 {
		m, err := box.Describe(t.Context(), mod)
		if err != nil || len(m.Notes) != 1 || !strings.HasSuffix(m.Notes[0], "not supported: sock_open, sock_accept") {
			t.Errorf("the notes are %q, %v", m.Notes, err)
		}
		failure(t, granted(t, mod, ask{}).mustRun(t, box), tool.CodeFailed, tool.InternalError, "code 116") // twice ENOTSUP
		box = newBox(t, sandbox.Options{CacheDir: filepath.Join(t.TempDir(), "cache")})
	}
}

// Commands built before preview 1 find their own records and numbers, and whoever approves
// them is told that they open files.
func TestACommandOfTheSnapshotBefore(t *testing.T) {
	build := func(module string) *tool.Module {
		b := w.New()
		stat := b.ImportFunc(module, "fd_filestat_get", i32s(2), i32s(1))
		open := b.ImportFunc(module, "sock_open", i32s(2), i32s(1))
		exit := b.ImportFunc(module, "proc_exit", i32s(1), nil)
		b.Memory(1, -1)
		b.ExportMemory("memory")
		b.Func("_start", nil, nil, nil,
			w.I32Const(1), w.I32Const(0), w.Call(stat),
			w.I32Const(0), w.I32Const(0), w.Call(open), w.I32Add(), // ENOTSUP, which is 58
			w.I32Const(20), w.I32Load(0), w.I32Add(), // the number of links of the output, which is 1
			w.Call(exit))
		return described(t, b.Bytes(), tool.Run{})
	}
	b := w.New()
	b.ImportFunc("wasi_unstable", "path_open", slices.Concat(i32s(5), []w.ValType{w.I64, w.I64}, i32s(2)), i32s(1))
	write := b.ImportFunc("wasi_unstable", "fd_write", i32s(4), i32s(1))
	schema := `{"name":"old","description":"Old."}`
	b.Memory(1, -1)
	b.ExportMemory("memory")
	b.Data(0, slices.Concat([]byte{64, 0, 0, 0, byte(len(schema)), 0, 0, 0}, make([]byte, 56), []byte(schema)))
	b.Func("_start", nil, nil, nil, w.I32Const(1), w.I32Const(0), w.I32Const(1), w.I32Const(8), w.Call(write), w.Drop())
	if m, err := newBox(t, sandbox.Options{}).Describe(t.Context(), module(b.Bytes())); err != nil || m.Tools[0].Capabilities.Files != tool.FilesWrite {
		t.Errorf("it is %+v, %v", m, err)
	}
	cache := filepath.Join(t.TempDir(), "cache")
	for range 2 {
		box := newBox(t, sandbox.Options{CacheDir: cache})
		for module, want := range map[string]string{"wasi_unstable": "code 59", "wasi_snapshot_preview1": "code 58"} {
			mod := build(module)
			if i, err := box.Inspect(t.Context(), mod); err != nil || i.Refusal != nil || !slices.Equal(i.Missing, []string{"sock_open"}) {
				t.Errorf("%s: it misses %q, %v, %v", module, i.Missing, i.Refusal, err)
			}
			failure(t, granted(t, mod, ask{}).mustRun(t, box), tool.CodeFailed, tool.InternalError, want)
		}
	}
}

func TestCommandsThatDescribeThemselves(t *testing.T) {
	box := newBox(t, sandbox.Options{})
	const hint = "--describe FILE.toml"
	deep := strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100)
	for name, c := range map[string]struct {
		code []byte
		says string // of the error
	}{
		"nothing":            {command(), "is no JSON object"},
		"text":               {saying(1, "usage: \x1bprog"), `is no JSON object with "name", "description" and "parameters", but "usage: \x1bprog"`},
		"a list":             {saying(1, `[{"name":"a","description":"b","parameters":{}}]`), "is no JSON object"},
		"on stderr":          {saying(2, `{"name":"a","description":"b","parameters":{}}`), "is no JSON object"},
		"cut off":            {saying(1, `{"name":"a"`), "is not one complete JSON value"},
		"two":                {saying(1, `{"name":"a","description":"b"}{}`), "is not one complete JSON value"},
		"a key twice":        {saying(1, `{"name":"a","description":"b","name":"c"}`), `holds the key "name" twice`},
		"a name":             {saying(1, `{"name":"a b","description":"b"}`), "has the name"},
		"no description":     {saying(1, `{"name":"a"}`), "has no description"},
		"another type":       {saying(1, `{"name":1}`), "is not valid"},
		"parameters":         {saying(1, `{"name":"a","description":"b","parameters":[]}`), "is not valid"},
		"a parameter":        {saying(1, `{"name":"a","description":"b","parameters":{"x":"string"}}`), `parameter "x" is not an object`},
		"a type":             {saying(1, `{"name":"a","description":"b","parameters":{"x":{"type":"path"}}}`), "is not a supported JSON Schema"},
		"a deep parameter":   {saying(1, `{"name":"a","description":"b","parameters":{"x":`+deep+`}}`), "nests deeper"},
		"a failure":          {saying(1, `{"name":"a","description":"b"}`, w.CmdExitWith(2)), "exited with code 2"},
		"a crash":            {saying(1, `{"name":"a","description":"b"}`, w.Unreachable()), "did not end well"},
		"no end":             {saying(1, `{"name":"a","description":"b"}`, w.Loop(w.Br(0))), "did not end well"},
		"a huge description": {command(slices.Repeat(w.CmdPrint(1, w.CmdBase, 1<<16), 9)), "printed more than 256 KiB"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := box.Describe(t.Context(), module(c.code))
			if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), hint) || !strings.Contains(err.Error(), "does not say what it does") {
				t.Errorf("got %v", err)
			}
		})
	}
	m, err := box.Describe(t.Context(), module(saying(1, `{"name":"grep","description":"Find.","parameters":{"text":{"type":"string","required":true}},"returns":[1]}`)))
	want := `{"abi":"wasi:command","name":"probe","tools":[{"name":"grep","description":"Find.","parameters":{"type":"object",` +
		`"properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false},"capabilities":{}}],"inferred":true}`
	if got := string(tool.Marshal(m)); err != nil || got != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
}

// gocommand returns testdata/command, built once.
var gocommand = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "stockade-command-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "command.wasm")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-trimpath", "-ldflags=-s -w", "-o", file, "./testdata/command")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the command: %w\n%s", err, out)
	}
	return os.ReadFile(file)
})

// TestGoCommand runs a command that the Go toolchain has built, without knowledge of this
// program.
func TestGoCommand(t *testing.T) {
	code, err := gocommand()
	if err != nil {
		t.Fatal(err)
	}
	mod := module(code)
	box := newBox(t, sandbox.Options{VerifyReset: true})
	m, err := box.Describe(t.Context(), mod)
	if err != nil || m.Tools[0].Name != "notes" || m.Tools[0].Capabilities.Files != tool.FilesWrite || !m.Inferred {
		t.Fatalf("it is %+v, %v", m, err)
	}
	dir := t.TempDir()
	sub := filepath.Join(dir, "sub")
	mustWrite(t, filepath.Join(sub, "a.txt"), "below")
	mustWrite(t, filepath.Join(dir, "a.txt"), "top")
	mustWrite(t, filepath.Join(dir, ".ssh", "id_ed25519"), "secret")
	call := func(t *testing.T, args string, mounts ...policy.Mount) tool.Result {
		t.Helper()
		return granted(t, mod, ask{tool: "notes", args: args, cwd: sub, mounts: mounts, caps: tool.Capabilities{Files: tool.FilesWrite}}).mustRun(t, box)
	}
	rw := policy.Mount{Host: dir, Write: true}
	for name, c := range map[string]struct {
		args   string
		mounts []policy.Mount
		want   string // of the field that is asked for
	}{
		"a relative path":     {`{"read":"a.txt"}`, []policy.Mount{rw}, `"content":"below"`},
		"above":               {`{"read":"../a.txt"}`, []policy.Mount{rw}, `"content":"top"`},
		"an absolute path":    {`{"read":"` + dir + `/a.txt"}`, []policy.Mount{rw}, `"content":"top"`},
		"outside":             {`{"read":"/etc/passwd"}`, []policy.Mount{rw}, `"error":"open /etc/passwd: Operation not permitted"`},
		"outside, relatively": {`{"read":"../../x"}`, []policy.Mount{rw}, `Operation not permitted`},
		"a special path":      {`{"read":"../.ssh/id_ed25519"}`, []policy.Mount{rw}, `Operation not permitted`},
		"without a mount":     {`{"read":"a.txt"}`, nil, `Operation not permitted`},
		"a file of its own":   {`{"write":"new.txt"}`, []policy.Mount{rw}, `"content":"written"`},
		"where it may not":    {`{"write":"other.txt"}`, []policy.Mount{{Host: dir}}, `Read-only file system`},
		"its environment":     {`{}`, []policy.Mount{rw}, `"env":["PWD=` + sub + `"]`},
		"where it is":         {`{}`, []policy.Mount{rw}, `"dir":"` + sub + `"`},
	} {
		t.Run(name, func(t *testing.T) {
			if r := call(t, c.args, c.mounts...); r.Err != nil || !strings.Contains(string(r.Output), c.want) {
				t.Errorf("got %s %+v, want %s", r.Output, r.Err, c.want)
			}
		})
	}
	if data, err := os.ReadFile(filepath.Join(sub, "new.txt")); string(data) != "written" {
		t.Errorf("the file holds %q, %v", data, err)
	}
	missing(t, filepath.Join(sub, "other.txt"))
	t.Run("it fails", func(t *testing.T) {
		r := call(t, `{"exit":7}`)
		failure(t, r, tool.CodeFailed, tool.InternalError, "notes exited with code 7")
		if r.Err.Stderr != "sorry\n" || *r.Err.ExitCode != 7 {
			t.Errorf("got %+v", r.Err)
		}
	})
	t.Run("it panics", func(t *testing.T) {
		r := call(t, `{"exit":-1}`)
		failure(t, r, tool.CodeFailed, tool.InternalError, "code 2")
		if !strings.Contains(r.Err.Stderr, "panic: oh") {
			t.Errorf("stderr is %q", r.Err.Stderr)
		}
	})
	t.Run("its result is no JSON", func(t *testing.T) {
		r := call(t, `{"text":"hello \u001b[1m"}`)
		failure(t, r, tool.CodeBadABI, tool.ParseError, "is not valid JSON")
		if r.Err.Stdout != "hello \x1b[1m" {
			t.Errorf("what it printed is %q", r.Err.Stdout)
		}
	})
	t.Run("nothing is changed before the commit", func(t *testing.T) {
		j := granted(t, mod, ask{tool: "notes", args: `{"write":"staged.txt"}`, cwd: sub, mounts: []policy.Mount{rw}, caps: tool.Capabilities{Files: tool.FilesWrite}})
		staged := mustStage(t, box, j)
		missing(t, filepath.Join(sub, "staged.txt"))
		if err := staged.Commit(t.Context(), j.grant); err != nil || !exists(filepath.Join(sub, "staged.txt")) {
			t.Errorf("the commit: %v", err)
		}
	})
}
