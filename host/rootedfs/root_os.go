package rootedfs

import (
	"os"
	"syscall"
)

// osRoot is a root for hosts without openat2. It opens one directory after the other. So it is
// slower for deeper names, needs read permission for each directory, and follows fewer links.
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

// MaxSymlinks returns the limit of package os, which has no name there.
func (*osRoot) MaxSymlinks() int { return 8 }

func (*osRoot) RenameReplacesEmptyDir() bool { return false }

func (*osRoot) ListsInodes() bool { return false }

// OpenNoSymlinks returns ELOOP, because it cannot find out which names contain links.
func (*osRoot) OpenNoSymlinks(string, int) (*os.File, error) { return nil, syscall.ELOOP }
