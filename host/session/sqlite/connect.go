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

// SQLite's primary result codes that are told apart here.
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

// connector opens connections of one kind. It stands in for a registered
// driver and a DSN, so that nothing is registered globally.
type connector struct {
	dsn string
}

// connParams is what a connection may do, in parameters of SQLite and of the driver.
type connParams map[string]string

// None creates: the file was created with the right mode before. A reader still
// writes to the memory that all processes share.
var (
	writerParams = connParams{"mode": "rw", "_txlock": "immediate"}
	readerParams = connParams{"mode": "rw", "_txlock": "deferred", "_query_only": "on"}
)

// newConnector returns the connector for the database at an absolute path.
func newConnector(path string, may connParams, busy time.Duration) connector {
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // a drive letter
	}
	params := url.Values{
		"_busy_timeout":    {fmt.Sprint(busy.Milliseconds())},
		"_foreign_keys":    {"on"},
		"_secure_delete":   {"on"},
		"_synchronous":     {"FULL"},
		"_stmt_cache_size": {"32"},
	}
	for name, value := range may {
		params.Set(name, value)
	}
	// A path may hold '?' and '#', which only escaping keeps apart from the
	// parameters.
	dsn := url.URL{Scheme: "file", Path: slashed, RawQuery: params.Encode()}
	return connector{dsn.String()}
}

// Connect opens a connection.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := openDriver(c.dsn)
	if err != nil {
		return nil, err
	}
	// temp_store: rolled back pages may hold bodies, which belong into no
	// temporary file. trusted_schema and cell_size_check: the file may have
	// been tampered with. journal_size_limit: one large body must not leave a
	// large log behind for ever.
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

// isBusy reports whether another connection was in the way, so that trying
// again helps.
func isBusy(err error) bool {
	switch code(err) {
	case codeBusy, codeLocked, codeProtocol:
		return true
	}
	return errors.Is(err, errReading)
}

// errLocked is put before SQLite's own words when waiting has not helped.
var errLocked = errors.New("another process has kept the store locked")

// retryWhileBusy calls f until it fails with something else than a lock held by
// another connection, or limit has passed. SQLite's own waiting is left short:
// its pauses grow to a tenth of a second, and with many processes the one
// that has waited longest would be served last. Pauses of random length let
// each have its turn.
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
