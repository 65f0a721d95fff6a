//go:build !linux

package beneath

import "errors"

// RenameNew gives something a name that nothing has. Neither name is followed.
func RenameNew(from Root, oldName string, to Root, newName string) error {
	return renameChecked(from, oldName, to, newName)
}

// Exchange is not done in one step here.
func Exchange(Root, string, Root, string) error { return errors.ErrUnsupported }
