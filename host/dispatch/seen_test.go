package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

// editWorld has a tool that reports content and one that needs to have seen it.
func editWorld(t *testing.T, opts ...policy.Options) (*world, *Dispatcher, *[]string) {
	t.Helper()
	w := newWorld(t, append(opts, policy.Options{})[0])
	spec := func(name, props string, c *tool.Content) tool.Spec {
		return tool.Spec{Content: c, Definition: tool.Definition{Name: name, Description: name,
			Parameters: json.RawMessage(`{"type":"object","properties":{` + props + `},"additionalProperties":false}`)}}
	}
	m, err := tool.NewCatalog(map[*tool.Module]tool.Manifest{{Name: "m", Digest: "d", Origin: tool.OriginBuiltin}: {Name: "m", Tools: []tool.Spec{
		spec("look", `"path":{"type":"string"}`, &tool.Content{Path: "path"}),
		spec("edit", `"path":{"type":"string"},"was":{"type":"string"}`, &tool.Content{Path: "path", Hash: "was"}),
		spec("lines", `"path":{"type":"string"},"was":{"type":"string"}`, &tool.Content{Path: "path", Hash: "was", Lines: true}),
		spec("patch", `"patch":{"type":"string"},"was":{"type":"object"}`, &tool.Content{Patch: "patch", Hash: "was"}),
	}}})
	if err != nil {
		t.Fatal(err)
	}
	w.options.Catalog = m
	var ran []string
	w.run = func(_ context.Context, _ policy.Grant, _ *tool.Module, c tool.Call, _ func(tool.Progress)) (tool.Result, error) {
		ran = append(ran, c.Tool+" "+string(c.Args))
		hash := "h1"
		switch c.Tool {
		case "edit", "lines":
			hash = "h2"
		case "patch":
			return tool.Result{Output: json.RawMessage(`{"output":"","sha256":{"a.txt":"p1","new.txt":"p2","elsewhere.txt":"p3"}}`)}, nil
		}
		return tool.Result{Output: json.RawMessage(`{"output":"","sha256":"` + hash + `"}`)}, nil
	}
	return w, New(w.options), &ran
}

func TestAModelEditsOnlyWhatItHasSeen(t *testing.T) {
	_, d, ran := editWorld(t)
	do := func(caller tool.Caller, name, args string) tool.Result {
		t.Helper()
		c := aCall(name, args)
		c.Caller = caller
		r, err := d.Call(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}

	r := do(tool.CallerAgent, "edit", `{"path":"a.txt"}`)
	if r.Err == nil || r.Err.Code != tool.CodeUnseen || !strings.HasSuffix(r.Err.Message, " a.txt") || len(*ran) != 0 {
		t.Fatalf("unseen: %+v, ran %v", r.Err, *ran)
	}
	do(tool.CallerAgent, "look", `{"path":"b.txt"}`)
	if r := do(tool.CallerAgent, "edit", `{"path":"a.txt"}`); r.Err == nil {
		t.Error("seeing one file counted for another")
	}
	// The same file by another name of it.
	do(tool.CallerAgent, "look", `{"path":"/work/x/../a.txt"}`)
	do(tool.CallerAgent, "edit", `{"path":"./a.txt"}`)
	do(tool.CallerAgent, "edit", `{"path":"a.txt"}`)              // after its own edit it knows the new content
	do(tool.CallerAgent, "edit", `{"path":"a.txt","was":"mine"}`) // a hash that is given is passed on
	do(tool.CallerPerson, "edit", `{"path":"c.txt"}`)             // a person needs no proof
	want := []string{
		`look {"path":"b.txt"}`, `look {"path":"/work/x/../a.txt"}`,
		`edit {"path":"./a.txt","was":"h1"}`, `edit {"path":"a.txt","was":"h2"}`,
		`edit {"path":"a.txt","was":"mine"}`, `edit {"path":"c.txt"}`,
	}
	if got := strings.Join(*ran, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("ran\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

// numbered is a call of a tool in a step of the first turn.
func numbered(step int, name, args string) tool.Call {
	c := aCall(name, args)
	c.Turn, c.Step = 1, step
	return c
}

func TestLinesAreCountedInWhatWasShown(t *testing.T) {
	const a = `{"path":"a.txt"}`
	type aStep []string // its calls
	tests := map[string]struct {
		steps []aStep
		ran   string // the last call that ran
		code  tool.Code
		says  string
	}{
		"read in the step before":             {[]aStep{{"look"}, {"lines"}}, `lines {"path":"a.txt","was":"h1"}`, "", ""},
		"read in the same step":               {[]aStep{{"look", "lines"}}, `look ` + a, tool.CodeUnseen, "before this step"},
		"read again in the same step":         {[]aStep{{"look"}, {"look", "lines"}}, `lines {"path":"a.txt","was":"h1"}`, "", ""},
		"changed in the step before":          {[]aStep{{"look"}, {"lines"}, {"lines"}}, `lines {"path":"a.txt","was":"h2"}`, "", ""},
		"changed by lines in the same step":   {[]aStep{{"look"}, {"lines", "lines"}}, `lines {"path":"a.txt","was":"h1"}`, tool.CodeLinesMoved, "take the line numbers from the results of this step"},
		"changed by text in the same step":    {[]aStep{{"look"}, {"edit", "lines"}}, `edit {"path":"a.txt","was":"h1"}`, tool.CodeLinesMoved, "another call of this step has changed"},
		"text after lines in the same step":   {[]aStep{{"look"}, {"lines", "edit"}}, `edit {"path":"a.txt","was":"h2"}`, "", ""},
		"refused, and again in the next step": {[]aStep{{"look"}, {"edit", "lines"}, {"lines"}}, `lines {"path":"a.txt","was":"h2"}`, "", ""},
		"three changes of text in one step":   {[]aStep{{"look"}, {"edit", "edit", "edit"}}, `edit {"path":"a.txt","was":"h2"}`, "", ""},
		"never read":                          {[]aStep{{"lines"}}, "", tool.CodeUnseen, "read the file first"},
		"an empty hash of the model's own":    {[]aStep{{`edit {"path":"a.txt","was":""}`}}, "", tool.CodeUnseen, "read the file first"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, d, ran := editWorld(t)
			var last tool.Result
			for i, calls := range tt.steps {
				for _, call := range calls {
					name, args, ok := strings.Cut(call, " ")
					if !ok {
						args = a
					}
					var err error
					if last, err = d.Call(t.Context(), numbered(i+1, name, args)); err != nil {
						t.Fatal(err)
					}
				}
			}
			var code tool.Code
			text := ""
			if last.Err != nil {
				code, text = last.Err.Code, last.Err.Message+"; "+last.Err.Hint.String()
			}
			if code != tt.code || !strings.Contains(text, tt.says) || tt.ran != strings.Join((*ran)[max(0, len(*ran)-1):], "") {
				t.Errorf("%s %s; ran %v", code, text, *ran)
			}
		})
	}
}

// TestEditsByNumberOfOneStep mean the lines that were there before it.
func TestEditsByNumberOfOneStep(t *testing.T) {
	type anEdit struct {
		args     string // of a call
		replaced string // what its result says, if it runs
		ran      string // the lines with which it does; empty: it is refused
		note     string
	}
	const moved = "look at the lines in the results of this step"
	for name, edits := range map[string][]anEdit{
		"from the bottom up": {
			{`"line_start":8,"line_end":8`, `[8,1,3]`, `8-8`, ""}, {`"line_start":7,"line_end":7`, `[7,1,0]`, `7-7`, ""}, {`"line_start":1`, `[1,0,1]`, `1`, ""},
		},
		"from the top down": {
			{`"line_start":2,"line_end":3`, `[2,2,5]`, `2-3`, ""}, {`"line_start":10,"line_end":10`, `[13,1,0]`, `13-13`, "line 13 was line 10 before"},
			{`"line_start":12`, `[14,0,2]`, `14`, "line 14 was line 12"}, {`"line_start":12,"line_end":13`, `[16,2,2]`, `16-17`, "lines 16 to 17 were lines 12 to 13"},
		},
		"of one line by one":         {{`"line_start":2,"line_end":2`, `[2,1,1]`, `2-2`, ""}, {`"line_start":3,"line_end":3`, `[3,1,1]`, `3-3`, ""}},
		"twice before a line":        {{`"line_start":2`, `[2,0,1]`, `2`, ""}, {`"line_start":2`, `[3,0,1]`, `3`, "line 3"}},
		"before a replaced line":     {{`"line_start":2,"line_end":2`, `[2,1,3]`, `2-2`, ""}, {`"line_start":2`, `[2,0,1]`, `2`, ""}},
		"before one that moved":      {{`"line_start":2,"line_end":2`, `[2,1,3]`, `2-2`, ""}, {`"line_start":3`, `[5,0,1]`, `5`, "line 5"}},
		"a replaced line":            {{`"line_start":2,"line_end":4`, `[2,3,3]`, `2-4`, ""}, {`"line_start":4,"line_end":6`, "", "", moved}},
		"before one of those":        {{`"line_start":2,"line_end":4`, `[2,3,3]`, `2-4`, ""}, {`"line_start":3`, "", "", moved}},
		"around inserted ones":       {{`"line_start":3`, `[3,0,1]`, `3`, ""}, {`"line_start":2,"line_end":3`, "", "", moved}},
		"after a result without":     {{`"line_start":3`, ``, `3`, ""}, {`"line_start":8`, "", "", "another call of this step has changed a.txt"}},
		"after a result of nonsense": {{`"line_start":3`, `[3,-1,1]`, `3`, ""}, {`"line_start":8`, "", "", "another call of this step has changed a.txt"}},
		"with the hash from before":  {{`"line_start":3`, `[3,0,1]`, `3`, ""}, {`"was":"h0","line_start":8`, `[9,0,1]`, `9`, "line 9"}},
	} {
		t.Run(name, func(t *testing.T) {
			w, _, _ := editWorld(t)
			m, err := tool.NewCatalog(map[*tool.Module]tool.Manifest{{Name: "m", Digest: "d", Origin: tool.OriginBuiltin}: {Name: "m", Tools: []tool.Spec{
				{Content: &tool.Content{Path: "path"}, Definition: tool.Definition{Name: "look", Description: "look", Parameters: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)}},
				{Content: &tool.Content{Path: "path", Hash: "was", Lines: true}, Definition: tool.Definition{Name: "lines", Description: "lines", Parameters: json.RawMessage(
					`{"type":"object","properties":{"path":{"type":"string"},"was":{"type":"string"},"line_start":{"type":"integer"},"line_end":{"type":"integer"}}}`)}},
			}}})
			if err != nil {
				t.Fatal(err)
			}
			w.options.Catalog = m
			d := New(w.options)
			version, ran, replaced := 0, "", ""
			w.run = func(_ context.Context, _ policy.Grant, _ *tool.Module, c tool.Call, _ func(tool.Progress)) (tool.Result, error) {
				if c.Tool == "look" {
					return tool.Result{Output: json.RawMessage(`{"output":"","sha256":"h0"}`)}, nil
				}
				var args struct{ Was string }
				var all map[string]json.RawMessage
				if json.Unmarshal(c.Args, &args) != nil || json.Unmarshal(c.Args, &all) != nil || args.Was != fmt.Sprint("h", version) {
					t.Errorf("ran with %s of version %d", c.Args, version)
				}
				ran = string(all["line_start"])
				if end := all["line_end"]; end != nil {
					ran += "-" + string(end)
				}
				version++
				more := ""
				if replaced != "" {
					more = `,"replaced":` + replaced
				}
				return tool.Result{Output: json.RawMessage(fmt.Sprintf(`{"output":"","sha256":"h%d"%s}`, version, more))}, nil
			}
			if _, err := d.Call(t.Context(), numbered(1, "look", `{"path":"a.txt"}`)); err != nil {
				t.Fatal(err)
			}
			for i, e := range edits {
				ran, replaced = "", e.replaced
				r, err := d.Call(t.Context(), numbered(2, "lines", `{"path":"a.txt",`+e.args+`}`))
				if err != nil {
					t.Fatal(err)
				}
				said := r.Note
				if r.Err != nil {
					said = string(r.Err.Code) + " " + r.Err.Message + "; " + r.Err.Hint.String()
				}
				if ran != e.ran || !strings.Contains(said, e.note) || e.note == "" && said != "" {
					t.Errorf("edit %d ran with %q, want %q: %s", i+1, ran, e.ran, said)
				}
				lines := ""
				if intent := body[session.Intent](w, session.TypeCallIntended); r.Err == nil {
					lines = strings.ReplaceAll(strings.Trim(fmt.Sprint(intent.Lines), "[]"), " ", "-")
				}
				if r.Err == nil && (e.note == "") != (lines == "") || lines != "" && lines != e.ran {
					t.Errorf("edit %d is recorded with the lines %s", i+1, lines)
				}
			}
		})
	}
}

func TestAPatchIsOfWhatWasSeen(t *testing.T) {
	_, d, ran := editWorld(t)
	do := func(name, args string) string {
		t.Helper()
		r, err := d.Call(t.Context(), aCall(name, args))
		if err != nil {
			t.Fatal(err)
		}
		if r.Err != nil {
			return string(r.Err.Code) + " " + r.Err.Message
		}
		return ""
	}
	const both = `{"patch":"*** Begin Patch\n*** Update File: ./a.txt\n@@\n-x\n*** Delete File: b.txt\n*** Add File: new.txt\n+x\n*** End Patch"}`
	do("look", `{"path":"a.txt"}`)
	if got := do("patch", both); !strings.Contains(got, "CONTENT_NOT_SEEN") || !strings.HasSuffix(got, " b.txt") || len(*ran) != 1 {
		t.Errorf("one of two was seen: %q, ran %q", got, *ran)
	}
	do("look", `{"path":"b.txt"}`)
	if got := do("patch", both); got != "" || !strings.HasSuffix((*ran)[2], `"was":{"./a.txt":"h1","b.txt":"h1"}}`) {
		t.Errorf("both were seen: %q, ran %q", got, *ran)
	}
	// The result names a.txt, which the patch has another name for, and a file that is none of it.
	const one = `{"patch":"*** Begin Patch\n*** Delete File: %s\n*** End Patch"}`
	for name, code := range map[string]string{"a.txt": "CONTENT_NOT_SEEN", "b.txt": "CONTENT_NOT_SEEN", "elsewhere.txt": "CONTENT_NOT_SEEN", "new.txt": ""} {
		if got := do("patch", strings.Replace(one, "%s", name, 1)); !strings.HasPrefix(got, code) || code == "" && got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
	if last := (*ran)[len(*ran)-1]; !strings.HasSuffix(last, `"was":{"new.txt":"p2"}}`) {
		t.Errorf("ran %q", last)
	}
	// What is no patch the tool itself refuses.
	if got := do("patch", `{"patch":"x"}`); got != "" || !strings.HasSuffix((*ran)[len(*ran)-1], `patch {"patch":"x"}`) {
		t.Errorf("%q, ran %q", got, *ran)
	}
}

func TestAFailedLookShowsNothing(t *testing.T) {
	w, d, _ := editWorld(t)
	w.run = func(context.Context, policy.Grant, *tool.Module, tool.Call, func(tool.Progress)) (tool.Result, error) {
		return tool.Failed(tool.CodeFailed, tool.IOError, "no"), nil
	}
	if _, err := d.Call(t.Context(), aCall("look", `{"path":"a.txt"}`)); err != nil {
		t.Fatal(err)
	}
	if r, err := d.Call(t.Context(), aCall("edit", `{"path":"a.txt"}`)); err != nil || r.Err == nil || r.Err.Code != tool.CodeUnseen {
		t.Errorf("got %+v, %v", r.Err, err)
	}
}

func TestReplacedToolsAreTheOnesThatCount(t *testing.T) {
	_, d, _ := editWorld(t)
	empty, err := tool.NewCatalog(nil)
	if err != nil {
		t.Fatal(err)
	}
	d.SetCatalog(empty)
	if r, err := d.Call(t.Context(), aCall("look", `{"path":"a.txt"}`)); err != nil || r.Err == nil || r.Err.Code != tool.CodeUnknownTool {
		t.Errorf("got %+v, %v", r.Err, err)
	}
	if len(d.Definitions()) != 0 {
		t.Error("the model still sees the old tools")
	}
}

func TestAModelLearnsNothingOfFilesThatItIsNotShown(t *testing.T) {
	top := t.TempDir()
	dir, masked := filepath.Join(top, "w"), filepath.Join(top, "w", "masked")
	if err := os.MkdirAll(masked, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"outside", "w/inside", "w/masked/own"} {
		if err := errors.Join(os.WriteFile(filepath.Join(top, name), nil, 0o644), os.Truncate(filepath.Join(top, name), maxEdited+1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../outside", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	_, d, ran := editWorld(t, policy.Options{Mounts: []policy.Mount{{Host: dir, Write: true}}, Masked: []string{masked}})
	for name, runs := range map[string]bool{
		"inside":      true, // and says itself that it is too large
		"../outside":  false,
		"../nothing":  false,
		"link":        false,
		"masked/own":  false,
		"masked/none": false,
	} {
		*ran = nil
		call := aCall("edit", string(tool.Marshal(map[string]string{"path": name})))
		call.Cwd = dir
		r, err := d.Call(t.Context(), call)
		if err != nil {
			t.Fatal(err)
		}
		if unseen := r.Err != nil && r.Err.Code == tool.CodeUnseen; unseen == runs || (len(*ran) == 1) != runs {
			t.Errorf("%s: got %+v, and ran %q", name, r.Err, *ran)
		}
	}
}

// After a resume the same files count as seen as before.
func TestAResumedModelKnowsWhatItHasSeen(t *testing.T) {
	_, d, ran := editWorld(t)
	asks := func(call, name, args string) session.Event {
		return event(1, session.TypeToolCall, call, llm.Message{Kind: llm.ToolCall,
			Data: tool.Marshal(llm.CallData{ID: call, Function: llm.FunctionData{Name: name, Arguments: args}})})
	}
	runs := func(call, name, cwd string) session.Event {
		return event(1, session.TypeCallIntended, call, session.Intent{Tool: name, Cwd: cwd})
	}
	comesTo := func(call string, r tool.Result) session.Event {
		return event(1, session.TypeToolResult, call, llm.ResultMessage(call, "look", r))
	}
	hash := func(h string) tool.Result {
		return tool.Result{Output: json.RawMessage(`{"output":"","sha256":"` + h + `"}`)}
	}
	err := readAll(d.Resume(past(
		asks("0", "look", `{"path":"taken-back.txt"}`), runs("0", "look", "/work"), comesTo("0", hash("old")), event(0, session.TypeRewound, "", session.Rewound{Turn: 1}),
		asks("1", "look", `{"path":"a.txt"}`), runs("1", "look", "/work"), comesTo("1", hash("old")),
		asks("2", "look", `{"path":"a.txt"}`), runs("2", "look", "/work"), comesTo("2", hash("new")),
		asks("3", "look", `{"path":"b.txt"}`), runs("3", "look", "/work/sub"), comesTo("3", hash("sub")),
		asks("4", "look", `{"path":"failed.txt"}`), runs("4", "look", "/work"), comesTo("4", tool.Failed(tool.CodeIO, tool.IOError, "no")),
		asks("5", "look", `{"path":"denied.txt"}`), comesTo("5", hash("denied")),
		asks("6", "look", `{"path":"cut.txt"}`), runs("6", "look", "/work"),
		asks("7", "look", `{"path":"gone.txt"}`), runs("7", "look", "/work"), deleted(comesTo("7", hash("gone"))),
		asks("8", "patch", `{"patch":"*** Begin Patch\n*** Add File: new.txt\n+x\n*** End Patch"}`), runs("8", "patch", "/work"),
		comesTo("8", tool.Result{Output: json.RawMessage(`{"output":"","sha256":{"new.txt":"made"}}`)}),
	)))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"taken-back.txt", "a.txt", "sub/b.txt", "b.txt", "failed.txt", "denied.txt", "cut.txt", "gone.txt", "new.txt"} {
		if _, err := d.Call(t.Context(), aCall("edit", `{"path":"`+path+`"}`)); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{`edit {"path":"a.txt","was":"new"}`, `edit {"path":"sub/b.txt","was":"sub"}`, `edit {"path":"new.txt","was":"made"}`}
	if diff := cmp.Diff(want, *ran); diff != "" {
		t.Error(diff)
	}
}
