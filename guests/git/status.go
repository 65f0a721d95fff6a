package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/stockade-dev/stockade/guests/git/repo"
)

// conflictCodes holds git's codes of conflicts, by the stages of a path: stage n sets bit n-1.
var conflictCodes = [8]string{1: "DD", 2: "AU", 3: "UD", 4: "UA", 5: "DU", 6: "AA", 7: "UU"}

// status writes git status --short --branch.
func (c *call) status() error {
	head, err := c.Head()
	if err != nil {
		return err
	}
	x, err := c.Index()
	if err != nil {
		return err
	}
	tree, err := c.headTree()
	if err != nil {
		return err
	}
	if err := c.checkPathKnown(x, tree); err != nil {
		return err
	}
	staged, err := c.diffIndex(tree, x)
	if err != nil {
		return err
	}
	if staged, err = c.findRenames(staged); err != nil {
		return err
	}
	s, err := c.scanWorktree(x, true)
	if err != nil {
		return err
	}
	if err := c.page.line(c.branchLine(head)); err != nil {
		return err
	}
	if err := c.shortStatus(staged, s.changes, conflicts(x, c.covers), s.untracked); err != nil {
		return err
	}
	if c.page.lines == 1 && c.partial {
		c.note("nothing of what was compared is changed or untracked")
	} else if c.page.lines == 1 && c.pathFilter == "" {
		c.note("nothing is changed or untracked")
	} else if c.page.lines == 1 {
		c.note("nothing is changed or untracked in %s", quote(c.pathFilter))
	}
	c.noteUnderWay()
	return nil
}

// conflict is a path with a conflict in the index, and git's code for it.
type conflict struct{ path, code string }

func conflicts(x *repo.Index, covers func(string) bool) (out []conflict) {
	for i := 0; i < len(x.Entries); i++ {
		e := &x.Entries[i]
		if e.Stage == 0 || !covers(e.Path) {
			continue
		}
		stages := 0
		for ; i < len(x.Entries) && x.Entries[i].Path == e.Path; i++ {
			if s := x.Entries[i].Stage; s > 0 {
				stages |= 1 << (s - 1)
			}
		}
		i--
		out = append(out, conflict{e.Path, conflictCodes[stages]})
	}
	return out
}

// shortStatus writes a line for each path: changed ones by path, then untracked ones.
func (c *call) shortStatus(staged, working []change, conflicts []conflict, untracked []string) error {
	for len(staged)+len(working)+len(conflicts) > 0 {
		path := ""
		least := func(p string) {
			if path == "" || p < path {
				path = p
			}
		}
		if len(staged) > 0 {
			least(staged[0].path())
		}
		if len(working) > 0 {
			least(working[0].path())
		}
		if len(conflicts) > 0 {
			least(conflicts[0].path)
		}
		code, name := []byte("  "), c.shortName(path)
		for len(staged) > 0 && staged[0].path() == path {
			if code[0] = staged[0].statusLetter(); staged[0].isRename() {
				name = c.shortName(staged[0].from.path) + " -> " + name
			}
			staged = staged[1:]
		}
		for len(working) > 0 && working[0].path() == path {
			code[1] = working[0].statusLetter()
			working = working[1:]
		}
		if len(conflicts) > 0 && conflicts[0].path == path {
			copy(code, conflicts[0].code)
			conflicts = conflicts[1:]
		}
		if err := c.page.line(string(code) + " " + name); err != nil {
			return err
		}
	}
	for _, path := range untracked {
		if err := c.page.line("?? " + c.shortName(path)); err != nil {
			return err
		}
	}
	return nil
}

// shortName returns a path in the form of git status --short: relative to the working
// directory, and in quotes also if it has a blank.
func (c *call) shortName(path string) string {
	rel := c.relative(path)
	if strings.Contains(rel, " ") && !needsQuotes(rel) {
		return `"` + rel + `"`
	}
	return quote(rel)
}

// branchLine returns the first line of a status. The configuration, which names the upstream
// of a branch, is not read: the branch of the same name at origin is taken for the upstream.
func (c *call) branchLine(head repo.Head) string {
	name, ok := strings.CutPrefix(head.Branch, "refs/heads/")
	switch {
	case !ok:
		return "## HEAD (no branch)"
	case head.ID.IsZero():
		return "## No commits yet on " + name
	}
	line := "## " + name
	upstream, err := c.CommitOf("refs/remotes/origin/" + name)
	if err != nil {
		return line
	}
	line += "...origin/" + name
	ahead, behind, known := c.aheadBehind(head.ID, upstream.ID)
	switch {
	case !known:
		return line + " [differs by many commits]"
	case ahead > 0 && behind > 0:
		return line + fmt.Sprintf(" [ahead %d, behind %d]", ahead, behind)
	case ahead > 0:
		return line + fmt.Sprintf(" [ahead %d]", ahead)
	case behind > 0:
		return line + fmt.Sprintf(" [behind %d]", behind)
	}
	return line
}

// noteUnderWay notes operations that git has not finished, such as a merge.
func (c *call) noteUnderWay() {
	for _, w := range []struct{ file, what string }{
		{"rebase-merge", "a rebase is in progress"},
		{"rebase-apply", "a rebase or git am is in progress"},
		{"MERGE_HEAD", "a merge is in progress"},
		{"CHERRY_PICK_HEAD", "a cherry-pick is in progress"},
		{"REVERT_HEAD", "a revert is in progress"},
		{"BISECT_LOG", "a bisection is in progress"},
	} {
		if _, err := os.Lstat(filepath.Join(c.GitDir, w.file)); err == nil {
			c.note("%s", w.what)
		}
	}
}
