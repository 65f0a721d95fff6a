package policy

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/stockade-dev/stockade/host/diff"
	"github.com/stockade-dev/stockade/host/git"
	"github.com/stockade-dev/stockade/host/policy/command"
	"github.com/stockade-dev/stockade/host/policy/match"
	"github.com/stockade-dev/stockade/host/policy/paths"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/sdk/go/filename"
)

// specialPath is a path of a call together with its entry in the list of special paths.
type specialPath struct {
	path string // guest path
	paths.Special
}

func (s specialPath) String() string { return fmt.Sprintf("%q, %s: %s", s.path, s.What, s.Why) }

// applySecretReads makes the decision ask if the call names files that look like secrets,
// unless rules name all these files. A tool that replaces whole files, without reading them,
// is not asked about. A command may read the files that its rule opens, even if its own text
// does not name them. Below [TierConfined] a command could read all of them anyway, so a rule
// that allows it is enough.
func (p *Policy) applySecretReads(d *Decision) {
	caps := d.entry.Capabilities
	if caps.Files == tool.FilesNone && caps.Exec == "" || caps.Files == tool.FilesWrite && d.entry.Content != nil && d.entry.Content.Hash == "" {
		return
	}
	answered := true // rules name all of the files
	for _, file := range d.facts.Files {
		name := paths.Guest(file.Path)
		s, secret := paths.SpecialForRead(name)
		if _, seen := d.access.sees(file.Path); !secret || !seen || !file.Regular || d.hasRead(name) {
			continue
		}
		d.reads = append(d.reads, specialPath{name, s})
		answered = answered && p.ruleNamesFile(d, name)
	}
	if caps.Exec != "" {
		p.addReadsOfRules(d)
	}
	if len(d.reads) == 0 || d.effect == Deny || d.effect == Allow && (answered || caps.Exec != "" && p.tier() < TierConfined) {
		return
	}
	reason := "it reads what looks like a secret: " + d.reads[0].String()
	if caps.Exec != "" && d.askFirstReason == "" {
		// A secret that it reads could end up somewhere else than in a file of a mount.
		d.askFirstReason = "it reads what looks like a secret"
		if d.by == byDefault("risk "+d.risk.String()) {
			d.reason = "it starts a process"
		}
	}
	if d.effect == Ask {
		d.reason += ", and " + reason
		return
	}
	d.setOutcome(Ask, byDefault("secret "+d.reads[0].Pattern), reason)
}

func (d *Decision) hasRead(name string) bool {
	return slices.ContainsFunc(d.reads, func(s specialPath) bool { return s.path == name })
}

// DecideChanges decides again once the changes of the call are known, even for a call that was
// approved. differs reports whether the decision has changed. Rules about paths apply. A
// change of a closed path is denied. A change of any other special path asks each time, unless
// a rule names the file. dirs describe the git repositories that have changed.
func (d Decision) DecideChanges(changes []tool.Change, dirs ...*git.Dir) (_ Decision, differs bool) {
	d.work = match.NewWork()
	ruled := d.applyPathRules(changes)
	if d.effect == Deny {
		return d, ruled
	}
	var sorted []string // the names of all changes; nil until they are needed
	holdsSome := func(dir string) bool {
		if sorted == nil {
			for _, c := range changes {
				sorted = append(sorted, paths.Guest(c.Path))
			}
			slices.Sort(sorted)
		}
		i, _ := slices.BinarySearch(sorted, dir+"/")
		return i < len(sorted) && strings.HasPrefix(sorted[i], dir+"/")
	}
	for _, c := range changes {
		find := paths.SpecialForChange
		// A link puts the files below its target below its own name, too.
		if c.After != nil && (c.Kind == tool.Renamed && c.After.Mode.IsDir() || c.After.Mode.Type() == fs.ModeSymlink) {
			find = paths.SpecialForMove
		}
		leads, sure := leadsTo(c)
		for _, host := range []string{c.Path, c.From} {
			if host == "" {
				continue
			}
			name := paths.Guest(host)
			s, special := find(name)
			if d.entry.Capabilities.Exec != "" {
				s, special = specialForCommand(c, name, find)
			}
			if home := d.policy.home; !special && home != "" && paths.In(host, filepath.Join(home, "bin")) {
				s, special = paths.HomeBin, true
			}
			if _, seen := d.access.sees(leads); leads != "" && !(seen && sure) && !special {
				s, special = paths.Special{Pattern: "link", Care: paths.Asked, What: "a symbolic link to " + strconv.Quote(c.After.Target), Why: "it leads out of what tools are shown"}, true
			}
			switch {
			case !special:
			case s.Care == paths.Closed:
				d.setOutcome(Deny, byDefault("closed "+s.Pattern), "it changes "+specialPath{name, s}.String())
				d.hint = tool.Advise(paths.ClosedHint)
				return d, true
			case c.Kind == tool.DirectoryCreated && holdsSome(name):
				// The changes in it ask.
			case !d.policy.ruleNamesFile(&d, name):
				d.changed = append(d.changed, specialPath{name, s})
			}
		}
	}
	for _, dir := range dirs {
		if !dir.IsComplete() {
			s := paths.Special{Pattern: ".git", Care: paths.Asked, What: "a git repository that was checked only in part", Why: "it may hold something else than is shown"}
			d.changed = append(d.changed, specialPath{paths.Guest(dir.Path), s})
		}
		for _, ref := range dir.Refs { // a packed reference is no file of its own among the changes
			name := paths.Guest(dir.Path) + "/" + ref.Name
			s, special := specialInGit(tool.Change{}, ref.Name)
			if special && strings.HasPrefix(ref.Name, replaceRefPrefix) && !slices.ContainsFunc(d.changed, func(s specialPath) bool { return s.path == name }) && !d.policy.ruleNamesFile(&d, name) {
				d.changed = append(d.changed, specialPath{name, s})
			}
		}
	}
	if len(d.changed) == 0 && len(changes) > 0 && d.askAnywayReason == "" && d.asksForChanges() {
		return d.applyDirRules(changes, dirs)
	}
	if len(changes) == 0 && d.asksForChanges() && d.isThirdPartyReader() {
		d.reason = "others wrote it, and it could read files; it has changed none"
	}
	if len(d.changed) == 0 {
		return d, ruled
	}
	reason := "it changes " + d.changed[0].String()
	if more := len(d.changed) - 1; more > 0 {
		reason += fmt.Sprintf(", and %d more such paths", more)
	}
	if d.mustAsk {
		reason = d.reason + ", and " + reason
	}
	if d.effect == Allow {
		d.effect, d.by = Ask, byDefault("asked "+d.changed[0].Pattern)
	}
	d.reason = reason
	return d, true
}

// DecideShownChanges is like [Decision.DecideChanges], but asks if a remembered rule allows
// the call and its changes cannot all be shown: the person who made the rule agreed only to
// changes that are shown.
func (d Decision) DecideShownChanges(ctx context.Context, changes []tool.Change, dirs ...*git.Dir) (_ Decision, differs bool) {
	asked := d
	d, differs = d.DecideChanges(changes, dirs...)
	free := d.effect == Ask
	if free {
		d = asked.decideWithoutIgnored(ctx, d, changes, dirs)
		differs = differs || d.effect == Allow
	}
	if d.effect == Allow && len(changes) > 0 && d.planned() {
		d.setOutcome(Deny, byDefault(PlanRule), "it changes files, and the chat is in plan mode by now")
		return d, true
	}
	if free || d.effect != Allow || d.flagAllowsCall || d.by.Source != SourceSession && d.by.Source != SourceUser || len(changes) == 0 {
		return d, differs
	}
	if d = d.WithDiff(ctx, changes, dirs...); d.diff.ShowsAll() {
		return d, differs
	}
	d.setOutcome(Ask, byDefault("changes that are not shown"), fmt.Sprintf("not all of its changes can be shown, and the rule %q allows only changes that are shown", d.by.Rule))
	return d, true
}

// WithDiff returns the decision together with the changes as shown to a person. dirs describe
// the git repositories that have changed.
func (d Decision) WithDiff(ctx context.Context, changes []tool.Change, dirs ...*git.Dir) Decision {
	special := map[string]bool{}
	for _, s := range d.changed {
		special[s.path] = true
	}
	d.diff = diff.New(ctx, changes, d.call.Cwd, func(c tool.Change) diff.Care {
		name := paths.Guest(c.Path)
		_, _, inside := git.CutDir(name)
		switch {
		case d.ignored[c.Path] != "":
			return diff.CareIgnored
		case !special[name] && !(c.From != "" && special[paths.Guest(c.From)]):
			return diff.CarePlain
		case inside || c.InRepository:
			return diff.CareRunByGit
		}
		return diff.CareSpecial
	}, dirs...)
	return d
}

// leadsTo returns the path to which a symbolic link leads that the change makes; empty: it makes
// none. sure is false if ".." comes after a name, which may itself be a link and lead elsewhere.
func leadsTo(c tool.Change) (name string, sure bool) {
	if c.After == nil || c.After.Target == "" {
		return "", true
	}
	up := c.After.Target
	for strings.HasPrefix(up, "../") {
		up = strings.TrimLeft(up[len("../"):], "/")
	}
	return paths.Absolute(c.After.Target, filepath.Dir(c.Path)), up == ".." || !slices.Contains(strings.Split(up, "/"), "..")
}

// AssumeChanges returns the decision as if the call changed every file that it names and may
// change. It is a forecast, made without running the call.
func (d Decision) AssumeChanges() Decision {
	if d.effect == Deny || d.entry.Capabilities.Files != tool.FilesWrite {
		return d
	}
	var changes []tool.Change
	for _, f := range d.facts.Files {
		if f.Path != "" && (d.entry.Content == nil || d.entry.Content.Argument() == f.Arg) {
			changes = append(changes, tool.Change{Path: f.Path, Kind: tool.Modified})
		}
	}
	d, _ = d.DecideChanges(changes)
	return d
}

// ruleNamesFile reports whether a rule that allows the call names exactly this file, not by a
// pattern. Symbolic links are not followed.
func (p *Policy) ruleNamesFile(d *Decision, name string) (found bool) {
	p.allowing(d, func(r *Rule) {
		is := func(file string) bool { return paths.Guest(paths.Absolute(filename.Parse(file), d.call.Cwd)) == name }
		found = found || slices.ContainsFunc(r.Reads, is) || slices.ContainsFunc(r.Where, func(c match.Condition) bool {
			return c.Kind() == match.Equal && !c.Not() && c.Arg() != d.entry.Capabilities.Exec && is(c.Value())
		})
	})
	return found
}

// addReadsOfRules adds to d.reads the secret-looking files that rules open which allow the
// call.
func (p *Policy) addReadsOfRules(d *Decision) {
	p.allowing(d, func(r *Rule) {
		for _, file := range r.Reads {
			host := paths.Absolute(file, d.call.Cwd)
			name := paths.Guest(host)
			s, secret := paths.SpecialForRead(name)
			if _, seen := d.access.sees(host); secret && seen && !d.hasRead(name) {
				d.reads = append(d.reads, specialPath{name, s})
			}
		}
	})
}

// allowing calls yield with every rule that allows the call, maybe more than once for a rule.
func (p *Policy) allowing(d *Decision, yield func(*Rule)) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	args := d.args()
	p.candidates(d, args, func(_ int, r *Rule) {
		if r.Effect == Allow && r.matches(d, args) == match.Yes && p.holds(&r.Binding, d.entry) {
			yield(r)
		}
	})
}

// specialPaths returns the special paths that the call changes or, without such, reads. If
// there are any, an answer holds for this call only.
func (d Decision) specialPaths() []specialPath {
	if len(d.changed) > 0 {
		return d.changed
	}
	return d.reads
}

// namedRule returns the smallest rule that allows the call and names its special paths: the
// only path, if an argument names it, or all files that a command reads. It fails if no such
// rule can be written.
func (d Decision) namedRule() (Rule, bool) {
	special := d.specialPaths()
	r := d.minimalRule()
	if d.entry.Capabilities.Exec != "" {
		for _, s := range special {
			r.Reads = append(r.Reads, d.relative(s.path))
		}
		again, err := ParseRule(r.String())
		return r, err == nil && len(d.changed) == 0 && slices.Equal(again.Reads, r.Reads)
	}
	if len(special) != 1 || len(d.changed) > 0 && len(d.reads) > 0 {
		return r, false
	}
	for _, f := range PathArgs(d.call, d.entry) {
		if paths.Guest(f.Name) != special[0].path {
			continue
		}
		texts := d.args().Texts(f.Arg)
		if len(texts) != 1 {
			continue
		}
		c, err := match.NewCondition(match.Equal, f.Arg, texts[0], false)
		r.Where = []match.Condition{c}
		return r, err == nil && r.Check() == nil
	}
	return r, false
}

// relative returns a guest path relative to the working directory of the call, if it is in
// there; otherwise unchanged.
func (d Decision) relative(name string) string {
	return strings.TrimPrefix(name, strings.TrimSuffix(paths.Guest(d.call.Cwd), "/")+"/")
}

// PathArgs returns the paths in the arguments of a call, going by their text. It reads the
// argument that the tool declares for its file or its patch, and all whose names end with
// path, file, paths or files, texts and lists of texts. It returns at most 256 paths besides
// those of a patch.
func PathArgs(call tool.Call, entry *tool.Entry) []NamedFile {
	var args map[string]json.RawMessage
	if json.Unmarshal(call.Args, &args) != nil {
		return nil
	}
	var out []NamedFile
	add := func(arg string, raw json.RawMessage) {
		if s, ok := match.Text(raw); ok && s != "" && len(out) < maxPathArgs {
			out = append(out, NamedFile{Arg: arg, Name: paths.Absolute(filename.Parse(s), call.Cwd)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(args)) {
		end := strings.TrimSuffix(strings.ToLower(name), "s")
		if !strings.HasSuffix(end, "path") && !strings.HasSuffix(end, "file") && (entry.Content == nil || entry.Content.Path != name) {
			continue
		}
		var list []json.RawMessage
		add(name, args[name])
		if json.Unmarshal(args[name], &list) == nil {
			for i, raw := range list {
				add(match.Pointer(name, strconv.Itoa(i)), raw)
			}
		}
	}
	if c := entry.Content; c != nil && c.Patch != "" {
		there, made, _ := c.Files(call.Args)
		for _, name := range slices.Concat(there, made) {
			out = append(out, NamedFile{Arg: tool.PatchPath, Name: paths.Absolute(filename.Parse(name), call.Cwd)})
		}
	}
	return out
}

// CommandArgs returns the paths that the command of the call may name: each word, and the part
// of a word after its first "=", at most 256. Nil: the call runs no command.
func CommandArgs(call tool.Call, entry *tool.Entry) []NamedFile {
	exec := entry.Capabilities.Exec
	if exec == "" {
		return nil
	}
	text, _ := match.NewArguments(call.Args, call.Cwd, match.NewWork()).Text(exec)
	seen := map[string]bool{}
	var out []NamedFile
	for _, word := range command.Parse(text).Words() {
		_, value, _ := strings.Cut(word, "=")
		for _, name := range []string{word, value} {
			if name != "" && !seen[name] && len(out) < maxPathArgs {
				seen[name] = true
				out = append(out, NamedFile{Arg: exec, Name: paths.Absolute(name, call.Cwd)})
			}
		}
	}
	return out
}

// maxPathArgs limits the paths that are checked among the arguments of a call, and again among
// the words of its command; further ones are not. The paths of a patch do not count.
const maxPathArgs = 256

// warning returns the warning about the special paths of the call, for a person.
func (d Decision) warning() string {
	var all []string
	var kinds []string
	more := map[string]int{}
	for _, s := range d.changed {
		w := s.What + ": " + s.Why
		if more[w]++; more[w] == 1 {
			kinds, all = append(kinds, w), append(all, "it changes "+strconv.Quote(s.path))
		}
	}
	for i, w := range kinds {
		if n := more[w] - 1; n > 0 {
			all[i] += fmt.Sprintf(" and %d more", n)
		}
		all[i] += ", " + w
	}
	for _, s := range d.reads {
		all = append(all, "what it reads goes to the provider, and "+strconv.Quote(s.path)+" looks like a secret, "+s.What)
	}
	if len(all) > maxWarned {
		all = append(all[:maxWarned], fmt.Sprintf("and %d more such paths", len(all)-maxWarned))
	}
	return strings.Join(all, "; ")
}

// maxWarned limits the parts of a warning: each is about a path that is read, or about all
// changed paths of a kind. The others are counted.
const maxWarned = 5
