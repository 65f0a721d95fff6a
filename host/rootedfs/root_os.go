package rootedfs

import (
	"os"
	"syscall"
)

// osRoot is a root where the kernel cannot be told to stay below a directory.
// It opens one directory after the other, so it is slower the deeper a name
// is, needs the right to read each of them, and follows fewer links.
type osRoot struct {
	*os.Root
	device
}

func openOSRoot(name string) (Root, error) {
	r, err := os.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	return &osRoot{Root: r}, nil
}

func (r *osRoot) OpenRoot(name string) (Root, error) {
	sub, err := r.Root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	return &osRoot{sub, r.device}, nil
}

// MaxSymlinks is the limit in package os, which has no name there.
func (*osRoot) MaxSymlinks() int { return 8 }

func (*osRoot) RenameReplacesEmptyDir() bool { return false }

func (*osRoot) ListsInodes() bool { return false }

// OpenNoSymlinks cannot tell which names have links.
func (*osRoot) OpenNoSymlinks(string, int) (*os.File, error) { return nil, syscall.ELOOP }
