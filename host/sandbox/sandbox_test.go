package sandbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/jail"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/sandbox/abi"
	"github.com/stockade-dev/stockade/host/sandbox/admit"
	"github.com/stockade-dev/stockade/host/sandbox/hostmod"
	"github.com/stockade-dev/stockade/host/sandbox/wasi/preview1"
	"github.com/stockade-dev/stockade/host/services"
	"github.com/stockade-dev/stockade/host/tool"
	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// end is the end of a hostile call. An empty code is a success.
type end struct {
	code tool.Code
	typ  tool.ErrorType
	says string
}

func badABI(says string) end { return end{tool.CodeBadABI, tool.InternalError, says} }
func trap(says string) end   { return end{tool.CodeTrap, tool.InternalError, says} }

var (
	fine    = end{}
	timeout = end{tool.CodeTimeout, tool.InternalError, "raise tool_timeout"}
	memory  = end{tool.CodeMemory, tool.InternalError, "raise tool_memory"}
)

// hostileEnds maps the modules of wasmtest.Hostile to their ends.
var hostileEnds = map[string]end{
	"call traps":                    trap("unreachable"),
	"call spins":                    timeout,
	"call grows its memory forever": memory,
	"call recurses":                 trap("nested too deeply"),
	"describe traps":                fine, // a call does not ask for the manifest
	"describe spins":                fine,
	"describe returns a pointer out of bounds":  fine,
	"_initialize spins":                         timeout,
	"start function spins":                      timeout,
	"post-return traps":                         fine, // it is not called
	"result pointer out of bounds":              badABI("outside"),
	"result pointer at the last byte":           badABI("multiple of 4"),
	"result pointer is not aligned":             badABI("multiple of 4"),
	"result discriminant is invalid":            badABI("result: discriminant 2"),
	"error discriminant is invalid":             badABI("error: discriminant 9"),
	"content discriminant is invalid":           badABI("content: discriminant 4"),
	"option discriminant is invalid":            badABI("structured: discriminant 2"),
	"string length of 2^32-1":                   badABI("limit"),
	"string out of bounds":                      badABI("outside"),
	"string that is not UTF-8":                  fine,
	"structured length of 2^32-1":               badABI("limit"),
	"structured value that is not JSON":         {tool.CodeBadABI, tool.ParseError, "not valid JSON"},
	"list of 2^32-1 items":                      badABI("limit"),
	"list whose size overflows 32 bits":         badABI("limit"),
	"list that overlaps the result":             fine, // it reads as a text of one byte
	"list that is not aligned":                  badABI("multiple of 4"),
	"error text of 2^32-1 bytes":                badABI("outside"),
	"realloc returns a pointer out of bounds":   badABI("realloc"),
	"realloc returns zero":                      badABI("realloc"),
	"realloc traps":                             trap("unreachable"),
	"realloc spins":                             timeout,
	"proc_exit in call":                         trap("exit code 0"),
	"proc_exit in realloc":                      trap("exit code 3"),
	"log with a text out of bounds":             badABI("message"),
	"log with an invalid level":                 badABI("level"),
	"log in an endless loop":                    trap("calls into the host"),
	"exec with an argument list out of bounds":  badABI("argv"),
	"exec with 2^32-1 arguments":                badABI("argv"),
	"exec with a return pointer out of bounds":  badABI(""),
	"calls that branch without a loop":          timeout,
	"sleeps for a year":                         timeout,
	"reads standard input":                      fine,
	"polls standard input":                      fine,
	"polls for 2^28 events":                     fine, // it is told EINVAL
	"_initialize exits with code 0":             trap("exit code 0"),
	"start function traps":                      trap("unreachable"),
	"result of 33 MiB":                          badABI("limit"),
	"structured value nested 20000 deep":        {tool.CodeBadABI, tool.ParseError, "nests deeper than 500 levels"},
	"structured value nested 501 deep":          {tool.CodeBadABI, tool.ParseError, "nests deeper than 500 levels"},
	"structured value nested 500 deep":          fine,
	"table grows by 200 million elements":       fine,
	"allocator calls the host":                  badABI("allocator"),
	"allocator calls the host in _initialize":   badABI("allocator"),
	"exec with an option that is neither":       badABI("cwd: discriminant 7"),
	"exec with a return pointer not aligned":    badABI("multiple of 4"),
	"minimum memory is over the limit":          memory,
	"data segment outside the memory":           trap("crashed"),
	"error text that lies about its length":     badABI("outside"),
	"floods standard output":                    trap("unreachable"),
	"progress with an option that is neither":   badABI("total: discriminant 2"),
	"allocator grows the memory over the limit": memory,
}

// moreHostile are attacks on parts of this package besides the ABI.
func moreHostile() []w.Case {
	subscription := func(typ byte, timeout uint64) []byte {
		s := make([]byte, 48)
		s[8] = typ
		for i := range 8 {
			s[24+i] = byte(timeout >> (8 * i))
		}
		return s
	}
	poll := func(at, n int32) []byte {
		return code(w.I32Const(at), w.I32Const(resultA), w.I32Const(n), w.I32Const(resultA+1024), w.Call(0), w.Drop())
	}
	pollImport := []w.Import{wasi("poll_oneoff", i32s(4)...)}
	year := uint64(365 * 24 * time.Hour)
	allocates := func(o w.ToolOptions) w.ToolOptions {
		body, segment := runs("true")
		o.Imports, o.Data = []w.Import{execRun()}, []w.Segment{segment}
		o.Edit = func(b *w.Builder) {
			b.Func("cabi_realloc", i32s(4), i32s(1), nil, body, w.I32Const(2048))
		}
		return o
	}
	runTrue, _ := runs("true")
	nested := func(n int) []byte {
		return bytes.Join([][]byte{bytes.Repeat([]byte("["), n), bytes.Repeat([]byte("]"), n)}, nil)
	}
	return []w.Case{
		{Name: "calls that branch without a loop", Options: w.ToolOptions{Call: code(w.Call(3), w.I32Const(0)), Edit: func(b *w.Builder) {
			for range 60 { // 2^60 calls
				b.Func("", nil, nil, nil, w.Call(b.NextFunc()+1), w.Call(b.NextFunc()+1))
			}
			b.Func("", nil, nil, nil)
		}}},
		{Name: "sleeps for a year", Options: w.ToolOptions{Imports: pollImport, Data: []w.Segment{{Offset: pathAt, Bytes: subscription(0, year)}},
			Call: code(w.Loop(poll(pathAt, 1), w.Br(0)), w.I32Const(0))}},
		{Name: "reads standard input", Options: w.ToolOptions{Imports: []w.Import{wasi("fd_read", i32s(4)...)},
			Data: []w.Segment{{Offset: pathAt, Bytes: le32(resultA, 64)}},
			Call: code(w.I32Const(0), w.I32Const(pathAt), w.I32Const(1), w.I32Const(resultA+1024), w.Call(0), w.Drop(), w.ReturnOK("end of file"))}},
		{Name: "polls standard input", Options: w.ToolOptions{Imports: pollImport, Data: []w.Segment{{Offset: pathAt, Bytes: subscription(1, 0)}},
			Call: code(poll(pathAt, 1), w.ReturnOK("end of file"))}},
		{Name: "polls for 2^28 events", Options: w.ToolOptions{Imports: pollImport, Call: code(poll(0, 1<<28), w.ReturnOK("polled"))}},
		{Name: "_initialize exits with code 0", Options: w.ToolOptions{Imports: []w.Import{w.ProcExit()}, Initialize: code(w.I32Const(0), w.Call(0))}},
		{Name: "start function traps", Options: w.ToolOptions{Edit: func(b *w.Builder) { b.Start(b.Func("", nil, nil, nil, w.Unreachable())) }}},
		{Name: "result of 33 MiB", Options: w.ToolOptions{MemoryMin: 34 << 4,
			Call: w.ReturnWords(w.ResultOK, w.ScratchBase, 0, 1, 0, 33<<20)}},
		{Name: "structured value nested 20000 deep", Options: bigStructured(nested(20000))},
		{Name: "structured value nested 501 deep", Options: bigStructured(nested(501))},
		{Name: "structured value nested 500 deep", Options: bigStructured([]byte(`{"brackets":"` + strings.Repeat("[", 600) + `\"","value":` + string(nested(499)) + "}"))},
		{Name: "table grows by 200 million elements", Options: w.ToolOptions{Edit: func(b *w.Builder) { b.Table(1, -1) }, Call: code(
			[]byte{0xd0, 0x70}, w.I32Const(200_000_000), []byte{0xfc, 15, 0}, w.I32Const(-1), w.I32Ne(), w.If(w.Unreachable()), w.ReturnOK("refused"))}},
		{Name: "allocator calls the host", Options: allocates(w.ToolOptions{Call: code(runTrue, w.ReturnOK("ran"))})},
		{Name: "allocator calls the host in _initialize", Options: allocates(w.ToolOptions{Initialize: runTrue})},
		{Name: "exec with an option that is neither", Options: w.ToolOptions{Imports: []w.Import{execRun()}, Call: code(
			w.I32Const(0), w.I32Const(0), w.I32Const(7), w.I32Const(0), w.I32Const(0), w.I32Const(0), w.I32Const(0), w.I32Const(0),
			w.I32Const(resultA), w.Call(0), w.ReturnOK("ran"))}},
		{Name: "exec with a return pointer not aligned", Options: w.ToolOptions{Imports: []w.Import{execRun()}, Edit: importRealloc, Call: code(
			slicesOf(w.I32Const(0), 8), w.I32Const(resultA+2), w.Call(0), w.ReturnOK("ran"))}},
		{Name: "minimum memory is over the limit", Options: w.ToolOptions{MemoryMin: 1025}},
		{Name: "data segment outside the memory", Options: w.ToolOptions{Data: []w.Segment{{Offset: 0xffff_0000, Bytes: []byte("x")}}}},
		{Name: "error text that lies about its length", Options: w.ToolOptions{Call: w.ReturnWords(w.ResultErr, w.ErrorFailed, 0, 1<<30, 0, 0)}},
		{Name: "floods standard output", Options: w.ToolOptions{Imports: []w.Import{wasi("fd_write", i32s(4)...)}, Locals: i32s(1),
			Data: []w.Segment{{Offset: pathAt, Bytes: le32(0, 32768)}},
			Call: code(repeat(2000, code(w.I32Const(1), w.I32Const(pathAt), w.I32Const(1), w.I32Const(resultA), w.Call(0), w.Drop())), w.Unreachable())}},
		{Name: "progress with an option that is neither", Options: w.ToolOptions{Imports: []w.Import{own("progress", "report", w.I64, w.I32, w.I64, w.I32, w.I32)},
			Call: code(w.I64Const(1), w.I32Const(2), w.I64Const(1), w.I32Const(0), w.I32Const(0), w.Call(0), w.ReturnOK("reported"))}},
		{Name: "allocator grows the memory over the limit", Options: w.ToolOptions{Realloc: code(w.GrowForever())}},
	}
}

func slicesOf(piece []byte, n int) []byte { return bytes.Repeat(piece, n) }

func TestWhatBecomesOfHostileModules(t *testing.T) {
	box := newBox(t, sandbox.Options{})
	impatient := newBox(t, sandbox.Options{})
	sandbox.SetInitTimeout(impatient, 300*time.Millisecond)
	good := granted(t, probe(w.ToolOptions{}), ask{})
	seen := map[string]bool{}
	for _, c := range append(w.Hostile(), moreHostile()...) {
		seen[c.Name] = true
		want, ok := hostileEnds[c.Name]
		t.Run(c.Name, func(t *testing.T) {
			if !ok {
				t.Fatal("the test does not say what becomes of this module")
			}
			a := ask{limits: policy.Limits{MemoryBytes: 64 << 20, HostCalls: 10_000}}
			box := box
			if want == timeout {
				a.limits.Timeout, box = 20*time.Millisecond, impatient
			}
			r := granted(t, probe(c.Options), a).mustRun(t, box)
			if want == fine {
				if r.Err != nil {
					t.Errorf("it failed: %s: %s", r.Err.Code, r.Err.Message)
				}
			} else {
				failure(t, r, want.code, want.typ, want.says)
			}
			if !json.Valid(r.Envelope()) {
				t.Errorf("the envelope is not JSON: %.200s", r.Envelope())
			}
			if r.Err != nil && len(r.Err.Stderr) > 2*policy.DefaultLimits().LogBytes { // twice: bad UTF-8 grows
				t.Errorf("%d bytes of standard output are kept", len(r.Err.Stderr))
			}
			if got := output(t, good.mustRun(t, box)); got != "ok" {
				t.Errorf("afterwards a good module answers %q", got)
			}
		})
	}
	for name := range hostileEnds {
		if !seen[name] {
			t.Errorf("there is no module %q any more", name)
		}
	}
}

func TestHostileModulesAreAskedForTheirManifest(t *testing.T) {
	box := newBox(t, sandbox.Options{Interpreter: true})
	compiled := newBox(t, sandbox.Options{})
	sandbox.SetInitTimeout(compiled, 300*time.Millisecond)
	for name, o := range map[string]w.ToolOptions{
		"describe traps": {Describe: w.Unreachable()},
		"describe spins": {Describe: w.Spin()},
		"describe returns a pointer out of bounds": {Describe: w.I32Const(-4)},
		"describe returns a pointer not aligned":   {Describe: w.I32Const(2)},
		"describe returns 2^32-1 bytes":            {Describe: w.I32Const(pathAt), Data: []w.Segment{{Offset: pathAt, Bytes: le32(0, 0xffff_ffff)}}},
		"describe returns what is not JSON":        {Manifest: "{"},
		"_initialize spins":                        {Initialize: w.Loop(w.Br(0))},
		"the memory is over the limit":             {MemoryMin: 65536},
		"another ABI":                              {Manifest: strings.Replace(w.Manifest, "0.1.0", "0.9.0", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o.NoSection = true
			box := box
			if strings.Contains(name, "spins") { // twenty times as long in the interpreter
				box = compiled
			}
			_, err := box.Describe(t.Context(), probe(o))
			if refusal, ok := errors.AsType[*admit.RefusedError](err); !ok || refusal.Module != "probe" {
				t.Errorf("Describe says %v; want a refusal", err)
			}
		})
	}
	t.Run("a caller who gave up is not the module's fault", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := box.Describe(ctx, probe(w.ToolOptions{NoSection: true}))
		if _, ok := errors.AsType[*admit.RefusedError](err); ok || !errors.Is(err, context.Canceled) {
			t.Errorf("Describe says %v", err)
		}
	})
	t.Run("a manifest in a section runs nothing", func(t *testing.T) {
		m, err := box.Describe(t.Context(), probe(w.ToolOptions{Describe: w.Unreachable(), Manifest: w.Manifest,
			Data: []w.Segment{}}))
		if err != nil || m.Tools[0].Name != "probe" {
			t.Errorf("Describe says %v, %v", m, err)
		}
	})
}

func TestModulesImportOnlyWhatTheirToolsAskFor(t *testing.T) {
	asks := map[string]string{
		"exec": `"exec":"command"`, "http": `"network":"http"`, "search": `"files":"read"`, "secrets": `"secrets":[{"name":"TOKEN"}]`,
		"kv": `"store":true`, "log": "", "progress": "", "config": "",
	}
	box := newBox(t, sandbox.Options{Interpreter: true})
	for _, f := range hostmod.Functions {
		imported := w.Import{Module: abi.ImportModule(f.Interface), Name: f.Name}
		for _, t := range f.Signature.Params {
			imported.Params = append(imported.Params, w.ValType(t))
		}
		for _, t := range f.Signature.Results {
			imported.Results = append(imported.Results, w.ValType(t))
		}
		for _, section := range []bool{true, false} {
			for iface, capabilities := range asks {
				manifest := `{"abi":"stockade:tool@0.1.0","name":"probe","tools":[{"name":"probe","description":"A tool made for a test.",` +
					`"parameters":{"type":"object","properties":{"command":{"type":"string"}}},"capabilities":{` + capabilities + `}}]}`
				_, err := box.Describe(t.Context(), probe(w.ToolOptions{Imports: []w.Import{imported}, Manifest: manifest, NoSection: !section}))
				_, refused := errors.AsType[*admit.RefusedError](err)
				if want := asks[f.Interface] != "" && iface != f.Interface; refused != want || err != nil && !refused {
					t.Errorf("it imports %s.%s and asks for {%s}: Describe says %v", f.Interface, f.Name, capabilities, err)
				}
			}
		}
	}
}

func TestHostFunctionsWithHostilePointers(t *testing.T) {
	box := newBox(t, sandbox.Options{Interpreter: true})
	type function struct {
		module, name    string
		params, results []w.ValType
	}
	var all []function
	types := func(in []byte) []w.ValType {
		var out []w.ValType
		for _, v := range in {
			out = append(out, w.ValType(v))
		}
		return out
	}
	for _, f := range hostmod.Functions {
		all = append(all, function{"stockade:tool/" + f.Interface + "@0.1.0", f.Name, types(f.Params), types(f.Results)})
	}
	for name, sig := range preview1.Functions() {
		all = append(all, function{preview1.ModuleName, name, types(sig.Params), types(sig.Results)})
	}
	if len(all) < 50 {
		t.Fatalf("there are only %d functions", len(all))
	}
	for _, f := range all {
		for _, v := range []int32{0, 1, 3, -1, -4, 1 << 28, 0x7fffffff} {
			var body []byte
			for _, p := range f.params {
				if p == w.I64 {
					body = append(body, w.I64Const(int64(v))...)
				} else {
					body = append(body, w.I32Const(v)...)
				}
			}
			body = append(body, w.Call(0)...)
			for range f.results {
				body = append(body, w.Drop()...)
			}
			dir := t.TempDir()
			j := granted(t, probe(w.ToolOptions{
				Imports: []w.Import{{Module: f.module, Name: f.name, Params: f.params, Results: f.results}},
				Call:    code(body, w.ReturnOK("survived")), Edit: importRealloc,
			}), ask{limits: quick, mounts: []policy.Mount{{Host: dir, Write: true}}, caps: tool.Capabilities{Files: tool.FilesWrite}})
			r, err := j.run(t.Context(), box)
			if err != nil {
				t.Errorf("%s.%s with %d: the host is blamed: %.300v", f.module, f.name, v, err)
			} else if r.Err != nil && r.Err.Code != tool.CodeBadABI && r.Err.Code != tool.CodeTrap && r.Err.Code != tool.CodeTimeout {
				t.Errorf("%s.%s with %d: %s: %s", f.module, f.name, v, r.Err.Code, r.Err.Message)
			}
		}
	}
}

func TestNothingRunsWithoutItsGrant(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "made")
	a := ask{mounts: []policy.Mount{{Host: dir, Write: true}}, caps: tool.Capabilities{Files: tool.FilesWrite}, cwd: dir, args: `{"a":1}`}
	good := granted(t, probe(touches(file)), a)
	other := touches(file)
	other.MemoryMin = 7
	for name, change := range map[string]func(*job){
		"no grant":        func(j *job) { j.grant = policy.Grant{} },
		"another call":    func(j *job) { j.call.ID = "call-2" },
		"another tool":    func(j *job) { j.call.Tool = "probe2" },
		"other arguments": func(j *job) { j.call.Args = json.RawMessage(`{"a":2}`) },
		"another cwd":     func(j *job) { j.call.Cwd = "/" },
		"another module":  func(j *job) { j.mod = probe(other) },
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, sandbox.Options{})
			j := good
			change(&j)
			if r, err := j.run(t.Context(), box); err == nil {
				t.Errorf("it ran: %s", r.Summary())
			}
			if n := sandbox.CompiledModules(box); n > 0 {
				t.Errorf("%d modules were compiled", n)
			}
			missing(t, file)
		})
	}
	t.Run("bytes that are not the digest's", func(t *testing.T) {
		box := newBox(t, sandbox.Options{})
		j, mod := good, *good.mod
		mod.Read = probe(other).Read
		j.mod = &mod
		failure(t, j.mustRun(t, box), tool.CodeNotAdmitted, tool.ValidationFailed, "digest")
		missing(t, file)
	})
	t.Run("with its grant it does run", func(t *testing.T) {
		output(t, good.mustRun(t, newBox(t, sandbox.Options{})))
		if _, err := os.Stat(file); err != nil {
			t.Errorf("the probe proves nothing: %v", err)
		}
	})
	t.Run("a grant to read does not write", func(t *testing.T) {
		dir := t.TempDir()
		file := filepath.Join(dir, "made")
		j := granted(t, probe(touches(file)), ask{mounts: []policy.Mount{{Host: dir, Write: true}}, caps: tool.Capabilities{Files: tool.FilesRead}})
		output(t, j.mustRun(t, newBox(t, sandbox.Options{})))
		missing(t, file)
	})
}

// counted is a service that counts its calls.
type counted struct {
	services.Exec
	asked *int
}

func (c counted) Run(ctx context.Context, grant policy.Grant, cmd services.Command) (services.CommandResult, error) {
	*c.asked++
	return c.Exec.Run(ctx, grant, cmd)
}

func TestExec(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "made")
	command := "echo x >> " + file
	args, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		t.Fatal(err)
	}
	exec := tool.Capabilities{Exec: "command"}
	asked := 0
	jailed := sandbox.Options{Services: services.Set{Exec: counted{jail.New(jail.Options{}), &asked}}}
	initialize := runsCommand(command, 1)
	initialize.Initialize, _ = runs(command)
	initialize.Call = nil
	for _, c := range []struct {
		name   string
		module w.ToolOptions
		args   string
		caps   tool.Capabilities
		opts   sandbox.Options
		says   string
		asked  int // the service, which checks for itself
		lines  int
	}{
		{"without a grant for it", runsCommand(command, 1), string(args), tool.Capabilities{}, jailed, "refused", 0, 0},
		{"another command than the approved one", runsCommand(command, 1), `{"command":"true"}`, exec, jailed, "refused", 1, 0},
		{"without a service", runsCommand(command, 1), string(args), exec, sandbox.Options{}, "refused", 0, 0},
		{"while the module initialises", initialize, string(args), exec, jailed, "ok", 0, 0},
		{"the approved command", runsCommand(command, 1), string(args), exec, jailed, "ran", 1, 1},
		{"the approved command twice", runsCommand(command, 2), string(args), exec, jailed, "refused", 2, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			_ = os.Remove(file)
			asked = 0
			j := granted(t, probe(c.module), ask{args: c.args, caps: c.caps, cwd: dir, mounts: []policy.Mount{{Host: dir, Write: true}}})
			if got := output(t, j.mustRun(t, newBox(t, c.opts))); got != c.says {
				t.Errorf("the guest says %q, want %q", got, c.says)
			}
			made, _ := os.ReadFile(file)
			if n := bytes.Count(made, []byte("\n")); n != c.lines {
				t.Errorf("the command ran %d times, want %d", n, c.lines)
			}
			if asked != c.asked {
				t.Errorf("the service was asked %d times, want %d", asked, c.asked)
			}
		})
	}
}

// faulty is a service with a bug.
type faulty struct{}

func (faulty) Run(context.Context, policy.Grant, services.Command) (services.CommandResult, error) {
	var none *int
	return services.CommandResult{Code: none, Stdout: make([]byte, *none)}, nil
}

func TestABugOfAServiceIsTheHostsFault(t *testing.T) {
	box := newBox(t, sandbox.Options{Services: services.Set{Exec: faulty{}}})
	j := granted(t, probe(runsCommand("true", 1)), ask{args: `{"command":"true"}`, caps: tool.Capabilities{Exec: "command"}})
	if r, err := j.run(t.Context(), box); !errors.Is(err, hostmod.ErrPanic) {
		t.Errorf("Run says %v, %s", err, r.Summary())
	}
	output(t, granted(t, probe(w.ToolOptions{}), ask{}).mustRun(t, box))
	for _, fault := range []error{hostmod.ErrPanic, preview1.ErrPanic} {
		if r, err := sandbox.Judge(fmt.Errorf("the engine's words: %w", fault)); !errors.Is(err, fault) {
			t.Errorf("%v became %s, %v", fault, r.Summary(), err)
		}
	}
}

// TestACallInsideACall: if a call leads to the start of another module, that module's start
// functions must not act with the call's grant.
func TestACallInsideACall(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "made")
	command := "touch " + file
	args, _ := json.Marshal(map[string]string{"command": command})
	inner := runsCommand(command, 1)
	inner.Initialize, _ = runs(command)
	inner.Call = nil
	outer := granted(t, probe(w.ToolOptions{}), ask{args: string(args), caps: tool.Capabilities{Exec: "command"}, cwd: dir, mounts: []policy.Mount{{Host: dir, Write: true}}})
	ctx := hostmod.WithWorld(t.Context(), &hostmod.World{Grant: outer.grant, Cwd: dir, Services: services.Set{Exec: jail.New(jail.Options{})}})
	box := newBox(t, sandbox.Options{Services: services.Set{Exec: jail.New(jail.Options{})}})
	r, err := granted(t, probe(inner), ask{}).run(ctx, box)
	if err != nil {
		t.Fatal(err)
	}
	output(t, r)
	missing(t, file)
}

func TestEveryCallHasAFreshInstance(t *testing.T) {
	box := newBox(t, sandbox.Options{})
	j := granted(t, probe(counter()), ask{})
	for range 5 {
		if got := output(t, j.mustRun(t, box)); got != "1" {
			t.Errorf("the module has been called %s times, it says", got)
		}
	}
}

func TestConcurrentCallsShareNothing(t *testing.T) {
	box := newBox(t, sandbox.Options{})
	echo, count := probe(w.ToolOptions{Call: w.EchoArgs()}), probe(counter())
	var wg sync.WaitGroup
	for n := range 16 {
		args := fmt.Sprintf(`{"n":%d,"pad":%q}`, n, strings.Repeat("x", 1000*n))
		a, b := granted(t, echo, ask{args: args}), granted(t, count, ask{})
		wg.Go(func() {
			for range 5 {
				if r, err := a.run(t.Context(), box); err != nil || string(r.Output) != args {
					t.Errorf("call %d got %.60s, %v", n, r.Output, err)
				}
				if r, err := b.run(t.Context(), box); err != nil || string(r.Output) != `{"output":"1"}` {
					t.Errorf("the counter says %s, %v", r.Output, err)
				}
			}
		})
	}
	wg.Wait()
	if n := sandbox.CompiledModules(box); n != 2 {
		t.Errorf("%d modules were compiled", n)
	}
}

func TestADeadlineEndsItsOwnCallOnly(t *testing.T) {
	box := newBox(t, sandbox.Options{})
	mod := probe(w.ToolOptions{Call: code(
		w.LocalGet(w.ParamArgsLen), w.I32Const(2), w.I32GtU(), w.If(w.Loop(w.Br(0))), w.ReturnOK("ok"))})
	spins := granted(t, mod, ask{args: `{"spin":true}`, limits: quick})
	good := granted(t, mod, ask{})
	output(t, good.mustRun(t, box))
	ended := make(chan tool.Result)
	go func() {
		r, _ := spins.run(t.Context(), box)
		ended <- r
	}()
	for {
		select {
		case r := <-ended:
			failure(t, r, tool.CodeTimeout, tool.InternalError, "timed out")
			output(t, good.mustRun(t, box))
			return
		default:
			output(t, good.mustRun(t, box))
		}
	}
}

func TestCancel(t *testing.T) {
	box := newBox(t, sandbox.Options{})
	log := own("log", "log", i32s(3)...)
	spins := granted(t, probe(w.ToolOptions{Imports: []w.Import{log}, Call: code(
		w.I32Const(2), w.I32Const(w.ManifestBase), w.I32Const(3), w.Call(0), w.Spin())}), ask{})
	t.Run("while the guest runs", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r, err := spins.runTelling(ctx, box, func(tool.Progress) { cancel() })
		if err != nil {
			t.Fatal(err)
		}
		failure(t, r, tool.CodeCancelled, tool.InternalError, "cancelled")
	})
	t.Run("before it is compiled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r, err := granted(t, probe(w.ToolOptions{MemoryMin: 9}), ask{}).run(ctx, box)
		if err != nil {
			t.Fatal(err)
		}
		failure(t, r, tool.CodeCancelled, tool.InternalError, "cancelled")
	})
}

func TestWhatAGuestSays(t *testing.T) {
	box := newBox(t, sandbox.Options{})
	said := func(t *testing.T, j job) (lines []tool.Progress) {
		r, err := j.runTelling(t.Context(), box, func(p tool.Progress) { lines = append(lines, p) })
		if err != nil {
			t.Fatal(err)
		}
		output(t, r)
		return lines
	}
	logs := func(n, length int32) w.ToolOptions {
		return w.ToolOptions{Imports: []w.Import{own("log", "log", i32s(3)...)}, Locals: i32s(1), MemoryMin: 64,
			Data: []w.Segment{{Offset: dataAt, Bytes: bytes.Repeat([]byte("x"), 8000)}},
			Call: code(repeat(n, code(w.I32Const(3), w.I32Const(dataAt), w.I32Const(length), w.Call(0))), w.ReturnOK("logged"))}
	}
	t.Run("a message keeps its level and is cut", func(t *testing.T) {
		lines := said(t, granted(t, probe(logs(1, 8000)), ask{}))
		if len(lines) != 1 || lines[0].Level != "warn" || len(lines[0].Message) > 4100 || !strings.HasSuffix(lines[0].Message, "x ...") {
			t.Errorf("the log is %d lines, %.80v", len(lines), lines)
		}
	})
	t.Run("a flood is dropped, and that is said once", func(t *testing.T) {
		lines := said(t, granted(t, probe(logs(50_000, 100)), ask{}))
		last := lines[len(lines)-1]
		if n := len(lines) * 101; n > policy.DefaultLimits().LogBytes+200 || !strings.Contains(last.Message, "dropped") {
			t.Errorf("%d bytes came through, the last line is %q", n, last.Message)
		}
	})
	t.Run("a flood of progress is dropped", func(t *testing.T) {
		report := code(w.I64Const(1), w.I32Const(0), w.I64Const(0), w.I32Const(0), w.I32Const(0), w.Call(0))
		lines := said(t, granted(t, probe(w.ToolOptions{Locals: i32s(1), Call: code(repeat(20_000, report), w.ReturnOK("reported")),
			Imports: []w.Import{own("progress", "report", w.I64, w.I32, w.I64, w.I32, w.I32)}}), ask{}))
		if len(lines) != 10_000 {
			t.Errorf("%d reports came through", len(lines))
		}
	})
	t.Run("progress", func(t *testing.T) {
		lines := said(t, granted(t, probe(w.ToolOptions{
			Imports: []w.Import{own("progress", "report", w.I64, w.I32, w.I64, w.I32, w.I32)},
			Data:    []w.Segment{{Offset: pathAt, Bytes: []byte("half")}},
			Call: code(w.I64Const(1), w.I32Const(1), w.I64Const(2), w.I32Const(pathAt), w.I32Const(4), w.Call(0),
				w.I64Const(3), w.I32Const(0), w.I64Const(9), w.I32Const(0), w.I32Const(0), w.Call(0), w.ReturnOK("reported")),
		}), ask{}))
		if len(lines) != 2 || lines[0].Message != "half" || lines[0].Done != 1 || *lines[0].Total != 2 || lines[1].Total != nil {
			t.Errorf("progress is %+v", lines)
		}
	})
}

func TestLargeResultsAreCut(t *testing.T) {
	box := newBox(t, sandbox.Options{})
	const limit = 10_000
	a := ask{limits: policy.Limits{OutputBytes: limit}}
	t.Run("a string of 1 MiB", func(t *testing.T) {
		text := append(append([]byte(`"`), bytes.Repeat([]byte("x"), 1<<20)...), '"')
		r := granted(t, probe(bigStructured(text)), a).mustRun(t, box)
		if got := output(t, r); len(r.Output) > limit*9/8 || !strings.Contains(got, "left out") {
			t.Errorf("%d bytes: %.80s", len(r.Output), got)
		}
	})
	t.Run("an error of 60000 bytes", func(t *testing.T) {
		o := bigStructured(bytes.Repeat([]byte("x"), 60_000))
		o.Call = w.ReturnWords(w.ResultErr, w.ErrorNotFound, dataAt, 60_000, 0, 0)
		r := granted(t, probe(o), a).mustRun(t, box)
		failure(t, r, tool.CodeNotFound, tool.NotFound, "xxx ...")
		if len(r.Err.Message) > limit+8 {
			t.Errorf("the message has %d bytes", len(r.Err.Message))
		}
	})
}

func TestErrorsOfTheTool(t *testing.T) {
	box := newBox(t, sandbox.Options{Interpreter: true})
	for discriminant, want := range []struct {
		code tool.Code
		typ  tool.ErrorType
	}{
		w.ErrorInvalidInput: {tool.CodeInvalidArgs, tool.ValidationFailed},
		w.ErrorUnknownTool:  {tool.CodeUnknownTool, tool.NotFound},
		w.ErrorNotFound:     {tool.CodeNotFound, tool.NotFound},
		w.ErrorDenied:       {tool.CodeDenied, tool.PermissionDenied},
		w.ErrorIO:           {tool.CodeIO, tool.IOError},
		w.ErrorParse:        {tool.CodeParse, tool.ParseError},
		w.ErrorUnavailable:  {tool.CodeUnavailable, tool.IOError},
		w.ErrorCancelled:    {tool.CodeCancelled, tool.InternalError},
		w.ErrorFailed:       {tool.CodeFailed, tool.InternalError},
	} {
		r := granted(t, probe(w.ToolOptions{Call: w.ReturnError(uint32(discriminant), "try another")}), ask{}).mustRun(t, box)
		says := "try another"
		if discriminant == w.ErrorCancelled {
			says = "without saying why" // it carries no text
		}
		if r.Err == nil || r.Err.Code != want.code || r.Err.Type != want.typ || !strings.Contains(r.Err.Message, says) {
			t.Errorf("case %d became %+v", discriminant, r.Err)
		}
	}
}

// A code of a tool is removed from its message, and no tool passes for the host with a code.
func TestCodesOfTheTool(t *testing.T) {
	box := newBox(t, sandbox.Options{Interpreter: true})
	for name, tt := range map[string]struct {
		kind  uint32
		text  string
		code  tool.Code
		typ   tool.ErrorType
		still string
	}{
		"a code of its own":                      {w.ErrorInvalidInput, "NOT_UNIQUE: 3 times", "NOT_UNIQUE", tool.ValidationFailed, "3 times"},
		"one that the host gives too":            {w.ErrorFailed, "NOT_FOUND: no such key", tool.CodeNotFound, tool.InternalError, "no such key"},
		"the one of its kind, said again":        {w.ErrorFailed, "TOOL_FAILED: README: no", tool.CodeFailed, tool.InternalError, "README: no"},
		"a denial that says so":                  {w.ErrorDenied, "DENIED: README: no", tool.CodeDenied, tool.PermissionDenied, "README: no"},
		"a code and no words":                    {w.ErrorIO, "NO_SPACE: ", "NO_SPACE", tool.IOError, "without saying why"},
		"a denial of the host":                   {w.ErrorFailed, "DENIED: a rule said no", tool.CodeFailed, tool.InternalError, "DENIED: a rule said no"},
		"an interruption":                        {w.ErrorFailed, "INTERRUPTED: again", tool.CodeFailed, tool.InternalError, "INTERRUPTED: again"},
		"a fault of the host":                    {w.ErrorNotFound, "HOST_FAULT: sorry", tool.CodeNotFound, tool.NotFound, "HOST_FAULT: sorry"},
		"content that was not seen":              {w.ErrorInvalidInput, "CONTENT_NOT_SEEN: x", tool.CodeInvalidArgs, tool.ValidationFailed, "CONTENT_NOT_SEEN: x"},
		"a timeout":                              {w.ErrorFailed, "TOOL_TIMEOUT: x", tool.CodeFailed, tool.InternalError, "TOOL_TIMEOUT: x"},
		"a code that the host may have some day": {w.ErrorFailed, "TOOL_TIRED: x", tool.CodeFailed, tool.InternalError, "TOOL_TIRED: x"},
		"small letters":                          {w.ErrorIO, "Disk: full", tool.CodeIO, tool.IOError, "Disk: full"},
		"too short":                              {w.ErrorIO, "IO: full", tool.CodeIO, tool.IOError, "IO: full"},
		"too long":                               {w.ErrorIO, strings.Repeat("A", 41) + ": x", tool.CodeIO, tool.IOError, "AAA: x"},
		"on the second line":                     {w.ErrorIO, "x\nNO_SPACE: y", tool.CodeIO, tool.IOError, "NO_SPACE: y"},
	} {
		t.Run(name, func(t *testing.T) {
			r := granted(t, probe(w.ToolOptions{Call: w.ReturnError(tt.kind, tt.text)}), ask{}).mustRun(t, box)
			failure(t, r, tt.code, tt.typ, tt.still)
			if r.Err != nil && tt.text == "NOT_UNIQUE: 3 times" && r.Err.Message != "3 times" {
				t.Errorf("the message is %q", r.Err.Message)
			}
		})
	}
}

// TestCloseWhileCompiling: Close stops a compilation and waits for its end, and nothing is
// compiled afterwards.
func TestCloseWhileCompiling(t *testing.T) {
	for name, mod := range map[string]*tool.Module{
		"a good module":                  probe(w.ToolOptions{}),
		"a module that does not compile": probe(w.ToolOptions{Call: w.Drop()}),
	} {
		t.Run(name, func(t *testing.T) {
			started, goOn := make(chan struct{}), make(chan struct{})
			box := sandbox.New(sandbox.Options{Spawn: jail.RunHelper, OnCompile: func(*tool.Module) { close(started); <-goOn }})
			j := granted(t, mod, ask{})
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				_, _ = j.run(ctx, box)
				close(ended)
			}()
			<-started
			cancel()
			<-ended
			closed := make(chan error)
			go func() { closed <- box.Close() }()
			close(goOn)
			if err := <-closed; err != nil {
				t.Error(err)
			}
			if r, err := j.run(t.Context(), box); err == nil {
				t.Errorf("a closed sandbox runs calls: %s", r.Summary())
			}
		})
	}
}
