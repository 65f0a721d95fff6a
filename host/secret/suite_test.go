package secret

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/zalando/go-keyring"

	"github.com/stockade-dev/stockade/host/redact"
)

func aRecord(name, value string) Record {
	return Record{Info{name, []string{"api.example.com"}, "X-Key", time.Unix(1_700_000_000, 0).UTC()}, NewValue(value)}
}

func newTestFile(t testing.TB, dir string) *File {
	return NewFile(FileOptions{Path: filepath.Join(dir, "data", "s"), KeyPath: filepath.Join(dir, "state", "k")})
}

// newTestKeyring uses the library's fake keyring in memory. All tests share it, so they do
// not run in parallel.
func newTestKeyring(t testing.TB, dir string) *Keyring {
	keyring.MockInit()
	k := NewKeyring(filepath.Join(dir, "names"))
	k.ready = func() error { return nil }
	return k
}

// TestStores checks the contract of Store for every store. open opens the same store again,
// like another process.
func TestStores(t *testing.T) {
	t.Run("file", func(t *testing.T) {
		testStore(t, func(dir string) Store { return newTestFile(t, dir) })
	})
	t.Run("file with a passphrase", func(t *testing.T) {
		testStore(t, func(dir string) Store { return passphraseFile(dir, "correct horse", new(int)) })
	})
	t.Run("keyring", func(t *testing.T) {
		keyring.MockInit()
		testStore(t, func(dir string) Store {
			k := NewKeyring(filepath.Join(dir, "names"))
			k.ready = func() error { return nil }
			return k
		})
	})
}

func testStore(t *testing.T, open func(dir string) Store) {
	ctx := t.Context()
	dir := t.TempDir()
	s := open(dir)
	if names, err := s.Names(ctx); err != nil || len(names) != 0 {
		t.Fatalf("an empty store names %v, %v", names, err)
	}
	for what, err := range map[string]error{"get": ignore(s.Get(ctx, "NONE")), "remove": s.Remove(ctx, "NONE")} {
		if !errors.Is(err, ErrNotFound) {
			t.Errorf("%s of what is not there: %v", what, err)
		}
	}
	want := []Record{aRecord("TOKEN", "value-of-token"), aRecord("b-2", "grüße \"quoted\"\n\tlines"), aRecord("Long", strings.Repeat("x", MaxValueBytes))}
	for _, r := range want {
		if err := s.Set(ctx, r); err != nil {
			t.Fatalf("set %s: %v", r.Name, err)
		}
	}
	for _, s := range []Store{s, open(dir)} {
		for _, r := range want {
			got, err := s.Get(ctx, r.Name)
			if diff := cmp.Diff(r.stored(), got.stored()); err != nil || diff != "" {
				t.Errorf("%s: %v %s", r.Name, err, diff)
			}
		}
		if names, err := s.Names(ctx); err != nil || !slices.Equal(names, []string{"Long", "TOKEN", "b-2"}) {
			t.Errorf("it names %v, %v", names, err)
		}
	}
	other := open(dir)
	if err := other.Set(ctx, aRecord("TOKEN", "another value")); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get(ctx, "TOKEN"); err != nil || got.Value.Reveal() != "another value" {
		t.Errorf("what another process has set is %v, %v", got, err)
	}
	for what, r := range map[string]Record{
		"a bad name": aRecord("a b", "value"), "no name": aRecord("", "value"), "a short value": aRecord("A", "abc"), "no value": {Info: Info{Name: "A"}},
		"a long value": aRecord("A", strings.Repeat("x", MaxValueBytes+1)), "no text": aRecord("A", "abc\x00def"), "broken text": aRecord("A", "abcd\xff"),
		"a pattern": {Info: Info{Name: "A", Hosts: []string{"*.example.com"}}, Value: NewValue("value")},
		"a header":  {Info: Info{Name: "A", Header: "a b"}, Value: NewValue("value")},
		"host":      {Info: Info{Name: "A", Header: "Host"}, Value: NewValue("value")},
	} {
		if err := s.Set(ctx, r); err == nil {
			t.Errorf("%s is kept", what)
		}
	}
	if err := s.Remove(ctx, "b-2"); err != nil {
		t.Fatal(err)
	}
	if _, err := open(dir).Get(ctx, "b-2"); !errors.Is(err, ErrNotFound) {
		t.Errorf("what was removed: %v", err)
	}
	// Concurrent writers, like two processes: nothing is lost.
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			if err := open(dir).Set(ctx, aRecord(fmt.Sprintf("W%d", i), "value-of-writer")); err != nil {
				t.Errorf("writer %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	if names, err := s.Names(ctx); err != nil || len(names) != 6 {
		t.Errorf("after four writers there are %v, %v", names, err)
	}
}

func ignore(_ Record, err error) error { return err }

func passphraseFile(dir, passphrase string, asked *int) *File {
	var mu sync.Mutex
	return NewFile(FileOptions{
		Path: filepath.Join(dir, "data", "s"), KeyPath: filepath.Join(dir, "state", "k"), UsePassphrase: true,
		AskPassphrase: func(context.Context, bool) ([]byte, error) {
			mu.Lock()
			defer mu.Unlock()
			*asked++
			return []byte(passphrase), nil
		},
	})
}

func TestAValueDoesNotShow(t *testing.T) {
	r := aRecord("TOKEN", "value-of-token")
	nested := struct {
		hidden Record
		list   []Record
		ptr    *Record
	}{r, []Record{r}, &r}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, v := range []any{r, &r, r.Value, &r.Value, nested, &nested, []any{r.Value}} {
			clean(t, format, fmt.Sprintf(format, v), "value-of-token")
		}
	}
}

// clean fails if a text holds a value in any form.
func clean(t *testing.T, what, text string, values ...string) {
	t.Helper()
	for _, v := range values {
		r := new(redact.Redactor)
		r.Add(v)
		if r.Text(text) != text {
			t.Errorf("%s: %.200q holds %.60q", what, text, v)
		}
	}
}
