package policy

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/stockade-dev/stockade/host/diff"
	"github.com/stockade-dev/stockade/host/git"
	"github.com/stockade-dev/stockade/host/policy/paths"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/sdk/go/filename"
)

// Mode is how much of a chat is asked about.
type Mode string

// The modes.
const (
	ModeAsk  Mode = "ask"  // what the rules say
	ModeAuto Mode = "auto" // plain changes below some directories are made without a question
	ModePlan Mode = "plan" // the model changes no file and reaches no host
)

// Freedom holds the mode of one chat, the directories below which plain changes need no answer,
// and what such changes have removed. It ends with the chat. Its zero value is ModeAsk. It is
// safe for concurrent use.
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
	f.open, f.plan, f.removed = append(f.open, o), false, f.removed+removed
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

// Note remembers a change that was made by a call of the chat. sum is the SHA-256 of the new
// content in hexadecimal digits; empty: it is not known, and removing the file asks.
func (f *Freedom) Note(kind tool.ChangeKind, path, from, sum string) {
	if kind == tool.ModeChanged || kind == tool.TimesChanged {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	was := cmp.Or(from, path)
	known := kind == tool.Created && len(f.made) < maxMade || f.made[was] != ""
	delete(f.made, was)
	if delete(f.made, path); known && sum != "" {
		if f.made == nil {
			f.made = map[string]string{}
		}
		f.made[path] = sum
	}
}

// hasMade reports whether a call of the chat has made this version of a file.
func (f *Freedom) hasMade(c tool.Change) bool {
	f.mu.Lock()
	made := f.made[filename.UTF8(cmp.Or(c.From, c.Path))]
	f.mu.Unlock()
	if made == "" || !c.Before.Mode.IsRegular() {
		return false
	}
	sum, err := c.Before.SHA256()
	return err == nil && fmt.Sprintf("%x", sum) == made
}

// cover returns the open directory that holds all changes of a call, with an answer to all rules
// that ask, and counts the removed files. Its Dir is empty if there is none. why is set if too many
// files would be removed.
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

// decideFreely allows a call that asks only about plain changes, if the chat is free to make
// them. Otherwise it sets freeDir, if an answer can open the working directory for them. In
// the home directory and in the root it does nothing.
func (d Decision) decideFreely(ctx context.Context, changes []tool.Change, heads *git.Heads, dirs []*git.Dir) Decision {
	f, dir := d.policy.freedom, d.call.Cwd
	if dir == d.policy.home || dir == filepath.Dir(dir) || d.call.Caller == tool.CallerMCP || d.effect != Ask || !d.CanRehearse() || len(d.specialPaths()) > 0 || d.histories != nil ||
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
	case why == "" && inside && d.call.Turn > 0 && d.access.writes(dir):
		d.freeDir, d.freeRemoves = dir, removed
	}
	return d
}

// writes reports whether tools may change the directory.
func (s *access) writes(dir string) bool {
	m, seen := s.sees(dir)
	return seen && m.Write
}

// OpenFreedom carries out the answer [ScopeFree] to the question of this decision. It does
// nothing if the question did not offer it.
func (d Decision) OpenFreedom() {
	if d.offersFreedom() {
		d.policy.freedom.add(OpenDir{d.freeDir, Provenance{Source: SourceSession}, d.personalAsking}, d.freeRemoves)
	}
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
		for _, name := range []string{c.Path, c.From} {
			if _, secret := paths.SpecialForRead(paths.Guest(name)); name != "" && secret {
				return 0, "it changes what looks like a secret"
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
	case dir.MissingObjects > 0, len(dir.Flagged) > 0:
		return "objects of a git repository are gone, or git would not look at some files any more"
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
// its place. A file that is moved as it is, and what git itself replaces, is not lost.
func loses(c tool.Change) bool {
	was, is := c.Before, c.After
	rel, inside := inGit(paths.Guest(c.Path))
	switch {
	case was == nil || was.Mode.IsDir() || inside && managedByGit(rel):
		return false
	case is == nil || is.Mode.Type() != was.Mode.Type():
		return true
	case c.Kind != tool.Renamed:
		return was.Size > 0 && is.Size == 0 && was.Mode.IsRegular()
	case is.Size != was.Size || is.Target != was.Target || !was.Mode.IsRegular():
		return is.Size != was.Size || is.Target != was.Target
	}
	before, err := was.SHA256()
	after, err2 := is.SHA256()
	return err != nil || err2 != nil || before != after
}

// managedByGit reports whether git removes this file of a git directory in everyday use, and
// what is lost by that is seen in its references, objects and reflogs.
func managedByGit(rel string) bool {
	top, _, nested := strings.Cut(rel, "/")
	if nested {
		return slices.Contains([]string{"refs", "objects", "logs", "rebase-merge", "rebase-apply", "sequencer"}, top)
	}
	ends := func(end string) bool { return strings.HasSuffix(rel, end) }
	return slices.ContainsFunc([]string{"_HEAD", "MSG", ".lock"}, ends) || slices.Contains([]string{"index", "packed-refs", "MERGE_MODE", "AUTO_MERGE", "gc.pid"}, rel)
}
