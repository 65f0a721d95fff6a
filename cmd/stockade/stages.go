package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
)

// stageDir makes a directory for what the calls of this process change before
// that is committed, and removes those of processes that are gone. end removes
// it. Each directory has a lock beside it, held as long as its process lives.
func stageDir(parent string) (dir string, end func() error, err error) {
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return "", nil, err
	}
	held, err := newStageLock(parent)
	if err != nil {
		return "", nil, err
	}
	sweepStages(parent)
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
// left to the next process: it is in nobody's way.
func sweepStages(parent string) {
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
		if os.RemoveAll(dirOfLock(name)) == nil {
			_ = os.Remove(name)
		}
		_ = l.Unlock()
	}
}
