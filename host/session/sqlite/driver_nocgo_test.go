//go:build !cgo

package sqlite

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestOpenSaysThatCgoIsMissing(t *testing.T) {
	_, err := Open(t.Context(), filepath.Join(t.TempDir(), "sessions.db"))
	if err == nil || !strings.Contains(err.Error(), "built without cgo") {
		t.Errorf("got %v", err)
	}
}
