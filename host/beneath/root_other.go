//go:build !linux

package beneath

func openRoot(name string) (Root, error) { return openOSRoot(name) }
