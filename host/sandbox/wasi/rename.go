package wasi

import (
	"errors"
	"io/fs"
)

// renameChecked is renameNew in two steps.
func renameChecked(from, to spot) error {
	if _, err := to.dir.root.Lstat(to.name); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(fs.ErrExist, err)
	}
	return renameBetween(from.dir.root, from.name, to.dir.root, to.name)
}
