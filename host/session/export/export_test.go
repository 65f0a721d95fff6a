package export_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/session/export"
	"github.com/stockade-dev/stockade/host/session/sessiontest"
	"github.com/stockade-dev/stockade/host/session/sqlite"
)

func open(t *testing.T, to ...policy.Setting) (session.Store, error) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "sessions.db"))
	if err != nil {
		t.Fatal(err)
	}
	st, err := export.New(db, to)
	t.Cleanup(func() {
		if err != nil {
			_ = db.Close()
		} else {
			_ = st.Close()
		}
	})
	return st, err
}

func TestWhatIsAppendedIsExported(t *testing.T) {
	one, other := t.TempDir(), t.TempDir()
	st, err := open(t, policy.Setting{Value: one}, policy.Setting{Value: other})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]byte{}
	for _, drafts := range [][]session.Draft{sessiontest.Drafts("a", 2), sessiontest.Drafts("b", 1), sessiontest.Drafts("a", 1)} {
		for _, e := range sessiontest.Append(t, st, drafts...) {
			line, err := e.Line()
			if err != nil {
				t.Fatal(err)
			}
			want[e.Session] = append(want[e.Session], line...)
		}
	}
	for _, dir := range []string{one, other} {
		for id, lines := range want {
			got, err := os.ReadFile(filepath.Join(dir, id+".jsonl"))
			if err != nil || !bytes.Equal(got, lines) {
				t.Errorf("%s: %s, %v", id, got, err)
			}
		}
	}
}

func TestWhatCannotBeExportedCountsAsNotRecorded(t *testing.T) {
	dir := t.TempDir()
	if _, err := open(t, policy.Setting{Value: filepath.Join(dir, "none")}); err == nil {
		t.Error("there is no such directory, and it opens")
	} else if _, ok := errors.AsType[*export.Error](err); !ok {
		t.Error(err)
	}
	st, err := open(t, policy.Setting{Value: dir})
	if err != nil {
		t.Fatal(err)
	}
	// Somebody has put a link in place of the file, to make us write elsewhere.
	elsewhere := filepath.Join(t.TempDir(), "file")
	if err := os.Symlink(elsewhere, filepath.Join(dir, "a.jsonl")); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Append(t.Context(), sessiontest.Drafts("a", 1)...); err == nil {
		t.Error("it was recorded")
	}
	if _, err := os.Stat(elsewhere); err == nil {
		t.Error("the link was followed")
	}
}
