//go:build keyring

package secret

import (
	"path/filepath"
	"testing"
)

// TestRealKeyring runs the suite on the keyring of its D-Bus session, which `make
// test-keyring` provides. It writes to that keyring.
func TestRealKeyring(t *testing.T) {
	if err := NewKeyring(filepath.Join(t.TempDir(), "names")).Available(t.Context()); err != nil {
		t.Fatal(err)
	}
	testStore(t, func(dir string) Store { return NewKeyring(filepath.Join(dir, "names")) })
}
