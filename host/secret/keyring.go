package secret

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/zalando/go-keyring"
)

// service is the name under which a person finds our secrets in the keyring.
const service = "stockade"

// keyringWait limits the wait for the keyring, which may have to ask a person for its password.
const keyringWait = time.Minute

// Keyring keeps secrets in the keyring of the operating system: the Secret Service of a Linux
// desktop (over D-Bus), the Keychain of macOS (over its program security), or the Credential
// Manager of Windows. A keyring cannot list its entries, so a file beside it holds the names,
// and nothing else. It is safe for concurrent use. See RATIONALE, "Why is a keyring not asked
// what is in it?"
type Keyring struct {
	index string        // path of the file of names
	wait  time.Duration // limit of the wait for one answer of the keyring
	ready func() error  // keyringReachable, except in tests
}

// NewKeyring returns a store in the keyring. index is the path of the file of names.
func NewKeyring(index string) *Keyring {
	return &Keyring{index: index, wait: keyringWait, ready: keyringReachable}
}

// Name implements Store.
func (*Keyring) Name() string { return "keyring" }

// keyringReachable returns an error if this session has no keyring. It keeps the library from
// starting a D-Bus of its own: nobody has asked for that program, and the keyring there would be
// empty and vanish with it.
func keyringReachable() error {
	if runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
		return nil // the keyring is part of the system
	}
	if address := os.Getenv("DBUS_SESSION_BUS_ADDRESS"); address != "" && address != "autolaunch:" {
		return nil
	}
	for _, name := range []string{"bus", "dbus-session"} {
		if _, err := os.Stat(fmt.Sprintf("/run/user/%d/%s", os.Getuid(), name)); err == nil {
			return nil
		}
	}
	return errors.New("there is no D-Bus session, and so no Secret Service")
}

// probe is a name under which the keyring has no secret, because it is not a valid name.
const probe = "-"

// Available returns nil if the keyring answers, else an error that wraps ErrUnavailable.
func (k *Keyring) Available(ctx context.Context) error {
	_, err := k.ask(ctx, func() (string, error) { return keyring.Get(service, probe) })
	if errors.Is(err, keyring.ErrNotFound) {
		return nil
	}
	return err
}

// Get implements Store.
func (k *Keyring) Get(ctx context.Context, name string) (Record, error) {
	names, err := k.Names(ctx)
	if err != nil {
		return Record{}, err
	}
	if !slices.Contains(names, name) {
		return Record{}, fmt.Errorf("%q: %w", name, ErrNotFound)
	}
	text, err := k.ask(ctx, func() (string, error) { return keyring.Get(service, name) })
	if errors.Is(err, keyring.ErrNotFound) {
		return Record{}, fmt.Errorf("%q: %w in the keyring any more", name, ErrNotFound)
	}
	if err != nil {
		return Record{}, err
	}
	r, err := decodeRecord([]byte(text))
	if err == nil && r.Name != name {
		err = fmt.Errorf("it is a record of %q", r.Name)
	}
	if err != nil {
		return Record{}, fmt.Errorf("%q in the keyring: %w", name, err)
	}
	return r, nil
}

// Set implements Store.
func (k *Keyring) Set(ctx context.Context, r Record) error {
	if err := r.Check(); err != nil {
		return err
	}
	data, err := json.Marshal(r.stored())
	if err != nil {
		return err
	}
	unlock, err := lockFile(ctx, k.index)
	if err != nil {
		return err
	}
	defer unlock()
	names, err := k.Names(ctx)
	if err != nil {
		return err
	}
	// The name is written first, so that each secret in the keyring has its name in the file.
	if !slices.Contains(names, r.Name) {
		if len(names) >= maxRecords {
			return fmt.Errorf("there are %d secrets already, which is the limit", len(names))
		}
		if err := k.writeNames(append(slices.Clone(names), r.Name)); err != nil {
			return err
		}
	}
	_, err = k.ask(ctx, func() (string, error) { return "", keyring.Set(service, r.Name, string(data)) })
	if err != nil && !slices.Contains(names, r.Name) && !errors.Is(err, context.DeadlineExceeded) {
		return errors.Join(err, k.writeNames(names)) // the secret was not there before, and is not there now
	}
	if errors.Is(err, keyring.ErrSetDataTooBig) {
		return fmt.Errorf("the value is too long for this keyring: %w", err)
	}
	return err
}

// Remove implements Store.
func (k *Keyring) Remove(ctx context.Context, name string) error {
	unlock, err := lockFile(ctx, k.index)
	if err != nil {
		return err
	}
	defer unlock()
	names, err := k.Names(ctx)
	if err != nil {
		return err
	}
	i := slices.Index(names, name)
	if i < 0 {
		return fmt.Errorf("%q: %w", name, ErrNotFound)
	}
	_, err = k.ask(ctx, func() (string, error) { return "", keyring.Delete(service, name) })
	if err != nil && !errors.Is(err, keyring.ErrNotFound) {
		return err
	}
	return k.writeNames(slices.Delete(names, i, i+1))
}

// keyringMu is held during each call of the library, which is perhaps not safe for concurrent
// use. A call that hangs blocks the others, as the keyring itself would.
var keyringMu sync.Mutex

// ask calls f, which cannot be cancelled. It waits at most k.wait, long enough for a person to
// type a password. If f does not return by then, it is abandoned and the error wraps
// ErrUnavailable.
func (k *Keyring) ask(ctx context.Context, f func() (string, error)) (string, error) {
	if err := k.ready(); err != nil {
		return "", fmt.Errorf("the keyring is %w: %w", ErrUnavailable, err)
	}
	type answer struct {
		text string
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		keyringMu.Lock()
		defer keyringMu.Unlock()
		text, err := f()
		answers <- answer{text, err}
	}()
	ctx, cancel := context.WithTimeout(ctx, k.wait)
	defer cancel()
	select {
	case a := <-answers:
		switch {
		case a.err == nil, errors.Is(a.err, keyring.ErrNotFound), errors.Is(a.err, keyring.ErrSetDataTooBig):
			return a.text, a.err
		}
		return "", fmt.Errorf("the keyring is %w: %w", ErrUnavailable, a.err)
	case <-ctx.Done():
		return "", fmt.Errorf("the keyring is %w: it has not answered: %w", ErrUnavailable, ctx.Err())
	}
}

// nameIndex is the JSON of the file of names.
type nameIndex struct {
	Version int      `json:"version"`
	Names   []string `json:"names"`
}

// Names implements Store. It does not ask the keyring.
func (k *Keyring) Names(context.Context) ([]string, error) {
	data, err := readPrivate(k.index, maxFileBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var n nameIndex
	if err := json.Unmarshal(data, &n); err != nil || n.Version != 1 {
		return nil, fmt.Errorf("%s: %w", k.index, ErrFormat)
	}
	return n.Names, nil
}

func (k *Keyring) writeNames(list []string) error {
	slices.Sort(list)
	data, err := json.Marshal(nameIndex{1, list})
	if err != nil {
		return err
	}
	return writePrivate(k.index, append(data, '\n'))
}
