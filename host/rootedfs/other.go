//go:build !linux

package rootedfs

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

func openRoot(name string) (Root, error) { return openOSRoot(name) }

// device is empty: on this system only names are hidden, and no file systems.
type device struct{}

func (device) RefuseKernelFile(*os.File, os.FileInfo) error { return nil }

func (*osRoot) refuseKernelDir(os.FileInfo) error { return nil }

// RenameNoReplace gives a file a name that must be free. Neither name is followed.
func RenameNoReplace(from Root, oldName string, to Root, newName string) error {
	return renameChecked(from, oldName, to, newName)
}

// Exchange is not supported here.
func Exchange(Root, string, Root, string) error { return errors.ErrUnsupported }

// clone is not supported here.
func clone(_, _ *os.File) bool { return false }

// extent returns all of a file, as if it had no holes.
func extent(_ *os.File, off, size int64) (from, to int64) { return off, size }

// SetLinkTimes is not supported: there is no safe way to set the times of a symbolic link
// here.
func SetLinkTimes(Root, string, int64, int64) error { return syscall.ENOTSUP }

// OpenForAttrs always fails: a file that may not be opened cannot be changed here.
func OpenForAttrs(Root, string) (*os.File, error) { return nil, fs.ErrPermission }

// HoldsMountPoint always returns false: mounts are not known here. If a bind mount inside a
// mount shows files of a masked path, they are not hidden on this system.
func HoldsMountPoint(string) bool { return false }
