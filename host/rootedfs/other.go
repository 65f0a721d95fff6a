//go:build !linux

package rootedfs

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

func openRoot(name string) (Root, error) { return openOSRoot(name) }

// device is not looked at: what is hidden by name is all that is known here.
type device struct{}

func (device) RefuseKernelFile(*os.File, os.FileInfo) error { return nil }

func (*osRoot) refuseKernelDir(os.FileInfo) error { return nil }

// RenameNoReplace gives something a name that nothing has. Neither name is followed.
func RenameNoReplace(from Root, oldName string, to Root, newName string) error {
	return renameChecked(from, oldName, to, newName)
}

// Exchange is not done in one step here.
func Exchange(Root, string, Root, string) error { return errors.ErrUnsupported }

// clone is not done here.
func clone(_, _ *os.File) bool { return false }

// extent is all of a file, as if it had no holes.
func extent(_ *os.File, off, size int64) (from, to int64) { return off, size }

// SetLinkTimes has no safe way to change the times of a symbolic link here.
func SetLinkTimes(Root, string, int64, int64) error { return syscall.ENOTSUP }

// OpenForAttrs has no way to open what may not be opened here.
func OpenForAttrs(Root, string) (*os.File, error) { return nil, fs.ErrPermission }

// HoldsMountPoint is not known here. What a bind mount or its like shows of a
// masked path inside a mount is not hidden on this system.
func HoldsMountPoint(string) bool { return false }
