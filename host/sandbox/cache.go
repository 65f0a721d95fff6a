package sandbox

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tetratelabs/wazero"
)

// errUntrusted is wrapped by the refusal of a cache in which others may have
// put code: the engine runs what it finds there.
var errUntrusted = errors.New("compiled-code cache cannot be trusted")

// cache is the directory in which the native code of one module lies.
type cache struct {
	dir    string
	engine wazero.CompilationCache
	hit    bool // there is code, though it may be for another version of the engine
}

// openCache opens the cache of a module after checking that nobody but the
// user could have put code there, and throws damaged code away.
func openCache(parent, digest string) (*cache, error) {
	c := &cache{dir: filepath.Join(parent, digest)}
	for _, d := range []string{parent, c.dir} {
		if err := privateDir(d); err != nil {
			return nil, err
		}
	}
	if err := checkTree(c.dir); err != nil {
		return nil, err
	}
	var err error
	if c.hit, err = dropDamaged(c.dir); err != nil {
		return nil, err
	}
	c.engine, err = wazero.NewCompilationCacheWithDir(c.dir)
	return c, err
}

// close is for a nil cache too.
func (c *cache) close() error {
	if c == nil {
		return nil
	}
	return c.engine.Close(context.Background())
}

// sumSuffix marks the file that holds the SHA-256 of the file beside it. The
// engine's own checksum leaves the offsets of the functions out, and a wrong
// one jumps anywhere.
const sumSuffix = ".sha256"

// codeFiles lists the files that the engine may load.
func codeFiles(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil {
		return nil, err
	}
	var out []string
	for _, f := range files {
		if !strings.HasSuffix(f, sumSuffix) && !strings.HasSuffix(f, ".tmp") {
			out = append(out, f)
		}
	}
	return out, nil
}

// dropDamaged removes the files that are not what was sealed, and reports
// whether any is left. Here and in seal, a file that is gone was removed by
// another process that did the same.
func dropDamaged(dir string) (hit bool, err error) {
	files, err := codeFiles(dir)
	if err != nil {
		return false, err
	}
	for _, f := range files {
		sum, err := sumOf(f)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		if want, err := os.ReadFile(f + sumSuffix); err == nil && string(want) == sum {
			hit = true
			continue
		}
		for _, bad := range []string{f, f + sumSuffix} {
			if err := os.Remove(bad); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return false, err
			}
		}
	}
	return hit, nil
}

// seal notes the sums of the files that have none yet, which are those that
// the engine has just written.
func (c *cache) seal() error {
	files, err := codeFiles(c.dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		if _, err := os.Lstat(f + sumSuffix); err == nil {
			continue
		}
		sum, err := sumOf(f)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := os.WriteFile(f+sumSuffix, []byte(sum), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func sumOf(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}

// privateDir makes the directory, or checks the one that is there.
func privateDir(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return checkPrivate(dir, fs.ModeDir)
}

// checkTree checks everything below a cache directory. What vanishes meanwhile
// is another process's temporary file.
func checkTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			err = checkPrivate(path, d.Type()&fs.ModeDir)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
}

func checkPrivate(path string, want fs.FileMode) error {
	st, err := os.Lstat(path)
	if err != nil {
		return err
	}
	switch {
	case st.Mode().Type() != want:
		return fmt.Errorf("%w: %s is a %s; remove it", errUntrusted, path, describeMode(st.Mode()))
	case !ownedByUser(st):
		return fmt.Errorf("%w: %s belongs to another user; remove it or set XDG_CACHE_HOME", errUntrusted, path)
	case writableByOthers(st):
		return fmt.Errorf("%w: others can write to %s, and so put native code there; remove it, or run: chmod -R go-rwx %s",
			errUntrusted, path, path)
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

// ioFailed reports whether an error comes from reading or writing files.
func ioFailed(err error) bool {
	var path *fs.PathError
	var link *os.LinkError
	return errors.As(err, &path) || errors.As(err, &link)
}
