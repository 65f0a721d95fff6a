package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/policy/command"
	"github.com/stockade-dev/stockade/host/policy/match"
	"github.com/stockade-dev/stockade/host/tool"
)

// A command that bash and the parser read differently is unknown to rules. A backslash
// before a Windows line end continues the line for the parser, and for bash the second line
// is a command of its own.
func TestWhatBashReadsOtherwiseThanTheParserAsks(t *testing.T) {
	allowed := []Rule{rule(t, "bash(words:command=ls ...)", SourceFlag), rule(t, "bash(words:command=ls 'a b')", SourceFlag)}
	for _, text := range []string{
		"ls \\\r\nid", "ls a\r\n", "ls a\rb", "ls 'a\r\n'", "ls \r", "\rls", "ls a\x01b", "ls \x7f", "ls a\vb", "ls\fx", "ls \x1b[2K", "ls a\x00b",
		"ls '" + strings.Repeat("(", 1001) + "'",
	} {
		d := New(Options{Rules: allowed}).Decide(call("bash", `{"command":`+quoteJSON(text)+`}`), entry(t, "bash", execs), Facts{})
		if d.Effect() != Ask {
			t.Errorf("%q: %s (%s)", text, d.Effect(), d.Reason())
		}
		if line := command.Parse(text); line.Literal {
			t.Errorf("%q is literal: %q", text, line.Commands)
		}
	}
	for _, pattern := range []string{"ls a\r\n", "ls 'a\rb'", "ls \x01"} {
		if c, err := match.NewCondition(match.Words, "command", pattern, false); err == nil {
			t.Errorf("%q is the condition %v", pattern, c)
		}
	}
}

// Some builtins of bash evaluate the subscript in a variable's name, and the program loader
// runs other programs: a rule that denies rm does not know the programs that they start.
func TestBuiltinsThatEvaluateRunOthers(t *testing.T) {
	denied := deny(rule(t, "bash(words:command=rm ...)", SourceAdmin))
	for _, text := range []string{
		`\let 'a[$(rm x)]=1'`, `"let" 'a[$(rm x)]=1'`, `test -v 'a[$(rm x)]'`, `printf -v 'a[$(rm x)]' y`, `read 'a[$(rm x)]'`, `unset 'a[$(rm x)]'`,
		`"typeset" 'a[$(rm x)]=1'`, `"readonly" 'a[$(rm x)]=1'`, `"local" 'a[$(rm x)]=1'`, `mapfile -C 'rm x' a`, `"wait" -p 'a[$(rm x)]'`, `enable -f x y`,
		"/lib64/ld-linux-x86-64.so.2 /bin/rm x", "ld-musl-x86_64.so.1 /bin/rm x", "sort --compress-program=x f", "split --filter=x f", "rg --pre x y",
		"choom -n 0 -- rm x", "choom -n 0 rm x", "i386 rm x", "x86_64 rm x", "linux32 rm x", "uname26 rm x", "/usr/bin/i386 rm x", "ppc64le rm x", "s390x rm x", "aarch64 rm x",
		"uclampset -m 1 rm x", "coresched exec -- rm x", "pipesz -s 4096 -- rm x", "enosys -s x rm x", "runcon -t t rm x", "ifne rm x", "chronic rm x", "envdir d rm x",
		"run0 rm x", "systemd-inhibit rm x", "switch_root / /bin/rm x", "scriptlive -I in -B out", "slogin host rm x", "ldd ./x", "sdiff --diff-program=x a b", "pcre2grep p f",
		"ssh-keygen -D ./x.so", "ssh-add -s ./x.so", "ssh -I ./x.so host", "ssh -o PKCS11Provider=./x.so host", "pkcs11-tool --module ./x.so", "nm --plugin ./x.so f",
		"rbash -c x", "setarch x86_64 rm x", "bwrap rm x", "tmux new rm", "pypy3 x", "start-stop-daemon x", "run-parts x", "m4 x", "g++ x", "apt-get x",
	} {
		p := New(Options{Rules: []Rule{rule(t, "bash(command="+text+")", SourceFlag)}, Layers: []Layer{{Source: SourceAdmin, Ceiling: Ceiling{Rules: []Rule{denied}}}}})
		if d := p.Decide(call("bash", `{"command":`+quoteJSON(text)+`}`), entry(t, "bash", execs), Facts{}); d.Effect() == Allow {
			t.Errorf("%q: %s (%s)", text, d.Effect(), d.Reason())
		}
		if words := command.Parse(text).Commands[0]; !command.RunsOthers(words) {
			t.Errorf("%q runs nothing else", words)
		}
	}
}

// A file of the workspace can be rewritten after the answer.
func TestAFileOfTheWorkspaceIsNeverRememberedAsAProgram(t *testing.T) {
	for command, want := range map[string]bool{
		"ls -l": true, "/bin/ls": true, "/usr/bin/ls x": true, "./check.sh": false, "scripts/check": false, "/work/check.sh": false, "/usr/../work/x": false, "../x": false,
	} {
		p := New(Options{Mounts: inWork, Tier: inTier(2), Project: "/work"})
		c := call("bash", `{"command":`+quoteJSON(command)+`}`)
		_, err := p.Decide(c, entry(t, "bash", execs), Facts{}).RuleFor(ScopeAlways)
		if (err == nil) != want {
			t.Errorf("%q: %v", command, err)
		}
		kept := rule(t, "bash(words:command="+command+")", SourceUser)
		if d := New(Options{Mounts: inWork, Tier: inTier(2), Rules: []Rule{kept}}).Decide(c, entry(t, "bash", execs), Facts{}); (d.Effect() == Allow) != want {
			t.Errorf("%q, written into a file: %s", command, d.Effect())
		}
	}
}

// Arguments that name the object of a rule in other letters, types or places than the rule
// does.
func TestArgumentsInDisguise(t *testing.T) {
	const allows, denies = "allow ", "deny "
	for _, c := range []struct {
		rule, args string
		want       Effect
	}{
		// One number has many spellings, and so has one list.
		{denies + "w(limit=1000)", `{"limit":1000}`, Deny},
		{denies + "w(limit=1000)", `{"limit":1e3}`, Deny},
		{denies + "w(limit=1000)", `{"limit":1000.0}`, Deny},
		{denies + "w(limit=1e3)", `{"limit":1000}`, Deny},
		{denies + "w(limit=0.5)", `{"limit":5E-1}`, Deny},
		{denies + "w(limit=0)", `{"limit":-0.0}`, Deny},
		{denies + "w(limit=9007199254740993)", `{"limit":9007199254740992}`, Allow},
		{denies + `w(list=["a","b"])`, `{"list":[ "\u0061", "b" ]}`, Deny},
		{denies + `w(o={"a":1,"b":2})`, `{"o":{"b":2.0,"a":1}}`, Deny},
		{denies + "w(limit=true)", `{"limit":true}`, Deny},
		{denies + "w(pattern:limit=[0-9]{4})", `{"limit":1e3}`, Deny},
		{allows + "w(limit=9007199254740993)", `{"limit":9007199254740992}`, Ask},
		{allows + "w(limit=1000)", `{"limit":1000.0}`, Allow},
		// A decoder without regard to case takes PATH for path.
		{denies + "w(path:path=/work/secret/**)", `{"path":"a","PATH":"secret/k"}`, Ask},
		{denies + "w(path:path=/work/secret/**)", `{"Path":"secret/k"}`, Ask},
		{denies + "w(mode=x)", `{"mode":"y","Mode":"x"}`, Ask},
		{denies + "w(path:/list/*/p=/work/secret/**)", `{"list":[{"p":"a","P":"secret/k"}]}`, Ask},
		{allows + "w(path:path=/work/src/**)", `{"path":"src/a","paTh":"/etc/x"}`, Ask},
		{allows + "w(path:path=/work/src/**)", `{"path":"src/a","paTh":"src/a"}`, Ask},
		{allows + "w(path:path=/work/src/**)", `{"PATH":"src/a"}`, Ask},
		{allows + "w(mode=k)", `{"mode":"k"}`, Allow},
		// A star stands for every member, even if one of them is called "*".
		{denies + "w(path:/list/*/p=/work/secret/**)", `{"list":{"*":{"p":"a"},"x":{"p":"secret/k"}}}`, Deny},
		{denies + "w(path:/*=/work/secret/**)", `{"*":"a","path":"secret/k"}`, Deny},
		{allows + "w(path:/list/*/p=/work/src/**)", `{"list":{"*":{"p":"src/a"},"x":{"p":"/etc/passwd"}}}`, Ask},
		// Each of several elements must have the member.
		{allows + "w(path:/list/*/p=/work/src/**)", `{"list":[{"p":"src/a"},{"p":"src/b"}]}`, Allow},
		{allows + "w(path:/list/*/p=/work/src/**)", `{"list":[{"p":"src/a"},{}]}`, Ask},
		{allows + "w(path:/list/*/p=/work/src/**)", `{"list":[{"p":"src/a"},"/etc/passwd"]}`, Ask},
		{allows + "w(path:/list/*/p=/work/src/**)", `{"list":[{"p":"src/a"},null]}`, Ask},
		{allows + "w(path:/list/0=/work/src/**)", `{"list":["src/a"]}`, Allow},
		{denies + "w(path:/list/00=/work/src/**)", `{"list":["src/a"]}`, Allow},
		// Values of another type than the condition expects.
		{denies + "w(maximum:limit=10)", `{"limit":"5"}`, Ask},
		{denies + "w(maximum:limit=10)", `{"limit":5}`, Deny},
		{denies + "w(!maximum:limit=10)", `{"limit":"50"}`, Deny},
		{denies + "w(!maximum:limit=10)", `{"limit":1e1}`, Allow},
		{denies + "w(!maximum:limit=10)", `{"limit":1e999}`, Deny},
		{denies + "w(!maximum:limit=10)", `{"limit":[1]}`, Deny},
		{denies + "w(!maximum:limit=10)", `{"limit":null}`, Deny},
		{allows + "w(!maximum:limit=10)", `{"limit":"5"}`, Ask},
		{allows + "w(!maximum:limit=10)", `{"limit":11}`, Allow},
		{allows + `w(!one_of:mode=["delete"])`, `{"mode":["delete"]}`, Ask},
		{allows + `w(!one_of:mode=["delete"])`, `{"mode":"list"}`, Allow},
		{denies + `w(!one_of:mode=[])`, `{"mode":"list"}`, Deny},
		{denies + `w(!one_of:mode=[])`, `{"mode":7}`, Deny},
		{allows + "w(!pattern:mode=.*delete.*)", `{"mode":["\u0064elete"]}`, Ask},
		{allows + "w(pattern:mode=a|b)", `{"mode":"a"}`, Allow},
		{allows + "w(pattern:mode=a|b)", `{"mode":"xb"}`, Ask},
		{allows + "w(pattern:mode=a|b)", `{"mode":"a\nb"}`, Ask},
		{allows + "w(pattern:mode=(?m)^a$)", `{"mode":"a\nb"}`, Ask},
	} {
		text, denied := strings.CutPrefix(c.rule, denies)
		parse, caps := ParseRule, writes // which ask
		if denied {
			parse, caps = ParseDenial, reads // which are allowed
		}
		r, err := parse(strings.TrimPrefix(text, allows))
		if err != nil {
			t.Fatal(err)
		}
		r.Source = SourceFlag
		d := New(Options{Rules: []Rule{r}}).Decide(call("w", c.args), entry(t, "w", caps), Facts{})
		if d.Effect() != c.want {
			t.Errorf("%s with %s: %s, want %s (%s)", c.rule, c.args, d.Effect(), c.want, d.Reason())
		}
	}
	for _, text := range []string{"w(maximum:limit=inf)", "w(maximum:limit=-Inf)", "w(maximum:limit=NaN)", "w(maximum:limit=1e999)"} {
		if r, err := ParseRule(text); err == nil {
			t.Errorf("%s is the rule %v, which bounds nothing", text, r)
		}
	}
}

// A rule that permits paths below some directories restricts the working directory, too, if
// the tool uses it for a missing path.
func TestPathsThatAreLeftOutAreTheWorkingDirectory(t *testing.T) {
	under := deny(rule(t, "r(!path:path=/work/src/**)", SourceAdmin))
	for cwd, want := range map[string]Effect{"/work/src/x": Allow, "/work/src": Allow, "/work": Deny, "/etc": Deny} {
		c := call("r", `{}`)
		c.Cwd = cwd
		if d := New(Options{Rules: []Rule{under}}).Decide(c, entry(t, "r", reads), Facts{}); d.Effect() != want {
			t.Errorf("in %s: %s, want %s", cwd, d.Effect(), want)
		}
	}
}

// An address in an unusual form is not known to be another address.
func TestAddressesInDisguise(t *testing.T) {
	denied := deny(rule(t, "r(host:path=127.0.0.1)", SourceAdmin))
	for url, want := range map[string]Effect{
		"http://127.0.0.1/": Deny, "http://127.0.0.1:80/x": Deny, "http://[::ffff:127.0.0.1]/": Deny, "127.0.0.1": Deny,
		"http://127.1/": Ask, "http://2130706433/": Ask, "http://0x7f000001/": Ask, "http://0x7f.1/": Ask, "http://0177.0.0.1/": Ask, "http://127.0.0.01/": Ask, "http://017700000001/": Ask,
		"http://127.0.0.1./": Ask, "http://x@127.0.0.1/": Ask, "http://127.0.0.1\\@a.example/": Ask, "http://127.0.0.1%00.a.example/": Ask, "//127.0.0.1/": Ask,
		"http:/127.0.0.1/": Ask, "127.0.0.1:80": Ask, " http://127.0.0.1/": Ask, "http://127。0。0。1/": Ask,
		"http://a.example/": Allow, "http://10.0.0.1/": Allow, "http://1a.example/": Allow, "http://a.example/127.0.0.1": Allow,
	} {
		d := New(Options{Rules: []Rule{denied}}).Decide(call("r", `{"path":`+quoteJSON(url)+`}`), entry(t, "r", reads), Facts{})
		if d.Effect() != want {
			t.Errorf("%s: %s, want %s", url, d.Effect(), want)
		}
	}
}

// A rule that denies may be about any command, and about any tool.
func TestDenialsOfWhatMustNotBeAllowed(t *testing.T) {
	for _, text := range []string{"bash(words:command=git ...)", "bash(words:command=env *)", "*", "*(path:path=/work/secret/**)"} {
		r, err := ParseDenial(text)
		if err != nil || r.Effect != Deny {
			t.Errorf("%s: %v, %v", text, r, err)
		}
		if r, err := ParseRule(text); err == nil {
			t.Errorf("%s allows: %v", text, r)
		}
	}
	git, err := ParseDenial("bash(words:command=git ...)")
	if err != nil {
		t.Fatal(err)
	}
	p := New(Options{Rules: []Rule{git, rule(t, "bash(command=git push)", SourceFlag)}})
	if d := p.Decide(call("bash", `{"command":"git push"}`), entry(t, "bash", execs), Facts{}); d.Effect() != Deny {
		t.Errorf("git push: %s", d.Effect())
	}
	for _, text := range []string{"", "(a=b)", "**", "a b", "*x", "bash(", "bash(command)", "w(nokind:a=b)", "w(path=sub/**)"} {
		if r, err := ParseDenial(text); err == nil {
			t.Errorf("%q is the rule %v", text, r)
		}
	}
}

// If every call asks, no answer is offered that would not count.
func TestNothingIsOfferedWhereEveryCallAsks(t *testing.T) {
	asks := Layer{Source: SourceAdmin, Ceiling: Ceiling{Confirm: []Setting{{From: Provenance{SourceAdmin, "/etc/x: require_confirmation"}}}}}
	for name, caps := range map[string]tool.Capabilities{"w": writes, "r": reads} {
		d := New(Options{Layers: []Layer{asks}}).Decide(call(name, `{}`), entry(t, name, caps), Facts{})
		if q := d.Question(); d.Effect() != Ask || q.AllowRule != "" || len(q.Scopes) != 1 || d.Source() != SourceAdmin {
			t.Errorf("%s: %s by %s, offered %q and %v", name, d.Effect(), d.Source(), q.AllowRule, q.Scopes)
		}
	}
}

// A pattern has to match the whole value, whatever brackets it holds. Neither a pattern nor
// a value makes a decision slow.
func TestPatternsAreBounded(t *testing.T) {
	for _, pattern := range []string{"a)|(?:b", "a)|(b", ")(", "((a{10}){10}){10}x{500}y{700}", "(?:a{1000}){2}", "(", "a{2001}", strings.Repeat("a", 4096+1), `\C`} {
		if c, err := match.NewCondition(match.Pattern, "mode", pattern, false); err == nil {
			t.Errorf("%.40q is the condition %.80v", pattern, c)
		}
	}
	long := strings.Repeat("a", (64<<10)+1)
	for _, c := range []struct {
		rule string
		want Effect
	}{{"w(pattern:mode=a*)", Ask}, {"w(!pattern:mode=b*)", Ask}} {
		if d := New(Options{Rules: []Rule{rule(t, c.rule, SourceFlag)}}).Decide(call("w", `{"mode":"`+long+`"}`), entry(t, "w", writes), Facts{}); d.Effect() != c.want {
			t.Errorf("%s of a long value: %s", c.rule, d.Effect())
		}
		denied := deny(rule(t, c.rule, SourceFlag))
		if d := New(Options{Rules: []Rule{denied}}).Decide(call("w", `{"mode":"`+long+`"}`), entry(t, "w", reads), Facts{}); d.Effect() != Ask {
			t.Errorf("%s denied, of a long value: %s", c.rule, d.Effect())
		}
	}
}

// The work of rules is counted. A project's file can make every call ask, but it can
// neither make a decision slow nor hide the rules of a higher layer. If all units are used
// up, the rules are unknown and the call is denied.
func TestADecisionTakesBoundedWork(t *testing.T) {
	heavy := func(source Source, pattern string, n int) Layer {
		l := Layer{Source: source}
		for i := range n {
			r := deny(rule(t, "w(pattern:mode="+pattern+strings.Repeat("c", i)+")", source))
			r.Origin = "/p/" + string(source) + ".toml:" + strings.Repeat("1", i%3+1)
			l.Ceiling.Rules = append(l.Ceiling.Rules, r)
		}
		return l
	}
	names := Layer{Source: SourceProject} // each looks at another argument
	for i := range 17_000 {
		r := deny(rule(t, fmt.Sprintf("w(path:a%d=/a)", i), SourceProject))
		names.Ceiling.Rules = append(names.Ceiling.Rules, r)
	}
	const long = `.*.*.*.*.*.*.*.*.*.*.*.*(\pL.*){200}b`
	admin := Layer{Source: SourceAdmin, Ceiling: Ceiling{Rules: []Rule{deny(rule(t, "w(pattern:mode=a*)", SourceAdmin))}}}
	flag := []Rule{rule(t, "w", SourceFlag)}
	for name, c := range map[string]struct {
		layers []Layer
		tool   string
		rules  []Rule
		want   Effect
		by     Source
		says   []string
	}{
		"a project's":                        {layers: []Layer{heavy(SourceProject, long, 10)}, rules: flag, want: Ask, by: SourceProject, says: []string{"the project's rules may use", "most of them for the project rule", "/p/project.toml:1"}},
		"a project's, of another tool":       {layers: []Layer{heavy(SourceProject, long, 10)}, tool: "r", want: Allow, by: SourceDefault},
		"a project's, where others deny":     {layers: []Layer{heavy(SourceProject, long, 10), admin}, rules: flag, want: Deny, by: SourceAdmin},
		"a project's, of many arguments":     {layers: []Layer{names}, rules: flag, want: Ask, by: SourceProject, says: []string{"the project's rules may use"}},
		"a project's, as many write them":    {layers: []Layer{heavy(SourceProject, "[a-z./-]+[.]go", 30)}, rules: flag, want: Allow, by: SourceFlag},
		"the user's":                         {layers: []Layer{heavy(SourceUser, long, 10)}, rules: flag, want: Deny, by: SourceUser, says: []string{"units of work that a decision may", "most of them for the user rule", "/p/user.toml:1"}},
		"the user's, where others deny":      {layers: []Layer{heavy(SourceUser, long, 10), admin}, want: Deny},
		"the administrator's":                {layers: []Layer{heavy(SourceAdmin, long, 10)}, rules: flag, want: Deny, by: SourceAdmin},
		"the user's, beside a project's":     {layers: []Layer{heavy(SourceUser, "x"+long, 3), heavy(SourceProject, long, 10)}, rules: flag, want: Ask, by: SourceProject},
		"an answer that cannot be looked at": {layers: []Layer{heavy(SourceUser, long, 10)}, rules: []Rule{rule(t, "w(pattern:mode=a*)", SourceUser)}, want: Deny},
	} {
		value := strings.Repeat("a", (64 << 10)) // of which one pattern takes more than the whole
		if name == "a project's" || c.want == Allow || strings.Contains(name, "beside") {
			value = value[:8<<10]
		}
		e := entry(t, "w", writes)
		if c.tool != "" {
			e = entry(t, c.tool, reads)
		}
		d := New(Options{Layers: c.layers, Rules: c.rules}).Decide(call(e.Name, `{"mode":"`+value+`","list":{"y":[1,2]}}`), e, Facts{})
		if d.Effect() != c.want || c.by != "" && d.Source() != c.by {
			t.Errorf("%s: %s by %s, want %s by %s (%.300s)", name, d.Effect(), d.Source(), c.want, c.by, d.Reason())
		}
		for _, want := range c.says {
			if !strings.Contains(d.Reason(), want) {
				t.Errorf("%s: it does not say %q: %.600s", name, want, d.Reason())
			}
		}
	}
	example := `{"mode":"` + strings.Repeat("a", (64<<10)) + `"}`
	if err := deny(rule(t, "w(pattern:mode="+long+")", SourceProject)).CheckExamples(nil, []string{example}); err == nil || !strings.Contains(err.Error(), "too much work") {
		t.Errorf("examples: %v", err)
	}
}
