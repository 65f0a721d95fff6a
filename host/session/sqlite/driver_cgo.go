//go:build cgo

package sqlite

import (
	"database/sql/driver"
	"errors"
	"syscall"

	"github.com/mattn/go-sqlite3"
)

func openDriver(dsn string) (driver.Conn, error) {
	return new(sqlite3.SQLiteDriver).Open(dsn)
}

// code returns SQLite's primary result code of an error, 0 for any other error.
func code(err error) int {
	if e, ok := errors.AsType[sqlite3.Error](err); ok {
		return int(e.Code)
	}
	return 0
}

// isFull reports whether the disk is full, or the user's quota exceeded.
func isFull(err error) bool {
	e, ok := errors.AsType[sqlite3.Error](err)
	return ok && (e.Code == codeFull || e.SystemErrno == syscall.ENOSPC || e.SystemErrno == syscall.EDQUOT)
}

// inTransaction reports whether a driver's connection is in a transaction. SQLite ends a
// transaction by itself after some errors.
func inTransaction(conn any) bool {
	c, ok := conn.(*sqlite3.SQLiteConn)
	return ok && !c.AutoCommit()
}
