// Package codecache keeps native code on disk, and says whether to believe it: the
// engine runs what it finds there.
//
// The cache is a directory with one directory for each compiled module, its
// [Entry], named by all that its code depends on. All of it has to be the user's
// own. What an entry holds is believed if it is what was put there.
package codecache

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/stockade-dev/stockade/host/internal/private"
	"github.com/stockade-dev/stockade/host/sandbox/linear"
	"github.com/stockade-dev/stockade/host/sandbox/native"
)

// The files of an entry.
const (
	ModuleFile = "module.wasm" // what was compiled
	NativeFile = "native"      // its code; where the engine has files of its own, these
	ImageFile  = "image"       // the memory with which calls begin; none, if they begin anew
	StateFile  = "state"       // what else they begin with
	sumsFile   = "sums"        // the SHA-256 of every file but itself and the next
	usedFile   = "used"        // empty; its time is that of the last use, within a day
)

// Beside the entries lie directories that are being made or removed.
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
	// ErrUntrusted is wrapped by the refusal of a cache in which others may have
	// put code.
	ErrUntrusted = errors.New("compiled-code cache cannot be trusted")

	// ErrMissing: there is no such entry.
	ErrMissing = errors.New("not in the cache")
)

// Layout names the form of an entry. It belongs into the key: what has another is
// never found.
const Layout = "layout 5"

// Entry is the place of one module in the cache, where something may lie or not.
// A nil one is no cache: it can be asked for a new directory, and be closed.
type Entry struct {
	dir  string
	root *os.Root // of dir
	key  string
}

// Open opens the cache in a directory, or makes it, after checking that nobody but
// the user could have put code there. The entry is nil where no directory is named.
func Open(dir, key string) (*Entry, error) {
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
	return &Entry{dir, root, key}, nil
}

// Reopen opens the entry once more, for another goroutine.
func (e *Entry) Reopen() (*Entry, error) { return Open(e.dir, e.key) }

// Close may be called on nil.
func (e *Entry) Close() {
	if e != nil {
		_ = e.root.Close()
	}
}

// Dir is the directory of the entry.
func (e *Entry) Dir() string { return filepath.Join(e.dir, e.key) }

// Exists reports whether something lies there.
func (e *Entry) Exists() bool {
	_, err := e.root.Lstat(e.key)
	return err == nil
}

// NewDir makes a directory that may become an entry.
func (e *Entry) NewDir() (string, error) {
	parent := os.TempDir()
	if e != nil {
		parent = e.dir
	}
	dir, err := os.MkdirTemp(parent, stagingPrefix+"*")
	if err != nil {
		return "", err
	}
	return filepath.Abs(dir)
}

// Get reads the entry, after checking that everything there is what was put there.
// ErrMissing, ErrUntrusted; any other error says how it is damaged.
func (e *Entry) Get() (_ *Contents, err error) {
	if _, err := e.root.Lstat(e.key); errors.Is(err, fs.ErrNotExist) {
		return nil, ErrMissing
	}
	found, err := Inspect(e.Dir(), true)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			found.Close()
		}
	}()
	want, err := e.root.ReadFile(filepath.Join(e.key, sumsFile))
	switch {
	case err != nil:
		return nil, err
	case string(want) != e.sums(found):
		return nil, errors.New("its files are not those that were put there")
	case found.Code == nil:
		return nil, fmt.Errorf("%s is missing", ModuleFile)
	}
	e.touch()
	return found, nil
}

// sums is the content of an entry's file of that name. It names the entry too,
// so that no other can stand in its place.
func (e *Entry) sums(f *Contents) string { return "entry " + e.key + "\n" + f.sums }

// touch notes that an entry is used. A cache that cannot be written to serves
// as well.
func (e *Entry) touch() {
	used, now := filepath.Join(e.key, usedFile), time.Now()
	if st, err := e.root.Lstat(used); err == nil && now.Sub(st.ModTime()) > 24*time.Hour {
		_ = e.root.Chtimes(used, now, now)
	}
}

// Put makes a directory of [Entry.NewDir] the entry. Where another process was
// faster its entry stays: it is as good.
func (e *Entry) Put(dir string) error {
	f, err := Inspect(dir, false)
	if err != nil {
		return err
	}
	f.Close() // where open files cannot be moved
	for name, content := range map[string]string{sumsFile: e.sums(f), usedFile: ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	name, err := filepath.Rel(e.dir, dir)
	if err != nil {
		return err
	}
	if err := e.root.Rename(name, e.key); err != nil {
		if _, there := e.root.Lstat(e.key); there != nil {
			return err
		}
	}
	return nil
}

// Remove empties the entry.
func (e *Entry) Remove() error { return e.remove(e.key) }

// remove removes a directory of the cache, which nobody sees half removed.
func (e *Entry) remove(name string) error {
	away := removedPrefix + rand.Text()
	if err := e.root.Rename(name, away); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return e.root.RemoveAll(away)
}

// Sweep removes what nobody has used for long of the whole cache. What it does not
// get to, or cannot remove, is left for the next time.
func (e *Entry) Sweep(now time.Time) {
	dir, err := e.root.Open(".")
	if err != nil {
		return
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(sweepLooks)
	removed := 0
	for _, name := range names {
		if removed < sweepMost && e.stale(name, now) {
			_ = e.remove(name)
			removed++
		}
	}
}

func (e *Entry) stale(name string, now time.Time) bool {
	limit := unusedAfter
	switch {
	case strings.HasPrefix(name, stagingPrefix), strings.HasPrefix(name, removedPrefix):
		limit = strayAfter
	case len(name) != len(e.key):
		return false // not ours
	}
	st, err := e.root.Lstat(filepath.Join(name, usedFile))
	if err != nil { // one that is not finished, or from before there was such a file
		st, err = e.root.Lstat(name)
	}
	return err == nil && now.Sub(st.ModTime()) > limit
}

// Contents is what lies in the directory of one module.
type Contents struct {
	Names []string
	// Of the files of that name, nil where there is none.
	Code, State []byte
	Native      *native.File
	Image       *linear.Image // if it was asked for

	sums string
}

// Close frees all that is not in memory of Go's.
func (c *Contents) Close() {
	c.CloseNative()
	c.Image.Close()
}

// CloseNative frees the native code, of which an engine has made its own.
func (c *Contents) CloseNative() {
	if c.Native != nil {
		_ = c.Native.Close()
	}
}

// Inspect reads a directory, all of which must be the user's own, with the
// image if that is asked for.
func Inspect(dir string, image bool) (*Contents, error) {
	root, err := openPrivate(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	c := &Contents{}
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
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Contents) add(root *os.Root, name, path string, image bool) error {
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
	c.Names = append(c.Names, name)
	var hashed []byte
	var id string // of files that are not hashed whole
	switch name {
	case ModuleFile, StateFile:
		hashed, err = io.ReadAll(f)
		if name == ModuleFile {
			c.Code = hashed
		} else {
			c.State = hashed
		}
	// Of the native code what the engine does not check itself, and whether it
	// is the file that was put there, as it was then; of the image only that,
	// because a guest cannot do with its own memory what code could.
	case NativeFile:
		if c.Native, err = native.Open(f); err != nil {
			return err
		}
		f = nil // the other's now
		hashed, id = c.Native.HeadAndTail(), fileStamp(st)
	case ImageFile:
		id = fileStamp(st)
		if image {
			c.Image, err = linear.Load(f, st.Size())
		}
	default: // the engine's own, where it takes none of ours
		hashed, err = io.ReadAll(f)
	}
	c.sums += fmt.Sprintf("%x  %s%s\n", sha256.Sum256(hashed), name, id)
	return err
}

// fileStamp tells a file from what it becomes if it is written to.
func fileStamp(st fs.FileInfo) string {
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
	if err := private.CheckPath(dir); err != nil {
		return nil, fmt.Errorf("%w: %w, or set XDG_CACHE_HOME", ErrUntrusted, err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	opened, err := root.Stat(".")
	if err == nil && !os.SameFile(named, opened) {
		err = fmt.Errorf("%w: %s was replaced while it was opened", ErrUntrusted, dir)
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
		return fmt.Errorf("%w: %s is a %s; remove it", ErrUntrusted, path, describeMode(st.Mode()))
	case !ownedByUser(st):
		return fmt.Errorf("%w: %s belongs to another user; remove it or set XDG_CACHE_HOME", ErrUntrusted, path)
	case writableByOthers(st):
		return fmt.Errorf("%w: others can write to %s, and so put native code there; remove it, or run: chmod -R go-rwx %s",
			ErrUntrusted, path, path)
	case want == 0 && isHardlinked(st):
		return fmt.Errorf("%w: %s has another name, by which it can be written to; remove it", ErrUntrusted, path)
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
