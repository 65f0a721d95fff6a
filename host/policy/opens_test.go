package policy

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/tool"
)

// hostList returns a layer that permits these hosts.
func hostList(source Source, hosts ...string) Layer {
	from := Provenance{Source: source, Origin: "policy.toml: network.hosts"}
	return Layer{Source: source, Ceiling: Ceiling{Hosts: []List{{Values: hosts, From: from}}}}
}

func fetching(url string) tool.Call { return call("http_fetch", fmt.Sprintf(`{"url":%q}`, url)) }

// TestAHostThatNoRuleOpens: a built-in web tool asks for a name of the internet, over https
// at port 443. Any other obstacle is a denial, and so is a missing person to ask.
func TestAHostThatNoRuleOpens(t *testing.T) {
	fetch := entry(t, "http_fetch", networks)
	search := func(hosts ...string) *tool.Entry {
		return entry(t, "web_search", tool.Capabilities{Network: tool.NetworkHTTP, Hosts: hosts})
	}
	added := func(given ...string) *tool.Entry {
		e := entry0("http_fetch", networks, tool.OriginAdded)
		e.Allowed = &tool.Allowance{Hosts: given}
		return e
	}
	given := entry(t, "http_fetch", networks)
	given.Allowed = &tool.Allowance{Hosts: []string{"b.example"}}
	const a = "https://a.example/x"
	for name, c := range map[string]struct {
		opts   Options
		entry  *tool.Entry // nil: fetch
		url    string
		effect Effect
		opens  string
		says   string // in the reason, or in what would change it
	}{
		"a name of the internet":                 {url: a, effect: Ask, opens: "a.example", says: "it reaches the network, and no rule opens a.example"},
		"no scheme, which is https":              {url: "a.example/x", effect: Ask, opens: "a.example"},
		"capitals":                               {url: "HTTPS://A.Example/", effect: Ask, opens: "a.example"},
		"a dot at the end":                       {url: "https://a.example./", effect: Ask, opens: "a.example"},
		"the port of https":                      {url: "https://a.example:443/", effect: Ask, opens: "a.example"},
		"a name that looks like another":         {url: "https://ex\u0430mple.com/", effect: Ask, opens: "xn--exmple-4nf.com"},
		"an address of the network is no path":   {url: "https://a.example/https://b.example/", effect: Ask, opens: "a.example"},
		"a user name":                            {url: "https://a.example@b.example/", says: "no host may be reached"},
		"a user name with a port":                {url: "https://a.example:443@b.example/", says: "no host may be reached"},
		"a backslash":                            {url: `https://a.example\@b.example/`, says: "no host may be reached"},
		"another port":                           {url: "https://a.example:8443/", says: `the rule "a.example:8443" of the network`},
		"http":                                   {url: "http://a.example/", says: `the rule "http://a.example" of the network`},
		"http at the port of https":              {url: "http://a.example:443/", says: `the rule "http://a.example:443" of the network`},
		"an address":                             {url: "https://93.184.216.34/", says: `the rule "93.184.216.34" of the network`},
		"an address of version 6":                {url: "https://[2606:2800:21f:cb07::1]/", says: "of the network"},
		"a private address":                      {url: "https://10.0.0.1/", says: "private"},
		"an address in disguise":                 {url: "https://0x7f.1/", says: "no host may be reached"},
		"this machine":                           {url: "https://localhost/", says: "loopback"},
		"this machine, below a name":             {url: "https://a.localhost/", says: "loopback"},
		"a single label":                         {url: "https://intranet/", says: `the rule "intranet" of the network`},
		"a single label with a dot at its end":   {url: "https://com./", says: `the rule "com" of the network`},
		"a name of the network nearby":           {url: "https://printer.local/", says: `the rule "printer.local" of the network`},
		"a name of a company's network":          {url: "https://db.internal/", says: `the rule "db.internal" of the network`},
		"a name of a home's network":             {url: "https://nas.home.arpa/", says: `the rule "nas.home.arpa" of the network`},
		"metadata of a cloud by its name":        {url: "https://metadata.google.internal/", says: "of the network"},
		"no URL":                                 {url: "https://", says: "no host may be reached"},
		"network.deny has it":                    {opts: Options{Network: networkOf(t, "not a.example")}, url: a, says: `take the rule "a.example" away`},
		"network.deny has what is above":         {opts: Options{Network: networkOf(t, "not *.example")}, url: a, says: `take the rule "*.example" away`},
		"the administrator's list has it":        {opts: Options{Layers: []Layer{hostList(SourceAdmin, "a.example")}}, url: a, effect: Ask, opens: "a.example"},
		"the administrator's list has it not":    {opts: Options{Layers: []Layer{hostList(SourceAdmin, "b.example")}}, url: a, says: "only the administrator can"},
		"the administrator's list is empty":      {opts: Options{Layers: []Layer{hostList(SourceAdmin)}}, url: a, says: "only the administrator can"},
		"the list of the user's policy":          {opts: Options{Layers: []Layer{hostList(SourceUser, "b.example")}}, url: a, says: "it is not on the list of the user's policy"},
		"the list of the project's policy":       {opts: Options{Layers: []Layer{hostList(SourceProject, "b.example")}}, url: a, says: "it is not on the list of the project's policy"},
		"one of two lists":                       {opts: Options{Layers: []Layer{hostList(SourceAdmin, "a.example"), hostList(SourceUser, "b.example")}}, url: a, says: "user's policy"},
		"the web is switched off":                {opts: Options{Layers: []Layer{{Source: SourceSettings, Ceiling: Ceiling{DisabledCapabilities: []Setting{{NetworkKey, Provenance{SourceSettings, "agent.toml"}}}}}}}, url: a, says: "set tools.web = true"},
		"a rule denies the tool":                 {opts: Options{Rules: []Rule{deny(rule(t, "http_fetch", SourceFlag))}}, url: a, says: "leave out the denial"},
		"a rule denies the host":                 {opts: Options{Rules: []Rule{deny(rule(t, "http_fetch(host:url=a.example)", SourceUser))}}, url: a, says: "says deny"},
		"a rule allows the tool":                 {opts: Options{Rules: []Rule{rule(t, "http_fetch", SourceFlag)}}, url: a, effect: Ask, opens: "a.example", says: `no rule opens a.example; that asks even if a rule allows the tool, as "http_fetch" does`},
		"a rule opens it":                        {opts: Options{Network: networkOf(t, "a.example")}, url: a, effect: Ask},
		"a rule opens it, and allows the tool":   {opts: Options{Network: networkOf(t, "a.example"), Rules: []Rule{rule(t, "http_fetch", SourceFlag)}}, url: a, effect: Allow},
		"a rule opens another":                   {opts: Options{Network: networkOf(t, "b.example")}, url: a, effect: Ask, opens: "a.example"},
		"the tool of a file":                     {entry: entry0("http_fetch", networks, tool.OriginFile), url: a, says: `the rule "a.example" of the network`},
		"a tool that was added":                  {entry: added("b.example"), url: a, says: "the person can give it to the tool"},
		"a tool that was given hosts of its own": {entry: given, url: a, says: "the person can give it to the tool"},
		"a command that asks for the network":    {entry: entry(t, "bash", tool.Capabilities{Exec: "command", ExecNetwork: "network"}), url: "", says: "no host may be reached"},
		"the engine of a search":                 {entry: search("search.example"), effect: Ask, opens: "search.example"},
		"an engine over http":                    {entry: search("http://search.example"), says: `the rule "http://search.example" of the network`},
		"an engine at another port":              {entry: search("search.example:8443"), says: `the rule "search.example:8443" of the network`},
		"an engine at an address":                {entry: search("93.184.216.34"), says: `the rule "93.184.216.34" of the network`},
		"an engine on this machine":              {entry: search("localhost"), says: "no host may be reached"},
		"any engine below a name":                {entry: search("*.search.example"), says: "no host may be reached"},
		"two engines":                            {entry: search("search.example", "b.example"), says: "no host may be reached"},
		"an engine that is denied":               {opts: Options{Network: networkOf(t, "not search.example")}, entry: search("search.example"), says: "no host may be reached"},
		"a URL that is not the engine's":         {entry: search("search.example"), url: a, says: "the tool does not ask for this host"},
	} {
		e := c.entry
		if e == nil {
			e = fetch
		}
		made := call(e.Name, `{"query":"q","command":"x","network":true}`)
		if c.url != "" {
			made = call(e.Name, fmt.Sprintf(`{"url":%q}`, c.url))
		}
		for _, asks := range []bool{true, false} {
			c.opts.CanAsk = asks
			d := New(c.opts).Decide(made, e, Facts{})
			want := c.effect
			if !asks && c.opens != "" {
				want = Deny // as where nobody can be asked
			}
			text := d.Reason() + "; " + d.Explain().Hint.String()
			if d.Effect() != want || asks && (d.opensHost != c.opens || !strings.Contains(text, c.says)) {
				t.Errorf("%s, somebody can be asked %v: it is %s for %q: %s", name, asks, d.Effect(), d.opensHost, text)
			}
			if d.Effect() == Deny && c.opens != "" && !strings.Contains(text, "the rule "+fmt.Sprintf("%q", c.opens)+" of the network") {
				t.Errorf("%s: nobody is told what would open it: %s", name, text)
			}
		}
	}
}

// TestTwoHostsAreNotAskedAboutAtOnce: a yes opens one host.
func TestTwoHostsAreNotAskedAboutAtOnce(t *testing.T) {
	p := New(Options{CanAsk: true})
	e := entry(t, "http_fetch", networks)
	for _, args := range []string{
		`{"url":"https://a.example/","base_url":"https://b.example/"}`, `{"url":"https://a.example/","base_url":"http://a.example/"}`,
		`{"url":"https://a.example/","base_url":"https://10.0.0.1/"}`,
	} {
		if d := p.Decide(call("http_fetch", args), e, Facts{}); d.Effect() != Deny {
			t.Errorf("%s: it is %s: %s", args, d.Effect(), d.Reason())
		}
	}
	if d := p.Decide(call("http_fetch", `{"url":"https://a.example/","base_url":"https://A.example./x"}`), e, Facts{}); d.Effect() != Ask || d.opensHost != "a.example" {
		t.Errorf("one host twice: it is %s: %s", d.Effect(), d.Reason())
	}
}

// opensOnly reports an error unless the network opens exactly one host, and only public
// addresses of that host.
func opensOnly(t *testing.T, g Grant, host string) {
	t.Helper()
	n := g.Network()
	d := n.Decide(host, 443, network.HTTPS)
	if err := d.CheckAddr(netip.MustParseAddr("93.184.216.34")); err != nil {
		t.Errorf("%s is not opened: %v", host, err)
	}
	for _, addr := range []string{"10.0.0.1", "127.0.0.1", "169.254.169.254", "100.64.0.1", "::1", "fd00::1", "64:ff9b::a00:1", "::ffff:10.0.0.1"} {
		if d.CheckAddr(netip.MustParseAddr(addr)) == nil {
			t.Errorf("%s may lead to %s", host, addr)
		}
	}
	for _, other := range []string{"b.example", "x." + host, "example", host + ".evil.example", "evil" + host, "93.184.216.34"} {
		if n.Decide(other, 443, network.HTTPS).Err() == nil {
			t.Errorf("with %s, %s is opened", host, other)
		}
	}
	if n.Decide(host, 80, network.HTTP).Err() == nil || n.Decide(host, 8443, network.HTTPS).Err() == nil || n.Decide(host, 443, network.TCP).Err() == nil {
		t.Errorf("another port or protocol of %s is opened", host)
	}
	if !slices.Equal(g.NetworkRules(), []string{host}) {
		t.Errorf("the record says that it reaches %q", g.NetworkRules())
	}
}

// TestAYesOpensOneHost: for the call, or for the session and this tool.
func TestAYesOpensOneHost(t *testing.T) {
	opts := Options{CanAsk: true, Project: "/work"}
	p := New(opts)
	e := entry(t, "http_fetch", networks)
	first := fetching("https://a.example/x")
	first.Turn = 1
	d := p.Decide(first, e, Facts{})
	q := d.Question()
	if q.OpensHost != "a.example" || !slices.Equal(q.Network, []string{"a.example"}) || !strings.HasPrefix(q.Warning, "it can send all that it is given to a.example, which no rule opens") ||
		!slices.Equal(q.Scopes, []Scope{ScopeOnce, ScopeTurn, ScopeSession}) || q.AllowRule != "" {
		t.Errorf("it asks %+v", q)
	}
	if want := "allow every call of http_fetch of the built-in modules to a.example, which it opens, and no other host, until this program ends"; q.Rules[ScopeSession] != want {
		t.Errorf("an answer for the session says %q", q.Rules[ScopeSession])
	}
	if change := d.Explain().HintText; change != `answer yes, or add the rule "a.example" of the network and the rule "http_fetch"` {
		t.Errorf("it says %q", change)
	}
	if _, err := d.Grant(); err == nil {
		t.Error("there is a grant without a yes")
	}
	opensOnly(t, granted(t, p, first, e), "a.example")
	if p.defaultAccess.network.Decide("a.example", 443, network.HTTPS).Err() == nil {
		t.Error("a yes to one call has opened the host for all")
	}
	if again := p.Decide(first, e, Facts{}); again.Effect() != Ask {
		t.Errorf("a yes to one call has answered the next: %s", again.Reason())
	}
	for _, scope := range []Scope{ScopeProject, ScopeAlways, ScopeBelow} {
		if r, err := d.RuleFor(scope); err == nil {
			t.Errorf("an answer is kept for the scope %s: %s", scope, r)
		}
	}

	// A question about another host is another question, even if all else is the same.
	at := time.Unix(1_800_000_000, 0)
	put, other := q.Pose("s", at), q
	other.OpensHost = "b.example"
	if yes := (Answer{Question: put.ID, Allow: true}); other.Pose("s", at).CheckAnswer(yes, at) == nil {
		t.Error("the answer to one host settles the question about another")
	}

	r, err := d.RuleFor(ScopeSession)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ParseRule(r.String()); err == nil {
		t.Errorf("the rule %q can be written", r)
	}
	p.Add(r)
	p.Add(rule(t, "web_search", SourceFlag))
	g, err := p.Decide(fetching("https://a.example/y"), e, Facts{}).Grant()
	if err != nil {
		t.Fatal(err)
	}
	opensOnly(t, g, "a.example")
	other2 := entry(t, "http_fetch", networks)
	other2.Description = "Other words."
	for name, c := range map[string]struct {
		call  tool.Call
		entry *tool.Entry
	}{
		"another host":             {fetching("https://b.example/"), e},
		"a host below":             {fetching("https://x.a.example/"), e},
		"another tool":             {call("web_search", `{"url":"https://a.example/"}`), entry(t, "web_search", networks)},
		"a tool with other words":  {fetching("https://a.example/"), other2},
		"the engine of that name":  {call("web_search", `{}`), entry(t, "web_search", tool.Capabilities{Network: tool.NetworkHTTP, Hosts: []string{"a.example"}})},
		"a name that looks alike":  {fetching("https://\u0430.example/"), e},
		"http, where https is not": {fetching("http://a.example/"), e},
	} {
		if d := p.Decide(c.call, c.entry, Facts{}); d.Effect() == Allow {
			t.Errorf("after a yes for the session, %s is allowed: %s", name, d.Reason())
		}
	}

	// A denial that is added later wins.
	p.Add(deny(rule(t, "http_fetch(host:url=a.example)", SourceUser)))
	if d := p.Decide(fetching("https://a.example/"), e, Facts{}); d.Effect() != Deny {
		t.Errorf("a rule that denies does not win: %s", d.Reason())
	}
}

// TestAHostWhereOtherRulesAsk: the answer also covers the person's own rule that asks.
// Rules of other layers ask each time.
func TestAHostWhereOtherRulesAsk(t *testing.T) {
	e := entry(t, "http_fetch", networks)
	a, b := fetching("https://a.example/"), fetching("https://b.example/")
	p := New(Options{CanAsk: true, Rules: []Rule{ask(rule(t, "http_fetch", SourceUser))}})
	d := p.Decide(a, e, Facts{})
	r, err := d.RuleFor(ScopeSession)
	if err != nil || !strings.HasSuffix(d.Reason(), "says ask, and no rule opens a.example") {
		t.Fatalf("%v: %s", err, d.Reason())
	}
	p.Add(r)
	if d := p.Decide(a, e, Facts{}); d.Effect() != Allow {
		t.Errorf("it is %s: %s", d.Effect(), d.Reason())
	}
	if d := p.Decide(b, e, Facts{}); d.Effect() != Ask || d.opensHost != "b.example" {
		t.Errorf("another host is %s: %s", d.Effect(), d.Reason())
	}
	for name, l := range map[string]Layer{
		"a rule":               {Source: SourceAdmin, Ceiling: Ceiling{Rules: []Rule{ask(rule(t, "http_fetch", SourceAdmin))}}},
		"require_confirmation": {Source: SourceAdmin, Ceiling: Ceiling{Confirm: []Setting{{From: Provenance{Source: SourceAdmin}}}}},
	} {
		p := New(Options{CanAsk: true, Layers: []Layer{l}})
		q := p.Decide(a, e, Facts{}).Question()
		if !slices.Equal(q.Scopes, []Scope{ScopeOnce}) || q.OpensHost != "a.example" {
			t.Errorf("%s of the administrator's: %q, %v", name, q.OpensHost, q.Scopes)
		}
		opensOnly(t, granted(t, p, a, e), "a.example")
	}
}

// TestToolsOfTheWebAreShownWhereTheyCanAsk, and hidden if the network is closed on purpose.
func TestToolsOfTheWebAreShownWhereTheyCanAsk(t *testing.T) {
	fetch := entry(t, "http_fetch", networks)
	search := entry(t, "web_search", tool.Capabilities{Network: tool.NetworkHTTP, Hosts: []string{"search.example"}})
	for name, c := range map[string]struct {
		opts          Options
		fetch, search bool // are hidden
	}{
		"somebody can be asked":            {Options{CanAsk: true}, false, false},
		"nobody can":                       {Options{}, true, true},
		"the engine is denied":             {Options{CanAsk: true, Network: networkOf(t, "not search.example")}, false, true},
		"the administrator's list":         {Options{CanAsk: true, Layers: []Layer{hostList(SourceAdmin, "a.example")}}, false, true},
		"the administrator's is empty":     {Options{CanAsk: true, Layers: []Layer{hostList(SourceAdmin)}}, true, true},
		"a list of addresses":              {Options{CanAsk: true, Layers: []Layer{hostList(SourceAdmin, "10.0.0.1")}}, true, true},
		"the web is switched off":          {Options{CanAsk: true, Layers: []Layer{{Ceiling: Ceiling{DisabledCapabilities: []Setting{{NetworkKey, Provenance{}}}}}}}, true, true},
		"somebody else may be reached":     {Options{CanAsk: true, Network: networkOf(t, "a.example")}, false, false},
		"a rule denies one of the tools":   {Options{CanAsk: true, Rules: []Rule{deny(rule(t, "web_search", SourceUser))}}, false, true},
		"a rule opens, and nobody can ask": {Options{Network: networkOf(t, "a.example")}, false, true},
	} {
		p := New(c.opts)
		if got := p.Hides(fetch, tool.CallerAgent); got != c.fetch {
			t.Errorf("%s: http_fetch is hidden: %v", name, got)
		}
		if got := p.Hides(search, tool.CallerAgent); got != c.search {
			t.Errorf("%s: web_search is hidden: %v", name, got)
		}
	}
}
