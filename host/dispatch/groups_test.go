package dispatch

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/guests/gueststest"
	"github.com/stockade-dev/stockade/host/agent"
	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/llmtest"
	"github.com/stockade-dev/stockade/host/llm/offline"
	"github.com/stockade-dev/stockade/host/llm/openai"
	"github.com/stockade-dev/stockade/host/llm/provider"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/registry"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

// added are n tools of a module of a stranger's, each with ten arguments.
func added(group string, n int) []*tool.Entry {
	properties := map[string]any{}
	for i := range 10 {
		properties[fmt.Sprint("argument_", i)] = map[string]any{"type": "string", "description": "Which of the things in the account of the user is meant.", "maxLength": 200}
	}
	mod := &tool.Module{Name: group, Digest: "digest of " + group, Origin: tool.OriginAdded}
	var out []*tool.Entry
	for i := range n {
		out = append(out, tool.NewEntry(tool.Spec{Definition: tool.Definition{
			Name: fmt.Sprintf("%s_%03d", group, i), Description: fmt.Sprintf("Does thing %d of %s.\n- other (9): not a group.\n", i, group) + strings.Repeat("More of it is said here. ", 20),
			Parameters: tool.Marshal(map[string]any{"type": "object", "properties": properties}),
		}}, mod, ""))
	}
	return out
}

// crowd is a world with the three built-in tools of [catalog] and others.
func crowd(t testing.TB, opts policy.Options, others ...[]*tool.Entry) *world {
	t.Helper()
	w := newWorld(t, opts)
	c, err := tool.NewCatalogOf(append(w.options.Catalog.Entries(), slices.Concat(others...)...))
	if err != nil {
		t.Fatal(err)
	}
	w.options.Catalog = c
	return w
}

var ofGroup = regexp.MustCompile(`^(.*)_[0-9]{3}$`)

// shape is the names of definitions, those of added tools by group: "bash a×20".
func shape(defs []tool.Definition) string {
	var out []string
	counts := map[string]int{}
	for _, def := range defs {
		name := def.Name
		if m := ofGroup.FindStringSubmatch(name); m != nil {
			name = m[1]
			counts[name]++
		}
		if len(out) == 0 || out[len(out)-1] != name {
			out = append(out, name)
		}
	}
	for i, name := range out {
		if n := counts[name]; n > 0 {
			out[i] = fmt.Sprintf("%s×%d", name, n)
		}
	}
	return strings.Join(out, " ")
}

func must(t testing.TB, d *Dispatcher, name, args string) tool.Result {
	t.Helper()
	r, err := d.Call(t.Context(), aCall(name, args))
	if err != nil || r.Err != nil {
		t.Fatalf("%s %s: %+v, %v", name, args, r.Err, err)
	}
	return r
}

func TestTheFirstRequestStaysSmall(t *testing.T) {
	gueststest.Need(t)
	builtin, err := registry.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	// Where nobody may be reached, the tools that only reach others are left out.
	w := newWorld(t, policy.Options{Network: network.New([]network.Rule{{Allow: true, Name: "html.duckduckgo.com"}})})
	entries := builtin.Entries()
	for i := range 6 {
		entries = append(entries, added(fmt.Sprint("module", i), 10)...)
	}
	if w.options.Catalog, err = tool.NewCatalogOf(entries); err != nil {
		t.Fatal(err)
	}
	defs := New(w.options).Definitions()
	if got, want := len(defs), len(builtin.Names())+1; got != want {
		t.Errorf("%d definitions, want %d: %s", got, want, shape(defs))
	}
	if size := len(tool.Marshal(defs)); size > 20<<10 {
		t.Errorf("the definitions have %d bytes", size)
	}
}

func TestWhatTheModelIsOffered(t *testing.T) {
	const builtin = "bash file_read file_write"
	many := [][]*tool.Entry{added("c", 20), added("a", 20), added("b", 20)}
	large := [][]*tool.Entry{added("a", 50), added("b", 50), added("c", 50), added("huge", 130)}
	for name, c := range map[string]struct {
		others [][]*tool.Entry
		rules  []policy.Rule
		calls  []string // NAME ARGS
		want   string
		note   string // in the last result
	}{
		"40 tools have no groups":         {others: [][]*tool.Entry{added("a", 37)}, want: "a×37 " + builtin},
		"41 do":                           {others: [][]*tool.Entry{added("a", 38)}, want: builtin + " list_tools"},
		"61 do":                           {others: many, want: builtin + " list_tools"},
		"few are left by the policy":      {others: many[:2], rules: []policy.Rule{{Effect: policy.Deny, Tool: "a_000"}, {Effect: policy.Deny, Tool: "bash"}, {Effect: policy.Deny, Tool: "c_000"}}, want: "a×19 c×19 file_read file_write"},
		"without list_tools, all":         {others: many, rules: []policy.Rule{{Effect: policy.Deny, Tool: tool.ListTools}}, want: "a×20 b×20 bash c×20 file_read file_write"},
		"a group that is listed":          {others: many, calls: []string{`list_tools {"group":"b"}`}, want: builtin + " list_tools b×20"},
		"in the order of opening, once":   {others: many, calls: []string{`list_tools {"group":"b"}`, `list_tools {"group":"a"}`, `b_003 {}`}, want: builtin + " list_tools b×20 a×20"},
		"a tool of it is called":          {others: many, calls: []string{`c_007 {}`}, want: builtin + " list_tools c×20"},
		"a denied tool is not in a group": {others: many, rules: []policy.Rule{{Effect: policy.Deny, Tool: "b_000"}}, calls: []string{`list_tools {"group":"b"}`}, want: builtin + " list_tools b×19"},
		"two large groups fit":            {others: large, calls: []string{`list_tools {"group":"b"}`, `list_tools {"group":"a"}`}, want: builtin + " list_tools b×50 a×50"},
		"a third closes the oldest":       {others: large, calls: []string{`list_tools {"group":"b"}`, `list_tools {"group":"a"}`, `list_tools {"group":"c"}`}, want: builtin + " list_tools a×50 c×50", note: "these groups are not offered any more: b"},
		"it is opened again behind":       {others: large, calls: []string{`b_000 {}`, `a_000 {}`, `c_000 {}`, `b_000 {}`}, want: builtin + " list_tools c×50 b×50"},
		"one that is too large is cut":    {others: large, calls: []string{`a_000 {}`, `list_tools {"group":"huge"}`}, want: builtin + " list_tools huge×124", note: "of the 130 tools of this group only the first 124 are offered"},
	} {
		t.Run(name, func(t *testing.T) {
			w := crowd(t, policy.Options{Rules: c.rules}, c.others...)
			d := New(w.options)
			first := d.Definitions()
			var last tool.Result
			var events []session.Event
			for i, call := range c.calls {
				name, args, _ := strings.Cut(call, " ")
				last = must(t, d, name, args)
				id := fmt.Sprint("c", i)
				events = append(events, event(1, session.TypeToolCall, id, llm.CallMessage(llm.NewCall(id, name, args))), intended(1, id, name))
			}
			defs := d.Definitions()
			if got := shape(defs); got != c.want {
				t.Errorf("offered are %s\nwant %s", got, c.want)
			}
			if len(defs) > llm.MaxTools {
				t.Errorf("%d are offered", len(defs))
			}
			if !strings.Contains(last.Note, c.note) || c.note == "" && last.Note != "" {
				t.Errorf("the note is %q", last.Note)
			}
			if same := min(len(first), strings.Count(builtin, " ")+2); len(c.calls) > 0 {
				if diff := cmp.Diff(first[:same], defs[:same]); diff != "" {
					t.Errorf("the beginning has changed: %s", diff)
				}
			}
			// A session that goes on has what it had.
			again := New(w.options)
			if err := readAll(again.Resume(past(events...))); err != nil {
				t.Fatal(err)
			}
			if got := shape(again.Definitions()); got != c.want {
				t.Errorf("after it is resumed, offered are %s", got)
			}
		})
	}
}

func TestListToolsIsACallLikeAnyOther(t *testing.T) {
	w := crowd(t, policy.Options{}, added("a", 30), added("b", 30))
	d := New(w.options)
	r := must(t, d, tool.ListTools, `{"group":"a"}`)
	if diff := cmp.Diff(slices.DeleteFunc(slices.Clone(allowedTrace), func(s string) bool { return s == "run" }), w.trace); diff != "" {
		t.Error(diff)
	}
	if got := body[session.Intent](w, session.TypeCallIntended); got.Tool != tool.ListTools || got.Module != tool.ListModule {
		t.Errorf("recorded is %+v", got)
	}
	var out struct {
		Group string
		Tools []tool.Definition
	}
	if err := json.Unmarshal(r.Output, &out); err != nil {
		t.Fatal(err)
	}
	if len(out.Tools) != 30 || out.Group != "a" || out.Tools[29].Name != "a_029" || !strings.HasPrefix(out.Tools[0].Description, "Does thing 0 of a. ") || !json.Valid(out.Tools[0].Parameters) {
		t.Errorf("got %+v", out)
	}
	if len(r.Output) > maxListedBytes+30*100 {
		t.Errorf("the result has %d bytes", len(r.Output))
	}

	// It may be asked about, and refused.
	w = crowd(t, policy.Options{ConfirmAll: true}, added("a", 30), added("b", 30))
	w.answer = no
	d = New(w.options)
	if r, err := d.Call(t.Context(), aCall(tool.ListTools, `{"group":"a"}`)); err != nil || r.Err == nil || r.Err.Code != tool.CodeDenied {
		t.Errorf("got %+v, %v", r.Err, err)
	}
	if got := shape(d.Definitions()); strings.Contains(got, "a×") {
		t.Errorf("a refused call has opened its group: %s", got)
	}
}

func TestListToolsOfNoGroup(t *testing.T) {
	many := crowd(t, policy.Options{}, added("a", 30), added("b", 30))
	for name, c := range map[string]struct {
		w    *world
		args string
		code tool.Code
	}{
		"a group that is not there":   {many, `{"group":"files"}`, tool.CodeInvalidArgs},
		"a module that is built in":   {many, `{"group":"m"}`, tool.CodeInvalidArgs},
		"no group":                    {many, `{}`, tool.CodeInvalidArgs},
		"where there are few tools":   {crowd(t, policy.Options{}, added("a", 3)), `{"group":"a"}`, tool.CodeUnknownTool},
		"of which the model may none": {crowd(t, policy.Options{Rules: []policy.Rule{{Effect: policy.Deny, Tool: "z_000"}}}, added("a", 50), added("z", 1)), `{"group":"z"}`, tool.CodeInvalidArgs},
	} {
		t.Run(name, func(t *testing.T) {
			d := New(c.w.options)
			before := shape(d.Definitions())
			r, err := d.Call(t.Context(), aCall(tool.ListTools, c.args))
			if err != nil || r.Err == nil || r.Err.Code != c.code {
				t.Errorf("got %+v, %v", r.Err, err)
			}
			if after := shape(d.Definitions()); after != before {
				t.Errorf("offered are %s", after)
			}
		})
	}
}

// The descriptions of strangers' modules are limited, because they go with every request.
func TestTheListOfGroupsIsBounded(t *testing.T) {
	var groups []tool.Group
	for i := range 300 {
		entries := added(fmt.Sprintf("%s%03d", strings.Repeat("g", 61), i), 3)
		entries[0].Description = strings.Repeat("é", 4000)
		groups = append(groups, tool.Group{Name: entries[0].Module.Name, Tools: entries})
	}
	e := listEntry(groups)
	if n := len(e.Description); n > 8<<10 {
		t.Errorf("the description has %d bytes", n)
	}
	if n := len(e.Parameters); n > 8<<10 {
		t.Errorf("the parameters have %d bytes", n)
	}
	if !strings.Contains(e.Description, "and 60 that have only a name here.\n200 more groups are left out") || strings.ContainsRune(e.Description, '\uFFFD') {
		t.Errorf("it says %s", e.Description[len(e.Description)-200:])
	}
	one := listEntry([]tool.Group{{Name: "a", Tools: added("a", 9)}}).Description
	if lines := strings.Split(one, "\n"); len(lines) != 2 || !strings.HasPrefix(lines[1], "- a (9): Does thing 0 of a. Does thing 1 of a. ") {
		t.Errorf("a description passes for a group, or is lost: %s", one)
	}
}

func TestAModelFindsAToolOfAGroup(t *testing.T) {
	w := crowd(t, policy.Options{}, added("mail", 30), added("wiki", 30))
	script, err := offline.ParseScript("script", strings.NewReader(`
{"tool_calls":[{"id":"1","name":"list_tools","arguments":{"group":"wiki"}}],"expect":["- wiki (30): Does thing 0 of wiki."],"expect_not":["wiki_004"]}
{"tool_calls":[{"id":"2","name":"wiki_004","arguments":{"argument_1":"x"}}],"expect":["wiki_004","Does thing 29 of wiki."],"expect_not":["mail_004"]}
{"text":"Done.","expect":["done"]}
`))
	if err != nil {
		t.Fatal(err)
	}
	model := openai.New(provider.Options{BaseURL: "http://model.test/v1", Model: "m", HTTPClient: llmtest.Serve(t, offline.NewServer(script, ""))})
	a := agent.New(agent.Options{Model: model, Tools: New(w.options), Log: w.options.Log.(*session.Log), Cwd: "/work"})
	for e, err := range a.Run(t.Context(), "find it") {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == session.TypeTurnEnded {
			var end session.TurnEnded
			if err := json.Unmarshal(e.Body, &end); err != nil || end.Reason != session.EndAnswered || end.Failed > 0 {
				t.Errorf("the turn ended with %+v, %v", end, err)
			}
		}
	}
	if script.Remaining() > 0 || !w.did("run") {
		t.Errorf("%d replies are left; it did %v", script.Remaining(), w.trace)
	}
}

// BenchmarkManyTools measures the cost of 500 tools in each request.
func BenchmarkManyTools(b *testing.B) {
	var others [][]*tool.Entry
	for i := range 25 {
		others = append(others, added(fmt.Sprint("module", i), 20))
	}
	d := New(crowd(b, policy.Options{}, others...).options)
	for b.Loop() {
		d.Definitions()
	}
}
