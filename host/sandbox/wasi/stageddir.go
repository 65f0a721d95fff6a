package wasi

import (
	"os"
	"slices"
	"strings"
)

// A directory of a staged mount lists what the host does not have under the
// name first, then what the host has, as far as the guest still sees it there.

// merge takes down what is listed first.
func (d *Dir) merge() {
	if d.node == nil {
		return
	}
	d.first = d.first[:d.fixed]
	d.merged = map[string]struct{}{}
	for name, c := range d.node.children {
		if c.home() {
			continue // the host lists it
		}
		d.fs.limits.Fuel(costEntry)
		d.merged[name] = struct{}{}
		e := Dirent{Name: name}
		d.fill(&e, c)
		d.first = append(d.first, e)
	}
	slices.SortFunc(d.first[d.fixed:], func(a, b Dirent) int { return strings.Compare(a.Name, b.Name) })
	d.number()
}

func (d *Dir) fill(e *Dirent, n *node) {
	var live os.FileInfo
	if n.origin != nil {
		live = n.origin.info
	}
	st := d.m.describe(nodeInfo{n, live}, join(d.shown, e.Name))
	e.Type, e.Ino = st.Type, st.Ino
}

// showsStaged reports whether an entry of the host is still there and was not
// listed yet.
func (d *Dir) showsStaged(name string) bool {
	if _, listed := d.merged[name]; listed {
		return false
	}
	return d.node.children[name] != nil || d.node.away[name] == nil
}

// restage describes an entry of the host as what the guest has there now.
func (d *Dir) restage(e *Dirent) {
	if d.node == nil {
		return
	}
	if c := d.node.children[e.Name]; c != nil && !c.home() {
		d.fill(e, c)
	}
}

// guardStaged looks out for what is hidden in the directory.
func (d *Dir) guardStaged(p *place) Errno {
	cur := p.m.layer.cursor()
	defer cur.close()
	if errno := cur.to(p.node); errno != 0 {
		return errno
	}
	root, err := cur.root.OpenRoot(".")
	if err != nil {
		return errnoOf(err)
	}
	d.held.root = root
	d.trails = p.trails
	if p.name != "." {
		d.trails = p.m.guard.from(p.node.origin.info, p.trails, p.name)
	}
	return 0
}

func (d *Dir) live() (os.FileInfo, Errno) {
	if d.m.layer.stage.ended() {
		return nil, EBADF
	}
	if d.held == nil {
		return nil, 0
	}
	fi, err := d.held.file.Stat()
	return fi, errnoOf(err)
}

func (d *Dir) stagedStat() (Stat, Errno) {
	fi, errno := d.live()
	if errno != 0 {
		return Stat{}, errno
	}
	return d.m.describe(nodeInfo{d.node, fi}, d.shown), 0
}

func (d *Dir) setStagedTimes(atim, mtim int64) Errno {
	fi, errno := d.live()
	if errno != 0 {
		return errno
	}
	d.node.setTimes(fi, atim, mtim)
	return 0
}
