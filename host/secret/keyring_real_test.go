//go:build keyring

package secret

import (
	"path/filepath"
	"testing"
)

// TestRealKeyring runs the suite on the keyring of the session that it runs in,
// which `make test-keyring` makes for it: it writes to it.
func TestRealKeyring(t *testing.T) {
	if err := NewKeyring(filepath.Join(t.TempDir(), "names")).Available(t.Context()); err != nil {
		t.Fatal(err)
	}
	testStore(t, func(dir string) Store { return NewKeyring(filepath.Join(dir, "names")) })
}
