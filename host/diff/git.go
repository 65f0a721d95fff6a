package diff

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/stockade-dev/stockade/host/git"
	"github.com/stockade-dev/stockade/host/tool"
)

// repository holds the changes in one repository, and the facts that describe them.
type repository struct {
	root        string          // path of the directory above .git
	changes     []repoChange    // sorted by gitDir+rel, which two share if one file replaced another
	dirs        []*git.Dir      // results of git.Check for its git directories
	isNew       bool            // the repository is new
	removedDirs map[string]bool // paths in .git of removed directories

	facts     []fact
	held      []tool.Change // changes from the version in the worktree to that in a commit or the index
	heldIn    []string      // hash of the commit of each change in held; empty: the index
	described []tool.Change // changes that the facts describe completely; all others become entries

	created, removed int      // numbers of new and removed object files
	lostDerived      []string // git directories that lost derived files, such as a commit-graph
}

type repoChange struct {
	rel    string // path in .git, or in the git directory of a worktree or submodule
	gitDir string // path in .git of that git directory; empty: .git itself
	// checked is set if git.Check has examined this git directory: the facts describe it.
	checked bool
	tool.Change
}

// repositories groups changes by repository, and returns all other changes in their order.
// dirs are results of git.Check.
func repositories(changes []tool.Change, dirs []*git.Dir) (found []*repository, others []tool.Change) {
	by := map[string]*repository{}
	for _, c := range changes {
		root, rel, in := git.CutDir(c.Path)
		if !in {
			others = append(others, c)
			continue
		}
		r := by[root]
		if r == nil {
			r = &repository{root: root, removedDirs: map[string]bool{}}
			for _, d := range dirs {
				if at, _, _ := git.CutDir(d.Path); at == root {
					r.dirs = append(r.dirs, d)
				}
			}
			by[root], found = r, append(found, r)
		}
		at := repoChange{rel: rel, Change: c}
		for _, d := range r.dirs {
			switch _, in, _ := git.CutDir(d.Path); {
			case len(in) > len(at.gitDir) && strings.HasPrefix(rel, in+"/"):
				at.gitDir, at.rel, at.checked = in, rel[len(in)+1:], true
			case in == at.gitDir:
				at.checked = true
			}
		}
		r.changes = append(r.changes, at)
		r.isNew = r.isNew || rel == "" && c.Kind == tool.DirectoryCreated
		if c.Kind == tool.DirectoryRemoved {
			r.removedDirs[rel] = true
		}
	}
	for _, r := range found {
		slices.SortStableFunc(r.changes, func(a, b repoChange) int { return strings.Compare(a.gitDir+a.rel, b.gitDir+b.rel) })
	}
	return found, others
}

// say adds a fact. in is the path in .git of a worktree's or submodule's git directory, or "".
func (r *repository) say(in string, loss loss, parts ...any) {
	if kind, name, ok := strings.Cut(in, "/"); ok {
		parts = append([]any{nameList(strings.TrimSuffix(kind, "s")), " ", nameList(name), ": "}, parts...)
	}
	r.facts = append(r.facts, fact{loss, parts})
}

// maxFacts limits the facts about changes in one repository; further changes become entries.
const maxFacts = 200

// collectFacts collects the facts of a repository. It returns the changes that the facts do
// not describe completely, among them all changes of an unknown kind.
func (r *repository) collectFacts(ctx context.Context) (rest []tool.Change) {
	for _, c := range r.changes {
		if ctx.Err() != nil || len(r.facts) >= maxFacts || !r.addFacts(c) {
			rest = append(rest, c.Change)
		} else {
			r.described = append(r.described, c.Change)
		}
	}
	for _, d := range r.dirs {
		r.addDirFacts(d)
	}
	if r.created > 0 && r.removed == 0 && len(r.facts) == 0 {
		r.say("", lossNone, count(r.created, "new object"))
	}
	if len(r.facts)+len(r.held)+len(rest) == 0 {
		r.say("", lossNone, count(len(r.changes), "change")+" of its own")
	}
	return rest
}

// maxRefs limits the references of a git directory with a fact each; the others share one.
const maxRefs = 50

// addDirFacts adds the facts that git.Check has found about one git directory, and adds
// mismatches to held.
func (r *repository) addDirFacts(d *git.Dir) {
	_, in, _ := git.CutDir(d.Path)
	say := func(loss loss, parts ...any) { r.say(in, loss, parts...) }
	files := func(before string, names textList, after string) {
		if n := len(names.texts); n > 0 {
			say(lossNone, before+count(n, "file")+after+" (", names, ")")
		}
	}
	if d.MoreCommits {
		say(lossUnknown, fmt.Sprintf("only the newest %d of the new commits were compared with the worktree", d.Commits))
	}
	switch {
	case len(d.Unseen) > 0:
		say(lossUnknown, "not all could be looked at: ", textList{texts: d.Unseen, limit: len(d.Unseen)})
	case d.Incomplete:
		say(lossUnknown, "not all of what commits and the index hold could be looked at")
	}
	if d.MissingObjects > 0 {
		say(lossObjects, count(d.MissingObjects, "object")+" lost")
	}
	var refs []fact
	for _, ref := range ordered(d.Refs) {
		// A removed HEAD file has an entry of its own, and facts about stashes follow below.
		if !(ref.Name == "HEAD" && ref.After == "") && (ref.Name != theStash || len(d.Stashed)+len(d.Dropped) == 0) {
			refs = append(refs, factOf(ref))
		}
	}
	for _, f := range refs[:min(len(refs), maxRefs)] {
		say(f.loss, f.parts...)
	}
	if len(refs) > maxRefs {
		say(lossUnknown, moreFacts(refs[maxRefs:]))
	}
	if len(d.Stashed) > 0 {
		say(lossNone, "stashed ", quoteList(d.Stashed...))
	}
	if len(d.Dropped) > 0 {
		say(lossObjects, "stashes dropped: ", quoteList(d.Dropped...))
	}
	for _, h := range d.Mismatches {
		kind := tool.Modified
		switch {
		case h.After == nil:
			say(lossNone, "submodule ", nameList(h.Name), " at ", hash(h.ID))
			continue
		case h.Before == nil:
			kind = tool.Created
		}
		r.held = append(r.held, tool.Change{Path: h.Path, Kind: kind, Before: h.Before, After: h.After})
		r.heldIn = append(r.heldIn, h.Commit)
	}
	files("", nameList(d.Matches...), " as in the worktree")
	if d.LineEndDiffs > 0 {
		say(lossNone, fmt.Sprintf("%d of these with LF where the worktree has CRLF", d.LineEndDiffs))
	}
	files("", nameList(d.RemovedFiles...), " removed from git, and not in the worktree")
	files("", nameList(d.UntrackedFiles...), " removed from git, but not from the worktree")
	files("git is told whether to look at ", nameList(d.Flagged...), "")
}

// fileRules describe new and changed files of a repository by their paths in the git
// directory. say adds facts, and reports whether they describe the change completely; if say
// is nil, no fact is needed. A pattern that ends in a slash matches all paths below. Files
// without a rule are shown as entries.
var fileRules = []struct {
	pattern string
	say     func(r *repository, c repoChange) bool
	gone    bool // the rule is also for removed files
}{
	{"objects/info/commit-graph", (*repository).noteDerived, true},
	{"objects/info/commit-graphs/", (*repository).noteDerived, true},
	{"objects/pack/multi-pack-index", (*repository).noteDerived, true},
	{"objects/??/*", (*repository).object, true},
	{"objects/pack/*", (*repository).object, true},
	{"refs/", (*repository).isChecked, true},
	{"packed-refs", (*repository).isChecked, true},
	{"HEAD", (*repository).isChecked, false},
	{"index", (*repository).isChecked, false},
	{"info/exclude", func(r *repository, _ repoChange) bool { return r.isNew }, false},
	{"logs/", (*repository).noteReflog, true},
	{pattern: "COMMIT_EDITMSG"},
	{"ORIG_HEAD", (*repository).onlyIDs, false},
	{"FETCH_HEAD", (*repository).onlyIDs, false},
	{"AUTO_MERGE", (*repository).onlyIDs, true},
	{pattern: "description"}, {pattern: samples},
}

// samples matches the only files that git itself makes executable.
const samples = "hooks/*.sample"

// onlyIDs reports whether each line of a file begins with a hash, as in ORIG_HEAD and
// FETCH_HEAD. It is true for a removed file.
func (r *repository) onlyIDs(c repoChange) bool {
	if c.After == nil {
		return true
	}
	data, err := c.After.Content(maxText)
	for line := range strings.Lines(string(data)) {
		id, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !isHash(id) {
			return false
		}
	}
	return err == nil
}

func (r *repository) isChecked(c repoChange) bool { return c.checked }

// noteDerived adds a fact for each git directory that has lost derived files, which git makes
// from others, such as a commit-graph. It returns true only if the file was removed; the stage
// leaves out derived files that a command writes.
func (r *repository) noteDerived(c repoChange) bool {
	if c.After == nil && !slices.Contains(r.lostDerived, c.gitDir) {
		r.lostDerived = append(r.lostDerived, c.gitDir)
		r.say(c.gitDir, lossNone, "without its commit-graph or multi-pack-index, which git makes anew")
	}
	return c.After == nil
}

// noteReflog adds a fact if a reflog has lost lines, except that of the stash: the facts about
// stashes describe it. It returns false if an entry has to show the change.
func (r *repository) noteReflog(c repoChange) bool {
	name := strings.TrimPrefix(c.rel, "logs/")
	lost, ok := lostLines(c.Before, c.After)
	switch {
	case !ok || c.After != nil && name != "HEAD" && !strings.HasPrefix(name, "refs/"):
		return false
	case c.Before == nil || name == theStash:
	case c.After == nil:
		r.say(c.gitDir, lossNone, "the log of ", ref(name), " removed, with "+count(lost, "line"))
	case lost > 0:
		r.say(c.gitDir, lossNone, "the log of ", ref(name), " loses "+count(lost, "line"))
	}
	return true
}

// logLine matches a line of a reflog that git has written.
var logLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:[0-9a-f]{40}|[0-9a-f]{64}) [0-9a-f]{40,64} [^\t\n]*> \d+ [-+]\d{4}(?:\t[^\n]*)?\n$`)
})

// maxLog limits the bytes of a reflog that is read; the change of a larger one is an entry.
const maxLog = 16 << 20

// lostLines counts the lines that a reflog has lost. ok is false if it cannot be read, see
// maxLog, has lines that git does not write, or has new lines that are not all after the old
// ones. Lines are compared without their first id, which changes when the line before is
// removed.
func lostLines(before, after *tool.Version) (lost int, ok bool) {
	stood := map[string][]int{} // the positions of each line, by its text without the first id
	if before != nil {
		data, err := before.Content(maxLog)
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
	data, err := after.Content(maxLog)
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

// addFacts adds the facts about a change, and reports whether they describe it completely.
func (r *repository) addFacts(c repoChange) bool {
	kind, name, _ := strings.Cut(c.rel, "/")
	if op, ok := operations[kind]; ok {
		switch {
		case c.rel == kind && c.Kind == tool.DirectoryRemoved:
			r.say("", lossNone, op.name+" has ended")
			return true
		case c.After == nil: // removed with its directory, or by itself
			return r.removedDirs[kind]
		case name == op.steps:
			r.say("", lossNone, append([]any{op.name}, nextSteps(c.After)...)...)
			return false
		}
		return c.After.Mode.IsDir() && quietDirectory(c)
	}
	if c.rel == "" && c.Kind == tool.DirectoryCreated {
		r.say("", lossNone, "a new repository")
	}
	if c.Kind == tool.DirectoryRemoved || c.After != nil && c.After.Mode.IsDir() {
		return quietDirectory(c)
	}
	for _, rule := range fileRules {
		matches := strings.HasSuffix(rule.pattern, "/") && strings.HasPrefix(c.rel, rule.pattern)
		if !matches {
			matches, _ = path.Match(rule.pattern, c.rel)
		}
		if !matches {
			continue
		}
		switch {
		case c.Kind == tool.Removed:
			return rule.gone && c.Before.IsFile() && rule.say(r, c)
		case !c.After.IsFile() || c.Before != nil && !c.Before.IsFile():
			return false
		case c.Kind == tool.TimesChanged:
			return true
		}
		all := rule.say == nil || rule.say(r, c)
		// A rename has to show its old name, and a change of a hard link shows at the other name.
		return all && (c.Kind == tool.Created || c.Kind == tool.Modified) && !opensToOthers(c.After) &&
			(c.After.Mode&0o111 == 0 || rule.pattern == samples) &&
			(c.After.HardLink == "" || strings.HasPrefix(c.rel, "objects/"))
	}
	return false
}

// quietDirectory reports whether a directory's change needs no entry beside its files' facts.
func quietDirectory(c repoChange) bool {
	switch c.Kind {
	case tool.DirectoryCreated, tool.ModeChanged:
		return !opensToOthers(c.After)
	case tool.DirectoryRemoved:
		return strings.HasPrefix(c.rel, "objects/") || strings.HasPrefix(c.rel, "refs/")
	}
	return c.Kind == tool.TimesChanged
}

// object counts a new or removed object file. It reports whether git makes such a change.
func (r *repository) object(c repoChange) bool {
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

// operations holds the operations of git that can be continued later, by the name of the
// directory with their state. steps is the file in this directory that lists the next steps.
var operations = map[string]struct{ name, steps string }{
	"rebase-merge": {"a rebase", "git-rebase-todo"},
	"rebase-apply": {"a rebase or a series of patches", "next"},
	"sequencer":    {"a series of picks or reverts", "todo"},
}

// maxSteps limits the steps of an operation that are listed if space is short; the others are
// counted. If more than maxSteps steps do more than take over commits, none is listed.
const maxSteps = 50

// plainSteps are the commands of a rebase that do no more than take over commits.
var plainSteps = []string{"pick", "p", "reword", "r", "edit", "e", "squash", "s", "fixup", "f", "drop", "d"}

// nextSteps returns the words that follow the name of a stopped operation: the steps with which
// it would go on, that it was in its last step, or that its steps cannot be read. v is the file
// with the steps. Steps that do more than take over commits come first, so that they are shown
// and not only counted.
func nextSteps(v *tool.Version) (parts []any) {
	var others, plain []string
	data, err := v.Content(maxText)
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
	return []any{" that has stopped, and would go on with ", textList{append(others, plain...), maxSteps, true}}
}

const (
	branchPrefix = "refs/heads/"
	theStash     = "refs/stash" // each stash is a commit that does not follow the one before
)

// isHash reports whether a text has the form of an object id in hexadecimal digits.
func isHash(s string) bool {
	_, err := hex.DecodeString(s)
	return err == nil && (len(s) == 2*sha1.Size || len(s) == 2*sha256.Size)
}
