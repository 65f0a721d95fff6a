package wasi

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// renameNew gives something a name that nothing has. Neither name is followed.
func renameNew(from, to spot) error {
	err := renameat2(from, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, errors.ErrUnsupported) {
		return renameChecked(from, to)
	}
	return err
}

// exchange exchanges what has two names, in one step.
func exchange(from, to spot) error { return renameat2(from, to, unix.RENAME_EXCHANGE) }

func renameat2(from, to spot, flags uint) error {
	err := from.dir.with(func(old *os.File) error {
		return to.dir.with(func(new *os.File) error {
			return onFd(old, func(oldFd int) error {
				return onFd(new, func(newFd int) error {
					return unix.Renameat2(oldFd, from.name, newFd, to.name, flags)
				})
			})
		})
	})
	// What the file system says that has no such flag.
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return errors.ErrUnsupported
	}
	return err
}
