package stage

import (
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/rootedfs"
)

// ownerRights are the permissions that the owner of a directory needs to look into it and to
// change its entries; root needs none.
const ownerRights fs.FileMode = 0o700

// lacksOwnerRights reports whether our user, not root, owns a directory and lacks ownerRights.
func lacksOwnerRights(fi os.FileInfo) bool {
	return ownedByNonRoot(fi) && fi.Mode()&ownerRights != ownerRights
}

// finalMode is the mode of a directory of the host that the commit sets at the end, because
// the mode may take away the right to change entries.
type finalMode struct {
	at     location
	n      *Node
	path   string      // path of the directory on the host
	unlock bool        // unlock adds ownerRights until then
	mode   fs.FileMode // the mode at the end
}

func (m *finalMode) identity() identity { return identityOf(m.n.origin.info, false) }

// unlock sets c.finalModes. It adds ownerRights to the open directories of overlays that lack
// them: the command has changed entries there, so it must have done the same.
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
	// A directory may lose the rights by which the directories below it are found.
	slices.SortFunc(c.finalModes, func(a, b finalMode) int {
		const separator = string(os.PathSeparator)
		return strings.Count(b.path, separator) - strings.Count(a.path, separator)
	})
	for i := range slices.Backward(c.finalModes) {
		m := &c.finalModes[i]
		if !m.unlock {
			continue
		}
		if err := c.begin("unlock", m.path); err != nil {
			return err
		}
		if err := m.identity().editAttributes(m.at, os.O_RDONLY, func(file *os.File, fi os.FileInfo) error {
			if !m.n.modeSet {
				m.mode = fi.Mode()
			}
			return c.do(&step{op: opMode, to: m.at, toIdentity: identityOf(fi, false), mode: fi.Mode()}, func() error {
				return rootedfs.Chmod(file, fi.Mode()|ownerRights)
			})
		}); err != nil {
			return err
		}
	}
	c.preparedSteps, c.doneSteps = c.doneSteps, nil // undone last, after the files in these directories
	return nil
}

// noteModes writes the final modes to the journal, for a process that finds the journal.
func (c *commit) noteModes() error {
	for _, m := range c.finalModes {
		if err := c.begin("note the mode of", m.path); err != nil {
			return err
		}
		if err := c.journal.note(&step{op: opFinalMode, to: m.at, toIdentity: m.identity(), mode: m.mode}); err != nil {
			return err
		}
	}
	return nil
}
