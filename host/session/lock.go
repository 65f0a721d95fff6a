package session

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// ErrInUse is wrapped by the error of a lock that another process holds.
var ErrInUse = errors.New("the session is in use by another process")

// Lock keeps other processes out of a session, by a lock on a file in dir, which
// exists. The lock goes with the process, however that ends; unlock also removes
// the file.
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
		// Another process may have removed the file between our opening and our
		// locking it; then the lock that counts is on a new file.
		held, err := l.Stat()
		there, statErr := os.Stat(name)
		if err == nil && statErr == nil && os.SameFile(held, there) {
			return func() error { return errors.Join(os.Remove(name), l.Unlock()) }, nil
		}
		_ = l.Unlock()
	}
}
