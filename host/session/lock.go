package session

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// ErrInUse is wrapped by the error of [Lock] if another process, or this one, has the lock.
var ErrInUse = errors.New("the session is in use by another process")

// Lock keeps other processes out of a session by a lock on a file in dir, which must exist. The
// lock ends with the process. unlock ends it earlier, and removes the file. If another process, or
// this one, has the lock already, the error wraps [ErrInUse].
func Lock(dir, id string) (unlock func() error, err error) {
	if !ValidID(id) {
		return nil, fmt.Errorf("session id %q is not one that stockade makes: the log was changed", id)
	}
	name := filepath.Join(dir, id)
	for {
		l := flock.New(name)
		ok, err := l.TryLock()
		if err != nil {
			return nil, fmt.Errorf("lock session %s: %w", id, err)
		}
		if !ok {
			return nil, fmt.Errorf("session %s: %w", id, ErrInUse)
		}
		// Another process may have removed the file before we locked it. Then a new file
		// has the valid lock.
		held, err := l.Stat()
		there, statErr := os.Stat(name)
		if err == nil && statErr == nil && os.SameFile(held, there) {
			return func() error { return errors.Join(os.Remove(name), l.Unlock()) }, nil
		}
		_ = l.Unlock()
	}
}
