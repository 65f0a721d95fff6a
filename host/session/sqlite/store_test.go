//go:build cgo

package sqlite

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/session/sessiontest"
)

func TestStore(t *testing.T) {
	sessiontest.Run(t, func(t *testing.T) session.Store {
		store, err := Open(t.Context(), filepath.Join(t.TempDir(), "sessions.db"))
		if err != nil {
			t.Fatal(err)
		}
		return store
	})
}

// openAt opens the store at path until the test ends.
func openAt(t testing.TB, path string) *Store {
	t.Helper()
	store, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return store
}

func newStore(t testing.TB) *Store {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "sessions.db"))
}

// rawDB opens the database without the store, like another program.
func rawDB(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+path+"?_busy_timeout=10000")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1) // settings are per connection
	t.Cleanup(func() { db.Close() })
	return db
}

func execRaw(t testing.TB, db *sql.DB, statements string, args ...any) {
	t.Helper()
	if _, err := db.Exec(statements, args...); err != nil {
		t.Fatalf("%s: %v", statements, err)
	}
}

func checkIntegrity(t testing.TB, path string) {
	t.Helper()
	var result string
	db := rawDB(t, path)
	defer db.Close()
	if err := db.QueryRow("PRAGMA integrity_check").Scan(&result); err != nil || result != "ok" {
		t.Fatalf("integrity check: %s, %v", result, err)
	}
}

func TestConnectionsAreSetUp(t *testing.T) {
	store := newStore(t)
	for _, test := range []struct{ pragma, writer, reader string }{
		{"journal_mode", "wal", "wal"},
		{"synchronous", "2", "2"},
		{"foreign_keys", "1", "1"},
		{"secure_delete", "1", "1"},
		{"trusted_schema", "0", "0"},
		{"cell_size_check", "1", "1"},
		{"temp_store", "2", "2"},
		{"query_only", "0", "1"},
		{"application_id", fmt.Sprint(applicationID), fmt.Sprint(applicationID)},
		{"user_version", fmt.Sprint(schemaVersion), fmt.Sprint(schemaVersion)},
	} {
		var writer, reader string
		if err := store.conn.QueryRowContext(t.Context(), "PRAGMA "+test.pragma).Scan(&writer); err != nil {
			t.Fatal(err)
		}
		if err := store.readers.QueryRow("PRAGMA " + test.pragma).Scan(&reader); err != nil {
			t.Fatal(err)
		}
		if writer != test.writer || reader != test.reader {
			t.Errorf("%s: writer has %s, want %s; reader has %s, want %s", test.pragma, writer, test.writer, reader, test.reader)
		}
	}
}

func TestMigrationsEndAtTheCurrentVersion(t *testing.T) {
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != schemaVersion || files[len(files)-1] != fmt.Sprintf("migrations/%04d.sql", schemaVersion) {
		t.Errorf("the files are %v and the version is %d", files, schemaVersion)
	}
}

func TestTablesRefuseChanges(t *testing.T) {
	store := newStore(t)
	sessiontest.Append(t, store, sessiontest.Drafts("a", 3)...)
	db := rawDB(t, store.path)
	for _, statement := range []string{
		"UPDATE events SET turn = 9",
		"UPDATE events SET seq = seq + 10",
		"DELETE FROM events WHERE seq = 3",
		"INSERT OR REPLACE INTO events SELECT * FROM events WHERE seq = 2",
		"INSERT INTO events SELECT 5, session, time, type, turn, step, call, digest, prev, session_prev, hash FROM events WHERE seq = 2",
		"INSERT INTO events SELECT 4, session, time, type, turn, step, call, x'00', prev, session_prev, hash FROM events WHERE seq = 2",
		"INSERT INTO events SELECT 4, session, 'noon', type, turn, step, call, digest, prev, session_prev, hash FROM events WHERE seq = 2",
		"UPDATE bodies SET body = x'7b7d'",
		"INSERT OR REPLACE INTO bodies SELECT 1, salt, body FROM bodies WHERE seq = 2",
		"PRAGMA foreign_keys = ON; INSERT INTO bodies SELECT 9, salt, body FROM bodies WHERE seq = 2",
	} {
		if _, err := db.Exec(statement); err == nil {
			t.Errorf("succeeds: %s", statement)
		}
	}
	sessiontest.Verify(t, store, 3)
}

func TestTamperingIsFound(t *testing.T) {
	hash := strings.Repeat("ab", 32)
	for _, test := range []struct {
		name, sql string
		seq       uint64
	}{
		{"session", "UPDATE events SET session = 'other' WHERE seq = 4", 4},
		{"session of the first", "UPDATE events SET session = 'other' WHERE seq = 1", 1},
		{"time", "UPDATE events SET time = time + 1 WHERE seq = 4", 4},
		{"type", "UPDATE events SET type = 'turn.ended' WHERE seq = 4", 4},
		{"turn", "UPDATE events SET turn = 2 WHERE seq = 4", 4},
		{"step", "UPDATE events SET step = 9 WHERE seq = 4", 4},
		{"call", "UPDATE events SET call = 'c9' WHERE seq = 4", 4},
		{"digest", "UPDATE events SET digest = x'" + hash + "' WHERE seq = 4", 4},
		{"prev", "UPDATE events SET prev = x'" + hash + "' WHERE seq = 4", 4},
		{"session_prev", "UPDATE events SET session_prev = x'" + hash + "' WHERE seq = 4", 4},
		{"hash", "UPDATE events SET hash = x'" + hash + "' WHERE seq = 4", 4},
		{"body", "UPDATE bodies SET body = CAST('{}' AS BLOB) WHERE seq = 4", 4},
		{"salt", "UPDATE bodies SET salt = zeroblob(16) WHERE seq = 4", 4},
		{"bodies swapped", `UPDATE bodies SET seq = -1 WHERE seq = 4; UPDATE bodies SET seq = 4 WHERE seq = 5;
			UPDATE bodies SET seq = 5 WHERE seq = -1`, 4},
		{"events swapped", `UPDATE events SET seq = -1 WHERE seq = 4; UPDATE events SET seq = 4 WHERE seq = 5;
			UPDATE events SET seq = 5 WHERE seq = -1`, 4},
		{"event removed", "DELETE FROM events WHERE seq = 4", 4},
		{"event removed and the gap closed", `DELETE FROM bodies WHERE seq >= 4; DELETE FROM events WHERE seq = 4;
			UPDATE events SET seq = seq - 1 WHERE seq > 4`, 4},
		{"first event removed", "DELETE FROM events WHERE seq = 1", 1},
		{"session removed", "DELETE FROM events WHERE session = 'b'", 3},
		{"event inserted", `UPDATE events SET seq = -seq WHERE seq >= 4; UPDATE events SET seq = 1 - seq WHERE seq < 0;
			INSERT INTO events SELECT 4, session, time, type, turn, step, call, digest, prev, session_prev, hash FROM events WHERE seq = 3`, 4},
		{"hash too short", "UPDATE events SET hash = x'ab' WHERE seq = 4", 4},
		{"digest too long", "UPDATE events SET digest = x'" + hash + "00' WHERE seq = 4", 4},
		{"seq below the range", "UPDATE events SET seq = -4 WHERE seq = 4", 4},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := newStore(t)
			for range 2 {
				sessiontest.Append(t, store, append(sessiontest.Drafts("a", 2), sessiontest.Drafts("b", 2)...)...)
			}
			sessiontest.Verify(t, store, 8)
			db := rawDB(t, store.path)
			execRaw(t, db, `PRAGMA ignore_check_constraints = ON; PRAGMA foreign_keys = OFF;
				DROP TRIGGER events_no_update; DROP TRIGGER events_no_delete; DROP TRIGGER events_in_order;
				DROP TRIGGER bodies_no_update; DROP TRIGGER bodies_no_replace`)
			execRaw(t, db, test.sql)
			_, err := session.VerifyStore(store.All(t.Context()))
			if e, ok := errors.AsType[*session.ChainError](err); !ok || e.Seq != test.seq {
				t.Errorf("got %v, want a break at event %d", err, test.seq)
			}
			v, err := Verify(t.Context(), store.path, "")
			if e, ok := errors.AsType[*session.ChainError](err); !ok || e.Seq != test.seq || v.Problems == nil {
				t.Errorf("got %v and problems %q, want a break at event %d, and triggers that are missing", err, v.Problems, test.seq)
			}
		})
	}
}

// forgeIndex replaces an index by one over a part of the table: a reader that uses it does
// not see the rest.
func forgeIndex(name, columns, where string) string {
	return `CREATE TABLE original AS SELECT sql FROM sqlite_schema WHERE name = '` + name + `';
		DROP INDEX ` + name + `; CREATE INDEX ` + name + ` ON ` + columns + ` WHERE ` + where + `; PRAGMA writable_schema = ON;
		UPDATE sqlite_schema SET sql = (SELECT sql FROM original) WHERE name = '` + name + `'; DROP TABLE original; PRAGMA writable_schema = RESET`
}

func TestVerifyDoesNotBelieveTheFile(t *testing.T) {
	intended := session.Draft{Session: "a", Type: session.TypeCallIntended, Call: "c1", Body: json.RawMessage(`{"tool":"bash"}`)}
	for _, test := range []struct {
		name, sql string
		problem   string // what the one problem is about; empty: none
		events    uint64 // of session a that are verified all the same
		open      int
	}{
		{"as it was written", "", "", 4, 0},
		{"an index over a part of the table", `DROP INDEX events_session;
			CREATE INDEX events_session ON events (session, seq) WHERE seq NOT IN (4, 5)`, `index "events_session" differs`, 4, 0},
		{"and with the words of the whole one", forgeIndex("events_session", "events (session, seq)", "seq NOT IN (4, 5)"), "integrity check: ", 4, 0},
		{"an index that hides open calls", `DROP TRIGGER events_no_delete; DELETE FROM bodies WHERE seq > 4; DELETE FROM events WHERE seq > 4;
			CREATE TRIGGER events_no_delete BEFORE DELETE ON events
BEGIN SELECT raise(ABORT, 'events are never removed'); END;` + forgeIndex("events_intended", "events (seq)", "type = 'none'"), "integrity check: ", 3, 1},
		{"the end cut off", `DROP TRIGGER events_no_delete; DELETE FROM bodies WHERE seq > 4; DELETE FROM events WHERE seq > 4;
			CREATE TRIGGER events_no_delete BEFORE DELETE ON events
BEGIN SELECT raise(ABORT, 'events are never removed'); END`, "", 3, 1},
		{"a trigger that swallows events", "CREATE TRIGGER swallow BEFORE INSERT ON events BEGIN SELECT raise(IGNORE); END", `trigger "swallow" does not belong`, 4, 0},
		{"a trigger that is missing", "DROP TRIGGER events_no_update", `trigger "events_no_update" is missing`, 4, 0},
		{"a trigger that does nothing", "DROP TRIGGER events_no_update; CREATE TRIGGER events_no_update BEFORE UPDATE ON events BEGIN SELECT 1; END",
			`trigger "events_no_update" differs`, 4, 0},
		{"a view in the place of a table", `PRAGMA legacy_alter_table = ON; ALTER TABLE bodies RENAME TO kept;
			CREATE VIEW bodies AS SELECT * FROM kept`, `view "bodies" does not belong`, 0, 0},
		{"a view that never ends", `PRAGMA legacy_alter_table = ON; ALTER TABLE bodies RENAME TO kept;
			CREATE VIEW bodies AS WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT i AS seq, '' AS salt, '' AS body FROM n`,
			`view "bodies" does not belong`, 0, 0},
		{"a table more", "CREATE TABLE more (x)", `table "more" does not belong`, 4, 0},
		{"a name that moves the cursor", "CREATE TABLE \"m\x1b[2Jore\" (x)", `table "m\x1b[2Jore" does not belong`, 4, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "sessions.db")
			store := openAt(t, path)
			sessiontest.Append(t, store, append(append(sessiontest.Drafts("a", 2), sessiontest.Drafts("b", 1)...), intended,
				session.Draft{Session: "a", Type: session.TypeToolResult, Call: "c1", Body: json.RawMessage(`{}`)})...)
			store.Close()
			db := rawDB(t, path)
			execRaw(t, db, test.sql)
			db.Close()
			before := folder(t, path)
			v, err := Verify(t.Context(), path, "a")
			if err != nil || v.Events != test.events || len(v.OpenCalls) != test.open {
				t.Errorf("got %+v, %v", v, err)
			}
			if test.open > 0 && (v.OpenCalls[0].Session != "a" || v.OpenCalls[0].Call != "c1" || v.OpenCalls[0].Name != "bash" || v.OpenCalls[0].Time.IsZero()) {
				t.Errorf("open is %+v", v.OpenCalls)
			}
			if found := strings.Join(v.Problems, "; "); (found == "") != (test.problem == "") || !strings.Contains(found, test.problem) {
				t.Errorf("problems are %q, want %q", v.Problems, test.problem)
			}
			if diff := cmp.Diff(before, folder(t, path)); diff != "" {
				t.Errorf("the files were changed: %s", diff)
			}
		})
	}
}

// folder returns the names and contents in the folder of a store.
func folder(t testing.TB, path string) map[string]string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		found[filepath.Base(name)] = fmt.Sprintf("%d %x", len(content), sha256.Sum256(content))
	}
	return found
}

func TestVerifyWhereThereIsNothingToRead(t *testing.T) {
	for _, test := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"no file", nil, "nothing was recorded yet, or it was removed"},
		{"an empty file", map[string]string{"": ""}, "it is empty"},
		{"no database", map[string]string{"": strings.Repeat("not a database ", 100)}, "not a session store"},
		{"a log without its index", map[string]string{"": "x", "-wal": strings.Repeat("x", 33)}, "without the file -shm"},
		{"a log without its database", map[string]string{"-wal": "x"}, "nothing was recorded yet, or it was removed"},
	} {
		path := filepath.Join(t.TempDir(), "sessions.db")
		for suffix, content := range test.files {
			if err := os.WriteFile(path+suffix, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		before := folder(t, path)
		_, err := Verify(t.Context(), path, "")
		if _, ok := errors.AsType[*OpenError](err); !ok || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", test.name, err, test.want)
		}
		if diff := cmp.Diff(before, folder(t, path)); diff != "" {
			t.Errorf("%s: the files were changed: %s", test.name, diff)
		}
	}
}

func TestDamagedEndStopsAppending(t *testing.T) {
	store := newStore(t)
	sessiontest.Append(t, store, sessiontest.Drafts("a", 2)...)
	execRaw(t, rawDB(t, store.path), `PRAGMA ignore_check_constraints = ON; DROP TRIGGER events_no_update;
		UPDATE events SET hash = x'00' WHERE seq = 2`)
	_, err := store.Append(t.Context(), sessiontest.Drafts("a", 1)...)
	if err == nil || !strings.Contains(err.Error(), "has 1 bytes instead of 32") {
		t.Errorf("got %v", err)
	}
}

func TestRefusedRequestLeavesItsNeighboursAlone(t *testing.T) {
	store := newStore(t)
	sessiontest.Append(t, store, sessiontest.Drafts("a", 1)...)
	// Drafts that check accepts and the database refuses.
	execRaw(t, rawDB(t, store.path), `CREATE TRIGGER refuse BEFORE INSERT ON bodies WHEN CAST(NEW.body AS TEXT) = '"bad"'
		BEGIN SELECT raise(ABORT, 'refused by the test'); END`)
	bad := session.Draft{Session: "a", Type: session.TypeMessage, Body: json.RawMessage(`"bad"`)}
	group := []*request{
		{drafts: sessiontest.Drafts("a", 2)},
		{drafts: append(sessiontest.Drafts("a", 2), bad)},
		{drafts: append(sessiontest.Drafts("b", 2), bad)},
		{drafts: append(sessiontest.Drafts("a", 1), sessiontest.Drafts("b", 1)...)},
	}
	for _, r := range group {
		r.done, r.preimages = make(chan struct{}), make([][]storedPreimage, len(r.drafts))
	}
	// The queue is filled at once, so that all requests are in one group.
	store.mu.Lock()
	store.queue = append(store.queue, group...)
	store.mu.Unlock()
	store.signal()
	for i, r := range group {
		<-r.done
		if refused := i == 1 || i == 2; (r.err != nil) != refused {
			t.Errorf("request %d: error %v", i+1, r.err)
		}
	}
	sessiontest.Verify(t, store, 5)
	if e := group[3].events; e[0].Seq != 4 || e[1].SessionPrev != [32]byte{} {
		t.Errorf("the last request was placed at %d, behind %x in its session", e[0].Seq, e[1].SessionPrev)
	}
}

func TestGivenUpWhileWaiting(t *testing.T) {
	store := newStore(t)
	sessiontest.Append(t, store, sessiontest.Drafts("a", 1)...)
	db := rawDB(t, store.path)
	execRaw(t, db, "BEGIN IMMEDIATE") // the writer waits for this
	ctx, cancel := context.WithCancelCause(t.Context())
	mine := errors.New("mine")
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := store.Append(ctx, sessiontest.Drafts("a", 1)...); !errors.Is(err, mine) {
			t.Errorf("append: got %v, want the cause", err)
		}
	})
	wg.Go(func() { cancel(mine) })
	wg.Wait()
	sessiontest.Verify(t, store, 1) // a reader does not wait
	execRaw(t, db, "ROLLBACK")
	sessiontest.Append(t, store, sessiontest.Drafts("a", 1)...)
	sessiontest.Verify(t, store, 2)
}

func TestLockedForTooLong(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	store := openAt(t, path)
	store.lockTimeout = time.Nanosecond
	db := rawDB(t, path)
	execRaw(t, db, "BEGIN IMMEDIATE")
	if _, err := store.Append(t.Context(), sessiontest.Drafts("a", 1)...); !errors.Is(err, errLocked) {
		t.Errorf("got %v, want %v", err, errLocked)
	}
	execRaw(t, db, "ROLLBACK")
	sessiontest.Append(t, store, sessiontest.Drafts("a", 1)...)
	sessiontest.Verify(t, store, 1)
}

func TestCloseWritesWhatIsWaiting(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	store, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	written := 0
	for i := range 20 {
		wg.Go(func() {
			_, err := store.Append(t.Context(), sessiontest.Drafts(fmt.Sprint(i), 1)...)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				written++
			} else if !errors.Is(err, fs.ErrClosed) {
				t.Errorf("append: %v", err)
			}
		})
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
	if _, err := os.Stat(path + "-wal"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the log is still there: %v", err)
	}
	sessiontest.Verify(t, openAt(t, path), written)
}

func TestReadersSayThatTheStoreIsClosed(t *testing.T) {
	store := newStore(t)
	store.Close()
	if _, err := store.Sessions(t.Context()); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("got %v, want fs.ErrClosed", err)
	}
}

func TestBodyTooLarge(t *testing.T) {
	store := newStore(t)
	body := bytes.Repeat([]byte{' '}, maxBodyBytes+1)
	body[0] = '1'
	draft := session.Draft{Session: "a", Type: session.TypeMessage, Body: body}
	if _, err := store.Append(t.Context(), draft); err == nil || !strings.Contains(err.Error(), "the limit is 67108864") {
		t.Errorf("got %v", err)
	}
	draft.Body = body[:maxBodyBytes]
	sessiontest.Append(t, store, draft)
	sessiontest.Verify(t, store, 1)
}

func TestClockRunsBackwards(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 999, time.FixedZone("", 3600))
	store := newStore(t)
	store.now = func() time.Time {
		now = now.Add(-time.Hour)
		return now
	}
	events := sessiontest.Append(t, store, sessiontest.Drafts("old", 2)...)
	if want := time.Date(2026, 3, 1, 10, 0, 0, 999, time.UTC); events[0].Time != want {
		t.Errorf("time is %v, want %v", events[0].Time, want)
	}
	sessiontest.Append(t, store, sessiontest.Drafts("new", 1)...)
	sessiontest.Verify(t, store, 3)
	if id, err := store.Resolve(t.Context(), "last"); id != "new" || err != nil {
		t.Errorf("last is %q, %v", id, err)
	}
	if infos, err := store.Sessions(t.Context()); err != nil || infos[0].ID != "new" || !infos[1].Last.Before(infos[1].Started) {
		t.Errorf("sessions are %v, %v", infos, err)
	}
}

func TestDeletedBodiesLeaveNoTrace(t *testing.T) {
	store := newStore(t)
	secret := func(i int) string { return fmt.Sprintf("hunter2-%d-", i) }
	for i := range 40 {
		id := []string{"forget", "keep"}[i%2]
		// From a part of one page to several overflow pages.
		body, err := json.Marshal(strings.Repeat(secret(i%2), 1+i*i))
		if err != nil {
			t.Fatal(err)
		}
		image := fmt.Append(nil, secret(i%2), i) // too short to be compressed
		sessiontest.Append(t, store, session.Draft{Session: id, Type: session.TypeMessage, Body: body, Preimages: [][]byte{image}})
	}
	if err := store.DeleteBodies(t.Context(), "forget"); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(store.path + "*")
	if err != nil || len(files) < 2 {
		t.Fatalf("files %v, %v", files, err)
	}
	kept := 0
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(content, []byte(secret(0))); n != 0 {
			t.Errorf("%s holds the secret %d times", filepath.Base(file), n)
		}
		kept += bytes.Count(content, []byte(secret(1)))
	}
	if kept == 0 {
		t.Error("the other session's bodies are not found either: the test looks in the wrong place")
	}
	sessiontest.Verify(t, store, 40)
}

func TestFullDatabase(t *testing.T) {
	store := newStore(t)
	sessiontest.Append(t, store, sessiontest.Drafts("a", 5)...)
	// The writer is idle: the test can use its connection until the next request.
	var pages int
	if err := store.pragma(t.Context(), "page_count", &pages); err != nil {
		t.Fatal(err)
	}
	limit := func(n int) {
		if err := store.pragma(t.Context(), fmt.Sprintf("max_page_count = %d", n), &n); err != nil {
			t.Fatal(err)
		}
	}
	limit(pages + 4)
	large := json.RawMessage(`"` + strings.Repeat("x", 10_000) + `"`)
	written := 5
	for {
		_, err := store.Append(t.Context(), session.Draft{Session: "a", Type: session.TypeMessage, Body: large})
		if err != nil {
			if code(err) != codeFull {
				t.Errorf("got %v, want that the database is full", err)
			}
			break
		}
		if written++; written > 50 {
			t.Fatal("the database does not become full")
		}
	}
	sessiontest.Verify(t, store, written)
	limit(1 << 30)
	sessiontest.Append(t, store, session.Draft{Session: "a", Type: session.TypeMessage, Body: large})
	sessiontest.Verify(t, store, written+1)
	checkIntegrity(t, store.path)
}

func TestLostConnectionIsReplaced(t *testing.T) {
	store := newStore(t)
	sessiontest.Append(t, store, sessiontest.Drafts("a", 1)...)
	store.disconnect() // as after an error; the writer is idle
	sessiontest.Append(t, store, sessiontest.Drafts("a", 1)...)
	sessiontest.Verify(t, store, 2)
}

func BenchmarkOpen(b *testing.B) {
	path := filepath.Join(b.TempDir(), "sessions.db")
	store := openAt(b, path)
	sessiontest.Append(b, store, sessiontest.Drafts("a", 100)...)
	store.Close()
	for b.Loop() {
		store, err := Open(b.Context(), path)
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		store.Close()
		b.StartTimer()
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, appenders := range []int{1, 8} {
		b.Run(fmt.Sprint(appenders), func(b *testing.B) {
			store := newStore(b)
			body := json.RawMessage(`{"kind":"assistant","content":"` + strings.Repeat("word ", 100) + `"}`)
			b.ResetTimer()
			var wg sync.WaitGroup
			for w := range appenders {
				wg.Go(func() {
					d := session.Draft{Session: fmt.Sprint(w), Type: session.TypeMessage, Turn: 1, Body: body}
					for range b.N / appenders {
						if _, err := store.Append(b.Context(), d); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
		})
	}
}

func BenchmarkVerify(b *testing.B) {
	store := newStore(b)
	const events = 10_000
	for range events / 100 {
		sessiontest.Append(b, store, sessiontest.Drafts("a", 100)...)
	}
	for b.Loop() {
		sessiontest.Verify(b, store, events)
	}
	b.ReportMetric(float64(b.N)*events/b.Elapsed().Seconds(), "events/s")
}

func BenchmarkSessions(b *testing.B) {
	store := newStore(b)
	for i := range 100 {
		sessiontest.Append(b, store, sessiontest.Drafts(fmt.Sprint(i), 1000)...)
	}
	for b.Loop() {
		if infos, err := store.Sessions(b.Context()); err != nil || len(infos) != 100 {
			b.Fatal(len(infos), err)
		}
	}
}
