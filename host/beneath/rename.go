package beneath

import (
	"errors"
	"io/fs"
)

// renameChecked is RenameNew in two steps.
func renameChecked(from Root, oldName string, to Root, newName string) error {
	if _, err := to.Lstat(newName); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(fs.ErrExist, err)
	}
	return RenameBetween(from, oldName, to, newName)
}
