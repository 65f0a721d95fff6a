package rootedfs

import (
	"errors"

	"golang.org/x/sys/unix"
)

// RenameNoReplace renames a file to a name that must be free. It follows no link. On some file
// systems it looks first, and then replaces a file that takes the name meanwhile.
func RenameNoReplace(from Root, oldName string, to Root, newName string) error {
	err := renameat2(from, oldName, to, newName, unix.RENAME_NOREPLACE)
	if errors.Is(err, errors.ErrUnsupported) {
		return renameChecked(from, oldName, to, newName)
	}
	return err
}

// Exchange exchanges two names in one step. On some hosts it is [errors.ErrUnsupported].
func Exchange(a Root, aName string, b Root, bName string) error {
	return renameat2(a, aName, b, bName, unix.RENAME_EXCHANGE)
}

func renameat2(from Root, oldName string, to Root, newName string, flags uint) error {
	err := onBoth(from, to, func(oldFd, newFd int) error {
		return unix.Renameat2(oldFd, oldName, newFd, newName, flags)
	})
	// These are the errors of file systems and kernels without the flag.
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return errors.ErrUnsupported
	}
	return err
}
