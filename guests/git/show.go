package main

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/guests/git/repo"
	"github.com/stockade-dev/stockade/sdk/go/lines"
	"github.com/stockade-dev/stockade/sdk/go/tool"
)

// show shows a commit, a tag or a tree, or a file: REV:PATH in a commit, or :PATH in the index.
func (c *call) show() error {
	if c.Format == "oneline" {
		return tool.InvalidInput("format oneline is for log; show has full, patch and numstat")
	}
	if _, _, _, ok := cutRange(c.Revision); ok {
		return tool.InvalidInput("revision %q: show takes one revision; diff and log take a range", c.Revision)
	}
	rev, path, isPath := strings.Cut(c.Revision, ":")
	if isPath && rev == "" {
		return c.showIndexed(strings.TrimPrefix(path, "0:"))
	}
	id, err := c.Rev(c.Revision)
	if err != nil {
		return err
	}
	if path = strings.Trim(strings.TrimPrefix(path, "./"), "/"); path != "" {
		// A file looks like a secret by its whole path, so rev must be a commit.
		if _, err := c.CommitOf(rev); err != nil {
			return err
		}
	}
	return c.object(id, path, 0)
}

// showIndexed shows a file from the index.
func (c *call) showIndexed(path string) error {
	x, err := c.Index()
	if err != nil {
		return err
	}
	for i := range x.Entries {
		if e := &x.Entries[i]; e.Path == path && e.Stage == 0 {
			return c.object(e.ID, path, 0)
		}
	}
	return tool.NotFound("%s is not in the index; paths begin at the top of the repository", quote(path))
}

// maxTags limits the tags of tags that are followed; the object of the last one is not shown.
const maxTags = 10

// object shows an object. path is its path in the repository; empty: unknown, or the top.
// depth is the number of tags that were followed to it, at most maxTags.
func (c *call) object(id repo.ID, path string, depth int) error {
	if path != "" && c.isHidden(path) {
		return tool.Denied("%s: %w", quote(path), errHidden)
	}
	kind, err := c.Kind(id)
	if err != nil {
		return err
	}
	switch kind {
	case repo.KindCommit:
		commit, err := c.Commit(id)
		if err != nil {
			return err
		}
		if err := c.header(commit); err != nil || c.Format == "full" {
			return err
		}
		return c.commitChanges(commit)
	case repo.KindTag:
		t, err := c.Tag(id)
		if err != nil {
			return err
		}
		lines := []string{"tag " + oneLine(t.Name), "Tagger: " + person(t.Tagger), "Date:   " + t.Tagger.When.Format(gitDate), ""}
		if t.Message != "" {
			lines = append(append(lines, strings.Split(t.Message, "\n")...), "")
		}
		for _, line := range lines {
			if err := c.page.line(line); err != nil {
				return err
			}
		}
		if depth == maxTags {
			return nil
		}
		return c.object(t.Object, "", depth+1)
	case repo.KindTree:
		entries, err := c.Tree(id)
		if err != nil {
			return err
		}
		if err := c.page.line("tree " + oneLine(c.Revision)); err != nil {
			return err
		}
		if err := c.page.line(""); err != nil {
			return err
		}
		for _, e := range entries {
			if c.isHidden(strings.TrimPrefix(path+"/"+e.Name, "/")) {
				continue
			}
			name := quote(e.Name)
			if e.Mode == repo.ModeTree {
				name += "/"
			}
			if err := c.page.line(name); err != nil {
				return err
			}
		}
		return nil
	}
	return c.blob(id, path)
}

func (c *call) blob(id repo.ID, path string) error {
	if path != "" && (c.isSecret(path) || c.isSecretAlias(id, path, strings.HasPrefix(c.Revision, ":"))) {
		return c.page.line(notShown(path))
	}
	if path == "" {
		return tool.InvalidInput("revision %q is the content of a file; name it as REV:PATH", c.Revision)
	}
	data, err := c.ReadAs(id, repo.KindBlob)
	if err != nil {
		return err
	}
	if lines.IsBinary(data) || !utf8.Valid(data[:min(len(data), lines.BinaryProbe)]) && bytes.Count(data, []byte{'\n'}) == 0 {
		c.note("%s is a binary file of %d bytes, which is not shown", quote(path), len(data))
		return nil
	}
	for line := range bytes.Lines(data) {
		if err := c.page.line(string(bytes.TrimSuffix(line, []byte{'\n'}))); err != nil {
			return err
		}
	}
	if len(data) == 0 {
		c.note("%s is empty", quote(path))
	}
	return nil
}
