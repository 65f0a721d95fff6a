package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stockade-dev/stockade/host/session"
)

// Verification is the result of [Verify].
type Verification struct {
	session.Report
	Session  string   // id of the verified session; empty: the whole store was verified
	Problems []string // errors in the file itself; there can be some even if the chain holds
}

// Limits of a verification.
const (
	maxProblems     = 20  // elements of Problems; one more, "there is more", stands for all others
	maxProblemRunes = 300 // characters of a problem, after which it is cut
	maxVerifyTries  = 10  // attempts to verify while other processes change the files; then Verify fails
)

// Verify checks the store in the file at path: its schema, the file by SQLite's own check, and
// every event. If prefix is not empty, it checks only the events of the session that prefix names,
// as for [Store.Resolve]. The error is a [session.ChainError] if an event differs from the written
// one. Problems of the file are no error, but in the result. After problems of the schema, or with
// a file -journal beside it, SQLite does not check the file. After problems of the tables, the
// events are not checked.
//
// Nothing is created, changed or repaired, not even beside the file. Indexes are not trusted,
// because one that leaves out events would hide them. Other processes may write meanwhile; Verify
// checks one state of the store. See RATIONALE, "Why does verifying not open the store like
// everything else?"
func Verify(ctx context.Context, path, prefix string) (Verification, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return Verification{}, fmt.Errorf("verify session store: %w", err)
	}
	if err := checkFolder(path, filepath.Dir(path)); err != nil {
		return Verification{}, noStore(path, err)
	}
	var v Verification
	for range maxVerifyTries {
		if err := errors.Join(checkFile(path, path), checkBeside(path)); err != nil {
			return Verification{}, noStore(path, err)
		}
		before := fileStateOf(path)
		v, err = verify(ctx, path, prefix, before)
		after := fileStateOf(path)
		switch {
		case context.Cause(ctx) != nil:
			return Verification{}, readError(ctx, "events", context.Cause(ctx))
		case before.hasLog() && (err == nil || after.index >= 0), before == after && !before.hasLog():
			return v, err
		case !before.hasLog(): // a process began to write, because the reading takes no lock
			err = &OpenError{Path: path, Problem: "other processes open and close it all the time", Hint: "try again later"}
		}
		// Else the last process that has the file open may be about to remove the log and
		// the index.
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return Verification{}, err
}

func noStore(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return &OpenError{Path: path, Problem: "there is none: nothing was recorded yet, or it was removed"}
	}
	return err
}

// fileState describes the files of a store by their sizes in bytes; -1: there is no such file.
type fileState struct {
	size, modified      int64 // size of the database, and time of its last change in nanoseconds since 1970
	log, index, journal int64
}

func fileStateOf(path string) fileState {
	size := func(suffix string) int64 {
		info, err := os.Lstat(path + suffix)
		if err != nil {
			return -1
		}
		return info.Size()
	}
	s := fileState{size: size(""), log: size("-wal"), index: size("-shm"), journal: size("-journal")}
	if info, err := os.Lstat(path); err == nil {
		s.modified = info.ModTime().UnixNano()
	}
	return s
}

// hasLog reports whether the write-ahead log may hold events: it is larger than its header.
func (s fileState) hasLog() bool { return s.log > 32 }

// verify verifies the store once. files is the state of the files before the call.
func verify(ctx context.Context, path, prefix string, files fileState) (v Verification, err error) {
	if files.hasLog() && files.index < 0 {
		return v, &OpenError{
			Path: path, Problem: "it has a write-ahead log without the file -shm that belongs to it",
			Hint: fmt.Sprintf("an empty one is enough to read it: touch %s-shm", path),
		}
	}
	// Without a log nothing is shared with others, and SQLite needs no other file. With a
	// log it reads the index that another process keeps, or makes its own in memory.
	params := connParams{"mode": "ro", "immutable": "1"}
	if files.hasLog() {
		params = connParams{"mode": "ro", "readonly_shm": "1"}
	}
	db := sql.OpenDB(newConnector(path, params, busyTimeout))
	defer func() { err = errors.Join(err, db.Close()) }()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return v, openError(path, err)
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }()

	version, err := readVersion(ctx, tx, path)
	if err != nil {
		return v, openError(path, err)
	}
	if version == 0 {
		return v, &OpenError{Path: path, Problem: "it is empty: nothing was recorded yet, or all of it was removed"}
	}
	if files.journal >= 0 {
		v.problem("%s-journal is beside it, a file that the program never leaves: SQLite may undo events with it", filepath.Base(path))
	}
	tables, err := v.checkSchema(ctx, tx, version)
	if err != nil {
		return v, openError(path, err)
	}
	if len(v.Problems) == 0 { // a foreign schema could make this check endless
		if err := v.checkFile(ctx, tx); err != nil {
			return v, openError(path, err)
		}
	}
	if !tables {
		return v, nil
	}
	r := reader{tx, "NOT INDEXED"}
	events, verify := r.all(ctx), session.VerifyStore
	if prefix != "" {
		if v.Session, err = r.resolve(ctx, prefix); err != nil {
			return v, fmt.Errorf("session %q: %w", prefix, err)
		}
		events, verify = r.session(ctx, v.Session, 0), session.VerifySession
	}
	v.Report, err = verify(events)
	return v, err
}

// problem adds a problem to v.Problems, cut after maxProblemRunes, unless there are too many.
func (v *Verification) problem(format string, args ...any) {
	text := strings.ToValidUTF8(fmt.Sprintf(format, args...), "\uFFFD")
	switch n := len(v.Problems); {
	case n < maxProblems:
		v.Problems = append(v.Problems, fmt.Sprintf("%.*s", maxProblemRunes, text))
	case n == maxProblems:
		v.Problems = append(v.Problems, "there is more")
	}
}

// checkFile runs SQLite's integrity_check: of each page, of each row against the constraints of
// its table, and of each index against the rows. What it finds is added to v.Problems and is no
// error.
func (v *Verification) checkFile(ctx context.Context, q querier) error {
	return each(ctx, q, fmt.Sprintf("PRAGMA integrity_check(%d)", maxProblems), func(rows *sql.Rows) error {
		var line string
		err := rows.Scan(&line)
		if err == nil && line != "ok" {
			v.problem("integrity check: %s", line)
		}
		return err
	})
}

// object is a table, index, trigger or view.
type object struct{ kind, name, table, sql string }

// objects returns how often each object occurs in the schema of a database: once, unless somebody
// has changed the schema by hand. It reads at most 1000 rows.
func objects(ctx context.Context, q querier) (map[object]int, error) {
	found := map[object]int{}
	return found, each(ctx, q, "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema LIMIT 1000", func(rows *sql.Rows) error {
		var o object
		err := rows.Scan(&o.kind, &o.name, &o.table, &o.sql)
		found[o]++
		return err
	})
}

// checkSchema compares the schema of the file with the program's. Differences are added to
// v.Problems. It reports whether at least the tables are those of the program.
func (v *Verification) checkSchema(ctx context.Context, q querier, version int) (tables bool, err error) {
	memory := sql.OpenDB(connector{":memory:"})
	memory.SetMaxOpenConns(1) // each connection would have its own database
	defer func() { err = errors.Join(err, memory.Close()) }()
	for n := range version {
		statements, err := migration(n + 1)
		if err != nil {
			return false, err
		}
		if _, err := memory.ExecContext(ctx, statements); err != nil {
			return false, err
		}
	}
	want, err := objects(ctx, memory)
	if err != nil {
		return false, err
	}
	found, err := objects(ctx, q)
	if err != nil {
		return false, err
	}
	type name struct{ kind, name string }
	wanted, present := map[name]bool{}, map[name]bool{}
	for o := range want {
		wanted[name{o.kind, o.name}] = true
	}
	for o, n := range found {
		this := name{o.kind, o.name}
		present[this] = true
		switch {
		case !wanted[this]:
			v.problem("%s %.80q does not belong to the program", o.kind, o.name)
		case n != want[o]:
			v.problem("%s %.80q differs from the program's", o.kind, o.name)
		}
	}
	tables = len(want) > 0
	for o := range want {
		if this := (name{o.kind, o.name}); !present[this] {
			v.problem("%s %q is missing", o.kind, o.name)
		}
		tables = tables && (o.kind != "table" || found[o] == 1)
	}
	slices.Sort(v.Problems)
	return tables, nil
}
