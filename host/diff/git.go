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

// cutRepository splits a path at its first .git into the directory that holds it, and the name
// below .git.
func cutRepository(path string) (root, rel string, inside bool) {
	root, rel, inside = strings.Cut(path+"/", "/"+gitDir+"/")
	return root, strings.TrimSuffix(rel, "/"), inside
}

// repository collects the changes in one repository, and the facts that describe them.
type repository struct {
	root    string
	changes []inside // by name; two may have the same name if one file replaced another
	dirs    []*git.Dir
	fresh   bool            // the repository is new
	ended   map[string]bool // directories that were removed

	facts []fact
	held  []tool.Change // from the version in the worktree to the one in a commit or the index
	in    []string      // the commit of each change in held; empty: the index
	told  []tool.Change // changes that the facts describe fully; all others become entries

	created, removed int      // counts of object files
	slower           []string // git directories that lost derived files, such as a commit-graph
}

// inside is a change in a repository.
type inside struct {
	rel string // the name in .git, or in the git directory of a worktree or submodule
	in  string // the name in .git of that git directory; empty: .git itself
	// looked says that git.Check has looked at this git directory, and the facts say what changed.
	looked bool
	tool.Change
}

// repositories groups changes by repository, and returns the others in their order.
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

// say adds a fact. in is the name in .git of the git directory of a worktree or submodule;
// empty: .git itself.
func (r *repository) say(in string, loss loss, parts ...any) {
	if kind, name, ok := strings.Cut(in, "/"); ok {
		parts = append([]any{names(strings.TrimSuffix(kind, "s")), " ", names(name), ": "}, parts...)
	}
	r.facts = append(r.facts, fact{loss, parts})
}

// maxFacts limits the facts about one repository. Beyond it, changes become entries.
const maxFacts = 200

// tells collects the facts of a repository, and returns the changes that the facts do not fully
// describe. Changes of an unknown kind are among them.
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

// maxRefs limits the references that have a fact of their own.
const maxRefs = 50

// means adds the facts about one git directory.
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

// rules say for the files of a repository what a new or changed one means. say adds facts, and
// reports whether they describe the change fully; if it is nil, there is nothing to add. A
// pattern with a slash at its end matches all below. Files without a rule are shown as entries.
var rules = []struct {
	pattern string
	say     func(r *repository, c inside) bool
	gone    bool // say handles removed files, too
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

// ids reports whether each line of a file begins with a hash, as in ORIG_HEAD and FETCH_HEAD.
// It is true for a removed file.
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

// derived adds one fact for each git directory that has lost files which git derives from others,
// such as a commit-graph. The stage leaves out derived files that a command writes.
func (r *repository) derived(c inside) bool {
	if c.After == nil && !slices.Contains(r.slower, c.in) {
		r.slower = append(r.slower, c.in)
		r.say(c.in, noLoss, "without its commit-graph or multi-pack-index, which git makes anew")
	}
	return c.After == nil
}

// log adds a fact if a reflog has lost entries. The reflog of the stash is left to the facts about
// the stash.
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

// logLine matches a line of a reflog as git writes it.
var logLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:[0-9a-f]{40}|[0-9a-f]{64}) [0-9a-f]{40,64} [^\t\n]*> \d+ [-+]\d{4}(?:\t[^\n]*)?\n$`)
})

// maxLog is the size in bytes above which a reflog is not read.
const maxLog = 16 << 20

// lostOf counts the lines that a reflog has lost. ok is false if it has lines that git does not
// write, or if new lines are not all behind the old ones. Lines are compared without their first
// id, which changes when the line before is removed.
func lostOf(before, after *tool.Version) (lost int, ok bool) {
	stood := map[string][]int{} // the positions of each line, by its text without the first id
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

// tell adds the facts about a change, and reports whether they describe it fully.
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
		// A rename has to show its old name, and a change of a hard link shows at the other name.
		return all && (c.Kind == tool.Created || c.Kind == tool.Modified) && !forOthers(c.After) &&
			(c.After.Mode&0o111 == 0 || rule.pattern == samples) &&
			(c.After.Twin == "" || strings.HasPrefix(c.rel, "objects/"))
	}
	return false
}

// quietDirectory reports whether a change of a directory needs no entry beside the facts about
// its files.
func quietDirectory(c inside) bool {
	switch c.Kind {
	case tool.DirectoryCreated, tool.ModeChanged:
		return !forOthers(c.After)
	case tool.DirectoryRemoved:
		return strings.HasPrefix(c.rel, "objects/") || strings.HasPrefix(c.rel, "refs/")
	}
	return c.Kind == tool.Times
}

// object counts a file of objects, loose or packed, that is created or removed. It reports whether
// the change is one that git makes.
func (r *repository) object(c inside) bool {
	pack, packed := strings.CutPrefix(c.rel, "objects/pack/pack-")
	end := path.Ext(pack)
	loose := strings.Replace(strings.TrimPrefix(c.rel, "objects/"), "/", "", 1)
	switch {
	case c.Kind == tool.Removed && (packed || !strings.HasPrefix(c.rel, "objects/pack/")):
		r.removed++
	case c.Kind == tool.Created && (isHash(loose) || packed && (end == ".pack" || end == ".idx") && isHash(strings.TrimSuffix(pack, end))):
		r.created++
	default: // git creates no other files here, and changes none
		return false
	}
	return true
}

// operations are the operations that git can continue later, by the directory that keeps their
// state, with the file in it that lists the next steps.
var operations = map[string]struct{ name, steps string }{
	"rebase-merge": {"a rebase", "git-rebase-todo"},
	"rebase-apply": {"a rebase or a series of patches", "next"},
	"sequencer":    {"a series of picks or reverts", "todo"},
}

// maxSteps limits the steps of an operation that are listed.
const maxSteps = 50

// plainSteps are the commands of a rebase that only take over commits.
var plainSteps = []string{"pick", "p", "reword", "r", "edit", "e", "squash", "s", "fixup", "f", "drop", "d"}

// todo says what git does next. Steps that do more than take over commits come first, so that none
// of them is only counted.
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
	theStash = "refs/stash" // each stash is a commit that does not follow the one before
)

// isHash reports whether a text has the form of an object id in hexadecimal digits.
func isHash(s string) bool {
	_, err := hex.DecodeString(s)
	return err == nil && (len(s) == 2*sha1.Size || len(s) == 2*sha256.Size)
}

// load reads a regular file. It fails if the file has more than most bytes.
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
