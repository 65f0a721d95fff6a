package diff

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
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

	facts []fact
	held  []tool.Change // from what the worktree has to what a commit or an index holds
	in    []string      // which commit; empty: the index
	told  []tool.Change // which the facts tell of; all others are entries

	created, removed int      // files of objects
	slower           []string // git directories of which what git has derived is gone
}

// inside is a change in a repository.
type inside struct {
	rel string // in .git, or in the git directory of a worktree or submodule there
	in  string // which that is, in .git; empty: it is .git
	// looked says that what the files there mean is told.
	looked bool
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
			r = &repository{root: root, ended: map[string]bool{}}
			for _, d := range dirs {
				if at, _, _ := cutRepository(d.Path); at == root {
					r.dirs = append(r.dirs, d)
				}
			}
			by[root], found = r, append(found, r)
		}
		at := inside{rel: rel, Change: c}
		for _, d := range r.dirs {
			switch _, in, _ := cutRepository(d.Path); {
			case len(in) > len(at.in) && strings.HasPrefix(rel, in+"/"):
				at.in, at.rel, at.looked = in, rel[len(in)+1:], true
			case in == at.in:
				at.looked = true
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

// say adds a fact. in is the git directory of a worktree or submodule, in .git; empty: it
// is .git.
func (r *repository) say(in string, loss loss, parts ...any) {
	if kind, name, ok := strings.Cut(in, "/"); ok {
		parts = append([]any{names(strings.TrimSuffix(kind, "s")), " ", names(name), ": "}, parts...)
	}
	r.facts = append(r.facts, fact{loss, parts})
}

// maxFacts is how much is told of the files of a repository.
const maxFacts = 200

// tells finds out what git has done, and lists the changes that say more than that: all
// that are not known to say nothing else.
func (r *repository) tells(ctx context.Context) (rest []tool.Change) {
	for _, c := range r.changes {
		if ctx.Err() != nil || len(r.facts) >= maxFacts || !r.tell(c) {
			rest = append(rest, c.Change)
		} else {
			r.told = append(r.told, c.Change)
		}
	}
	for _, d := range r.dirs {
		r.means(d)
	}
	if r.created > 0 && r.removed == 0 && len(r.facts) == 0 {
		r.say("", noLoss, count(r.created, "new object"))
	}
	if len(r.facts)+len(r.held)+len(rest) == 0 {
		r.say("", noLoss, count(len(r.changes), "change")+" of its own")
	}
	return rest
}

// maxRefs is how many references are told each.
const maxRefs = 50

// means tells of one git directory what its files mean.
func (r *repository) means(d *git.Dir) {
	_, in, _ := cutRepository(d.Path)
	say := func(loss loss, parts ...any) { r.say(in, loss, parts...) }
	files := func(before string, names list, after string) {
		if n := len(names.texts); n > 0 {
			say(noLoss, before+count(n, "file")+after+" (", names, ")")
		}
	}
	if d.Older {
		say(unseen, fmt.Sprintf("only the newest %d of the new commits were compared with the worktree", d.Commits))
	}
	switch {
	case len(d.Unseen) > 0:
		say(unseen, "not all could be looked at: ", list{texts: d.Unseen, most: len(d.Unseen)})
	case d.More:
		say(unseen, "not all of what commits and the index hold could be looked at")
	}
	if d.Missing > 0 {
		say(objects, count(d.Missing, "object")+" lost")
	}
	var refs []fact
	for _, ref := range ordered(d.Refs) {
		// The file of HEAD is told to be gone, and what is stashed is told below.
		if !(ref.Name == "HEAD" && ref.After == "") && (ref.Name != theStash || len(d.Stashed)+len(d.Dropped) == 0) {
			refs = append(refs, factOf(ref))
		}
	}
	for _, f := range refs[:min(len(refs), maxRefs)] {
		say(f.loss, f.parts...)
	}
	if len(refs) > maxRefs {
		say(unseen, more(refs[maxRefs:]))
	}
	if len(d.Stashed) > 0 {
		say(noLoss, "stashed ", quotes(d.Stashed...))
	}
	if len(d.Dropped) > 0 {
		say(objects, "stashes dropped: ", quotes(d.Dropped...))
	}
	for _, h := range d.Held {
		kind := tool.Modified
		switch {
		case h.After == nil:
			say(noLoss, "submodule ", names(h.Name), " at ", hash(h.ID))
			continue
		case h.Before == nil:
			kind = tool.Created
		}
		r.held = append(r.held, tool.Change{Path: h.Path, Kind: kind, Before: h.Before, After: h.After})
		r.in = append(r.in, h.Commit)
	}
	files("", names(d.Same...), " as in the worktree")
	if d.Ends > 0 {
		say(noLoss, fmt.Sprintf("%d of these with LF where the worktree has CRLF", d.Ends))
	}
	files("", names(d.Gone...), " taken out that the worktree does not have")
	files("", names(d.Stays...), " taken out, but not of the worktree")
	files("git is told whether to look at ", names(d.Flagged...), "")
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
	data, err := load(c.After, maxText)
	for line := range strings.Lines(string(data)) {
		id, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !isHash(id) {
			return false
		}
	}
	return err == nil
}

func (r *repository) meant(c inside) bool { return c.looked }

// derived tells that what git has made of other files is gone, once. What a command
// writes of these the stage leaves out.
func (r *repository) derived(c inside) bool {
	if c.After == nil && !slices.Contains(r.slower, c.in) {
		r.slower = append(r.slower, c.in)
		r.say(c.in, noLoss, "without its commit-graph or multi-pack-index, which git makes anew")
	}
	return c.After == nil
}

// log tells of a log of a reference that has lost entries. That of the stash is told
// with it.
func (r *repository) log(c inside) bool {
	name := strings.TrimPrefix(c.rel, "logs/")
	lost, ok := lostOf(c.Before, c.After)
	switch {
	case !ok || c.After != nil && name != "HEAD" && !strings.HasPrefix(name, "refs/"):
		return false
	case c.Before == nil || name == theStash:
	case c.After == nil:
		r.say(c.in, noLoss, "the log of ", ref(name), " removed, with "+count(lost, "line"))
	case lost > 0:
		r.say(c.in, noLoss, "the log of ", ref(name), " loses "+count(lost, "line"))
	}
	return true
}

// logLine is a line of a log of a reference as git writes it.
var logLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:[0-9a-f]{40}|[0-9a-f]{64}) [0-9a-f]{40,64} [^\t\n]*> \d+ [-+]\d{4}(?:\t[^\n]*)?\n$`)
})

// maxLog is how many bytes a log of a reference has at most that is read.
const maxLog = 16 << 20

// lostOf counts the lines that a log of a reference has lost. It is false if the log has
// others than git writes, or new ones not only behind those that were there. The id at the
// beginning of a line changes when the line before it goes.
func lostOf(before, after *tool.Version) (lost int, ok bool) {
	stood := map[string][]int{} // where each line was, without that id
	if before != nil {
		data, err := load(before, maxLog)
		if err != nil {
			return 0, false
		}
		for line := range strings.Lines(string(data)) {
			_, entry, _ := strings.Cut(line, " ")
			stood[entry], lost = append(stood[entry], lost), lost+1
		}
	}
	if after == nil {
		return lost, true
	}
	data, err := load(after, maxLog)
	next, fresh := 0, false
	for line := range strings.Lines(string(data)) {
		_, entry, _ := strings.Cut(line, " ")
		at, known := stood[entry]
		i, _ := slices.BinarySearch(at, next)
		switch {
		case !logLine().MatchString(line), known && (fresh || i == len(at)):
			return 0, false
		case known:
			next, lost = at[i]+1, lost-1
		default:
			fresh = true
		}
	}
	return lost, err == nil
}

// tell says what a change is about, and reports whether there is nothing else to it.
func (r *repository) tell(c inside) bool {
	kind, name, _ := strings.Cut(c.rel, "/")
	if op, ok := operations[kind]; ok {
		switch {
		case c.rel == kind && c.Kind == tool.DirectoryRemoved:
			r.say("", noLoss, op.name+" has ended")
			return true
		case c.After == nil: // with the directory, or one by one
			return r.ended[kind]
		case name == op.steps:
			r.say("", noLoss, append([]any{op.name}, todo(c.After)...)...)
			return false
		}
		return c.After.Mode.IsDir() && quietDirectory(c)
	}
	if c.rel == "" && c.Kind == tool.DirectoryCreated {
		r.say("", noLoss, "a new repository")
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
			return true
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
	pack, packed := strings.CutPrefix(c.rel, "objects/pack/pack-")
	end := path.Ext(pack)
	loose := strings.Replace(strings.TrimPrefix(c.rel, "objects/"), "/", "", 1)
	switch {
	case c.Kind == tool.Removed && (packed || !strings.HasPrefix(c.rel, "objects/pack/")):
		r.removed++
	case c.Kind == tool.Created && (isHash(loose) || packed && (end == ".pack" || end == ".idx") && isHash(strings.TrimSuffix(pack, end))):
		r.created++
	default: // git writes none anew
		return false
	}
	return true
}

// operations are what git goes on with when it is told to, by the directory of each, with
// the file in it that says how.
var operations = map[string]struct{ name, steps string }{
	"rebase-merge": {"a rebase", "git-rebase-todo"},
	"rebase-apply": {"a rebase or a series of patches", "next"},
	"sequencer":    {"a series of picks or reverts", "todo"},
}

// maxSteps is how many steps of a rebase are told.
const maxSteps = 50

// plainSteps are those of a rebase that only take over commits.
var plainSteps = []string{"pick", "p", "reword", "r", "edit", "e", "squash", "s", "fixup", "f", "drop", "d"}

// todo says what git does next: first what else than to take over commits, so that
// none of that is among those that are only counted.
func todo(v *tool.Version) (parts []any) {
	var others, plain []string
	data, err := load(v, maxText)
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case slices.Contains(plainSteps, strings.Fields(line)[0]):
			plain = append(plain, line)
		default:
			others = append(others, line)
		}
	}
	switch {
	case err != nil || len(others) > maxSteps:
		return []any{" whose next steps cannot be read here"}
	case len(others)+len(plain) == 0:
		return []any{" that has stopped in its last step"}
	}
	return []any{" that has stopped, and would go on with ", list{append(others, plain...), maxSteps, true}}
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

// load reads a file of so many bytes at most.
func load(v *tool.Version, most int64) ([]byte, error) {
	if !regular(v) {
		return nil, errors.New("it is no file")
	}
	r, err := v.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(data)) > most {
		err = errTooLong
	}
	return data, err
}
