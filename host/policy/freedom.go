package policy

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/stockade-dev/stockade/host/diff"
	"github.com/stockade-dev/stockade/host/git"
	"github.com/stockade-dev/stockade/host/policy/paths"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/sdk/go/filename"
)

// Mode decides which changes of a chat need an answer of the person.
type Mode string

// The modes.
const (
	ModeAsk  Mode = "ask"  // what the rules say
	ModeAuto Mode = "auto" // plain changes below some directories are made without a question
	ModePlan Mode = "plan" // the model changes no file and reaches no host
)

// Freedom holds the mode of one chat, and what it may change without an answer. Its zero value is
// ModeAsk. It is safe for concurrent use.
type Freedom struct {
	mu      sync.Mutex
	plan    bool
	open    []OpenDir
	removed int               // files that were removed without a question, see maxRemoved
	ignored map[string]bool   // paths that git ignores and whose changes were answered with yes
	made    map[string]string // hashes (SHA-256) of the files that calls of this chat have made
}

// OpenDir is a directory below which plain changes need no answer.
type OpenDir struct {
	Dir       string
	From      Provenance // place where it was opened
	overrides []string   // identities of the rules of one's own that this answers
}

// Limits of a [Freedom].
const (
	maxRemoved = 20      // files that plain changes remove in one chat; then each removal asks
	maxMade    = 100_000 // files that are remembered as made by the chat; removing another one asks
)

// Open lets plain changes below a directory be made without a question from now on.
func (f *Freedom) Open(dir string, from Provenance) { f.add(OpenDir{Dir: dir, From: from}, 0) }

func (f *Freedom) add(o OpenDir, removed int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.plan { // which was chosen after the question
		f.open, f.removed = append(f.open, o), f.removed+removed
	}
}

// Opened returns the open directories.
func (f *Freedom) Opened() []OpenDir {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.open)
}

// SetMode changes the mode. ModeAuto opens the directory dir; the other modes close all.
func (f *Freedom) SetMode(m Mode, dir string) {
	f.mu.Lock()
	f.open, f.plan = nil, m == ModePlan
	f.mu.Unlock()
	if m == ModeAuto {
		f.Open(dir, Provenance{Source: SourceSession})
	}
}

// Mode returns the mode.
func (f *Freedom) Mode() Mode {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.plan:
		return ModePlan
	case len(f.open) > 0:
		return ModeAuto
	}
	return ModeAsk
}

// movedHere is the value in Freedom.made for a path to which a call moved what no call has made.
const movedHere = "moved"

// Note remembers a change that was made by a call of the chat. before and sum are the SHA-256 of the
// old and of the new content in hexadecimal digits; empty: not known, and removing the file asks.
func (f *Freedom) Note(kind tool.ChangeKind, path, from, before, sum string) {
	if kind == tool.ModeChanged || kind == tool.TimesChanged {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.made == nil {
		f.made = map[string]string{}
	}
	was := cmp.Or(from, path)
	old := f.made[was]
	delete(f.made, was)
	delete(f.made, path)
	switch known := kind == tool.Created && len(f.made) < maxMade || before != "" && before == old; {
	case known && sum != "":
		f.made[path] = sum
	case kind == tool.Renamed, kind == tool.Modified && old == movedHere:
		f.made[path] = movedHere
	}
}

// hasMade reports whether a call of the chat has made this version of a file.
func (f *Freedom) hasMade(c tool.Change) bool {
	f.mu.Lock()
	made := f.made[filename.UTF8(c.OldPath())]
	f.mu.Unlock()
	return made != "" && made == sumOf(c.Before)
}

// sumOf returns the SHA-256 of a regular file in hexadecimal digits; empty: it cannot be read.
func sumOf(v *tool.Version) string {
	if v.Mode.IsRegular() {
		if sum, err := v.SHA256(); err == nil {
			return fmt.Sprintf("%x", sum)
		}
	}
	return ""
}

// cover returns the open directory that holds all changes of a call and answers all rules that ask;
// its Dir is empty if there is none. It counts the removed files, and why says if they are too many.
func (f *Freedom) cover(d *Decision, changes []tool.Change, removed int) (_ OpenDir, why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.removed+removed > maxRemoved {
		return OpenDir{}, fmt.Sprintf("more than %d files would be removed in this chat without a question", maxRemoved)
	}
	for _, o := range f.open {
		unanswered := func(id string) bool { return !slices.Contains(o.overrides, id) }
		if changesOnlyIn(o.Dir, changes) && !slices.ContainsFunc(d.personalAsking, unanswered) {
			f.removed += removed
			return o, ""
		}
	}
	return OpenDir{}, ""
}

// PlanRule is recorded as the rule for a call that [ModePlan] denies.
const PlanRule = "plan"

// planned reports whether ModePlan applies to the call. It does not to a person's own calls.
func (d *Decision) planned() bool {
	return d.call.Caller != tool.CallerPerson && d.policy.freedom.Mode() == ModePlan
}

// forbiddenByPlan returns the reason why ModePlan denies the call; empty: it does not.
func (d *Decision) forbiddenByPlan(tier func() Tier) string {
	const planning = ", and the chat is in plan mode"
	switch c := d.entry.Capabilities; {
	case !d.planned():
		return ""
	case c.Files == tool.FilesWrite:
		return "it changes files" + planning
	case c.Network != tool.NetworkNone, d.execNetwork:
		return "it reaches the network" + planning
	case c.Exec != "" && tier() == TierNone:
		return "nothing keeps commands from changing files here" + planning
	}
	return ""
}

// decideFreely allows a call that asks only about plain changes below an open directory. Else it
// sets freeDir if [ScopeFree] can allow them. It does nothing if Cwd is or holds the home directory.
func (d Decision) decideFreely(ctx context.Context, changes []tool.Change, heads *git.Heads, dirs []*git.Dir) Decision {
	f, dir := d.policy.freedom, d.call.Cwd
	if paths.In(cmp.Or(d.policy.home, "/"), dir) || d.call.Caller == tool.CallerMCP || !d.CanRehearse() || len(d.specialPaths()) > 0 || d.histories != nil ||
		d.policy.confirmAll || len(d.policy.ceiling.NoAuto) > 0 || d.by.Source != SourceDefault && !d.onlyPersonalRulesAsk() || d.othersAsk {
		return d
	}
	var open OpenDir
	removed, why := d.whyNotPlain(ctx, changes, heads, dirs)
	if why == "" {
		open, why = f.cover(&d, changes, removed)
	}
	inside := changesOnlyIn(dir, changes)
	if why == "" && !inside && len(d.personalAsking) == 0 {
		why = "it changes something outside of the directory"
	}
	switch {
	case open.Dir != "":
		by := open.From.decider("auto below " + open.Dir)
		d.setOutcome(Allow, by, fmt.Sprintf("%s says allow, and its changes are plain", by.Rule))
	case why != "" && f.Mode() == ModeAuto:
		d.reason += ", and " + why
	case why == "" && inside && d.call.Turn > 0:
		d.freeDir, d.freeRemoves = dir, removed
	}
	return d
}

// offersFreedom reports whether the question offers [ScopeFree]. As with other answers that last,
// the changes of the question must all be shown.
func (d Decision) offersFreedom() bool {
	return d.freeDir != "" && d.effect == Ask && d.diff.ShowsAll()
}

// freeWords returns the meaning of the answer [ScopeFree], for a person.
func (d Decision) freeWords() string {
	text := fmt.Sprintf("allow every built-in tool and every command to change files below %s, until this chat ends; "+
		"what is special, lost to git, or removed in numbers is still asked about", d.freeDir)
	if len(d.personalAsking) > 0 {
		text += "; the rules of yours that ask here do not ask again"
	}
	return text
}

// changesOnlyIn reports whether all changes are in a directory. A link counts as where it leads.
func changesOnlyIn(dir string, changes []tool.Change) bool {
	return !slices.ContainsFunc(changes, func(c tool.Change) bool {
		target, sure := leadsTo(c)
		names := []string{c.Path, c.From, target}
		if c.After != nil {
			names = append(names, c.After.HardLink)
		}
		outside := func(name string) bool { return name != "" && !paths.In(name, dir) }
		return !sure || slices.ContainsFunc(names, outside) || c.Path == dir && c.After == nil
	})
}

// whyNotPlain returns the number of files that the changes remove, and the reason why a person
// has to see them; empty: they are plain.
func (d Decision) whyNotPlain(ctx context.Context, changes []tool.Change, heads *git.Heads, dirs []*git.Dir) (removed int, why string) {
	for _, dir := range dirs {
		if why := whyNotPlainInGit(dir); why != "" {
			return 0, why
		}
	}
	for _, c := range changes {
		for _, name := range []string{paths.Guest(c.Path), paths.Guest(c.OldPath())} {
			if _, secret := paths.SpecialForRead(name); secret {
				return 0, "it changes what looks like a secret"
			}
			if _, rel, inside := git.CutDir(name); strings.EqualFold(path.Base(name), ".gitignore") || inside && strings.HasSuffix(rel, "info/exclude") {
				return 0, "it changes what git ignores"
			}
		}
		if c.InRepository {
			return 0, "it may change a git repository"
		}
	}
	for _, c := range diff.DetectRenames(ctx, changes) {
		if !loses(c) {
			continue
		}
		if removed++; removed <= maxRemoved && !d.policy.freedom.hasMade(c) && !heads.Holds(c) {
			return 0, "it removes a file that git does not hold and this chat has not made"
		}
	}
	return removed, ""
}

func whyNotPlainInGit(dir *git.Dir) string {
	switch {
	case !dir.IsComplete():
		return "not all of a git repository was checked"
	case len(dir.Stashed)+len(dir.Dropped) > 0, dir.LogsRewritten:
		return "it changes the stashes or a reflog of git"
	case dir.MissingObjects > 0, dir.Unstaged, len(dir.Flagged) > 0:
		return "objects of a git repository or the only version of a file are gone, or git would not look at some files any more"
	}
	for _, r := range dir.Refs {
		switch {
		case len(r.LostCommits) > 0, r.MayHaveLostMore, r.After == git.Unreadable:
			return "a reference of git loses commits"
		case r.Name == "refs/stash", strings.HasPrefix(r.Name, "refs/tags/") && r.Before != "":
			return "it changes the stashes of git, or moves or removes a tag"
		}
	}
	return ""
}

// loses reports whether a change removes a file, empties it or puts something else than a file in
// its place. A file that is moved as it is, but not in .git, and what git itself replaces, is not lost.
func loses(c tool.Change) bool {
	was, is := c.Before, c.After
	_, to, inside := git.CutDir(paths.Guest(c.Path))
	_, from, fromGit := git.CutDir(paths.Guest(c.OldPath()))
	switch {
	case was == nil || was.Mode.IsDir():
		return false
	case inside && fromGit && managedByGit.MatchString(to) && managedByGit.MatchString(from):
		return path.Base(from) == "autostash" || from == "index" && (is == nil || to != from)
	case is == nil || is.Mode.Type() != was.Mode.Type() || c.From != "" && (inside || fromGit):
		return true
	case c.Kind != tool.Renamed:
		return was.Size > 0 && is.Size == 0 && was.Mode.IsRegular()
	}
	return is.Size != was.Size || is.Target != was.Target || was.Mode.IsRegular() && (sumOf(was) != sumOf(is) || sumOf(is) == "")
}

// managedByGit matches files of a git directory that git removes or replaces in everyday use. What
// is lost by that is seen in its references, objects and reflogs.
var managedByGit = regexp.MustCompile(`^((refs|logs|rebase-merge|rebase-apply|sequencer)/.*|objects/([0-9a-f]{2}/[0-9a-f]+|(pack|info)/.*)|[^/]*(_HEAD|MSG)|index|packed-refs|MERGE_MODE|AUTO_MERGE|gc\.pid)$`)
