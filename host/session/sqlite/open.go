package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"time"

	"github.com/stockade-dev/stockade/host/session"
)

// busyTimeout limits the time that a request waits for other processes that lock the store.
const busyTimeout = 10 * time.Second

// applicationID marks the file as a session store of this program: "Stkd".
const applicationID = 0x53746b64

// migrations holds the statements from each version of the schema to the next. The number in a
// name is the user_version after it. A released file is never edited.
//
//go:embed migrations/*.sql
var migrations embed.FS

// schemaVersion is the number of the last migration.
const schemaVersion = 2

// Open opens the store in the file at path. It creates the file and the folders above it if they
// are missing. The caller must close the store.
//
// If a newer version of the program has written the store, the error wraps [session.ErrNewer].
// Every error about the file is an *[OpenError]. Open reads only a few pages;
// [session.VerifyStore] reads everything.
func Open(ctx context.Context, path string) (*Store, error) {
	if path == "" {
		return nil, errors.New("open session store: path is empty")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open session store: %w", err)
	}
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("open session store %s: %w", path, err)
	}
	if err := prepare(path); err != nil {
		return nil, err
	}

	s := &Store{
		path:        path,
		now:         time.Now,
		lockTimeout: busyTimeout,
		writers:     sql.OpenDB(newConnector(path, writerParams, 20*time.Millisecond)),
		readers:     sql.OpenDB(newConnector(path, readerParams, busyTimeout)), // connects at its first use
		wake:        make(chan struct{}, 1),
		ended:       make(chan struct{}),

		preimagesLimit: preimagesBudget,
		preimageBytes:  rand.N(int64(preimagesBudget / 32)), // so that of many short processes one counts the images
	}
	// Reads come and go, and each page uses its connection only for a moment.
	s.readers.SetMaxIdleConns(2)
	if err := s.begin(ctx); err != nil {
		s.disconnect()
		return nil, errors.Join(err, s.writers.Close(), s.readers.Close())
	}
	go s.runWriter()
	return s, nil
}

// begin connects the writer and migrates the file to the current schema.
func (s *Store) begin(ctx context.Context) error {
	err := s.retryWithReserve(func() error {
		err := retryWhileBusy(ctx, s.lockTimeout, func() error { return s.connect(ctx) })
		if err == nil {
			err = s.migrate(ctx)
		}
		return err
	})
	return openError(s.path, err)
}

// openError turns an error, except an [OpenError], into an OpenError, with an explanation if there
// is one. Nil stays nil.
func openError(path string, err error) error {
	problem := map[int]string{codeNotADB: "it is not a session store, or its beginning is damaged", codeCorrupt: "it is damaged"}[code(err)]
	if problem != "" {
		return &OpenError{Path: path, Problem: problem, Hint: "restore it from a copy, or move it away to begin a new store", Err: err}
	}
	if _, done := errors.AsType[*OpenError](err); err != nil && !done {
		e := &OpenError{Path: path, Err: err}
		if slices.Contains([]int{codeBusy, codeLocked, codeIO, codeProtocol, codeNoLFS}, code(err)) && !isFull(err) {
			e.Hint = "if no other stockade has it open, files cannot be locked there, as on some network file systems, or the disk fails: " + localDiskHint
		}
		return e
	}
	return err
}

// localDiskHint is the hint for a file system on which the store does not work.
const localDiskHint = "keep the store on a disk of this machine: set XDG_DATA_HOME to a directory there"

// pragma reads a setting of the writer's connection; it sets a name that ends with "= value".
func (s *Store) pragma(ctx context.Context, name string, value any) error {
	return s.conn.QueryRowContext(ctx, "PRAGMA "+name).Scan(value)
}

// version reads the version of the schema. It returns an error for a file of another program or of
// a newer version. An empty file has version 0.
func (s *Store) version(ctx context.Context) (version int, err error) {
	// The process that creates the store locks the file for a while.
	err = retryWhileBusy(ctx, s.lockTimeout, func() error {
		version, err = readVersion(ctx, s.conn, s.path)
		var foreign *OpenError
		if errors.As(err, &foreign) && foreign.Err == nil {
			// Another process may have created the schema between two of the reads.
			version, err = readVersion(ctx, s.conn, s.path)
		}
		return err
	})
	return version, err
}

func readVersion(ctx context.Context, q querier, path string) (int, error) {
	var id, version, tables int
	if err := q.QueryRowContext(ctx, "PRAGMA application_id").Scan(&id); err != nil {
		return 0, err
	}
	if err := q.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return 0, err
	}
	switch {
	case id == applicationID && version > schemaVersion:
		return 0, &OpenError{
			Path: path, Problem: fmt.Sprintf("it has version %d and this program knows %d", version, schemaVersion),
			Hint: "update stockade", Err: session.ErrNewer,
		}
	case id == applicationID && version > 0:
		return version, nil
	}
	if err := q.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
		return 0, err
	}
	if id != 0 || version != 0 || tables != 0 {
		return 0, &OpenError{Path: path, Problem: "it is a database of another program", Hint: "name another file"}
	}
	return 0, nil
}

// migrate brings the file to the current version in one transaction, so that a crash leaves either
// the old version or the new one.
func (s *Store) migrate(ctx context.Context) error {
	version, err := s.version(ctx)
	if err != nil {
		return err
	}
	var mode string
	if err := retryWhileBusy(ctx, s.lockTimeout, func() error { return s.pragma(ctx, "journal_mode", &mode) }); err != nil {
		return err
	}
	if mode != "wal" {
		if version == 0 {
			// The empty file needs no journal on disk, which would take three flushes.
			if err := retryWhileBusy(ctx, s.lockTimeout, func() error { return s.pragma(ctx, "journal_mode = MEMORY", &mode) }); err != nil {
				return err
			}
		}
		// This needs exclusive access to the file, for which SQLite itself does not wait.
		err := retryWhileBusy(ctx, s.lockTimeout, func() error { return s.pragma(ctx, "journal_mode = WAL", &mode) })
		if err != nil {
			return err
		}
		if mode != "wal" {
			return &OpenError{
				Path: s.path, Problem: fmt.Sprintf("it cannot have a write-ahead log (journal mode %s)", mode),
				Hint: localDiskHint,
			}
		}
	}
	if version == schemaVersion {
		return nil
	}
	if err := retryWhileBusy(ctx, s.lockTimeout, func() error { return s.exec(ctx, "BEGIN IMMEDIATE") }); err != nil {
		return err
	}
	defer s.rollback() // does nothing after the commit
	// Another process may have migrated the file meanwhile.
	if version, err = s.version(ctx); err != nil {
		return err
	}
	for v := version + 1; v <= schemaVersion; v++ {
		statements, err := migration(v)
		if err != nil {
			return err
		}
		if err := s.exec(ctx, statements); err != nil {
			return fmt.Errorf("bring the store to version %d: %w", v, err)
		}
	}
	marks := fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, schemaVersion)
	if err := s.exec(ctx, marks); err != nil {
		return err
	}
	return retryWhileBusy(ctx, s.lockTimeout, func() error { return s.exec(ctx, "COMMIT") })
}

// migration returns the statements that lead from the preceding version to the given version.
func migration(version int) (string, error) {
	statements, err := migrations.ReadFile(fmt.Sprintf("migrations/%04d.sql", version))
	return string(statements), err
}
