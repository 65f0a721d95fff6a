package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/sandbox/admit"
	"github.com/stockade-dev/stockade/host/sandbox/dialect/extism"
	"github.com/stockade-dev/stockade/host/services"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm"
	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// plugin assembles an Extism plugin. It imports what its code calls. Each function has
// four locals of 64 bits.
type plugin struct{ imports []string }

// call calls a function of Extism, or "user:NAME", or proc_exit of WASI, or
// "wasi_unstable:NAME".
func (p *plugin) call(name string, args ...[]byte) []byte {
	i := slices.Index(p.imports, name)
	if i < 0 {
		i, p.imports = len(p.imports), append(p.imports, name)
	}
	return code(slices.Concat(args...), w.Call(uint32(i)))
}

// put leaves the offset of a new block with a text on the stack, and in local 0.
func (p *plugin) put(text string) []byte {
	out := code(p.call("alloc", w.I64Const(int64(len(text)))), w.LocalSet(0))
	for i := range len(text) {
		out = append(out, p.call("store_u8", w.LocalGet(0), w.I64Const(int64(i)), []byte{0x7c}, w.I32Const(int32(text[i])))...)
	}
	return append(out, w.LocalGet(0)...)
}

// answer returns a body that succeeds with a text.
func (p *plugin) answer(text string) []byte {
	return code(p.call("output_set", p.put(text), w.I64Const(int64(len(text)))), w.I32Const(0))
}

// give returns a body that succeeds with the content of a block.
func (p *plugin) give(offset []byte) []byte {
	return code(offset, w.LocalSet(1), p.call("output_set", w.LocalGet(1), p.call("length", w.LocalGet(1))), w.I32Const(0))
}

// module makes the plugin, with functions that return a code.
func (p *plugin) module(funcs map[string][]byte, edits ...func(*w.Builder)) *tool.Module {
	b := w.New()
	for _, name := range append(p.imports, "input_length") { // so that it is a plugin whatever it calls
		from := "extism:host/env"
		if rest, ok := strings.CutPrefix(name, "user:"); ok {
			from, name = "extism:host/user", rest
		}
		sig, ok := extism.Dialect{}.ImportSignature(from, name)
		if rest, old := strings.CutPrefix(name, "wasi_unstable:"); old {
			from, name, sig.Results, ok = "wasi_unstable", rest, []byte{byte(w.I32)}, true
		}
		if name == "proc_exit" {
			from, sig.Params, ok = "wasi_snapshot_preview1", []byte{byte(w.I32)}, true
		}
		if !ok {
			panic(name)
		}
		types := func(in []byte) (out []w.ValType) {
			for _, t := range in {
				out = append(out, w.ValType(t))
			}
			return out
		}
		b.ImportFunc(from, name, types(sig.Params), types(sig.Results))
	}
	b.Memory(2, -1)
	b.ExportMemory("memory")
	locals := slices.Repeat([]w.ValType{w.I64}, 4)
	for _, name := range slices.Sorted(maps.Keys(funcs)) {
		switch name {
		case "_initialize", "_start":
			b.Func(name, nil, nil, locals, funcs[name])
		default:
			b.Func(name, nil, i32s(1), locals, funcs[name])
		}
	}
	for _, edit := range edits {
		edit(b)
	}
	return module(b.Bytes())
}

// one returns a plugin with the function "probe".
func one(body func(p *plugin) []byte) *tool.Module {
	p := &plugin{}
	return p.module(map[string][]byte{"probe": body(p)})
}

// loop returns a body that does something for ever.
func loop(body []byte) []byte { return code(w.Loop(body, w.Br(0)), w.I32Const(0)) }

func TestWhatBecomesOfHostilePlugins(t *testing.T) {
	drop := func(body []byte) []byte { return code(body, w.Drop(), w.I32Const(0)) }
	void := func(body []byte) []byte { return code(body, w.I32Const(0)) }
	box := newBox(t, sandbox.Options{VerifyReset: true})
	good := granted(t, one(func(p *plugin) []byte { return p.answer("fine") }), ask{})
	for name, c := range map[string]struct {
		body func(p *plugin) []byte
		end  end
	}{
		"loads at 0":              {func(p *plugin) []byte { return drop(p.call("load_u8", w.I64Const(0))) }, badABI("load_u8: 1 bytes at the offset 0x0 lie outside")},
		"loads at 2^63":           {func(p *plugin) []byte { return drop(p.call("load_u8", w.I64Const(math.MinInt64))) }, badABI("outside")},
		"loads 8 bytes at 2^64-1": {func(p *plugin) []byte { return drop(p.call("load_u64", w.I64Const(-1))) }, badABI("outside")},
		"loads 8 bytes at the end": {func(p *plugin) []byte {
			return drop(p.call("load_u64", p.put("12345678"), w.I64Const(1), []byte{0x7c}))
		}, badABI("outside")},
		"stores at -8":             {func(p *plugin) []byte { return void(p.call("store_u64", w.I64Const(-8), w.I64Const(1))) }, badABI("outside")},
		"stores behind the memory": {func(p *plugin) []byte { return void(p.call("store_u8", w.I64Const(1<<20), w.I32Const(1))) }, badABI("outside")},
		"reads behind the input":   {func(p *plugin) []byte { return drop(p.call("input_load_u64", w.I64Const(-1))) }, fine},
		"frees what is none": {func(p *plugin) []byte {
			return void(code(p.call("free", w.I64Const(77)), p.call("free", w.I64Const(-1))))
		}, fine},
		"frees twice": {func(p *plugin) []byte {
			return void(code(p.put("x"), w.Drop(), p.call("free", w.LocalGet(0)), p.call("free", w.LocalGet(0))))
		}, fine},
		"the length of what is none":   {func(p *plugin) []byte { return code(p.call("length", w.I64Const(1<<40)), []byte{0xa7}) }, fine},
		"an output outside":            {func(p *plugin) []byte { return void(p.call("output_set", w.I64Const(64), w.I64Const(1))) }, badABI("outside")},
		"an output of 2^64-1 bytes":    {func(p *plugin) []byte { return void(p.call("output_set", p.put("x"), w.I64Const(-1))) }, badABI("outside")},
		"an output that is taken back": {func(p *plugin) []byte { return code(p.answer("gone"), w.Drop(), p.call("reset"), w.I32Const(0)) }, fine},
		"an output of 33 MiB": {func(p *plugin) []byte {
			return void(p.call("output_set", p.call("alloc", w.I64Const(33<<20)), w.I64Const(33<<20)))
		}, badABI("limit")},
		"an error that is none": {func(p *plugin) []byte { return void(p.call("error_set", w.I64Const(65))) }, badABI("error_set: no block")},
		"an error of a freed block": {func(p *plugin) []byte {
			return void(code(p.call("error_set", p.put("x")), p.call("free", w.LocalGet(0))))
		}, fine},
		"allocates 2^63 bytes":         {func(p *plugin) []byte { return drop(p.call("alloc", w.I64Const(math.MinInt64))) }, memory},
		"allocates for ever":           {func(p *plugin) []byte { return loop(code(p.call("alloc", w.I64Const(1<<20)), w.Drop())) }, memory},
		"allocates little for ever":    {func(p *plugin) []byte { return loop(code(p.call("alloc", w.I64Const(1)), w.Drop())) }, memory},
		"looks at the memory for ever": {func(p *plugin) []byte { return loop(code(p.call("input_length"), w.Drop())) }, timeout},
		"computes for ever":            {func(*plugin) []byte { return w.Spin() }, timeout},
		"logs for ever":                {func(p *plugin) []byte { return loop(p.call("log_info", p.put("x"))) }, trap("calls into the host")},
		"logs what is none":            {func(p *plugin) []byte { return void(p.call("log_warn", w.I64Const(99))) }, badABI("log_warn: the message: no block")},
		"asks for a name that is none": {func(p *plugin) []byte { return drop(p.call("config_get", w.I64Const(-1))) }, badABI("config_get")},
		"a variable that is none":      {func(p *plugin) []byte { return void(p.call("var_set", p.put("x"), w.I64Const(3))) }, badABI("the value")},
		"a variable of 1 MiB":          {func(p *plugin) []byte { return void(p.call("var_set", p.put("x"), p.call("alloc", w.I64Const(1<<20)))) }, end{tool.CodeFailed, tool.InternalError, "more than 1 MiB"}},
		"a name of 2 MiB":              {func(p *plugin) []byte { return drop(p.call("var_get", p.call("alloc", w.I64Const(2<<20)))) }, badABI("limit")},
		"a request that is not JSON":   {func(p *plugin) []byte { return drop(p.call("http_request", p.put("x"), w.I64Const(0))) }, badABI("not JSON")},
		"a request that nobody has granted": {func(p *plugin) []byte {
			return drop(p.call("http_request", p.put(`{"url":"http://a.example"}`), w.I64Const(0)))
		}, end{tool.CodeDenied, tool.PermissionDenied, "not granted"}},
		"wants a model":                {func(p *plugin) []byte { return drop(p.call("user:create_message", p.put("{}"))) }, end{tool.CodeFailed, tool.IOError, "not supported here"}},
		"notifies of what is not JSON": {func(p *plugin) []byte { return void(p.call("user:notify_progress", p.put("x"))) }, badABI("not JSON")},
		"ends itself":                  {func(p *plugin) []byte { return code(p.answer("done"), p.call("proc_exit", w.I32Const(0))) }, fine},
		"ends itself with a code":      {func(p *plugin) []byte { return code(p.call("proc_exit", w.I32Const(3)), w.I32Const(0)) }, trap("exit code 3")},
		"ends itself with a code and says": {func(p *plugin) []byte {
			return code(p.call("error_set", p.put("too late")), p.call("proc_exit", w.I32Const(3)), w.I32Const(0))
		}, end{tool.CodeFailed, tool.InternalError, "too late"}},
		"fails and does not say why": {func(*plugin) []byte { return w.I32Const(-1) }, end{tool.CodeFailed, tool.InternalError, "code -1"}},
		"fails and says why":         {func(p *plugin) []byte { return code(p.call("error_set", p.put("a reason")), w.I32Const(1)) }, end{tool.CodeFailed, tool.InternalError, "a reason"}},
		"traps":                      {func(*plugin) []byte { return w.Unreachable() }, trap("unreachable")},
	} {
		t.Run(name, func(t *testing.T) {
			a := ask{limits: policy.Limits{MemoryBytes: 64 << 20, HostCalls: 10_000}}
			if c.end == timeout {
				a.limits.Timeout = 20 * time.Millisecond
			}
			r := granted(t, one(c.body), a).mustRun(t, box)
			if c.end == fine {
				if r.Err != nil {
					t.Errorf("it failed: %s: %s", r.Err.Code, r.Err.Message)
				}
			} else {
				failure(t, r, c.end.code, c.end.typ, c.end.says)
			}
			if n := sandbox.MemoryInUse(box); n != 0 {
				t.Errorf("%d bytes are still held", n)
			}
			if got := output(t, good.mustRun(t, box)); got != "fine" {
				t.Errorf("the next call returns %q", got)
			}
		})
	}
}

// What a plugin has from its host and what it has itself are within one limit,
// whichever comes first.
func TestThePluginsMemoryAndItsHostsAreOne(t *testing.T) {
	box := newBox(t, sandbox.Options{})
	p := &plugin{}
	const half = 9 << 20
	keep := code(p.call("alloc", w.I64Const(half)), w.Drop())
	grow := code(w.I32Const(half>>16), w.MemoryGrow(), w.I32Const(-1), w.I32Eq(), w.If(w.Unreachable()))
	mod := p.module(map[string][]byte{"keeps": code(keep, w.I32Const(0)), "grows": code(grow, w.I32Const(0)),
		"keeps_first": code(keep, grow, w.I32Const(0)), "grows_first": code(grow, keep, w.I32Const(0))})
	for name, want := range map[string]tool.Code{"keeps": "", "grows": "", "keeps_first": tool.CodeMemory, "grows_first": tool.CodeMemory} {
		r := granted(t, mod, ask{tool: name, limits: policy.Limits{MemoryBytes: 16 << 20}}).mustRun(t, box)
		switch {
		case want == "" && r.Err != nil, want != "" && (r.Err == nil || r.Err.Code != want):
			t.Errorf("%s: %+v, want %q", name, r.Err, want)
		case want == "" && r.Usage.PeakMemoryBytes < half:
			t.Errorf("%s: %d bytes are said to be used", name, r.Usage.PeakMemoryBytes)
		}
		if n := sandbox.MemoryInUse(box); n != 0 {
			t.Errorf("%s: %d bytes are still held", name, n)
		}
	}
}

// The blocks and variables of a plugin are gone with the call, and its blocks from the
// initialisation are nowhere.
func TestACallOfAPluginFindsNothingOfAnother(t *testing.T) {
	box := newBox(t, sandbox.Options{VerifyReset: true})
	p := &plugin{}
	mod := p.module(map[string][]byte{
		"fill": code(p.call("var_set", p.put("name"), p.put("left")), p.answer("0123456789")),
		"look": p.give(p.call("var_get", p.put("name"))),
		"dirt": code(p.call("alloc", w.I64Const(10)), w.LocalSet(2), p.call("output_set", w.LocalGet(2), w.I64Const(10)), w.I32Const(0)),
	})
	for _, step := range [][2]string{{"fill", "0123456789"}, {"look", ""}, {"fill", "0123456789"}, {"dirt", strings.Repeat("\x00", 10)}} {
		if got := output(t, granted(t, mod, ask{tool: step[0]}).mustRun(t, box)); got != step[1] {
			t.Errorf("%s: %q, want %q", step[0], got, step[1])
		}
	}
	kept := &plugin{}
	body := code(w.GlobalGet(0), w.LocalSet(3), kept.call("load_u8", w.LocalGet(3)))
	init := code(kept.call("log_info", kept.put("hello")), kept.put("secret"), w.GlobalSet(0))
	stale := kept.module(map[string][]byte{"_initialize": init, "probe": body}, func(b *w.Builder) { b.Global(w.I64, true, w.I64Const(0)) })
	r := granted(t, stale, ask{}).mustRun(t, box)
	failure(t, r, tool.CodeBadABI, tool.InternalError, "while the plugin initialised")
}

// A plugin has one of three initialisers, and Haskell's follows that of the reactor. Each
// adds a digit to a number, which the tool returns.
func TestHowAPluginIsInitialised(t *testing.T) {
	box := newBox(t, sandbox.Options{VerifyReset: true})
	digit := func(n int32) []byte {
		return code(w.GlobalGet(0), w.I32Const(10), w.I32Mul(), w.I32Const(n), w.I32Add(), w.GlobalSet(0))
	}
	for name, c := range map[string]struct {
		exports []string
		code    int
	}{
		"nothing":                     {nil, 0},
		"a reactor":                   {[]string{"_initialize"}, 1},
		"a reactor and constructors":  {[]string{"_initialize", "__wasm_call_ctors"}, 1},
		"constructors":                {[]string{"__wasm_call_ctors"}, 2},
		"Haskell":                     {[]string{"hs_init"}, 3},
		"Haskell, behind a reactor":   {[]string{"hs_init", "_initialize"}, 13},
		"a command, which it is not":  {[]string{"_start"}, 0},
		"constructors, and a command": {[]string{"_start", "__wasm_call_ctors"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			p := &plugin{}
			mod := p.module(map[string][]byte{"probe": w.GlobalGet(0)}, func(b *w.Builder) {
				b.Global(w.I32, true, w.I32Const(0))
				for _, e := range c.exports {
					switch e {
					case "hs_init":
						b.Func(e, i32s(2), nil, nil, digit(3), w.LocalGet(0), w.LocalGet(1), w.I32Add(), w.If(w.Unreachable()))
					case "__wasm_call_ctors":
						b.Func(e, nil, nil, nil, digit(2))
					case "_start":
						b.Func(e, nil, nil, nil, digit(9))
					default:
						b.Func(e, nil, nil, nil, digit(1))
					}
				}
			})
			for range 2 {
				r := granted(t, mod, ask{}).mustRun(t, box)
				got := 0
				if r.Err != nil && r.Err.ExitCode != nil {
					got = *r.Err.ExitCode
				}
				if got != c.code || (r.Err == nil) != (c.code == 0) {
					t.Errorf("%d, want %d: %+v", got, c.code, r.Err)
				}
			}
		})
	}
}

// service answers all requests, and knows all secrets.
type service struct{ asked []services.Request }

func (s *service) Fetch(_ context.Context, _ policy.Grant, req services.Request) (*services.Response, error) {
	s.asked = append(s.asked, req)
	if strings.Contains(req.URL, "denied") {
		return nil, &services.Error{Kind: services.Denied, Err: errors.New("denied.example is not open to this tool")}
	}
	return &services.Response{Status: 201, Headers: [][2]string{{"X-A", "1"}, {"X-A", "2"}}, Body: []byte("body")}, nil
}

func TestAPluginReachesTheNetworkThatIsGranted(t *testing.T) {
	s := &service{}
	box := newBox(t, sandbox.Options{Services: services.Set{HTTP: s}})
	a := ask{caps: tool.Capabilities{Network: tool.NetworkHTTP}, network: []network.Rule{{Allow: true, Name: "a.example"}}}
	for name, c := range map[string]struct {
		body func(p *plugin) []byte
		want string
		end  end
	}{
		"the body": {func(p *plugin) []byte {
			return p.give(p.call("http_request", p.put(`{"url":"http://a.example/","method":"post","headers":{"b":"2","a":"1"}}`), p.put("sent")))
		}, "body", fine},
		"the status": {func(p *plugin) []byte {
			return code(p.call("http_request", p.put(`{"url":"http://a.example/"}`), w.I64Const(0)), w.Drop(), p.call("http_status_code"), w.I32Const(201), w.I32Sub())
		}, "", fine},
		"the headers": {func(p *plugin) []byte {
			return code(p.call("http_request", p.put(`{"url":"http://a.example/"}`), w.I64Const(0)), w.Drop(), p.give(p.call("http_headers")))
		}, `{"x-a":"1,2"}`, fine},
		"no headers": {func(p *plugin) []byte { return p.give(p.call("http_headers")) }, `{}`, fine},
		"another host": {func(p *plugin) []byte {
			return code(p.call("http_request", p.put(`{"url":"http://denied.example/"}`), w.I64Const(0)), w.Drop(), w.I32Const(0))
		}, "", end{tool.CodeDenied, tool.PermissionDenied, "denied.example is not open"}},
	} {
		t.Run(name, func(t *testing.T) {
			s.asked = nil
			r := granted(t, one(c.body), a).mustRun(t, box)
			switch {
			case c.end != fine:
				failure(t, r, c.end.code, c.end.typ, c.end.says)
			case strings.HasPrefix(c.want, "{"):
				if string(r.Output) != c.want {
					t.Errorf("%s %+v", r.Output, r.Err)
				}
			default:
				if got := output(t, r); got != c.want {
					t.Errorf("%q", got)
				}
			}
			if name == "the body" {
				want := []services.Request{{Method: "POST", URL: "http://a.example/", Headers: [][2]string{{"a", "1"}, {"b", "2"}}, Body: []byte("sent")}}
				if diff := cmp.Diff(want, s.asked); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// vowels returns a plugin that counts the vowels of its input, fewer than ten, like the
// examples of Extism.
func vowels() *tool.Module {
	add, wrap, extend, atLeast := []byte{0x7c}, []byte{0xa7}, []byte{0xad}, []byte{0x5a} // of 64 bits
	return one(func(p *plugin) []byte {
		counts := code(p.call("input_load_u8", w.LocalGet(1)), extend, w.LocalSet(3))
		for _, vowel := range "aeiou" {
			counts = code(counts, w.LocalGet(3), wrap, w.I32Const(vowel), w.I32Eq(), extend, w.LocalGet(2), add, w.LocalSet(2))
		}
		return code(
			w.Block(w.Loop(
				w.LocalGet(1), p.call("input_length"), atLeast, w.BrIf(1),
				counts, w.LocalGet(1), w.I64Const(1), add, w.LocalSet(1), w.Br(0))),
			p.call("output_set", p.put(`{"count":0}`), w.I64Const(11)),
			p.call("store_u8", w.LocalGet(0), w.I64Const(9), add, w.LocalGet(2), wrap, w.I32Const('0'), w.I32Add()),
			w.I32Const(0))
	})
}

func TestVowels(t *testing.T) {
	r := granted(t, vowels(), ask{args: `{"input":"count the vowels"}`}).mustRun(t, newBox(t, sandbox.Options{}))
	if string(r.Output) != `{"count":5}` {
		t.Errorf("%s %+v", r.Output, r.Err)
	}
}

// describedPlugin returns a module that somebody has described.
func describedPlugin(t *testing.T, p *plugin, funcs map[string][]byte, manifest string) *tool.Module {
	t.Helper()
	return p.module(funcs, func(b *w.Builder) { b.Custom(wasm.ManifestSection, []byte(manifest)) })
}

func TestDescribedPlugins(t *testing.T) {
	p := &plugin{}
	echo := p.call("output_set", p.call("input_offset"), p.call("input_length"))
	funcs := map[string][]byte{
		"echo":  code(echo, w.I32Const(0)),
		"units": p.give(p.call("config_get", p.put("units"))),
		"key":   p.give(p.call("config_get", p.put("API_KEY"))),
	}
	const config = `"config":{"units":"metric","API_KEY":"written down"},`
	manifest := func(head, tools string) string {
		return `{"abi":"extism:plugin","name":"probe",` + head + `"tools":[` + tools + `]}`
	}
	spec := func(name, more string) string {
		return `{"name":"` + name + `","description":"d","parameters":{"type":"object","properties":{"a":{"type":"string"}}}` + more + `}`
	}
	box := newBox(t, sandbox.Options{Services: services.Set{Secrets: standIns{}}})
	key := tool.Secret{Name: "API_KEY", Hosts: []string{"a.example"}}
	for name, c := range map[string]struct {
		manifest, tool, args string
		caps                 tool.Capabilities
		want, refused        string
	}{
		"the arguments are the input":     {manifest("", spec("echo", "")), "echo", `{"a":"x"}`, tool.Capabilities{}, `{"a":"x"}`, ""},
		"the only argument is the input":  {manifest("", `{"name":"echo","description":"d","parameters":{"type":"object"}}`), "echo", `{"input":"x"}`, tool.Capabilities{}, "x", ""},
		"a text is the input":             {manifest("", spec("say", `,"run":{"function":"echo","input":"<{a}>"}`)), "say", `{"a":"x"}`, tool.Capabilities{}, "<x>", ""},
		"what it is configured with":      {manifest(config, spec("units", "")), "units", `{}`, tool.Capabilities{}, "metric", ""},
		"what it is not configured with":  {manifest("", spec("units", "")), "units", `{}`, tool.Capabilities{}, "", ""},
		"a secret is only a placeholder":  {manifest(config, spec("key", "")), "key", `{}`, tool.Capabilities{Network: tool.NetworkHTTP, Secrets: []tool.Secret{key}}, "PLACEHOLDER", ""},
		"a function that is not there":    {manifest("", spec("say", `,"run":{"function":"sing"}`)), "", "", tool.Capabilities{}, "", "does not export"},
		"a function that is not a tool's": {manifest("", spec("memory", "")), "", "", tool.Capabilities{}, "", "does not export the function"},
		"arguments, as of a command":      {manifest("", spec("echo", `,"run":{"args":["-c"]}`)), "", "", tool.Capabilities{}, "", "say input"},
		"a process":                       {manifest("", spec("echo", `,"capabilities":{"exec":"a"}`)), "", "", tool.Capabilities{}, "", "starts no process"},
		"another ABI":                     {strings.Replace(manifest("", spec("echo", "")), "extism:plugin", "wasi:command", 1), "", "", tool.Capabilities{}, "", "is for the ABI"},
	} {
		t.Run(name, func(t *testing.T) {
			mod := describedPlugin(t, p, funcs, c.manifest)
			_, err := box.Describe(t.Context(), mod)
			if c.refused != "" {
				if refused, ok := errors.AsType[*admit.RefusedError](err); !ok || !strings.Contains(refused.Why, c.refused) {
					t.Errorf("%v, want %q", err, c.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			r := granted(t, mod, ask{tool: c.tool, args: c.args, caps: c.caps, network: []network.Rule{{Allow: true, Name: "a.example"}}}).mustRun(t, box)
			if strings.HasPrefix(c.want, "{") {
				if string(r.Output) != c.want {
					t.Errorf("%s %+v", r.Output, r.Err)
				}
			} else if got := output(t, r); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// standIns has a placeholder for every secret.
type standIns struct{}

func (standIns) Placeholders([]tool.Secret) services.Placeholders { return placeholders{} }

type placeholders struct{ services.Placeholders }

func (placeholders) Placeholder(context.Context, string) (string, error) { return "PLACEHOLDER", nil }

func TestPluginsThatNobodyDescribed(t *testing.T) {
	box := newBox(t, sandbox.Options{})
	plain := func(names ...string) func(p *plugin) *tool.Module {
		return func(p *plugin) *tool.Module {
			funcs := map[string][]byte{}
			for _, name := range names {
				funcs[name] = w.I32Const(0)
				if strings.HasPrefix(name, "_") {
					funcs[name] = nil
				}
			}
			return p.module(funcs)
		}
	}
	typed := func(name string, params, results []w.ValType, body ...[]byte) func(*w.Builder) {
		return func(b *w.Builder) { b.Func(name, params, results, nil, body...) }
	}
	for name, c := range map[string]struct {
		make  func(p *plugin) *tool.Module
		tools string // or
		says  string
	}{
		"functions that return a code": {plain("one", "two", "_start", "_initialize"), "one two", ""},
		"functions that return nothing": {func(p *plugin) *tool.Module {
			return p.module(nil, typed("quiet", nil, nil), typed("malloc", i32s(1), i32s(1), w.LocalGet(0)))
		}, "quiet", ""},
		"a command":                  {plain("_start"), "_start", ""},
		"a command that initialises": {plain("_start", "_initialize"), "", "no function that can be called"},
		"one of the snapshot before": {func(p *plugin) *tool.Module {
			p.call("wasi_unstable:sched_yield")
			return p.module(map[string][]byte{"one": w.I32Const(0)})
		}, "one", ""},
		"one of two snapshots": {func(p *plugin) *tool.Module {
			p.call("wasi_unstable:sched_yield")
			p.call("proc_exit")
			return p.module(map[string][]byte{"one": w.I32Const(0)})
		}, "", "a module can use only one of them"},
		"a library": {func(p *plugin) *tool.Module {
			return p.module(map[string][]byte{"_start": nil}, typed("up", []w.ValType{w.I64}, []w.ValType{w.I64}, w.LocalGet(0)))
		}, "", "a library for other plugins"},
		"a name that no tool can have": {plain("one", "t w o"), "one", ""},
		"an import that is exported": {func(p *plugin) *tool.Module {
			p.call("http_status_code")
			return p.module(nil, func(b *w.Builder) { b.ExportFunc("status", 0) })
		}, "", "no function that can be called"},
		"an initializer with arguments": {func(p *plugin) *tool.Module {
			return p.module(map[string][]byte{"one": w.I32Const(0)}, typed("_initialize", i32s(1), nil))
		}, "", "another signature"},
		"functions of another host": {func(p *plugin) *tool.Module {
			b := w.New()
			b.ImportFunc("extism:host/user", "paint", nil, nil)
			b.ImportFunc("extism:host/env", "alloc", []w.ValType{w.I64}, []w.ValType{w.I64})
			return module(b.Bytes())
		}, "", `needs functions of that: "extism:host/user.paint"`},
		"what it lists and calls has another type": {func(p *plugin) *tool.Module {
			return p.module(map[string][]byte{"describe": w.I32Const(0)}, typed("call", i32s(1), i32s(1), w.LocalGet(0)))
		}, "", "it exports call"},
		"it cannot say what it is": {func(p *plugin) *tool.Module {
			return p.module(map[string][]byte{"describe": code(p.call("error_set", p.put("no config")), w.I32Const(1)), "call": w.I32Const(0)})
		}, "", "it says: no config"},
		"it wants the network to say what it is": {func(p *plugin) *tool.Module {
			return p.module(map[string][]byte{"describe": code(p.call("http_request", p.put(`{"url":"http://a.example"}`), w.I64Const(0)), w.Drop(), w.I32Const(0)), "call": w.I32Const(0)})
		}, "", "the network is not available"},
		"it does not end": {func(p *plugin) *tool.Module {
			return p.module(map[string][]byte{"describe": w.Spin(), "call": w.I32Const(0)})
		}, "", "did not end"},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := box.Describe(t.Context(), c.make(&plugin{}))
			if c.says != "" {
				if refused, ok := errors.AsType[*admit.RefusedError](err); !ok || !strings.Contains(refused.Why, c.says) {
					t.Errorf("%v, want %q", err, c.says)
				}
				return
			}
			var names []string
			for _, s := range m.Tools {
				names = append(names, s.Name)
			}
			if err != nil || strings.Join(names, " ") != c.tools || !m.Inferred {
				t.Errorf("%q, %v", names, err)
			}
		})
	}
}

// TestPluginsThatListTheirTools tests both protocols, with messages of the plugin meanwhile.
func TestPluginsThatListTheirTools(t *testing.T) {
	for abi, c := range map[string]struct{ list, call, input string }{
		"mcp.run:servlet":    {"describe", "call", `{"method":"tools/call","params":{"name":"greet","arguments":{"who":"you"}}}`},
		"hyper-mcp:plugin@2": {"list_tools", "call_tool", `{"request":{"name":"greet","arguments":{"who":"you"}},"context":{"id":"call-1","_meta":{"progressToken":"call-1"}}}`},
	} {
		t.Run(abi, func(t *testing.T) {
			box := newBox(t, sandbox.Options{VerifyReset: true})
			p := &plugin{}
			mod := p.module(map[string][]byte{
				c.list: p.answer(`{"tools":[{"name":"greet","description":"Greets.","inputSchema":{"type":"object","properties":{"who":{"type":"string"}}}},{"name":"not this"}]}`),
				c.call: code(
					p.call("user:notify_progress", p.put(`{"progressToken":"x","progress":1.5,"total":3,"message":"half"}`)),
					p.call("user:notify_logging_message", p.put(`{"level":"warning","logger":"me","data":"careful"}`)),
					p.call("user:notify_tool_list_changed"),
					p.call("log_error", p.call("input_offset")), // which frees the input
					p.answer(`{"content":[{"type":"text","text":"hello"}]}`)),
			})
			m, err := box.Describe(t.Context(), mod)
			if err != nil || m.ABI != abi || len(m.Tools) != 1 || m.Tools[0].Run != nil || len(m.Notes) != 1 || !strings.Contains(m.Notes[0], `"not this"`) {
				t.Errorf("%+v, %v", m, err)
			}
			var said []string
			r, err := granted(t, mod, ask{tool: "greet", args: `{"who":"you"}`}).runTelling(t.Context(), box, func(p tool.Progress) {
				total := uint64(0)
				if p.Total != nil {
					total = *p.Total
				}
				said = append(said, fmt.Sprint(p.Level, " ", p.Message, " ", p.Done, "/", total))
			})
			if err != nil || output(t, r) != "hello" {
				t.Errorf("%v", err)
			}
			want := []string{" half 1/3", "warn me: careful 0/0", "info the plugin says that its tools have changed; what was approved stays as it was 0/0", "error " + c.input + " 0/0"}
			if !slices.Equal(said, want) {
				t.Errorf("it said %q, want %q", said, want)
			}
		})
	}
}
