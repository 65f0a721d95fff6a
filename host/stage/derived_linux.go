package stage

import (
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// leaveOut removes what is not kept.
func (c *collector) leaveOut(fd int, e found) error {
	if err := c.removed(e.n, e.live); err != nil {
		return err
	}
	return unix.Unlinkat(fd, e.name, 0)
}

// derived reports whether a file is one that git makes of the others of a repository, to
// find things faster, and believes: a commit-graph, a multi-pack-index, a reverse index
// or a bitmap of a pack. What a command has written of these is left out, for it could
// say anything, and git can do without.
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
	// It may be called otherwise.
	head := filepath.Join(name[:i], "HEAD")
	_, err := os.Lstat(head)
	if below, e := filepath.Rel(c.tree.host, head); e == nil && filepath.IsLocal(below) && err != nil {
		_, err = os.Lstat(filepath.Join(c.layer.Upper, below))
	}
	return err == nil
}
