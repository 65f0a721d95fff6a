package wasi

import (
	"os"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/stage"
)

// A directory of a staged mount first lists the entries that the guest has added or replaced,
// then the entries of the host that the guest can still see.

// listAdded rebuilds the list of leading entries that the stage has added.
func (d *Dir) listAdded() {
	if d.node == nil {
		return
	}
	d.leadingEntries = d.leadingEntries[:d.numFixed]
	d.addedNames = map[string]struct{}{}
	for name, c := range d.node.Added() {
		d.fs.limits.Charge(costEntry)
		d.addedNames[name] = struct{}{}
		e := Dirent{Name: name}
		d.describeEntry(&e, c)
		d.leadingEntries = append(d.leadingEntries, e)
	}
	slices.SortFunc(d.leadingEntries[d.numFixed:], func(a, b Dirent) int { return strings.Compare(a.Name, b.Name) })
	d.assignCookies()
}

func (d *Dir) describeEntry(e *Dirent, n *stage.Node) {
	st := d.m.describe(stage.Info{Node: n, Live: n.Origin()}, join(d.shown, e.Name))
	e.Type, e.Ino = st.Type, st.Ino
}

// showsStaged reports whether the listing has the host's entry with a name: the guest still sees
// it, and it is no added name, which is listed before.
func (d *Dir) showsStaged(name string) bool {
	if _, listed := d.addedNames[name]; listed {
		return false
	}
	_, shows := d.node.Shows(name)
	return shows
}

// overlayStaged replaces the type and inode number of a host entry by those of the staged file
// with its name, if there is one.
func (d *Dir) overlayStaged(e *Dirent) {
	if d.node == nil {
		return
	}
	if other, _ := d.node.Shows(e.Name); other != nil {
		d.describeEntry(e, other)
	}
}

// guardStaged opens the directory for look-ups and sets its trails.
func (d *Dir) guardStaged(p *place) Errno {
	root, err := p.m.tree.OpenRoot(p.node)
	if err != nil {
		return errnoOf(err)
	}
	d.host.root = root
	d.trails = p.trails
	if p.name != "." {
		d.trails = p.m.guard.trailsIn(p.node.Origin(), p.trails, p.name)
	}
	return 0
}

// liveInfo describes the host directory behind the staged directory; nil: the guest has made
// it.
func (d *Dir) liveInfo() (os.FileInfo, Errno) {
	if d.fs.stage.Ended() {
		return nil, EBADF
	}
	if d.host == nil {
		return nil, 0
	}
	fi, err := d.host.file.Stat()
	return fi, errnoOf(err)
}

func (d *Dir) stagedStat() (Stat, Errno) {
	fi, errno := d.liveInfo()
	if errno != 0 {
		return Stat{}, errno
	}
	return d.m.describe(stage.Info{Node: d.node, Live: fi}, d.shown), 0
}

func (d *Dir) setStagedTimes(atim, mtim int64) Errno {
	fi, errno := d.liveInfo()
	if errno != 0 {
		return errno
	}
	return errnoOf(d.m.tree.SetTimes(d.node, fi, atim, mtim))
}
