package policy

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/policy/match"
	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/tool"
)

func entry(t testing.TB, name string, caps tool.Capabilities) *tool.Entry {
	t.Helper()
	schema, err := tool.CompileSchema(json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"command":{"type":"string"},"timeout_seconds":{"type":"integer"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	return &tool.Entry{
		Spec:   tool.Spec{Definition: tool.Definition{Name: name}, Capabilities: caps},
		Schema: schema, Module: &tool.Module{Name: "m", Digest: "d1", Origin: tool.OriginBuiltin},
	}
}

var (
	reads   = tool.Capabilities{Files: tool.FilesRead}
	writes  = tool.Capabilities{Files: tool.FilesWrite}
	execs   = tool.Capabilities{Exec: "command", ExecTimeout: "timeout_seconds"}
	nothing = tool.Capabilities{}
)

// inWork mounts the directory of [call].
var inWork = []Mount{{Host: "/work", Write: true}}

func call(name, args string) tool.Call {
	return tool.Call{ID: "c1", Tool: name, Args: json.RawMessage(args), Cwd: "/work"}
}

func rule(t testing.TB, text string, source Source) Rule {
	t.Helper()
	r, err := ParseRule(text)
	if err != nil {
		t.Fatal(err)
	}
	r.Source = source
	return r
}

func inTier(t Tier) func() Tier { return func() Tier { return t } }

func startErr(g Grant, argv []string, dir string) error {
	_, err := g.TakeExec(argv, dir)
	return err
}

func deny(r Rule) Rule { r.Effect = Deny; return r }
func ask(r Rule) Rule  { r.Effect = Ask; return r }

// granted returns the grant of a call after a yes.
func granted(t testing.TB, p *Policy, c tool.Call, e *tool.Entry) Grant {
	t.Helper()
	g, err := p.Decide(c, e, Facts{}).Approve(Answer{Allow: true}, 1)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestTheZeroGrantGrantsNothing(t *testing.T) {
	var g Grant
	for what, err := range map[string]error{
		"check": g.Check(tool.Call{}, ""), "exec": startErr(g, nil, ""), "bash": startErr(g, []string{"bash", "-c", ""}, ""),
	} {
		if err != ErrNoGrant {
			t.Errorf("%s: %v", what, err)
		}
	}
	if g.MayExec() || g.Mounts() != nil || g.Masked() != nil || g.Limits() != (Limits{}) {
		t.Errorf("it gives something: %v %v %v %v", g.MayExec(), g.Mounts(), g.Masked(), g.Limits())
	}
}

func TestTheZeroDecisionGivesNoGrant(t *testing.T) {
	var d Decision
	if d.Effect() != Deny {
		t.Errorf("it says %s", d.Effect())
	}
	if g, err := d.Grant(); err == nil || g.g != nil {
		t.Error("it gives a grant")
	}
	if g, err := d.Approve(Answer{Allow: true, Scope: ScopeOnce}, 1); err == nil || g.g != nil {
		t.Error("it can be approved")
	}
	if _, err := d.RuleFor(ScopeAlways); err == nil {
		t.Error("it makes a rule")
	}
	for name, d := range map[string]Decision{"allow": {effect: Allow}, "ask": {effect: Ask}} {
		if _, err := d.Grant(); err == nil {
			t.Errorf("%s that no policy made gives a grant", name)
		}
		if _, err := d.Approve(Answer{Allow: true}, 1); err == nil {
			t.Errorf("%s that no policy made can be approved", name)
		}
	}
}

func TestOnlyARecordedYesToAQuestionGrants(t *testing.T) {
	p := New(Options{Rules: []Rule{deny(rule(t, "denied", SourceUser))}})
	asks := p.Decide(call("w", `{}`), entry(t, "w", writes), Facts{})
	allows := p.Decide(call("r", `{}`), entry(t, "r", reads), Facts{})
	denies := p.Decide(call("denied", `{}`), entry(t, "denied", reads), Facts{})
	for name, c := range map[string]struct {
		d        Decision
		a        Answer
		recorded uint64
		ok       bool
	}{
		"a recorded yes":              {asks, Answer{Allow: true}, 7, true},
		"a yes without a record":      {asks, Answer{Allow: true, Scope: ScopeAlways}, 0, false},
		"a recorded no":               {asks, Answer{Scope: ScopeAlways}, 7, false},
		"no answer":                   {asks, Answer{}, 0, false},
		"a yes to what was denied":    {denies, Answer{Allow: true}, 7, false},
		"a yes to what was not asked": {allows, Answer{Allow: true}, 7, false},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := c.d.Approve(c.a, c.recorded)
			if (err == nil) != c.ok || (g.g != nil) != c.ok {
				t.Errorf("got %v, %v", g, err)
			}
		})
	}
	for name, c := range map[string]struct {
		d  Decision
		ok bool
	}{"allow": {allows, true}, "ask": {asks, false}, "deny": {denies, false}} {
		if g, err := c.d.Grant(); (err == nil) != c.ok || (g.g != nil) != c.ok {
			t.Errorf("%s: got %v, %v", name, g, err)
		}
	}
}

func TestAGrantIsForOneCallOfOneModule(t *testing.T) {
	c := call("r", `{"path":"a"}`)
	g, err := New(Options{}).Decide(c, entry(t, "r", reads), Facts{}).Grant()
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Check(c, "d1"); err != nil {
		t.Fatalf("its own call: %v", err)
	}
	for name, change := range map[string]func(*tool.Call) string{
		"another id":       func(c *tool.Call) string { c.ID = "c2"; return "d1" },
		"no id":            func(c *tool.Call) string { c.ID = ""; return "d1" },
		"another tool":     func(c *tool.Call) string { c.Tool = "w"; return "d1" },
		"other arguments":  func(c *tool.Call) string { c.Args = json.RawMessage(`{"path":"b"}`); return "d1" },
		"a blank more":     func(c *tool.Call) string { c.Args = json.RawMessage(`{"path": "a"}`); return "d1" },
		"no arguments":     func(c *tool.Call) string { c.Args = nil; return "d1" },
		"another folder":   func(c *tool.Call) string { c.Cwd = "/"; return "d1" },
		"another module":   func(*tool.Call) string { return "d2" },
		"no module":        func(*tool.Call) string { return "" },
		"a part of its id": func(*tool.Call) string { return "d" },
	} {
		t.Run(name, func(t *testing.T) {
			other := c
			if g.Check(other, change(&other)) == nil {
				t.Error("the grant is good for it")
			}
		})
	}
}

func TestTakeExecAllowsTheApprovedCommandOnceAndNothingElse(t *testing.T) {
	good := []string{"bash", "-c", "make test"}
	g := granted(t, New(Options{}), call("bash", `{"command":"make test"}`), entry(t, "bash", execs))
	for name, c := range map[string]struct {
		argv []string
		dir  string
	}{
		"nothing":            {nil, "/work"},
		"another command":    {[]string{"bash", "-c", "make install"}, "/work"},
		"a blank more":       {[]string{"bash", "-c", "make test "}, "/work"},
		"another shell":      {[]string{"sh", "-c", "make test"}, "/work"},
		"a shell by path":    {[]string{"/bin/bash", "-c", "make test"}, "/work"},
		"a login shell":      {[]string{"bash", "-lc", "make test"}, "/work"},
		"an argument more":   {append(slices.Clone(good), "x"), "/work"},
		"an empty one more":  {append(slices.Clone(good), ""), "/work"},
		"an argument less":   {[]string{"bash", "-c"}, "/work"},
		"words shifted":      {[]string{"bash", "-cmake test"}, "/work"},
		"another directory":  {good, "/"},
		"no directory":       {good, ""},
		"a directory's name": {good, "/work/"},
		"shifted directory":  {[]string{"-c", "make test"}, "/workbash"},
	} {
		t.Run(name, func(t *testing.T) {
			if startErr(g, c.argv, c.dir) == nil {
				t.Error("allowed")
			}
		})
	}
	copied := g
	if err := startErr(copied, good, "/work"); err != nil {
		t.Fatalf("the approved command: %v", err)
	}
	if startErr(g, good, "/work") == nil || startErr(copied, good, "/work") == nil {
		t.Error("allowed twice")
	}
}

func TestAProcessSeesWhatToolsMayBeShown(t *testing.T) {
	p := New(Options{
		Mounts: []Mount{{Host: "/work", Write: true}, {Host: "/lib", Write: true}, {Host: "/other"}}, Masked: []string{"/ours"}, Tier: inTier(2),
		Layers: []Layer{{Source: SourceAdmin, Ceiling: Ceiling{
			Directories: []List{{Values: []string{"/work", "/lib:ro"}}}, Hidden: []Setting{{Value: "/work/payroll"}},
		}}},
	})
	for name, files := range map[string]tool.Files{"no files": tool.FilesNone, "reads": tool.FilesRead} {
		caps := execs
		caps.Files = files
		g := granted(t, p, call("bash", `{"command":"x"}`), entry(t, "bash", caps))
		got, err := g.TakeExec([]string{"bash", "-c", "x"}, "/work")
		if got.History("/work/.git") != Deny {
			t.Error("it may read a history, and nobody was asked")
		}
		got.History = nil
		want := Exec{Hidden: []string{"/work/payroll"}, Tier: 2, Mounts: []Mount{{Host: "/work", Write: true}, {Host: "/lib"}}, Masked: []string{"/ours", "/work/payroll"}, Changes: ChangesDirect}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestTheTierIsFoundOutWhereItMatters(t *testing.T) {
	asked := 0
	p := New(Options{Mounts: inWork, Tier: func() Tier { asked++; return 2 }, Layers: []Layer{{Source: SourceAdmin, Ceiling: Ceiling{MinTier: &Limit{Value: 1}}}}})
	p.Decide(call("w", `{"path":"x"}`), entry(t, "w", writes), Facts{})
	p.Hides(entry(t, "w", writes), tool.CallerAgent)
	if asked != 0 {
		t.Error("it was for a tool that starts nothing")
	}
	for range 2 {
		if d := p.Decide(call("bash", `{"command":"x"}`), entry(t, "bash", execs), Facts{}); d.Effect() != Ask || asked != 1 {
			t.Errorf("%s: found out %d times", d.Effect(), asked)
		}
	}
}

func TestOfManyStartsAtOnceOneIsAllowed(t *testing.T) {
	for range 50 {
		g := granted(t, New(Options{}), call("bash", `{"command":"x"}`), entry(t, "bash", execs))
		var allowed atomic.Int32
		var wg sync.WaitGroup
		start := make(chan struct{})
		for range 8 {
			wg.Go(func() {
				<-start
				if startErr(g, []string{"bash", "-c", "x"}, "/work") == nil {
					allowed.Add(1)
				}
			})
		}
		close(start)
		wg.Wait()
		if n := allowed.Load(); n != 1 {
			t.Fatalf("%d starts were allowed", n)
		}
	}
}

func TestOtherToolsStartNoProcess(t *testing.T) {
	for name, caps := range map[string]tool.Capabilities{"computes": nothing, "reads": reads, "writes": writes} {
		g := granted(t, New(Options{ConfirmAll: true}), call("x", `{"command":"x"}`), entry(t, "x", caps))
		if g.MayExec() || startErr(g, []string{"bash", "-c", "x"}, "/work") == nil || startErr(g, nil, "") == nil {
			t.Errorf("one that %s may", name)
		}
	}
}

func TestACommandIsAStringThatIsThere(t *testing.T) {
	for _, args := range []string{`{}`, `{"command":""}`, `{"command":null}`, `{"command":["ls"]}`, `{"command":7}`, `{"Command":"ls"}`, `[]`, `{`, ``} {
		g, err := New(Options{}).Decide(call("bash", args), entry(t, "bash", execs), Facts{}).Approve(Answer{Allow: true}, 1)
		if err == nil || g.g != nil {
			t.Errorf("%s: granted", args)
		}
	}
}

func TestRiskFollowsFromWhatAToolCanReach(t *testing.T) {
	for name, c := range map[string]struct {
		caps tool.Capabilities
		want Risk
		then Effect
	}{
		"nothing":                    {nothing, RiskSafe, Allow},
		"reads":                      {reads, RiskSafe, Allow},
		"writes":                     {writes, RiskMedium, Ask},
		"starts a process":           {execs, RiskHigh, Ask},
		"reads and starts a process": {tool.Capabilities{Files: tool.FilesRead, Exec: "command"}, RiskHigh, Ask},
		"asks for what nobody knows": {tool.Capabilities{Files: "everything"}, RiskMedium, Ask},
	} {
		d := New(Options{}).Decide(call("x", `{"command":"x"}`), entry(t, "x", c.caps), Facts{})
		if RiskOf(entry(t, "x", c.caps)) != c.want || d.Risk() != c.want || d.Effect() != c.then || d.Source() != SourceDefault || d.Reason() == "" {
			t.Errorf("%s: risk %s, %s, %q", name, d.Risk(), d.Effect(), d.Reason())
		}
		if d.Rule() != "risk "+c.want.String() {
			t.Errorf("%s: rule %q", name, d.Rule())
		}
		if d := New(Options{ConfirmAll: true}).Decide(call("x", `{}`), entry(t, "x", c.caps), Facts{}); d.Effect() != Ask {
			t.Errorf("%s: ConfirmAll says %s", name, d.Effect())
		}
	}
}

func TestRules(t *testing.T) {
	file := func(digest string) *tool.Module {
		return &tool.Module{Name: "m", Digest: digest, Origin: tool.OriginFile}
	}
	bound := func(r Rule, module string) Rule { r.Binding.Module = module; return r }
	write, bash := rule(t, "w", SourceUser), rule(t, "bash(command=make test)", SourceFlag)
	for name, c := range map[string]struct {
		rules []Rule
		caps  tool.Capabilities
		call  tool.Call
		mod   *tool.Module
		want  Effect
	}{
		"a rule allows a tool":                                {[]Rule{write}, writes, call("w", `{"path":"a"}`), nil, Allow},
		"and no other":                                        {[]Rule{write}, writes, call("w2", `{}`), nil, Ask},
		"deny wins before":                                    {[]Rule{deny(write), write}, writes, call("w", `{}`), nil, Deny},
		"deny wins behind":                                    {[]Rule{write, deny(write)}, writes, call("w", `{}`), nil, Deny},
		"deny wins over a narrower one":                       {[]Rule{rule(t, "w(path=a)", SourceFlag), deny(write)}, writes, call("w", `{"path":"a"}`), nil, Deny},
		"a narrow deny wins over a wide one":                  {[]Rule{write, deny(rule(t, "w(path=a)", SourceFlag))}, writes, call("w", `{"path":"a"}`), nil, Deny},
		"ask wins over allow":                                 {[]Rule{write, ask(write)}, writes, call("w", `{}`), nil, Ask},
		"a rule can deny what is safe":                        {[]Rule{deny(write)}, reads, call("w", `{}`), nil, Deny},
		"a rule can ask for what is safe":                     {[]Rule{ask(write)}, reads, call("w", `{}`), nil, Ask},
		"a rule of the zero value denies":                     {[]Rule{{Tool: "w"}}, reads, call("w", `{}`), nil, Deny},
		"the argument is exact":                               {[]Rule{rule(t, "w(path=a)", SourceFlag)}, writes, call("w", `{"path":"a"}`), nil, Allow},
		"a longer one is another":                             {[]Rule{rule(t, "w(path=a)", SourceFlag)}, writes, call("w", `{"path":"ab"}`), nil, Ask},
		"upper case is another":                               {[]Rule{rule(t, "w(path=a)", SourceFlag)}, writes, call("w", `{"path":"A"}`), nil, Ask},
		"an argument in upper case is another":                {[]Rule{rule(t, "w(path=a)", SourceFlag)}, writes, call("w", `{"Path":"a"}`), nil, Ask},
		"an argument that is missing matches nothing":         {[]Rule{rule(t, "w(path=)", SourceFlag)}, writes, call("w", `{}`), nil, Ask},
		"null is not the empty text":                          {[]Rule{rule(t, "w(path=)", SourceFlag)}, writes, call("w", `{"path":null}`), nil, Ask},
		"the empty text is":                                   {[]Rule{rule(t, "w(path=)", SourceFlag)}, writes, call("w", `{"path":""}`), nil, Allow},
		"nothing is a pattern":                                {[]Rule{rule(t, "w(path=*)", SourceFlag)}, writes, call("w", `{"path":"a"}`), nil, Ask},
		"an escape is the letter that it stands for":          {[]Rule{deny(rule(t, "w(path=a)", SourceFlag))}, writes, call("w", `{"p\u0061th":"\u0061"}`), nil, Deny},
		"a command is allowed by name":                        {[]Rule{bash}, execs, call("bash", `{"command":"make test"}`), nil, Allow},
		"with any time limit":                                 {[]Rule{bash}, execs, call("bash", `{"command":"make test","timeout_seconds":5}`), nil, Allow},
		"another command is not":                              {[]Rule{bash}, execs, call("bash", `{"command":"make test; rm -rf ~"}`), nil, Ask},
		"nor one with a line more":                            {[]Rule{bash}, execs, call("bash", `{"command":"make test\n"}`), nil, Ask},
		"bash is not allowed as a whole":                      {[]Rule{rule(t, "bash", SourceUser)}, execs, call("bash", `{"command":"ls"}`), nil, Ask},
		"nor by its time limit":                               {[]Rule{rule(t, "bash(timeout_seconds=5)", SourceFlag)}, execs, call("bash", `{"command":"ls","timeout_seconds":5}`), nil, Ask},
		"bash can be denied as a whole":                       {[]Rule{bash, deny(rule(t, "bash", SourceUser))}, execs, call("bash", `{"command":"make test"}`), nil, Deny},
		"a rule for built-in modules":                         {[]Rule{bound(write, "builtin")}, writes, call("w", `{}`), nil, Allow},
		"does not hold for a file":                            {[]Rule{bound(write, "builtin")}, writes, call("w", `{}`), file("d1"), Ask},
		"a rule for a file":                                   {[]Rule{bound(write, "sha256:d1")}, writes, call("w", `{}`), file("d1"), Allow},
		"does not hold for another":                           {[]Rule{bound(write, "sha256:d1")}, writes, call("w", `{}`), file("d2"), Ask},
		"nor for a built-in module of that digest":            {[]Rule{bound(write, "sha256:d1")}, writes, call("w", `{}`), nil, Ask},
		"a module whose digest says builtin is not built in":  {[]Rule{bound(write, "builtin")}, writes, call("w", `{}`), file("builtin"), Ask},
		"arguments that are no object match no narrowed rule": {[]Rule{rule(t, "w(path=a)", SourceFlag)}, writes, call("w", `["a"]`), nil, Ask},
	} {
		t.Run(name, func(t *testing.T) {
			e := entry(t, c.call.Tool, c.caps)
			if c.mod != nil {
				e.Module = c.mod
			}
			d := New(Options{Rules: c.rules}).Decide(c.call, e, Facts{})
			if d.Effect() != c.want {
				t.Errorf("got %s (%s), want %s", d.Effect(), d.Reason(), c.want)
			}
			if d.Source() != SourceDefault && !strings.Contains(d.Reason(), d.Rule()) {
				t.Errorf("rule %q is not in the reason %q", d.Rule(), d.Reason())
			}
		})
	}
}

// Rules that deny decide about the arguments that the guest gets: the canonical form of the
// schema, in which a key occurs once.
func TestDuplicateKeysDoNotReachARule(t *testing.T) {
	e := entry(t, "bash", execs)
	for _, args := range []string{`{"command":"make test","command":"rm"}`, `{"command":"rm","c\u006fmmand":"make test"}`} {
		if got, err := e.Schema.Check(t.Context(), json.RawMessage(args)); err == nil {
			t.Errorf("%s became %s", args, got)
		}
	}
}

func TestThePolicyKeepsItsOwnCopyOfTheOptions(t *testing.T) {
	opts := Options{Mounts: []Mount{{Host: "/a"}}, Masked: []string{"/a/x"}, Rules: []Rule{deny(rule(t, "r", SourceUser))}}
	p := New(opts)
	opts.Mounts[0].Write, opts.Masked[0], opts.Rules[0].Effect = true, "", Allow
	if d := p.Decide(call("r", `{}`), entry(t, "r", reads), Facts{}); d.Effect() != Deny {
		t.Error("the rule changed")
	}
	g := granted(t, p, call("w", `{}`), entry(t, "w", writes))
	g.Mounts()[0].Write, g.Masked()[0] = true, ""
	if g.Mounts()[0].Write || g.Masked()[0] != "/a/x" {
		t.Errorf("mounts %v, masked %v", g.Mounts(), g.Masked())
	}
}

func TestMountsAreNoWiderThanTheToolNeeds(t *testing.T) {
	p := New(Options{Mounts: []Mount{{Host: "/rw", Write: true}, {Host: "/ro"}}, Masked: []string{"/rw/.stockade"}, ConfirmAll: true})
	for name, c := range map[string]struct {
		caps   tool.Capabilities
		mounts string
		masked int
	}{
		"a tool that writes":        {writes, "[/rw:rw /ro:ro]", 1},
		"a tool that reads":         {reads, "[/rw:ro /ro:ro]", 1},
		"a tool that computes":      {nothing, "[]", 0},
		"a tool that starts bash":   {execs, "[]", 0},
		"a tool that asks for more": {tool.Capabilities{Files: "all"}, "[/rw:ro /ro:ro]", 1},
	} {
		g := granted(t, p, call("x", `{"command":"x"}`), entry(t, "x", c.caps))
		if got := fmt.Sprint(g.Mounts()); got != c.mounts || len(g.Masked()) != c.masked {
			t.Errorf("%s sees %s, masked %v", name, got, g.Masked())
		}
	}
}

func TestTheTimeLimitOfACommandStaysWithinThePolicy(t *testing.T) {
	p := New(Options{Limits: Limits{ExecTimeout: 20 * time.Second, ExecTimeoutMax: 60 * time.Second, Timeout: time.Second}})
	for args, want := range map[string]time.Duration{
		``:                        20 * time.Second,
		`null`:                    20 * time.Second,
		`1`:                       time.Second,
		`5`:                       5 * time.Second,
		`5.0`:                     5 * time.Second,
		`60`:                      60 * time.Second,
		`61`:                      60 * time.Second,
		`1e3`:                     60 * time.Second,
		`9e18`:                    60 * time.Second,
		`1e300`:                   60 * time.Second,
		`99999999999999999999999`: 60 * time.Second,
		`0`:                       0,
		`-0`:                      0,
		`-5`:                      0,
		`-1e300`:                  0,
		`1e400`:                   0,
		`0.5`:                     0,
		`5.5`:                     0,
		`"5"`:                     0,
		`"1m5"`:                   0,
		`""`:                      0,
		`true`:                    0,
		`[5]`:                     0,
		`{"a":5}`:                 0,
	} {
		t.Run("timeout_seconds "+args, func(t *testing.T) {
			if args != "" {
				args = `,"timeout_seconds":` + args
			}
			g, err := p.Decide(call("bash", `{"command":"x"`+args+`}`), entry(t, "bash", execs), Facts{}).Approve(Answer{Allow: true}, 1)
			if want == 0 {
				if err == nil {
					t.Errorf("granted with %v", g.Limits().ExecTimeout)
				}
				return
			}
			if err != nil || g.Limits().ExecTimeout != want || g.Limits().Timeout != want+execMargin {
				t.Errorf("got %v and %v, %v; want %v", g.Limits().ExecTimeout, g.Limits().Timeout, err, want)
			}
		})
	}
}

func TestLimitsThatAreNotSetAreTheDefaults(t *testing.T) {
	if got := granted(t, New(Options{}), call("w", `{}`), entry(t, "w", writes)).Limits(); got != DefaultLimits() {
		t.Errorf("got %+v", got)
	}
	l := New(Options{Limits: Limits{ExecTimeout: time.Hour, MemoryBytes: 1}}).limits
	if l.ExecTimeout != l.ExecTimeoutMax || l.MemoryBytes != 1 {
		t.Errorf("got %+v", l)
	}
}

func TestQuestions(t *testing.T) {
	p := New(Options{ConfirmAll: true, Rules: []Rule{ask(rule(t, "asked", SourceUser))}})
	for name, c := range map[string]struct {
		tool   string
		caps   tool.Capabilities
		scopes []Scope
	}{
		"a write can be allowed for good":      {"w", writes, []Scope{ScopeOnce, ScopeSession, ScopeAlways}},
		"what a rule of mine asks for":         {"asked", reads, []Scope{ScopeOnce, ScopeSession}},
		"a command is asked for every time":    {"bash", execs, []Scope{ScopeOnce}},
		"a safe tool that has to be confirmed": {"r", reads, []Scope{ScopeOnce, ScopeSession, ScopeAlways}},
	} {
		t.Run(name, func(t *testing.T) {
			c2 := call(c.tool, `{"command":"make\ttest"}`)
			d := p.Decide(c2, entry(t, c.tool, c.caps), Facts{})
			q := d.Question()
			if !slices.Equal(q.Scopes, c.scopes) || q.Dir != "/work" || q.Tool != c.tool || q.Reason == "" {
				t.Errorf("got %+v", q)
			}
			if isExec := c.caps.Exec != ""; isExec != (q.Command == "make\ttest") || isExec != (q.Warning == UnconfinedWarning) {
				t.Errorf("command %q, warning %q", q.Command, q.Warning)
			}
			for _, s := range []Scope{ScopeOnce, ScopeSession, ScopeAlways, "", "forever"} {
				r, err := d.RuleFor(s)
				offered := slices.Contains(c.scopes, s) && s != ScopeOnce
				if (err == nil) != offered {
					t.Errorf("scope %q: rule %v, %v", s, r, err)
				}
				if err != nil {
					continue
				}
				if r.Tool != c.tool || r.Binding.Module != "builtin" || r.Effect != Allow {
					t.Errorf("scope %q: rule %+v", s, r)
				}
				p2 := New(Options{ConfirmAll: true})
				p2.Add(r)
				if d := p2.Decide(c2, entry(t, c.tool, c.caps), Facts{}); d.Effect() != Allow || d.Source() != r.Source {
					t.Errorf("scope %q: the next call is decided with %s by %s", s, d.Effect(), d.Source())
				}
				other := entry(t, c.tool, c.caps)
				other.Module = &tool.Module{Digest: "d2", Origin: tool.OriginFile}
				if d := p2.Decide(c2, other, Facts{}); d.Effect() != Ask {
					t.Errorf("scope %q: the same tool of another module is decided with %s", s, d.Effect())
				}
			}
		})
	}
}

// An answer for this session covers rules that the person has written. Rules of other
// layers ask each time.
func TestAnAnswerForTheSessionWhereARuleAsks(t *testing.T) {
	from := func(r Rule, s Source) Rule {
		r.Source, r.Origin = s, string(s)+":"+r.String()
		return r
	}
	asksOf := func(text string, s Source) Rule { return from(ask(rule(t, text, s)), s) }
	layer := func(s Source, c Ceiling) Layer { return Layer{Source: s, Ceiling: c} }
	user := layer(SourceUser, Ceiling{Rules: []Rule{asksOf("w(path=a)", SourceUser), asksOf("w(path=b)", SourceUser)}})
	confirm := func(s Source) Layer { return layer(s, Ceiling{Confirm: []Setting{{From: Provenance{s, "x"}}}}) }
	a, b, c := call("w", `{"path":"a"}`), call("w", `{"path":"b"}`), call("w", `{"path":"c"}`)
	for name, test := range map[string]struct {
		layers  []Layer
		offered bool
		then    map[string]Effect // what becomes of a, b and c when that was answered for a
	}{
		"a rule of mine, and no other one":                {[]Layer{user}, true, map[string]Effect{"a": Allow, "b": Ask, "c": Allow}},
		"a rule of the administrator's":                   {[]Layer{layer(SourceAdmin, Ceiling{Rules: []Rule{asksOf("w", SourceAdmin)}})}, false, nil},
		"a rule of the project":                           {[]Layer{layer(SourceProject, Ceiling{Rules: []Rule{asksOf("w", SourceProject)}})}, false, nil},
		"a rule of the environment":                       {[]Layer{layer(SourceEnv, Ceiling{Rules: []Rule{asksOf("w", SourceEnv)}})}, false, nil},
		"one of mine and one of the administrator's":      {[]Layer{user, layer(SourceAdmin, Ceiling{Rules: []Rule{asksOf("w", SourceAdmin)}})}, false, nil},
		"one of mine and one of the project":              {[]Layer{user, layer(SourceProject, Ceiling{Rules: []Rule{asksOf("w", SourceProject)}})}, false, nil},
		"one of the project for another call":             {[]Layer{user, layer(SourceProject, Ceiling{Rules: []Rule{asksOf("w(path=c)", SourceProject)}})}, true, map[string]Effect{"a": Allow, "b": Ask, "c": Ask}},
		"one of mine that denies another call":            {[]Layer{user, layer(SourceUser, Ceiling{Rules: []Rule{from(deny(rule(t, "w(path=c)", SourceUser)), SourceUser)}})}, true, map[string]Effect{"a": Allow, "b": Ask, "c": Deny}},
		"all is confirmed, as I have said":                {[]Layer{confirm(SourceUser)}, true, map[string]Effect{"a": Allow, "b": Allow, "c": Allow}},
		"all is confirmed, and a rule of mine asks":       {[]Layer{confirm(SourceUser), user}, true, map[string]Effect{"a": Allow, "b": Ask, "c": Allow}},
		"all is confirmed, as the administrator has said": {[]Layer{confirm(SourceAdmin), user}, false, nil},
		"all is confirmed, as the project has said":       {[]Layer{confirm(SourceProject)}, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			e := entry(t, "w", writes)
			p := New(Options{Layers: test.layers, Project: "/work"})
			c := map[string]tool.Call{"a": a, "b": b, "c": c}
			d := p.Decide(c["a"], e, Facts{})
			for _, s := range []Scope{ScopeProject, ScopeAlways, ScopeBelow, ScopeKeepBelow} {
				if r, err := d.RuleFor(s); err == nil {
					t.Errorf("it can be kept, for %s: %s", s, r.InWords())
				}
			}
			r, err := d.RuleFor(ScopeSession)
			if offered := slices.Contains(d.Question().Scopes, ScopeSession); offered != test.offered || (err == nil) != test.offered {
				t.Fatalf("it is offered: %v, %v", offered, err)
			}
			if !test.offered {
				if asks := d.Question().AskingSource; asks == SourceUser {
					t.Error("it says that a rule of the person's asks")
				}
				// An answer to other rules does not help: it still asks.
				r = Rule{Effect: Allow, Tool: "w", Source: SourceSession, Overrides: []string{asksOf("w", SourceAdmin).identity(), asksOf("w", SourceProject).identity(), lengthPrefixed("require_confirmation", []string{"x"})}}
				p.Add(r)
				if got := p.Decide(c["a"], e, Facts{}).Effect(); got != Ask {
					t.Errorf("after an answer it says %s", got)
				}
				return
			}
			if !strings.Contains(r.InWords(), "overriding the rules of yours") {
				t.Errorf("it says of itself %q", r.InWords())
			}
			p.Add(r)
			for name, want := range test.then {
				if got := p.Decide(c[name], e, Facts{}).Effect(); got != want {
					t.Errorf("then %s is decided with %s, want %s", name, got, want)
				}
			}
			// A remembered answer, or one without Overrides, wins over no rule.
			kept := r
			kept.Source = SourceUser
			plain := r
			plain.Overrides = nil
			for _, r := range []Rule{kept, plain} {
				p := New(Options{Layers: test.layers, Rules: []Rule{r}})
				if got := p.Decide(c["a"], e, Facts{}).Effect(); got != Ask {
					t.Errorf("%+v says %s", r, got)
				}
			}
		})
	}
}

func TestNoRuleIsMadeOfWhatWasNotAsked(t *testing.T) {
	p := New(Options{Rules: []Rule{deny(rule(t, "denied", SourceUser)), rule(t, "allowed", SourceUser)}})
	for _, name := range []string{"denied", "allowed", "safe"} {
		d := p.Decide(call(name, `{}`), entry(t, name, reads), Facts{})
		for _, s := range []Scope{ScopeSession, ScopeAlways} {
			if r, err := d.RuleFor(s); err == nil {
				t.Errorf("%s, %s: %v", name, s, r)
			}
		}
	}
}

func TestTheRuleThatIsOfferedAllowsTheCall(t *testing.T) {
	for _, command := range []string{
		"make test", "plain", "", "echo 'it''s'", `echo "$HOME" \ $(id) ` + "`id`", "a\nb\n", "a;b|c&d>e<f", "*?[a]{b,c}~!#",
		"'", "''", `\'`, "\t", "é€😀", "-n", "ends with )", "(", "a=b=c", "\x1b[31m", "%s\\n",
	} {
		args, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			t.Fatal(err)
		}
		d := New(Options{}).Decide(call("bash", string(args)), entry(t, "bash", execs), Facts{})
		r, err := ParseRule(d.allowRuleText())
		if err != nil {
			t.Errorf("%q: %v", command, err)
			continue
		}
		for source, want := range map[Source]Effect{SourceFlag: Allow, SourceUser: Ask, SourceSession: Ask, SourceAdmin: Ask} {
			r.Source = source // a process is started by what was said for this run, never by what was remembered
			if got := New(Options{Rules: []Rule{r}}).Decide(call("bash", string(args)), entry(t, "bash", execs), Facts{}); got.Effect() != want {
				t.Errorf("%q: a rule of %s says %s, want %s", command, source, got.Effect(), want)
			}
		}
	}
	if got := New(Options{}).Decide(call("w", `{}`), entry(t, "w", writes), Facts{}).allowRuleText(); got != "w" {
		t.Errorf("got %q", got)
	}
}

func TestParseRule(t *testing.T) {
	type want struct {
		tool, arg string
		kind      match.Kind
		value     string
	}
	for text, want := range map[string]want{
		"ls":                                {tool: "ls"},
		"bash(command=make test)":           {"bash", "command", match.Equal, "make test"},
		"bash(command=)":                    {"bash", "command", match.Equal, ""},
		"bash(command=f(x)=(y))":            {"bash", "command", match.Equal, "f(x)=(y)"},
		"bash(command= a\n)":                {"bash", "command", match.Equal, " a\n"},
		"bash(command=path:/a)":             {"bash", "command", match.Equal, "path:/a"},
		"bash(command=')":                   {"bash", "command", match.Equal, "'"},
		"file_write(path:path=/work/**)":    {"file_write", "path", match.Path, "/work/**"},
		"bash(words:command=ls ...)":        {"bash", "command", match.Words, "ls ..."},
		"fetch(host:url=*.example.com)":     {"fetch", "url", match.Hostname, "*.example.com"},
		"edit(path:/edits/*/path=/work/**)": {"edit", "/edits/*/path", match.Path, "/work/**"},
		"grep(maximum:max_results=100)":     {"grep", "max_results", match.Maximum, "100"},
		`grep(one_of:pattern=["a","b"])`:    {"grep", "pattern", match.OneOf, `["a","b"]`},
		"grep(pattern:pattern=[a-z]+)":      {"grep", "pattern", match.Pattern, "[a-z]+"},
		"grep(!pattern:pattern=[a-z]+)":     {"grep", "pattern", match.Pattern, "[a-z]+"},
		"":                                  {},
		" ls":                               {},
		"ls ":                               {},
		"*":                                 {},
		"a/b":                               {},
		"(":                                 {},
		"ls()":                              {},
		"ls(":                               {},
		"ls(path)":                          {},
		"ls(=x)":                            {},
		"ls(path=x":                         {},
		"ls(path=x) ":                       {},
		"ls(glob:path=/x)":                  {},
		"ls(:path=/x)":                      {},
		"ls(path:=/x)":                      {},
		"ls(path:path=x)":                   {},
		"ls(host:url=*)":                    {},
		"bash(words:command=a; b)":          {},
		"bash(words:command=git *)":         {},
		"bash(words:command=env ...)":       {},
		"grep(pattern:pattern=()":           {},
		"grep(maximum:n=many)":              {},
		"grep(maximum:n=NaN)":               {},
		"grep(one_of:n=null)":               {},
		"grep(one_of:n=[1])":                {},
		"ls(/a~=b)":                         {},
		strings.Repeat("a", 65):             {},
		"bash (command=make test)":          {},
		"\x00":                              {},
	} {
		got, err := ParseRule(text)
		if (err == nil) != (want.tool != "") {
			t.Errorf("%q: got %v, %v", text, got, err)
			continue
		}
		if err != nil {
			continue
		}
		if got.Tool != want.tool || got.Effect != Allow || got.Source != "" || got.Binding != (Binding{}) || (len(got.Where) == 1) != (want.arg != "") ||
			want.arg != "" && (got.Where[0].Arg() != want.arg || got.Where[0].Kind() != want.kind || got.Where[0].Value() != want.value) {
			t.Errorf("%q is %+v", text, got)
		}
		if got.String() != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func FuzzParseRule(f *testing.F) {
	for _, s := range []string{
		"ls", "bash(command=make test)", "bash(command=f(x)=(y))", "a(b=)", "a()", "a(b=c)d", "a(path:b=/x/**)", "a(host:b=*.x.y)",
		"a(words:b=ls ... )", "a(!one_of:/b/*=[])", "a(maximum:b=1e3)", "a(pattern:b=x|y)", "a with B,C", "a(b=c) with D",
	} {
		f.Add(s, "command", "value")
	}
	f.Fuzz(func(t *testing.T, text, arg, value string) {
		if r, err := ParseRule(text); err == nil {
			again, err := ParseRule(r.String())
			if err != nil || again.String() != r.String() || r.Effect != Allow || r.Binding.Module != "" || r.Source != "" || !tool.ValidName(r.Tool) {
				t.Errorf("%q is %+v, %v", text, r, err)
			}
		}
		if arg == "" || len(arg) > 256 || strings.ContainsAny(arg, "=:!/") {
			return
		}
		c, err := match.NewCondition(match.Equal, arg, value, false)
		if err != nil {
			t.Fatal(err)
		}
		r := Rule{Effect: Allow, Tool: "t", Where: []match.Condition{c}}
		if got, err := ParseRule(r.String()); err != nil || len(got.Where) != 1 || got.Where[0].Arg() != arg || got.Where[0].Value() != value {
			t.Errorf("%+v became %+v, %v", r, got, err)
		}
	})
}

// TestNoSetOfRulesOpensMoreThanItSays: for all rules and calls, a rule that denies wins,
// and a process needs a rule with exactly its command.
func TestNoSetOfRulesOpensMoreThanItSays(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	pick := func(from ...string) string { return from[rnd.IntN(len(from))] }
	caps := []tool.Capabilities{nothing, reads, writes, execs, {Exec: "path", Files: tool.FilesWrite}}
	values := []string{"make", "make ", "", "null", "7", `{"a":1}`, "*"}
	for range 20_000 {
		var rules []Rule
		for range rnd.IntN(6) {
			r := Rule{
				Effect: Effect(rnd.IntN(3)), Tool: pick("t", "u"),
				Binding: Binding{Module: pick("", "", "builtin", "sha256:d1")}, Source: SourceFlag,
			}
			if arg := pick("", "", "command", "path", "timeout_seconds"); arg != "" {
				c, err := match.NewCondition(match.Equal, arg, pick(values...), false)
				if err != nil {
					t.Fatal(err)
				}
				r.Where = []match.Condition{c}
			}
			rules = append(rules, r)
		}
		e := entry0(pick("t", "u"), caps[rnd.IntN(len(caps))], tool.Origin(pick("builtin", "file")))
		args := map[string]any{}
		for _, a := range []string{"command", "path", "timeout_seconds"} {
			switch rnd.IntN(4) {
			case 0:
				args[a] = pick(values...)
			case 1:
				args[a] = json.RawMessage(pick("null", "7", `{"a":1}`, "[]"))
			}
		}
		data, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		c := call(e.Name, string(data))
		d := New(Options{Rules: rules, ConfirmAll: rnd.IntN(2) == 0}).Decide(c, e, Facts{})

		// A second, plain implementation.
		speaks := func(r Rule) bool {
			if r.Tool != e.Name || r.Binding.Module != "" && r.Binding.Module != bind(e).Module {
				return false
			}
			if len(r.Where) == 0 {
				return true
			}
			switch v := args[r.Where[0].Arg()].(type) {
			case string:
				return v == r.Where[0].Value()
			case json.RawMessage:
				return string(v) == r.Where[0].Value()
			}
			return false
		}
		denied, named := false, false
		for _, r := range rules {
			denied = denied || r.Effect == Deny && speaks(r)
			named = named || r.Effect == Allow && len(r.Where) == 1 && r.Where[0].Arg() == e.Capabilities.Exec && speaks(r)
		}
		if denied != (d.Effect() == Deny) {
			t.Fatalf("%s for %s of %s with %+v", d.Effect(), data, e.Name, rules)
		}
		g, err := d.Grant()
		if e.Capabilities.Exec == "" || d.Effect() != Allow {
			continue
		}
		if !named {
			t.Fatalf("allowed: %s with %+v", data, rules)
		}
		if err == nil {
			command, _ := args[e.Capabilities.Exec].(string)
			if command == "" || startErr(g, []string{"bash", "-c", command}, "/work") != nil {
				t.Fatalf("%s gives a grant for something else", data)
			}
		}
	}
}

func entry0(name string, caps tool.Capabilities, origin tool.Origin) *tool.Entry {
	return &tool.Entry{
		Spec:   tool.Spec{Definition: tool.Definition{Name: name}, Capabilities: caps},
		Module: &tool.Module{Name: "m", Digest: "d1", Origin: origin},
	}
}

func TestDecisionsWhileRulesAreAdded(t *testing.T) {
	p := New(Options{})
	e := entry(t, "w", writes)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				p.Decide(call("w", `{}`), e, Facts{})
				p.Add(Rule{Effect: Allow, Tool: "w"})
			}
		})
	}
	wg.Wait()
	if d := p.Decide(call("w", `{}`), e, Facts{}); d.Effect() != Allow {
		t.Errorf("got %s", d.Effect())
	}
}

func TestAQuestionNamesFilesAndHosts(t *testing.T) {
	writer := entry(t, "w", writes)
	writer.Content = &tool.Content{Path: "path"}
	for args, want := range map[string][]string{
		`{"path":"a.txt"}`:       {"/work/a.txt"},
		`{"path":"sub/../../b"}`: {"/b"},
		`{"path":"/etc/./x"}`:    {"/etc/x"},
		`{"path":7}`:             nil,
		`{}`:                     nil,
		`{"path":"a\u0000b"}`:    nil,
	} {
		q := New(Options{}).Decide(call("w", args), writer, Facts{}).Question()
		if !slices.Equal(q.Paths, want) || q.Network != nil {
			t.Errorf("%s: paths %q, network %q", args, q.Paths, q.Network)
		}
	}
	talker := entry(t, "n", tool.Capabilities{Network: tool.NetworkHTTP})
	for _, c := range []struct {
		network *network.Network
		want    []string
	}{
		{networkOf(t, "api.example.com"), []string{"api.example.com"}},
		{network.New(nil), []string{"nobody: no rule allows a host"}},
		{nil, []string{"nobody: no rule allows a host"}},
	} {
		q := New(Options{Network: c.network}).Decide(call("n", `{}`), talker, Facts{}).Question()
		if !slices.Equal(q.Network, c.want) {
			t.Errorf("the network is %q, want %q", q.Network, c.want)
		}
	}
}

// BenchmarkDecide has 500 rules about the called tool and one of its arguments, and none
// about this call. Target: under 5 µs.
func BenchmarkDecide(b *testing.B) {
	for name, c := range map[string]struct {
		rule, args string
		caps       tool.Capabilities
	}{
		"exact":          {"bash(command=make test %d)", `{"command":"make test 500"}`, execs},
		"other":          {"tool_%d", `{"command":"make test 500"}`, execs},
		"words":          {"bash(words:command=ls -l dir%d)", `{"command":"ls -l dir500"}`, execs},
		"words and more": {"bash(words:command=ls -l dir%d ...)", `{"command":"ls -l dir500 x"}`, execs},
		"paths":          {"bash(path:path=/work/dir%d/**)", `{"path":"src/dir500/a/b.go"}`, writes},
		"hosts":          {"bash(host:path=*.host%d.example.com)", `{"path":"https://a.host500.example.com/x"}`, reads},
		"denied words":   {"-bash(words:command=rm -r dir%d)", `{"command":"ls -l dir500"}`, execs},
		"denied paths":   {"-bash(path:path=/work/dir%d/**)", `{"path":"src/dir500/a/b.go"}`, writes},
	} {
		b.Run(name, func(b *testing.B) {
			var rules []Rule
			for i := range 500 {
				text, denies := strings.CutPrefix(fmt.Sprintf(c.rule, i), "-")
				r := rule(b, text, SourceFlag)
				if denies {
					r.Effect = Deny
				}
				rules = append(rules, r)
			}
			p, e, c := New(Options{Rules: rules}), entry(b, "bash", c.caps), call("bash", c.args)
			b.ReportAllocs()
			for b.Loop() {
				p.Decide(c, e, Facts{})
			}
		})
	}
}

func TestARevokedRuleAllowsNoMore(t *testing.T) {
	p := New(Options{Mounts: inWork, CanAsk: true, Tier: inTier(TierConfined), Rules: []Rule{
		deny(rule(t, "file_write(path=no)", SourceSession)), rule(t, "file_write", SourceSession), rule(t, "bash(command=true)", SourceFlag), {Effect: Deny, Tool: "bash", HistoryDir: "/work", Source: SourceFlag},
	}})
	decide := func(name, args string, caps tool.Capabilities) Effect {
		return p.Decide(call(name, args), entry(t, name, caps), Facts{}).AssumeChanges().Effect()
	}
	for _, revoked := range []bool{false, true} {
		want := map[bool]Effect{false: Allow, true: Ask}[revoked]
		if got := decide("file_write", `{"path":"a"}`, writes); got != want {
			t.Errorf("revoked %t: got %s", revoked, got)
		}
		if got := decide("file_write", `{"path":"no"}`, writes); got != Deny {
			t.Errorf("revoked %t, a rule that denies: got %s", revoked, got)
		}
		if got := decide("bash", `{"command":"true"}`, execs); got != Allow {
			t.Errorf("revoked %t, another rule: got %s", revoked, got)
		}
		if got := p.history(entry(t, "bash", execs), "/work/r"); got != Deny {
			t.Errorf("revoked %t, a rule about histories: got %s", revoked, got)
		}
		p.Revoke()
	}
}
