//go:build unix && cgo

package undo_test

import (
	"testing"

	"golang.org/x/sys/unix"
)

func mkfifo(t testing.TB, name string) { must(t, unix.Mkfifo(name, 0o600)) }
