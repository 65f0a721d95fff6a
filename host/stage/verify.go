package stage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/stockade-dev/stockade/host/rootedfs"
	"github.com/stockade-dev/stockade/host/tool"
)

// verify compares changed files and new places on the host with what the call has seen.
func (c *commit) verify() error {
	for i := range c.all {
		ch := &c.all[i]
		if err := c.ctx.Err(); err != nil {
			return fmt.Errorf("commit: %w", err)
		}
		if ch.original != nil {
			if err := c.verifyOriginal(ch, ch.original); err != nil {
				return err
			}
		}
		if n := ch.n; n != nil && n.origin != nil && n.mode.IsDir() && n.times.given() {
			if _, err := c.dir(ch.tree, n); err != nil { // tidy sets its times at the end
				return err
			}
		}
		if ch.n != nil && !ch.n.atOrigin() && ch.n.parent.origin != nil {
			if err := c.verifyPlace(ch); err != nil {
				return err
			}
		}
	}
	return nil
}

// verifyOriginal compares the origin of n, as the call has seen it, with its present state.
func (c *commit) verifyOriginal(ch *change, n *Node) error {
	tree, o := ch.tree, n.origin
	path := tree.hostPath(o.path())
	if o.dir == nil {
		_, err := c.dir(tree, n) // the top of the tree
		return err
	}
	fi, err := c.lstat(tree, n)
	if err != nil {
		return c.lookupError(path, err)
	}
	identityOnly := ch.kind == tool.Renamed && n.data == nil || ch.kind == tool.TimesChanged
	how := difference(fi, o.info, identityOnly)
	if how == "" && !identityOnly && fi.Mode().IsRegular() && !o.rolledBack && rootedfs.StatOf(fi).Ctim != rootedfs.StatOf(o.info).Ctim {
		how = "the time of its last change"
	}
	if how != "" {
		return c.changedError(path, how)
	}
	switch {
	case ch.kind == tool.DirectoryRemoved:
		return c.verifyGone(tree, n, path)
	case !fi.Mode().IsRegular():
		return nil
	}
	mustBeSingle := ch.n == n && n.upper == nil // it is changed itself, so it must not have other names
	if n.oldDigest == nil && (!mustBeSingle || ch.kind != tool.Modified && ch.kind != tool.TimesChanged) {
		return nil
	}
	file, now, err := tree.open(n)
	if err != nil {
		return c.lookupError(path, err)
	}
	defer file.Close()
	if mustBeSingle && rootedfs.RefuseHardLinks(file, now) != nil {
		return c.changedError(path, "it has several hard links")
	}
	if n.oldDigest != nil {
		sum, err := digestOf(file)
		if err != nil {
			return err
		}
		if sum != *n.oldDigest {
			return c.changedError(path, "its content")
		}
	}
	return nil
}

// lstat returns the present state of a node's origin. It keeps no handle of a gone directory.
func (c *commit) lstat(tree *Tree, n *Node) (os.FileInfo, error) {
	if !goesWithParent(n) {
		h, err := c.dir(tree, n.origin.dir)
		if err != nil {
			return nil, err
		}
		return h.root.Lstat(n.origin.name)
	}
	cur := c.cursors[tree]
	if cur == nil {
		cur = tree.Cursor()
		cur.strict = true
		c.cursors[tree] = cur
	}
	if err := cur.moveTo(n.origin.dir); err != nil {
		return nil, err
	}
	return cur.root.Lstat(n.origin.name)
}

// difference describes how a file differs from its earlier state in identity, size, time of
// modification or mode; empty: in none of them. If identityOnly is set, or the file is not
// regular, it only compares which file it is.
func difference(fi, was os.FileInfo, identityOnly bool) string {
	switch {
	case !rootedfs.SameFile(fi, was) || fi.Mode().Type() != was.Mode().Type():
		return "something else is there"
	case fi.Mode().Type() == fs.ModeSymlink && !fi.ModTime().Equal(was.ModTime()):
		return "something else is there" // inode numbers are used again
	case identityOnly || !fi.Mode().IsRegular():
		return ""
	case fi.Size() != was.Size():
		return "its size"
	case !fi.ModTime().Equal(was.ModTime()):
		return "its modification time"
	case fi.Mode() != was.Mode():
		return "its mode"
	}
	return ""
}

// lookupError returns the error for a file that could not be examined. It wraps
// [policy.ErrChanged] if somebody has removed or replaced the file.
func (c *commit) lookupError(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errReplaced) || errors.Is(err, errNameReused) {
		return c.changedError(path, reason(err))
	}
	return fmt.Errorf("commit: %s: %w", path, err)
}

func reason(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "it is gone"
	case errors.Is(err, errReplaced):
		return "something else is there"
	}
	return err.Error()
}

// verifyPlace checks that the new place of a node is free, or that the call has freed it.
func (c *commit) verifyPlace(ch *change) error {
	h, err := c.dir(ch.tree, ch.n.parent)
	if err != nil {
		return err
	}
	fi, err := h.root.Lstat(ch.n.name)
	was := ch.n.parent.displaced[ch.n.name]
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil // a change of the file that was there is checked by itself
	case err != nil:
		return err
	case was == nil || !rootedfs.SameFile(fi, was.origin.info):
		return c.changedError(ch.tree.hostPath(ch.n.Path()), "something is there now")
	}
	return nil
}

// verifyGone checks that a removed directory has no entries that the call has not removed or
// moved. Entries that this commit has prepared do not count.
func (c *commit) verifyGone(tree *Tree, n *Node, path string) error {
	h, err := c.dir(tree, n)
	if err != nil {
		return err
	}
	var names []string
	if err := h.withFile(func(dir *os.File) error {
		names, err = dir.Readdirnames(-1)
		return err
	}); err != nil {
		return err
	}
	for _, name := range names {
		if n.displaced[name] == nil && !c.isPrepared(h, name) {
			return c.changedError(path, "it is not empty any more")
		}
	}
	return nil
}

// isPrepared reports whether this commit has made the file of this name in h, or moved it to
// h.
func (c *commit) isPrepared(h *handle, name string) bool {
	for _, p := range c.sources {
		if p == (location{h, name}) {
			return true
		}
	}
	return false
}

// recheck checks the places of all open directories that stay: each must be where it was found,
// or where the commit has moved it. Otherwise somebody has moved it meanwhile, and the changes
// were made in the wrong place.
func (c *commit) recheck() error {
	for n, h := range c.dirs {
		if n.gone {
			continue
		}
		path := h.tree.hostPath(n.Path())
		if err := c.begin("check", path); err != nil {
			return err
		}
		fi, err := h.root.Stat(".")
		if err != nil {
			return err
		}
		now, err := lstatInside(h.tree.root, n)
		if err != nil {
			return c.lookupError(path, err)
		}
		if !rootedfs.SameFile(fi, now) {
			return c.changedError(path, "it was moved")
		}
	}
	return nil
}

// lstatInside returns the state of a directory at its path in the tree, and follows no link.
// If something on the way is no directory, it returns the state of that.
func lstatInside(top rootedfs.Root, n *Node) (os.FileInfo, error) {
	at, err := top.OpenRoot(".")
	if err != nil {
		return nil, err
	}
	defer func() { _ = at.Close() }()
	for name := range strings.SplitSeq(n.Path(), "/") {
		fi, err := at.Lstat(name)
		if err != nil {
			return nil, err
		}
		if !fi.IsDir() {
			return fi, nil
		}
		next, _, err := rootedfs.OpenDir(at, name)
		if err != nil {
			return nil, err
		}
		_ = at.Close()
		at = next
	}
	return at.Stat(".")
}
