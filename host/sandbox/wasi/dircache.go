package wasi

import (
	"os"

	"github.com/stockade-dev/stockade/host/rootedfs"
)

// dirCache is the directories that the latest walk went through, each in the
// one before it. They stay open, and a walk that goes the same way goes on in
// them. Once in each row of names a directory is looked up again: it is gone
// into only if it is still what has its name in the one before.
type dirCache struct {
	m    *mount
	dirs []cachedDir
	// verified is how many of the first ones were looked up in this row.
	verified int
}

// cachedDir is a directory with what a walk has to know of it.
type cachedDir struct {
	name   string
	root   rootedfs.Root
	info   os.FileInfo
	trails [][]string
}

// maxCachedDirs is how many directories a descent keeps open.
const maxCachedDirs = 16

// beginRow begins a row of names.
func (d *dirCache) beginRow() { d.verified = 0 }

// verifiedDir returns the directory that has a name, so deep, without looking it up.
func (d *dirCache) verifiedDir(m *mount, depth int, name string) (cachedDir, bool) {
	if d == nil || d.m != m || depth >= d.verified || d.dirs[depth].name != name {
		return cachedDir{}, false
	}
	return d.dirs[depth], true
}

// matchingDir returns the directory that was looked up as this, if it is open.
func (d *dirCache) matchingDir(m *mount, depth int, name string, info os.FileInfo) (cachedDir, bool) {
	if d == nil || d.m != m || depth >= len(d.dirs) || d.dirs[depth].name != name || !rootedfs.SameFile(d.dirs[depth].info, info) {
		return cachedDir{}, false
	}
	d.verified = depth + 1
	return d.dirs[depth], true
}

// add makes a directory the last one of the descent, if it is not too deep.
// Then the descent closes it.
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

// truncate closes all directories but the first ones.
func (d *dirCache) truncate(depth int) {
	for _, dir := range d.dirs[depth:] {
		_ = dir.root.Close()
	}
	d.dirs = d.dirs[:depth]
	d.verified = min(d.verified, depth)
}

func (d *dirCache) close() { d.truncate(0) }
