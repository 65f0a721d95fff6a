//go:build !linux

package sqlite

import (
	"errors"
	"os"
)

const noFollow = 0

func allocate(*os.File, int64, int64, bool) error { return errors.ErrUnsupported }

// freeBytes returns 0, so that there is no reserve on this system.
func freeBytes(string) int64 { return 0 }

func makeReserve(string, int64) error { return errors.ErrUnsupported }
