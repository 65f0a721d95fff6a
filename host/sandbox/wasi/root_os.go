package wasi

import "os"

// osRoot is a root where the kernel cannot be told to stay below a directory.
// It opens one directory after the other, so it is slower the deeper a name
// is, needs the right to read each of them, and follows fewer links.
type osRoot struct {
	*os.Root
	device
}

func openOSRoot(name string) (root, error) {
	r, err := os.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	return &osRoot{Root: r}, nil
}

func (r *osRoot) OpenRoot(name string) (root, error) {
	sub, err := r.Root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	return &osRoot{sub, r.device}, nil
}

// maxLinks is the limit in package os, which has no name there.
func (*osRoot) maxLinks() int { return 8 }

func (*osRoot) replacesEmpty() bool { return false }
