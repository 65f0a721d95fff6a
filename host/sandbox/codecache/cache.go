// Package codecache stores native code on disk, and checks whether it can be trusted: the
// engine runs what it finds there.
//
// The cache is a directory with one directory for each compiled module, its [Entry]. The name
// of an entry is a hash of all that its code depends on. All files have to belong to the user
// alone. An entry is used only if its files are still those that were put there.
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

// Names of the files of an entry.
const (
	ModuleFile = "module.wasm" // the compiled module, or its skeleton
	NativeFile = "native"      // native code; absent if the engine uses files of its own
	ImageFile  = "image"       // the memory at the beginning of calls; absent if calls begin without a snapshot
	StateFile  = "state"       // the rest of the snapshot, and facts about the module
	sumsFile   = "sums"        // SHA-256 of every file except for sumsFile and usedFile
	usedFile   = "used"        // empty; its modification time is that of the last use, give or take a day
)

// Prefixes of directories beside the entries that are being made or removed.
const (
	stagingPrefix = "stockade-new-"
	removedPrefix = "stockade-old-"
)

const (
	unusedAfter     = 30 * 24 * time.Hour // time since the last use after which an entry is removed
	strayAfter      = time.Hour           // age after which leftovers of a crash are removed
	maxSwept        = 1000                // directories that one Sweep looks at
	maxSweepRemoved = 16                  // directories that one Sweep removes; the rest waits for the next
)

var (
	// ErrUntrusted is wrapped by the error of a cache into which others may have put code.
	ErrUntrusted = errors.New("compiled-code cache cannot be trusted")
	ErrMissing   = errors.New("not in the cache") // returned by Get for an empty entry
)

// Layout identifies the format of an entry. Callers make it a part of the key, so that entries
// of other formats are never found.
const Layout = "layout 5"

// Entry is the place of one compiled module in the cache; it may be empty. A nil Entry stands
// for no cache: only NewDir and Close may be called.
type Entry struct {
	dir  string
	root *os.Root // dir, opened
	key  string
}

// Open returns the entry with a key, of the cache in a directory that it makes if necessary.
// The error wraps ErrUntrusted if others than the user could have put code there. If dir is
// "", the entry is nil.
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

// Reopen opens the entry again, for another goroutine.
func (e *Entry) Reopen() (*Entry, error) { return Open(e.dir, e.key) }

// Close closes the entry, which may be nil.
func (e *Entry) Close() {
	if e != nil {
		_ = e.root.Close()
	}
}

// Dir returns the directory of the entry, which may not exist.
func (e *Entry) Dir() string { return filepath.Join(e.dir, e.key) }

// Exists reports whether the entry is filled, without checking its files.
func (e *Entry) Exists() bool {
	_, err := e.root.Lstat(e.key)
	return err == nil
}

// NewDir makes a directory that [Entry.Put] can make the entry. Without a cache it lies in the
// system's directory for temporary files.
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

// Get checks and reads the files of the entry. The error is ErrMissing, wraps ErrUntrusted, or
// describes the damage.
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

// sums returns the content of the entry's sumsFile for the files f. It contains the key, so
// that no other entry can take its place.
func (e *Entry) sums(f *Contents) string { return "entry " + e.key + "\n" + f.sums }

// touch records that an entry was used now. Errors are ignored: a cache that cannot be written
// to works as well.
func (e *Entry) touch() {
	used, now := filepath.Join(e.key, usedFile), time.Now()
	if st, err := e.root.Lstat(used); err == nil && now.Sub(st.ModTime()) > 24*time.Hour {
		_ = e.root.Chtimes(used, now, now)
	}
}

// Put makes a directory of [Entry.NewDir] the entry. If another process has put an entry
// there already, that entry stays; it is as good.
func (e *Entry) Put(dir string) error {
	f, err := Inspect(dir, false)
	if err != nil {
		return err
	}
	f.Close() // open files cannot be moved on every system
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
		if _, statErr := e.root.Lstat(e.key); statErr != nil {
			return err
		}
	}
	return nil
}

// Remove removes the files of the entry.
func (e *Entry) Remove() error { return e.remove(e.key) }

// remove removes a directory of the cache, after renaming it: nobody sees a half removed
// entry.
func (e *Entry) remove(name string) error {
	renamed := removedPrefix + rand.Text()
	if err := e.root.Rename(name, renamed); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return e.root.RemoveAll(renamed)
}

// Sweep removes entries of the whole cache that were unused for unusedAfter, and leftovers of
// crashes; at most maxSweepRemoved each time. It ignores errors.
func (e *Entry) Sweep(now time.Time) {
	dir, err := e.root.Open(".")
	if err != nil {
		return
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(maxSwept)
	removed := 0
	for _, name := range names {
		if removed < maxSweepRemoved && e.stale(name, now) {
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
		return false // not an entry
	}
	st, err := e.root.Lstat(filepath.Join(name, usedFile))
	if err != nil { // unfinished, or from before this file existed
		st, err = e.root.Lstat(name)
	}
	return err == nil && now.Sub(st.ModTime()) > limit
}

// Contents holds the files of a module's directory.
type Contents struct {
	Names []string // names of all files except for sumsFile and usedFile, relative to the directory
	// Contents of ModuleFile, StateFile, NativeFile and ImageFile; nil: there is none.
	Code, State []byte
	Native      *native.File
	Image       *linear.Image // nil also if Inspect was called without image

	sums string // lines of sumsFile about the files
}

// Close frees the memory that the garbage collector does not.
func (c *Contents) Close() {
	c.CloseNative()
	c.Image.Close()
}

// CloseNative closes the file of the native code. An engine that has loaded the code does not
// need it.
func (c *Contents) CloseNative() {
	if c.Native != nil {
		_ = c.Native.Close()
	}
}

// Inspect reads the files in a directory, all of which must belong to the user alone;
// otherwise the error wraps ErrUntrusted. image asks for the image, too.
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
	st, err := f.Stat() // the open file, in case the name was replaced
	if err == nil {
		err = checkPrivate(path, st, 0)
	}
	if err != nil {
		return err
	}
	c.Names = append(c.Names, name)
	var hashed []byte
	var id string // stamp of a file that is not hashed completely
	switch name {
	case ModuleFile, StateFile:
		hashed, err = io.ReadAll(f)
		if name == ModuleFile {
			c.Code = hashed
		} else {
			c.State = hashed
		}
	// Of the native code only those parts are hashed that the engine does not check itself.
	// The file stamp shows whether it is the file that was put there, unchanged. The image
	// has a stamp only: code could do what a guest cannot do with its own memory.
	case NativeFile:
		if c.Native, err = native.Open(f); err != nil {
			return err
		}
		f = nil // c.Native closes it
		hashed, id = c.Native.HeadAndTail(), fileStamp(st)
	case ImageFile:
		id = fileStamp(st)
		if image {
			c.Image, err = linear.Load(f, st.Size())
		}
	default: // a file of the engine's own, where it does not use ours
		hashed, err = io.ReadAll(f)
	}
	c.sums += fmt.Sprintf("%x  %s%s\n", sha256.Sum256(hashed), name, id)
	return err
}

// fileStamp returns a text that changes when the file is written to or replaced.
func fileStamp(st fs.FileInfo) string {
	return fmt.Sprintf("  %d %d %s", st.Size(), st.ModTime().UnixNano(), identity(st))
}

// openPrivate opens a directory. If it is not the user's alone, the error wraps ErrUntrusted.
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
	switch _, mine := private.Owner(st); {
	case st.Mode().Type() != want:
		return fmt.Errorf("%w: %s is a %s; remove it", ErrUntrusted, path, describeMode(st.Mode()))
	case !mine:
		return fmt.Errorf("%w: %s belongs to another user; remove it or set XDG_CACHE_HOME", ErrUntrusted, path)
	case private.HasModes && st.Mode().Perm()&0o022 != 0:
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
