package main

import (
	"strings"

	"github.com/stockade-dev/stockade/guests/git/repo"
	"github.com/stockade-dev/stockade/sdk/go/tool"
)

const (
	defaultCommits = 20
	maxCommits     = 200
	gitDate        = "Mon Jan 2 15:04:05 2006 -0700"
)

// log is the operation: git log, --oneline unless a format is given.
func (c *call) log() error {
	limit := c.Limit
	if limit == 0 {
		limit = defaultCommits
	}
	limit = min(limit, maxCommits)
	c.page.skip, c.page.limit = 0, 0 // commits are counted here, not lines
	w, err := c.walkOf(c.Revision)
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
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
		before := c.page.out.String()
		if n == c.Offset+limit {
			c.page.full, c.page.next = true, n
			break
		}
		commit, err := c.Commit(link.ID)
		if err != nil {
			return err
		}
		if err := c.logEntry(commit, n > c.Offset); err == errFull && n > c.Offset {
			// The commit comes with the next page, as a whole.
			c.page = page{full: true, next: n}
			c.page.out.WriteString(before)
			break
		} else if err != nil {
			if err == errFull {
				c.page.next = n + 1
				c.note("the commit %s is too long to be shown as a whole; operation show pages through it", c.Short(commit.ID))
			}
			return err
		}
	}
	switch {
	case w.cut:
		c.note("%d commits were looked at; what is older is not listed", maxWalk)
	case c.page.out.Len() == 0 && c.Offset > 0:
		c.note("there are no more commits")
	case c.page.out.Len() == 0 && c.only != "":
		c.note("no commit changes %s; if it was renamed, its history goes on under the older name", quote(c.only))
	case c.page.out.Len() == 0:
		c.note("there is no commit in %s", quote(c.Revision))
	}
	if c.Shallow() && !c.page.full {
		c.note("the clone is shallow: older commits are not here")
	}
	return nil
}

// walkOf starts a walk at a revision or a range.
func (c *call) walkOf(revision string) (*walk, error) {
	a, b, three, ok := cutRange(revision)
	if !ok {
		from, err := c.CommitOf(revision)
		if err != nil {
			return nil, err
		}
		return c.walk(&from.Link), nil
	}
	if strings.Contains(revision, " ") {
		return nil, tool.InvalidInput("revision %q: log takes one revision or a range A..B", revision)
	}
	from, err := c.CommitOf(a)
	if err != nil {
		return nil, err
	}
	to, err := c.CommitOf(b)
	if err != nil {
		return nil, err
	}
	if three {
		return nil, tool.InvalidInput("revision %q: log takes A..B; A...B is for diff", revision)
	}
	w := c.walk(&to.Link)
	return w, w.exclude(&from.Link, &to.Link)
}

func (c *call) logEntry(commit *repo.Commit, more bool) error {
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

// header writes a commit as git log does.
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

func oneLine(s string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return -1
		}
		return c
	}, s)
}

// commitChanges writes what a commit changes, of a merge compared with its first
// parent.
func (c *call) commitChanges(commit *repo.Commit) error {
	var before repo.ID
	if len(commit.Parents) > 0 {
		parent, err := c.Link(commit.Parents[0])
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
		if err := c.page.linef("[a merge, compared with its first parent %s]", c.Short(commit.Parents[0])); err != nil {
			return err
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
