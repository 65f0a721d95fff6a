//go:build cgo && unix

package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/session/sessiontest"
)

func write(t testing.TB, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// content returns the content of a regular file, and nothing for anything else.
func content(path string) []byte {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	b, _ := os.ReadFile(path)
	return b
}

func TestOpenCreatesPrivateFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "stockade", "sessions.db")
	store := openAt(t, path)
	sessiontest.Append(t, store, sessiontest.Drafts("a", 1)...)
	for file, want := range map[string]fs.FileMode{
		path: 0o600, path + "-wal": 0o600, path + "-shm": 0o600,
		filepath.Dir(path): fs.ModeDir | 0o700, filepath.Dir(filepath.Dir(path)): fs.ModeDir | 0o700,
	} {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != want {
			t.Errorf("%s has mode %v, want %v", file, info.Mode(), want)
		}
	}
}

func TestOpenTakesAnyName(t *testing.T) {
	for _, name := range []string{"a?mode=memory", "a#b", "a%41", "a b", "ä", ":memory:", "file:x", "a'b\"c", "&_sync=0"} {
		path := filepath.Join(t.TempDir(), name)
		store := openAt(t, path)
		sessiontest.Append(t, store, sessiontest.Drafts("a", 1)...)
		if content, err := os.ReadFile(path); err != nil || len(content) == 0 {
			t.Errorf("%q: %d bytes, %v", name, len(content), err)
		}
		entries, err := os.ReadDir(filepath.Dir(path))
		if err != nil || len(entries) != 3 { // with -wal and -shm
			t.Errorf("%q: the folder has %v, %v", name, entries, err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	foreign := func(t *testing.T, path, statements string) {
		write(t, path, nil)
		db := rawDB(t, path)
		execRaw(t, db, statements)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	existing := func(t *testing.T, path string) {
		store, err := Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name    string
		prepare func(t *testing.T, path string)
		want    string
	}{
		{"a symbolic link", func(t *testing.T, path string) {
			existing(t, path+".real")
			must(t, os.Symlink(path+".real", path))
		}, "is a symbolic link"},
		{"a dangling symbolic link", func(t *testing.T, path string) {
			must(t, os.Symlink(path+".real", path))
		}, "is a symbolic link"},
		{"a log that is a symbolic link", func(t *testing.T, path string) {
			existing(t, path)
			must(t, os.Symlink(path+".real", path+"-wal"))
		}, "sessions.db-wal is a symbolic link"},
		{"a file that the group can write", func(t *testing.T, path string) {
			existing(t, path)
			must(t, os.Chmod(path, 0o620))
		}, "can be written by others (mode 0620)"},
		{"a file that everybody can write", func(t *testing.T, path string) {
			existing(t, path)
			must(t, os.Chmod(path, 0o602))
		}, "can be written by others (mode 0602)"},
		{"a folder that everybody can write", func(t *testing.T, path string) {
			must(t, os.Chmod(filepath.Dir(path), 0o777))
		}, "everybody can replace files in"},
		{"a folder", func(t *testing.T, path string) {
			must(t, os.Mkdir(path, 0o700))
		}, "is not a regular file"},
		{"a pipe", func(t *testing.T, path string) {
			must(t, syscall.Mkfifo(path, 0o600))
		}, "is not a regular file"},
		{"a folder that is a file", func(t *testing.T, path string) {
			must(t, os.Remove(filepath.Dir(path)))
			write(t, filepath.Dir(path), nil)
		}, "not a directory"},
		{"a log without its database", func(t *testing.T, path string) {
			write(t, path+"-wal", []byte("x"))
		}, "the database is missing, but sessions.db-wal is there"},
		{"a newer version", func(t *testing.T, path string) {
			existing(t, path)
			db := rawDB(t, path)
			execRaw(t, db, "PRAGMA user_version = 99")
			must(t, db.Close())
		}, "it has version 99 and this program knows 2: the store was written by a newer version"},
		{"a database of another program", func(t *testing.T, path string) {
			foreign(t, path, "CREATE TABLE events (seq INTEGER PRIMARY KEY)")
		}, "it is a database of another program"},
		{"a database with another program's mark", func(t *testing.T, path string) {
			foreign(t, path, "PRAGMA application_id = 7; PRAGMA user_version = 1")
		}, "it is a database of another program"},
		{"text", func(t *testing.T, path string) {
			write(t, path, []byte(strings.Repeat("This is no database. ", 1000)))
		}, "it is not a session store, or its beginning is damaged"},
		{"a few bytes", func(t *testing.T, path string) {
			write(t, path, []byte("SQLite format 3\x00"))
		}, "it is not a session store, or its beginning is damaged"},
	} {
		t.Run(test.name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "store")
			must(t, os.Mkdir(folder, 0o700))
			path := filepath.Join(folder, "sessions.db")
			test.prepare(t, path)
			before := content(path)
			store, err := Open(t.Context(), path)
			if err == nil {
				store.Close()
				t.Fatalf("opens, want %q", test.want)
			}
			if _, ok := errors.AsType[*OpenError](err); !ok || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if strings.Contains(test.name, "newer") != errors.Is(err, session.ErrNewer) {
				t.Errorf("got %v; is it ErrNewer?", err)
			}
			if after := content(path); !bytes.Equal(before, after) {
				t.Error("the file was changed")
			}
		})
	}
}

func TestOpenRefusesBadArguments(t *testing.T) {
	if _, err := Open(t.Context(), ""); err == nil {
		t.Error("an empty path is taken")
	}
}

func TestOpenTakesAnEmptyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	write(t, path, nil) // as left by a crash between creating and filling it
	sessiontest.Append(t, openAt(t, path), sessiontest.Drafts("a", 1)...)
}

func TestStoreBecomesNewerWhileOpen(t *testing.T) {
	store := newStore(t)
	sessiontest.Append(t, store, sessiontest.Drafts("a", 1)...)
	execRaw(t, rawDB(t, store.path), fmt.Sprintf("PRAGMA user_version = %d", schemaVersion+1))
	if _, err := store.Append(t.Context(), sessiontest.Drafts("a", 1)...); !errors.Is(err, session.ErrNewer) {
		t.Errorf("got %v, want ErrNewer", err)
	}
	sessiontest.Verify(t, store, 1)
}

// image returns the bytes of a sound database and its report.
func image(t *testing.T) ([]byte, session.Report) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	store, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		drafts := sessiontest.Drafts("a", 3)
		drafts[1].Body = []byte(`"` + strings.Repeat("long ", i*20) + `"`)
		sessiontest.Append(t, store, drafts...)
	}
	report := sessiontest.Verify(t, store, 90)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content, report
}

// survey uses a file that may be damaged in every way, and returns the result of its
// verification.
func survey(t *testing.T, content []byte) (session.Report, error) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	write(t, path, content)
	store, err := Open(t.Context(), path)
	if err != nil {
		return session.Report{}, err
	}
	defer store.Close()
	report, err := session.VerifyStore(store.All(t.Context()))
	// These may fail, but must return.
	session.VerifySession(store.Events(t.Context(), "a", 0))
	store.Sessions(t.Context())
	store.OpenCalls(t.Context())
	store.Resolve(t.Context(), "a")
	store.Append(t.Context(), sessiontest.Drafts("a", 1)...)
	store.DeleteBodies(t.Context(), "a")
	return report, err
}

func TestTruncatedFile(t *testing.T) {
	content, whole := image(t)
	sizes := []int{2, 15, 16, 99, 100, 511, 512, 513, 1024, 4095, 4096, 4097, len(content) - 4096}
	for range 20 {
		sizes = append(sizes, 1+rand.IntN(len(content)-4096))
	}
	for _, size := range sizes {
		if report, err := survey(t, content[:size]); err == nil {
			t.Errorf("%d of %d bytes: %d of %d events verify and nothing is missing", size, len(content), report.Events, whole.Events)
		}
	}
}

func TestFlippedBits(t *testing.T) {
	content, whole := image(t)
	for range 150 {
		damaged := bytes.Clone(content)
		at, bit := rand.IntN(len(content)), rand.IntN(8)
		damaged[at] ^= 1 << bit
		report, err := survey(t, damaged)
		// The damage may be in an index or in free space. Then all events are there.
		if err == nil && (report.Head != whole.Head || report.Events != whole.Events) {
			t.Errorf("bit %d of byte %d: another chain verifies: %+v instead of %+v", bit, at, report, whole)
		}
	}
}
