package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"github.com/stockade-dev/stockade/guests/git/repo"
	"github.com/stockade-dev/stockade/guests/git/textdiff"
	"github.com/stockade-dev/stockade/sdk/go/lines"
	"github.com/stockade-dev/stockade/sdk/go/tool"
)

// maxText limits a file that is compared line by line, in bytes; a larger one is not.
const maxText = 2 << 20

// content is the content of a file.
type content struct {
	data        []byte // nil: the file is empty, or was not read
	size        int64  // bytes; 0 for a secret
	notCompared string // reason not to compare it line by line: secret or large; "": none
}

// content reads the content of a file on any side. A file that does not exist is empty. A
// secret, or a file over maxCompare, is not read.
func (c *call) content(f file) (content, error) {
	switch {
	case !f.exists():
		return content{}, nil
	case f.mode == repo.ModeGitlink:
		return contentOf(fmt.Appendf(nil, "Subproject commit %s\n", f.id)), nil
	case c.isSecret(f.path), !f.inWorktree && c.isSecretAlias(f.id, f.path, c.comparedIndex != nil):
		return content{notCompared: "secret"}, nil
	case f.inWorktree:
		return c.workingContent(f)
	}
	data, err := c.ReadAs(f.id, repo.KindBlob)
	if repo.IsTooLarge(err) && !repo.IsSpent(err) {
		size, err := c.Size(f.id)
		return content{size: int64(size), notCompared: "large"}, err
	}
	return contentOf(data), err
}

func contentOf(data []byte) content {
	c := content{data: data, size: int64(len(data))}
	if len(data) > maxText && !lines.IsBinary(data) {
		c.notCompared = "large"
	}
	return c
}

func (c *call) workingContent(f file) (content, error) {
	name := c.abs(f.path)
	if f.mode == repo.ModeLink {
		target, err := os.Readlink(name)
		if err != nil {
			return content{}, tool.IO("read the link %s: %w; try again, or do without it", displayName(name), err)
		}
		return contentOf([]byte(target)), nil
	}
	info, err := os.Lstat(name)
	if err != nil {
		return content{}, tool.IO("read %s: %w; try again, or name another path", displayName(name), err)
	}
	if info.Size() > maxCompare {
		return content{size: info.Size(), notCompared: "large"}, nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return content{}, tool.IO("read %s: %w; try again, or name another path", displayName(name), err)
	}
	if e := c.comparedIndex.Entry(f.path); e != nil {
		if data, err = c.normalizeEOL(e, c.attributesOf(f.path), data); err != nil {
			return content{}, err
		}
	}
	return contentOf(data), nil
}

// Costs of comparing texts, see [repo.MaxWork].
const (
	readBytesPerUnit = 100     // bytes that are cut into lines, per unit of work
	linesPerUnit     = 3       // lines that are compared, per unit of work
	sameBytesPerUnit = 200     // bytes of the old text, which may be the same, per unit of work
	workSteps        = 1 << 12 // units of work of a comparison between two checks
)

// lines cuts a text into lines, and counts the work.
func (c *call) lines(data []byte) *textdiff.Text {
	c.Spend(len(data) / readBytesPerUnit)
	return textdiff.NewText(data)
}

// compare compares two texts, and counts the work.
func (c *call) compare(old, now *textdiff.Text) ([]textdiff.Change, error) {
	c.Spend((old.Len()+now.Len())/linesPerUnit + len(old.Data())/sameBytesPerUnit)
	if err := c.Check(); err != nil {
		return nil, err
	}
	return textdiff.Diff(old, now, func() error {
		c.Spend(workSteps)
		return c.Check()
	})
}

// patches writes changes as git diff does.
func (c *call) patches(changes []change) error {
	for i := range changes {
		if err := c.Check(); err != nil {
			return err
		}
		ch := changes[i]
		var err error
		if ch.statusLetter() == 'T' { // a file of another type: git shows a removed and an added file
			if err = c.patch(change{from: ch.from}); err == nil {
				err = c.patch(change{to: ch.to})
			}
		} else {
			err = c.patch(ch)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *call) patch(ch change) error {
	from, to := ch.from, ch.to
	old, err := c.content(from)
	if err != nil {
		return err
	}
	now, err := c.content(to)
	if err != nil {
		return err
	}
	if to.inWorktree && now.notCompared == "" {
		to.id, to.inWorktree = hashOf(now.data), false
		if to.id == from.id && to.mode == from.mode {
			return nil // only its times have changed
		}
	}
	a, b := from.path, to.path
	if !from.exists() {
		a = b
	} else if !to.exists() {
		b = a
	}
	head := []string{"diff --git " + quote("a/"+a) + " " + quote("b/"+b)}
	sameMode := ""
	switch {
	case !from.exists():
		head = append(head, fmt.Sprintf("new file mode %06o", to.mode))
	case !to.exists():
		head = append(head, fmt.Sprintf("deleted file mode %06o", from.mode))
	case from.mode != to.mode:
		head = append(head, fmt.Sprintf("old mode %06o", from.mode), fmt.Sprintf("new mode %06o", to.mode))
	default:
		sameMode = fmt.Sprintf(" %06o", to.mode)
	}
	if ch.isRename() {
		head = append(head, fmt.Sprintf("similarity index %d%%", ch.score), "rename from "+quote(a), "rename to "+quote(b))
	}
	id := func(f file) string {
		if f.inWorktree {
			return strings.Repeat("?", len(c.Short(repo.ID{})))
		}
		return c.Short(f.id)
	}
	same := from.exists() && to.exists() && !to.inWorktree && from.id == to.id
	if !same {
		head = append(head, "index "+id(from)+".."+id(to)+sameMode)
	}
	for _, line := range head {
		if err := c.page.line(line); err != nil {
			return err
		}
	}
	if same {
		return nil
	}
	aName, bName := "/dev/null", "/dev/null"
	if from.exists() {
		aName = quote("a/" + a)
	}
	if to.exists() {
		bName = quote("b/" + b)
	}
	why := old.notCompared + now.notCompared
	switch {
	case strings.Contains(why, "secret"):
		return c.page.line(notShown(ch.path()))
	case c.isBinary(ch.path(), old, now):
		return c.page.linef("Binary files %s and %s differ", aName, bName)
	case why != "":
		return c.page.linef("[%s: %d and %d bytes, too large to compare]", quote(ch.path()), old.size, now.size)
	}
	x, y := c.lines(old.data), c.lines(now.data)
	changes, err := c.compare(x, y)
	if err != nil {
		return err
	}
	if len(changes) == 0 {
		return nil
	}
	tab := func(name string) string { // marks the end of a name with blanks
		if strings.Contains(name, " ") {
			return name + "\t"
		}
		return name
	}
	if err := c.page.line("--- " + tab(aName)); err != nil {
		return err
	}
	if err := c.page.line("+++ " + tab(bName)); err != nil {
		return err
	}
	return textdiff.Unified(x, y, changes, func(mark byte, line []byte) error {
		text, whole := bytes.CutSuffix(line, []byte{'\n'})
		err := c.page.line(string(mark) + string(text))
		if err == nil && !whole {
			err = c.page.line(`\ No newline at end of file`)
		}
		return err
	})
}

// isBinary reports whether a change counts as binary: git would not show its lines.
func (c *call) isBinary(path string, sides ...content) bool {
	a := c.attributesOf(path)
	if a.binary || a.textDiff {
		return a.binary
	}
	for _, s := range sides {
		if lines.IsBinary(s.data) {
			return true
		}
	}
	return false
}

// numstat writes the numbers of added and removed lines, as git diff --numstat does.
func (c *call) numstat(changes []change) error {
	for _, ch := range changes {
		if err := c.Check(); err != nil {
			return err
		}
		name := ch.path()
		if ch.isRename() {
			name = renameName(ch.from.path, ch.to.path)
		} else {
			name = quote(name)
		}
		old, err := c.content(ch.from)
		if err != nil {
			return err
		}
		now, err := c.content(ch.to)
		if err != nil {
			return err
		}
		if ch.to.inWorktree && now.notCompared == "" && ch.from.exists() && hashOf(now.data) == ch.from.id && ch.from.mode == ch.to.mode {
			continue // only its times have changed
		}
		added, removed := 0, 0
		switch {
		case old.notCompared+now.notCompared != "" || c.isBinary(ch.path(), old, now):
			err = c.page.line("-\t-\t" + name)
		default:
			if bytes.Equal(old.data, now.data) {
				err = c.page.line("0\t0\t" + name)
				break
			}
			var changes []textdiff.Change
			if changes, err = c.compare(c.lines(old.data), c.lines(now.data)); err != nil {
				return err
			}
			for _, d := range changes {
				added += d.BEnd - d.B
				removed += d.AEnd - d.A
			}
			err = c.page.linef("%d\t%d\t%s", added, removed, name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// nameStatus writes the names of changed files, as git diff --name-status does.
func (c *call) nameStatus(changes []change) error {
	changes, err := c.findRenames(changes)
	if err != nil {
		return err
	}
	for _, ch := range changes {
		name := string(ch.statusLetter())
		if ch.isRename() {
			name += fmt.Sprintf("%03d\t%s", ch.score, quote(ch.from.path))
		}
		if err := c.page.line(name + "\t" + quote(ch.path())); err != nil {
			return err
		}
	}
	return nil
}

// renameName returns both names of a rename, with common parts written once, as git does.
func renameName(a, b string) string {
	if needsQuotes(a) || needsQuotes(b) {
		return quote(a) + " => " + quote(b)
	}
	head := 0
	for i := 0; i < len(a) && i < len(b) && a[i] == b[i]; i++ {
		if a[i] == '/' {
			head = i + 1
		}
	}
	tail := 0
	least := max(head-1, 0)
	for i := 1; i <= len(a)-least && i <= len(b)-least && a[len(a)-i] == b[len(b)-i]; i++ {
		if a[len(a)-i] == '/' {
			tail = i
		}
	}
	if head == 0 && tail == 0 {
		return a + " => " + b
	}
	return a[:head] + "{" + a[head:max(head, len(a)-tail)] + " => " + b[head:max(head, len(b)-tail)] + "}" + a[len(a)-tail:]
}

// write writes changes in the format of the call.
func (c *call) write(changes []change) error {
	changes, err := c.findRenames(changes)
	if err != nil {
		return err
	}
	if c.Format == "numstat" {
		return c.numstat(changes)
	}
	return c.patches(changes)
}

// diff writes the changes that git diff shows for the call's arguments.
func (c *call) diff() error {
	if c.Format != "" && c.Format != "patch" && c.Format != "numstat" {
		return tool.InvalidInput("format %s is for log; diff has patch and numstat", c.Format)
	}
	changes, err := c.diffChanges()
	if err != nil {
		return err
	}
	if err := c.write(changes); err != nil {
		return err
	}
	if c.page.lines == 0 && c.partial {
		c.note("nothing of what was compared differs")
	} else if c.page.lines == 0 {
		c.note("nothing differs")
	}
	return nil
}

// diffChanges returns the changes that git diff compares with the same arguments.
func (c *call) diffChanges() ([]change, error) {
	if a, b, three, ok := cutRange(c.Revision); ok {
		if c.Staged {
			return nil, tool.InvalidInput("staged compares with one revision, not with a range")
		}
		from, err := c.CommitOf(a)
		if err != nil {
			return nil, err
		}
		to, err := c.CommitOf(b)
		if err != nil {
			return nil, err
		}
		tree := from.Tree
		if three {
			base, err := c.mergeBase(from.ID, to.ID)
			if err != nil {
				return nil, err
			}
			if base == nil {
				return nil, tool.InvalidInput("%s: the two have no common ancestor; A..B compares them", c.Revision)
			}
			tree = base.Tree
		}
		if err := c.checkPathKnown(nil, tree, to.Tree); err != nil {
			return nil, err
		}
		return c.diffTrees(tree, to.Tree, false)
	}
	x, err := c.Index()
	if err != nil {
		return nil, err
	}
	c.comparedIndex = x
	var tree repo.ID
	switch {
	case c.Revision != "":
		commit, err := c.CommitOf(c.Revision)
		if err != nil {
			return nil, err
		}
		tree = commit.Tree
	case c.Staged:
		if tree, err = c.headTree(); err != nil {
			return nil, err
		}
	}
	head, err := c.headTree()
	if err == nil {
		err = c.checkPathKnown(x, tree, head)
	}
	if err != nil {
		return nil, err
	}
	var staged []change
	if c.Staged || c.Revision != "" {
		if staged, err = c.diffIndex(tree, x); err != nil || c.Staged {
			return staged, err
		}
	}
	s, err := c.scanWorktree(x, false)
	if err != nil {
		return nil, err
	}
	c.noteConflicts(x)
	return overlay(staged, s.changes), nil
}

// overlay returns the changes between a tree and the worktree. staged holds the changes
// between the tree and the index, and working those between the index and the worktree.
func overlay(staged, working []change) []change {
	if len(staged) == 0 {
		return working
	}
	at := map[string]int{}
	out := make([]change, 0, len(staged)+len(working))
	for _, ch := range staged {
		at[ch.path()] = len(out)
		out = append(out, ch)
	}
	for _, ch := range working {
		if i, ok := at[ch.path()]; ok {
			out[i].to = ch.to
			continue
		}
		out = append(out, ch)
	}
	kept := out[:0]
	for _, ch := range out {
		if ch.from.exists() || ch.to.exists() {
			kept = append(kept, ch)
		}
	}
	sortChanges(kept)
	return kept
}

// headTree returns the tree of HEAD; zero: there are no commits.
func (c *call) headTree() (repo.ID, error) {
	head, err := c.Head()
	if err != nil || head.ID.IsZero() {
		return repo.ID{}, err
	}
	commit, err := c.Commit(head.ID)
	if err != nil {
		return repo.ID{}, err
	}
	return commit.Tree, nil
}

func (c *call) noteConflicts(x *repo.Index) {
	n := 0
	for i := range x.Entries {
		if e := &x.Entries[i]; e.Stage > 0 && c.covers(e.Path) && (i == 0 || x.Entries[i-1].Path != e.Path) {
			n++
		}
	}
	if n > 0 {
		c.note("%s with conflicts %s not compared; status names what has conflicts, and file_read shows it", plural(n, "file"), wasWere(n))
	}
}

// cutRange splits A..B, A...B and "A B". A missing end is "", which means HEAD. three is set
// for A...B; ok is false if rev is no range.
func cutRange(rev string) (a, b string, three, ok bool) {
	if a, b, ok := strings.Cut(strings.TrimSpace(rev), " "); ok {
		return a, strings.TrimSpace(b), false, true
	}
	if a, b, ok = strings.Cut(rev, "..."); ok {
		return a, b, true, true
	}
	a, b, ok = strings.Cut(rev, "..")
	return a, b, false, ok
}
