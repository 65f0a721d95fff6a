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

// RenameNoReplace renames a file to a name that must be free. It follows no link. It looks
// first, and then replaces a file that takes the name meanwhile.
func RenameNoReplace(from Root, oldName string, to Root, newName string) error {
	return renameChecked(from, oldName, to, newName)
}

// Exchange is not supported on this system.
func Exchange(Root, string, Root, string) error { return errors.ErrUnsupported }

func clone(_, _ *os.File) bool { return false }

// extent returns off and size, as if the file had no holes.
func extent(_ *os.File, off, size int64) (from, to int64) { return off, size }

// SetLinkTimes returns ENOTSUP: there is no safe way to set the times of a symbolic link here.
func SetLinkTimes(Root, string, int64, int64) error { return syscall.ENOTSUP }

// OpenForAttrs returns [fs.ErrPermission]: only a file that may be opened can be changed here.
func OpenForAttrs(Root, string) (*os.File, error) { return nil, fs.ErrPermission }

// HoldsMountPoint returns false: mounts are not known here. If a bind mount inside a mount
// shows files of a masked path, they are not hidden on this system.
func HoldsMountPoint(string) bool { return false }
