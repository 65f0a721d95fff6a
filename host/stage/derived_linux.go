package stage

import (
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// leaveOut removes a file from the upper layer, so that no commit makes it. A file of the host
// with the same name counts as removed.
func (c *collector) leaveOut(fd int, e upperEntry) error {
	if err := c.collectRemoved(e.n, e.live); err != nil {
		return err
	}
	return unix.Unlinkat(fd, e.name, 0)
}

// derived reports whether a file of a repository is one that git derives from others, to find
// objects faster, and trusts: a commit-graph, a multi-pack-index, a reverse index or a bitmap
// of a pack. If a command has written such a file, it is left out: it could claim anything,
// and git can do without.
func (c *collector) derived(rel string) bool {
	name := filepath.ToSlash(c.tree.hostPath(rel))
	i := strings.LastIndex(name, "/objects/")
	if i < 0 {
		return false
	}
	file := name[i+len("/objects/"):]
	switch packed := strings.HasPrefix(file, "pack/"); {
	case strings.HasPrefix(file, "info/commit-graph"), strings.HasPrefix(file, "pack/multi-pack-index"):
	case packed && (strings.HasSuffix(file, ".rev") || strings.HasSuffix(file, ".bitmap")):
	default:
		return false
	}
	if strings.Contains(name[:i]+"/", "/.git/") {
		return true
	}
	// A git directory may have another name; it has a HEAD.
	head := filepath.Join(name[:i], "HEAD")
	_, err := os.Lstat(head)
	if below, e := filepath.Rel(c.tree.host, head); e == nil && filepath.IsLocal(below) && err != nil {
		_, err = os.Lstat(filepath.Join(c.layer.Upper, below))
	}
	return err == nil
}
