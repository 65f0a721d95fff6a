package wasi

import (
	"os"
	"path"
	"path/filepath"
	"sync"

	"github.com/stockade-dev/stockade/host/policy/paths"
)

// Special paths are those on the list of package paths. They are matched by the names
// that the host has for them. So a name is either walked, or looked up in a way that
// follows no symbolic link.

// Refusal records that a guest was refused a path because it is special.
type Refusal struct {
	Path    string // absolute, on the host
	Special paths.Special
}

// maxRefusals limits the refusals that an FS remembers; further ones are dropped.
const maxRefusals = 256

// refusals holds the refusals of an FS and of its views.
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

// Refusals returns the special paths that the guest was refused, in the order of their first
// refusal. Only the first 256 are kept. A path that several entries of the list of special paths
// forbid can occur once for each of them.
func (f *FS) Refusals() []Refusal {
	f.refusals.mu.Lock()
	defer f.refusals.mu.Unlock()
	return append([]Refusal(nil), f.refusals.list...)
}

// recordRefusal records that the special path s was refused to the guest by its absolute name,
// and returns the error for the guest.
func (f *FS) recordRefusal(m *mount, name string, s paths.Special) Errno {
	host := name
	if rel, inside := relativeTo(m.guest, name); inside {
		host = filepath.Join(m.host, filepath.FromSlash(rel))
	}
	f.refusals.add(Refusal{host, s})
	return errOutside
}

// realPath returns the absolute name of a place for the guest, with all symbolic links
// resolved except for one at the place itself. If the name was neither walked nor staged, or
// lookupErrno is set, it is the name that the guest used.
func (p *place) realPath() string {
	switch {
	case p.staged():
		return join(join(p.m.guest, p.parent.Path()), p.name)
	case p.walked:
		return join(join(p.m.guest, p.rel), p.name)
	}
	return p.shown
}

// changeForbiddenBy returns the special path that forbids the guest to change the place, see
// checkChange; false: none does. A path that needs a question can be changed on a stage,
// because the person is asked later.
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

// headName is the name of a file that every git repository has.
const headName = "HEAD"

// hasHead reports whether the host has a HEAD in dir, a directory above the place, so that dir may
// be a git repository. It does not matter whether the guest has removed the HEAD on its stage.
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

// checkChange returns EPERM if a special path forbids to change the file or directory at the
// place. moves is set if a directory is moved from there or to there: then special paths below
// it count, too.
func (f *FS) checkChange(p *place, moves bool) Errno {
	if s, barred := f.changeForbiddenBy(p, moves); barred {
		return f.recordRefusal(p.m, p.realPath(), s)
	}
	return 0
}

// checkRead returns EPERM for a file whose path is secret, unless the guest may read it.
func (f *FS) checkRead(p *place) Errno {
	return f.checkNames(p, f.readableSpecial.SpecialForRead)
}

// checkMove returns EPERM for moving a file away from a secret path, or a directory (dir) that
// contains one: under a new name it would no longer be recognized.
func (f *FS) checkMove(p *place, dir bool) Errno {
	if dir {
		return f.checkNames(p, paths.SpecialInside)
	}
	return f.checkRead(p)
}

// checkNames returns EPERM for a place if find finds a special path for its name, or for its
// name before the guest moved the file. A file that the guest has made on a stage may have any
// name.
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

// walkAgain replaces p by the place to which its name leads if symbolic links are followed,
// one name at a time.
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
