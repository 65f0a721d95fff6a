package main

import (
	"fmt"
	"strings"

	"github.com/stockade-dev/stockade/guests/git/repo"
)

// branches writes local branches, remote ones, and tags with abbreviated IDs, in a form like
// that of git branch. The ID of an annotated tag is its own, not that of the commit.
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
	groups := []struct {
		below, prefix, what string
		refs                []repo.Ref
	}{
		{below: "refs/heads/", what: "branches"}, {below: "refs/remotes/", prefix: "remotes/", what: "branches of remotes"}, {below: "refs/tags/", prefix: "tags/", what: "tags"},
	}
	var counts []string
	for i := range groups {
		g := &groups[i]
		refs, more, err := c.Refs(g.below)
		if err != nil {
			return err
		}
		g.refs = refs
		count := fmt.Sprintf("%d %s", len(refs), g.what)
		if more {
			count = "more than " + count
			c.note("only the first %d %s are listed; git for-each-ref %s, run by bash, lists all", len(refs), g.what, g.below)
		}
		counts = append(counts, count)
	}
	defer func() {
		if c.page.full {
			c.note("in all there are %s", strings.Join(counts, ", "))
		}
	}()
	for _, group := range groups {
		for _, ref := range group.refs {
			mark := "  "
			if ref.Name == head.Branch {
				mark = "* "
			}
			if err := c.page.line(mark + group.prefix + strings.TrimPrefix(ref.Name, group.below) + " " + c.Short(ref.ID)); err != nil {
				return err
			}
		}
	}
	if head.Branch != "" && head.ID.IsZero() {
		c.note("no commits yet on %s", strings.TrimPrefix(head.Branch, "refs/heads/"))
	}
	return nil
}
