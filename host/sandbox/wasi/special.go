package wasi

import (
	"os"
	"path"
	"path/filepath"
	"sync"

	"github.com/stockade-dev/stockade/host/policy/paths"
)

// Special paths are those on the list of package paths. They are known by the
// names that the host has for them, so a name is walked, or is looked up in a
// way in which no symbolic link is followed.

// Refusal is something that a guest was refused because its path is special.
type Refusal struct {
	Path    string // of the host
	Special paths.Special
}

// maxRefusals is how many of an FS are remembered.
const maxRefusals = 256

// refusals are those of an FS and of its views.
type refusals struct {
	mu   sync.Mutex
	list []Refusal
	seen map[Refusal]bool
}

func (r *refusals) add(refused Refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.list) == maxRefusals || r.seen[refused] {
		return
	}
	if r.seen == nil {
		r.seen = map[Refusal]bool{}
	}
	r.seen[refused] = true
	r.list = append(r.list, refused)
}

// Refusals lists what the guest was refused because of its path, the first 256,
// each path once for each entry of the list that it is on.
func (f *FS) Refusals() []Refusal {
	f.refusals.mu.Lock()
	defer f.refusals.mu.Unlock()
	return append([]Refusal(nil), f.refusals.list...)
}

// recordRefusal takes note of a refusal. name is what the guest would call it.
func (f *FS) recordRefusal(m *mount, name string, s paths.Special) Errno {
	host := name
	if rel, inside := relativeTo(m.guest, name); inside {
		host = filepath.Join(m.host, filepath.FromSlash(rel))
	}
	f.refusals.add(Refusal{host, s})
	return errOutside
}

// realPath is the absolute name of a place in which there is no symbolic link,
// unless the place is one. Of a place that was not walked it is what the guest
// has said.
func (p *place) realPath() string {
	switch {
	case p.staged():
		return join(join(p.m.guest, p.parent.Path()), p.name)
	case p.walked:
		return join(join(p.m.guest, p.rel), p.name)
	}
	return p.shown
}

// changeForbiddenBy returns the entry because of which the guest may not change what is at
// the place, or move a directory from there or to there. What has to be asked
// about can be changed on a stage, where it is.
func (f *FS) changeForbiddenBy(p *place, moves bool) (paths.Special, bool) {
	name := p.realPath()
	find := paths.SpecialForChange
	if moves {
		find = paths.SpecialForMove
	}
	s, ok := find(name)
	if ok && (s.Care == paths.Closed || !p.staged()) {
		return s, true
	}
	for _, dir := range paths.PossibleRepositories(name, moves) {
		if p.hasHead(dir) {
			return paths.RepositorySpecial, true
		}
	}
	return paths.Special{}, false
}

// headName is the file by which git knows a repository.
const headName = "HEAD"

// hasHead reports whether the host has a HEAD in a directory above the place,
// which is where git keeps a repository. That the guest has removed it is no
// matter.
func (p *place) hasHead(dir string) bool {
	rel, inside := relativeTo(p.m.guest, dir)
	if !inside {
		// The mount is in the repository.
		up := p.m.host
		for at := p.m.guest; at != dir && at != "/"; at = path.Dir(at) {
			up = filepath.Dir(up)
		}
		_, err := os.Lstat(filepath.Join(up, headName))
		return err == nil
	}
	if p.staged() {
		n := p.parent
		for n.Parent() != nil && join(p.m.guest, n.Path()) != dir {
			n = n.Parent()
		}
		if n.Origin() == nil {
			return false // the guest has made it
		}
		rel = n.OriginPath()
	}
	_, err := p.m.root.Lstat(path.Join(rel, headName))
	return err == nil
}

// checkChange refuses to change what is at the place, or to move a directory from
// there or to there.
func (f *FS) checkChange(p *place, moves bool) Errno {
	if s, barred := f.changeForbiddenBy(p, moves); barred {
		return f.recordRefusal(p.m, p.realPath(), s)
	}
	return 0
}

// checkRead refuses the content of a file.
func (f *FS) checkRead(p *place) Errno {
	return f.checkNames(p, f.readableSpecial.SpecialForRead)
}

// checkMove refuses to take a file, or a directory, from the name by which it is
// known that it has to be asked about.
func (f *FS) checkMove(p *place, dir bool) Errno {
	if dir {
		return f.checkNames(p, paths.SpecialInside)
	}
	return f.checkRead(p)
}

// checkNames refuses what has a special name, or had one before the guest moved
// it. What the guest has made is its own.
func (f *FS) checkNames(p *place, find func(string) (paths.Special, bool)) Errno {
	if p.staged() && p.node != nil {
		if p.node.Origin() == nil {
			return 0
		}
		name := join(p.m.guest, p.node.OriginPath())
		if s, ok := find(name); ok {
			return f.recordRefusal(p.m, name, s)
		}
	}
	name := p.realPath()
	if s, ok := find(name); ok {
		return f.recordRefusal(p.m, name, s)
	}
	return 0
}

// walkAgain walks to a place whose name has links, or may have some.
func (f *FS) walkAgain(p *place, last linkMode) Errno {
	rel, _ := relativeTo(p.m.guest, p.shown)
	walked, steps, errno := p.m.walk(rel, p.shown, last, p.slash, f.dirCache)
	f.limits.Charge(uint64(steps-p.steps) * costWalk)
	if errno == 0 {
		p.close()
		*p = walked
	}
	return errno
}
