package policy

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/tool"
)

// networkOf returns the network of these rules. A rule after "not " denies.
func networkOf(t testing.TB, texts ...string) *network.Network {
	t.Helper()
	var rules []network.Rule
	for _, text := range texts {
		parse := network.ParseRule
		if rest, ok := strings.CutPrefix(text, "not "); ok {
			parse, text = network.ParseDenial, rest
		}
		r, err := parse(text)
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, r)
	}
	return network.New(rules)
}

// denialOf returns the denial that an error wraps, or nil.
func denialOf(err error) *network.Denial {
	denial, _ := errors.AsType[*network.Denial](err)
	return denial
}

var networks = tool.Capabilities{Network: tool.NetworkHTTP}

// TestToolsThatUseTheNetwork: they ask, with a warning, and never run before the answer.
// Tools that did not ask for the network get none.
func TestToolsThatUseTheNetwork(t *testing.T) {
	p := New(Options{Network: networkOf(t, "a.example")})
	e := entry(t, "get", networks)
	d := p.Decide(call("get", "{}"), e, Facts{})
	q := d.Question()
	if d.Effect() != Ask || d.Risk() != RiskHigh || d.Reason() != "it reaches the network" || q.Warning != exfiltrationWarning || len(q.Scopes) != 3 {
		t.Errorf("it is %s, %s (%s), asked as %+v", d.Effect(), d.Risk(), d.Reason(), q)
	}
	if d.CanRehearse() {
		t.Error("it can run before the answer")
	}
	writer := entry(t, "save", tool.Capabilities{Files: tool.FilesWrite, Network: tool.NetworkHTTP})
	if d := p.Decide(call("save", "{}"), writer, Facts{}); d.CanRehearse() || d.AsksOnlyForChanges() || RiskOf(writer) != RiskHigh {
		t.Error("one that writes, too, can run before the answer")
	}
	if g := granted(t, p, call("get", "{}"), e); g.Network() == nil || g.Network().Decide("a.example", 443, network.HTTPS).Err() != nil {
		t.Error("it gets no network")
	}
	if g := granted(t, p, call("bash", `{"command":"x"}`), entry(t, "bash", execs)); g.Network() != nil {
		t.Error("a tool that did not ask for the network gets it")
	}
	g, err := New(Options{Rules: []Rule{rule(t, "get", SourceFlag)}}).Decide(call("get", "{}"), e, Facts{}).Grant()
	denial := denialOf(g.Network().Decide("a.example", 443, network.HTTPS).Err())
	if err != nil || denial == nil || denial.AllowRule == nil {
		t.Errorf("without a network, the denial is %v", denial)
	}
}

// TestABuiltInToolReachesWhomItNames: the hosts in its manifest restrict the network. If no
// host is left, the model does not see the tool.
func TestABuiltInToolReachesWhomItNames(t *testing.T) {
	named := func(origin tool.Origin, hosts ...string) *tool.Entry {
		return entry0("get", tool.Capabilities{Network: tool.NetworkHTTP, Hosts: hosts}, origin)
	}
	for name, c := range map[string]struct {
		allow   []string
		entry   *tool.Entry
		hidden  bool
		reaches map[string]bool
	}{
		"nobody is allowed":                     {nil, named(tool.OriginBuiltin), true, nil},
		"somebody is allowed":                   {[]string{"a.example"}, named(tool.OriginBuiltin), false, map[string]bool{"a.example": true, "b.example": false}},
		"it names somebody else":                {[]string{"a.example"}, named(tool.OriginBuiltin, "b.example"), true, nil},
		"it names one of them":                  {[]string{"a.example", "b.example"}, named(tool.OriginBuiltin, "b.example"), false, map[string]bool{"a.example": false, "b.example": true}},
		"it names another port":                 {[]string{"a.example"}, named(tool.OriginBuiltin, "a.example:8443"), true, nil},
		"it names another protocol":             {[]string{"a.example:*"}, named(tool.OriginBuiltin, "http://a.example:443"), true, nil},
		"others made it, and nobody is allowed": {nil, named(tool.OriginFile), false, nil},
	} {
		p := New(Options{Network: networkOf(t, c.allow...), Rules: []Rule{rule(t, "get", SourceFlag)}})
		if hidden := p.Hides(c.entry, tool.CallerAgent); hidden != c.hidden {
			t.Errorf("%s: it is hidden: %v", name, hidden)
		}
		g, err := p.Decide(call("get", "{}"), c.entry, Facts{}).Grant()
		if err != nil {
			t.Fatal(err)
		}
		for host, want := range c.reaches {
			if err := g.Network().Decide(host, 443, network.HTTPS).Err(); (err == nil) != want {
				t.Errorf("%s: %s: %v", name, host, err)
			}
		}
	}
	p := New(Options{Network: networkOf(t, "a.example", "b.example")})
	if got := p.accessOf(named(tool.OriginBuiltin, "b.example")).network.Rules(); len(got) == 0 {
		t.Error("its network has no rules")
	}
	if got := p.defaultAccess.network.OpenRules(); len(got) != 2 {
		t.Errorf("what one tool names has narrowed that of all: %v", got)
	}
}

func TestTrafficIsBounded(t *testing.T) {
	p := New(Options{
		Network: networkOf(t, "a.example", "b.example"), Limits: Limits{HTTPRequests: 3, HTTPSentBytes: 100},
	})
	grant := granted(t, p, call("get", "{}"), entry(t, "get", networks))
	decide := func(host string) network.Decision { return grant.Network().Decide(host, 443, network.HTTPS) }
	a, b, c := decide("a.example"), decide("b.example"), decide("c.example")
	if err := grant.TakeRequest(a, 60); err != nil {
		t.Error(err)
	}
	if err := grant.TakeRequest(b, 41); err == nil || !strings.Contains(err.Error(), "100 bytes") {
		t.Errorf("101 bytes in two requests: %v", err)
	}
	if err := grant.TakeRequest(b, -1); err == nil {
		t.Error("a negative size")
	}
	if err := grant.TakeRequest(c, 1); denialOf(err) == nil {
		t.Errorf("a host that is denied: %v", err)
	}
	copied := grant.WithBudgets()
	if err := errors.Join(copied.TakeRequest(b, 30), grant.TakeSent(b, 10), grant.TakeRequest(a, 0)); err != nil {
		t.Error(err)
	}
	if err := copied.TakeRequest(a, 0); err == nil || !strings.Contains(err.Error(), "3 requests") {
		t.Errorf("a fourth request: %v", err)
	}
	if err := copied.TakeSent(a, 1); err == nil || (Grant{}).TakeSent(a, 0) == nil {
		t.Errorf("101 bytes on a connection: %v", err)
	}
	grant.NoteReceived(a, 7)
	for i := range 500 {
		grant.NoteRefused(decide(fmt.Sprintf("x%d.example", i)))
	}
	if got := grant.Traffic(); len(got) > 130 || fmt.Sprint(got[0]) != "{https://a.example:443 2 60 7 0}" || fmt.Sprint(got[1]) != "{https://b.example:443 1 40 0 0}" {
		t.Errorf("the account has %d hosts: %v", len(got), got[:2])
	}
	if (Grant{}).TakeRequest(a, 1) == nil || (Grant{}).Network() != nil || (Grant{}).Traffic() != nil {
		t.Error("no grant allows")
	}
}

// Writing an address in another form does not evade a rule that denies it.
func TestOtherWaysToWriteAnAddressAreNotAllowed(t *testing.T) {
	allow, deny := rule(t, "get", SourceFlag), rule(t, "get(host:url=127.0.0.1)", SourceFlag)
	allow.Effect, deny.Effect = Allow, Deny
	p := New(Options{Rules: []Rule{allow, deny}, Network: networkOf(t, "http://127.0.0.0/8:*")})
	for _, host := range []string{
		"127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "017700000001", "127.0.0.01", "127.0.0.1.",
		"[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:7f00:0001]", "127\u30020\u30020\u30021", "\uff11\uff12\uff17.0.0.1", "127%2e0.0.1",
	} {
		for _, url := range []string{"http://" + host + "/", "http://" + host + ":80/x?y"} {
			if d := p.Decide(call("get", fmt.Sprintf(`{"url":%q}`, url)), entry(t, "get", networks), Facts{}); d.Effect() == Allow {
				t.Errorf("%s is allowed: %s", url, d.Reason())
			}
		}
	}
	if d := p.Decide(call("get", `{"url":"http://127.0.0.2/"}`), entry(t, "get", networks), Facts{}); d.Effect() != Allow {
		t.Errorf("another address: %s, %s", d.Effect(), d.Reason())
	}
}
