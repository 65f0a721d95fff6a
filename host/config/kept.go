package config

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/gofrs/flock"
	"github.com/stockade-dev/stockade/host/config/keys"
)

// decodeAll decodes a file that this program keeps. Anything unknown in it is an
// error: what it was meant to say must not be guessed.
func decodeAll(path string, data []byte, into any) error {
	src, err := keys.Source(path, data)
	if err != nil {
		return err
	}
	meta, err := toml.Decode(src, into)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return fmt.Errorf("%s: unknown key %q", path, unknown[0])
	}
	return nil
}

// lockTimeout is how long a change of such a file waits for another one.
const lockTimeout = 10 * time.Second

// lockKept keeps everybody else, in this process and in others, from changing a
// file until unlock is called: who reads it to replace it must not bring back
// what another has taken away meanwhile.
func lockKept(path string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockTimeout)
	defer cancel()
	l := flock.New(path+".lock", flock.SetPermissions(0o600))
	if _, err := l.TryLockContext(ctx, 5*time.Millisecond); err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { _ = l.Unlock() }, nil
}

// replaceFile writes a file that only its owner can read. A crash leaves the
// old file or the new one. Its lock is held.
func replaceFile(path string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(data)
	if err := errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.Rename(tmp.Name(), path)
}
