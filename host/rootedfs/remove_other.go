//go:build !linux

package rootedfs

import (
	"io/fs"
	"os"
)

// RemoveAll is [os.RemoveAll] that also removes directories without write or search
// permission, such as those of Go's module cache. It follows no link.
func RemoveAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	_ = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && root.Chmod(name, 0o700) != nil || err != nil {
			return fs.SkipDir
		}
		return nil
	})
	_ = root.Close()
	return os.RemoveAll(dir)
}

func removeDiscarded(dir string) { _ = RemoveAll(dir) }

func ownedByUser(os.FileInfo) bool { return true }
