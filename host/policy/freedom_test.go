package policy

import (
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/git"
	"github.com/stockade-dev/stockade/host/tool"
)

func text(name, content string) *tool.Version {
	return &tool.Version{Mode: 0o644, Size: int64(len(content)), Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil }}
}

func fileChange(kind tool.ChangeKind, name string) tool.Change {
	c := tool.Change{Path: name, Kind: kind, Before: text(name, "before\n"), After: text(name, "after\n")}
	switch kind {
	case tool.Created:
		c.Before = nil
	case tool.Removed:
		c.After = nil
	}
	return c
}

func byAgent(name, args string) tool.Call {
	c := call(name, args)
	c.Caller, c.Turn = tool.CallerAgent, 1
	return c
}

// decideFree decides about a command that has made changes, in a chat with a freedom.
func decideFree(t *testing.T, opts Options, f *Freedom, e *tool.Entry, c tool.Call, changes []tool.Change, dirs ...*git.Dir) Decision {
	t.Helper()
	d, _ := withFreedom(opts, f).Decide(c, e, Facts{}).DecideShownChanges(t.Context(), changes, dirs...)
	return d
}

// What asks although all plain changes below a directory are allowed is decided by what was
// changed, and by who asks.
func TestWhatFreedomDoesNotCover(t *testing.T) {
	moved := fileChange(tool.Renamed, "/work/b/a.go")
	moved.From, moved.After = "/work/a.go", moved.Before
	out := moved
	out.Path = "/other/a.go"
	in := moved
	in.From = "/other/a.go"
	rewritten := moved
	rewritten.After = text("", "other\n")
	link := func(target string) tool.Change {
		c := changed(tool.Created, "/work/link", fs.ModeSymlink|0o777)
		c.After.Target = target
		return c
	}
	hard := fileChange(tool.Created, "/work/hard")
	hard.After.HardLink = "/other/a"
	emptied := fileChange(tool.Modified, "/work/notes.txt")
	emptied.After = text("", "")
	replaced := fileChange(tool.Modified, "/work/notes.txt")
	replaced.After = &tool.Version{Mode: fs.ModeDir | 0o755}
	repository := fileChange(tool.Created, "/work/objects/x")
	repository.InRepository = true
	reflog := fileChange(tool.Modified, "/work/.git/logs/HEAD")
	inGit := fileChange(tool.Modified, "/work/.git/index")
	ref := func(r git.Ref) *git.Dir { return &git.Dir{Path: "/work/.git", Refs: []git.Ref{r}} }
	ownAsk := Rule{Effect: Ask, Tool: "bash", Source: SourceUser, Origin: "policy.toml:1"}
	theirs := func(r Rule) []Layer {
		r.Source = SourceProject
		return []Layer{{Source: SourceProject, Ceiling: Ceiling{Rules: []Rule{r}}}}
	}
	noAuto := []Layer{{Source: SourceAdmin, Ceiling: Ceiling{NoAuto: []Setting{{From: Provenance{Source: SourceAdmin}}}}}}
	confirm := []Layer{{Source: SourceAdmin, Ceiling: Ceiling{Confirm: []Setting{{From: Provenance{Source: SourceAdmin}}}}}}
	plain := []tool.Change{fileChange(tool.Modified, "/work/src/a.go"), fileChange(tool.Created, "/work/src/b.go")}
	for name, c := range map[string]struct {
		changes []tool.Change // nil: plain
		dir     *git.Dir
		with    func(*Options)
		command string
		caller  tool.Caller
		want    Effect
	}{
		"plain changes":                {want: Allow},
		"dangerous words":              {command: "rm -rf build", want: Allow},
		"a file moved as it is":        {changes: []tool.Change{moved}, want: Allow},
		"a link inside":                {changes: []tool.Change{link("src/a.go")}, want: Allow},
		"a longer reflog":              {changes: []tool.Change{reflog}, dir: &git.Dir{Path: "/work/.git"}, want: Allow},
		"a new commit":                 {changes: []tool.Change{inGit}, dir: ref(git.Ref{Name: "refs/heads/main", Before: "a", After: "b", FastForward: true}), want: Allow},
		"moved out":                    {changes: []tool.Change{out}, want: Ask},
		"moved in":                     {changes: []tool.Change{in}, want: Ask},
		"moved and changed":            {changes: []tool.Change{rewritten}, want: Ask},
		"outside":                      {changes: []tool.Change{fileChange(tool.Modified, "/other/a")}, want: Ask},
		"beside it":                    {changes: []tool.Change{fileChange(tool.Created, "/workshop/a")}, want: Ask},
		"in another case":              {changes: []tool.Change{fileChange(tool.Created, "/WORK/a")}, want: Ask},
		"a link out":                   {changes: []tool.Change{link("../other")}, want: Ask},
		"a link out, absolute":         {changes: []tool.Change{link("/other")}, want: Ask},
		"a link through a link":        {changes: []tool.Change{link("src/../../other")}, want: Ask},
		"a hard link to one outside":   {changes: []tool.Change{hard}, want: Ask},
		"a removed file":               {changes: []tool.Change{fileChange(tool.Removed, "/work/notes.txt")}, want: Ask},
		"an emptied file":              {changes: []tool.Change{emptied}, want: Ask},
		"a file that is a directory":   {changes: []tool.Change{replaced}, want: Ask},
		"a special path":               {changes: []tool.Change{fileChange(tool.Created, "/work/.envrc")}, want: Ask},
		"a closed path":                {changes: []tool.Change{fileChange(tool.Created, "/work/agent.toml")}, want: Deny},
		"a secret":                     {changes: []tool.Change{fileChange(tool.Created, "/work/id_rsa")}, want: Ask},
		"a repository of another name": {changes: []tool.Change{repository}, want: Deny},
		"a rewritten reflog":           {changes: []tool.Change{reflog}, dir: &git.Dir{Path: "/work/.git", LogsRewritten: true}, want: Ask},
		"a large file of git is gone":  {changes: []tool.Change{fileChange(tool.Removed, "/work/.git/lfs/objects/a")}, want: Ask},
		"commits are lost":             {changes: []tool.Change{inGit}, dir: ref(git.Ref{Name: "HEAD", LostCommits: []string{"x"}}), want: Ask},
		"commits may be lost":          {changes: []tool.Change{inGit}, dir: ref(git.Ref{Name: "HEAD", MayHaveLostMore: true}), want: Ask},
		"a reference is unreadable":    {changes: []tool.Change{inGit}, dir: ref(git.Ref{Name: "HEAD", After: git.Unreadable}), want: Ask},
		"a tag is moved":               {changes: []tool.Change{inGit}, dir: ref(git.Ref{Name: "refs/tags/v1", Before: "a", After: "b", FastForward: true}), want: Ask},
		"a stash is dropped":           {changes: []tool.Change{inGit}, dir: &git.Dir{Path: "/work/.git", Dropped: []string{"x"}}, want: Ask},
		"a stash is made":              {changes: []tool.Change{inGit}, dir: &git.Dir{Path: "/work/.git", Stashed: []string{"x"}}, want: Ask},
		"objects are gone":             {changes: []tool.Change{inGit}, dir: &git.Dir{Path: "/work/.git", MissingObjects: 1}, want: Ask},
		"a pack that cannot be told":   {changes: []tool.Change{inGit}, dir: &git.Dir{Path: "/work/.git", Unseen: []string{"x"}}, want: Ask},
		"git looks away":               {changes: []tool.Change{inGit}, dir: &git.Dir{Path: "/work/.git", Flagged: []string{"x"}}, want: Ask},
		"a rule of one's own asks":     {with: func(o *Options) { o.Rules = []Rule{ownAsk} }, want: Ask},
		"a rule of the project asks":   {with: func(o *Options) { o.Layers = theirs(Rule{Effect: Ask, Tool: "bash"}) }, want: Ask},
		"a rule about the path asks": {with: func(o *Options) {
			o.Layers = theirs(Rule{Effect: Ask, Tool: "file_write", Where: rule(t, "file_write(path:path=/work/src/**)", SourceUser).Where})
		}, want: Ask},
		"the administrator asks":       {with: func(o *Options) { o.Layers = confirm }, want: Ask},
		"the administrator forbids it": {with: func(o *Options) { o.Layers = noAuto }, want: Ask},
		"every call asks":              {with: func(o *Options) { o.ConfirmAll = true }, want: Ask},
		"before it runs":               {with: func(o *Options) { o.AskFirst = true }, want: Ask},
		"tier 1":                       {with: func(o *Options) { o.Tier = inTier(1) }, want: Ask},
		"a chat in the home directory": {with: func(o *Options) { o.Home = "/work" }, want: Ask},
		"a client of a server":         {caller: tool.CallerMCP, want: Ask},
	} {
		opts := staging()
		opts.Mounts = append(slices.Clone(opts.Mounts), Mount{Host: "/other", Write: true}, Mount{Host: "/workshop", Write: true}, Mount{Host: "/WORK", Write: true})
		if c.with != nil {
			c.with(&opts)
		}
		if c.command == "" {
			c.command = "make"
		}
		if c.changes == nil {
			c.changes = plain
		}
		var dirs []*git.Dir
		if c.dir != nil {
			dirs = append(dirs, c.dir)
		}
		f := new(Freedom)
		f.Open("/work", Provenance{Source: SourceSession})
		call := byAgent("bash", fmt.Sprintf(`{"command":%q}`, c.command))
		if c.caller != "" {
			call.Caller = c.caller
		}
		d := decideFree(t, opts, f, entry(t, "bash", execs), call, c.changes, dirs...)
		if d.Effect() != c.want {
			t.Errorf("%s: %s, %s", name, d.Effect(), d.Reason())
		}
		// Without the freedom it asks, and offers it only where it would count.
		d = decideFree(t, opts, new(Freedom), entry(t, "bash", execs), call, c.changes, dirs...)
		offered := slices.Contains(d.WithDiff(t.Context(), c.changes, dirs...).Question().Scopes, ScopeFree)
		if own := name == "a rule of one's own asks"; d.Effect() == Allow || offered != (c.want == Allow || own) {
			t.Errorf("%s: without it %s; it is offered: %t", name, d.Effect(), offered)
		}
	}
}

// An answer counts for a rule of one's own only if that rule had asked the question.
func TestFreedomAnswersTheRulesThatAsked(t *testing.T) {
	own := func(name string) Rule {
		return Rule{Effect: Ask, Tool: name, Source: SourceUser, Origin: "policy.toml:" + name}
	}
	opts := staging()
	opts.Rules = []Rule{own("bash"), own("file_write")}
	bash, write := entry(t, "bash", execs), entry(t, "file_write", writes)
	f := new(Freedom)
	some := []tool.Change{fileChange(tool.Created, "/work/a")}
	d := decideFree(t, opts, f, bash, byAgent("bash", `{"command":"make"}`), some)
	d.NoteAnswer(ScopeFree)
	if d := decideFree(t, opts, f, bash, byAgent("bash", `{"command":"make again"}`), some); d.Effect() != Allow || d.Rule() != "auto below /work" || d.Source() != SourceSession {
		t.Errorf("the answer counts for nothing: %s, %s", d.Effect(), d.Reason())
	}
	if d := decideFree(t, opts, f, write, byAgent("file_write", `{}`), some); d.Effect() != Ask {
		t.Errorf("it answers another rule: %s", d.Reason())
	}
	if f.SetMode(ModeAsk, "/work"); decideFree(t, opts, f, bash, byAgent("bash", `{"command":"make"}`), some).Effect() != Ask {
		t.Error("it is not taken back")
	}
}

// A module that others wrote asks about its changes.
func TestFreedomIsForBuiltInTools(t *testing.T) {
	f := new(Freedom)
	f.Open("/work", Provenance{Source: SourceSession})
	some := []tool.Change{fileChange(tool.Created, "/work/a")}
	for origin, want := range map[tool.Origin]Effect{tool.OriginBuiltin: Allow, tool.OriginAdded: Ask, tool.OriginFile: Ask} {
		d := decideFree(t, staging(), f, entry0("w", writes, origin), byAgent("w", `{}`), some)
		if d.Effect() != want {
			t.Errorf("%v: %s, %s", origin, d.Effect(), d.Reason())
		}
	}
}

// Of 21 files, removed in one command or in several, the last asks; so does each other then.
func TestFreedomRemovesFewFiles(t *testing.T) {
	remove := func(from, to int) (out []tool.Change) {
		for i := from; i < to; i++ {
			out = append(out, fileChange(tool.Removed, fmt.Sprintf("/work/%d", i)))
		}
		return out
	}
	f := new(Freedom)
	f.Open("/work", Provenance{Source: SourceSession})
	for i := range 60 {
		sum, _ := text("", "before\n").SHA256()
		f.Note(tool.Created, fmt.Sprintf("/work/%d", i), "", "", fmt.Sprintf("%x", sum))
	}
	for i, c := range []struct {
		changes []tool.Change
		want    Effect
	}{{remove(0, 21), Ask}, {remove(0, 20), Allow}, {remove(20, 21), Ask}, {remove(21, 22), Ask}, {[]tool.Change{fileChange(tool.Modified, "/work/50")}, Allow}} {
		if d := decideFree(t, staging(), f, entry(t, "bash", execs), byAgent("bash", `{"command":"make"}`), c.changes); d.Effect() != c.want {
			t.Errorf("%d: %s, %s", i, d.Effect(), d.Reason())
		}
	}
	// The files of the question at which it was given count, too.
	f = new(Freedom)
	sum, _ := text("", "before\n").SHA256()
	for i := range 60 {
		f.Note(tool.Created, fmt.Sprintf("/work/%d", i), "", "", fmt.Sprintf("%x", sum))
	}
	decideFree(t, staging(), f, entry(t, "bash", execs), byAgent("bash", `{"command":"make"}`), remove(0, 20)).NoteAnswer(ScopeFree)
	if d := decideFree(t, staging(), f, entry(t, "bash", execs), byAgent("bash", `{"command":"make"}`), remove(20, 21)); d.Effect() != Ask || f.Mode() != ModeAuto {
		t.Errorf("20 and one more: %s, %s", d.Effect(), d.Reason())
	}
}

// A file is the chat's own only while it is as a call has left it.
func TestWhichFilesAChatHasMade(t *testing.T) {
	sum := func(content string) string {
		s, _ := text("", content).SHA256()
		return fmt.Sprintf("%x", s)
	}
	for name, c := range map[string]struct {
		notes func(*Freedom)
		want  bool
	}{
		"made": {func(f *Freedom) { f.Note(tool.Created, "/work/a", "", "", sum("before\n")) }, true},
		"made, and changed by it": {func(f *Freedom) {
			f.Note(tool.Created, "/work/a", "", "", sum("x"))
			f.Note(tool.Modified, "/work/a", "", sum("x"), sum("before\n"))
		}, true},
		"made, and moved": {func(f *Freedom) {
			f.Note(tool.Created, "/work/b", "", "", sum("x"))
			f.Note(tool.Renamed, "/work/a", "/work/b", sum("x"), sum("before\n"))
		}, true},
		"changed": {func(f *Freedom) { f.Note(tool.Modified, "/work/a", "", sum("x"), sum("before\n")) }, false},
		"moved":   {func(f *Freedom) { f.Note(tool.Renamed, "/work/a", "/work/b", sum("x"), sum("before\n")) }, false},
		"made over": {func(f *Freedom) {
			f.Note(tool.Created, "/work/b", "", "", sum("before\n"))
			f.Note(tool.Modified, "/work/a", "", sum("x"), sum("before\n"))
		}, false},
		"made, and changed since": {func(f *Freedom) { f.Note(tool.Created, "/work/a", "", "", sum("x")) }, false},
		"made, and removed": {func(f *Freedom) {
			f.Note(tool.Created, "/work/a", "", "", sum("before\n"))
			f.Note(tool.Removed, "/work/a", "", "", "")
		}, false},
		"made, too large to hash": {func(f *Freedom) { f.Note(tool.Created, "/work/a", "", "", "") }, false},
		"made, and its mode given": {func(f *Freedom) {
			f.Note(tool.Created, "/work/a", "", "", sum("before\n"))
			f.Note(tool.ModeChanged, "/work/a", "", "", "")
		}, true},
	} {
		f := new(Freedom)
		c.notes(f)
		if got := f.hasMade(fileChange(tool.Removed, "/work/a")); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// In plan mode the model changes no file and reaches no host, whatever rules allow.
func TestPlanMode(t *testing.T) {
	f := new(Freedom)
	f.SetMode(ModePlan, "/work")
	opts := staging()
	opts.Rules = []Rule{rule(t, "file_write", SourceUser), rule(t, "fetch", SourceUser), rule(t, "bash(command=make) changes direct", SourceFlag)}
	online := execs
	online.ExecNetwork = "network"
	for name, c := range map[string]struct {
		call   tool.Call
		caps   tool.Capabilities
		want   Effect
		person bool
		tier   Tier
	}{
		"a tool that writes":       {call: byAgent("file_write", `{}`), caps: writes, want: Deny},
		"one that fetches":         {call: byAgent("fetch", `{}`), caps: tool.Capabilities{Network: tool.NetworkHTTP}, want: Deny},
		"a command with a network": {call: byAgent("bash", `{"command":"curl x","network":true}`), caps: online, want: Deny},
		"a command":                {call: byAgent("bash", `{"command":"make"}`), caps: online, want: Allow},
		"one that nothing keeps":   {call: byAgent("bash", `{"command":"make"}`), caps: online, want: Deny, tier: -1},
		"one that reads":           {call: byAgent("file_read", `{}`), caps: tool.Capabilities{Files: tool.FilesRead}, want: Allow},
		"the person's own":         {call: byAgent("file_write", `{}`), caps: writes, want: Allow, person: true},
	} {
		opts := opts
		if c.tier < 0 {
			opts.Tier = inTier(0)
		}
		if c.person {
			c.call.Caller = tool.CallerPerson
		}
		d := withFreedom(opts, f).Decide(c.call, entry(t, c.call.Tool, c.caps), Facts{})
		if d.Effect() != c.want {
			t.Errorf("%s: %s, %s", name, d.Effect(), d.Reason())
		}
		if c.caps.Exec != "" && c.want == Allow {
			if g, err := d.Grant(); err != nil || g.terms().exec.Changes != ChangesNone {
				t.Errorf("%s: its changes are %q, %v", name, g.terms().exec.Changes, err)
			}
		}
	}
}

func withFreedom(opts Options, f *Freedom) *Policy {
	p := New(opts)
	p.freedom = f
	return p
}
