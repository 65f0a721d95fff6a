package secret

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/crypto/chacha20poly1305"
)

// FileOptions configures a [File].
type FileOptions struct {
	// Path is the file with the secrets. KeyPath is the file with its key, which is created with
	// the first secret. They should be in different folders, so that a backup or a repository
	// with only one of them is worth nothing.
	Path, KeyPath string
	// AskPassphrase asks a person for the passphrase; with anew, for a new one, twice. It is
	// called when a file with a passphrase is first opened, and again after a wrong passphrase.
	// Nil: nobody can be asked.
	AskPassphrase func(ctx context.Context, anew bool) ([]byte, error)
	UsePassphrase bool // protect a new file with a passphrase instead of a key file; an existing file stays as it is
}

// File keeps secrets in an encrypted file. It is safe for concurrent use; processes that write
// wait for each other. See RATIONALE, "Why a key file by default, and not a passphrase?"
type File struct {
	opts FileOptions

	mu     sync.Mutex // guards the fields below
	key    []byte     // nil: not read or derived yet
	origin origin     // source of key
}

// NewFile returns a store in a file, which it does not read yet.
func NewFile(opts FileOptions) *File { return &File{opts: opts} }

// Name implements Store.
func (*File) Name() string { return "file" }

// Exists reports whether the file exists.
func (f *File) Exists() bool {
	_, err := os.Lstat(f.opts.Path)
	return err == nil
}

// Get implements Store.
func (f *File) Get(ctx context.Context, name string) (Record, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	records, err := f.read(ctx)
	if err != nil {
		return Record{}, err
	}
	if i := find(records, name); i >= 0 {
		return records[i].record(), nil
	}
	return Record{}, fmt.Errorf("%q: %w", name, ErrNotFound)
}

// Names implements Store.
func (f *File) Names(ctx context.Context) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	records, err := f.read(ctx)
	var names []string
	for _, r := range records {
		names = append(names, r.Name)
	}
	return names, err
}

// Set implements Store.
func (f *File) Set(ctx context.Context, r Record) error {
	if err := r.Check(); err != nil {
		return err
	}
	return f.change(ctx, func(records []storedRecord) ([]storedRecord, error) {
		if i := find(records, r.Name); i >= 0 {
			records[i] = r.stored()
			return records, nil
		}
		if len(records) >= maxRecords {
			return nil, fmt.Errorf("there are %d secrets already, which is the limit", len(records))
		}
		return append(records, r.stored()), nil
	})
}

// Remove implements Store.
func (f *File) Remove(ctx context.Context, name string) error {
	return f.change(ctx, func(records []storedRecord) ([]storedRecord, error) {
		i := find(records, name)
		if i < 0 {
			return nil, fmt.Errorf("%q: %w", name, ErrNotFound)
		}
		return slices.Delete(records, i, i+1), nil
	})
}

// find returns the index of the record of a name, or -1.
func find(records []storedRecord, name string) int {
	return slices.IndexFunc(records, func(s storedRecord) bool { return s.Name == name })
}

// change replaces the records by those that edit returns, while other processes are locked out.
func (f *File) change(ctx context.Context, edit func([]storedRecord) ([]storedRecord, error)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	unlock, err := lockFile(ctx, f.opts.Path)
	if err != nil {
		return err
	}
	defer unlock()
	records, err := f.read(ctx)
	if err != nil {
		return err
	}
	if records, err = edit(records); err != nil {
		return err
	}
	if err := f.ensureKey(ctx); err != nil {
		return err
	}
	slices.SortFunc(records, func(a, b storedRecord) int { return strings.Compare(a.Name, b.Name) })
	plaintext, err := json.Marshal(records)
	if err != nil {
		return err
	}
	sealed, err := seal(f.key, f.origin, plaintext)
	if err != nil {
		return err
	}
	return writePrivate(f.opts.Path, sealed)
}

// read returns the records, sorted by name; nil if there is no file. The caller holds f.mu.
func (f *File) read(ctx context.Context) ([]storedRecord, error) {
	data, err := readPrivate(f.opts.Path, maxFileBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	records, err := f.open(ctx, data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.opts.Path, err)
	}
	return records, nil
}

func (f *File) open(ctx context.Context, data []byte) ([]storedRecord, error) {
	h, err := parseHeader(data)
	if err != nil {
		return nil, err
	}
	// Another process may have created a new file with another key.
	if f.key == nil || f.origin != h.Origin {
		key, err := f.keyFor(ctx, h.Origin)
		if err != nil {
			return nil, err
		}
		f.key, f.origin = key, h.Origin
	}
	plaintext, err := open(f.key, h, data)
	if err != nil {
		f.key = nil
		switch {
		case errors.Is(err, ErrWrongKey) && h.Origin.Source == sourcePassphrase:
			return nil, fmt.Errorf("%w: this is not its passphrase", ErrWrongKey)
		case errors.Is(err, ErrWrongKey):
			return nil, fmt.Errorf("%w: %s is not the key that it was written with", ErrWrongKey, f.opts.KeyPath)
		}
		return nil, err
	}
	var records []storedRecord
	if json.Unmarshal(plaintext, &records) != nil { // its error would quote the plaintext
		return nil, fmt.Errorf("%w: it holds no records", ErrFormat)
	}
	return records, nil
}

func (f *File) keyFor(ctx context.Context, o origin) ([]byte, error) {
	if o.Source == sourceKeyFile {
		return f.readKey()
	}
	passphrase, err := f.ask(ctx, false)
	if err != nil {
		return nil, err
	}
	return o.key(passphrase), nil
}

// ask asks a person for the passphrase of the file; with anew, for a new one.
func (f *File) ask(ctx context.Context, anew bool) ([]byte, error) {
	if f.opts.AskPassphrase == nil {
		return nil, fmt.Errorf("%w: it has a passphrase, and there is no terminal to ask for it", ErrUnavailable)
	}
	passphrase, err := f.opts.AskPassphrase(ctx, anew)
	if err != nil {
		return nil, fmt.Errorf("ask for the passphrase: %w", err)
	}
	if len(passphrase) == 0 {
		return nil, errors.New("the passphrase is empty")
	}
	return passphrase, nil
}

// ensureKey sets the key of a new file, unless there is a key: it reads or creates the key file,
// or asks for a passphrase. The caller holds f.mu.
func (f *File) ensureKey(ctx context.Context) error {
	if f.key != nil {
		return nil
	}
	if f.opts.UsePassphrase {
		passphrase, err := f.ask(ctx, true)
		if err != nil {
			return err
		}
		f.origin = newPassphraseOrigin()
		f.key = f.origin.key(passphrase)
		return nil
	}
	key, err := f.readKey()
	if errors.Is(err, fs.ErrNotExist) {
		key, err = f.makeKey()
	}
	f.key, f.origin = key, origin{Source: sourceKeyFile}
	return err
}

// readKey reads the key file. It is one line of hex, so that it can be copied by hand.
func (f *File) readKey() ([]byte, error) {
	data, err := readPrivate(f.opts.KeyPath, 1<<10)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the key of the secrets is gone: %w", err)
	}
	if err != nil {
		return nil, err
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(data)))
	if err != nil || len(key) != chacha20poly1305.KeySize {
		return nil, fmt.Errorf("%s: %w: it does not hold one key in hex", f.opts.KeyPath, ErrDamaged)
	}
	return key, nil
}

// makeKey creates the key file. The file is durable before the key encrypts anything.
func (f *File) makeKey() ([]byte, error) {
	key := make([]byte, chacha20poly1305.KeySize)
	rand.Read(key)
	if err := writePrivate(f.opts.KeyPath, []byte(hex.EncodeToString(key)+"\n")); err != nil {
		return nil, err
	}
	return key, nil
}

// lockFile keeps other processes from changing a file until unlock is called or this process ends.
// It waits for the lock until ctx ends.
func lockFile(ctx context.Context, path string) (unlock func(), err error) {
	if err := makeFolder(filepath.Dir(path)); err != nil {
		return nil, err
	}
	l := flock.New(path+".lock", flock.SetPermissions(0o600))
	if _, err := l.TryLockContext(ctx, 20*time.Millisecond); err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { _ = l.Unlock() }, nil
}
