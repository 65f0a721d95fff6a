package settings

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/gofrs/flock"

	"github.com/stockade-dev/stockade/host/config/keys"
	"github.com/stockade-dev/stockade/host/config/policyfile"
	"github.com/stockade-dev/stockade/host/internal/private"
)

// entryFile is a file of entries that this program keeps, mode 0600. It is replaced as
// a whole, so that a crash leaves the old one or the new one.
type entryFile[E any] struct {
	path  string
	table string // of TOML, which each entry is one of
	head  string // what the file begins with
	check func(E) bool
	needs string // what check asks for, in words
}

// load reads the entries, if nobody else could have written them; a file that is
// not there holds none. Anything unknown in it is an error: what it was meant to
// say must not be guessed.
func (k entryFile[E]) load() ([]E, error) {
	data, err := policyfile.User(k.path).Bytes()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var entries []E
	if err == nil {
		entries, err = k.parse(data)
	}
	if err != nil {
		return nil, mistake("mend the file, or remove it to be asked again", "%v", err)
	}
	return entries, nil
}

func (k entryFile[E]) parse(data []byte) ([]E, error) {
	src, err := keys.CheckSource(k.path, data)
	if err != nil {
		return nil, err
	}
	var tables map[string]toml.Primitive
	meta, err := toml.Decode(src, &tables)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", k.path, err)
	}
	var entries []E
	unknown := slices.DeleteFunc(slices.Clone(meta.Keys()), func(key toml.Key) bool { return key[0] == k.table })
	if list, ok := tables[k.table]; ok && len(unknown) == 0 {
		if err := meta.PrimitiveDecode(list, &entries); err != nil {
			return nil, fmt.Errorf("%s: %w", k.path, err)
		}
		unknown = meta.Undecoded()
	}
	if len(unknown) > 0 {
		return nil, fmt.Errorf("%s: unknown key %q", k.path, unknown[0])
	}
	for i, e := range entries {
		if !k.check(e) {
			return nil, fmt.Errorf("%s: entry %d of %s needs %s", k.path, i+1, k.table, k.needs)
		}
	}
	return entries, nil
}

// lockTimeout is how long a change waits for another one.
const lockTimeout = 10 * time.Second

// change replaces the entries by those that f makes of them; nil leaves the file
// as it is. Nobody else, in this process or in others, changes it meanwhile: who
// reads it to replace it must not bring back what another has taken away. What
// could not be read back is not written.
func (k entryFile[E]) change(f func([]E) []E) error {
	return withLock(k.path, func() error { return k.replace(f) })
}

// withLock runs f while nobody else changes a file, whose folder is made.
func withLock(path string, f func() error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockTimeout)
	defer cancel()
	lock := flock.New(path+".lock", flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, 5*time.Millisecond); err != nil {
		return fmt.Errorf("lock %s: %w", path, err)
	}
	defer func() { _ = lock.Unlock() }()
	return f()
}

func (k entryFile[E]) replace(f func([]E) []E) error {
	entries, err := k.load()
	if err != nil {
		return err
	}
	if entries = f(entries); entries == nil {
		return nil
	}
	data := bytes.NewBufferString(k.head)
	if err := toml.NewEncoder(data).Encode(map[string][]E{k.table: entries}); err != nil {
		return err
	}
	if _, err := k.parse(data.Bytes()); err != nil {
		return fmt.Errorf("write %s: %w", k.path, err)
	}
	return private.Write(k.path, data.Bytes())
}

// remove takes entries out and returns them.
func (k entryFile[E]) remove(which func(E) bool) (removed []E, err error) {
	err = k.change(func(entries []E) []E {
		left := []E{}
		for _, e := range entries {
			if which(e) {
				removed = append(removed, e)
			} else {
				left = append(left, e)
			}
		}
		if removed == nil {
			return nil
		}
		return left
	})
	return removed, err
}
