package door

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/gofrs/flock"

	"github.com/stockade-dev/stockade/host/sandbox/wasi"
)

// stages is a directory for what the calls of this process change before that
// is committed, made when the first one may. It has a lock beside it, held as
// long as the process lives.
type stages struct {
	dir func() string // "" if there is none
	end func() error
}

// newStages removes the directories of processes that are gone. note tells of
// what one has left in the middle of its work.
func newStages(parent string, note func(format string, args ...any)) *stages {
	sweepStages(parent, note)
	s := &stages{end: func() error { return nil }}
	s.dir = sync.OnceValue(func() string {
		dir, end, err := makeStages(parent)
		if err != nil {
			// Small changes fit into memory; what does not fails, and is not lost.
			note("warning: what tools change is kept in memory until it is committed, 64 MiB at most: %v", err)
			return ""
		}
		s.end = end
		return dir
	})
	return s
}

// close removes the directory. No call may be running.
func (s *stages) close() error { return s.end() }

func makeStages(parent string) (dir string, end func() error, err error) {
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return "", nil, err
	}
	held, err := newStageLock(parent)
	if err != nil {
		return "", nil, err
	}
	dir = dirOfLock(held.Path())
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", nil, errors.Join(err, held.Unlock(), os.Remove(held.Path()))
	}
	return dir, func() error {
		return errors.Join(os.RemoveAll(dir), os.Remove(held.Path()), held.Unlock())
	}, nil
}

// newStageLock makes a lock and holds it.
func newStageLock(parent string) (*flock.Flock, error) {
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

// sweepStages removes what nobody holds the lock of. What cannot be removed is
// left to the next process: it is in nobody's way. So is what says which files
// have temporary names because a process was killed.
func sweepStages(parent string, note func(format string, args ...any)) {
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
		unfinished, err := wasi.Unfinished(dirOfLock(name))
		for _, moves := range unfinished {
			note("warning: a call was ended while its changes were made. %s says which files were left under temporary names; put them back, then remove it", moves)
		}
		if err == nil && len(unfinished) == 0 && os.RemoveAll(dirOfLock(name)) == nil {
			_ = os.Remove(name)
		}
		_ = l.Unlock()
	}
}
