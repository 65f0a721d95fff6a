package stage

import (
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// leaveOut is [collector.file] for what is not kept.
func (c *collector) leaveOut(_ *Node, fd int, _ string, e found) error {
	if err := c.removed(e.n, e.live); err != nil {
		return err
	}
	return unix.Unlinkat(fd, e.name, 0)
}

// derived reports whether a file is one that git makes of the others of a repository, to
// find things faster, and believes: a commit-graph, a multi-pack-index, a reverse index
// or a bitmap of a pack. What a command has written of these is left out, for it could
// say anything, and git can do without.
func (c *collector) derived(rel string, st *unix.Stat_t) bool {
	name := filepath.ToSlash(c.tree.hostPath(rel))
	i := strings.LastIndex(name, "/objects/")
	if i < 0 || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return false
	}
	file, packed := strings.CutPrefix(name[i+len("/objects/"):], "pack/")
	switch {
	case packed:
		if !strings.HasPrefix(file, "multi-pack-index") && !strings.HasSuffix(file, ".rev") && !strings.HasSuffix(file, ".bitmap") {
			return false
		}
	case !strings.HasPrefix(file, "info/commit-graph"):
		return false
	}
	if strings.Contains(name[:i]+"/", "/.git/") {
		return true
	}
	// It may be called otherwise.
	head := filepath.Join(name[:i], "HEAD")
	_, err := os.Lstat(head)
	if below, e := filepath.Rel(c.tree.host, head); e == nil && filepath.IsLocal(below) && err != nil {
		_, err = os.Lstat(filepath.Join(c.layer.Upper, below))
	}
	return err == nil
}
