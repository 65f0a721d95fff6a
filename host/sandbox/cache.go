package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tetratelabs/wazero"
)

// openCache opens the directory in which the native code of one module lies,
// after checking that nobody but the user could have put code there: the
// engine runs what it finds.
func openCache(dir, digest string) (wazero.CompilationCache, string, error) {
	sub := filepath.Join(dir, digest)
	for _, d := range []string{dir, sub} {
		if err := privateDir(d); err != nil {
			return nil, "", err
		}
	}
	if err := checkTree(sub); err != nil {
		return nil, "", err
	}
	cache, err := wazero.NewCompilationCacheWithDir(sub)
	return cache, sub, err
}

// cached reports whether the directory holds code already.
func cached(sub string) bool {
	files, err := filepath.Glob(filepath.Join(sub, "*", "*"))
	return err == nil && len(files) > 0
}

// privateDir makes the directory, or checks the one that is there.
func privateDir(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return fmt.Errorf("compiled-code cache: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("compiled-code cache: %w", err)
	}
	return checkPrivate(dir, fs.ModeDir)
}

// checkTree checks everything below a cache directory.
func checkTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("compiled-code cache: %w", err)
		}
		return checkPrivate(path, d.Type()&fs.ModeDir)
	})
}

func checkPrivate(path string, want fs.FileMode) error {
	st, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("compiled-code cache: %w", err)
	}
	switch {
	case st.Mode().Type() != want:
		return fmt.Errorf("compiled-code cache: %s is a %s; remove it", path, describeMode(st.Mode()))
	case writableByOthers(st):
		return fmt.Errorf("compiled-code cache: %s can be written by others, who could put native code there; run: chmod -R go-rwx %s", path, path)
	case !ownedByUser(st):
		return fmt.Errorf("compiled-code cache: %s belongs to another user; remove it or set XDG_CACHE_HOME", path)
	}
	return nil
}

func describeMode(m fs.FileMode) string {
	switch {
	case m&fs.ModeSymlink != 0:
		return "symbolic link"
	case m.IsDir():
		return "directory"
	case m.IsRegular():
		return "file"
	}
	return "special file"
}
