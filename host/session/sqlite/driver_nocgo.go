//go:build !cgo

package sqlite

import (
	"database/sql/driver"
	"errors"
)

func openDriver(string) (driver.Conn, error) {
	return nil, errors.New("this program was built without cgo, which SQLite needs")
}

func code(error) int { return 0 }

func isFull(error) bool { return false }

func inTransaction(any) bool { return false }
