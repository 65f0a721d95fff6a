package main

import (
	"strings"

	"github.com/stockade-dev/stockade/guests/git/repo"
)

// branches is the operation: local branches, those of remotes, and tags, as git branch
// and git tag list them, with what they are at.
func (c *call) branches() error {
	head, err := c.Head()
	if err != nil {
		return err
	}
	if head.Branch == "" {
		if err := c.page.linef("* (HEAD detached at %s)", c.Short(head.ID)); err != nil {
			return err
		}
	}
	for _, group := range []struct{ below, prefix string }{
		{"refs/heads/", ""}, {"refs/remotes/", "remotes/"}, {"refs/tags/", "tags/"},
	} {
		refs, more, err := c.Refs(group.below)
		if err != nil {
			return err
		}
		for _, ref := range refs {
			mark := "  "
			if ref.Name == head.Branch {
				mark = "* "
			}
			if err := c.page.line(mark + group.prefix + strings.TrimPrefix(ref.Name, group.below) + " " + c.Short(ref.ID)); err != nil {
				return err
			}
		}
		if more {
			c.note("there are more than %d references in %s", repo.MaxRefs, group.below)
		}
	}
	if head.Branch != "" && head.ID.IsZero() {
		c.note("no commits yet on %s", strings.TrimPrefix(head.Branch, "refs/heads/"))
	}
	return nil
}
