//go:build cgo

package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/mattn/go-sqlite3"
)

// TestWhereFilesCannotBeLockedIsSaid checks SQLite's different errors for this case.
func TestWhereFilesCannotBeLockedIsSaid(t *testing.T) {
	for err, want := range map[error]bool{
		sqlite3.Error{Code: sqlite3.ErrBusy}:                               true,
		sqlite3.Error{Code: sqlite3.ErrLocked}:                             true,
		sqlite3.Error{Code: sqlite3.ErrProtocol}:                           true,
		sqlite3.Error{Code: sqlite3.ErrIoErr, SystemErrno: syscall.ENOLCK}: true,
		sqlite3.Error{Code: sqlite3.ErrNoLFS}:                              true,
		sqlite3.Error{Code: sqlite3.ErrIoErr, SystemErrno: syscall.ENOSPC}: false,
		sqlite3.Error{Code: sqlite3.ErrFull}:                               false,
		sqlite3.Error{Code: sqlite3.ErrReadonly}:                           false,
		fs.ErrPermission:                                                   false,
	} {
		opened, ok := errors.AsType[*OpenError](openError("sessions.db", fmt.Errorf("for 10s: %w", err)))
		if !ok || strings.Contains(opened.Hint, "XDG_DATA_HOME") != want {
			t.Errorf("%v: %+v", err, opened)
		}
	}
}
