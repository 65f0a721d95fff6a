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

// Area is a directory for what the calls of this process change before that is
// committed, see [Options], made when the first one may. It has a lock beside it,
// held as long as the process lives. Any goroutine may use it.
type Area struct {
	parent string
	dir    func() string
	end    func() error
}

// closeGrace is the time that [Area.Close] waits for running removals. A later
// process does the rest.
const closeGrace = time.Second

// NewArea returns an area in parent, a directory of the user's own, which is made if it does
// not exist. In the background it removes areas of processes that are gone. note tells the
// user about commits that such processes left unfinished.
func NewArea(parent string, note func(format string, args ...any)) *Area {
	sweep(parent, note)
	a := &Area{parent: parent, end: func() error { return nil }}
	a.dir = sync.OnceValue(func() string {
		dir, end, err := makeArea(parent)
		if err != nil {
			// Small changes fit into memory; what does not fails, and is not lost.
			note("warning: what tools change is kept in memory until it is committed, 64 MiB at most: %v", err)
			return ""
		}
		a.end = end
		return dir
	})
	return a
}

// Dir is the directory; empty if it cannot be made.
func (a *Area) Dir() string { return a.dir() }

// Close removes the directory. No call may be running.
func (a *Area) Close() error {
	err := a.end()
	rootedfs.AwaitRemovals(closeGrace)
	return err
}

// discard removes a directory of the area in the background. One that cannot be moved aside is
// removed with the area.
func (a *Area) discard(dir string) { _ = rootedfs.Discard(dir, a.parent) }

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

// newLock makes a lock and holds it.
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
		// Whoever sweeps may have taken it for one that was left behind.
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

func dirOfLock(lock string) string { return lock[:len(lock)-len(".lock")] }

// finishAll ends the commits that ended with their process, and returns the journals
// of those that could not be.
func finishAll(dir string, note func(format string, args ...any)) (kept []string, err error) {
	journals, err := unfinished(dir)
	for _, name := range journals {
		left, wrong := finish(name, nil)
		if wrong != nil {
			left = append(left, wrong.Error())
		}
		if len(left) > 0 {
			kept = append(kept, name)
			note("warning: a call was ended while its changes were made, and others have changed the same files since. Put these back by hand, then remove %s: %s", name, strings.Join(left, "; "))
			continue
		}
		err = errors.Join(err, os.Remove(name))
		note("a call was ended while its changes were made; they are put back, or all made")
	}
	return kept, err
}

// sweep removes what nobody holds the lock of. What cannot be removed is
// left to the next process: it is in nobody's way. So is what says which files
// have temporary names because a process was killed and others have changed them.
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
