package wasi

import (
	"os"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/stage"
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
	for name, c := range d.node.Added() {
		d.fs.limits.Fuel(costEntry)
		d.merged[name] = struct{}{}
		e := Dirent{Name: name}
		d.fill(&e, c)
		d.first = append(d.first, e)
	}
	slices.SortFunc(d.first[d.fixed:], func(a, b Dirent) int { return strings.Compare(a.Name, b.Name) })
	d.number()
}

func (d *Dir) fill(e *Dirent, n *stage.Node) {
	st := d.m.describe(stage.Info{Node: n, Live: n.Origin()}, join(d.shown, e.Name))
	e.Type, e.Ino = st.Type, st.Ino
}

// showsStaged reports whether an entry of the host is still there and was not
// listed yet.
func (d *Dir) showsStaged(name string) bool {
	if _, listed := d.merged[name]; listed {
		return false
	}
	_, shows := d.node.Shows(name)
	return shows
}

// restage describes an entry of the host as what the guest has there now.
func (d *Dir) restage(e *Dirent) {
	if d.node == nil {
		return
	}
	if other, _ := d.node.Shows(e.Name); other != nil {
		d.fill(e, other)
	}
}

// guardStaged looks out for what is hidden in the directory.
func (d *Dir) guardStaged(p *place) Errno {
	root, err := p.m.tree.OpenRoot(p.node)
	if err != nil {
		return errnoOf(err)
	}
	d.held.root = root
	d.trails = p.trails
	if p.name != "." {
		d.trails = p.m.guard.from(p.node.Origin(), p.trails, p.name)
	}
	return 0
}

func (d *Dir) live() (os.FileInfo, Errno) {
	if d.fs.stage.Ended() {
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
	return d.m.describe(stage.Info{Node: d.node, Live: fi}, d.shown), 0
}

func (d *Dir) setStagedTimes(atim, mtim int64) Errno {
	fi, errno := d.live()
	if errno != 0 {
		return errno
	}
	return errnoOf(d.m.tree.SetTimes(d.node, fi, atim, mtim))
}
