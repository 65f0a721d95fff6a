package policy

import (
	"cmp"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/tool"
)

// After the change that an explanation proposes, no other rule decides the same.
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
	used.AfterCalls, used.Origin = 3, "p.toml: tools.file_read.calls"
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
			says:   []string{`take the rule "bash" away: STOCKADE_DENY; and leave out the denial of "bash" of this run`}},
		{name: "a bound and a denial", tool: "bash", args: `{"command":"ls"}`, effect: Deny,
			layers: []Layer{{Ceiling: Ceiling{Rules: []Rule{denial("bash", SourceFlag, "")}, DisabledCapabilities: []Setting{{ExecKey, Provenance{SourceSettings, "environment"}}}}}},
			says:   []string{`set tools.exec = true: environment; and leave out the denial of "bash" of this run`}},
		{name: "a question that stays", tool: "file_write", args: `{"path":"a"}`, effect: Ask,
			layers: []Layer{{Ceiling: Ceiling{Rules: []Rule{asks}}}},
			says:   []string{`without the user rule "file_write": p.toml:1 it would ask all the same: it changes files`}, not: "asked no more"},
		{name: "a question that goes", tool: "file_read", args: `{"path":"a"}`, effect: Ask,
			layers: []Layer{{Ceiling: Ceiling{Rules: []Rule{asksToRead}}}},
			says:   []string{`to be asked no more, take the rule "file_read" away: p.toml:1`}},
		{name: "two that ask", tool: "file_read", args: `{"path":"a"}`, effect: Ask,
			layers: []Layer{{Ceiling: Ceiling{Rules: []Rule{asksToRead}, Confirm: []Setting{{From: Provenance{SourceUser, "p.toml: require_confirmation"}}}}}},
			says:   []string{`asked no more, take the rule "file_read" away: p.toml:1; and take the rule "require_confirmation" away`}},
		{name: "what cannot be told", tool: "bash", args: `{"command":"$(echo rm) x"}`, effect: Ask,
			layers: []Layer{{Ceiling: Ceiling{Rules: []Rule{denial("bash(words:command=rm ...)", SourceFlag, "")}}}},
			says:   []string{`without the flag rule "bash(words:command=rm ...)" it would ask all the same: it starts a process`}, not: "away: "},
		{name: "calls used up", tool: "file_read", args: `{"path":"a"}`, used: 3, effect: Deny,
			layers: []Layer{{Ceiling: Ceiling{Rules: []Rule{used}}}},
			says:   []string{"the calls of file_read in this session are used up, 3 of 3", "begin another session, or permit more calls: p.toml: tools.file_read.calls"}, not: "says deny"},
	} {
		e := entry(t, c.tool, map[string]tool.Capabilities{"bash": execs, "file_write": writes, "file_read": reads}[c.tool])
		x := New(Options{Layers: c.layers}).Decide(call(c.tool, c.args), e, Facts{EarlierCalls: c.used}).Explain()
		text := x.Reason + "\n" + x.HintText
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

// A call that no answer can make succeed is denied without a question, even if a rule
// allows it. The hint addresses the person who can change that.
func TestWhatNoAnswerOpensIsDenied(t *testing.T) {
	admin := func(c Ceiling) []Layer { return []Layer{{Source: SourceAdmin, Ceiling: c}} }
	from := func(key string) Provenance { return Provenance{SourceAdmin, "/etc/p.toml: " + key} }
	hosts := func(names ...string) []Layer {
		return admin(Ceiling{Hosts: []List{{Values: names, From: from("network.hosts")}}})
	}
	dirs := func(names ...string) []Layer {
		return admin(Ceiling{Directories: []List{{Values: names, From: from("files.directories")}}})
	}
	at := func(named string) NamedFile { return NamedFile{Arg: "path", Name: named, Path: named} }
	file := func(named string) []NamedFile { return []NamedFile{at(named)} }
	saves := tool.Capabilities{Files: tool.FilesWrite, Network: tool.NetworkHTTP}
	names := func(hosts ...string) tool.Capabilities {
		return tool.Capabilities{Network: tool.NetworkHTTP, Hosts: hosts}
	}
	const theirs = "only the administrator can: /etc/p.toml: "
	for name, c := range map[string]struct {
		caps   tool.Capabilities
		args   string
		files  []NamedFile
		layers []Layer
		net    []string // what the person allows
		masked string
		want   Effect // without a rule
		denied bool   // also with one
		says   string // in reason and change
		not    string
	}{
		"a file":                              {caps: reads, files: file("/work/a"), want: Allow},
		"the mount":                           {caps: reads, files: file("/work"), want: Allow},
		"what leads to it":                    {caps: reads, files: file("/"), want: Allow},
		"a name that begins like it":          {caps: reads, files: file("/workshop"), denied: true, says: "is in no directory that tools are shown; those are /work, /ro; a mount shows"},
		"elsewhere":                           {caps: reads, files: file("/etc/x"), denied: true, says: "a mount shows tools another directory", not: "administrator"},
		"elsewhere, to write":                 {caps: writes, files: file("/etc/x"), denied: true, says: "a mount shows"},
		"the second file":                     {caps: reads, files: []NamedFile{at("/work/a"), at("/etc/x")}, denied: true, says: "/etc/x"},
		"elsewhere, which nobody may mount":   {caps: reads, files: file("/etc/x"), layers: dirs("/work"), denied: true, says: theirs + "files.directories", not: "a mount shows"},
		"the workspace, which nobody may":     {caps: reads, files: file("/work/a"), layers: dirs("/srv"), denied: true, says: theirs + "files.directories", not: "a mount shows"},
		"a link that leads out":               {caps: reads, files: []NamedFile{{Arg: "path", Name: "/work/l"}}, denied: true, says: "link leads from"},
		"hidden":                              {caps: reads, files: file("/work/h/x"), layers: admin(Ceiling{Hidden: []Setting{{"/work/h", from("files.hidden")}}}), denied: true, says: theirs + "files.hidden", not: "a mount shows"},
		"hidden, by a link":                   {caps: reads, files: []NamedFile{{Arg: "path", Name: "/work/l", Path: "/work/h"}}, layers: admin(Ceiling{Hidden: []Setting{{"/work/h", from("files.hidden")}}}), denied: true, says: theirs},
		"ours":                                {caps: reads, files: file("/work/.cfg/a"), masked: "/work/.cfg", denied: true, says: "no answer and no rule", not: "a mount shows"},
		"ours, elsewhere":                     {caps: reads, files: file("/home/.cfg/a"), masked: "/home/.cfg", denied: true, says: "no answer and no rule", not: "a mount shows"},
		"the kernel's":                        {caps: reads, files: file("/proc/self/environ"), denied: true, says: "no answer and no rule", not: "a mount shows"},
		"read-only":                           {caps: writes, files: file("/ro/a"), denied: true, says: "this is because of --mount /ro:ro; without it", not: "administrator"},
		"read-only, to read":                  {caps: reads, files: file("/ro/a"), want: Allow},
		"read-only, the administrator's word": {caps: writes, files: file("/work/a"), layers: dirs("/work:ro"), denied: true, says: theirs + "files.directories", not: "a mount shows"},
		"a hook":                              {caps: writes, files: file("/work/.git/hooks/x"), denied: true, says: "git hooks: git runs what it names, as you; no tool changes it", not: "answer yes"},
		"a hook, by a link":                   {caps: writes, files: []NamedFile{{Arg: "path", Name: "/work/l", Path: "/work/.git/hooks/x"}}, denied: true, says: "git hooks"},
		"a hook, to read":                     {caps: reads, files: file("/work/.git/hooks/x"), want: Allow},
		"a repository of another name":        {caps: writes, files: []NamedFile{{Arg: "path", Name: "/work/r/config", Path: "/work/r/config", InRepository: true}}, denied: true, says: "no tool changes it"},

		"nobody is allowed":                       {caps: networks, want: Deny, says: "no host may be reached; a rule of the network says who"},
		"nobody, of a tool that writes":           {caps: saves, want: Deny, says: "no host may be reached"},
		"somebody":                                {caps: networks, net: []string{"a.example"}, want: Ask},
		"nobody is permitted":                     {caps: networks, net: []string{"a.example"}, layers: hosts(), want: Deny, says: theirs + "network.hosts", not: "a rule of the network"},
		"nobody who is permitted":                 {caps: networks, layers: hosts("b.example"), want: Deny, says: "a rule of the network says who may be reached; the administrator permits b.example: /etc/p.toml: network.hosts"},
		"others than are permitted":               {caps: networks, net: []string{"a.example", "10.0.0.0/8:*"}, layers: hosts("b.example", "*.a.example", "11.0.0.1"), want: Deny, says: "permits b.example, *.a.example, 11.0.0.1"},
		"some of those that are permitted":        {caps: networks, net: []string{"*.a.example"}, layers: hosts("x.a.example"), want: Ask},
		"addresses that are permitted":            {caps: networks, net: []string{"10.0.0.0/8:*"}, layers: hosts("10.0.0.1"), want: Ask},
		"a URL":                                   {caps: networks, args: `{"url":"https://a.example/x"}`, net: []string{"a.example"}, want: Ask},
		"a URL of another":                        {caps: networks, args: `{"url":"https://b.example/x"}`, net: []string{"a.example"}, denied: true, says: `no connection to https://b.example:443: no rule allows it; add the rule "b.example" of the network`},
		"a URL that is not permitted":             {caps: networks, args: `{"page_URL":"https://b.example/x"}`, net: []string{"a.example"}, layers: hosts("a.example"), denied: true, says: theirs + "network.hosts", not: "of the network"},
		"a URL that is allowed and not permitted": {caps: networks, args: `{"url":"https://b.example/x"}`, net: []string{"b.example", "a.example"}, layers: hosts("a.example"), denied: true, says: theirs, not: "of the network"},
		"a URL of this machine":                   {caps: networks, args: `{"url":"http://127.0.0.1:8080/"}`, net: []string{"a.example"}, layers: hosts("a.example"), denied: true, says: theirs, not: "of the network"},
		"a URL without a scheme":                  {caps: networks, args: `{"url":"b.example/x"}`, net: []string{"a.example"}, denied: true, says: `add the rule "b.example" of the network`},
		"a URL of http, where https is allowed":   {caps: networks, args: `{"url":"http://a.example/x"}`, net: []string{"a.example"}, denied: true, says: `over https it is allowed; for http add the rule "http://a.example" of the network`},
		"a URL of http, at a port of https":       {caps: networks, args: `{"url":"http://a.example:8443/x"}`, net: []string{"a.example:8443"}, denied: true, says: "over https it is allowed"},
		"a URL of https, where http is allowed":   {caps: networks, args: `{"url":"a.example:8080/x"}`, net: []string{"http://a.example:8080"}, denied: true, says: "over http it is allowed; for https add"},
		"a URL of http, which nobody allows":      {caps: networks, args: `{"url":"http://b.example/x"}`, net: []string{"a.example"}, denied: true, says: `add the rule "http://b.example" of the network`, not: "over https"},
		"what is no URL":                          {caps: networks, args: `{"url":"no URL"}`, net: []string{"a.example"}, want: Ask},
		"nobody whom it names is allowed":         {caps: names("b.example", "http://c.example:8080"), net: []string{"a.example"}, want: Deny, says: `add the rule "b.example" of the network or the rule "http://c.example:8080" of the network`},
		"somebody whom it names is allowed":       {caps: names("b.example", "c.example"), net: []string{"a.example", "c.example"}, want: Ask},
		"whom it names is not permitted":          {caps: names("b.example"), net: []string{"b.example"}, layers: hosts("a.example"), want: Deny, says: "permits a.example"},
		"a URL, of a tool without a network":      {caps: writes, args: `{"url":"https://b.example/x"}`, want: Ask},

		"a command":          {caps: execs, args: `{"command":"` + strings.Repeat("x", 128<<10-1) + `"}`, want: Ask},
		"a command too long": {caps: execs, args: `{"command":"` + strings.Repeat("x", 128<<10) + `"}`, denied: true, says: "131072 bytes, and the system accepts no more than 131071; write it to a file"},
	} {
		e := entry(t, "w", c.caps)
		e.Content = &tool.Content{Path: "path"}
		opts := Options{Mounts: []Mount{{Host: "/work", Write: true, Origin: "the workspace"}, {Host: "/ro", Origin: "--mount /ro:ro"}}, Layers: c.layers, Network: networkOf(t, c.net...)}
		if c.masked != "" {
			opts.Masked = []string{c.masked}
		}
		text := "w"
		if c.caps.Exec != "" {
			text = "w(command=" + strings.Repeat("x", 128<<10) + ")"
		}
		for _, rules := range [][]Rule{nil, {rule(t, text, SourceFlag)}} {
			opts.Rules = rules
			d := New(opts).Decide(call("w", cmp.Or(c.args, "{}")), e, Facts{Files: c.files})
			want := c.want
			if rules != nil && c.denied {
				want = Deny
			} else if rules != nil {
				want = d.Effect() // nothing that is denied here
			}
			if d.Effect() != want {
				t.Errorf("%s, rules %d: %s, want %s (%s)", name, len(rules), d.Effect(), want, d.Reason())
			}
			x := d.Explain()
			words := x.Reason + "; " + x.HintText
			if want == Deny && (!strings.Contains(words, c.says) || c.not != "" && strings.Contains(words, c.not) || c.says == "") {
				t.Errorf("%s, rules %d: it says %q", name, len(rules), words)
			}
			if want == Deny && (x.AllowRule != "" || strings.Contains(x.HintText, "answer yes")) {
				t.Errorf("%s: an answer is offered: %+v", name, x)
			}
		}
	}
}

// The explanation forecasts the decision about the changes of a call.
func TestAnExplanationForeseesChanges(t *testing.T) {
	e := entry(t, "w", writes)
	e.Content = &tool.Content{Path: "path"}
	call := call("w", `{"path":".vscode/tasks.json"}`)
	facts := Facts{Files: []NamedFile{{Arg: "path", Name: "/work/.vscode/tasks.json", Path: "/work/.vscode/tasks.json"}}}
	for text, want := range map[string]Effect{"w": Ask, "w(path=.vscode/tasks.json)": Allow} {
		d := New(Options{Mounts: []Mount{{Host: "/work", Write: true}}, Rules: []Rule{rule(t, text, SourceFlag)}}).Decide(call, e, facts).AssumeChanges()
		if x := d.Explain(); d.Effect() != want || want == Ask && x.AllowRule != "w(path=.vscode/tasks.json)" {
			t.Errorf("%s: %+v", text, x)
		}
	}
}
