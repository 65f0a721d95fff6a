package wasi

import (
	"errors"
	"io/fs"
	"runtime"
)

// renameChecked is renameNew in two steps.
func renameChecked(from, to spot) error {
	if _, err := to.dir.root.Lstat(to.name); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(fs.ErrExist, err)
	}
	return renameBetween(from.dir.root, from.name, to.dir.root, to.name)
}

// sync makes the names in a directory durable.
func (h *handle) sync() error {
	if runtime.GOOS == "windows" {
		return nil // there is no such thing
	}
	return h.file.Sync()
}
