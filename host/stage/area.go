package stage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/stockade-dev/stockade/host/rootedfs"
)

// Area is a directory for changes that calls of this process have not committed yet, see
// [Options.Dir]. The first call of [Area.Dir] makes it. A lock file beside it is locked until
// Close or the end of the process. Any goroutine may use an Area.
type Area struct {
	parent string
	dir    func() string
	end    func() error
}

// closeGrace limits the wait of [Area.Close] for removals. A later process does the rest.
const closeGrace = time.Second

// NewArea returns an area in parent, a directory of the user's own that [Area.Dir] makes if
// needed. NewArea finishes the commits of processes that have ended, and removes their areas in
// the background, unless a commit cannot be finished. note must not be nil: it tells the user
// of such a commit, and if the area cannot be made.
func NewArea(parent string, note func(format string, args ...any)) *Area {
	sweep(parent, note)
	a := &Area{parent: parent, end: func() error { return nil }}
	a.dir = sync.OnceValue(func() string {
		dir, end, err := makeArea(parent)
		if err != nil {
			// Small changes fit into memory; larger ones fail, and nothing is lost.
			note("warning: changes of tools are kept in memory until they are committed, at most 64 MiB: %v", err)
			return ""
		}
		a.end = end
		return dir
	})
	return a
}

// Dir returns the path of the area, below parent; the first call makes it. Empty: it cannot be
// made.
func (a *Area) Dir() string { return a.dir() }

// Close removes the area, if it was made, and its lock file. No call may use it any more.
func (a *Area) Close() error {
	err := a.end()
	rootedfs.AwaitRemovals(closeGrace)
	return err
}

// discard removes a directory of the area in the background. If it cannot be moved aside, it
// stays until the area is removed.
func (a *Area) discard(dir string) { _ = rootedfs.Discard(dir, a.parent) }

// makeArea makes a directory in parent, and a locked lock file beside it. end removes both.
func makeArea(parent string) (dir string, end func() error, err error) {
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return "", nil, err
	}
	held, err := newLock(parent)
	if err != nil {
		return "", nil, err
	}
	dir = dirOfLock(held.Path())
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", nil, errors.Join(err, held.Unlock(), os.Remove(held.Path()))
	}
	return dir, func() error {
		err := rootedfs.Discard(dir, parent)
		if err == nil {
			err = os.Remove(held.Path())
		}
		return errors.Join(err, held.Unlock())
	}, nil
}

// newLock makes a lock file in parent, and returns it locked.
func newLock(parent string) (*flock.Flock, error) {
	for range 100 {
		file, err := os.CreateTemp(parent, "stage-*.lock")
		if err != nil {
			return nil, err
		}
		_ = file.Close()
		l := flock.New(file.Name())
		ok, err := l.TryLock()
		if err != nil {
			return nil, errors.Join(err, os.Remove(file.Name()))
		}
		// Another process that sweeps may have removed the file as one left behind.
		if ok {
			held, err := l.Stat()
			there, statErr := os.Stat(l.Path())
			if err == nil && statErr == nil && os.SameFile(held, there) {
				return l, nil
			}
		}
		_ = l.Unlock()
	}
	return nil, fmt.Errorf("no lock in %s can be held", parent)
}

// dirOfLock returns the path of the area that a lock file belongs to.
func dirOfLock(lock string) string { return lock[:len(lock)-len(".lock")] }

// finishAll finishes the interrupted commits of an area whose process has ended, see finish.
// kept names the journals of the commits that it could not finish. err is about finding and
// removing journals.
func finishAll(dir string, note func(format string, args ...any)) (kept []string, err error) {
	journals, err := unfinished(dir)
	for _, name := range journals {
		left, wrong := finish(name, nil)
		if wrong != nil {
			left = append(left, wrong.Error())
		}
		if len(left) > 0 {
			kept = append(kept, name)
			note("warning: a call was interrupted while its changes were being made, and others have changed the same files since. Put these back by hand, then remove %s: %s", name, strings.Join(left, "; "))
			continue
		}
		err = errors.Join(err, os.Remove(name))
		note("a call was interrupted while its changes were being made; now either all of them are made or none")
	}
	return kept, err
}

// sweep finishes the commits of the areas in parent whose locks nobody holds, and removes the
// areas. An area that it cannot remove harms nobody, and stays for the next process. So does
// one with an unfinished journal, which names files that still have temporary names.
func sweep(parent string, note func(format string, args ...any)) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, e := range entries {
		// A FIFO of that name would keep us waiting.
		if !strings.HasPrefix(e.Name(), "stage-") || !strings.HasSuffix(e.Name(), ".lock") || !e.Type().IsRegular() {
			continue
		}
		name := filepath.Join(parent, e.Name())
		l := flock.New(name)
		if ok, err := l.TryLock(); err != nil || !ok {
			continue
		}
		left, err := finishAll(dirOfLock(name), note)
		if err == nil && len(left) == 0 && rootedfs.Discard(dirOfLock(name), parent) == nil {
			_ = os.Remove(name)
		}
		_ = l.Unlock()
	}
	rootedfs.Sweep(parent)
}
