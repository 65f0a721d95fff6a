package wasi

import (
	"os"

	"github.com/stockade-dev/stockade/host/beneath"
)

// descent is the directories that the latest walk went through, each in the
// one before it. They stay open, and a walk that goes the same way goes on in
// them. Once in each row of names a directory is looked up again: it is gone
// into only if it is still what has its name in the one before.
type descent struct {
	m    *mount
	dirs []descended
	// sure is how many of the first ones were looked up in this row.
	sure int
}

// descended is a directory with what a walk has to know of it.
type descended struct {
	name   string
	root   beneath.Root
	info   os.FileInfo
	trails [][]string
}

// maxDescent is how many directories a descent keeps open.
const maxDescent = 16

// begin begins a row of names.
func (d *descent) begin() { d.sure = 0 }

// known returns the directory that has a name, so deep, without looking it up.
func (d *descent) known(m *mount, depth int, name string) (descended, bool) {
	if d == nil || d.m != m || depth >= d.sure || d.dirs[depth].name != name {
		return descended{}, false
	}
	return d.dirs[depth], true
}

// found returns the directory that was looked up as this, if it is open.
func (d *descent) found(m *mount, depth int, name string, info os.FileInfo) (descended, bool) {
	if d == nil || d.m != m || depth >= len(d.dirs) || d.dirs[depth].name != name || !beneath.SameFile(d.dirs[depth].info, info) {
		return descended{}, false
	}
	d.sure = depth + 1
	return d.dirs[depth], true
}

// keep makes a directory the last one of the descent, if it is not too deep.
// Then the descent closes it.
func (d *descent) keep(m *mount, depth int, next descended) bool {
	if d == nil || depth >= maxDescent {
		return false
	}
	if d.m != m {
		d.close()
		d.m = m
	}
	d.cut(depth)
	d.dirs = append(d.dirs, next)
	d.sure = depth + 1
	return true
}

// cut closes all directories but the first ones.
func (d *descent) cut(depth int) {
	for _, dir := range d.dirs[depth:] {
		_ = dir.root.Close()
	}
	d.dirs = d.dirs[:depth]
	d.sure = min(d.sure, depth)
}

func (d *descent) close() { d.cut(0) }
