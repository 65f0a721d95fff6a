package diff

import (
	"cmp"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/stockade-dev/stockade/host/git"
	"github.com/stockade-dev/stockade/host/tool"
)

// gitDir is where git keeps a repository.
const gitDir = ".git"

// cutRepository cuts a path at its first .git: the directory that has it, and the
// name in there.
func cutRepository(path string) (root, rel string, inside bool) {
	root, rel, inside = strings.Cut(path+"/", "/"+gitDir+"/")
	return root, strings.TrimSuffix(rel, "/"), inside
}

// repository is what was changed in one.
type repository struct {
	root    string
	changes []inside // by name; there may be two of one, of what took another's place
	dirs    []*git.Dir
	fresh   bool            // there was none before
	ended   map[string]bool // directories that are gone

	created, removed int // files of objects
	told             Repository
}

// inside is a change in a repository.
type inside struct {
	rel string // in .git, or in the git directory of a worktree or submodule there
	in  string // which that is, in .git; empty: it is .git
	tool.Change
}

// repositories takes those out of changes, in their order.
func repositories(changes []tool.Change, dirs []*git.Dir) (found []*repository, others []tool.Change) {
	by := map[string]*repository{}
	for _, c := range changes {
		root, rel, in := cutRepository(c.Path)
		if !in {
			others = append(others, c)
			continue
		}
		r := by[root]
		if r == nil {
			r = &repository{root: root, ended: map[string]bool{}, told: Repository{Root: root}}
			for _, d := range dirs {
				if at, _, _ := cutRepository(d.Path); at == root {
					r.dirs = append(r.dirs, d)
				}
			}
			by[root], found = r, append(found, r)
		}
		at := inside{rel: rel, Change: c}
		for _, d := range r.dirs {
			if _, in, _ := cutRepository(d.Path); len(in) > len(at.in) && strings.HasPrefix(rel, in+"/") {
				at.in, at.rel = in, rel[len(in)+1:]
			}
		}
		r.changes = append(r.changes, at)
		r.fresh = r.fresh || rel == "" && c.Kind == tool.DirectoryCreated
		if c.Kind == tool.DirectoryRemoved {
			r.ended[rel] = true
		}
	}
	for _, r := range found {
		slices.SortStableFunc(r.changes, func(a, b inside) int { return strings.Compare(a.in+a.rel, b.in+b.rel) })
	}
	return found, others
}

func (r *repository) say(f Fact) { r.told.Facts = append(r.told.Facts, f) }

// maxFacts is how much is told of the files of a repository.
const maxFacts = 200

// tells says what git has done, and lists the changes that say more than that: all that
// are not known to say nothing else.
func (r *repository) tells(ctx context.Context) (told Repository, rest []tool.Change) {
	for _, c := range r.changes {
		if ctx.Err() != nil || len(r.told.Facts) >= maxFacts || !r.tell(c) {
			rest = append(rest, c.Change)
		} else {
			r.told.Told = append(r.told.Told, c.Change)
		}
	}
	for _, d := range r.dirs {
		r.means(d)
	}
	if r.created > 0 && r.removed == 0 && len(r.told.Facts) == 0 {
		r.say(Fact{Kind: FactObjects, Count: r.created})
	}
	if len(r.told.Facts)+len(r.told.Held)+len(rest) == 0 {
		r.say(Fact{Kind: FactOwn, Count: len(r.changes)})
	}
	return r.told, rest
}

// means tells of one git directory what its files mean.
func (r *repository) means(d *git.Dir) {
	_, in, _ := cutRepository(d.Path)
	say := func(f Fact) {
		f.In = in
		r.say(f)
	}
	some := func(kind FactKind, names []string) {
		if len(names) > 0 {
			say(Fact{Kind: kind, Files: names[:min(len(names), maxFiles)], More: max(len(names)-maxFiles, 0)})
		}
	}
	if d.Older {
		say(Fact{Kind: FactOlder, Count: d.Commits, Unseen: true})
	}
	if d.More || len(d.Unseen) > 0 {
		say(Fact{Kind: FactUnseen, Files: d.Unseen, Unseen: true})
	}
	if d.Missing > 0 {
		say(Fact{Kind: FactLost, Count: d.Missing})
	}
	for i, ref := range ordered(d.Refs) {
		if ref.Name == "HEAD" && ref.After == "" { // its file is told to be gone
			continue
		}
		if i == maxRefs {
			say(Fact{Kind: FactRefs, Count: len(d.Refs) - i, Unseen: true})
			break
		}
		if ref.Name != theStash || len(d.Stashed)+len(d.Dropped) == 0 {
			say(factOf(ref))
		}
	}
	stashes := func(kind FactKind, said []string) {
		if len(said) > 0 {
			say(Fact{Kind: kind, Steps: said[:min(len(said), maxFiles)], More: max(len(said)-maxFiles, 0)})
		}
	}
	stashes(FactStashed, d.Stashed)
	stashes(FactDropped, d.Dropped)
	for _, h := range d.Held {
		if h.After == nil {
			say(Fact{Kind: FactModule, Name: h.Name, To: h.ID})
			continue
		}
		kind := tool.Modified
		if h.Before == nil {
			kind = tool.Created
		}
		r.told.Held = append(r.told.Held, Content{h.Commit, tool.Change{Path: h.Path, Kind: kind, Before: h.Before, After: h.After}})
	}
	some(FactSame, d.Same)
	if d.Ends > 0 {
		say(Fact{Kind: FactEnds, Count: d.Ends})
	}
	some(FactTaken, d.Gone)
	some(FactStays, d.Stays)
	some(FactFlags, d.Flagged)
}

// maxFiles is how many names a fact has, and maxRefs how many references are told each.
const (
	maxFiles = 12
	maxRefs  = 50
)

// replaces is where references are that git shows other objects by.
const replaces = "refs/replace/"

// ordered are references in the order in which these are told.
func ordered(refs []git.Ref) []git.Ref {
	return slices.SortedStableFunc(slices.Values(refs), func(a, b git.Ref) int { return cmp.Compare(orderOf(a), orderOf(b)) })
}

// orderOf is where a reference stands among those of which not all are told: what loses or
// hides something comes first.
func orderOf(ref git.Ref) int {
	switch {
	case len(ref.Lost) > 0 || ref.LostMore:
		return 0
	case strings.HasPrefix(ref.Name, replaces):
		return 1
	case ref.After == "":
		return 2
	case ref.Before != "" && !ref.Forward:
		return 3
	}
	return 4
}

// factOf tells of a reference.
func factOf(ref git.Ref) Fact {
	f := Fact{Kind: FactRef, Name: ref.Name, From: ref.Before, To: ref.After, Count: ref.New, Gained: ref.Gained, Subject: ref.Subject, Forward: ref.Forward, Guess: ref.LostMore}
	f.Steps = ref.Lost[:min(len(ref.Lost), maxFiles)]
	f.More = len(ref.Lost) - len(f.Steps)
	branch, onBranch := strings.CutPrefix(ref.Name, branches)
	switch target, symbolic := strings.CutPrefix(ref.After, "ref: "+branches); {
	case ref.After == "":
		f.Kind = FactRefGone
	case ref.Name == "HEAD" && symbolic:
		f.Kind, f.Name = FactOnBranch, target
	case ref.Name == "HEAD" && ref.New == 0:
		f.Kind = FactDetached
	case ref.Name != "HEAD" && !onBranch:
	case isHash(ref.Before) && !ref.Forward:
		f.Kind, f.Name = FactRewritten, branch
	case ref.New > 0:
		f.Kind, f.Name = FactCommits, branch
	}
	return f
}

// rules say of the files of a repository what to tell of one that is new or has
// changed, and report whether that is all; without say there is nothing to tell. A
// pattern that ends in a slash is for all below it. What no rule is for is shown.
var rules = []struct {
	pattern string
	say     func(r *repository, c inside) bool
	gone    bool // say tells of one that is gone, too
}{
	{"objects/info/commit-graph", (*repository).derived, true},
	{"objects/info/commit-graphs/", (*repository).derived, true},
	{"objects/pack/multi-pack-index", (*repository).derived, true},
	{"objects/info/", func(*repository, inside) bool { return false }, false},
	{"objects/??/*", (*repository).object, true},
	{"objects/pack/*", (*repository).object, true},
	{"refs/", (*repository).meant, true},
	{"packed-refs", (*repository).meant, true},
	{"HEAD", (*repository).meant, false},
	{"index", (*repository).meant, false},
	{"info/exclude", func(r *repository, _ inside) bool { return r.fresh }, false},
	{"logs/", (*repository).log, true},
	{pattern: "COMMIT_EDITMSG"},
	{"ORIG_HEAD", (*repository).ids, false},
	{"FETCH_HEAD", (*repository).ids, false},
	{"AUTO_MERGE", (*repository).ids, true},
	{pattern: "description"}, {pattern: samples},
}

// samples are the only files that git itself makes executable.
const samples = "hooks/*.sample"

// ids reports whether each line of a file begins with a hash, as in those that git writes
// of what it was at.
func (r *repository) ids(c inside) bool {
	if c.After == nil {
		return true
	}
	data, err := head(c.After, maxText+1)
	for line := range strings.Lines(string(data)) {
		id, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !isHash(id) {
			return false
		}
	}
	return err == nil && len(data) <= maxText
}

// meant reports whether what a file means is told: whether its git directory was looked
// at.
func (r *repository) meant(c inside) bool {
	return slices.ContainsFunc(r.dirs, func(d *git.Dir) bool {
		_, in, _ := cutRepository(d.Path)
		return in == c.in
	})
}

// derived tells that what git has made of other files is gone, once. What a command
// writes of these the stage leaves out.
func (r *repository) derived(c inside) bool {
	f := Fact{Kind: FactDerived, In: c.in}
	if c.After == nil && !slices.ContainsFunc(r.told.Facts, func(g Fact) bool { return g.Kind == FactDerived && g.In == c.in }) {
		r.say(f)
	}
	return c.After == nil
}

// log tells of a log of a reference that has lost entries. That of the stash is told
// with it.
func (r *repository) log(c inside) bool {
	name := strings.TrimPrefix(c.rel, "logs/")
	lost, ok := git.Dropped(c.Before, c.After)
	switch {
	case !ok || c.After != nil && !(name == "HEAD" || strings.HasPrefix(name, "refs/")) || c.After != nil && !appended(c.Before, c.After):
		return false
	case c.Before == nil || name == theStash:
	case c.After == nil:
		r.say(Fact{Kind: FactLogGone, In: c.in, Name: name, Count: len(lost)})
	case len(lost) > 0:
		r.say(Fact{Kind: FactLog, In: c.in, Name: name, Count: len(lost)})
	}
	return true
}

// logLine is a line of a log of a reference, with what follows the id before in a group.
var logLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:[0-9a-f]{40}|[0-9a-f]{64}) ([0-9a-f]{40,64} [^\t\n]*> \d+ [-+]\d{4}(?:\t[^\n]*)?)\n$`)
})

// appended reports whether a log of a reference has nothing but such lines, and new ones
// only behind those that were there, of which some may be gone.
func appended(before, after *tool.Version) bool {
	was := map[string][]int{} // where each entry stood, without the id before
	if before != nil {
		data, _ := head(before, maxLog)
		n := 0
		for line := range strings.Lines(string(data)) {
			_, entry, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			was[entry], n = append(was[entry], n), n+1
		}
	}
	data, err := head(after, maxLog+1)
	if err != nil || len(data) > maxLog {
		return false
	}
	next, fresh, passed := 0, false, map[string]bool{}
	for line := range strings.Lines(string(data)) {
		m := logLine().FindStringSubmatch(line)
		if m == nil {
			return false
		}
		for entry := m[1]; len(was[entry]) > 0 && was[entry][0] < next; was[entry] = was[entry][1:] {
			passed[entry] = true
		}
		switch at := was[m[1]]; {
		case len(at) == 0:
			fresh = true
		case fresh:
			return false
		default:
			next, was[m[1]] = at[0]+1, at[1:]
		}
		if fresh && passed[m[1]] { // it stood further up
			return false
		}
	}
	return true
}

// maxLog is how many bytes a log of a reference has at most that is read.
const maxLog = 16 << 20

// tell says what a change is about, and reports whether there is nothing else to it.
func (r *repository) tell(c inside) bool {
	kind, name, _ := strings.Cut(c.rel, "/")
	if open, ok := openIn[kind]; ok {
		switch {
		case c.rel == kind && c.Kind == tool.DirectoryRemoved:
			r.say(Fact{Kind: FactEnded, Name: kind})
			return true
		case c.After == nil: // with the directory, or one by one
			return r.ended[kind]
		case name == open:
			r.say(todo(kind, c.After))
			return false
		}
		return c.After.Mode.IsDir() && quietDirectory(c)
	}
	if c.rel == "" && c.Kind == tool.DirectoryCreated {
		r.say(Fact{Kind: FactNew})
	}
	if c.Kind == tool.DirectoryRemoved || c.After != nil && c.After.Mode.IsDir() {
		return quietDirectory(c)
	}
	for _, rule := range rules {
		matches := strings.HasSuffix(rule.pattern, "/") && strings.HasPrefix(c.rel, rule.pattern)
		if !matches {
			matches, _ = path.Match(rule.pattern, c.rel)
		}
		if !matches {
			continue
		}
		switch {
		case c.Kind == tool.Removed:
			return rule.gone && regular(c.Before) && rule.say(r, c)
		case !regular(c.After) || c.Before != nil && !regular(c.Before):
			return false
		case c.Kind == tool.Times:
			return rule.pattern != "objects/info/"
		case c.Kind == tool.ModeChanged:
			return false
		}
		all := rule.say == nil || rule.say(r, c)
		// What had another name says where from; what has two is changed by the other one.
		return all && (c.Kind == tool.Created || c.Kind == tool.Modified) && !forOthers(c.After) &&
			(c.After.Mode&0o111 == 0 || rule.pattern == samples) &&
			(c.After.Twin == "" || strings.HasPrefix(c.rel, "objects/"))
	}
	return false
}

// quietDirectory reports whether a change of a directory says nothing that what is
// said of its files does not.
func quietDirectory(c inside) bool {
	switch c.Kind {
	case tool.DirectoryCreated, tool.ModeChanged:
		return !forOthers(c.After)
	case tool.DirectoryRemoved:
		return strings.HasPrefix(c.rel, "objects/") || strings.HasPrefix(c.rel, "refs/")
	}
	return c.Kind == tool.Times
}

// object counts one, or several in a pack.
func (r *repository) object(c inside) bool {
	name, packed := strings.CutPrefix(strings.TrimPrefix(c.rel, "objects/"), "pack/")
	switch c.Kind {
	case tool.Created:
		if packed {
			end := path.Ext(name)
			name, packed = strings.CutPrefix(strings.TrimSuffix(name, end), "pack-")
			if !packed || end != ".pack" && end != ".idx" {
				return false
			}
		}
		if !isHash(strings.Replace(name, "/", "", 1)) {
			return false
		}
		r.created++
	case tool.Removed:
		if packed && !strings.HasPrefix(name, "pack-") {
			return false
		}
		r.removed++
	default: // git writes none anew
		return false
	}
	return true
}

// openIn are the directories of what git goes on with when it is told to, and the file
// in each that says how.
var openIn = map[string]string{"rebase-merge": "git-rebase-todo", "rebase-apply": "next", "sequencer": "todo"}

// maxSteps is how many steps of a rebase are told.
const maxSteps = 50

// plainSteps are those of a rebase that only take over commits.
var plainSteps = []string{"pick", "p", "reword", "r", "edit", "e", "squash", "s", "fixup", "f", "drop", "d"}

// todo says what git does next: first what else than to take over commits, so that
// none of that is among those that are only counted.
func todo(operation string, v *tool.Version) Fact {
	f := Fact{Kind: FactStopped, Name: operation}
	data, err := head(v, maxText+1)
	if f.Unread = err != nil || len(data) > maxText; f.Unread {
		return f
	}
	var plain []string
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case slices.Contains(plainSteps, strings.Fields(line)[0]):
			plain = append(plain, line)
		default:
			f.Steps = append(f.Steps, line)
		}
	}
	if len(f.Steps) > maxSteps {
		return Fact{Kind: FactStopped, Name: operation, Unread: true}
	}
	f.Steps = append(f.Steps, plain...)
	if f.More = max(len(f.Steps)-maxSteps, 0); f.More > 0 {
		f.Steps = f.Steps[:maxSteps]
	}
	return f
}

// The names of references.
const (
	branches = "refs/heads/"
	theStash = "refs/stash" // to which commits are added, none of which follows another
)

// isHash reports whether git could name an object so.
func isHash(s string) bool {
	_, err := hex.DecodeString(s)
	return err == nil && (len(s) == 2*sha1.Size || len(s) == 2*sha256.Size)
}

// head is the first bytes of a file.
func head(v *tool.Version, most int64) ([]byte, error) {
	if !regular(v) {
		return nil, fmt.Errorf("it is no file")
	}
	r, err := v.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(io.LimitReader(r, most))
}
