package stage

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/beneath"
)

// apply exchanges names. First everything that leaves its place is moved aside
// in its own directory; then, from the top down, everything gets its new
// place. A directory then never moves below itself, whatever was exchanged,
// because all directories above the new place are there already.
func (c *commit) apply() error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	swaps := map[*Node]bool{} // what leaves in exchange for what comes
	for _, tree := range c.s.trees {
		for _, ch := range c.placed(tree) {
			if was := c.occupant(ch.n); was != nil && c.leaves(was) && !was.mode.IsDir() && !ch.n.mode.IsDir() {
				swaps[was] = true
			}
		}
		for _, ch := range c.all {
			// What was replaced by the same is not in the list, and stays.
			if ch.tree != tree || ch.was == nil || ch.was.home() || swaps[ch.was] || c.direct(ch.was) || carried(ch.was) {
				continue
			}
			if err := c.park(tree, ch.was); err != nil {
				return err
			}
		}
	}
	for _, tree := range c.s.trees {
		for _, ch := range c.placed(tree) {
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
			if ch.tree == tree && ch.n != nil && ch.n.chmod && !ch.n.mode.IsDir() && ch.n.home() && !ch.remade() {
				if err := c.remode(tree, ch.n); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// direct reports whether something moves in one step, so that it is never
// without a name that anybody knows: nothing is where it goes or comes where it
// was, and no directory above moves, so that it cannot be this one.
func (c *commit) direct(n *Node) bool {
	if n.gone || n.fresh() || n.home() || c.occupant(n) != nil || n.origin.dir.children[n.origin.name] != nil {
		return false
	}
	for dir := n.parent; dir.parent != nil; dir = dir.parent {
		if !dir.home() {
			return false
		}
	}
	return true
}

// placed is what gets a place, from the top down: not what is in a new
// directory, unless it is moved there.
func (c *commit) placed(tree *Tree) []change {
	var out []change
	for _, ch := range c.all {
		if ch.tree != tree || ch.n == nil || ch.n == tree.top {
			continue
		}
		inNew := ch.n.parent.origin == nil && ch.n.fresh()
		stays := ch.n.home() && !ch.remade()
		if !inNew && !stays {
			out = append(out, ch)
		}
	}
	slices.SortFunc(out, func(a, b change) int {
		return cmp.Or(a.depth-b.depth, strings.Compare(a.path, b.path))
	})
	return out
}

// occupant is what the host has in the place of a node, or nil.
func (c *commit) occupant(n *Node) *Node {
	if n.home() {
		return n
	}
	return n.parent.away[n.name]
}

// carried reports whether something goes with the directory that it is in.
func carried(n *Node) bool { return n.gone && n.origin.dir.gone }

// lose takes down what is to be removed in the end. In the trash it is removed
// already.
func (c *commit) lose(at spot, n *Node) {
	if at.dir.node == nil {
		return
	}
	c.gone = append(c.gone, loss{at, n})
}

// leaves reports whether what the host has of a node is to be removed.
func (c *commit) leaves(n *Node) bool { return n.gone || n.fresh() }

// park moves what the host has of a node aside.
func (c *commit) park(tree *Tree, n *Node) error {
	path := tree.hostPath(n.origin.path())
	if err := c.begin("move aside", path); err != nil {
		return err
	}
	h, err := c.dir(tree, n.origin.dir)
	if err != nil {
		return err
	}
	from, to := spot{h, n.origin.name}, spot{h, tempName()}
	// A directory that may not be written does not move to another.
	stuck := n.mode.IsDir() && n.origin.info.Mode()&0o200 == 0
	if trash := c.trash(tree); trash != nil && c.leaves(n) && !stuck {
		to.dir = trash
	}
	s := &step{op: renamed, from: from, to: to, comes: markOf(n.origin.info, false), lost: c.leaves(n)}
	if err := c.do(s, func() error { return renameNew(from, to) }); err != nil {
		return err
	}
	c.moved[n] = to
	fi, err := to.lstat()
	s.comes = markOf(fi, false) // whatever it is
	if err != nil {
		return err
	}
	if err := c.still(to, n, path); err != nil {
		return err
	}
	if c.leaves(n) {
		c.lose(to, n)
	} else {
		c.held[n] = to
	}
	return nil
}

// still checks what was moved, after the fact: the name may have been given to
// something else since it was looked at.
func (c *commit) still(at spot, n *Node, path string) error {
	fi, err := at.lstat()
	if err != nil {
		return err
	}
	if how := differs(fi, n.origin.info, !c.leaves(n)); how != "" {
		return c.changed(path, how)
	}
	if n.gone && fi.IsDir() {
		return c.stillAll(at, n, path)
	}
	return nil
}

// stillAll is still for what was moved with a directory.
func (c *commit) stillAll(at spot, n *Node, path string) error {
	root, _, err := beneath.OpenDir(at.dir.root, at.name)
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
		was := n.away[name]
		if was == nil || !was.gone {
			return c.changed(path, "something is there now")
		}
		if err := c.still(spot{&handle{root: root}, name}, was, path); err != nil {
			return err
		}
	}
	return nil
}

// place puts a node where the tree has it. was is what it replaces.
func (c *commit) place(tree *Tree, n, was *Node) error {
	path := tree.hostPath(n.Path())
	to, err := c.beginAt("put in place", tree, n)
	if err != nil {
		return err
	}
	from, ok := c.held[n]
	switch {
	case ok:
	case c.direct(n):
		old, err := c.dir(tree, n.origin.dir)
		if err != nil {
			return err
		}
		from = spot{old, n.origin.name}
		if n.chmod {
			if err := c.setMode(from, n); err != nil {
				return err
			}
		}
		if err := c.rename(from, to, false, false); err != nil {
			return err
		}
		c.moved[n] = to
		return c.still(to, n, tree.hostPath(n.origin.path()))
	default:
		return fmt.Errorf("%s was not prepared", path)
	}
	if n.chmod && !n.fresh() {
		if err := c.setMode(from, n); err != nil {
			return err
		}
	}
	c.moved[n] = to
	if was == nil {
		err = c.rename(from, to, n.fresh(), false)
		return c.finishMode(n, to, err)
	}
	err = errors.ErrUnsupported
	if !c.s.inSteps {
		err = c.exchange(from, to, n.fresh())
	}
	switch {
	case err == nil:
		c.lose(from, was)
		err = c.still(from, was, path)
	case errors.Is(err, errors.ErrUnsupported):
		if err = c.park(tree, was); err == nil {
			err = c.rename(from, to, n.fresh(), false)
		}
	}
	return c.finishMode(n, to, err)
}

// finishMode gives something its mode that had another until it was in its place.
func (c *commit) finishMode(n *Node, at spot, err error) error {
	if err != nil || n.upper == nil || !n.upper.access {
		return err
	}
	fi, err := at.lstat()
	if err != nil {
		return err
	}
	return c.changeMode(at, markOf(fi, false), n.mode, nil)
}
