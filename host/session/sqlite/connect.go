package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"strings"
	"time"
)

// SQLite's primary result codes that this package distinguishes.
const (
	codeBusy       = 5
	codeLocked     = 6
	codeIO         = 10
	codeCorrupt    = 11
	codeFull       = 13
	codeProtocol   = 15
	codeConstraint = 19
	codeNoLFS      = 22
	codeNotADB     = 26
)

// connector opens connections with fixed parameters. With it this package needs no registered
// driver.
type connector struct {
	dsn string
}

// connParams holds parameters of a connection, for SQLite and the driver.
type connParams map[string]string

// The parameters of the writer and of the readers. Neither may create the file, which already
// exists with the right mode. Readers are rw because they write to shared memory.
var (
	writerParams = connParams{"mode": "rw", "_txlock": "immediate"}
	readerParams = connParams{"mode": "rw", "_txlock": "deferred", "_query_only": "on"}
)

// newConnector returns the connector for an absolute path. busy limits SQLite's wait for locks.
func newConnector(path string, params connParams, busy time.Duration) connector {
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // the path begins with a drive letter
	}
	query := url.Values{
		"_busy_timeout":    {fmt.Sprint(busy.Milliseconds())},
		"_foreign_keys":    {"on"},
		"_secure_delete":   {"on"},
		"_synchronous":     {"FULL"},
		"_stmt_cache_size": {"32"},
	}
	for name, value := range params {
		query.Set(name, value)
	}
	// The path is escaped, because it may have '?' and '#'.
	dsn := url.URL{Scheme: "file", Path: slashed, RawQuery: query.Encode()}
	return connector{dsn.String()}
}

// Connect opens a connection.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := openDriver(c.dsn)
	if err != nil {
		return nil, err
	}
	// temp_store: rolled back pages may hold bodies, which must not get into a temporary
	// file. trusted_schema and cell_size_check: somebody may have changed the file.
	// journal_size_limit: after one large body, the log must not stay large.
	const pragmas = `PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF;
		PRAGMA cell_size_check = ON; PRAGMA journal_size_limit = 16777216`
	if _, err := conn.(driver.ExecerContext).ExecContext(ctx, pragmas, nil); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// Driver returns the driver of the connector.
func (c connector) Driver() driver.Driver { return unnamedDriver{} }

type unnamedDriver struct{}

func (unnamedDriver) Open(dsn string) (driver.Conn, error) { return openDriver(dsn) }

// isBusy reports whether an error is due to a lock of another connection, and a retry may help.
func isBusy(err error) bool {
	switch code(err) {
	case codeBusy, codeLocked, codeProtocol:
		return true
	}
	return errors.Is(err, errReading)
}

// errLocked is returned with SQLite's error when the wait for a lock takes too long.
var errLocked = errors.New("another process has kept the store locked")

// retryWhileBusy calls f until it succeeds, fails with an error that is not due to a lock of
// another connection, or ctx ends. If limit has passed before, the error wraps errLocked. SQLite's
// own waiting is kept short: its pauses grow to a tenth of a second, and with many processes the
// one that has waited longest would come last. Random pauses give each process its turn.
func retryWhileBusy(ctx context.Context, limit time.Duration, f func() error) error {
	start := time.Now()
	for {
		err := f()
		if err == nil || !isBusy(err) {
			return err
		}
		if waited := time.Since(start); waited >= limit {
			return fmt.Errorf("%w for %v: %w", errLocked, waited.Round(time.Millisecond), err)
		}
		pause := time.NewTimer(rand.N(2 * time.Millisecond))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return context.Cause(ctx)
		}
	}
}
