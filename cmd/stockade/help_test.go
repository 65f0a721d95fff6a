package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/secret"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/undo"
)

func TestTopicsReadWellAsText(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`\]\(|^\|`) // of Markdown that has to be rendered
	for _, p := range topics() {
		page, err := helpPages.ReadFile("help/" + p.name + ".md")
		if err != nil || p.short == "" {
			t.Errorf("a page begins with %q, and not with its name and what it is about: %v", "# "+p.name, err)
		}
		if !bytes.Contains(readme, []byte("(cmd/stockade/help/"+p.name+".md)")) {
			t.Errorf("README.md does not lead to %s.md", p.name)
		}
		for i, line := range strings.Split(string(page), "\n") {
			if wide := len([]rune(strings.ReplaceAll(line, "\t", "    "))); wide > 80 || link.MatchString(line) {
				t.Errorf("%s.md:%d: %d columns: %s", p.name, i+1, wide, line)
			}
		}
	}
}

// pages are the documents with commands of a reader's.
func pages(t *testing.T) []string {
	t.Helper()
	out, err := filepath.Glob("help/*.md")
	if err != nil {
		t.Fatal(err)
	}
	return append(out, "../../README.md", "../../sdk/README.md", "../../.github/CONTRIBUTING.md")
}

func TestCommandsInPagesAndExamplesParse(t *testing.T) {
	found := 0
	check := func(where, text string) {
		for _, words := range stockadeCommands(t, where, text) {
			found++
			if err := parses(words); err != nil {
				t.Errorf("%s: stockade %s: %v", where, strings.Join(words, " "), err)
			}
		}
	}
	for _, page := range pages(t) {
		for _, code := range codeIn(t, page) {
			check(page, code)
		}
	}
	root := newRootCmd(&app{s: &stdio{}}, "")
	for _, cmd := range append(commands(root), root) {
		for line := range strings.Lines(cmd.Example) {
			check(cmd.CommandPath(), strings.TrimSpace(line))
		}
		for _, code := range inBackquotes.FindAllStringSubmatch(cmd.Long, -1) {
			check(cmd.CommandPath(), code[1])
		}
	}
	if found < 100 {
		t.Errorf("only %d commands were found: the test does not work", found)
	}
}

// Only what is to be copied may be wider than a terminal.
func TestHelpFitsATerminal(t *testing.T) {
	var out strings.Builder
	root := newRootCmd(&app{s: &stdio{out: &out}}, "")
	for _, cmd := range append(commands(root), root) {
		_ = cmd.Help()
	}
	out.WriteString(wrapHanging(chatHelp(), 80))
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "  stockade ") {
			continue
		}
		if columns := terminal.Width(strings.TrimRight(line, "\n")); columns > 79 {
			t.Errorf("%d columns: %s", columns, line)
		}
	}
	if !strings.Contains(out.String(), "\n      --tool stringArray        try a module without adding it: FILE.wasm; it\n                                gets what ") {
		t.Error("what is said of a flag does not go on below itself")
	}
	const text = "one two three four\nfive six\n\nseven\n  eight\n"
	if got, want := wrapHanging(text, 15), "one two three\nfour five six\n\nseven\n  eight\n"; got != want {
		t.Errorf("a paragraph of which a line is too wide: got %q, want %q", got, want)
	}
}

var inBackquotes = regexp.MustCompile("`(stockade [^`]*)`")

// codeIn lists the lines of a page's code, and what stands between back-quotes.
func codeIn(t *testing.T, page string) (out []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	fenced := false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
			continue
		}
		if code, ok := strings.CutPrefix(line, "    "); fenced || ok {
			if !ok {
				code = line
			}
			// The text about a command stands behind two blanks.
			code, _, _ = strings.Cut(strings.TrimPrefix(code, "$ "), "  ")
			out = append(out, code)
		}
	}
	for _, m := range inBackquotes.FindAllStringSubmatch(string(text), -1) {
		out = append(out, strings.ReplaceAll(m[1], "\n", " "))
	}
	return out
}

// stockadeCommands lists the words behind each "stockade" that a shell would
// start as a command.
func stockadeCommands(t *testing.T, where, line string) (out [][]string) {
	t.Helper()
	if !strings.Contains(line, "stockade") {
		return nil
	}
	f, err := syntax.NewParser().Parse(strings.NewReader(strings.ReplaceAll(line, "...", "\\...")), where)
	if err != nil {
		return nil // a line of something else
	}
	syntax.Walk(f, func(n syntax.Node) bool {
		call, ok := n.(*syntax.CallExpr)
		if !ok || len(call.Args) == 0 || filepath.Base(call.Args[0].Lit()) != "stockade" {
			return true
		}
		words, err := expand.Fields(nil, call.Args[1:]...)
		if err != nil { // a command in a word
			words = nil
			for _, w := range call.Args[1:] {
				words = append(words, w.Lit())
			}
		}
		out = append(out, words)
		return true
	})
	return out
}

// parses reports why the program would not understand the words.
func parses(words []string) error {
	root := newRootCmd(&app{s: &stdio{}}, "")
	root.InitDefaultCompletionCmd()
	cmd, rest, err := root.Find(words)
	if err != nil {
		return err
	}
	if err := cmd.ParseFlags(rest); err != nil && !strings.Contains(err.Error(), "help requested") {
		return err
	}
	args := cmd.Flags().Args()
	switch {
	case cmd == root && len(args) > 0 && !isPrompt(args):
		return fmt.Errorf("there is no command %q", args[0])
	case cmd.HasSubCommands() && cmd != root && len(args) > 0 && cmd.Name() != "help":
		return fmt.Errorf("%s has no command %q", cmd.CommandPath(), args[0])
	case cmd.Name() == "help" && len(args) > 0 && args[0] != "TOPIC":
		_, ok := findToolPage(args)
		if found, more, err := root.Find(args); !ok && (err != nil || len(more) > 0 || found == root) {
			return fmt.Errorf("there is no topic %q", args[0])
		}
	case len(args) == 0 && !strings.Contains(cmd.UseLine(), "[") && cmd.Args != nil:
		return nil // the command is named, not made
	}
	if len(args) == 0 {
		return nil
	}
	return cmd.ValidateArgs(args)
}

// TestExitCodesAreDescribed holds the table of the page, and what each help
// says, to the constants.
func TestExitCodesAreDescribed(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "exit.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	ast.Inspect(f, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			if typ, ok := v.Type.(*ast.Ident); ok && typ.Name == "exitCode" {
				want = append(want, v.Values[0].(*ast.BasicLit).Value)
			}
		}
		return true
	})
	var got []string
	for _, m := range regexp.MustCompile(`(?m)^    (\d+) `).FindAllStringSubmatch(section(t, "Exit codes"), -1) {
		got = append(got, m[1])
	}
	if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 {
		t.Errorf("exit codes of exit.go (-), of help/output.md (+):\n%s", diff)
	}
	short := regexp.MustCompile(`\d+`).FindAllString(exitHelp, -1)
	if diff := cmp.Diff(want, short); diff != "" {
		t.Errorf("exit codes of exit.go (-), of the help of commands (+):\n%s", diff)
	}
}

// TestFieldsOfJSONAreDescribed holds the page to the types that are printed.
func TestFieldsOfJSONAreDescribed(t *testing.T) {
	run := itemsOf(section(t, "stockade run --json"))
	for typ, body := range map[session.Type]any{
		session.TypeSessionStarted:   session.Started{},
		session.TypeForked:           session.Forked{},
		session.TypeTurnStarted:      session.TurnStarted{},
		session.TypeMessage:          llm.Message{},
		session.TypeToolCall:         llm.Message{},
		session.TypeDecision:         session.Decision{},
		session.TypeCallIntended:     session.Intent{},
		session.TypeCallChanges:      session.Changes{},
		session.TypeToolStoreChanges: session.ToolStoreChanges{},
		session.TypeToolResult:       llm.Message{},
		session.TypeStepEnded:        session.StepEnded{},
		session.TypeTurnEnded:        session.TurnEnded{},
		session.TypeRewound:          session.Rewound{},
		session.TypeContextReduced:   session.ContextReduced{},
		session.TypeContextCompacted: session.ContextCompacted{},
		session.TypeDelta:            session.Delta{},
		session.TypeReasoning:        session.Reasoning{},
		session.TypeWriting:          session.CallWriting{},
		session.TypeRestart:          session.Restart{},
		session.TypeCallState:        session.CallState{},
		session.TypeProgress:         tool.Progress{},
	} {
		same(t, string(typ), fields(body), run[string(typ)])
		delete(run, string(typ))
	}
	for typ := range run {
		t.Errorf("%q is described, and no type of an event", typ)
	}
	others := itemsOf(section(t, "Other commands"))
	for command, value := range map[string]any{
		"session list":    session.Info{},
		"tool list":       toolJSON{},
		"policy show":     boundJSON{},
		"policy explain":  policy.Explanation{},
		"policy simulate": simulatedJSON{},
		"secret list":     secret.ListEntry{},
		"config trusted":  trustedFileJSON{},
		"doctor":          finding{},
		"selftest":        attackJSON{},
	} {
		got := slices.DeleteFunc(others[command], func(s string) bool { return s == "policy explain" })
		same(t, command, fields(value), got)
	}
	shown := slices.Concat(fields(filesJSON{}), fields(undo.File{}), fields(toolDataJSON{}), fields(taskJSON{}))
	slices.Sort(shown)
	same(t, "session show --files", shown, others["session show --files"])
	stats := slices.Concat(fields(statsJSON{}), fields(callsJSON{}), fields(requestsJSON{}), []string{"tool", "provider", "model"})
	slices.Sort(stats)
	described := others["session stats"]
	slices.Sort(described)
	same(t, "session stats", slices.Compact(stats), slices.Compact(described))
	file := slices.Concat(fields(fileJSON{}), fields(namedJSON{}), fields(specJSON{}), []string{"tool list"})
	slices.Sort(file)
	info := others["tool info"]
	slices.Sort(info)
	same(t, "tool info", slices.Compact(file), slices.Compact(info))

	call := section(t, "stockade call --json")
	exit, text := 1, json.RawMessage(`{}`)
	success := tool.Result{Output: text, Note: "n", LimitMessage: "m"}
	success.Images = []tool.Image{{}}
	failure := success
	failure.Err = &tool.Error{Hint: tool.Advise("h"), Rule: "r", Allow: "a", Denial: text, ExitCode: &exit}
	for _, r := range []tool.Result{success, failure} {
		var envelope map[string]json.RawMessage
		if err := json.Unmarshal(r.Envelope(), &envelope); err != nil {
			t.Fatal(err)
		}
		for name := range envelope {
			if !strings.Contains(call, "`"+name+"`") {
				t.Errorf("the envelope has %s, which is not described", name)
			}
		}
	}
}

// TestErrorCodesAreDescribed holds the page to the codes of the envelope.
func TestErrorCodesAreDescribed(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "../../host/tool/result.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	described := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^    ([A-Z_]+)  |`([a-z]+_[a-z]+)`").FindAllStringSubmatch(section(t, "stockade call --json"), -1) {
		described[m[1]+m[2]] = true
	}
	codes := 0
	ast.Inspect(f, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if typ, ok := v.Type.(*ast.Ident); ok && (typ.Name == "Code" || typ.Name == "ErrorType") {
			codes++
			if name := strings.Trim(v.Values[0].(*ast.BasicLit).Value, `"`); !described[name] {
				t.Errorf("%s is not described", name)
			}
		}
		return true
	})
	if codes == 0 {
		t.Error("no codes were found: the test does not work")
	}
}

func same(t *testing.T, what string, want, got []string) {
	t.Helper()
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: fields of the code (-), of help/output.md (+):\n%s", what, diff)
	}
}

// section is a part of the page about output, by its heading.
func section(t *testing.T, heading string) string {
	t.Helper()
	page, err := helpPages.ReadFile("help/output.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, ok := strings.Cut(string(page), "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("help/output.md has no part %q", heading)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

// itemsOf reads "- `name`: `field`, `field` (about it)" as the fields by name.
func itemsOf(text string) map[string][]string {
	out := map[string][]string{}
	item := ""
	quoted := regexp.MustCompile("`([^`]*)`")
	for lines := bufio.NewScanner(bytes.NewBufferString(text)); lines.Scan(); {
		line := lines.Text()
		if m := regexp.MustCompile("^- `([^`]*)`:").FindStringSubmatch(line); m != nil {
			item, line = m[1], line[len(m[0]):]
		} else if !strings.HasPrefix(line, "  ") {
			item = ""
		}
		for _, m := range quoted.FindAllStringSubmatch(line, -1) {
			if item != "" {
				out[item] = append(out[item], m[1])
			}
		}
	}
	return out
}

// fields lists the names that a struct has in JSON, sorted.
func fields(value any) []string {
	names := map[string]bool{}
	for _, f := range reflect.VisibleFields(reflect.TypeOf(value)) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
