package policy

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/policy/match"
	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/tool"
)

var combinations = flag.Int("combinations", 10_000, "random combinations of layers, rules and calls; `make test-layers` tries a million")

// world makes random layers, answers and calls from few words, so that they often concern
// the same things.
type world struct{ *rand.Rand }

var parsed = map[string]match.Condition{} // by their text; tests here do not run in parallel

func (w world) pick(from ...string) string { return from[w.IntN(len(from))] }

func (w world) some(from ...string) []string {
	out := []string{}
	for _, s := range from {
		if w.IntN(3) == 0 {
			out = append(out, s)
		}
	}
	return out
}

func (w world) condition() match.Condition {
	text := w.pick("", "", "!") + w.pick(
		"path=a", "path=/work/a", "path:path=/work/**", "path:path=/work/*/b", "path:path=/**", "path:path=/work/secret/**", "command=ls -l",
		"words:command=ls ...", "words:command=ls -l", "words:command=rm ...", "host:url=*.example.com", "host:url=a.example.com",
		`one_of:path=["a","b"]`, "maximum:limit=10", "pattern:path=[a-z]*", "path:/list/*=/work/**",
	)
	if c, ok := parsed[text]; ok {
		return c
	}
	c, err := match.ParseCondition(text)
	if err != nil {
		panic(err)
	}
	parsed[text] = c
	return c
}

func (w world) rule(source Source, effects ...Effect) Rule {
	r := Rule{Effect: effects[w.IntN(len(effects))], Tool: w.pick("t", "u", AnyTool), Source: source}
	if r.Effect == Allow && r.Tool == AnyTool {
		r.Tool = "t"
	}
	for range w.IntN(3) {
		r.Where = append(r.Where, w.condition())
	}
	if w.IntN(3) == 0 {
		r.Secrets = "A"
	}
	if w.IntN(4) == 0 {
		r.Risks = []Risk{Risk(w.IntN(3))}
	}
	if w.IntN(4) == 0 {
		r.Callers = []tool.Caller{tool.Caller(w.pick("agent", "person", "mcp"))}
	}
	if w.IntN(6) == 0 && r.Effect == Deny {
		r.AfterCalls = 1 + w.IntN(3)
	}
	if w.IntN(6) == 0 && r.Tool == AnyTool {
		r.Except = []string{w.pick("t", "u")}
	}
	return r
}

func (w world) ceiling(source Source) Ceiling {
	var c Ceiling
	from := Provenance{source, w.pick("f: 1", "f: 2")}
	for range w.IntN(3) {
		c.Rules = append(c.Rules, w.rule(source, Deny, Ask))
	}
	if w.IntN(2) == 0 {
		c.Directories = []List{{w.some("/work", "/work/*", "/data:ro", "/data", "/home/*/src"), from}}
	}
	if w.IntN(3) == 0 {
		c.Hosts = []List{{w.some("a.example.com", "*.example.com", "b.org"), from}}
	}
	if w.IntN(3) == 0 {
		c.Providers = []List{{w.some("openai", "offline"), from}}
	}
	if w.IntN(4) == 0 {
		c.Modules = []ModuleList{{Digests: w.some("d1", "d2"), Signers: w.some("s"), Namespaces: w.some("n"), From: from}}
	}
	if w.IntN(4) == 0 {
		c.Registries = []List{{w.some("r.example", "r.example/team", "s.example:5000"), from}}
	}
	if w.IntN(6) == 0 {
		c.ModulesClosed = []Setting{{From: from}}
	}
	if w.IntN(6) == 0 {
		c.SignedOnly = []Setting{{From: from}}
	}
	if w.IntN(5) == 0 {
		c.Confirm = []Setting{{From: from}}
	}
	if w.IntN(4) == 0 {
		c.Hidden = []Setting{{w.pick("/work/secret", "/data/x"), from}}
	}
	if w.IntN(6) == 0 {
		c.DisabledCapabilities = []Setting{{w.pick(ExecKey, FilesKey, NetworkKey), from}}
	}
	if w.IntN(12) == 0 {
		c.DisabledNames = []Setting{{w.pick("t", "m", "other", "none"), from}}
	}
	if w.IntN(4) == 0 {
		c.MinTier = &Limit{Value: int64(w.IntN(4)), From: from}
	}
	for _, key := range []string{TimeoutKey, MemoryKey, "tool_fuel", "max_output_size", "bash.timeout"} {
		if w.IntN(3) == 0 {
			if c.Limits == nil {
				c.Limits = map[string]Limit{}
			}
			c.Limits[key] = Limit{Value: int64(1 + w.IntN(1_000_000_000_000)), From: from}
		}
	}
	return Narrow(c, c)
}

func (w world) call() (tool.Call, *tool.Entry) {
	e := entry0(w.pick("t", "u"), []tool.Capabilities{nothing, reads, writes, execs, networks, uses("A")}[w.IntN(6)], tool.Origin(w.pick("builtin", "file", "added")))
	e.Module = &tool.Module{Name: "m", Digest: w.pick("d1", "d3"), Origin: e.Module.Origin, Signer: w.pick("", "s"), Namespace: w.pick("", "n"), AdminKnowsSigner: w.pick("", "a") != ""}
	if e.Module.Origin == tool.OriginAdded {
		e.Requested, e.Allowed = e.Capabilities, &tool.Allowance{
			Read: w.some("/work", "/etc", "/home"), Write: w.some("/work", "/data", "/root"), Hosts: w.some("a.example.com", "b.org", "10.0.0.1"),
			Secrets: w.some("A"), Exec: w.IntN(2) == 0,
		}
		if w.IntN(3) > 0 { // else whoever built the catalog forgot
			e.Capabilities = e.Requested.Restrict(*e.Allowed)
		}
	}
	args := map[string]any{}
	choices := map[string][]any{
		"path":    {"a", "/work/a", "/work/x/b", "/work/secret/k", "../work/secret/k", "/work/x/../secret", 7, nil, ""},
		"command": {"ls -l", "ls -l x", "rm -r x", "ls; rm x", "env rm x", "ls $X", "/bin/rm x", "l\\s -l", `"rm" y`},
		"url":     {"https://a.example.com/", "a.example.com", "https://evilexample.com", "b.org", "x\x00y"},
		"limit":   {5, 10, 11, "11"},
		"list":    {[]string{"/work/a", "/etc/passwd"}, []string{}, "x"},
	}
	for _, name := range slices.Sorted(maps.Keys(choices)) { // in order: a run can be repeated
		values := choices[name]
		if w.IntN(3) > 0 {
			args[name] = values[w.IntN(len(values))]
		}
	}
	data, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return tool.Call{ID: "c", Tool: e.Name, Args: data, Caller: tool.Caller(w.pick("agent", "person", "mcp")), Cwd: "/work"}, e
}

// TestNoLayerWidensTheAdministrators: whatever the user, the project, the environment and
// the flags set, hostile or not, a call may do at most as much as the administrator
// permits. The expected results come from a second, plain implementation, not from the
// tested code.
func TestNoLayerWidensTheAdministrators(t *testing.T) {
	w := world{rand.New(rand.NewPCG(7, 11))}
	sources := []Source{SourceUser, SourceProject, SourceEnv, SourceFlag}
	wide := networkOf(t, "a.example.com", "*.example.com", "example.com", "b.org", "evilexample.com", "10.0.0.1")
	var allowed, denied, asked int
	for n := range *combinations {
		admin := w.ceiling(SourceAdmin)
		layers := []Layer{{Source: SourceAdmin, Ceiling: admin}}
		var rules []Rule
		for _, s := range sources {
			l := Layer{Source: s, Ceiling: w.ceiling(s)}
			for range w.IntN(3) {
				l.Answers = append(l.Answers, w.rule(s, Allow))
			}
			layers = append(layers, l)
		}
		for range w.IntN(3) {
			rules = append(rules, w.rule(SourceFlag, Allow, Ask, Deny))
		}
		w.Shuffle(len(layers), func(i, j int) { layers[i], layers[j] = layers[j], layers[i] })
		mounts := []Mount{{Host: "/work", Write: true}, {Host: "/data", Write: true}, {Host: "/home/ada/src", Write: true}, {Host: "/etc", Write: true}}
		c, e := w.call()
		p := New(Options{
			Mounts: mounts, Rules: rules, Layers: layers, Network: wide, Tier: inTier(Tier(w.IntN(4))), ConfirmAll: w.IntN(4) == 0,
			Limits: Limits{Timeout: time.Hour, MemoryBytes: 1 << 60, Fuel: 1 << 60, OutputBytes: 1 << 40, ExecTimeoutMax: time.Hour},
		})
		facts := Facts{EarlierCalls: w.IntN(4)}
		d := p.Decide(c, e, facts)
		switch d.Effect() {
		case Allow:
			allowed++
		case Ask:
			asked++
		default:
			denied++
		}
		fail := func(format string, args ...any) {
			t.Helper()
			t.Fatalf("combination %d: %s\nadministrator: %+v\ncall: %s %s by %s of %+v\ndecision: %s by %s %q: %s", n, fmt.Sprintf(format, args...), admin,
				c.Tool, c.Args, c.Caller, e.Module, d.Effect(), d.Source(), d.Rule(), d.Reason())
		}
		if must := plainEffect(admin, c, facts, e, p.tier()); d.Effect() > must {
			fail("the administrator permits at most %s", must)
		}
		if d.Effect() == Deny {
			for _, f := range []func() (Grant, error){d.Grant, func() (Grant, error) { return d.Approve(Answer{Allow: true}, 1) }, d.Rehearse} {
				if g, err := f(); err == nil || g.g != nil {
					fail("a grant all the same")
				}
			}
			continue
		}
		g, err := d.Grant()
		if d.Effect() == Ask {
			g, err = d.Approve(Answer{Allow: true, Scope: ScopeAlways}, 1)
		}
		if err != nil {
			continue // no command
		}
		for _, m := range g.Mounts() {
			for _, l := range admin.Directories {
				if may := plainDirectory(l.Values, m.Host); may == "" || m.Write && may != "rw" {
					fail("it is granted %s", m)
				}
			}
		}
		has := e.Capabilities
		if a := e.Allowed; a != nil {
			has = e.Requested.Restrict(*a)
			for _, m := range g.Mounts() {
				if !slices.Contains(a.Write, m.Host) && (m.Write || !slices.Contains(a.Read, m.Host)) {
					fail("it was given %+v, and is granted %s", a, m)
				}
			}
			for _, host := range []string{"a.example.com", "x.example.com", "b.org", "10.0.0.1"} {
				if g.Network().Decide(host, 443, network.HTTPS).Err() == nil && !slices.Contains(a.Hosts, host) {
					fail("it was given %+v, and may talk to %s", a, host)
				}
			}
			if g.MayExec() && !a.Exec || len(g.Secrets()) > len(a.Secrets) {
				fail("it was given %+v, and may run commands %v, with %v", a, g.MayExec(), g.Secrets())
			}
		}
		if has.Files != tool.FilesNone {
			for _, h := range admin.Hidden {
				if !slices.Contains(g.Masked(), h.Value) {
					fail("it sees %s", h.Value)
				}
			}
		}
		if (g.Network() != nil) != (has.Network != tool.NetworkNone) {
			fail("its network is %v", g.Network())
		}
		for _, host := range []string{"a.example.com", "x.example.com", "example.com", "b.org", "evilexample.com", "10.0.0.1"} {
			for _, l := range admin.Hosts {
				if g.Network().Decide(host, 443, network.HTTPS).Err() == nil && !slices.Contains(l.Values, host) &&
					(!slices.Contains(l.Values, "*.example.com") || !strings.HasSuffix(host, ".example.com")) {
					fail("it may talk to %s", host)
				}
			}
		}
		if asked := e.Capabilities.Secrets; d.Effect() == Allow && len(asked) > 0 && !strings.HasSuffix(d.Rule(), " with A") {
			fail("it gets %v", asked)
		}
		l := g.Limits()
		for key, got := range map[string]int64{
			MemoryKey: int64(l.MemoryBytes), "tool_fuel": int64(l.Fuel), "max_output_size": int64(l.OutputBytes), "bash.timeout": int64(l.ExecTimeout),
		} {
			if most, ok := admin.Limits[key]; ok && got > most.Value && (key != "bash.timeout" || g.MayExec()) {
				fail("%s is %d", key, got)
			}
		}
		if most, ok := admin.Limits[TimeoutKey]; ok && !g.MayExec() && int64(l.Timeout) > most.Value {
			fail("%s is %s", TimeoutKey, l.Timeout)
		}
	}
	t.Logf("%d combinations: %d allowed, %d asked, %d denied", *combinations, allowed, asked, denied)
	if *combinations >= 10_000 && min(allowed, asked, denied) < *combinations/100 {
		t.Errorf("%d allowed, %d asked, %d denied: it says nothing about one of them", allowed, asked, denied)
	}
}

// plainDirectory returns "rw", "ro" or "" for a directory in one list.
func plainDirectory(values []string, dir string) string {
	out := ""
	for at := dir; ; at = path.Dir(at) {
		for _, v := range values {
			pattern, ro := strings.CutSuffix(v, ":ro")
			if ok, err := path.Match(pattern, at); err == nil && ok {
				if !ro {
					return "rw"
				}
				out = "ro"
			}
		}
		if at == "/" {
			return out
		}
	}
}

// plainEffect returns the widest effect that the administrator's bounds permit, for the few
// words of these tests.
func plainEffect(c Ceiling, call tool.Call, facts Facts, e *tool.Entry, tier Tier) Effect {
	builtin := e.Module.Origin == tool.OriginBuiltin
	if !builtin && len(c.SignedOnly) > 0 && e.Module.Signer == "" {
		return Deny
	}
	for _, l := range c.Modules {
		by := slices.Contains(l.Digests, e.Module.Digest) || e.Module.Signer == "s" && (len(l.Signers) > 0 || e.Module.Namespace == "n" && len(l.Namespaces) > 0)
		if !builtin && !by {
			return Deny
		}
	}
	if e.Capabilities.Exec != "" && c.MinTier != nil && int64(tier) < c.MinTier.Value {
		return Deny
	}
	most := Allow
	if len(c.Confirm) > 0 {
		most = Ask
	}
	var args map[string]any
	_ = json.Unmarshal(call.Args, &args)
	for _, r := range c.Rules {
		if r.Tool != AnyTool && r.Tool != call.Tool || slices.Contains(r.Except, call.Tool) ||
			len(r.Risks) > 0 && !slices.Contains(r.Risks, RiskOf(e)) || len(r.Callers) > 0 && !slices.Contains(r.Callers, call.Caller) ||
			r.AfterCalls > facts.EarlierCalls {
			continue
		}
		certain := true
		for _, cond := range r.Where {
			certain = certain && plainlyHolds(cond.String(), args)
		}
		if certain {
			most = min(most, r.Effect)
		}
	}
	return most
}

// plainlyHolds reports whether a condition certainly holds. It knows the few conditions of
// these tests.
func plainlyHolds(cond string, args map[string]any) bool {
	file, _ := args["path"].(string)
	command, _ := args["command"].(string)
	url, _ := args["url"].(string)
	limit, isNumber := args["limit"].(float64)
	switch cond {
	case "path=a":
		return file == "a"
	case "path=/work/a":
		return file == "/work/a"
	case "path:path=/**":
		return file != ""
	case "path:path=/work/**":
		return file == "a" || strings.HasPrefix(file, "/work/")
	case "path:path=/work/secret/**":
		return file == "/work/secret/k"
	case "!path:path=/work/secret/**":
		return file == "a" || file == "/work/a" || file == "/work/x/b"
	case "path:path=/work/*/b":
		return file == "/work/x/b"
	case "words:command=rm ...":
		return slices.Contains([]string{"rm -r x", "ls; rm x", "/bin/rm x", `"rm" y`}, command)
	case "words:command=ls ...", "words:command=ls -l":
		return command == "ls -l" || command == `l\s -l` || cond != "words:command=ls -l" && strings.HasPrefix(command, "ls -l")
	case "!words:command=ls ...":
		return strings.HasPrefix(command, "rm") || command == "/bin/rm x"
	case "host:url=*.example.com", "host:url=a.example.com":
		return url == "a.example.com" || url == "https://a.example.com/"
	case "!host:url=*.example.com", "!host:url=a.example.com":
		return url == "https://evilexample.com" || url == "b.org"
	case "maximum:limit=10":
		return isNumber && limit <= 10
	case "!maximum:limit=10":
		return isNumber && limit > 10
	}
	return false
}

func TestNarrowIsAMeet(t *testing.T) {
	w := world{rand.New(rand.NewPCG(3, 5))}
	for range 3000 {
		a, b, c := w.ceiling(SourceAdmin), w.ceiling(SourceUser), w.ceiling(SourceProject)
		for name, pair := range map[string][2]Ceiling{
			"commutative":        {Narrow(a, b), Narrow(b, a)},
			"associative":        {Narrow(Narrow(a, b), c), Narrow(a, Narrow(b, c))},
			"idempotent":         {Narrow(a, a), a},
			"twice changes none": {Narrow(Narrow(a, b), b), Narrow(a, b)},
			"nothing is neutral": {Narrow(a, Ceiling{}), a},
		} {
			if !reflect.DeepEqual(pair[0], pair[1]) {
				t.Fatalf("%s: not the same\n%+v\n%+v", name, pair[0], pair[1])
			}
		}
	}
}

func TestAnEmptyListPermitsNothing(t *testing.T) {
	from := Provenance{SourceAdmin, "f"}
	c := Ceiling{
		Directories: []List{{[]string{}, from}}, Hosts: []List{{nil, from}}, Providers: []List{{nil, from}}, Modules: []ModuleList{{From: from}},
	}
	if _, ok, _ := c.PermitsMount(Mount{Host: "/work"}); ok {
		t.Error("a directory")
	}
	if c.RestrictNetwork(networkOf(t, "example.com")).Decide("example.com", 443, network.HTTPS).Err() == nil {
		t.Error("a host")
	}
	if ok, _ := Permits(c.Providers, "openai"); ok {
		t.Error("a provider")
	}
	p := New(Options{Mounts: []Mount{{Host: "/work", Write: true}}, Layers: []Layer{{Source: SourceAdmin, Ceiling: c}}})
	if g, err := p.Decide(call("r", `{}`), entry(t, "r", reads), Facts{}).Grant(); err != nil || len(g.Mounts()) != 0 {
		t.Errorf("granted %v, %v", g.Mounts(), err)
	}
	e := entry(t, "r", nothing)
	e.Module = &tool.Module{Digest: "d", Origin: tool.OriginFile, Signer: "s", Namespace: "n"}
	if d := p.Decide(call("r", `{}`), e, Facts{}); d.Effect() != Deny || d.Source() != SourceAdmin {
		t.Errorf("a module: %s by %s", d.Effect(), d.Source())
	}
}

// TestTheListsOfHostsNarrowTheNetwork: a host in a layer's list means the same as in a
// network rule. An entry that cannot be a host permits nothing.
func TestTheListsOfHostsNarrowTheNetwork(t *testing.T) {
	user := networkOf(t, "a.example.com:*", "http://a.example.com", "b.a.example.com", "other.example", "10.1.2.3", "10.1.2.4", "127.0.0.1", "my.example.com", "[::1]", "[2606:2800:220::/48]")
	list := func(values ...string) List { return List{values, Provenance{SourceAdmin, "f: network.hosts"}} }
	for name, c := range map[string]struct {
		lists []List
		want  map[string]bool
	}{
		"nobody says anything": {nil, map[string]bool{"a.example.com": true, "other.example": true, "10.1.2.3": true, "localhost": true}},
		"a name":               {[]List{list("a.example.com")}, map[string]bool{"a.example.com": true, "b.a.example.com": false, "other.example": false, "10.1.2.3": false}},
		"capitals and a dot":   {[]List{list("A.Example.com.")}, map[string]bool{"a.example.com": true, "other.example": false}},
		"all below a name":     {[]List{list("*.a.example.com")}, map[string]bool{"a.example.com": false, "b.a.example.com": true}},
		"an address":           {[]List{list("10.1.2.3")}, map[string]bool{"10.1.2.3": true, "10.1.2.4": false, "a.example.com": false}},
		"this machine":         {[]List{list("127.0.0.1")}, map[string]bool{"localhost": true, "127.0.0.1": true}},
		"an address of IPv6":   {[]List{list("[::1]", "2606:2800:220::1")}, map[string]bool{"::1": true, "2606:2800:220:0::1": true, "2606:2800:220::2": false, "127.0.0.1": false}},
		"this machine by name": {[]List{list("localhost")}, map[string]bool{"localhost": false, "127.0.0.1": false}}, // as in a rule of the network
		"nobody":               {[]List{list()}, map[string]bool{"a.example.com": false, "10.1.2.3": false, "localhost": false}},
		"two lists":            {[]List{list("a.example.com", "other.example"), list("a.example.com")}, map[string]bool{"a.example.com": true, "other.example": false}},
		// An entry that is no host or no pattern opens nothing.
		"no host": {[]List{list("*.10.1.2.3", "my_host.example.com", "127.1", "10.0.0.0/8", "*", "*.com", "xn--a.example.com", "", "a.example.com:443", "https://a.example.com")},
			map[string]bool{"10.1.2.3": false, "127.0.0.1": false, "a.example.com": false, "my.example.com": false}},
	} {
		p := New(Options{Network: user, Rules: []Rule{rule(t, "get", SourceFlag)}, Layers: []Layer{{Source: SourceAdmin, Ceiling: Ceiling{Hosts: c.lists}}}})
		g, err := p.Decide(call("get", "{}"), entry(t, "get", networks), Facts{}).Grant()
		if err != nil {
			t.Fatal(err)
		}
		n := g.Network()
		for host, want := range c.want {
			err := n.Decide(host, 443, network.HTTPS).Err()
			if (err == nil) != want {
				t.Errorf("%s: %s: %v", name, host, err)
			}
			if denial := denialOf(err); denial != nil && (denial.Source != string(SourceAdmin) || denial.AllowRule != nil || !strings.Contains(denial.Error(), "administrator")) {
				t.Errorf("%s: %s is denied by %s: %v", name, host, denial.Source, denial)
			}
		}
		if err := n.Decide("a.example.com", 80, network.HTTP).Err(); (err == nil) != c.want["a.example.com"] {
			t.Errorf("%s: another port and protocol: %v", name, err)
		}
	}
	// The list of another layer counts as well, and no flag goes beyond it.
	for _, source := range []Source{SourceUser, SourceProject} {
		ceiling := Ceiling{Hosts: []List{{[]string{"a.example.com"}, Provenance{source, "f"}}}}
		for _, host := range []string{"other.example", "10.1.2.3"} {
			denial := denialOf(ceiling.RestrictNetwork(user).Decide(host, 443, network.HTTPS).Err())
			if denial == nil || denial.Source != string(source) || denial.AllowRule != nil || !strings.Contains(denial.Error(), string(source)+"'s policy") {
				t.Errorf("%s: %s: %v", source, host, denial)
			}
		}
	}
	c := Ceiling{Hosts: []List{list("a.example.com", "*.b.org"), list()}}
	if got, want := c.RestrictNetwork(networkOf(t, "a.example.com", "not c.org")).Rules(), []string{"a.example.com", "only a.example.com:* *.b.org:*", "only nothing", "not c.org"}; !slices.Equal(got, want) {
		t.Errorf("the record has %q", got)
	}
	if n := c.RestrictNetwork(nil); n.Decide("a.example.com", 443, network.HTTPS).Err() == nil {
		t.Error("a list opens a network that nobody has granted")
	}
}

func TestLimitsOfTheNetworkHaveACeiling(t *testing.T) {
	c := Ceiling{Limits: map[string]Limit{
		"network.timeout": {Value: int64(time.Second)}, "network.max_requests": {Value: 2}, "network.max_response": {Value: 1 << 30},
	}}
	l := New(Options{Layers: []Layer{{Ceiling: c}}}).Limits()
	if d := DefaultLimits(); l.HTTPTimeout != time.Second || l.HTTPRequests != 2 || l.HTTPResponseBytes != d.HTTPResponseBytes || l.HTTPSentBytes != d.HTTPSentBytes {
		t.Errorf("%+v", l)
	}
}

// A name that is off is off for everybody, whatever the tool asks for and wherever its
// module comes from. No rule allows it.
func TestANameThatIsOffForbidsTheToolAndTheModule(t *testing.T) {
	for off, forbidden := range map[string]bool{"any": true, "mod": true, "other": false, "an": false, "": false} {
		p := New(Options{
			Layers: []Layer{{Source: SourceSettings, Ceiling: Ceiling{DisabledNames: []Setting{{off, Provenance{SourceSettings, "f:1"}}}}}},
			Rules:  []Rule{rule(t, "any", SourceFlag)},
		})
		for _, origin := range []tool.Origin{tool.OriginBuiltin, tool.OriginFile} {
			e := entry(t, "any", nothing)
			e.Module = &tool.Module{Name: "mod", Origin: origin}
			for _, caller := range []tool.Caller{tool.CallerAgent, tool.CallerPerson} {
				c := call("any", `{}`)
				c.Caller = caller
				d := p.Decide(c, e, Facts{})
				if (d.Effect() == Deny) != forbidden || p.Hides(e, caller) != forbidden || forbidden && !strings.Contains(d.Reason(), OffKey) {
					t.Errorf("%q is off, and %s of %s calls: %s: %s", off, caller, origin, d.Effect(), d.Reason())
				}
			}
			if key := (p.ceiling.SwitchedOff(e)); (key == OffKey) != forbidden {
				t.Errorf("%q is off: the switch is %q", off, key)
			}
		}
	}
}

// A switch forbids all tools that ask for its capability, whatever their names and modules.
// No rule allows them.
func TestASwitchForbidsWhatAsksForIt(t *testing.T) {
	asked := map[string]tool.Capabilities{
		ExecKey: execs, FilesKey: reads, NetworkKey: {Network: tool.NetworkHTTP}, StoreSwitchKey: {Store: true}, "": nothing,
	}
	for _, off := range []string{ExecKey, FilesKey, NetworkKey, StoreSwitchKey, "tools.unheard_of"} {
		p := New(Options{
			Layers: []Layer{{Source: SourceSettings, Ceiling: Ceiling{DisabledCapabilities: []Setting{{off, Provenance{SourceSettings, "f:1"}}}}}},
			Rules:  []Rule{rule(t, "any", SourceFlag), rule(t, "any(command=ls)", SourceFlag)},
		})
		for key, caps := range asked {
			e := entry(t, "any", caps)
			e.Module.Origin = tool.OriginFile
			d := p.Decide(call("any", `{"command":"ls"}`), e, Facts{})
			forbidden := off == key || off == "tools.unheard_of"
			if (d.Effect() == Deny) != forbidden || p.Hides(e, tool.CallerAgent) != forbidden || forbidden && !strings.Contains(d.Reason(), off) {
				t.Errorf("%s off, and a tool that %q is about: %s: %s", off, key, d.Effect(), d.Reason())
			}
		}
	}
}
