package policy

import (
	"slices"
	"testing"
)

// TestHistory: a history is closed to commands unless a rule opens it, or a person can be
// asked. A rule about histories does not apply to calls.
func TestHistory(t *testing.T) {
	rule := func(effect Effect, dir string, source Source) Rule {
		return Rule{Effect: effect, Tool: "bash", HistoryDir: dir, Source: source}
	}
	bash := entry(t, "bash", execs)
	for name, c := range map[string]struct {
		ask   bool
		rules []Rule
		layer []Rule
		want  Effect
	}{
		"nobody is there":                   {want: Deny},
		"somebody is there":                 {ask: true, want: Ask},
		"a yes":                             {rules: []Rule{rule(Allow, "/work", SourceSession)}, want: Allow},
		"a yes, relative":                   {rules: []Rule{rule(Allow, ".", SourceFlag)}, want: Allow},
		"a yes about another directory":     {ask: true, rules: []Rule{rule(Allow, "/work/lib", SourceUser)}, want: Ask},
		"a yes about a name that is longer": {rules: []Rule{rule(Allow, "/work/repo/.gi", SourceUser)}, want: Deny},
		"a yes of another workspace":        {rules: []Rule{{Effect: Allow, Tool: "bash", HistoryDir: "/work", Source: SourceUser, Project: "/other"}}, want: Deny},
		"a yes to another tool":             {rules: []Rule{{Effect: Allow, Tool: "sh", HistoryDir: "/work", Source: SourceUser}}, want: Deny},
		"a yes to what bash was":            {rules: []Rule{{Effect: Allow, Tool: "bash", HistoryDir: "/work", Source: SourceUser, Binding: Binding{Module: "sha256:x"}}}, want: Deny},
		"a yes of the project":              {layer: []Rule{rule(Allow, "/work", SourceProject)}, want: Deny},
		"a no":                              {ask: true, rules: []Rule{rule(Deny, "/work", SourceSession)}, want: Deny},
		"a no of a layer":                   {ask: true, rules: []Rule{rule(Allow, "/work", SourceFlag)}, layer: []Rule{rule(Deny, "/", SourceAdmin)}, want: Deny},
		"a rule that allows bash":           {rules: []Rule{{Effect: Allow, Tool: "bash", Source: SourceFlag}}, want: Deny},
	} {
		p := New(Options{Mounts: []Mount{{Host: "/work"}}, CanAsk: c.ask, Rules: c.rules, Project: "/work", Tier: inTier(3), Layers: []Layer{{Ceiling: Ceiling{Rules: c.layer}}}})
		if got := p.history(bash, "/work/repo/.git"); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		d := p.Decide(call("bash", `{"command":"ls"}`), bash, Facts{})
		if plain := slices.ContainsFunc(c.rules, func(r Rule) bool { return r.HistoryDir == "" }); d.Effect() == Deny || d.Effect() == Allow && !plain || p.Hides(bash, "agent") {
			t.Errorf("%s: the call is decided: %s: %s", name, d.Effect(), d.Reason())
		}
	}
}

// TestHistoryRulesAsText: a saved rule can be parsed again, and allows no more.
func TestHistoryRulesAsText(t *testing.T) {
	for text, good := range map[string]bool{
		"bash history /work": true, "bash history .": true, "bash history /a b/c": true,
		"bash history ": false, "* history /work": false, "bash(command=ls) history /work": false, "bash reads .env history /work": false, "bash below /x history /work": false,
		"bash history /x changes none": false, "bash history /x with A": false, "bash history /x history /y": false,
	} {
		r, err := ParseRule(text)
		if (err == nil) != good || good && (r.String() != text || r.HistoryDir == "") {
			t.Errorf("%q: %+v, %v", text, r, err)
		}
		if _, err := ParseDenial(text); (err == nil) != good {
			t.Errorf("%q denies: %v", text, err)
		}
	}
}

// TestHistoryQuestion: the answer is for the workspace, and not for the call.
func TestHistoryQuestion(t *testing.T) {
	p := New(Options{CanAsk: true, Project: "/work", Tier: inTier(3), Rules: []Rule{{Effect: Allow, Tool: "bash", Source: SourceFlag}}})
	bash := entry(t, "bash", execs)
	held := []History{{Repository: "/work/.git", Names: []string{".env"}}, {Repository: "/work/x/.git"}, {Repository: "/lib/.git"}}
	d := p.AskHistory(call("bash", `{"command":"ls"}`), bash, held)
	q := d.Question()
	if q.Command != "" || len(q.Histories) != 3 || !slices.Equal(q.Scopes, []Scope{ScopeSession, ScopeProject}) {
		t.Errorf("the question is %+v", q)
	}
	if other := p.AskHistory(call("bash", `{"command":"ls"}`), bash, held[:1]).Question(); q.digest() == other.digest() {
		t.Error("an answer fits another question")
	}
	if _, err := d.Approve(Answer{Allow: true}, 1); err == nil {
		t.Error("the call is approved")
	}
	if _, err := d.RuleFor(ScopeSession); err == nil {
		t.Error("the call is allowed from now on")
	}
	for _, c := range []struct {
		allow bool
		scope Scope
		want  Source
	}{{false, "", SourceSession}, {true, ScopeOnce, SourceSession}, {true, ScopeSession, SourceSession}, {true, ScopeProject, SourceUser}} {
		rules := d.HistoryRules(c.allow, c.scope)
		if len(rules) != 2 || rules[0].HistoryDir != "/work" || rules[1].HistoryDir != "/lib/.git" || rules[0].Source != c.want || (rules[0].Effect == Allow) != c.allow || (rules[0].Project != "") != (c.want == SourceUser) {
			t.Errorf("%+v makes %+v", c, rules)
		}
	}
	git := entry(t, "git", reads)
	if d := p.DecideHistorySearch(call("git", `{}`), git); d.Effect() != Allow {
		t.Errorf("the host may not look: %s", d.Reason())
	}
	if d := p.DecideHistorySearch(call("bash", `{}`), bash); d.Effect() != Deny {
		t.Error("a tool that starts processes looks")
	}
}
