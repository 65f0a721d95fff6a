package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/stockade-dev/stockade/guests/git/repo"
	"github.com/stockade-dev/stockade/sdk/go/tool"
)

const (
	defaultCommits = 20  // commits of a call that names no limit
	maxCommits     = 200 // commits of one call; a higher limit is lowered to it
	gitDate        = "Mon Jan 2 15:04:05 2006 -0700"
)

// log writes commits as git log does, with --oneline unless a format is given.
func (c *call) log() error {
	limit := c.Limit
	if limit == 0 {
		limit = defaultCommits
	}
	limit = min(limit, maxCommits)
	c.page.skip, c.page.limit = 0, 0 // the offset and the limit count commits, not lines
	w, err := c.walkOf(c.Revision)
	if err != nil {
		return err
	}
	if w.partlyMarked {
		c.AllowMore(workToWrite)
	}
	n := 0
	for ; ; n++ {
		link, err := w.next()
		if err != nil {
			return err
		}
		if link == nil {
			break
		}
		if n < c.Offset {
			continue
		}
		if n == c.Offset+limit {
			c.page.full, c.page.next = true, n
			break
		}
		before := c.page.out.String()
		err = c.logEntry(link, n > c.Offset)
		if (err == errFull || repo.IsSpent(err)) && n > c.Offset {
			// The commit comes with the next page, as a whole.
			c.page = page{full: true, next: n}
			c.page.out.WriteString(before)
			break
		}
		if err == errFull {
			c.page.next = n + 1
			c.note("the commit %s is too long to be shown as a whole; operation show pages through it", c.Short(link.ID))
		}
		if err != nil {
			return err
		}
	}
	switch {
	case w.truncated:
		c.AllowMore(workToWrite)
		c.noteCut(w)
	case c.page.out.Len() == 0 && c.Offset > 0:
		c.note("there are no more commits")
	case c.page.out.Len() == 0 && c.pathFilter != "":
		c.note("no commit changes %s; if it was renamed, its history goes on under the older name", quote(c.pathFilter))
	case c.page.out.Len() == 0:
		c.note("there is no commit in %s", quote(c.Revision))
	}
	if c.Shallow() && !c.page.full {
		c.note("the clone is shallow: older commits are not here")
	}
	return nil
}

// workToWrite is the work that a call may do beyond [repo.MaxWork] to write its findings.
const workToWrite = 1_000_000

// noteCut notes which part of a history a truncated walk has left out, and how to go on.
func (c *call) noteCut(w *walk) {
	command := "git log --oneline"
	if c.Revision != "" {
		command += " " + oneLine(c.Revision)
	}
	if c.pathFilter != "" {
		command += " -- " + quote(c.pathFilter)
	}
	if w.partlyMarked && w.looked == 0 {
		c.note("%d commits were looked at, which is as much as one call may do, and all are such as the range leaves out: whether there are others is not known; "+
			"%s, run by bash, tells", len(w.marks), command)
		return
	}
	text := fmt.Sprintf("%d commits were looked at, back to %s, which is as much as one call may do; older ones are not listed",
		w.looked, time.Unix(w.oldest, 0).UTC().Format(time.DateOnly))
	if c.page.out.Len() == 0 {
		text += ", and none that are newer are to be listed"
	}
	if rest := w.restRevision(); rest != "" {
		text += fmt.Sprintf("; to go on, call git again with revision=%q, and offset=0", rest)
	}
	c.note("%s; %s, run by bash, lists all%s", text, command, c.faster())
}

// faster returns a hint at git commit-graph, with which large histories are read faster;
// empty: it is in use, or would not help.
func (c *call) faster() string {
	if c.HasFilters() || c.Shallow() {
		return ""
	}
	return "; once a person has run git commit-graph write --reachable --changed-paths, more is looked at in a call"
}

// walkOf returns a walk from some revisions ("" is HEAD), or through a range: A..B, or B ^A.
func (c *call) walkOf(revision string) (*walk, error) {
	var from, to []*repo.CommitNode
	var not []string
	add := func(rev string, out *[]*repo.CommitNode) error {
		commit, err := c.CommitOf(rev)
		if err == nil {
			var l *repo.CommitNode
			l, err = c.CommitNode(commit.ID)
			*out = append(*out, l)
		}
		return err
	}
	const maxWords = 32
	words := strings.Fields(revision)
	if len(words) == 0 {
		words = []string{"HEAD"}
	}
	if len(words) > maxWords {
		return nil, tool.InvalidInput("revision has %d words; log takes %d", len(words), maxWords)
	}
	for _, word := range words {
		var err error
		if a, b, three, ok := cutRange(word); three {
			return nil, tool.InvalidInput("revision %q: log takes A..B; A...B is for diff", revision)
		} else if ok {
			not = append(not, "^"+a)
			if err = add(a, &from); err == nil {
				err = add(b, &to)
			}
		} else if name, excluded := strings.CutPrefix(word, "^"); excluded {
			not = append(not, word)
			err = add(name, &from)
		} else {
			err = add(word, &to)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(to) == 0 {
		if err := add("HEAD", &to); err != nil {
			return nil, err
		}
	}
	w := c.newWalk(to...)
	if len(from) == 0 {
		return w, nil
	}
	w.excluded = not
	return w, w.exclude(from, to)
}

func (c *call) logEntry(link *repo.CommitNode, more bool) error {
	commit, err := c.Commit(link.ID)
	if err != nil {
		return err
	}
	switch c.Format {
	case "", "oneline":
		return c.page.line(c.Short(commit.ID) + " " + commit.Subject())
	}
	if more {
		if err := c.page.line(""); err != nil {
			return err
		}
	}
	if err := c.header(commit); err != nil || c.Format == "full" {
		return err
	}
	return c.commitChanges(commit)
}

// header writes the header and the message of a commit as git log does.
func (c *call) header(commit *repo.Commit) error {
	lines := []string{"commit " + commit.ID.String()}
	if len(commit.Parents) > 1 {
		merge := "Merge:"
		for _, p := range commit.Parents[:min(len(commit.Parents), 50)] {
			merge += " " + c.Short(p)
		}
		lines = append(lines, merge)
	}
	lines = append(lines, "Author: "+person(commit.Author), "Date:   "+commit.Author.When.Format(gitDate))
	for _, line := range lines {
		if err := c.page.line(line); err != nil {
			return err
		}
	}
	if commit.Message == "" {
		return nil
	}
	if err := c.page.line(""); err != nil {
		return err
	}
	for line := range strings.SplitSeq(commit.Message, "\n") {
		if err := c.page.line("    " + line); err != nil {
			return err
		}
	}
	if commit.Cut {
		return c.page.line("    [message cut: it is longer]")
	}
	return nil
}

func person(s repo.Signature) string {
	return oneLine(s.Name) + " <" + oneLine(strings.ToValidUTF8(s.Email, "\uFFFD")) + ">"
}

// oneLine removes ASCII control characters, including line breaks.
func oneLine(s string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return -1
		}
		return c
	}, s)
}

// commitChanges writes the changes of a commit. A merge is compared with its first parent; the
// format decides whether only its files are named or counted.
func (c *call) commitChanges(commit *repo.Commit) error {
	var before repo.ID
	if len(commit.Parents) > 0 {
		parent, err := c.Parent(&commit.CommitNode, 0)
		if err != nil {
			return err
		}
		before = parent.Tree
	}
	changes, err := c.diffTrees(before, commit.Tree, false)
	if err != nil {
		return err
	}
	if len(commit.Parents) > 1 {
		// The merged changes are in other commits; git shows only resolved conflicts.
		text, first := "[a merge, compared with its first parent %s]", c.Short(commit.Parents[0])
		if c.Operation == "log" && c.Format == "patch" {
			return c.page.linef("[a merge, which changes %s of its first parent %s; show with this commit names them]", plural(len(changes), "file"), first)
		}
		if c.Format == "" {
			text = "[a merge: the files in which it differs from its first parent %s; show with path has the lines of one, and format=patch those of all]"
		}
		if err := c.page.linef(text, first); err != nil {
			return err
		}
		if c.Format == "" && c.pathFilter == "" {
			return c.nameStatus(changes)
		}
	} else if len(commit.Parents) == 0 && c.Shallow() {
		c.note("the clone is shallow and ends at %s: all files are shown as new", c.Short(commit.ID))
	}
	if len(changes) == 0 {
		return nil
	}
	if err := c.page.line(""); err != nil {
		return err
	}
	return c.write(changes)
}
