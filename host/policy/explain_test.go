package policy

import (
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/tool"
)

// What an explanation says is enough: following it leaves no other rule that
// decides the same.
func TestAnExplanationNamesEverythingThatDecides(t *testing.T) {
	denial := func(text string, source Source, origin string) Rule {
		r, err := ParseDenial(text)
		if err != nil {
			t.Fatal(err)
		}
		r.Source, r.Origin = source, origin
		return r
	}
	used := deny(rule(t, "file_read", SourceUser))
	used.After, used.Origin = 3, "p.toml: tools.file_read.calls"
	asks := ask(rule(t, "file_write", SourceUser))
	asks.Origin = "p.toml:1"
	asksToRead := asks
	asksToRead.Tool = "file_read"
	for _, c := range []struct {
		name   string
		layers []Layer
		tool   string
		args   string
		used   int
		effect Effect
		says   []string // in reason and change
		not    string
	}{
		{name: "two denials", tool: "bash", args: `{"command":"ls"}`, effect: Deny,
			layers: []Layer{{Ceiling: Ceiling{Rules: []Rule{denial("bash", SourceFlag, ""), denial("bash", SourceEnv, "STOCKADE_DENY")}}}},
			says:   []string{`take the rule "bash" away: STOCKADE_DENY; and leave out --deny bash`}},
		{name: "a bound and a denial", tool: "bash", args: `{"command":"ls"}`, effect: Deny,
			layers: []Layer{{Ceiling: Ceiling{Rules: []Rule{denial("bash", SourceFlag, "")}, Off: []Line{{ExecKey, From{SourceSettings, "environment"}}}}}},
			says:   []string{"set tools.exec = true: environment; and leave out --deny bash"}},
		{name: "a question that stays", tool: "file_write", args: `{"path":"a"}`, effect: Ask,
			layers: []Layer{{Ceiling: Ceiling{Rules: []Rule{asks}}}},
			says:   []string{`without the user rule "file_write": p.toml:1 it would ask all the same: it changes files`}, not: "asked no more"},
		{name: "a question that goes", tool: "file_read", args: `{"path":"a"}`, effect: Ask,
			layers: []Layer{{Ceiling: Ceiling{Rules: []Rule{asksToRead}}}},
			says:   []string{`to be asked no more, take the rule "file_read" away: p.toml:1`}},
		{name: "two that ask", tool: "file_read", args: `{"path":"a"}`, effect: Ask,
			layers: []Layer{{Ceiling: Ceiling{Rules: []Rule{asksToRead}, Confirm: []Line{{From: From{SourceUser, "p.toml: require_confirmation"}}}}}},
			says:   []string{`asked no more, take the rule "file_read" away: p.toml:1; and take the rule "require_confirmation" away`}},
		{name: "what cannot be told", tool: "bash", args: `{"command":"$(echo rm) x"}`, effect: Ask,
			layers: []Layer{{Ceiling: Ceiling{Rules: []Rule{denial("bash(words:command=rm ...)", SourceFlag, "")}}}},
			says:   []string{`without the flag rule "bash(words:command=rm ...)" it would ask all the same: it starts a process`}, not: "away: "},
		{name: "calls used up", tool: "file_read", args: `{"path":"a"}`, used: 3, effect: Deny,
			layers: []Layer{{Ceiling: Ceiling{Rules: []Rule{used}}}},
			says:   []string{"the calls of file_read in this session are used up, 3 of 3", "begin another session, or permit more calls: p.toml: tools.file_read.calls"}, not: "says deny"},
	} {
		e := entry(t, c.tool, map[string]tool.Capabilities{"bash": execs, "file_write": writes, "file_read": reads}[c.tool])
		call := call(c.tool, c.args)
		call.Earlier = c.used
		x := New(Options{Layers: c.layers}).Decide(call, e).Explain()
		text := x.Reason + "\n" + x.Change
		for _, want := range c.says {
			if !strings.Contains(text, want) {
				t.Errorf("%s: it does not say %q: %+v", c.name, want, x)
			}
		}
		if x.Effect != c.effect.String() || c.not != "" && strings.Contains(text, c.not) {
			t.Errorf("%s: %+v", c.name, x)
		}
	}
}
