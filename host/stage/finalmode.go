package stage

import (
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/rootedfs"
)

// ownerRights are those without which the owner of a directory, unless that is root,
// can neither look into it nor change what is in it.
const ownerRights fs.FileMode = 0o700

// lacksOwnerRights reports whether a directory is ours, and does not let us do that.
func lacksOwnerRights(fi os.FileInfo) bool {
	return ownedByNonRoot(fi) && fi.Mode()&ownerRights != ownerRights
}

// finalMode is a directory of the host that gets its mode last, when nothing is to be
// done in it any more: it may be one that takes our rights away.
type finalMode struct {
	at     location
	n      *Node
	path   string // on the host
	unlock bool
	mode   fs.FileMode
}

func (cl *finalMode) identity() identity { return identityOf(cl.n.origin.info, false) }

// unlock finds the directories that get a mode, and takes the right to change those
// where a command must have done the same, as it has changed something there.
func (c *commit) unlock() error {
	trees, unlock := map[*Node]*Tree{}, map[*Node]bool{}
	for n, h := range c.dirs {
		if h.tree.layer != nil && n.atOrigin() && lacksOwnerRights(n.origin.info) {
			trees[n], unlock[n] = h.tree, true
		}
	}
	for _, ch := range c.all {
		if n := ch.n; n != nil && n.mode.IsDir() && n.modeSet && n.atOrigin() {
			trees[n] = ch.tree
		}
	}
	c.finalModes = nil
	for n, tree := range trees {
		path := tree.hostPath(n.Path())
		dir, err := c.dir(tree, n.origin.dir)
		if err != nil {
			return err
		}
		c.finalModes = append(c.finalModes, finalMode{location{dir, n.origin.name}, n, path, unlock[n], n.mode})
	}
	// One that is closed may be one through which those below it are found.
	slices.SortFunc(c.finalModes, func(a, b finalMode) int {
		const separator = string(os.PathSeparator)
		return strings.Count(b.path, separator) - strings.Count(a.path, separator)
	})
	for i := range slices.Backward(c.finalModes) {
		cl := &c.finalModes[i]
		if !cl.unlock {
			continue
		}
		if err := c.begin("unlock", cl.path); err != nil {
			return err
		}
		if err := cl.identity().editAttributes(cl.at, os.O_RDONLY, func(file *os.File, fi os.FileInfo) error {
			if !cl.n.modeSet {
				cl.mode = fi.Mode()
			}
			return c.do(&step{op: opMode, to: cl.at, toIdentity: identityOf(fi, false), mode: fi.Mode()}, func() error {
				return rootedfs.Chmod(file, fi.Mode()|ownerRights)
			})
		}); err != nil {
			return err
		}
	}
	c.preparedSteps, c.doneSteps = c.doneSteps, nil // to be put back when what is made in them is removed
	return nil
}

// noteModes writes down which modes are given last, so that who finds the journal does.
func (c *commit) noteModes() error {
	for _, cl := range c.finalModes {
		if err := c.begin("note the mode of", cl.path); err != nil {
			return err
		}
		if err := c.journal.note(&step{op: opFinalMode, to: cl.at, toIdentity: cl.identity(), mode: cl.mode}); err != nil {
			return err
		}
	}
	return nil
}
