package policy

import (
	"slices"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/tool"
)

// A command is not literal if bash would do more than start one program with exactly these
// words. A rule about words does not allow it: it asks.
func TestAnythingThatBashWouldExpandAsks(t *testing.T) {
	allowed := rule(t, "bash(words:command=ls ...)", SourceFlag)
	denied := deny(rule(t, "bash(words:command=rm ...)", SourceUser))
	for command, want := range map[string]Effect{
		"ls": Allow, "ls -l": Allow, "ls  -l  /tmp": Allow, `ls "a b"`: Allow, "ls 'a b'": Allow, `l\s -l`: Allow, `"ls" x`: Allow,
		"lsx": Ask, "./ls": Ask, "/bin/ls": Ask, "ls;": Ask, "ls; id": Ask, "ls && id": Ask, "ls || id": Ask, "ls | sh": Ask, "ls &": Ask,
		"ls\nid": Ask, "ls\n": Allow, "ls;\n": Ask, "ls $HOME": Ask, "ls ${X}": Ask, "ls $(id)": Ask, "ls `id`": Ask, `ls "$(id)"`: Ask, "ls <(id)": Ask,
		"ls > f": Ask, "ls >> f": Ask, "ls 2>&1": Ask, "ls < f": Ask, "ls <<< x": Ask, "ls *": Ask, "ls ?": Ask, "ls [a]": Ask, "ls {a,b}": Ask,
		"ls ~": Ask, "ls ~root": Ask, "ls x=~": Ask, "X=1 ls": Ask, "LD_PRELOAD=/x ls": Ask, "! ls": Ask, "(ls)": Ask, "{ ls; }": Ask,
		"time ls": Ask, "if ls; then id; fi": Ask, "ls $'a\\nb'": Ask, `ls $"a"`: Ask, "ls # x": Ask, "ls \\\nid": Allow, "ls $((1))": Ask,
		"f() { id; }; ls": Ask, "alias ls=id\nls": Ask, "ls \"a`id`\"": Ask, "ls !(a)": Ask, "ls @(a)": Ask, "ls ++(a)": Ask, "ls 'a": Ask, "": Ask,
		"export X=1": Ask, "declare -x A=1": Ask, "[[ a ]]": Ask, "ls a\x00b": Ask, "coproc ls": Ask, "exec ls": Ask, "env ls": Ask,
		"rm -r x": Deny, "/bin/rm x": Deny, "ls; rm x": Deny, "ls | rm x": Deny, "ls $(rm x)": Deny, `"rm" x`: Deny, `r\m x`: Deny, "(rm x)": Deny,
		"if true; then rm x; fi": Deny, "rm x > f": Deny, "X=1 rm x": Deny, "ls & rm x": Deny,
		"env rm x": Ask, "bash -c 'rm x'": Ask, "timeout 5 rm x": Ask, "xargs rm": Ask, "$R x": Ask, "r$M x": Ask, "eval rm": Ask, "busybox rm": Ask,
	} {
		args := `{"command":` + quoteJSON(command) + `}`
		d := New(Options{Rules: []Rule{allowed, denied}}).Decide(call("bash", args), entry(t, "bash", execs), Facts{})
		if d.Effect() != want {
			t.Errorf("%q: %s, want %s (%s)", command, d.Effect(), want, d.Reason())
		}
	}
}

// A rule that denies a program, and cannot know whether the command starts it, asks even if
// a flag allows exactly this command.
func TestWhatARuleCannotTellIsAskedWhateverTheFlags(t *testing.T) {
	denied := deny(rule(t, "bash(words:command=rm ...)", SourceAdmin))
	for _, command := range []string{"env rm x", "bash -c 'rm x'", "$R x", "r$M x", "xargs rm", "ls $(r''m x)", "git status"} {
		flagged := rule(t, "bash(command="+command+")", SourceFlag)
		p := New(Options{Rules: []Rule{flagged}, Layers: []Layer{{Source: SourceAdmin, Ceiling: Ceiling{Rules: []Rule{denied}}}}})
		d := p.Decide(call("bash", `{"command":`+quoteJSON(command)+`}`), entry(t, "bash", execs), Facts{})
		if d.Effect() == Allow || d.Source() != SourceAdmin || d.allowRuleText() != "" {
			t.Errorf("%q: %s by %s, with %q", command, d.Effect(), d.Source(), d.allowRuleText())
		}
		if g, err := d.Grant(); err == nil || g.g != nil {
			t.Errorf("%q: granted without an answer", command)
		}
	}
	// A rule that denies all but one command must be certain that it is that command.
	only := deny(rule(t, "bash(!words:command=ls ...)", SourceAdmin))
	for command, want := range map[string]Effect{"ls -l": Allow, "ls; rm x": Ask, "ls $(rm x)": Ask, "rm x": Deny, "/x/ls": Deny} {
		flagged := rule(t, "bash(command="+command+")", SourceFlag)
		if d := New(Options{Rules: []Rule{flagged, only}}).Decide(call("bash", `{"command":`+quoteJSON(command)+`}`), entry(t, "bash", execs), Facts{}); d.Effect() != want {
			t.Errorf("all but ls, %q: %s, want %s", command, d.Effect(), want)
		}
	}
	elsewhere := deny(rule(t, "w(path:path=/work/secret/**)", SourceAdmin))
	p := New(Options{Rules: []Rule{rule(t, "w", SourceFlag)}, Layers: []Layer{{Source: SourceAdmin, Ceiling: Ceiling{Rules: []Rule{elsewhere}}}}})
	for arg, want := range map[string]Effect{`"a"`: Allow, `"link/../k"`: Ask, `"secret/k"`: Deny, `"a\u0000b"`: Ask, `7`: Ask} {
		if d := p.Decide(call("w", `{"path":`+arg+`}`), entry(t, "w", writes), Facts{}); d.Effect() != want {
			t.Errorf("%s: %s, want %s", arg, d.Effect(), want)
		}
	}
}

func quoteJSON(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ':
			b.WriteString(`\u00` + string("0123456789abcdef"[r>>4]) + string("0123456789abcdef"[r&15]))
		default:
			b.WriteRune(r)
		}
	}
	return b.String() + `"`
}

// Interpreters and wrappers are never remembered, under any of their names.
func TestProgramsThatRunOthersAreNeverRemembered(t *testing.T) {
	for _, command := range []string{
		"bash -c ls", "sh x", "env ls", "python x.py", "python3.12 x.py", "/usr/bin/python3 x", "git status", "timeout 5 ls", "nice ls", "xargs ls", "sudo ls",
		"node x", "perl x", "find . -delete", "./bash x", "BASH x", "make", "npm run x", "nohup ls", "command ls", "busybox ls", "awk x", "ssh host", "",
		"ls; id", "ls $X", "ls > f",
	} {
		p := New(Options{Mounts: inWork, Tier: inTier(2), Project: "/work"})
		c := call("bash", `{"command":`+quoteJSON(command)+`}`)
		c.Turn = 1
		d := p.Decide(c, entry(t, "bash", execs), Facts{})
		for _, s := range []Scope{ScopeTurn, ScopeSession, ScopeProject, ScopeAlways} {
			if r, err := d.RuleFor(s); err == nil {
				t.Errorf("%q, %s: %v", command, s, r)
			}
		}
		if got := d.Question().Scopes; !slices.Equal(got, []Scope{ScopeOnce}) {
			t.Errorf("%q: offered %v", command, got)
		}
		// A rule that was written into a file does not count either.
		if r, err := ParseRule("bash(command=" + command + ")"); err == nil {
			for _, source := range []Source{SourceUser, SourceSession} {
				r.Source = source
				if d := New(Options{Mounts: inWork, Tier: inTier(3), Rules: []Rule{r}}).Decide(c, entry(t, "bash", execs), Facts{}); d.Effect() != Ask {
					t.Errorf("%q, remembered by %s: %s", command, source, d.Effect())
				}
			}
		}
	}
	// A literal command that starts one confined program is remembered.
	p := New(Options{Mounts: inWork, Tier: inTier(2), Project: "/work"})
	c := call("bash", `{"command":"wc -l 'a b' \"...\" '*'"}`)
	d := p.Decide(c, entry(t, "bash", execs), Facts{})
	r, err := d.RuleFor(ScopeAlways)
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseRule(r.String())
	if err != nil {
		t.Fatal(err)
	}
	again.Source, again.Binding = SourceUser, r.Binding
	for command, want := range map[string]Effect{
		`wc -l "a b" '...' \*`: Allow, `wc -l 'a b' x y`: Ask, `wc -l 'a b' ... x`: Ask, `wc -l 'a b'`: Ask, `wc -l a b ... '*'`: Ask,
	} {
		c.Args = []byte(`{"command":` + quoteJSON(command) + `}`)
		if d := New(Options{Mounts: inWork, Tier: inTier(2), Rules: []Rule{again}}).Decide(c, entry(t, "bash", execs), Facts{}); d.Effect() != want {
			t.Errorf("%s: %s by %s", command, d.Effect(), again)
		}
		if d := New(Options{Rules: []Rule{again}}).Decide(c, entry(t, "bash", execs), Facts{}); d.Effect() != Ask {
			t.Errorf("%s: %s although nothing confines it", command, d.Effect())
		}
	}
}

func TestPathsOfArguments(t *testing.T) {
	inside := rule(t, "w(path:path=/work/src/**)", SourceUser)
	secret := deny(rule(t, "w(path:path=/work/secret/**)", SourceUser))
	for arg, want := range map[string]Effect{
		`"src/a"`: Allow, `"/work/src/a"`: Allow, `"./src//a/"`: Allow, `"src/./a"`: Allow, `"/work/src"`: Allow,
		`"a"`: Ask, `"/etc/passwd"`: Ask, `"src/../src/a"`: Ask, `"src/../../etc/passwd"`: Ask, `"/work/srcx"`: Ask, `"SRC/a"`: Ask, `"src\u0000/../x"`: Ask,
		`7`: Ask, `null`: Ask, `["src/a"]`: Ask, `""`: Ask, `"~/x"`: Ask,
		`"secret/k"`: Deny, `"/work/secret"`: Deny, `"secret"`: Deny, `"./secret/"`: Deny, `"src/../secret/k"`: Deny, `"link/../secret/k"`: Deny,
	} {
		d := New(Options{Rules: []Rule{inside, secret}}).Decide(call("w", `{"path":`+arg+`}`), entry(t, "w", writes), Facts{})
		if d.Effect() != want {
			t.Errorf("%s: %s, want %s (%s)", arg, d.Effect(), want, d.Reason())
		}
	}
	// A missing path stands for the working directory.
	c := call("w", `{}`)
	c.Cwd = "/work/secret/x"
	if d := New(Options{Rules: []Rule{secret}}).Decide(c, entry(t, "w", writes), Facts{}); d.Effect() != Deny {
		t.Errorf("no path, in the directory: %s", d.Effect())
	}
	// To allow, each of several paths must fit; to deny, one is enough.
	each, any := rule(t, "w(path:/list/*/p=/work/src/**)", SourceUser), deny(rule(t, "w(path:/list/*/p=/work/secret/**)", SourceUser))
	for list, want := range map[string]Effect{
		`[{"p":"src/a"},{"p":"src/b"}]`: Allow, `[{"p":"src/a"},{"p":"/etc/passwd"}]`: Ask, `[]`: Ask, `[{"p":"src/a"},{"p":"secret/k"}]`: Deny, `{"x":{"p":"secret/k"}}`: Deny,
	} {
		if d := New(Options{Rules: []Rule{each, any}}).Decide(call("w", `{"list":`+list+`}`), entry(t, "w", writes), Facts{}); d.Effect() != want {
			t.Errorf("%s: %s, want %s", list, d.Effect(), want)
		}
	}
}

// Callers, risks and numbers of calls narrow a rule, and deny wins.
func TestRulesByCallerRiskAndCount(t *testing.T) {
	mcp := Rule{Effect: Deny, Tool: AnyTool, Callers: []tool.Caller{tool.CallerMCP}, Except: []string{"r"}}
	high := Rule{Effect: Deny, Tool: AnyTool, Risks: []Risk{RiskHigh}}
	third := Rule{Effect: Deny, Tool: "r", AfterCalls: 2}
	for name, c := range map[string]struct {
		tool    string
		caps    tool.Capabilities
		caller  tool.Caller
		earlier int
		want    Effect
	}{
		"an MCP client":          {"w", writes, tool.CallerMCP, 0, Deny},
		"a tool that is spared":  {"r", reads, tool.CallerMCP, 0, Allow},
		"the agent":              {"w", writes, tool.CallerAgent, 0, Ask},
		"a person":               {"w", writes, tool.CallerPerson, 0, Ask},
		"a process":              {"bash", execs, tool.CallerPerson, 0, Deny},
		"the second call":        {"r", reads, tool.CallerAgent, 1, Allow},
		"the third":              {"r", reads, tool.CallerAgent, 2, Deny},
		"the third of another":   {"q", reads, tool.CallerAgent, 2, Allow},
		"a caller nobody knows":  {"w", writes, "", 0, Ask},
		"the hundredth of these": {"r", reads, tool.CallerPerson, 99, Deny},
	} {
		cl := call(c.tool, `{"command":"ls"}`)
		cl.Caller = c.caller
		rules := []Rule{mcp, high, third, rule(t, "bash(command=ls)", SourceFlag)}
		if d := New(Options{Rules: rules}).Decide(cl, entry(t, c.tool, c.caps), Facts{EarlierCalls: c.earlier}); d.Effect() != c.want {
			t.Errorf("%s: %s, want %s (%s)", name, d.Effect(), c.want, d.Reason())
		}
	}
}
