package policy

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/policy/paths"
	"github.com/stockade-dev/stockade/host/tool"
)

// If processes are confined, a rule about commands counts like any other. In lower tiers
// only a flag with the command counts.
func TestRulesOverCommandsByTier(t *testing.T) {
	for name, c := range map[string]struct {
		rule     string
		source   Source
		command  string
		little   Effect // in tiers 0 and 1
		confined Effect // in tiers 2 and 3
	}{
		"the tool, by a flag":                    {"bash", SourceFlag, "make test && ls $X", Ask, Allow},
		"the tool, by a flag, an interpreter":    {"bash", SourceFlag, "env ls", Ask, Allow},
		"the tool, by a flag, what is regretted": {"bash", SourceFlag, "ls; rm x", Ask, Ask},
		"the tool, in a file":                    {"bash", SourceUser, "make test", Ask, Allow},
		"a pattern":                              {"bash(pattern:command=l.)", SourceFlag, "ls", Ask, Allow},
		"another argument":                       {"bash(description=x)", SourceFlag, "ls", Ask, Ask},
		"words, by a flag":                       {"bash(words:command=ls ...)", SourceFlag, "ls -l", Allow, Allow},
		"words, in a file":                       {"bash(words:command=ls ...)", SourceUser, "ls -l", Ask, Allow},
		"words, of this session":                 {"bash(words:command=ls ...)", SourceSession, "ls -l", Ask, Allow},
		"words, and another command":             {"bash(words:command=ls ...)", SourceUser, "ls; id", Ask, Ask},
		"an interpreter, in a file":              {"bash(command=env ls)", SourceUser, "env ls", Ask, Ask},
		"an interpreter, of this session":        {"bash(words:command=git status)", SourceSession, "git status", Ask, Ask},
		"a file of the workspace":                {"bash(command=./x)", SourceUser, "./x", Ask, Ask},
		"what is regretted":                      {"bash(words:command=rm ...)", SourceFlag, "rm x", Ask, Ask},
		"what is regretted, to the letter":       {"bash(command=rm x)", SourceFlag, "rm x", Allow, Allow},
	} {
		for tier := TierNone; tier <= MaxTier; tier++ {
			want := c.little
			if tier >= TierConfined {
				want = c.confined
			}
			p := New(Options{Mounts: inWork, Tier: inTier(tier), Rules: []Rule{rule(t, c.rule, c.source)}})
			d := p.Decide(call("bash", `{"command":`+quoteJSON(c.command)+`}`), entry(t, "bash", execs), Facts{})
			if d.Effect() != want {
				t.Errorf("%s, %s: %s, want %s (%s)", name, tier, d.Effect(), want, d.Reason())
			}
			if x := d.Explain(); x.Tier == nil || *x.Tier != tier {
				t.Errorf("%s, %s: the explanation is %+v", name, tier, x)
			}
			// The reason names the tier if the rule counts only in some tiers.
			if c.little != c.confined && !strings.Contains(d.Reason(), "in "+tier.String()) {
				t.Errorf("%s, %s: it says %q", name, tier, d.Reason())
			}
		}
	}
}

func TestAQuestionSaysWhatItsTierDoesNotHold(t *testing.T) {
	for tier, want := range []string{UnconfinedWarning, partlyConfinedWarning, "", ""} {
		p := New(Options{Mounts: inWork, Tier: inTier(Tier(tier)), Project: "/work"})
		c := call("bash", `{"command":"ls -l"}`)
		c.Turn = 1
		q := p.Decide(c, entry(t, "bash", execs), Facts{}).Question()
		if q.Tier != Tier(tier) || q.Warning != want {
			t.Errorf("tier %d: %s, %q", tier, q.Tier, q.Warning)
		}
		scopes := []Scope{ScopeOnce}
		if tier >= 2 {
			scopes = append(scopes, ScopeTurn, ScopeSession, ScopeProject, ScopeAlways)
		}
		if !slices.Equal(q.Scopes, scopes) {
			t.Errorf("tier %d: it offers %v", tier, q.Scopes)
		}
	}
}

// A confined process must see its working directory, or it cannot start.
func TestACommandOutsideOfAllMounts(t *testing.T) {
	for tier := TierNone; tier <= MaxTier; tier++ {
		p := New(Options{Tier: inTier(tier), Mounts: []Mount{{Host: "/elsewhere"}}, Rules: []Rule{rule(t, "bash(command=ls)", SourceFlag)}})
		d := p.Decide(call("bash", `{"command":"ls"}`), entry(t, "bash", execs), Facts{})
		if want := map[bool]Effect{true: Allow, false: Deny}[tier == TierNone]; d.Effect() != want {
			t.Errorf("%s: %s, want %s (%s)", tier, d.Effect(), want, d.Reason())
		}
		if tier > TierNone && d.Rule() != MountsRule {
			t.Errorf("%s: the rule is %q", tier, d.Rule())
		}
	}
}

// The ceiling's rules about files bind processes only if something confines them.
func TestTheLeastTier(t *testing.T) {
	from := Provenance{SourceSettings, "default"}
	for name, c := range map[string]struct {
		tier, settings, admin Tier
		want                  Effect
		change                string
	}{
		"nothing is set":             {0, 0, 0, Ask, "answer yes"},
		"nothing confines":           {0, 1, 0, Deny, "or set bash.min_tier = 0 in the settings"},
		"too little":                 {1, 2, 0, Deny, "or set bash.min_tier = 1 in the settings"},
		"enough":                     {1, 1, 0, Ask, "answer yes"},
		"the administrator's higher": {1, 1, 2, Deny, "only the administrator can do without: /etc/p.toml"},
		"the administrator's lower":  {0, 1, 0, Deny, "or set bash.min_tier = 0 in the settings"},
	} {
		layers := []Layer{
			{Source: SourceSettings, Ceiling: Ceiling{MinTier: &Limit{Value: int64(c.settings), From: from}}},
			{Source: SourceAdmin, Ceiling: Ceiling{MinTier: &Limit{Value: int64(c.admin), From: Provenance{SourceAdmin, "/etc/p.toml"}}}},
		}
		p := New(Options{Mounts: inWork, Tier: inTier(c.tier), Layers: layers, Rules: []Rule{rule(t, "bash(command=ls)", SourceFlag)}})
		d := p.Decide(call("bash", `{"command":"id"}`), entry(t, "bash", execs), Facts{})
		if x := d.Explain(); d.Effect() != c.want || !strings.Contains(x.HintText, c.change) {
			t.Errorf("%s: %s, %q", name, d.Effect(), x.HintText)
		}
		if hidden := p.Hides(entry(t, "bash", execs), tool.CallerAgent); hidden != (c.want == Deny) {
			t.Errorf("%s: the model sees it: %v", name, !hidden)
		}
	}
}

// A command reaches the network if its call asks for it and a person says yes, whatever
// rules allow.
func TestCommandsThatReachTheNetwork(t *testing.T) {
	caps := execs
	caps.ExecNetwork = "network"
	e := entry(t, "bash", caps)
	off := []Layer{{Source: SourceSettings, Ceiling: Ceiling{DisabledCapabilities: []Setting{{NetworkKey, Provenance{SourceSettings, "agent.toml:1"}}}}}}
	nobody := []Layer{{Source: SourceAdmin, Ceiling: Ceiling{Hosts: []List{{From: Provenance{SourceAdmin, "/etc/p.toml"}}}}}}
	for name, c := range map[string]struct {
		network, rule string
		hosts         []string
		layers        []Layer
		want          Effect
		says          string
	}{
		"a rule for the tool":           {"true", "bash", []string{"a.example"}, nil, Ask, `it reaches the network; that asks even if a rule allows it, as "bash" does`},
		"a rule for its words":          {"true", "bash(words:command=ls ...)", []string{"a.example"}, nil, Ask, "it reaches the network; that asks"},
		"to the letter":                 {"true", "bash(command=ls)", []string{"a.example"}, nil, Allow, ""},
		"no rule":                       {"true", "", []string{"a.example"}, nil, Ask, "it starts a process, and it reaches the network"},
		"nobody to reach":               {"true", "bash", nil, nil, Deny, "no host may be reached; a rule of the network says who may be reached"},
		"nobody, to the letter":         {"true", "bash(command=ls)", nil, nil, Deny, "no host may be reached"},
		"nobody is permitted":           {"true", "bash", []string{"a.example"}, nobody, Deny, "only the administrator can: /etc/p.toml"},
		"switched off":                  {"true", "bash(command=ls)", []string{"a.example"}, off, Deny, "set tools.web = true: agent.toml:1"},
		"switched off, and not wanted":  {"false", "bash", []string{"a.example"}, off, Allow, ""},
		"not wanted":                    {"false", "bash", []string{"a.example"}, nil, Allow, ""},
		"not wanted, nobody to reach":   {"false", "bash", nil, nil, Allow, ""},
		"null":                          {"null", "bash", nil, nil, Allow, ""},
		"what is no boolean is no true": {`"true"`, "bash", []string{"a.example"}, nil, Allow, ""},
	} {
		opts := Options{Mounts: inWork, Tier: inTier(3), Network: networkOf(t, c.hosts...), Layers: c.layers}
		if c.rule != "" {
			opts.Rules = []Rule{rule(t, c.rule, SourceFlag)}
		}
		p := New(opts)
		d := p.Decide(call("bash", `{"command":"ls","network":`+c.network+`}`), e, Facts{})
		if x := d.Explain(); d.Effect() != c.want || !strings.Contains(x.Reason+"; "+x.HintText, c.says) {
			t.Errorf("%s: %s, %+v", name, d.Effect(), x)
		}
		if d.Effect() == Deny {
			continue
		}
		wants := c.network == "true"
		q := d.Question()
		if wants != (len(q.Network) > 0) || wants != (q.Warning == exfiltrationWarning) || wants && len(q.Scopes) != 1 {
			t.Errorf("%s: the question is %+v", name, q)
		}
		g, err := d.newGrant()
		if err != nil {
			t.Fatal(err)
		}
		if g.Network() != nil || wants != (len(g.NetworkRules()) > 0) {
			t.Errorf("%s: the guest reaches %v, the call %v", name, g.Network(), g.NetworkRules())
		}
		x, err := g.TakeExec([]string{"bash", "-c", "ls"}, "/work")
		if err != nil || wants != (x.Network != nil) || wants && x.Network.Decide("a.example", 443, network.HTTPS).Err() != nil {
			t.Errorf("%s: the process reaches %v, %v", name, x.Network, err)
		}
	}
	// A secret is asked about in the same way.
	caps.Secrets = []tool.Secret{{Name: "A"}}
	for text, want := range map[string]Effect{"bash with A": Ask, "bash(words:command=ls ...) with A": Ask, "bash(command=ls) with A": Allow, "bash(command=ls)": Ask} {
		d := New(Options{Mounts: inWork, Tier: inTier(3), Rules: []Rule{rule(t, text, SourceFlag)}}).Decide(call("bash", `{"command":"ls"}`), entry(t, "bash", caps), Facts{})
		if d.Effect() != want || want == Ask && len(d.Question().Scopes) != 1 {
			t.Errorf("%s: %s (%s)", text, d.Effect(), d.Reason())
		}
	}
}

// A command that names a secret-looking file asks if the file could be hidden from it. It
// may read the files that the answer or its rule names.
func TestCommandsThatReadSecrets(t *testing.T) {
	named := func(names ...string) (out []NamedFile) {
		for _, n := range names {
			out = append(out, NamedFile{Arg: "command", Name: n, Path: n, Regular: true})
		}
		return out
	}
	env, key := named("/work/.env"), named("/work/.env", "/work/id_rsa")
	for name, c := range map[string]struct {
		rule   string
		source Source
		files  []NamedFile
		want   Effect
		opened []string // once it is allowed
		allow  string   // what would have answered
	}{
		"no rule":                          {"", "", env, Ask, []string{"/work/.env"}, "bash(command=cat .env) reads .env"},
		"the tool":                         {"bash", SourceFlag, env, Ask, []string{"/work/.env"}, "bash(command=cat .env) reads .env"},
		"the command to the letter":        {"bash(command=cat .env)", SourceFlag, env, Ask, []string{"/work/.env"}, "bash(command=cat .env) reads .env"},
		"with the file":                    {"bash(command=cat .env) reads .env", SourceFlag, env, Allow, []string{"/work/.env"}, ""},
		"with the file in full":            {"bash(words:command=cat ...) reads /work/./.env", SourceFlag, env, Allow, []string{"/work/.env"}, ""},
		"of the tool, with the file":       {"bash reads .env", SourceFlag, env, Allow, []string{"/work/.env"}, ""},
		"with another file":                {"bash reads .envrc", SourceFlag, env, Ask, []string{"/work/.env", "/work/.envrc"}, "bash(command=cat .env) reads .env, .envrc"},
		"with one of two":                  {"bash reads .env", SourceFlag, key, Ask, []string{"/work/.env", "/work/id_rsa"}, "bash(command=cat .env) reads .env, id_rsa"},
		"with both":                        {"bash reads .env, id_rsa", SourceFlag, key, Allow, []string{"/work/.env", "/work/id_rsa"}, ""},
		"with a file that it does not say": {"bash reads .env", SourceFlag, nil, Allow, []string{"/work/.env"}, ""},
		"with what is no secret":           {"bash reads a.txt", SourceFlag, nil, Allow, nil, ""},
		"with what no mount shows":         {"bash reads /etc/shadow", SourceFlag, nil, Allow, nil, ""},
		"with what is masked":              {"bash reads ours/.env", SourceFlag, nil, Allow, nil, ""},
		"of another command":               {"bash(command=ls) reads .env", SourceFlag, env, Ask, []string{"/work/.env"}, "bash(command=cat .env) reads .env"},
		"in a file":                        {"bash(words:command=cat ...) reads .env", SourceUser, env, Allow, []string{"/work/.env"}, ""},
		"nothing is read":                  {"bash", SourceFlag, nil, Allow, nil, ""},
	} {
		opts := Options{Tier: inTier(2), Mounts: inWork, Masked: []string{"/work/ours"}}
		if c.rule != "" {
			opts.Rules = []Rule{rule(t, c.rule, c.source)}
		}
		d := New(opts).Decide(call("bash", `{"command":"cat .env"}`), entry(t, "bash", execs), Facts{Files: c.files})
		q := d.Question()
		if d.Effect() != c.want || d.allowRuleText() != c.allow || c.want == Ask && (len(q.Scopes) != 1 || !strings.Contains(q.Warning, "looks like a secret")) || !slices.Equal(q.Paths, c.opened) {
			t.Errorf("%s: %s, %q, asked as %+v", name, d.Effect(), d.allowRuleText(), q)
		}
		g, err := d.newGrant()
		if err != nil {
			t.Fatal(err)
		}
		if x, err := g.TakeExec([]string{"bash", "-c", "cat .env"}, "/work"); err != nil || !slices.Equal(x.Opened, paths.Opened(c.opened)) {
			t.Errorf("%s: it may read %v, %v", name, x.Opened, err)
		}
	}
	// If nothing is hidden, a rule for the command covers all files that it reads.
	p := New(Options{Mounts: []Mount{{Host: "/work"}}, Rules: []Rule{rule(t, "bash(command=cat .env)", SourceFlag)}})
	if d := p.Decide(call("bash", `{"command":"cat .env"}`), entry(t, "bash", execs), Facts{Files: env}); d.Effect() != Allow {
		t.Errorf("in tier 0: %s", d.Reason())
	}
}

func TestParseRuleThatReads(t *testing.T) {
	for text, want := range map[string]Rule{
		"t reads .env":                     {Tool: "t", Reads: []string{".env"}},
		"t reads a, /b/c":                  {Tool: "t", Reads: []string{"a", "/b/c"}},
		"t with A reads .env":              {Tool: "t", Secrets: "A", Reads: []string{".env"}},
		"t(a=b) with A,B reads c d":        {Tool: "t", Secrets: "A,B", Reads: []string{"c d"}},
		"t(a=b) reads (c) reads d":         {Tool: "t", Reads: []string{"d"}},
		"t(a=cat x reads y) reads .env":    {Tool: "t", Reads: []string{".env"}},
		"t(a=cat) reads .env, id_rsa, pem": {Tool: "t", Reads: []string{".env", "id_rsa", "pem"}},
	} {
		got, err := ParseRule(text)
		if err != nil || got.Tool != want.Tool || got.Secrets != want.Secrets || !slices.Equal(got.Reads, want.Reads) || got.String() != text {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
		again, err := ParseRule(got.String())
		if err != nil || !reflect.DeepEqual(again, got) {
			t.Errorf("%q became %+v, %v", text, again, err)
		}
	}
	for _, text := range []string{"t reads ", "t reads", "t reads a,", "t reads ,a", "t reads a,,b", "t reads  a", "t reads a ", "t reads a with A", "t reads a reads b", "t reads a\x00", " reads a", "* reads a"} {
		if r, err := ParseRule(text); err == nil {
			t.Errorf("%q is %+v", text, r)
		}
	}
	if r, err := ParseDenial("bash reads .env"); err == nil || !strings.Contains(err.Error(), "only a rule that allows") {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestWhatIsShownGoesByTheLikelyTier: the list of tools uses LikelyTier, and a decision the
// real tier.
func TestWhatIsShownGoesByTheLikelyTier(t *testing.T) {
	bash := entry(t, "bash", execs)
	for _, c := range []struct {
		likely, is Tier
		hidden     bool
		effect     Effect
	}{
		{MaxTier, MaxTier, false, Ask},
		{MaxTier, TierNone, false, Deny},
		{TierNone, MaxTier, true, Ask},
	} {
		tried := 0
		p := New(Options{
			Mounts: inWork, LikelyTier: inTier(c.likely), Tier: func() Tier { tried++; return c.is },
			Layers: []Layer{{Ceiling: Ceiling{MinTier: &Limit{Value: 1}}}},
		})
		if hidden := p.Hides(bash, tool.CallerAgent); hidden != c.hidden || tried != 0 {
			t.Errorf("%s is likely: hidden is %v, and it was tried %d times", c.likely, hidden, tried)
		}
		if d := p.Decide(call("bash", `{"command":"ls"}`), bash, Facts{}); d.Effect() != c.effect {
			t.Errorf("%s is likely, and there is %s: %s", c.likely, c.is, d.Effect())
		}
	}
}
