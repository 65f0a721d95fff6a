package wasi

import (
	"os"

	"github.com/stockade-dev/stockade/host/rootedfs"
)

// dirCache holds the directories that the latest walk passed, each inside the one before. They
// stay open, and a walk along the same path reuses them. For each row of names (a list that is
// looked up together), each directory is looked up once more: it is reused only if its name in
// its parent still leads to it. A nil dirCache caches nothing.
type dirCache struct {
	m        *mount
	dirs     []cachedDir
	verified int // number of directories, from the first, that were looked up in this row
}

type cachedDir struct {
	name   string
	root   rootedfs.Root
	info   os.FileInfo
	trails [][]string
}

// maxCachedDirs limits the directories in a dirCache; walks close deeper ones.
const maxCachedDirs = 16

// beginRow begins a row of names: every directory has to be looked up again.
func (d *dirCache) beginRow() { d.verified = 0 }

// verifiedDir returns the cached directory with a name and depth directories between it and the
// mount; false: it is not cached, or was not looked up in this row.
func (d *dirCache) verifiedDir(m *mount, depth int, name string) (cachedDir, bool) {
	if d == nil || d.m != m || depth >= d.verified || d.dirs[depth].name != name {
		return cachedDir{}, false
	}
	return d.dirs[depth], true
}

// matchingDir returns the cached directory with a name and depth directories between it and the
// mount; false: it is not cached, or not the file that info describes.
func (d *dirCache) matchingDir(m *mount, depth int, name string, info os.FileInfo) (cachedDir, bool) {
	if d == nil || d.m != m || depth >= len(d.dirs) || d.dirs[depth].name != name || !rootedfs.SameFile(d.dirs[depth].info, info) {
		return cachedDir{}, false
	}
	d.verified = depth + 1
	return d.dirs[depth], true
}

// add makes next the deepest directory of the cache, with depth directories between it and the
// mount, and takes over closing it. It returns false, and does nothing, if the directory is too
// deep or d is nil.
func (d *dirCache) add(m *mount, depth int, next cachedDir) bool {
	if d == nil || depth >= maxCachedDirs {
		return false
	}
	if d.m != m {
		d.close()
		d.m = m
	}
	d.truncate(depth)
	d.dirs = append(d.dirs, next)
	d.verified = depth + 1
	return true
}

// truncate closes and removes all directories except for the first depth ones.
func (d *dirCache) truncate(depth int) {
	for _, dir := range d.dirs[depth:] {
		_ = dir.root.Close()
	}
	d.dirs = d.dirs[:depth]
	d.verified = min(d.verified, depth)
}

func (d *dirCache) close() { d.truncate(0) }
