package diff

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

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
	changes []inside                 // by name; there may be two of one, of what took another's place
	objects map[string]*tool.Version // that are new, by their hash
	fresh   bool                     // there was none before
	ended   map[string]bool          // directories that are gone
	left    *budget

	created, removed int // objects
	index            *Fact
	facts            []Fact
}

// inside is a change in a repository.
type inside struct {
	rel string // in .git
	tool.Change
}

// repositories takes those out of changes, in their order.
func repositories(changes []tool.Change, left *budget) (found []*repository, others []tool.Change) {
	by := map[string]*repository{}
	for _, c := range changes {
		root, rel, in := cutRepository(c.Path)
		if !in {
			others = append(others, c)
			continue
		}
		r := by[root]
		if r == nil {
			r = &repository{root: root, objects: map[string]*tool.Version{}, ended: map[string]bool{}, left: left}
			by[root], found = r, append(found, r)
		}
		r.changes = append(r.changes, inside{rel, c})
		r.fresh = r.fresh || rel == "" && c.Kind == tool.DirectoryCreated
		if c.Kind == tool.DirectoryRemoved {
			r.ended[rel] = true
		}
		if id, ok := strings.CutPrefix(rel, "objects/"); ok && c.Kind == tool.Created && regular(c.After) {
			r.objects[strings.Replace(id, "/", "", 1)] = c.After
		}
	}
	for _, r := range found {
		slices.SortStableFunc(r.changes, func(a, b inside) int { return strings.Compare(a.rel, b.rel) })
	}
	return found, others
}

func (r *repository) say(f Fact) { r.facts = append(r.facts, f) }

// maxFacts is how much is told of a repository.
const maxFacts = 200

// told says what git has done, and lists the changes that say more than that: all that
// are not known to say nothing else.
func (r *repository) told(ctx context.Context) (told Repository, rest []tool.Change) {
	told.Root = r.root
	for _, c := range r.changes {
		if ctx.Err() != nil || len(r.facts) >= maxFacts || !r.tell(c) {
			rest = append(rest, c.Change)
		} else {
			told.Told = append(told.Told, c.Change)
		}
	}
	if r.index != nil {
		r.say(*r.index)
	}
	if r.removed > 0 {
		r.say(Fact{Kind: FactLost, Count: r.removed})
	} else if r.created > 0 && len(r.facts) == 0 {
		r.say(Fact{Kind: FactObjects, Count: r.created})
	}
	if len(r.facts)+len(rest) == 0 {
		r.say(Fact{Kind: FactOwn, Count: len(r.changes)})
	}
	told.Facts = r.facts
	return told, rest
}

// rules say of the files of a repository what to tell of one that is new or has
// changed, and report whether that is all; without say there is nothing to tell. A
// pattern that ends in a slash is for all below it. What no rule is for is shown.
var rules = []struct {
	pattern string
	say     func(r *repository, c inside) bool
	gone    bool // say tells of one that is gone, too
}{
	{"objects/info/", func(*repository, inside) bool { return false }, false},
	{"objects/??/*", (*repository).object, true},
	{"objects/pack/*", (*repository).object, true},
	{"refs/", (*repository).moved, true},
	{"HEAD", (*repository).head, false},
	{"index", func(r *repository, c inside) bool { r.index = r.indexed(c.Change); return true }, false},
	{"info/exclude", func(r *repository, _ inside) bool { return r.fresh }, false},
	{pattern: "logs/"}, {pattern: "COMMIT_EDITMSG"}, {pattern: "ORIG_HEAD"}, {pattern: "FETCH_HEAD"},
	{pattern: "AUTO_MERGE"}, {pattern: "description"}, {pattern: "hooks/*.sample"},
}

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
		if !packed && !isHash(strings.Replace(name, "/", "", 1)) {
			return false
		}
		r.created++
	case tool.Removed:
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

// moved says what became of a reference.
func (r *repository) moved(c inside) bool {
	before, after := reference(c.Before), reference(c.After)
	branch, onBranch := strings.CutPrefix(c.rel, branches)
	switch {
	case c.After == nil:
		r.say(Fact{Kind: FactRefGone, Name: c.rel})
	case c.rel == theStash && r.stashed(after), onBranch && r.committed(branch, before, after):
	default:
		r.say(Fact{Kind: FactRef, Name: c.rel, From: before, To: after})
	}
	return true
}

// head says where HEAD is now.
func (r *repository) head(c inside) bool {
	before, after := reference(c.Before), reference(c.After)
	if branch, ok := strings.CutPrefix(after, "ref: "+branches); ok {
		r.say(Fact{Kind: FactOnBranch, Name: branch})
		return true
	}
	if !isHash(before) { // what the branch was at is not known here
		before = ""
	}
	if !r.committed("", before, after) {
		r.say(Fact{Kind: FactDetached, To: after})
	}
	return true
}

func (r *repository) stashed(after string) bool {
	n, newest, _, _ := r.commits(after, "")
	if n > 0 {
		r.say(Fact{Kind: FactStash, Count: n, Subject: newest.subject})
	}
	return n > 0
}

// committed says which commits are new on a branch, or on none, if there are any, and
// reports that.
func (r *repository) committed(branch, before, after string) bool {
	n, newest, follows, known := r.commits(after, before)
	if n == 0 {
		return false
	}
	f := Fact{Kind: FactCommits, Name: branch, From: before, To: after, Count: n, Subject: newest.subject, Guess: !known}
	if before != "" && !follows {
		f.Kind = FactRewritten
	}
	f.Files, f.Unseen = r.unstaged(newest.tree)
	if f.More = max(len(f.Files)-maxStaged, 0); f.More > 0 {
		f.Files = f.Files[:maxStaged]
	}
	r.say(f)
	return true
}

// reference is the content of a reference; empty if there is none.
func reference(v *tool.Version) string {
	data, _ := head(v, 1<<10)
	return strings.TrimSpace(string(data))
}

// isHash reports whether git could name an object so.
func isHash(s string) bool {
	_, err := hex.DecodeString(s)
	return err == nil && (len(s) == 2*sha1.Size || len(s) == 2*sha256.Size)
}

// commit is what is told of one.
type commit struct{ tree, parent, subject string }

// commits counts the new ones from one back to another, along the first parents, and
// returns the newest, whether they lead there, and whether that is known.
func (r *repository) commits(from, to string) (n int, newest commit, follows, known bool) {
	for next := from; next != to; n++ {
		if next == "" {
			return n, newest, false, true
		}
		c, ok := r.commit(next)
		if !ok { // it may be older, and have what was there before it
			return n, newest, false, false
		}
		if n == 0 {
			newest = c
		}
		next = c.parent
	}
	return n, newest, true, true
}

// commit reads a commit that is new, and an object of its own.
func (r *repository) commit(id string) (c commit, ok bool) {
	if !take(&r.left.commits, 1) {
		return c, false
	}
	text, ok := r.read(id, "commit", 64<<10)
	header, message, _ := strings.Cut(text, "\n\n")
	// Only what is at the start is what git goes by.
	tree, header, _ := strings.Cut(header, "\n")
	parent, _, _ := strings.Cut(header, "\n")
	c.tree = strings.TrimPrefix(tree, "tree ")
	if id, ok := strings.CutPrefix(parent, "parent "); ok {
		c.parent = id
	}
	c.subject, _, _ = strings.Cut(strings.TrimSpace(message), "\n")
	return c, ok
}

// read reads an object that is new. One that is not what its name says is not read:
// git may have another one by that name.
func (r *repository) read(id, kind string, most int64) (string, bool) {
	v := r.objects[id]
	if v == nil || v.Size > most || !take(&r.left.objects, v.Size) {
		return "", false
	}
	data, err := head(v, most)
	if err != nil {
		return "", false
	}
	z, err := zlib.NewReader(bytes.NewReader(data))
	if err != nil {
		return "", false
	}
	text, err := io.ReadAll(io.LimitReader(z, min(most, r.left.objects)+1))
	if err != nil || int64(len(text)) > most || !take(&r.left.objects, int64(len(text))) {
		return "", false
	}
	sum := fmt.Sprintf("%x", sha1.Sum(text))
	if len(id) == 2*sha256.Size {
		sum = fmt.Sprintf("%x", sha256.Sum256(text))
	}
	is, body, _ := strings.Cut(string(text), "\x00")
	return body, sum == id && strings.HasPrefix(is, kind+" ")
}

// unstaged is which files of a tree the index has not, or otherwise, as far as the tree
// and those in it are new, and whether there may be others. Nobody sees those in the
// worktree either.
func (r *repository) unstaged(tree string) (files []string, unseen bool) {
	if r.objects[tree] == nil {
		return nil, false
	}
	var now *tool.Version
	for _, c := range r.changes {
		if c.rel == "index" && regular(c.After) {
			now = c.After
		}
	}
	x, err := r.left.readIndex(now)
	if err != nil {
		return nil, true
	}
	all := r.walk(tree, "", 0, func(name string, mode uint32, id string) bool {
		if says := x.entries[name+"\x00\x00"]; len(says) < 24 || says[4:24] != id || binary.BigEndian.Uint32([]byte(says)) != mode {
			files = append(files, name)
		}
		return len(files) <= maxStaged
	})
	return files, !all
}

const (
	maxTree  = 4 << 20 // bytes of one
	maxDepth = 100
)

// walk visits the files of a tree, and of those in it that are new, until visit
// returns false. It reports whether it has visited all.
func (r *repository) walk(tree, dir string, depth int, visit func(name string, mode uint32, id string) bool) bool {
	if depth > maxDepth || !take(&r.left.trees, 1) {
		return false
	}
	body, ok := r.read(tree, "tree", maxTree)
	for ok && body != "" {
		is, after, _ := strings.Cut(body, " ")
		name, rest, _ := strings.Cut(after, "\x00")
		mode, err := strconv.ParseUint(is, 8, 32)
		if err != nil || len(rest) < len(tree)/2 || len(dir)+len(name) > maxName {
			return false
		}
		raw := rest[:len(tree)/2]
		body = rest[len(raw):]
		if mode != 0o40000 {
			ok = visit(dir+name, uint32(mode), raw)
		} else if id := fmt.Sprintf("%x", raw); r.objects[id] != nil {
			ok = r.walk(id, dir+name+"/", depth+1, visit)
		}
	}
	return ok
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
