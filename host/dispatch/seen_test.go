package dispatch

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/tool"
)

// editWorld has a tool that reports content and one that needs to have seen it.
func editWorld(t *testing.T) (*world, *Dispatcher, *[]string) {
	t.Helper()
	w := newWorld(t, policy.Options{})
	spec := func(name, props string, c *tool.Content) tool.Spec {
		return tool.Spec{Content: c, Definition: tool.Definition{Name: name, Description: name,
			Parameters: json.RawMessage(`{"type":"object","properties":{` + props + `},"additionalProperties":false}`)}}
	}
	m, err := tool.NewCatalog(map[*tool.Module]tool.Manifest{{Name: "m", Digest: "d", Origin: tool.OriginBuiltin}: {Name: "m", Tools: []tool.Spec{
		spec("look", `"path":{"type":"string"}`, &tool.Content{Path: "path"}),
		spec("edit", `"path":{"type":"string"},"was":{"type":"string"}`, &tool.Content{Path: "path", Hash: "was"}),
	}}})
	if err != nil {
		t.Fatal(err)
	}
	w.options.Catalog = m
	var ran []string
	w.run = func(_ context.Context, _ policy.Grant, _ *tool.Module, c tool.Call, _ func(tool.Progress)) (tool.Result, error) {
		ran = append(ran, c.Tool+" "+string(c.Args))
		hash := "h1"
		if c.Tool == "edit" {
			hash = "h2"
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
	if r.Err == nil || r.Err.Code != tool.CodeUnseen || !strings.Contains(r.Err.Message, "/work/a.txt") || len(*ran) != 0 {
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
