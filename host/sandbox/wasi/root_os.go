package wasi

import "os"

// osRoot is a root where the kernel cannot be told to stay below a directory.
// It opens one directory after the other, so it is slower the deeper a name
// is, needs the right to read each of them, and follows fewer links.
type osRoot struct{ *os.Root }

func openOSRoot(name string) (root, error) { return asRoot(os.OpenRoot(name)) }

func (r osRoot) OpenRoot(name string) (root, error) { return asRoot(r.Root.OpenRoot(name)) }

// asRoot keeps a nil pointer from becoming a root that is not nil.
func asRoot(r *os.Root, err error) (root, error) {
	if err != nil {
		return nil, err
	}
	return osRoot{r}, nil
}

// maxLinks is the limit in package os, which has no name there.
func (osRoot) maxLinks() int { return 8 }

func (osRoot) replacesEmpty() bool { return false }
