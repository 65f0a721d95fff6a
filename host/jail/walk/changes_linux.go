package walk

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/policy/paths"
)

// Changes are what is different below the roots that are writable.
type Changes struct {
	Created, Modified, Removed List
	// Closed and Secrets are paths that are new, or that were not special
	// before because of what is beside them. What was moved together with the
	// directory that holds it is not among Closed.
	Closed, Secrets Specials
	// Unsure are closed paths that were changed where nobody had looked before.
	// Restore leaves them alone.
	Unsure Specials

	// Complete says that both walks have looked at everything. Otherwise there
	// can be more of all kinds; Unread is that of the second walk.
	Complete bool
	Unread   []string

	now       *Snapshot
	newClosed []int32 // the entries of Closed
}

// List is files by name, directory by directory. A directory that is new or gone
// as a whole is one entry.
type List struct {
	Entries []Entry // the first 1,000
	Count   int     // of all entries
	Files   int     // of all files, also those in directories
}

// Entry is an entry of a [List].
type Entry struct {
	Path  string // absolute
	Dir   bool
	Files int // that are in the directory, at any depth
}

// Specials are the first 1,000 of some, and how many there are.
type Specials struct {
	Found []Found
	Count int
}

func (l *List) add(e Entry) {
	l.Count++
	l.Files += e.Files
	if !e.Dir {
		l.Files++
	}
	if len(l.Entries) < maxListed {
		l.Entries = append(l.Entries, e)
	}
}

// Changes walks again and compares by name. A file that is there before and after
// was modified if its time of change is another or, where the first walk did not
// ask for that, at t0 or later, or if it is another file. That a directory was changed is not said, only what is in it.
func (s *Snapshot) Changes(ctx context.Context, t0 time.Time, budget Budget) (Changes, error) {
	now := &Snapshot{masked: s.masked}
	roots := make([]Root, len(s.roots))
	for i, r := range s.roots {
		roots[i] = Root{r.path, true}
	}
	if err := now.walk(ctx, roots, t0, budget); err != nil {
		return Changes{}, err
	}
	c := comparison{before: s, now: now, out: Changes{Complete: s.Complete && now.Complete, Unread: now.Unread, now: now}}
	for i, r := range now.roots {
		if was := s.roots[i]; was.dev != r.dev || was.ino != r.ino {
			return Changes{}, errReplaced(r.path)
		}
		c.inodes = r.inodes
		c.compareDirs(s.roots[i].top, r.top)
	}
	c.findNewSpecials()
	return c.out, nil
}

func errReplaced(name string) error {
	return fmt.Errorf("walk %s: it was replaced by another directory", name)
}

// comparison is one on its way. It takes the flags of what was special before
// from what is now.
type comparison struct {
	before, now *Snapshot
	inodes      bool
	out         Changes
}

// compareDirs compares a directory with what it was.
func (c *comparison) compareDirs(b, n int32) {
	was, is := c.before.sorted(b), c.now.sorted(n)
	for len(was) > 0 || len(is) > 0 {
		order := 0
		switch {
		case len(was) == 0:
			order = 1
		case len(is) == 0:
			order = -1
		default:
			order = bytes.Compare(c.before.bytes(&c.before.entries[was[0]]), c.now.bytes(&c.now.entries[is[0]]))
		}
		if order <= 0 && (order < 0 || !c.compareEntry(b, n, was[0], is[0])) {
			c.addRemoved(n, was[0])
		}
		if order > 0 {
			c.addCreated(b, is[0])
		}
		if order <= 0 {
			was = was[1:]
		}
		if order >= 0 {
			is = is[1:]
		}
	}
}

// compareEntry compares what has the same name. It is false if that is something else
// now, which counts as removed and created.
func (c *comparison) compareEntry(b, n, was, is int32) bool {
	e, f := &c.before.entries[was], &c.now.entries[is]
	another := c.inodes && e.ino != f.ino && !c.before.dirs[b].foreign && !c.now.dirs[n].foreign
	if (e.kind == unix.DT_DIR) != (f.kind == unix.DT_DIR) || f.kind == unix.DT_DIR && another {
		c.addCreated(b, is)
		return false
	}
	if e.ctime != 0 && f.ctime == e.ctime {
		f.flags &^= isChanged
	} else if e.ctime != 0 {
		f.flags |= isChanged
	}
	if f.kind != unix.DT_DIR && (another || f.flags&isChanged != 0 || e.kind != f.kind) {
		c.out.Modified.add(Entry{Path: c.now.path(is)})
	}
	if e.kind == f.kind {
		f.flags &^= e.flags & isSpecial
	}
	switch {
	case f.child == 0:
	case e.child == 0:
		c.markUnknown(f.child)
	default:
		c.compareDirs(e.child, f.child)
	}
	return true
}

func (c *comparison) addRemoved(n, was int32) {
	if c.now.dirs[n].partial {
		return
	}
	e := &c.before.entries[was]
	c.out.Removed.add(Entry{c.before.path(was), e.kind == unix.DT_DIR, c.before.files(e)})
}

func (c *comparison) addCreated(b, is int32) {
	f := &c.now.entries[is]
	if c.before.dirs[b].partial {
		if f.kind != unix.DT_DIR && f.flags&isChanged != 0 {
			c.out.Modified.add(Entry{Path: c.now.path(is)})
		}
		c.markUnsure(is)
		if f.child != 0 {
			c.markUnknown(f.child)
		}
		return
	}
	c.out.Created.add(Entry{c.now.path(is), f.kind == unix.DT_DIR, c.now.files(f)})
}

// markUnknown is a directory into which nobody had looked before.
func (c *comparison) markUnknown(n int32) {
	for i := c.now.dirs[n].first; i < c.now.dirs[n].end; i++ {
		c.markUnsure(i)
		if child := c.now.entries[i].child; child != 0 {
			c.markUnknown(child)
		}
	}
}

func (c *comparison) markUnsure(is int32) {
	f := &c.now.entries[is]
	if f.flags&isClosed != 0 && f.flags&isChanged != 0 {
		c.now.add(&c.out.Unsure, paths.Closed, is)
	}
	f.flags &^= isSpecial
}

// findNewSpecials finds what is special now and was not.
func (c *comparison) findNewSpecials() {
	type file struct{ dev, ino uint64 }
	closed := map[file]*entry{}
	c.before.each(func(r root, d dir, i int32) {
		if e := &c.before.entries[i]; e.flags&isClosed != 0 && r.inodes && !d.foreign {
			closed[file{r.dev, e.ino}] = e
		}
	})
	c.now.each(func(r root, d dir, i int32) {
		f := &c.now.entries[i]
		if f.flags&isSpecial == 0 {
			return
		}
		// What was closed and was not touched was moved with a directory above.
		// To be renamed itself would have changed its status.
		if was := closed[file{r.dev, f.ino}]; was != nil && r.inodes && !d.foreign && was.kind == f.kind &&
			(f.kind == unix.DT_DIR || f.flags&isChanged == 0) {
			f.flags &^= isClosed
		}
		if f.flags&(isClosed|isGit) != 0 {
			c.out.newClosed = append(c.out.newClosed, i)
			c.now.add(&c.out.Closed, paths.Closed, i)
		}
		if f.flags&isSecret != 0 && (d.parent < 0 || c.now.entries[d.entry].flags&isSecret == 0) {
			c.now.add(&c.out.Secrets, paths.Secret, i)
		}
	})
}
