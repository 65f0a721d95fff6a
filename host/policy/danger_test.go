package policy

import (
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/tool"
)

// A dangerous command asks even if a rule allows it, and names the danger. Only a flag with
// exactly this command answers.
func TestDangerousCommandsAskWhereARuleAllows(t *testing.T) {
	words, exact := rule(t, "bash(words:command=rm ...)", SourceFlag), rule(t, "bash(command=rm x)", SourceFlag)
	session, user := rule(t, "bash(words:command=rm x)", SourceSession), rule(t, "bash(command=rm x)", SourceUser)
	denied, asked := deny(rule(t, "bash(words:command=rm ...)", SourceAdmin)), ask(rule(t, "bash(words:command=rm ...)", SourceAdmin))
	confirm := Layer{Source: SourceAdmin, Ceiling: Ceiling{Confirm: []Setting{{From: Provenance{SourceAdmin, "/etc/x"}}}}}
	admin := func(r Rule) Layer { return Layer{Source: SourceAdmin, Ceiling: Ceiling{Rules: []Rule{r}}} }
	for name, c := range map[string]struct {
		rules  []Rule
		layers []Layer
		want   Effect
		by     Source
	}{
		"no rule":                          {nil, nil, Ask, SourceDefault},
		"a flag for any of its arguments":  {[]Rule{words}, nil, Ask, SourceDefault},
		"a flag to the letter":             {[]Rule{exact}, nil, Allow, SourceFlag},
		"both":                             {[]Rule{words, exact}, nil, Allow, SourceFlag},
		"both, the other way round":        {[]Rule{exact, words}, nil, Allow, SourceFlag},
		"an answer of this session":        {[]Rule{session}, nil, Ask, SourceDefault},
		"a remembered answer":              {[]Rule{user}, nil, Ask, SourceDefault},
		"a remembered answer and the flag": {[]Rule{user, exact}, nil, Allow, SourceUser},
		"an administrator who denies":      {[]Rule{exact}, []Layer{admin(denied)}, Deny, SourceAdmin},
		"an administrator who asks":        {[]Rule{exact}, []Layer{admin(asked)}, Ask, SourceAdmin},
		"where every call asks":            {[]Rule{exact}, []Layer{confirm}, Ask, SourceAdmin},
	} {
		d := New(Options{Mounts: inWork, Tier: inTier(2), Rules: c.rules, Layers: c.layers}).Decide(call("bash", `{"command":"rm x"}`), entry(t, "bash", execs), Facts{})
		if d.Effect() != c.want || d.Source() != c.by {
			t.Errorf("%s: %s by %s, want %s by %s", name, d.Effect(), d.Source(), c.want, c.by)
		}
		if d.Effect() != Ask {
			continue
		}
		if !strings.Contains(d.Reason(), "rm deletes files") {
			t.Errorf("%s: it says %q", name, d.Reason())
		}
		q := d.Question()
		if len(q.Scopes) != 1 || (q.AllowRule == "bash(command=rm x)") != (c.by == SourceDefault) {
			t.Errorf("%s: offered %v and %q", name, q.Scopes, q.AllowRule)
		}
		if g, err := d.Grant(); err == nil || g.g != nil {
			t.Errorf("%s: granted without an answer", name)
		}
	}
	for command, want := range map[string]Effect{
		"ls x": Allow, "ls": Allow, "echo rm": Allow, "grep dd x": Allow, "./rm-old-notes x": Allow, "dd of=x": Ask, "mkfs.ext4 x": Ask, "chmod -R a b": Ask, "chmod +x b": Allow, "kill 1": Ask, "ls; rm x": Ask, "env rm x": Ask,
	} {
		var rules []Rule
		for _, program := range []string{"ls", "echo", "grep", "./rm-old-notes", "dd", "mkfs.ext4", "chmod", "kill"} {
			if r, err := ParseRule("bash(words:command=" + program + " ...)"); err == nil {
				r.Source = SourceFlag
				rules = append(rules, r)
			}
		}
		d := New(Options{Rules: rules}).Decide(call("bash", `{"command":`+quoteJSON(command)+`}`), entry(t, "bash", execs), Facts{})
		if d.Effect() != want {
			t.Errorf("%q: %s, want %s (%s)", command, d.Effect(), want, d.Reason())
		}
		flag := rule(t, "bash(command="+command+")", SourceFlag)
		if d := New(Options{Rules: append(rules, flag)}).Decide(call("bash", `{"command":`+quoteJSON(command)+`}`), entry(t, "bash", execs), Facts{}); d.Effect() != Allow {
			t.Errorf("%q, to the letter: %s (%s)", command, d.Effect(), d.Reason())
		}
		if d := New(Options{Rules: rules}).Decide(call("w", `{"command":`+quoteJSON(command)+`}`), entry(t, "w", tool.Capabilities{}), Facts{}); d.Effect() != Allow {
			t.Errorf("%q is no command of a tool that starts none: %s", command, d.Reason())
		}
	}
}
