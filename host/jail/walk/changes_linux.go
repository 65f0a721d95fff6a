package walk

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/policy/paths"
)

// Changes describes the differences below the writable roots.
type Changes struct {
	Created, Modified, Removed List
	// Closed and Secrets are special paths that are new, or that became special because of new
	// neighbours. Closed files that were moved with their directory are not included.
	Closed, Secrets Specials
	// Unsure are changed closed paths in directories that the first walk did not read.
	// Restore leaves them as they are.
	Unsure Specials

	// Complete is set if both walks have read everything. Otherwise all lists may lack paths.
	// Unread is the Unread of the second walk.
	Complete bool
	Unread   []string

	now       *Snapshot // result of the second walk
	newClosed []int32   // indexes in now.entries of all entries that Closed counts
}

// List holds changed files, directory by directory and by name. A directory that is completely
// new or gone is one entry.
type List struct {
	Entries []Entry // the first 1,000 entries
	Count   int     // number of all entries, also of those that Entries lacks
	Files   int     // number of files in all entries, including those in directories
}

// Entry is an entry of a [List].
type Entry struct {
	Path  string // absolute
	Dir   bool
	Files int // number of files in the directory, at any depth
}

// Specials holds the first 1,000 special paths of a kind (Found), and counts all (Count).
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

// Changes walks again and compares by name. t0 is the start of the command. A file counts as
// modified if it is another file, or if its change time differs. If the first walk did not
// read the change time, a file counts if it changed at t0 or later. Directories do not count
// as modified, only their content. The error is as in [Scan], or means that a root was
// replaced.
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

// comparison compares two walks. It clears the flags of entries that were special before, so
// that only new special paths keep theirs.
type comparison struct {
	before, now *Snapshot
	inodes      bool
	out         Changes
}

// compareDirs compares directory b of the first walk with directory n of the second.
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

// compareEntry compares two entries with the same name, was in directory b and is in n. False:
// a directory was replaced, or took the place of a file, which counts as removed and created.
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

// addRemoved adds the old entry was to Removed, if the second walk has read all of n.
func (c *comparison) addRemoved(n, was int32) {
	if c.now.dirs[n].partial {
		return
	}
	e := &c.before.entries[was]
	c.out.Removed.add(Entry{c.before.path(was), e.kind == unix.DT_DIR, c.before.files(e)})
}

// addCreated adds the new entry is to Created. If the first walk has not read all of directory
// b, the entry may have been there: a changed file is added to Modified.
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

// markUnknown calls markUnsure for all entries below directory n, which was not read before.
func (c *comparison) markUnknown(n int32) {
	for i := c.now.dirs[n].first; i < c.now.dirs[n].end; i++ {
		c.markUnsure(i)
		if child := c.now.entries[i].child; child != 0 {
			c.markUnknown(child)
		}
	}
}

// markUnsure adds an entry to Unsure if it is closed and was changed, and clears its flags.
func (c *comparison) markUnsure(is int32) {
	f := &c.now.entries[is]
	if f.flags&isClosed != 0 && f.flags&isChanged != 0 {
		c.now.add(&c.out.Unsure, paths.Closed, is)
	}
	f.flags &^= isSpecial
}

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
		// A closed file that is unchanged was moved with a directory above it: a rename of
		// the file itself would have changed its status.
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
