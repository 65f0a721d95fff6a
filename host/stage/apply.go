package stage

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/rootedfs"
)

// apply exchanges names, and sets the times and modes of files. First it moves everything
// aside that leaves its place, unless one step can exchange or move it later, or it goes with
// its directory. Then it puts everything in its new place, from the top down, so that all
// directories above a new place exist. So a directory never moves below itself.
func (c *commit) apply() error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	swaps := map[*Node]bool{} // originals that leave in exchange for their successors
	for _, tree := range c.s.trees {
		for _, ch := range c.placements(tree) {
			if was := c.occupant(ch.n); was != nil && c.removesOriginal(was) && !was.mode.IsDir() && !ch.n.mode.IsDir() {
				swaps[was] = true
			}
		}
		for _, ch := range c.all {
			// An original that was replaced by a file equal to it is not in c.all, and stays.
			if ch.tree != tree || ch.original == nil || ch.original.atOrigin() || swaps[ch.original] || c.movesDirectly(ch.original) || goesWithParent(ch.original) {
				continue
			}
			if err := c.moveAside(tree, ch.original); err != nil {
				return err
			}
		}
	}
	for _, tree := range c.s.trees {
		for _, ch := range c.placements(tree) {
			was := c.occupant(ch.n)
			if !swaps[was] {
				was = nil
			}
			if err := c.place(tree, ch.n, was); err != nil {
				return err
			}
		}
		if err := c.setFileTimes(tree); err != nil {
			return err
		}
		for _, ch := range c.all {
			if ch.tree == tree && ch.n != nil && ch.n.modeSet && !ch.n.mode.IsDir() && ch.n.atOrigin() && !ch.isNewOnHost() {
				if err := c.changeModeInPlace(tree, ch.n); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// movesDirectly reports whether a node can move in one step, so that it has a known name at
// every moment: it was not written, its new place must be free, nothing new may come to its
// old place, and no directory above the new place may be new or move.
func (c *commit) movesDirectly(n *Node) bool {
	if n.gone || n.fresh() || n.atOrigin() || c.occupant(n) != nil || n.origin.dir.children[n.origin.name] != nil {
		return false
	}
	for dir := n.parent; dir.parent != nil; dir = dir.parent {
		if !dir.atOrigin() {
			return false
		}
	}
	return true
}

// placements returns the changes whose nodes get a new place, or a new file at the old one,
// from the top down. Entries of a new directory are only among them if they are moved there
// without having been written.
func (c *commit) placements(tree *Tree) []change {
	var out []change
	for _, ch := range c.all {
		if ch.tree != tree || ch.n == nil || ch.n == tree.top {
			continue
		}
		inNew := ch.n.parent.origin == nil && ch.n.fresh()
		stays := ch.n.atOrigin() && !ch.isNewOnHost()
		if !inNew && !stays {
			out = append(out, ch)
		}
	}
	slices.SortFunc(out, func(a, b change) int {
		return cmp.Or(a.depth-b.depth, strings.Compare(a.path, b.path))
	})
	return out
}

// occupant returns the host's node at the place of n, maybe n itself; nil: there is none.
func (c *commit) occupant(n *Node) *Node {
	if n.atOrigin() {
		return n
	}
	return n.parent.displaced[n.name]
}

// goesWithParent reports whether a node and its directory on the host were both removed.
func goesWithParent(n *Node) bool { return n.gone && n.origin.dir.gone }

// addRemoval notes a replaced or removed file for the removal at the end. It skips files that
// are in a layer now, which go with the layer.
func (c *commit) addRemoval(at location, n *Node) {
	if at.dir.node == nil {
		return
	}
	c.removals = append(c.removals, removal{at, n})
}

// removesOriginal reports whether the host loses the present file of a node: the node was
// removed, or comes to the host as a new file.
func (c *commit) removesOriginal(n *Node) bool { return n.gone || n.fresh() }

// moveAside renames the host's file of a node to a temporary name in its directory. A file
// that the commit removes or replaces goes to the trash of the tree's layer instead, if there
// is one and the move is possible.
func (c *commit) moveAside(tree *Tree, n *Node) error {
	path := tree.hostPath(n.origin.path())
	if err := c.begin("move aside", path); err != nil {
		return err
	}
	h, err := c.dir(tree, n.origin.dir)
	if err != nil {
		return err
	}
	from, to := location{h, n.origin.name}, location{h, tempName()}
	// A directory without write permission cannot move to another directory.
	stuck := n.mode.IsDir() && n.origin.info.Mode()&0o200 == 0
	if trash := c.trash(tree); trash != nil && c.removesOriginal(n) && !stuck {
		to.dir = trash
	}
	s := &step{op: opRename, from: from, to: to, toIdentity: identityOf(n.origin.info, false), removeAtEnd: c.removesOriginal(n)}
	if err := c.do(s, func() error { return renameNoReplace(from, to) }); err != nil {
		return err
	}
	c.movedTo[n] = to
	fi, err := to.lstat()
	s.toIdentity = identityOf(fi, false) // even if it is not n
	if err != nil {
		return err
	}
	if err := c.checkMoved(to, n, path); err != nil {
		return err
	}
	if c.removesOriginal(n) {
		c.addRemoval(to, n)
	} else {
		c.sources[n] = to
	}
	return nil
}

// checkMoved checks that the commit has just moved the file of n to a location, and not one
// that got its name after verify. path names the file in errors.
func (c *commit) checkMoved(at location, n *Node, path string) error {
	fi, err := at.lstat()
	if err != nil {
		return err
	}
	if how := difference(fi, n.origin.info, !c.removesOriginal(n)); how != "" {
		return c.changedError(path, how)
	}
	if n.gone && fi.IsDir() {
		return c.checkMovedTree(at, n, path)
	}
	return nil
}

// checkMovedTree calls checkMoved for the entries of a removed directory. Entries that the
// commit has yet to move out of it, or has renamed in it, are checked when they move. Any other
// entry is an error.
func (c *commit) checkMovedTree(at location, n *Node, path string) error {
	root, _, err := rootedfs.OpenDir(at.dir.root, at.name)
	if err != nil {
		return err
	}
	defer root.Close()
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	names, err := dir.Readdirnames(-1)
	if err = errors.Join(err, dir.Close()); err != nil {
		return err
	}
	for _, name := range names {
		path := filepath.Join(path, name)
		was := n.displaced[name]
		if was != nil && !was.gone && c.movedTo[was].dir == nil || c.hasMovedTo(n, name) {
			continue
		}
		if was == nil || !was.gone {
			return c.changedError(path, "something is there now")
		}
		if err := c.checkMoved(location{&handle{root: root}, name}, was, path); err != nil {
			return err
		}
	}
	return nil
}

// hasMovedTo reports whether the commit has moved a node to a name in a directory.
func (c *commit) hasMovedTo(dir *Node, name string) bool {
	for _, at := range c.movedTo {
		if at.dir.node == dir && at.name == name {
			return true
		}
	}
	return false
}

// place puts a node in its place on the host. was is the original that still has this place;
// nil: the place is free.
func (c *commit) place(tree *Tree, n, was *Node) error {
	path := tree.hostPath(n.Path())
	to, err := c.beginAt("put in place", tree, n)
	if err != nil {
		return err
	}
	from, ok := c.sources[n]
	switch {
	case ok:
	case c.movesDirectly(n):
		old, err := c.dir(tree, n.origin.dir)
		if err != nil {
			return err
		}
		from = location{old, n.origin.name}
		if n.modeSet {
			if err := c.setMode(from, n); err != nil {
				return err
			}
		}
		if err := c.rename(from, to, false, false); err != nil {
			return err
		}
		c.movedTo[n] = to
		return c.checkMoved(to, n, tree.hostPath(n.origin.path()))
	default:
		return fmt.Errorf("%s was not prepared", path)
	}
	if n.modeSet && !n.fresh() {
		if err := c.setMode(from, n); err != nil {
			return err
		}
	}
	c.movedTo[n] = to
	if was == nil {
		err = c.rename(from, to, n.fresh(), false)
		return c.finishMode(n, to, err)
	}
	err = errors.ErrUnsupported
	if !c.s.noExchange {
		err = c.exchange(from, to, n.fresh())
	}
	switch {
	case err == nil:
		c.addRemoval(from, was)
		err = c.checkMoved(from, was, path)
	case errors.Is(err, errors.ErrUnsupported):
		if err = c.moveAside(tree, was); err == nil {
			err = c.rename(from, to, n.fresh(), false)
		}
	}
	return c.finishMode(n, to, err)
}

// finishMode sets the mode of a node that had a temporary mode until it was in its place. If
// err is not nil, it returns err and does nothing.
func (c *commit) finishMode(n *Node, at location, err error) error {
	if err != nil || n.upper == nil || !n.upper.tempMode {
		return err
	}
	fi, err := at.lstat()
	if err != nil {
		return err
	}
	return c.changeMode(at, identityOf(fi, false), n.mode, nil)
}
