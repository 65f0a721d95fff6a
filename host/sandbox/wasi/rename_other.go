//go:build !linux

package wasi

import "errors"

// renameNew gives something a name that nothing has. Neither name is followed.
func renameNew(from, to spot) error { return renameChecked(from, to) }

// exchange is not done in one step here.
func exchange(from, to spot) error { return errors.ErrUnsupported }
