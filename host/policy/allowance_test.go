package policy

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/tool"
)

// everything holds all capabilities that a greedy module asks for.
var everything = tool.Capabilities{
	Files: tool.FilesWrite, Exec: "command", Store: true, ExecNetwork: "online", Network: tool.NetworkHTTP,
	Secrets: []tool.Secret{{Name: "TOKEN", Hosts: []string{"api.example"}}, {Name: "OTHER", Hosts: []string{"api.example"}}},
}

// added returns a third-party tool that asks for asks and was given an allowance.
func added(t testing.TB, asks tool.Capabilities, given tool.Allowance) *tool.Entry {
	t.Helper()
	e := entry(t, "weather_now", asks.Restrict(given))
	e.Module = &tool.Module{Name: "weather", Prefix: "weather_", Digest: "d1", Origin: tool.OriginAdded}
	e.Requested, e.Allowed = asks, &given
	return e
}

func reached(n *network.Network, hosts ...string) (out []string) {
	for _, h := range hosts {
		if n.Decide(h, 443, network.HTTPS).Err() == nil {
			out = append(out, h)
		}
	}
	return out
}

// An added tool has its allowance, and not the default access. The first case has the
// default access: it shows that the others would fail with it.
func TestAnAddedToolHasWhatItWasGiven(t *testing.T) {
	hosts := []string{"open.example", "api.example", "denied.example", "x.api.example"}
	ceiling := Ceiling{Directories: []List{{[]string{"/work", "/docs:ro"}, Provenance{SourceAdmin, "f"}}}, Hosts: []List{{[]string{"open.example", "denied.example"}, Provenance{SourceAdmin, "f"}}}}
	ask := func(hosts ...string) tool.Capabilities { c := everything; c.Hosts = hosts; return c }
	for name, c := range map[string]struct {
		entry   *tool.Entry
		ceiling Ceiling
		mounts  []string
		hosts   []string
		secrets []string
		exec    bool
		store   bool
	}{
		"a built-in tool has what tools are shown": {
			entry: entry(t, "ours", everything), mounts: []string{"/work:rw"}, hosts: []string{"open.example"}, secrets: []string{"OTHER", "TOKEN"}, exec: true, store: true,
		},
		"nothing was given": {entry: added(t, everything, tool.Allowance{})},
		"nothing is known": {entry: func() *tool.Entry {
			e := added(t, everything, tool.Allowance{})
			e.Allowed, e.Capabilities = nil, writes
			return e
		}()},
		"the catalog forgot to narrow": {entry: func() *tool.Entry {
			e := added(t, everything, tool.Allowance{Read: []string{"/docs"}})
			e.Capabilities = tool.Capabilities{Files: tool.FilesWrite, Secrets: everything.Secrets}
			return e
		}(), mounts: []string{"/docs:ro"}},
		"a directory to read": {entry: added(t, everything, tool.Allowance{Read: []string{"/docs"}}), mounts: []string{"/docs:ro"}},
		"one to change, and a part of it to read": {
			entry: added(t, everything, tool.Allowance{Read: []string{"/docs/a", "/docs"}, Write: []string{"/docs"}}), mounts: []string{"/docs:rw", "/docs/a:ro"},
		},
		"one to change that it wants to read": {entry: added(t, reads, tool.Allowance{Write: []string{"/docs"}}), mounts: []string{"/docs:ro"}},
		"one that is no clean path":           {entry: added(t, reads, tool.Allowance{Read: []string{"docs", "/docs/../etc", "/x"}}), mounts: []string{"/x:ro"}},
		"under a ceiling": {
			entry: added(t, everything, tool.Allowance{Write: []string{"/docs", "/work/a", "/etc"}, Hosts: []string{"open.example", "api.example"}}), ceiling: ceiling,
			mounts: []string{"/docs:ro", "/work/a:rw"}, hosts: []string{"open.example"},
		},
		"a host":                         {entry: added(t, everything, tool.Allowance{Hosts: []string{"api.example"}}), hosts: []string{"api.example"}},
		"a host that the person denies":  {entry: added(t, everything, tool.Allowance{Hosts: []string{"denied.example", "api.example"}}), hosts: []string{"api.example"}},
		"hosts that it does not ask for": {entry: added(t, ask("x.api.example:443"), tool.Allowance{Hosts: []string{"*.api.example", "open.example"}}), hosts: []string{"x.api.example"}},
		"only hosts that are none":       {entry: added(t, ask("no host"), tool.Allowance{Hosts: []string{"api.example", "no host"}})},
		"one secret":                     {entry: added(t, everything, tool.Allowance{Secrets: []string{"TOKEN", "MORE"}}), secrets: []string{"TOKEN"}},
		"a store":                        {entry: added(t, everything, tool.Allowance{Store: true}), store: true},
		"a store that it does not want":  {entry: added(t, reads, tool.Allowance{Store: true})},
		"commands":                       {entry: added(t, everything, tool.Allowance{Exec: true, Read: []string{"/work"}}), mounts: []string{"/work:ro"}, exec: true},
	} {
		p := New(Options{
			Mounts: inWork, Network: networkOf(t, "open.example", "not denied.example"), Layers: []Layer{{Source: SourceAdmin, Ceiling: c.ceiling}}, Tier: inTier(MaxTier),
			Rules: []Rule{{Effect: Allow, Tool: "weather_now", Source: SourceFlag}},
		})
		d := p.Decide(call(c.entry.Name, `{"command":"ls"}`), c.entry, Facts{})
		g, err := d.Grant()
		if d.Effect() == Ask {
			g, err = d.Approve(Answer{Allow: true}, 1)
		}
		if err != nil {
			t.Errorf("%s: %s, %s: %v", name, d.Effect(), d.Reason(), err)
			continue
		}
		exec, _ := g.Exec()
		if got := each(g.Mounts(), Mount.String); !slices.Equal(got, c.mounts) {
			t.Errorf("%s: it is shown %v", name, got)
		}
		if got := each(exec.Mounts, Mount.String); g.MayExec() != c.exec || c.exec && !slices.Equal(got, c.mounts) {
			t.Errorf("%s: its commands (%v) are shown %v", name, g.MayExec(), got)
		}
		if got := reached(g.Network(), hosts...); !slices.Equal(got, c.hosts) {
			t.Errorf("%s: it reaches %v", name, got)
		}
		if g.HasStore() != c.store {
			t.Errorf("%s: it keeps things: %v", name, g.HasStore())
		}
		if got := tool.SecretNames(g.Secrets()); !slices.Equal(got, c.secrets) {
			t.Errorf("%s: it gets %v", name, got)
		}
	}
}

// Reading files is safe for built-in tools only: a third-party tool that reads files asks.
func TestTheToolsOfOthersAreOfAnotherRisk(t *testing.T) {
	docs, api := tool.Allowance{Read: []string{"/work"}}, tool.Allowance{Read: []string{"/work"}, Hosts: []string{"api.example", "b.example"}}
	ofFile := func(caps tool.Capabilities) *tool.Entry {
		e := entry(t, "x", caps)
		e.Module.Origin = tool.OriginFile
		return e
	}
	both := tool.Capabilities{Files: tool.FilesRead, Network: tool.NetworkHTTP}
	for name, c := range map[string]struct {
		entry   *tool.Entry
		by      tool.Caller
		risk    Risk
		effect  Effect
		reason  string
		warning string
	}{
		"a built-in tool reads":                        {entry(t, "x", reads), tool.CallerAgent, RiskSafe, Allow, "only reads", ""},
		"one that was added computes":                  {added(t, everything, tool.Allowance{}), tool.CallerAgent, RiskSafe, Allow, "nothing outside", ""},
		"it reads":                                     {added(t, reads, docs), tool.CallerAgent, RiskMedium, Ask, "others wrote it, and it reads files", ""},
		"it reads for a person":                        {added(t, reads, docs), tool.CallerPerson, RiskMedium, Ask, "others wrote it, and it reads files", ""},
		"it writes":                                    {added(t, writes, tool.Allowance{Write: []string{"/work"}}), tool.CallerAgent, RiskMedium, Ask, "it changes files", ""},
		"it reads and uses a secret":                   {added(t, everything, tool.Allowance{Read: []string{"/work"}, Secrets: []string{"TOKEN"}}), tool.CallerAgent, RiskMedium, Ask, "reads files and uses secrets: TOKEN", ""},
		"it uses a secret":                             {added(t, everything, tool.Allowance{Secrets: []string{"TOKEN"}}), tool.CallerAgent, RiskMedium, Ask, "TOKEN", ""},
		"it reaches the network":                       {added(t, both, tool.Allowance{Hosts: []string{"api.example"}}), tool.CallerAgent, RiskHigh, Ask, "it reaches the network", exfiltrationWarning},
		"it reads and reaches the network":             {added(t, both, api), tool.CallerAgent, RiskHigh, Ask, "reads files and reaches the network", `it can send what it reads in "/work" to api.example, b.example`},
		"a file reads for the agent":                   {ofFile(reads), tool.CallerAgent, RiskMedium, Ask, "others wrote it", ""},
		"a file reads for an agent of somebody else":   {ofFile(reads), tool.CallerMCP, RiskMedium, Ask, "others wrote it", ""},
		"a file reads for the person who has named it": {ofFile(reads), tool.CallerPerson, RiskMedium, Allow, "has chosen the tool", ""},
		"a file reads and sends":                       {ofFile(both), tool.CallerAgent, RiskHigh, Ask, "reads files and reaches", `it can send what it reads in "/work" to open.example`},
	} {
		opts := Options{Mounts: inWork, Network: networkOf(t, "open.example")}
		call := call(c.entry.Name, "{}")
		call.Caller = c.by
		d := New(opts).Decide(call, c.entry, Facts{})
		if RiskOf(c.entry) != c.risk || d.Risk() != c.risk || d.Effect() != c.effect || !strings.Contains(d.Reason(), c.reason) {
			t.Errorf("%s: risk %s, %s: %s", name, d.Risk(), d.Effect(), d.Reason())
		}
		if got := d.Question().Warning; got != c.warning {
			t.Errorf("%s: warned %q", name, got)
		}
		// A rule of the person replaces the default; require_confirmation asks in any case.
		opts.Rules = []Rule{{Effect: Allow, Tool: c.entry.Name, Source: SourceUser, Secrets: d.secretNames()}}
		if d := New(opts).Decide(call, c.entry, Facts{}); d.Effect() != Allow {
			t.Errorf("%s: with a rule it is %s: %s", name, d.Effect(), d.Reason())
		}
		if d := New(Options{Mounts: inWork, Network: opts.Network, ConfirmAll: true}).Decide(call, c.entry, Facts{}); d.Effect() != Ask {
			t.Errorf("%s: it is not confirmed: %s", name, d.Reason())
		}
	}
}

// A tool that may change files reads them, too. A built-in tool that has changed none is
// not asked about; a third-party tool is, because it has read files.
func TestReadingIsAskedAboutAlsoWhereNothingWasChanged(t *testing.T) {
	p := New(Options{Mounts: inWork})
	if d := p.Decide(call("ours", "{}"), entry(t, "ours", writes), Facts{}); !d.AsksOnlyForChanges() {
		t.Error("a built-in tool that changed nothing asks")
	}
	e := added(t, writes, tool.Allowance{Write: []string{"/work"}})
	d := p.Decide(call(e.Name, "{}"), e, Facts{})
	if !d.CanRehearse() || d.AsksOnlyForChanges() {
		t.Error("what the tool of others reads is nobody's question")
	}
	if d, _ := d.DecideChanges(nil); d.Effect() != Ask || !strings.Contains(d.Reason(), "has changed none") {
		t.Errorf("it has changed nothing: %s, %s", d.Effect(), d.Reason())
	}
	p.Add(Rule{Effect: Allow, Tool: e.Name, Below: "/work/out", Source: SourceUser})
	if d, _ := d.DecideChanges([]tool.Change{{Path: "/work/out/a", Kind: tool.Modified}}); d.Effect() != Allow {
		t.Errorf("a rule about what it changes: %s, %s", d.Effect(), d.Reason())
	}
}

// The hint of a denial is to give the tool more, and not a flag for all tools.
func TestADenialSaysThatItWasNotGiven(t *testing.T) {
	p := New(Options{Mounts: inWork, Network: networkOf(t, "open.example")})
	given := tool.Allowance{Read: []string{"/docs"}, Hosts: []string{"api.example"}}
	e := added(t, tool.Capabilities{Files: tool.FilesWrite, Network: tool.NetworkHTTP}, given)
	for args, want := range map[string]string{
		`{"path":"/work/a"}`:                  "no directory that the tool was given; those are /docs",
		`{"url":"https://open.example/"}`:     "the tool was not given this host",
		`{"url":"https://api.example:8443/"}`: "the tool was not given this host",
	} {
		c := call(e.Name, args)
		var facts Facts
		facts.Files = append(facts.Files, PathArgs(c, e)...)
		x := p.Decide(c, e, facts).Explain()
		if x.Effect != "deny" || !strings.Contains(x.Reason, want) || x.HintText != "the person can give it to the tool" {
			t.Errorf("%s: %s, %s; %s", args, x.Effect, x.Reason, x.HintText)
		}
	}
	x := p.Decide(call(e.Name, "{}"), e, Facts{}).Explain()
	if want := []string{`"/docs" to read`, "the host api.example"}; !slices.Equal(x.Allowance, want) {
		t.Errorf("it explains %q", x.Allowance)
	}
	if x := p.Decide(call("r", "{}"), entry(t, "r", reads), Facts{}).Explain(); x.Allowance != nil {
		t.Errorf("a built-in tool was given %q", x.Allowance)
	}
}

// A remembered answer about a signed module also holds for its later versions, but for no
// other change. It does not cover anything that the tool is given later.
func TestAnAnswerAboutASignedModule(t *testing.T) {
	fresh := func() *tool.Entry {
		e := added(t, everything, tool.Allowance{Read: []string{"/work"}})
		e.Description = "Says the weather."
		e.Module.Signer = "release@example.com"
		return e
	}
	give := func(e *tool.Entry, a tool.Allowance) { e.Allowed, e.Capabilities = &a, e.Requested.Restrict(a) }
	for name, c := range map[string]struct {
		change func(*tool.Entry)
		want   []string
	}{
		"other bytes":              {func(e *tool.Entry) { e.Module.Digest = "d2" }, nil},
		"another version":          {func(e *tool.Entry) { e.Module.Version = "2.0.0" }, nil},
		"another signer":           {func(e *tool.Entry) { e.Module.Signer = "evil@example.com" }, []string{"module"}},
		"no signer":                {func(e *tool.Entry) { e.Module.Signer = "" }, []string{"module"}},
		"another module of theirs": {func(e *tool.Entry) { e.Module.Name = "whether" }, []string{"module"}},
		"another description":      {func(e *tool.Entry) { e.Description = "Says more." }, []string{"description"}},
		"another schema":           {func(e *tool.Entry) { e.Parameters = []byte(`{"type":"object"}`) }, []string{"schema"}},
		"it asks for a host":       {func(e *tool.Entry) { e.Requested.Hosts = []string{"evil.example"} }, []string{"capabilities"}},
		"it is given a host": {func(e *tool.Entry) {
			give(e, tool.Allowance{Read: []string{"/work"}, Hosts: []string{"evil.example"}})
		}, []string{"capabilities"}},
		"it is given another directory": {func(e *tool.Entry) { give(e, tool.Allowance{Read: []string{"/work", "/home"}}) }, []string{"capabilities"}},
	} {
		r, err := New(Options{Mounts: inWork}).Decide(call("weather_now", "{}"), fresh(), Facts{}).RuleFor(ScopeAlways)
		if err != nil {
			t.Fatal(err)
		}
		if words := r.InWords(); !strings.Contains(words, "of the module weather, signed by release@example.com") {
			t.Errorf("in words: %s", words)
		}
		e := fresh()
		c.change(e)
		d := New(Options{Mounts: inWork, Rules: []Rule{r}, Network: networkOf(t, "evil.example")}).Decide(call("weather_now", "{}"), e, Facts{})
		if got := r.Binding.Changed(e); !slices.Equal(got, c.want) || (d.Effect() == Allow) != (c.want == nil) {
			t.Errorf("%s: changed %v, %s (%s)", name, got, d.Effect(), d.Reason())
		}
	}
	// A rule about a digest denies that module whoever has signed it.
	deny := Rule{Effect: Deny, Tool: AnyTool, Binding: Binding{Module: "sha256:d1"}, Source: SourceAdmin}
	if d := New(Options{Rules: []Rule{deny}}).Decide(call("weather_now", "{}"), fresh(), Facts{}); d.Effect() != Deny {
		t.Errorf("bytes that are denied: %s", d.Effect())
	}
}

func TestWhoMayAddModules(t *testing.T) {
	from := Provenance{SourceAdmin, "f"}
	registries := func(values ...string) Ceiling { return Ceiling{Registries: []List{{values, from}}} }
	signed := &tool.Module{Digest: "d1", Origin: tool.OriginAdded, Signer: "s", AdminKnowsSigner: true}
	for name, c := range map[string]struct {
		ceiling    Ceiling
		module     *tool.Module
		repository string
		want       bool
	}{
		"nobody says anything":               {Ceiling{}, signed, "", true},
		"nobody adds":                        {Ceiling{ModulesClosed: []Setting{{From: from}}}, signed, "r.example/a", false},
		"from the registry":                  {registries("r.example"), signed, "r.example/a/b", true},
		"from below a path":                  {registries("x.example", "r.example/a"), signed, "r.example/a/b", true},
		"from the path itself":               {registries("r.example/a"), signed, "r.example/a", true},
		"from a path that begins like it":    {registries("r.example/a"), signed, "r.example/ab", false},
		"from a host that begins like it":    {registries("r.example"), signed, "r.example.evil.example/a", false},
		"from another port":                  {registries("r.example"), signed, "r.example:5000/a", false},
		"from a file":                        {registries("r.example"), signed, "", false},
		"from nowhere":                       {registries(), signed, "r.example/a", false},
		"in one list of two":                 {Narrow(registries("r.example"), registries("r.example/b")), signed, "r.example/a", false},
		"what may not run is not added":      {Ceiling{SignedOnly: []Setting{{From: from}}}, &tool.Module{Digest: "d1", Origin: tool.OriginAdded}, "r.example/a", false},
		"what is signed may where it has to": {Ceiling{SignedOnly: []Setting{{From: from}}}, signed, "r.example/a", true},
		"of whom the user alone knows":       {Ceiling{SignedOnly: []Setting{{From: from}}}, &tool.Module{Digest: "d1", Origin: tool.OriginAdded, Signer: "s"}, "r.example/a", false},
		"of another signer":                  {Ceiling{Modules: []ModuleList{{Signers: []string{"t"}, From: from}}}, signed, "r.example/a", false},
	} {
		ok, why, by := c.ceiling.PermitsAdd(c.module, c.repository)
		if ok != c.want || ok == (why != "") || !ok && by != from {
			t.Errorf("%s: %v, %q by %s", name, ok, why, by)
		}
		// Before the module is fetched its signer is unknown.
		if early, _, _ := c.ceiling.PermitsFrom(c.repository); early != (c.want || len(c.ceiling.SignedOnly)+len(c.ceiling.Modules) > 0) {
			t.Errorf("%s: it may be fetched: %v", name, early)
		}
	}
}

func TestWhatRunsByItsPath(t *testing.T) {
	from := Provenance{SourceAdmin, "f"}
	for name, c := range map[string]struct {
		ceiling Ceiling
		want    string // the origins that may run, of modules that nobody has signed
	}{
		"nobody says anything":    {Ceiling{}, "builtin file added"},
		"nobody adds":             {Ceiling{ModulesClosed: []Setting{{From: from}}}, "builtin added"},
		"from registries":         {Ceiling{Registries: []List{{[]string{"r.example"}, from}}}, "builtin added"},
		"what is signed":          {Ceiling{SignedOnly: []Setting{{From: from}}}, "builtin"},
		"what is in a list":       {Ceiling{Modules: []ModuleList{{Digests: []string{"d1"}, From: from}}}, "builtin file added"},
		"what is in another list": {Ceiling{Modules: []ModuleList{{Digests: []string{"d2"}, From: from}}}, "builtin"},
		"nobody adds, and a list": {Ceiling{ModulesClosed: []Setting{{From: from}}, Modules: []ModuleList{{Digests: []string{"d1"}, From: from}}}, "builtin added"},
	} {
		var may []string
		for _, o := range []tool.Origin{tool.OriginBuiltin, tool.OriginFile, tool.OriginAdded} {
			err := c.ceiling.PermitsRun(&tool.Module{Name: "m", Digest: "d1", Origin: o})
			if e, ok := errors.AsType[*ModuleError](err); err == nil {
				may = append(may, string(o))
			} else if !ok || e.From != from || e.Why == "" {
				t.Errorf("%s: %v", name, err)
			}
		}
		if got := strings.Join(may, " "); got != c.want {
			t.Errorf("%s: %q may run, want %q", name, got, c.want)
		}
	}
}

func TestMissing(t *testing.T) {
	for name, c := range map[string]struct {
		entry *tool.Entry
		want  string
	}{
		"a built-in tool misses nothing": {entry(t, "ours", everything), ""},
		"all":                            {added(t, everything, tool.Allowance{}), "write exec host store secret=OTHER secret=TOKEN"},
		"all was given": {added(t, everything, tool.Allowance{
			Write: []string{"/a"}, Hosts: []string{"h.example"}, Secrets: []string{"TOKEN", "OTHER"}, Exec: true, Store: true,
		}), ""},
		"files to read":       {added(t, reads, tool.Allowance{Exec: true}), "read"},
		"to change as well":   {added(t, writes, tool.Allowance{Read: []string{"/a"}}), "write"},
		"hosts that it names": {added(t, tool.Capabilities{Network: tool.NetworkHTTP, Hosts: []string{"a.example", "b.example:8443"}}, tool.Allowance{}), "host=a.example host=b.example:8443"},
	} {
		got := c.entry.Missing()
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q", name, got)
		}
		if hint := c.entry.MissingHint(); (hint == nil) != (c.want == "") || hint != nil && !strings.Contains(hint.String(), "the person can give it to the tool") {
			t.Errorf("%s: %q", name, hint)
		}
	}
}
