package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/prompt"
	"github.com/stockade-dev/stockade/host/config"
	"github.com/stockade-dev/stockade/host/diff"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/redact"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// nowhere fails if the first line of a file, in one of the forms in which it
// could have got there, is in any file below a directory:
//
//	nowhere FILE DIRECTORY
func nowhere(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: nowhere FILE DIRECTORY")
	}
	value, _, _ := strings.Cut(ts.ReadFile(args[0]), "\n")
	quoted, err := json.Marshal(value)
	ts.Check(err)
	looked := 0
	err = filepath.WalkDir(ts.MkAbs(args[1]), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		looked++
		data, err := os.ReadFile(path)
		for form, text := range map[string]string{
			"plain": value, "JSON": strings.Trim(string(quoted), `"`), "base64": strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(value)), "="),
			"base64 in a text": base64.StdEncoding.EncodeToString([]byte("x:" + value))[3:][:len(value)],
			"URL":              url.QueryEscape(value), "hex": hex.EncodeToString([]byte(value)), "HEX": strings.ToUpper(hex.EncodeToString([]byte(value))),
		} {
			if bytes.Contains(data, []byte(text)) {
				ts.Fatalf("%s holds the value as %s", path, form)
			}
		}
		return err
	})
	ts.Check(err)
	if looked == 0 {
		ts.Fatalf("there is no file below %s", args[1])
	}
}

// secretive are modules whose tool asks for the secret TOKEN. The first returns
// its arguments and logs them; the second fails with them as its error; the
// third returns the placeholder that it got; the fourth asks for one more secret
// than the first.
func secretive() map[string]wasmtest.ToolOptions {
	const (
		manifest = `{"abi":"stockade:tool@0.1.0","name":"probe","tools":[{"name":"probe","description":"A tool made for a test.","parameters":{"type":"object"},` +
			`"capabilities":{"secrets":[{"name":"TOKEN","hosts":["api.example.com"],"header":"X-Key"}]}}]}`
		name, result = wasmtest.ScratchBase + 8192, wasmtest.ScratchBase + 8256
		list         = wasmtest.ScratchBase + 24
	)
	join := func(pieces ...[]byte) []byte { return bytes.Join(pieces, nil) }
	words := func(words ...byte) []byte {
		var out []byte
		for _, w := range words {
			out = append(out, w, 0, 0, 0)
		}
		return out
	}
	ask := join(wasmtest.I32Const(name), wasmtest.I32Const(5), wasmtest.I32Const(result), wasmtest.Call(0),
		wasmtest.I32Const(3), wasmtest.LocalGet(wasmtest.ParamArgs), wasmtest.LocalGet(wasmtest.ParamArgsLen), wasmtest.Call(1))
	fail := join(wasmtest.StoreBytes(wasmtest.ScratchBase, words(wasmtest.ResultErr, wasmtest.ErrorFailed, 0, 0, 0, 0)),
		wasmtest.I32Const(wasmtest.ScratchBase), wasmtest.LocalGet(wasmtest.ParamArgs), wasmtest.I32Store(8),
		wasmtest.I32Const(wasmtest.ScratchBase), wasmtest.LocalGet(wasmtest.ParamArgsLen), wasmtest.I32Store(12),
		wasmtest.I32Const(wasmtest.ScratchBase))
	// A result with one text, whose pointer and length are copied from the other.
	image := join(words(wasmtest.ResultOK, 0, 1, 0, 0, 0), words(wasmtest.ContentText, 0, 0, 0, 0, 0, 0, 0, 0))
	tell := join(wasmtest.StoreBytes(wasmtest.ScratchBase, image),
		wasmtest.I32Const(wasmtest.ScratchBase), wasmtest.I32Const(list), wasmtest.I32Store(4),
		wasmtest.I32Const(list), wasmtest.I32Const(result), wasmtest.I32Load(4), wasmtest.I32Store(4),
		wasmtest.I32Const(list), wasmtest.I32Const(result), wasmtest.I32Load(8), wasmtest.I32Store(8),
		wasmtest.I32Const(wasmtest.ScratchBase))
	three := []wasmtest.ValType{wasmtest.I32, wasmtest.I32, wasmtest.I32}
	options := func(manifest string, then []byte) wasmtest.ToolOptions {
		return wasmtest.ToolOptions{
			Manifest: manifest, Call: join(ask, then), Data: []wasmtest.Segment{{Offset: name, Bytes: []byte("TOKEN")}},
			Imports: []wasmtest.Import{
				{Module: "stockade:tool/secrets@0.1.0", Name: "placeholder", Params: three},
				{Module: "stockade:tool/log@0.1.0", Name: "log", Params: three},
			},
			// The allocator stands behind the imports; the host looks for it under
			// this name when a host function returns text.
			Edit: func(b *wasmtest.Builder) { b.ExportFunc("cabi_realloc", 2) },
		}
	}
	return map[string]wasmtest.ToolOptions{
		"secretive": options(manifest, wasmtest.EchoArgs()), "secretive error": options(manifest, fail), "secretive placeholder": options(manifest, tell),
		"secretive more": options(strings.Replace(manifest, `"secrets":[`, `"secrets":[{"name":"OTHER"},`, 1), wasmtest.EchoArgs()),
	}
}

func TestQuestionsShowNoSecret(t *testing.T) {
	const value = "hunter2-hunter2"
	known := new(redact.Redactor)
	known.Add(value)
	version := func(text string) *tool.Version {
		return &tool.Version{Size: int64(len(text)), Target: value, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }}
	}
	link := version("")
	link.Mode = fs.ModeSymlink
	changes := []tool.Change{
		{Path: "/ws/" + value, Kind: tool.Created, After: version("a\n" + value + "\n")}, {Path: "/ws/l", Kind: tool.Created, After: link},
		{Path: "/ws/b", From: "/ws/" + value, Kind: tool.Renamed, Before: version(value), After: version("x" + value + "\nc")},
	}
	q := policy.Question{
		Call: tool.Call{Args: json.RawMessage(`{"a":"` + value + `"}`)}, Reason: value, ModuleText: value, AskFirstReason: value, Output: value, Command: "curl -H " + value, Dir: "/" + value, CallerDescription: value, Changes: diff.New(t.Context(), changes, "/ws", nil), Paths: []string{value}, Network: []string{value},
		Warning: value, Rules: map[policy.Scope]string{policy.ScopeAlways: value}, Scopes: []policy.Scope{policy.ScopeOnce, policy.ScopeAlways}, AllowRule: value,
		BindingChanges: []policy.BindingChange{{Rule: value, Was: policy.Binding{Description: "1", Schema: "1", Capabilities: "1", Texts: tool.SpecTexts{Description: value, Schema: value, AsksFor: value}},
			Now: policy.Binding{Description: "2", Schema: "2", Capabilities: "2", Texts: tool.SpecTexts{Description: "x" + value, Schema: "x" + value, AsksFor: "x" + value}}}},
	}
	var out strings.Builder
	narrow := prompt.View{Width: 30} // a value would be broken over two rows
	for _, q := range []policy.Question{q, {Call: q.Call, Changes: q.Changes}, {Call: q.Call}} {
		p := prompt.ForCall(prompt.Question{Question: q.Redacted(known)})
		rows := p.Rows(narrow)
		for _, key := range "?dj" {
			if c, ok := p.Answer(narrow, string(key)); ok {
				rows = append(rows, p.Expand(narrow, c)...)
			}
		}
		out.WriteString(strings.Join(rows, "\n"))
	}
	for _, part := range []string{value, "hunter2", value[:6]} {
		if strings.Contains(out.String(), part) {
			t.Errorf("the question shows %q:\n%s", part, out.String())
		}
	}
	if clean := q.Redacted(known); len(clean.Scopes) != 1 || len(q.Scopes) != 2 {
		t.Errorf("where what comes holds a secret, an answer can hold for %v", clean.Scopes)
	}
	if !strings.Contains(out.String(), "has changed") || q.Rules[policy.ScopeAlways] != value || q.BindingChanges[0].Rule != value || q.Paths[0] != value || q.Network[0] != value {
		t.Error("what changed is not shown, or was changed")
	}
	if q.Command != "curl -H "+value || !strings.Contains(string(q.Call.Args), value) {
		t.Error("what runs was changed")
	}
}

// An answer is kept in a file, with the command that it was given for.
func TestNoSecretIsRemembered(t *testing.T) {
	const value = "hunter2-hunter2"
	a := netApp(t, func(*config.Network) {})
	a.redactor = new(redact.Redactor)
	a.redactor.Add(value)
	for command, want := range map[string]bool{"echo " + value: false, "echo " + base64.StdEncoding.EncodeToString([]byte(value)): false, "echo hello": true} {
		r, err := policy.ParseRule("bash(command=" + command + ")")
		if err != nil {
			t.Fatal(err)
		}
		r.Effect, r.Binding = policy.Allow, policy.Binding{Module: "builtin", Description: "d", Schema: "s", Capabilities: "c"}
		if err := a.remember(r); (err == nil) != want || err != nil && strings.Contains(err.Error(), value) {
			t.Errorf("%s: %v", command, err)
		}
	}
	if data, err := os.ReadFile(a.Dirs.AnswersFile()); err != nil || bytes.Contains(data, []byte(value)) || !bytes.Contains(data, []byte("echo hello")) {
		t.Errorf("the file holds %s, %v", data, err)
	}
}

func TestWhatIsPrintedIsRedacted(t *testing.T) {
	const value = "hunter2-hunter2"
	var stdout, stderr bytes.Buffer
	s := &stdio{out: &stdout, err: &stderr}
	known := new(redact.Redactor)
	s.redact(known)
	known.Add(value)
	s.note("cannot use %s", value)
	s.hint("try %x", value)
	for _, odd := range []string{"first line\nsecond line", "zero\u200bwidth", "bell\x07rings"} {
		known.Add(odd)
		s.note("cannot use %s", odd)
	}
	for _, piece := range []string{"it is hun", "ter2-hun", "ter2. hunt"} {
		if _, err := s.out.Write([]byte(piece)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.flushOut(); err != nil {
		t.Fatal(err)
	}
	if got := stdout.String(); got != "it is [redacted]. hunt" {
		t.Errorf("stdout: %q", got)
	}
	if got := stderr.String(); got != "stockade: cannot use [redacted]\nhint: try [redacted]\n"+strings.Repeat("stockade: cannot use [redacted]\n", 3) {
		t.Errorf("stderr: %q", got)
	}
}
