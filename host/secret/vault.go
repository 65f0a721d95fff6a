package secret

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/redact"
	"github.com/stockade-dev/stockade/host/services"
	"github.com/stockade-dev/stockade/host/tool"
)

// Vault holds both stores of one user. A name is in at most one, unless a Set has failed. It is
// safe for concurrent use.
type Vault struct {
	keyring  *Keyring
	file     *File
	redactor *redact.Redactor // gets every value that is read or set
}

// NewVault returns a vault with the stores. Every value that is read or set is added to redactor.
func NewVault(keyring *Keyring, file *File, redactor *redact.Redactor) *Vault {
	return &Vault{keyring: keyring, file: file, redactor: redactor}
}

// Redactor returns the redactor that has every value that was read or set.
func (v *Vault) Redactor() *redact.Redactor { return v.redactor }

// holder returns the store that holds a name; ErrNotFound if none does. It only reads the list
// of the keyring's names, because the keyring itself may not be available.
func (v *Vault) holder(ctx context.Context, name string) (Store, error) {
	for _, s := range []Store{v.keyring, v.file} {
		names, err := s.Names(ctx)
		if err != nil {
			return nil, err
		}
		if slices.Contains(names, name) {
			return s, nil
		}
	}
	return nil, fmt.Errorf("%q: %w", name, ErrNotFound)
}

// Get returns a record; ErrNotFound if no store holds the name. If the keyring holds it and does
// not answer, the error wraps ErrUnavailable; the file is not tried.
func (v *Vault) Get(ctx context.Context, name string) (Record, error) {
	s, err := v.holder(ctx, name)
	if err != nil {
		return Record{}, err
	}
	r, err := s.Get(ctx, name)
	if err != nil {
		return Record{}, fmt.Errorf("%q is kept in the %s: %w", name, s.Name(), err)
	}
	v.redactor.Add(r.Value.Reveal())
	return r, nil
}

// Placeholders implements [services.Secrets].
func (v *Vault) Placeholders(granted []tool.Secret) services.Placeholders {
	return NewTable(granted, v.Get)
}

// ChooseStore returns the store for a new secret: the one with the given name ("file" or
// "keyring"). If name is empty, it is the keyring, or the file if the keyring does not answer;
// why is then the keyring's error. err is set if the named store does not exist or does not
// answer.
func (v *Vault) ChooseStore(ctx context.Context, name string) (s Store, why, err error) {
	switch name {
	case "file":
		return v.file, nil, nil
	case "keyring":
		return v.keyring, nil, v.keyring.Available(ctx)
	case "":
		if why := v.keyring.Available(ctx); why != nil {
			return v.file, why, nil
		}
		return v.keyring, nil, nil
	}
	return nil, nil, fmt.Errorf("there is no store %q; it is keyring or file", name)
}

// Set stores a record in a store that ChooseStore returned, and removes a record of the same
// name from the other store. If the other store cannot be reached, nothing changes.
func (v *Vault) Set(ctx context.Context, s Store, r Record) error {
	if err := r.Check(); err != nil {
		return err
	}
	v.redactor.Add(r.Value.Reveal())
	other := Store(v.file)
	if s == other {
		other = v.keyring
	}
	old := false // the other store has a record of that name
	for _, store := range []Store{v.keyring, v.file} {
		names, err := store.Names(ctx)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(names, func(n string) bool { return n != r.Name && strings.EqualFold(n, r.Name) })
		if i >= 0 {
			return fmt.Errorf("there is a secret %q, and some keyrings do not distinguish upper and lower case", names[i])
		}
		old = old || store == other && slices.Contains(names, r.Name)
	}
	if old && other == v.keyring {
		if err := v.keyring.Available(ctx); err != nil {
			return fmt.Errorf("%q is kept in the keyring already, and cannot be replaced: %w", r.Name, err)
		}
	}
	if err := s.Set(ctx, r); err != nil || !old {
		return err
	}
	if err := other.Remove(ctx, r.Name); err != nil && !errors.Is(err, ErrNotFound) {
		return fmt.Errorf("it is kept in the %s, but the old one cannot be removed from the %s: %w", s.Name(), other.Name(), err)
	}
	return nil
}

// Remove deletes a secret and returns the name of its store; ErrNotFound if no store holds it.
func (v *Vault) Remove(ctx context.Context, name string) (from string, err error) {
	s, err := v.holder(ctx, name)
	if err != nil {
		return "", err
	}
	return s.Name(), s.Remove(ctx, name)
}

// ListEntry describes a secret in a list.
type ListEntry struct {
	Info
	Store   string `json:"store"`
	Problem string `json:"problem,omitempty"` // error of reading it, when only its name is known; empty: none
}

// List describes all secrets, sorted by name. An unreadable secret is listed, with a Problem.
func (v *Vault) List(ctx context.Context) ([]ListEntry, error) {
	var out []ListEntry
	for _, s := range []Store{v.keyring, v.file} {
		names, err := s.Names(ctx)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			l := ListEntry{Info: Info{Name: name}, Store: s.Name()}
			r, err := s.Get(ctx, name)
			if err != nil {
				l.Problem = err.Error()
			} else {
				v.redactor.Add(r.Value.Reveal())
				l.Info = r.Info
			}
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(a, b ListEntry) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}
