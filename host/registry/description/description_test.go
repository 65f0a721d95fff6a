package description_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/registry/description"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm"
	"github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// command and plugin are modules of both kinds. No test here runs them.
func command() []byte { return commandFor("wasi_snapshot_preview1") }

func commandFor(wasi string) []byte {
	b := wasmtest.New()
	b.ImportFunc(wasi, "path_open", nil, nil)
	b.Func("_start", nil, nil, nil)
	return b.Bytes()
}

func plugin(exports ...string) []byte {
	b := wasmtest.New()
	b.ImportFunc("extism:host/env", "config_get", []wasm.ValType{wasm.I64}, []wasm.ValType{wasm.I64})
	b.ImportFunc("extism:host/env", "http_request", []wasm.ValType{wasm.I64, wasm.I64}, []wasm.ValType{wasm.I64})
	for _, name := range exports {
		b.Func(name, nil, []wasm.ValType{wasm.I32}, nil, wasmtest.I32Const(0))
	}
	return b.Bytes()
}

// lists answers for modules that list their own tools.
type lists struct{ tool.Manifest }

func (l lists) Describe(_ context.Context, mod *tool.Module) (tool.Manifest, error) {
	code, err := mod.Read()
	if err != nil {
		return tool.Manifest{}, err
	}
	m, err := wasm.Decode(code)
	if err != nil {
		return tool.Manifest{}, err
	}
	if _, described := wasm.CustomSection(m, wasm.ManifestSection); described || l.Name == "" {
		return tool.Manifest{}, errors.New("it was asked for what it does not say")
	}
	return l.Manifest, nil
}

func add(t testing.TB, text string, code []byte, box lists) (*tool.Module, error) {
	t.Helper()
	d, err := description.Parse("d.toml", []byte(text))
	if err != nil {
		return nil, err
	}
	return d.Add(t.Context(), box, tool.NewModule("my file", tool.OriginFile, "my file.wasm", code))
}

// section is what lies in a module.
func section(t testing.TB, mod *tool.Module) string {
	t.Helper()
	code, err := mod.Read()
	if err != nil {
		t.Fatal(err)
	}
	m, err := wasm.Decode(code)
	if err != nil {
		t.Fatal(err)
	}
	text, ok := wasm.CustomSection(m, wasm.ManifestSection)
	if !ok {
		t.Fatal("it has no description")
	}
	return string(text)
}

func TestWhatADescriptionBecomes(t *testing.T) {
	own := lists{tool.Manifest{ABI: tool.ABIServlet, Name: "clock", Inferred: true, Notes: []string{"a tool is left out"}, Tools: []tool.Spec{{
		Definition:   tool.Definition{Name: "now", Description: "The time.", Parameters: []byte(`{"type":"object"}`)},
		Capabilities: tool.Capabilities{Files: tool.FilesWrite, Network: tool.NetworkHTTP},
	}}}}
	const none = `"capabilities":{}`
	for _, tt := range []struct {
		what string
		text string
		code []byte
		box  lists
		want string
	}{
		{"a command with all that one can have", `
			name = "python"
			version = "3.11.3"
			[tools.run]
			description = "Runs a script."
			args = ["-c", "{code}"]
			stdin = "{input}"
			env = { PYTHONHOME = "/usr/local" }
			files = "read"
			[tools.run.parameters.code]
			type = "string"
			required = true
			[tools.run.parameters]
			input = { type = "string", description = "What it reads.", maxLength = 3 }
			`, command(), lists{},
			`{"abi":"wasi:command","name":"python","version":"3.11.3","tools":[{"name":"run","description":"Runs a script.",` +
				`"parameters":{"type":"object","properties":{"code":{"type":"string"},"input":{"description":"What it reads.","maxLength":3,"type":"string"}},"required":["code"],"additionalProperties":false},` +
				`"capabilities":{"files":"read"},"run":{"args":["-c","{code}"],"stdin":"{input}","env":{"PYTHONHOME":"/usr/local"}}}]}`},
		{"a command of which little is said has the name of its file", "[tools.go]\ndescription = \"Goes.\"", command(), lists{},
			`{"abi":"wasi:command","name":"my-file","tools":[{"name":"go","description":"Goes.","parameters":{"type":"object","properties":{}},` + none + `,"run":{}}]}`},
		{"a plugin, whose export has the name of its tool if nothing else is said, and tools in the order of the file", `
			config = { units = "metric" }
			[tools.b]
			description = "B."
			hosts = ["API.example.org"]
			secrets = ["API_KEY"]
			[tools.a]
			description = "A."
			function = "other"
			input = "{text}"
			network = true
			parameters.text.type = "string"
			`, plugin("b", "other"), lists{},
			`{"abi":"extism:plugin","name":"my-file","tools":[{"name":"b","description":"B.","parameters":{"type":"object","properties":{}},` +
				`"capabilities":{"network":"http","hosts":["API.example.org"],"secrets":[{"name":"API_KEY"}]},"run":{"function":"b"}},` +
				`{"name":"a","description":"A.","parameters":{"type":"object","properties":{"text":{"type":"string"}},"additionalProperties":false},"capabilities":{"network":"http"},` +
				`"run":{"input":"{text}","function":"other"}}],"config":{"units":"metric"}}`},
		{"a plugin that lists its tools: what is not said is not asked for, and what the host noted is not its own", `name = "time"` + "\nhosts = [\"time.example.org\"]",
			plugin("describe", "call"), own,
			`{"abi":"mcp.run:servlet","name":"time","tools":[{"name":"now","description":"The time.","parameters":{"type":"object"},"capabilities":{"network":"http","hosts":["time.example.org"]}}]}`},
		{"an empty file: the tools of the module, which ask for nothing", "", plugin("describe", "call"), own,
			`{"abi":"mcp.run:servlet","name":"clock","tools":[{"name":"now","description":"The time.","parameters":{"type":"object"},` + none + `}]}`},
		{"a tool of a plugin that lists them is called as it lists it", "[tools.now]\ndescription = \"The time here.\"", plugin("list_tools", "call_tool"), lists{},
			`{"abi":"hyper-mcp:plugin@2","name":"my-file","tools":[{"name":"now","description":"The time here.","parameters":{"type":"object","properties":{}},` + none + `}]}`},
	} {
		t.Run(tt.what, func(t *testing.T) {
			mod, err := add(t, tt.text, tt.code, tt.box)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, section(t, mod)); diff != "" {
				t.Error(diff)
			}
			code, _ := mod.Read()
			again, err := description.Copy(code, tool.NewModule("my file", tool.OriginFile, "my file.wasm", tt.code))
			if err != nil || again.Digest != mod.Digest {
				t.Errorf("carried into the same module it is another one: %v", err)
			}
			twice, err := add(t, tt.text, code, tt.box)
			if err != nil || twice.Digest != mod.Digest {
				t.Errorf("described twice it is another one: %v", err)
			}
			m, _ := wasm.Decode(code)
			if string(wasm.WithoutCustom(m, wasm.ManifestSection)) != string(tt.code) {
				t.Error("without its description it is not what it was")
			}
		})
	}
}

func TestBadDescriptions(t *testing.T) {
	run := "[tools.run]\ndescription = \"Runs.\"\n"
	for _, tt := range []struct{ what, text, want string }{
		{"a key that there is not, with the nearest one", run + "arg = [\"-c\"]", `d.toml:3: unknown key "tools.run.arg" (did you mean "tools.run.args"?)`},
		{"a key of the head that there is not", "naem = \"a\"", `d.toml:1: unknown key "naem" (did you mean "name"?)`},
		{"what is no TOML", "name = ", "d.toml:1: "},
		{"a name that is none", "name = \"../x\"", `d.toml:1: name: "../x" is not 1 to 64`},
		{"a tool whose name is none", "\n[tools.\"a b\"]\ndescription = \"x\"", `d.toml:2: [tools.a b]: "a b" is not`},
		{"a tool without a description", "\n[tools.run]\nargs = []", "d.toml:2: [tools.run]: it has no description"},
		{"tools that are none", "[tools]", "it holds no tool"},
		{"a list where a table is wanted", "tools = []", "d.toml:1: tools: it is an array; write a table"},
		{"a text where a list is wanted", run + "args = \"-c\"", "d.toml:3: tools.run.args: it is a string; write a list"},
		{"a text where a table is wanted", run + "parameters = \"x\"", "d.toml:3: tools.run.parameters: it is a string"},
		{"a parameter that is no table", run + "parameters.x = 1", "d.toml:3: tools.run.parameters.x: it is an integer"},
		{"a type of parameters that there is not", run + "args = [\"{x}\"]\n[tools.run.parameters.x]\ntype = \"text\"", `d.toml:4: tools.run.parameters.x: parameters: the schema`},
		{"required that is neither true nor false", run + "parameters.x = { type = \"string\", required = 1 }", `"required" is 1`},
		{"a date in a schema", run + "parameters.x.default = 2026-01-01", "d.toml:3: tools.run.parameters.x: it holds a date"},
		{"a number that JSON has not", run + "parameters.x.default = [nan]", "it holds a number that JSON does not have"},
		{"a parameter of which nothing comes", run + "args = [\"-c\"]\n\nparameters.code.type = \"string\"", "d.toml:5: tools.run.parameters.code: it is not used"},
		{"a text that names no parameter", run + "args = [\"{code}\"]", "d.toml:1: [tools.run]: run: args: {code} is not a parameter"},
		{"a brace that is not closed", run + "stdin = \"{\"", "has a brace without {NAME}"},
		{"a NUL in an argument", run + `args = ["a\u0000b"]`, "d.toml:3: tools.run.args: it holds a NUL"},
		{"a NUL in a file", "name = \"a\x00b\"", "d.toml:1: "},
		{"a variable that is none", run + "env = { \"A=B\" = \"1\" }", `"A=B" is not 1 to 64`},
		{"a file that is too large", "# " + strings.Repeat("x", 10<<20), "d.toml: it has more than 1048576 bytes"},
		{"one that is nested deep", "name = " + strings.Repeat("[", 100_000), "brackets within each other"},
		{"one with deep keys", strings.Repeat("a.", 100_000) + "a = 1", "dots on a line"},
		{"more arguments than there may be", run + "args = [" + strings.Repeat(`"a",`, 100_000) + "]", "it has 100000 entries; at most 64 are accepted"},
		{"an argument that is too long", run + "args = [\"" + strings.Repeat("a", 9<<10) + "\"]", "it has 9216 bytes; at most 8192"},
		{"more tools than there may be", func() (text string) {
			for i := range 129 {
				text += fmt.Sprintf("[tools.t%d]\ndescription = \"x\"\n", i)
			}
			return text
		}(), "129 tools, more than the limit of 128"},
		{"a manifest that would be too large", run + strings.Repeat("x", 0) + "parameters.x = { type = \"string\", description = \"" + strings.Repeat("x", 300<<10) + "\" }", "more than the limit of 262144"},
		{"needs of all tools beside tools", "files = \"read\"\n" + run, "d.toml:1: files: in a file with [tools.NAME], each tool has needs of its own"},
		{"files that are neither read nor written", run + "files = \"rw\"", `d.toml:3: tools.run.files: "rw" is not one of "read", "write"`},
		{"hosts, and no network", run + "hosts = [\"a.example\"]\nnetwork = false", "d.toml:4: tools.run.network: it is false, and there are hosts"},
		{"a host that is none", run + "hosts = [\"https://a.example/\"]", "hosts: host"},
		{"a secret that is none", run + "secrets = [\"a b\"]", `d.toml:3: tools.run.secrets: "a b" is not`},
		{"what only plugins have", run + "function = \"run\"", "d.toml:1: [tools.run]: function has no meaning for a WASI command"},
		{"the config of a command", "config.a = \"b\"\n" + run, "d.toml:1: config.a: only plugins are configured"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			if mod, err := add(t, tt.text, command(), lists{}); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, %.300v", mod, err)
			}
		})
	}
	for _, tt := range []struct {
		what, text string
		code       []byte
		want       string
	}{
		{"a module that describes itself", run, wasmtest.Tool(wasmtest.ToolOptions{Call: wasmtest.EchoArgs()}), "it describes itself"},
		{"a module of no kind that runs", run, wasmtest.New().Bytes(), "a module without a known interface, which no description makes run"},
		{"what is no module", run, []byte("text"), "it looks like text"},
		{"what only commands have", run + "args = [\"a\"]", plugin("run"), "args has no meaning for an Extism plugin"},
		{"no tools, of a module that does not say them", "name = \"a\"", command(), "d.toml names no tools, and the module does not say which it has"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			if mod, err := add(t, tt.text, tt.code, lists{}); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, %v", mod, err)
			}
		})
	}
}

// TestSamplesAreDescriptions: what a person is shown to begin with is taken as it is.
func TestSamplesAreDescriptions(t *testing.T) {
	for what, tt := range map[string]struct {
		code []byte
		says string
	}{
		"a command":                     {command(), `files = "read"`},
		"a plugin":                      {plugin("_initialize", "asyncify_evil", "count_vowels"), `function = "count_vowels"`},
		"a command of wasi_unstable":    {commandFor("wasi_unstable"), `files = "read"`},
		"a plugin with odd names":       {plugin("a.b", "a-b", "\x1b[31m\n[tools.evil]", `"`), `function = "a.b"`},
		"a plugin with many functions":  {plugin(strings.Split("a b c d e f g h i j", " ")...), "# 2 more functions are exported."},
		"a plugin that lists its tools": {plugin("describe", "call"), "# hosts = "},
	} {
		t.Run(what, func(t *testing.T) {
			text, err := description.Sample(tool.NewModule("my file", tool.OriginFile, "", tt.code))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(text, tt.says) || strings.Contains(text, "evil") {
				t.Errorf("it does not say %q:\n%s", tt.says, text)
			}
			own := lists{tool.Manifest{ABI: tool.ABIServlet, Name: "x", Tools: []tool.Spec{{Definition: tool.Definition{Name: "x", Description: "x", Parameters: []byte(`{"type":"object"}`)}}}}}
			if _, err := add(t, text, tt.code, own); err != nil {
				t.Errorf("%v\n%s", err, text)
			}
			// With what it leaves to a person, too.
			all := strings.NewReplacer("# files", "files", "# hosts", "hosts", "# secrets", "secrets", "# config", "config", "# env", "env").Replace(text)
			if _, err := add(t, all, tt.code, own); err != nil {
				t.Errorf("%v\n%s", err, all)
			}
		})
	}
}

func TestFilesThatAreNone(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "large.toml"), make([]byte, 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{".": "not a regular file", "nothing": "no such file", "large.toml": "more than 1048576 bytes"} {
		if _, err := description.Read(filepath.Join(dir, name)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := description.Read(os.DevNull); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("name = \"a\"\n[tools.run]\ndescription = \"x\"\nargs = [\"{a}\"]\nparameters.a.type = \"string\"\n")
	f.Add("[tools.\"x\".parameters]\n\"\" = { type = \"array\", items = { enum = [1, 2.5, true] } }\nconfig.a.b = 1")
	f.Fuzz(func(t *testing.T, text string) {
		d, err := description.Parse("d.toml", []byte(text))
		if err != nil {
			return
		}
		for _, code := range [][]byte{command(), plugin("run")} {
			mod, err := d.Add(t.Context(), lists{}, tool.NewModule("m", tool.OriginFile, "m", code))
			if err != nil {
				continue
			}
			if _, err := tool.ParseManifest([]byte(section(t, mod))); err != nil {
				t.Errorf("what it makes is no manifest: %v", err)
			}
		}
	})
}
