//go:build cgo

package sqlite

import (
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/session/sessiontest"
)

func withImage(id, content string) session.Draft {
	d := sessiontest.Drafts(id, 1)[0]
	d.Preimages = [][]byte{[]byte(content)}
	return d
}

// The newest preimages stay, however many came before.
func TestOldImagesMakeRoom(t *testing.T) {
	store := newStore(t)
	store.preimagesLimit, store.preimageBytes = 64<<10, 0
	content := func(i int) string { return fmt.Sprintf("%0100d", i) } // about 30 bytes, compressed
	const n = 5000
	for i := range n {
		sessiontest.Append(t, store, withImage(fmt.Sprint("s", i%3), content(i)))
	}
	var kept, bytes int
	if err := rawDB(t, store.path).QueryRow("SELECT count(*), sum(length(packed)) FROM images").Scan(&kept, &bytes); err != nil {
		t.Fatal(err)
	}
	if bytes > 68<<10 || bytes < 50<<10 {
		t.Errorf("%d images with %d bytes are kept", kept, bytes)
	}
	for i := range n {
		_, err := store.Preimage(t.Context(), fmt.Sprint("s", i%3), sha256.Sum256([]byte(content(i))))
		if old := i < n-kept; old != errors.Is(err, session.ErrNoPreimage) || !old && err != nil {
			t.Fatalf("image %d of %d, of which %d are kept: %v", i, n, kept, err)
		}
	}
	// A preimage that exceeds the limit alone is kept while it is the last.
	large := strings.Repeat("x", 200) // no limit that any image keeps
	store.preimagesLimit, store.preimageBytes = 1, 1
	sessiontest.Append(t, store, withImage("s0", large))
	if _, err := store.Preimage(t.Context(), "s0", sha256.Sum256([]byte(large))); err != nil {
		t.Error(err)
	}
}

// A changed preimage is an error.
func TestAnImageIsWhatWasWritten(t *testing.T) {
	content := strings.Repeat("a line\n", 100)
	sum := sha256.Sum256([]byte(content))
	bomb, _ := compressPreimages([][]byte{make([]byte, 64<<20)})
	for name, change := range map[string]func(db *sql.DB){
		"another content":          func(db *sql.DB) { execRaw(t, db, "UPDATE images SET packed = x'6576696c', size = 4") },
		"one that is not deflated": func(db *sql.DB) { execRaw(t, db, "UPDATE images SET packed = x'6576696c'") },
		"one that becomes large":   func(db *sql.DB) { execRaw(t, db, "UPDATE images SET packed = ?", bomb[0].data) },
		"the half of it":           func(db *sql.DB) { execRaw(t, db, "UPDATE images SET packed = substr(packed, 1, 5)") },
		"another's hash": func(db *sql.DB) {
			execRaw(t, db, "DELETE FROM images WHERE session = 'a'")
			execRaw(t, db, "UPDATE images SET session = 'a', sha256 = ?", sum[:])
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := newStore(t)
			sessiontest.Append(t, store, withImage("a", content), withImage("b", "something else"))
			change(rawDB(t, store.path))
			if got, err := store.Preimage(t.Context(), "a", sum); err == nil || errors.Is(err, session.ErrNoPreimage) {
				t.Errorf("got %.20q, %v", got, err)
			}
		})
	}
}

// A store of the first version has no preimages, and gets them from now on.
func TestAStoreFromBeforeThereWereImages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	store := openAt(t, path)
	sessiontest.Append(t, store, sessiontest.Drafts("a", 3)...)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	execRaw(t, rawDB(t, path), "DROP TABLE images; PRAGMA user_version = 1")
	if v, err := Verify(t.Context(), path, ""); err != nil || v.Problems != nil || v.Events != 3 {
		t.Errorf("as it was: %+v, %v", v, err)
	}
	store = openAt(t, path)
	if _, err := store.Preimage(t.Context(), "a", [32]byte{}); !errors.Is(err, session.ErrNoPreimage) {
		t.Error(err)
	}
	sessiontest.Append(t, store, withImage("a", "new"))
	if got, err := store.Preimage(t.Context(), "a", sha256.Sum256([]byte("new"))); err != nil || string(got) != "new" {
		t.Errorf("got %q, %v", got, err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if v, err := Verify(t.Context(), path, ""); err != nil || v.Problems != nil || v.Events != 4 {
		t.Errorf("as it is: %+v, %v", v, err)
	}
}
