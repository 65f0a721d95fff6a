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

// entryFile is a TOML file of entries that this program writes, with mode 0600. It is replaced
// as a whole, so that a crash leaves the old or the new file.
type entryFile[E any] struct {
	path  string
	table string       // name of the array of tables with the entries
	head  string       // comment at the beginning of the file
	check func(E) bool // reports whether an entry is complete
	needs string       // the condition of check, in words
}

// load returns the entries; none if there is no file. It is an error if anybody but the user
// could have written the file, or if it holds an unknown key: the meaning must not be guessed.
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

// lockTimeout limits the time that a change waits for another change; then it fails.
const lockTimeout = 10 * time.Second

// change replaces the entries by the result of f; nil: the file stays as it is. The file is
// locked, in this process and in others: otherwise a change could bring back an entry that
// another change has removed. Entries that cannot be read back are not written.
func (k entryFile[E]) change(f func([]E) []E) error {
	return withLock(k.path, func() error { return k.replace(f) })
}

// withLock runs f with a lock that keeps others of its callers out. It creates the folder of the
// file.
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

func (k entryFile[E]) remove(match func(E) bool) (removed []E, err error) {
	err = k.change(func(entries []E) []E {
		left := slices.DeleteFunc(slices.Clone(entries), match)
		if removed = slices.DeleteFunc(entries, func(e E) bool { return !match(e) }); len(removed) == 0 {
			return nil
		}
		return left
	})
	return removed, err
}
