package policy

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/policy/match"
	"github.com/stockade-dev/stockade/host/tool"
)

// uses returns the capabilities of a tool that asks for these secrets.
func uses(names ...string) tool.Capabilities {
	c := tool.Capabilities{}
	for _, n := range names {
		c.Secrets = append(c.Secrets, tool.Secret{Name: n, Hosts: []string{"api.example.com"}})
	}
	return c
}

func TestAToolThatUsesASecretIsAskedAbout(t *testing.T) {
	for what, c := range map[string]struct {
		caps   tool.Capabilities
		risk   Risk
		reason string
	}{
		"nothing else":  {uses("A"), RiskMedium, "it uses secrets: A"},
		"several":       {uses("B", "A"), RiskMedium, "it uses secrets: A,B"},
		"reads files":   {tool.Capabilities{Files: tool.FilesRead, Secrets: uses("A").Secrets}, RiskMedium, "it uses secrets: A"},
		"writes files":  {tool.Capabilities{Files: tool.FilesWrite, Secrets: uses("A").Secrets}, RiskMedium, "it changes files and uses secrets: A"},
		"runs commands": {tool.Capabilities{Exec: "command", Secrets: uses("A").Secrets}, RiskHigh, "it starts a process, and it uses secrets: A"},
	} {
		d := New(Options{}).Decide(call("t", `{"command":"ls"}`), entry(t, "t", c.caps), Facts{})
		if d.Effect() != Ask || d.Risk() != c.risk || d.Reason() != c.reason {
			t.Errorf("%s: %s, risk %s, %q", what, d.Effect(), d.Risk(), d.Reason())
		}
		if _, err := d.Grant(); err == nil {
			t.Errorf("%s: a grant without an answer", what)
		}
		// A rehearsal would reach the network before the answer.
		if _, err := d.Rehearse(); err == nil || d.CanRehearse() || d.AsksOnlyForChanges() {
			t.Errorf("%s: it is tried before the answer", what)
		}
		if diff := cmp.Diff(c.caps.Secrets, d.Question().Secrets); diff != "" {
			t.Errorf("%s: the question does not show them: %s", what, diff)
		}
	}
}

// TestAnAnswerCoversNoOtherSecret: a tool that asks for another secret than before is asked
// about again, whatever was remembered or allowed by a flag.
func TestAnAnswerCoversNoOtherSecret(t *testing.T) {
	was := entry(t, "t", uses("A"))
	d := New(Options{}).Decide(call("t", `{}`), was, Facts{})
	for _, scope := range []Scope{ScopeSession, ScopeAlways} {
		remembered, err := d.RuleFor(scope)
		if err != nil || remembered.Secrets != "A" || !strings.Contains(d.Question().Rules[scope], "of the built-in modules, with the secrets A and no others, ") {
			t.Fatalf("%+v, %v, %q", remembered, err, d.Question().Rules)
		}
		kept, err := ParseRule(remembered.String()) // as allow.toml holds it
		if kept.Binding, kept.Source = remembered.Binding, remembered.Source; err != nil || !reflect.DeepEqual(kept, remembered) {
			t.Errorf("%+v became %+v, %v", remembered, kept, err)
		}
		for what, c := range map[string]struct {
			caps tool.Capabilities
			want Effect
		}{
			"the same": {uses("A"), Allow}, "another": {uses("B"), Ask}, "one more": {uses("A", "B"), Ask}, "a longer name": {uses("AA"), Ask}, "another case": {uses("a"), Ask},
		} {
			p := New(Options{Rules: []Rule{kept}})
			if got := p.Decide(call("t", `{}`), entry(t, "t", c.caps), Facts{}); got.Effect() != c.want {
				t.Errorf("%s: %s", what, got.Effect())
			}
		}
	}
	for text, want := range map[string]Effect{
		"t": Ask, "t(path=a)": Ask, "t with B": Ask, "t with A": Allow, "t with A,B": Allow, "t(path=a) with A": Allow, "t(path=b) with A": Ask, "t with AB": Ask,
	} {
		p := New(Options{Rules: []Rule{rule(t, text, SourceFlag)}})
		if got := p.Decide(call("t", `{"path":"a"}`), was, Facts{}); got.Effect() != want {
			t.Errorf("%s: %s", text, got.Effect())
		}
	}
	// A rule that denies or asks needs no names.
	for want, r := range map[Effect]Rule{Deny: deny(rule(t, "t", SourceUser)), Ask: ask(rule(t, "t", SourceUser))} {
		p := New(Options{Rules: []Rule{r, rule(t, "t with A", SourceUser)}})
		if got := p.Decide(call("t", `{}`), was, Facts{}); got.Effect() != want {
			t.Errorf("%s: %s", want, got.Effect())
		}
	}
	if got := d.allowRuleText(); got != "t with A" {
		t.Errorf("the flag is %s", got)
	}
}

func TestAGrantNamesItsSecrets(t *testing.T) {
	e := entry(t, "t", uses("A", "B"))
	g := granted(t, New(Options{}), call("t", `{}`), e)
	if diff := cmp.Diff(e.Capabilities.Secrets, g.Secrets()); diff != "" {
		t.Error(diff)
	}
	g.Secrets()[0].Hosts[0], e.Capabilities.Secrets[1].Hosts[0] = "evil.example", "evil.example"
	if s := g.Secrets(); s[0].Hosts[0] != "api.example.com" || s[1].Hosts[0] != "api.example.com" {
		t.Errorf("a grant was changed from outside: %v", s)
	}
	if got := (Grant{}).Secrets(); got != nil {
		t.Errorf("the zero grant has %v", got)
	}
	if got := granted(t, New(Options{}), call("w", `{}`), entry(t, "w", writes)).Secrets(); len(got) != 0 {
		t.Errorf("a tool that asks for none has %v", got)
	}
}

func TestParseRuleWithSecrets(t *testing.T) {
	is := func(kind match.Kind, value string) []match.Condition {
		c, err := match.NewCondition(kind, "a", value, false)
		if err != nil {
			t.Fatal(err)
		}
		return []match.Condition{c}
	}
	for text, want := range map[string]Rule{
		"t with A":                       {Tool: "t", Secrets: "A", Effect: Allow},
		"t with A,B_2,c-d":               {Tool: "t", Secrets: "A,B_2,c-d", Effect: Allow},
		"t(a=b) with A":                  {Tool: "t", Where: is(match.Equal, "b"), Secrets: "A", Effect: Allow},
		"t(a=b) with (c) with A":         {Tool: "t", Where: is(match.Equal, "b) with (c"), Secrets: "A", Effect: Allow},
		"t(a=b with A)":                  {Tool: "t", Where: is(match.Equal, "b with A"), Effect: Allow},
		"t(a= with )":                    {Tool: "t", Where: is(match.Equal, " with "), Effect: Allow},
		"t(path:a=/x/**) with A":         {Tool: "t", Where: is(match.Path, "/x/**"), Secrets: "A", Effect: Allow},
		"t(host:a=*.example.com) with A": {Tool: "t", Where: is(match.Hostname, "*.example.com"), Secrets: "A", Effect: Allow},
		"t(words:a=ls ...) with A,B":     {Tool: "t", Where: is(match.Words, "ls ..."), Secrets: "A,B", Effect: Allow},
	} {
		got, err := ParseRule(text)
		if err != nil || !reflect.DeepEqual(got, want) || got.String() != text {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"t with ", "t with", " with A", "t with A,", "t with ,A", "t with A, B", "t with B,A", "t with A,A", "t with 1A", "t with A with B", "t with A ", "t  with A", "t with A\n", "t with *",
		"* with A", "t(words:a=env ...) with A",
	} {
		if r, err := ParseRule(text); err == nil {
			t.Errorf("%q is %+v", text, r)
		}
	}
}
