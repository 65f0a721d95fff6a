package stage

import (
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/beneath"
)

// ownRights are those without which the owner of a directory, unless that is root,
// can neither look into it nor change what is in it.
const ownRights fs.FileMode = 0o700

// locked reports whether a directory is ours, and does not let us do that.
func locked(fi os.FileInfo) bool { return mine(fi) && fi.Mode()&ownRights != ownRights }

// closing is a directory of the host that gets its mode last, when nothing is to be
// done in it any more: it may be one that takes our rights away.
type closing struct {
	at     spot
	n      *Node
	path   string // on the host
	unlock bool
	mode   fs.FileMode
}

func (cl *closing) mark() mark { return markOf(cl.n.origin.info, false) }

// unlock finds the directories that get a mode, and takes the right to change those
// where a command must have done the same, as it has changed something there.
func (c *commit) unlock() error {
	trees, unlock := map[*Node]*Tree{}, map[*Node]bool{}
	for n, h := range c.dirs {
		if h.tree.layer != nil && n.home() && locked(n.origin.info) {
			trees[n], unlock[n] = h.tree, true
		}
	}
	for _, ch := range c.all {
		if n := ch.n; n != nil && n.mode.IsDir() && n.chmod && n.home() {
			trees[n] = ch.tree
		}
	}
	c.closings = nil
	for n, tree := range trees {
		path := tree.hostPath(n.Path())
		dir, err := c.dir(tree, n.origin.dir)
		if err != nil {
			return err
		}
		c.closings = append(c.closings, closing{spot{dir, n.origin.name}, n, path, unlock[n], n.mode})
	}
	// One that is closed may be one through which those below it are found.
	slices.SortFunc(c.closings, func(a, b closing) int {
		const separator = string(os.PathSeparator)
		return strings.Count(b.path, separator) - strings.Count(a.path, separator)
	})
	for i := range slices.Backward(c.closings) {
		cl := &c.closings[i]
		if !cl.unlock {
			continue
		}
		if err := c.begin("unlock", cl.path); err != nil {
			return err
		}
		if err := cl.mark().edit(cl.at, os.O_RDONLY, func(file *os.File, fi os.FileInfo) error {
			if !cl.n.chmod {
				cl.mode = fi.Mode()
			}
			return c.do(&step{op: remoded, to: cl.at, comes: markOf(fi, false), mode: fi.Mode()}, func() error {
				return beneath.Chmod(file, fi.Mode()|ownRights)
			})
		}); err != nil {
			return err
		}
	}
	c.made, c.undo = c.undo, nil // to be put back when what is made in them is removed
	return nil
}

// noteModes writes down which modes are given last, so that who finds the journal does.
func (c *commit) noteModes() error {
	for _, cl := range c.closings {
		if err := c.begin("note the mode of", cl.path); err != nil {
			return err
		}
		if err := c.journal.note(&step{op: closed, to: cl.at, comes: cl.mark(), mode: cl.mode}); err != nil {
			return err
		}
	}
	return nil
}
