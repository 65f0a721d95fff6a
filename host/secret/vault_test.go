package secret

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zalando/go-keyring"

	"github.com/stockade-dev/stockade/host/redact"
)

var errLocked = errors.New("the collection is locked")

func newTestVault(t *testing.T) (*Vault, *Keyring, *File, *redact.Redactor) {
	dir := t.TempDir()
	k, f, r := newTestKeyring(t, dir), newTestFile(t, dir), new(redact.Redactor)
	return NewVault(k, f, r), k, f, r
}

func TestANameIsInOneStore(t *testing.T) {
	v, k, f, _ := newTestVault(t)
	ctx := t.Context()
	for i, s := range []Store{k, f, k, f} {
		value := strings.Repeat("v", 10+i)
		if err := v.Set(ctx, s, aRecord("TOKEN", value)); err != nil {
			t.Fatal(err)
		}
		if r, err := v.Get(ctx, "TOKEN"); err != nil || r.Value.Reveal() != value {
			t.Errorf("set in the %s: %v, %v", s.Name(), r, err)
		}
		list, err := v.List(ctx)
		if err != nil || len(list) != 1 || list[0].Store != s.Name() || list[0].Header != "X-Key" {
			t.Errorf("set in the %s: %+v, %v", s.Name(), list, err)
		}
	}
	if err := v.Set(ctx, f, aRecord("token", "value-of-token")); err == nil {
		t.Error("two names differ in case only")
	}
	if from, err := v.Remove(ctx, "TOKEN"); from != "file" || err != nil {
		t.Errorf("removed from %q, %v", from, err)
	}
	if _, err := v.Get(ctx, "TOKEN"); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	if _, err := v.Remove(ctx, "TOKEN"); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}

func TestWithoutAKeyring(t *testing.T) {
	v, k, f, _ := newTestVault(t)
	ctx := t.Context()
	if err := v.Set(ctx, k, aRecord("OLD", "value-in-keyring")); err != nil {
		t.Fatal(err)
	}
	for what, broken := range map[string]func(){
		"none":   func() { k.ready = func() error { return errors.New("there is no D-Bus session") } },
		"locked": func() { k.ready = func() error { return nil }; keyring.MockInitWithError(errLocked) },
	} {
		broken()
		s, why, err := v.ChooseStore(ctx, "")
		if s != Store(f) || why == nil || err != nil {
			t.Errorf("%s: picked %v, %v, %v", what, s, why, err)
		}
		if _, _, err := v.ChooseStore(ctx, "keyring"); !errors.Is(err, ErrUnavailable) {
			t.Errorf("%s: %v", what, err)
		}
		if s, why, err := v.ChooseStore(ctx, "file"); s != Store(f) || why != nil || err != nil {
			t.Errorf("%s: %v %v %v", what, s, why, err)
		}
		if err := v.Set(ctx, f, aRecord("NEW", "value-in-file")); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if r, err := v.Get(ctx, "NEW"); err != nil || r.Value.Reveal() != "value-in-file" {
			t.Errorf("%s: %v", what, err)
		}
		// A secret in the keyring is neither missing nor replaced while the keyring does
		// not answer.
		if _, err := v.Get(ctx, "OLD"); !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %v", what, err)
		}
		if err := v.Set(ctx, f, aRecord("OLD", "value-in-file")); !errors.Is(err, ErrUnavailable) {
			t.Errorf("%s: %v", what, err)
		}
		if names, err := f.Names(ctx); err != nil || len(names) != 1 {
			t.Errorf("%s: the file holds %v, %v", what, names, err)
		}
		if list, err := v.List(ctx); err != nil || len(list) != 2 || list[1].Problem == "" || list[0].Problem != "" {
			t.Errorf("%s: %+v, %v", what, list, err)
		}
		if err := k.Set(ctx, aRecord("ANOTHER", "value-of-another")); !errors.Is(err, ErrUnavailable) {
			t.Errorf("%s: %v", what, err)
		}
		if names, _ := k.Names(ctx); len(names) != 1 {
			t.Errorf("%s: the keyring is said to hold %v", what, names)
		}
	}
	if _, _, err := v.ChooseStore(ctx, "cloud"); err == nil {
		t.Error("there is a store named cloud")
	}
}

// TestAKeyringThatDoesNotAnswer uses a keyring that waits, as if for an absent person.
func TestAKeyringThatDoesNotAnswer(t *testing.T) {
	k := newTestKeyring(t, t.TempDir())
	k.wait = time.Millisecond
	block := make(chan struct{})
	defer close(block)
	_, err := k.ask(t.Context(), func() (string, error) { <-block; return "", nil })
	if !errors.Is(err, ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	k.wait = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := k.ask(ctx, func() (string, error) { <-block; return "", nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestWhatSomebodyElseHasPutIntoTheKeyring(t *testing.T) {
	k := newTestKeyring(t, t.TempDir())
	if err := k.Set(t.Context(), aRecord("TOKEN", "value-of-token")); err != nil {
		t.Fatal(err)
	}
	other, err := json.Marshal(aRecord("OTHER", "value-of-other").stored())
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "value-of-another", "{", `{"name":"TOKEN","value":"abc"}`, string(other)} {
		if err := keyring.Set(service, "TOKEN", text); err != nil {
			t.Fatal(err)
		}
		_, err := k.Get(t.Context(), "TOKEN")
		if err == nil {
			t.Errorf("%q is a record", text)
			continue
		}
		clean(t, "the error", err.Error(), "value-of-another", "value-of-other")
	}
	if err := keyring.Delete(service, "TOKEN"); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Get(t.Context(), "TOKEN"); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	if err := k.Remove(t.Context(), "TOKEN"); err != nil {
		t.Errorf("its name cannot be removed: %v", err)
	}
	if err := os.WriteFile(k.index, []byte(`{"version":2}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Names(t.Context()); !errors.Is(err, ErrFormat) {
		t.Error(err)
	}
	if data, err := os.ReadFile(filepath.Join(filepath.Dir(k.index), "names")); err != nil || strings.Contains(string(data), "value") {
		t.Errorf("%s, %v", data, err)
	}
}

func TestTheRedactorKnowsWhatWasRead(t *testing.T) {
	v, k, f, r := newTestVault(t)
	for _, s := range []Store{k, f} {
		if err := s.Set(t.Context(), aRecord("IN_"+s.Name(), "value-in-"+s.Name())); err != nil {
			t.Fatal(err)
		}
	}
	if r.Text("value-in-file") != "value-in-file" {
		t.Error("it knows what nobody has read")
	}
	if _, err := v.Get(t.Context(), "IN_file"); err != nil || r.Text("value-in-file") != "[redacted]" || r.Text("value-in-keyring") != "value-in-keyring" {
		t.Errorf("after get: %v", err)
	}
	if _, err := v.List(t.Context()); err != nil || r.Text("value-in-keyring") != "[redacted]" {
		t.Errorf("after list: %v", err)
	}
	_ = v.Set(t.Context(), f, aRecord("a bad name", "value-of-a-mistake"))
	if err := v.Set(t.Context(), f, aRecord("NEW", "value-of-new")); err != nil || r.Text("value-of-new") != "[redacted]" {
		t.Errorf("after set: %v", err)
	}
}
