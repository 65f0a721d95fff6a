package sandbox

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/cpu"

	"github.com/stockade-dev/stockade/host/sandbox/admit"
	"github.com/stockade-dev/stockade/host/sandbox/linear"
	"github.com/stockade-dev/stockade/host/sandbox/native"
	"github.com/stockade-dev/stockade/host/wasm/fuel"
)

// The cache is a directory with one directory for each compiled module, named
// by all that its code depends on. In that lie
const (
	moduleFile = "module.wasm" // what was compiled
	nativeFile = "native"      // its code; where the engine has files of its own, these
	sumsFile   = "sums"        // the SHA-256 of every file but itself and the next
	usedFile   = "used"        // empty; its time is that of the last use, within a day
)

// and what calls begin with. Beside the entries lie directories that are being
// made or removed.
const (
	stagingPrefix = "stockade-new-"
	removedPrefix = "stockade-old-"
)

const (
	unusedAfter = 30 * 24 * time.Hour // an entry is removed
	strayAfter  = time.Hour           // what a crash left behind is removed
	sweepLooks  = 1000                // at so many directories at most, each time
	sweepMost   = 16                  // of which so many are removed
)

var (
	// errUntrusted is wrapped by the refusal of a cache in which others may have
	// put code: the engine runs what it finds there.
	errUntrusted = errors.New("compiled-code cache cannot be trusted")

	errMissing = errors.New("not in the cache")
)

// cacheKey names an entry. Build stands for what admits modules: an entry is
// not admitted again. Code is for one kind of processor, down to its extensions.
func cacheKey(digest, build string) string {
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%q", append(codeOf(digest), build, fmt.Sprint(cpu.X86, cpu.ARM64)))))
}

// codeOf is what the code of a module, and what its calls begin with, depends
// on beside the processor.
func codeOf(digest string) []string {
	return []string{
		"layout 5", digest,
		fmt.Sprint(fuel.Version, admit.MaxDepth, admit.MaxTableElements),
		native.Engine(), fmt.Sprint(uint64(features), mapsNative),
		runtime.GOOS, runtime.GOARCH,
	}
}

// mapsNative says that native code lies in a file of ours.
var mapsNative = native.Supported()

// cache is the place of one entry. A nil one is no cache.
type cache struct {
	dir  string
	root *os.Root // of dir
	key  string
}

// openCache opens a cache, or makes it, after checking that nobody but the
// user could have put code there. It is nil where no directory is named.
func openCache(dir, key string) (*cache, error) {
	if dir == "" {
		return nil, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	root, err := openPrivate(dir)
	if err != nil {
		return nil, err
	}
	return &cache{dir, root, key}, nil
}

func (c *cache) close() {
	if c != nil {
		_ = c.root.Close()
	}
}

func (c *cache) path(name string) string { return filepath.Join(c.dir, name) }

// place is where to make a directory that may become an entry.
func (c *cache) place() string {
	if c == nil {
		return os.TempDir()
	}
	return c.dir
}

// get returns the bytes of the module whose native code is in the entry, after
// checking that everything there is what was put there.
func (c *cache) get() (_ *contents, err error) {
	if _, err := c.root.Lstat(c.key); errors.Is(err, fs.ErrNotExist) {
		return nil, errMissing
	}
	found, err := inspect(c.path(c.key), true)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			found.close()
		}
	}()
	want, err := c.root.ReadFile(filepath.Join(c.key, sumsFile))
	switch {
	case err != nil:
		return nil, err
	case string(want) != c.sums(found):
		return nil, errors.New("its files are not those that were put there")
	case found.code == nil:
		return nil, fmt.Errorf("%s is missing", moduleFile)
	}
	c.touch()
	return found, nil
}

// sums is the content of an entry's file of that name. It names the entry too,
// so that no other can stand in its place.
func (c *cache) sums(f *contents) string { return "entry " + c.key + "\n" + f.sums }

// touch notes that an entry is used. A cache that cannot be written to serves
// as well.
func (c *cache) touch() {
	used, now := filepath.Join(c.key, usedFile), time.Now()
	if st, err := c.root.Lstat(used); err == nil && now.Sub(st.ModTime()) > 24*time.Hour {
		_ = c.root.Chtimes(used, now, now)
	}
}

// put makes an entry of a directory. Where another process was faster its
// entry stays: it is as good.
func (c *cache) put(dir string, f *contents) error {
	for name, content := range map[string]string{sumsFile: c.sums(f), usedFile: ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	name, err := filepath.Rel(c.dir, dir)
	if err != nil {
		return err
	}
	if err := c.root.Rename(name, c.key); err != nil {
		if _, there := c.root.Lstat(c.key); there != nil {
			return err
		}
	}
	c.sweep(time.Now())
	return nil
}

// remove removes a directory of the cache, which nobody sees half removed.
func (c *cache) remove(name string) error {
	away := removedPrefix + rand.Text()
	if err := c.root.Rename(name, away); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return c.root.RemoveAll(away)
}

// sweep removes what nobody has used for long. What it does not get to, or
// cannot remove, is left for the next time.
func (c *cache) sweep(now time.Time) {
	dir, err := c.root.Open(".")
	if err != nil {
		return
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(sweepLooks)
	removed := 0
	for _, name := range names {
		if removed < sweepMost && c.stale(name, now) {
			_ = c.remove(name)
			removed++
		}
	}
}

func (c *cache) stale(name string, now time.Time) bool {
	limit := unusedAfter
	switch {
	case strings.HasPrefix(name, stagingPrefix), strings.HasPrefix(name, removedPrefix):
		limit = strayAfter
	case len(name) != len(c.key):
		return false // not ours
	}
	st, err := c.root.Lstat(filepath.Join(name, usedFile))
	if err != nil { // one that is not finished, or from before there was such a file
		st, err = c.root.Lstat(name)
	}
	return err == nil && now.Sub(st.ModTime()) > limit
}

// contents is what lies in the directory of one module.
type contents struct {
	names []string
	sums  string
	// Of the files of that name, nil where there is none.
	code, state []byte
	native      *native.File
	image       *linear.Image // if it was asked for
}

// close frees all that is not in memory of Go's.
func (c *contents) close() {
	c.closeNative()
	c.image.Close()
}

func (c *contents) closeNative() {
	if c.native != nil {
		_ = c.native.Close()
	}
}

// inspect reads a directory, all of which must be the user's own, with the
// image if that is asked for.
func inspect(dir string, image bool) (*contents, error) {
	root, err := openPrivate(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	c := &contents{}
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		path := filepath.Join(dir, name)
		st, err := root.Lstat(name)
		if err == nil {
			err = checkPrivate(path, st, d.Type()&fs.ModeDir)
		}
		if err != nil || d.IsDir() || name == sumsFile || name == usedFile {
			return err
		}
		return c.add(root, name, path, image)
	})
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *contents) add(root *os.Root, name, path string, image bool) error {
	f, err := root.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat() // of the file that is read
	if err == nil {
		err = checkPrivate(path, st, 0)
	}
	if err != nil {
		return err
	}
	c.names = append(c.names, name)
	var hashed []byte
	var id string // of files that are not hashed whole
	switch name {
	case moduleFile, stateFile:
		hashed, err = io.ReadAll(f)
		if name == moduleFile {
			c.code = hashed
		} else {
			c.state = hashed
		}
	// Of the native code what the engine does not check itself, and whether it
	// is the file that was put there, as it was then; of the image only that,
	// because a guest cannot do with its own memory what code could.
	case nativeFile:
		if c.native, err = native.Open(f); err != nil {
			return err
		}
		f = nil // the other's now
		hashed, id = c.native.Rest(), describe(st)
	case imageFile:
		id = describe(st)
		if image {
			c.image, err = linear.Load(f, st.Size())
		}
	default: // the engine's own, where it takes none of ours
		hashed, err = io.ReadAll(f)
	}
	c.sums += fmt.Sprintf("%x  %s%s\n", sha256.Sum256(hashed), name, id)
	return err
}

// describe tells a file from what it becomes if it is written to.
func describe(st fs.FileInfo) string {
	return fmt.Sprintf("  %d %d %s", st.Size(), st.ModTime().UnixNano(), identity(st))
}

// openPrivate opens a directory of the user's own.
func openPrivate(dir string) (*os.Root, error) {
	named, err := os.Lstat(dir)
	if err == nil {
		err = checkPrivate(dir, named, fs.ModeDir)
	}
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	opened, err := root.Stat(".")
	if err == nil && !os.SameFile(named, opened) {
		err = fmt.Errorf("%w: %s was replaced while it was opened", errUntrusted, dir)
	}
	if err != nil {
		_ = root.Close()
		return nil, err
	}
	return root, nil
}

func checkPrivate(path string, st fs.FileInfo, want fs.FileMode) error {
	switch {
	case st.Mode().Type() != want:
		return fmt.Errorf("%w: %s is a %s; remove it", errUntrusted, path, describeMode(st.Mode()))
	case !ownedByUser(st):
		return fmt.Errorf("%w: %s belongs to another user; remove it or set XDG_CACHE_HOME", errUntrusted, path)
	case writableByOthers(st):
		return fmt.Errorf("%w: others can write to %s, and so put native code there; remove it, or run: chmod -R go-rwx %s",
			errUntrusted, path, path)
	case want == 0 && linked(st):
		return fmt.Errorf("%w: %s has another name, by which it can be written to; remove it", errUntrusted, path)
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
