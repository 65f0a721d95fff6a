package policy

import (
	"cmp"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/git"
	"github.com/stockade-dev/stockade/host/tool"
)

// staging returns options under which commands run on a stage.
func staging() Options {
	return Options{Mounts: inWork, Tier: inTier(3), WhyNotStaged: func([]Mount) string { return "" }}
}

// The rule that decides sets the mode for the changes of a command, as far as a layer
// permits it.
func TestARuleChoosesWhatBecomesOfChanges(t *testing.T) {
	for name, c := range map[string]struct {
		rule  string
		asks  bool
		opts  func(*Options)
		want  ChangesMode
		first string // why it is asked about first
	}{
		"nothing is said":       {want: ChangesStaged},
		"direct":                {rule: "bash(command=make all) changes direct", asks: true, want: ChangesDirect, first: "while it runs"},
		"allowed":               {rule: "bash(command=make all) changes direct", want: ChangesDirect},
		"none":                  {rule: "bash(command=make all) changes none", want: ChangesNone},
		"of another command":    {rule: "bash(command=ls) changes direct", want: ChangesStaged},
		"wider than settings":   {rule: "bash changes direct", opts: func(o *Options) { o.Changes = ChangesNone }, want: ChangesDirect},
		"staged again":          {rule: "bash(command=make all) changes staged", asks: true, opts: func(o *Options) { o.Changes = ChangesDirect }, want: ChangesStaged},
		"no wider than a layer": {rule: "bash changes direct", opts: most(ChangesNone), want: ChangesNone},
		"where nothing can be":  {rule: "bash changes staged", asks: true, opts: func(o *Options) { o.WhyNotStaged = func([]Mount) string { return "no place" } }, want: ChangesDirect, first: "no place"},
	} {
		opts := staging()
		if c.opts != nil {
			c.opts(&opts)
		}
		if c.rule != "" {
			r := rule(t, c.rule, SourceFlag)
			if c.asks {
				r.Effect, r.Source = Ask, SourceUser
			}
			opts.Rules = append(opts.Rules, r)
		}
		d := New(opts).Decide(call("bash", `{"command":"make all"}`), entry(t, "bash", execs), Facts{})
		if d.changes != c.want || c.first == "" && d.askFirstReason != "" && d.effect == Ask || !strings.Contains(d.askFirstReason, c.first) {
			t.Errorf("%s: %s, asked first because %q", name, d.changes, d.askFirstReason)
		}
	}
	for _, text := range []string{"bash changes", "bash changes all", "bash changes direct below x", "bash below ", "bash below x)", "bash below x reads y", "bash below a changes b"} {
		if r, err := ParseRule(text); err == nil {
			t.Errorf("%q is %+v", text, r)
		}
	}
	if r, err := ParseDenial("bash changes none"); err == nil {
		t.Error(r)
	}
}

func most(c ChangesMode) func(*Options) {
	return func(o *Options) {
		o.Layers = []Layer{{Source: SourceAdmin, Ceiling: Ceiling{Changes: c.AtMost(Provenance{Source: SourceAdmin})}}}
	}
}

func changed(kind tool.ChangeKind, name string, mode fs.FileMode) tool.Change {
	v := &tool.Version{Mode: mode}
	c := tool.Change{Path: name, Kind: kind, Before: v, After: v}
	switch kind {
	case tool.Created, tool.DirectoryCreated:
		c.Before = nil
	case tool.Removed, tool.DirectoryRemoved:
		c.After = nil
	}
	return c
}

// An answer can allow all calls that change nothing outside a directory.
func TestAnAnswerForADirectory(t *testing.T) {
	file := func(kind tool.ChangeKind, name string) tool.Change { return changed(kind, name, 0o644) }
	moved := file(tool.Renamed, "/work/build/a")
	moved.From = "/work/a"
	link := changed(tool.Created, "/work/build/l", fs.ModeSymlink|0o777)
	link.After.Target = "../../elsewhere"
	for name, c := range map[string]struct {
		command string // make, unless it is said
		rules   []string
		changes []tool.Change
		want    Effect
		below   string // the directory that is offered
	}{
		"one file":              {changes: []tool.Change{file(tool.Modified, "/work/src/a.go")}, want: Ask, below: "/work/src"},
		"a new directory":       {changes: []tool.Change{changed(tool.DirectoryCreated, "/work/build", fs.ModeDir|0o755), file(tool.Created, "/work/build/a")}, want: Ask, below: "/work/build"},
		"two directories":       {changes: []tool.Change{file(tool.Removed, "/work/a/x/1"), file(tool.Created, "/work/a/y/2")}, want: Ask, below: "/work/a"},
		"objects of git":        {changes: []tool.Change{file(tool.Created, "/work/.git/objects/ab/cd")}, want: Ask, below: "/work/.git"},
		"a dangerous command":   {command: "rm -rf build", changes: []tool.Change{file(tool.Removed, "/work/build/a")}, want: Ask},
		"a special path":        {changes: []tool.Change{file(tool.Created, "/work/.envrc")}, want: Ask},
		"a closed path":         {rules: []string{"bash below /work"}, changes: []tool.Change{file(tool.Created, "/work/agent.toml")}, want: Deny},
		"answered":              {rules: []string{"bash below /work/build"}, changes: []tool.Change{file(tool.Removed, "/work/build/a")}, want: Allow},
		"relative":              {rules: []string{"bash below build"}, changes: []tool.Change{file(tool.Created, "/work/build/a")}, want: Allow},
		"the directory itself":  {rules: []string{"bash below build"}, changes: []tool.Change{changed(tool.DirectoryCreated, "/work/build", fs.ModeDir|0o755)}, want: Allow},
		"one beside it":         {rules: []string{"bash below build"}, changes: []tool.Change{file(tool.Created, "/work/build/a"), file(tool.Created, "/work/builder")}, want: Ask, below: "/work"},
		"moved into it":         {rules: []string{"bash below build"}, changes: []tool.Change{moved}, want: Ask, below: "/work"},
		"a link out of it":      {rules: []string{"bash below build"}, changes: []tool.Change{link}, want: Ask},
		"of another command":    {rules: []string{"bash(command=ls) below build"}, changes: []tool.Change{file(tool.Created, "/work/build/a")}, want: Ask, below: "/work/build"},
		"answered, dangerous":   {command: "rm -rf build", rules: []string{"bash below build"}, changes: []tool.Change{file(tool.Removed, "/work/build/a")}, want: Ask},
		"another answer denies": {rules: []string{"bash below build", "deny"}, changes: nil, want: Deny},
	} {
		opts := staging()
		for _, text := range c.rules {
			if text == "deny" {
				opts.Rules = append(opts.Rules, Rule{Effect: Deny, Tool: "bash", Source: SourceUser})
				continue
			}
			opts.Rules = append(opts.Rules, rule(t, text, SourceUser))
		}
		if c.command == "" {
			c.command = "make"
		}
		d := New(opts).Decide(call("bash", `{"command":"`+c.command+`"}`), entry(t, "bash", execs), Facts{})
		d, _ = d.DecideChanges(c.changes)
		if d.effect != c.want || d.changedDir != c.below {
			t.Errorf("%s: %s, %s, offers %q", name, d.effect, d.reason, d.changedDir)
		}
		q := d.Question()
		r, err := d.RuleFor(ScopeKeepBelow)
		if offered := slices.Contains(q.Scopes, ScopeBelow); offered != (c.below != "") || offered != (err == nil) {
			t.Errorf("%s: offered %t, %v", name, offered, err)
		} else if offered {
			again, err := ParseRule(r.String())
			if err != nil || again.Below != c.below || !strings.Contains(q.Rules[ScopeBelow], c.below) {
				t.Errorf("%s: %s, %v, %q", name, again, err, q.Rules[ScopeBelow])
			}
			if d, _ := New(Options{Mounts: inWork, Tier: inTier(3), WhyNotStaged: opts.WhyNotStaged, Rules: []Rule{r}}).
				Decide(call("bash", `{"command":"make other"}`), entry(t, "bash", execs), Facts{}).DecideChanges(c.changes); d.effect != Allow {
				t.Errorf("%s: the answer counts for nothing: %s", name, d.reason)
			}
		}
	}
	// Without a stage such a rule does not apply.
	d := New(Options{Mounts: inWork, Tier: inTier(3), Rules: []Rule{rule(t, "bash below /work", SourceUser)}}).Decide(call("bash", `{"command":"make"}`), entry(t, "bash", execs), Facts{})
	if d.effect != Ask || d.CanRehearse() {
		t.Error(d.effect, d.reason)
	}
}

// Changes of a repository that no everyday command makes ask even if a rule allows the
// command; the others do not.
func TestChangesOfARepositoryThatAsk(t *testing.T) {
	opts := staging()
	opts.Rules = []Rule{rule(t, "bash", SourceUser)}
	p := New(opts)
	for name, want := range map[string]Effect{
		"created .git/remotes/origin": Ask, "created .git/branches/main": Ask, "created .git/objects/info/alternates": Ask,
		"created .git/refs/replace/0123": Ask, "created .git/info/grafts": Ask, "modified .git/shallow": Ask, "modified .git/objects/ab/cdef": Ask, "modified .git/objects/pack/pack-1.pack": Ask,
		"created .git/objects/ab/cdef": Allow, "removed .git/objects/ab/cdef": Allow, "modified .git/objects/info/packs": Allow,
		"modified .git/objects/pack/multi-pack-index": Allow, "modified .git/refs/heads/main": Allow, "modified .git/index": Allow,
		"modified .git/HEAD": Allow, "created .git/hooks/pre-commit": Deny,
	} {
		kind, file, _ := strings.Cut(name, " ")
		d, _ := p.Decide(call("bash", `{"command":"make"}`), entry(t, "bash", execs), Facts{}).DecideChanges([]tool.Change{changed(tool.ChangeKind(kind), "/work/"+file, 0o644)})
		if d.effect != want {
			t.Errorf("%s: %s, %s", name, d.effect, d.reason)
		}
	}
}

// A rule that names a directory allows only changes that can be shown, unless it comes from
// a flag.
func TestARuleAllowsNothingUnseen(t *testing.T) {
	for text, c := range map[string]struct {
		source Source
		want   Effect
	}{"text\n": {SourceUser, Allow}, "\x00": {SourceUser, Ask}, "\x00\x00": {SourceFlag, Allow}, "\x00\x00\x00": {SourceSession, Ask}} {
		opts := staging()
		opts.Rules = []Rule{rule(t, "bash below build", c.source)}
		v := &tool.Version{Mode: 0o644, Size: int64(len(text)), Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }}
		d, _ := New(opts).Decide(call("bash", `{"command":"make"}`), entry(t, "bash", execs), Facts{}).DecideShownChanges(t.Context(), []tool.Change{{Path: "/work/build/a", Kind: tool.Created, After: v}})
		if _, err := d.RuleFor(ScopeBelow); d.effect != c.want || c.want == Ask && err == nil {
			t.Errorf("%q, %s: %s, %s; a rule could be made: %v", text, c.source, d.effect, d.reason, err)
		}
	}
}

// A replacement of an object may be packed: then no changed file has its path.
func TestAPackedReplacementAsks(t *testing.T) {
	opts := staging()
	opts.Rules = []Rule{rule(t, "bash", SourceUser), rule(t, "bash below /work", SourceUser)}
	d := New(opts).Decide(call("bash", `{"command":"make"}`), entry(t, "bash", execs), Facts{})
	for name, want := range map[string]Effect{"refs/replace/0123": Ask, "refs/heads/main": Allow} {
		d, _ := d.DecideChanges([]tool.Change{changed(tool.Modified, "/work/.git/packed-refs", 0o644)}, &git.Dir{Path: "/work/.git", Refs: []git.Ref{{Name: name, After: "0123"}}})
		if d.effect != want {
			t.Errorf("%s: %s, %s", name, d.effect, d.reason)
		}
	}
}

// The caches that a process shares depend on its rights, and not on the author of the yes.
func TestWhatOfCachesAProcessShares(t *testing.T) {
	exec := tool.Capabilities{Exec: "command", ExecNetwork: "network"}
	secret := exec
	secret.Secrets = uses("A").Secrets
	staging := func([]Mount) string { return "" }
	for name, c := range map[string]struct {
		caps           tool.Capabilities
		args           string
		opts           Options
		apart, fetches bool
	}{
		"its changes are staged":    {caps: exec, args: `{"command":"make"}`},
		"it changes nothing":        {caps: exec, args: `{"command":"make"}`, opts: Options{Changes: ChangesNone}},
		"it changes files directly": {caps: exec, args: `{"command":"make"}`, opts: Options{Changes: ChangesDirect}, apart: true},
		"a rule has it do so":       {caps: exec, args: `{"command":"make"}`, opts: Options{Rules: []Rule{rule(t, "bash(command=make) changes direct", SourceFlag)}}, apart: true},
		"it reads a secret":         {caps: exec, args: `{"command":"make"}`, opts: Options{Rules: []Rule{rule(t, "bash(command=make) reads .env", SourceFlag)}}, apart: true},
		"its tool uses a secret":    {caps: secret, args: `{"command":"make"}`, apart: true},
		"it is confined in part":    {caps: exec, args: `{"command":"make"}`, opts: Options{Tier: inTier(1), Changes: ChangesNone}, apart: true},
		"it has the network":        {caps: exec, args: `{"command":"make","network":true}`, opts: Options{Network: networkOf(t, "open.example")}, apart: true, fetches: true},
		"a rule allows it that":     {caps: exec, args: `{"command":"make","network":true}`, opts: Options{Network: networkOf(t, "open.example"), Rules: []Rule{rule(t, "bash(command=make)", SourceFlag)}}, apart: true, fetches: true},
		"it has not asked for it":   {caps: exec, args: `{"command":"make"}`, opts: Options{Network: networkOf(t, "open.example")}},
	} {
		opts := c.opts
		opts.Mounts, opts.WhyNotStaged, opts.Changes = inWork, staging, cmp.Or(opts.Changes, ChangesStaged)
		if opts.Tier == nil {
			opts.Tier = inTier(MaxTier)
		}
		d := New(opts).Decide(call("bash", c.args), entry(t, "bash", c.caps), Facts{})
		grant, err := d.Grant()
		if d.Effect() == Ask {
			grant, err = d.Approve(Answer{Allow: true}, 1)
		}
		if err != nil {
			t.Fatal(name, err)
		}
		if e, _ := grant.Exec(); e.IsPrivileged() != c.apart || e.ReachesHosts() != c.fetches {
			t.Errorf("%s: apart %t, fetches %t", name, e.IsPrivileged(), e.ReachesHosts())
		}
	}
}

// An answer for the session covers commands with the same first words, for changes in one
// directory.
func TestAnAnswerForTheFirstWords(t *testing.T) {
	within := []tool.Change{changed(tool.Modified, "/work/src/a.go", 0o644)}
	p := New(staging())
	decide := func(text string, changes []tool.Change) Decision {
		d, _ := p.Decide(call("bash", `{"command":`+quoteJSON(text)+`}`), entry(t, "bash", execs), Facts{}).DecideChanges(changes)
		return d
	}
	for _, text := range []string{"go test -exec ./evil ./...", "sh -c 'go test'", "go test ./... && touch src/b", "make test"} {
		if r, err := decide(text, within).RuleFor(ScopeSession); err == nil {
			t.Errorf("%s: an answer would be %q", text, r)
		}
	}
	asked := decide("go test ./a", within)
	r, err := asked.RuleFor(ScopeSession)
	if q := asked.Question(); err != nil || !q.CoversLikeCommands || !strings.Contains(q.Rules[ScopeSession], `begins with "go test", if it changes nothing but what is in /work/src, until this program ends`) {
		t.Fatalf("it says %q, %v", q.Rules[ScopeSession], err)
	}
	p.Add(r)
	moved := changed(tool.Renamed, "/work/src/b.go", 0o644)
	moved.From = "/work/a.go"
	for _, c := range []struct {
		command string
		changes []tool.Change
		want    Effect
	}{
		{"go test ./b -v", within, Allow},
		{"go build ./a", within, Ask},
		{"go test -exec ./evil ./a", within, Ask},
		{"go test ./a; touch src/a.go", within, Ask},
		{"go test $(touch x)", within, Ask},
		{"/work/go test ./a", within, Ask},
		{"go test ./a", []tool.Change{changed(tool.Created, "/work/other", 0o644)}, Ask},
		{"go test ./a", []tool.Change{changed(tool.Created, "/work/src2/other", 0o644)}, Ask},
		{"go test ./a", []tool.Change{moved}, Ask},
		{"go test ./a", []tool.Change{changed(tool.Created, "/work/src/.envrc", 0o644)}, Ask},
	} {
		if d := decide(c.command, c.changes); d.Effect() != c.want {
			t.Errorf("%s: %s, %s", c.command, d.Effect(), d.Reason())
		}
	}
	// Before its changes are known, the command asks.
	if d := p.Decide(call("bash", `{"command":"go test ./a"}`), entry(t, "bash", execs), Facts{}); d.Effect() != Ask {
		t.Errorf("it runs as allowed: %s", d.Reason())
	}
}
