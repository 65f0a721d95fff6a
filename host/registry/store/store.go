// Package store keeps the modules that a person has added, with all that was approved.
//
// A store is a folder of mode 0700:
//
//	index.json          the records, mode 0600, replaced as a whole
//	refused.json        modules that need no second review, see [RefusalCache]
//	sha256/HEX.wasm     the modules, mode 0444, each under its SHA-256
//	lock                held during a change
//
// A start reads the index and nothing else. [Store.Change] is the only way to add a
// module: under the lock it writes the modules, and then the index that names them. So
// a process that is killed leaves the old index or the new one, and at worst a file that
// no record names. A change removes such files, and modules that were replaced, after a
// day; [Store.Sweep] removes them at once.
//
// The index is believed because nobody but the user and root can write it. Its checksum
// detects damage by a broken disk or an editor; it is no signature. A module is believed
// if its bytes have the SHA-256 in its record.
package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/stockade-dev/stockade/host/internal/private"
	"github.com/stockade-dev/stockade/host/tool"
)

// lockTimeout limits the wait of a change for another change; after it, the change fails.
const lockTimeout = 10 * time.Second

// sweepDelay is the time that an unneeded module stays: a program that was started before
// may still call it.
const sweepDelay = 24 * time.Hour

// Store is a folder of modules. It is safe for concurrent use, also by several processes.
type Store struct{ dir string }

// Open returns the store in a folder. It reads nothing; the first change makes the folder.
func Open(dir string) *Store { return &Store{dir} }

func (s *Store) indexPath() string               { return filepath.Join(s.dir, "index.json") }
func (s *Store) refusalsPath() string            { return filepath.Join(s.dir, "refused.json") }
func (s *Store) moduleDir() string               { return filepath.Join(s.dir, "sha256") }
func (s *Store) modulePath(digest string) string { return filepath.Join(s.moduleDir(), digest+".wasm") }

// Records returns the records, sorted by name and project. It reads one file. It is an
// error if others could have written the file, or if it is damaged.
func (s *Store) Records() ([]Record, error) {
	data, err := s.load()
	if err != nil || data == nil {
		return nil, err
	}
	records, err := decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s %w", s.indexPath(), err)
	}
	return records, nil
}

// loadExact returns the records and the JSON of each. It checks more than Records does, see
// [decodeExact].
func (s *Store) loadExact() (records []Record, lines []string, err error) {
	data, err := s.load()
	if err != nil || data == nil {
		return nil, nil, err
	}
	if records, lines, err = decodeExact(data); err != nil {
		return nil, nil, fmt.Errorf("%s %w", s.indexPath(), err)
	}
	return records, lines, nil
}

// load reads the index; nil: there is none.
func (s *Store) load() ([]byte, error) {
	switch st, err := os.Stat(s.dir); { // the user may have put a link here
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !st.IsDir():
		return nil, fmt.Errorf("%s is not a folder", s.dir)
	default:
		err := checkWriters(s.dir, st) // others could have removed the index, too
		if err == nil {
			err = checkAbove(s.dir)
		}
		if err != nil {
			return nil, err
		}
	}
	f, st, err := open(s.indexPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := checkWriters(s.indexPath(), st); err != nil {
		return nil, err
	}
	if st.Size() > maxIndexBytes {
		return nil, fmt.Errorf("%s has %d bytes, more than the limit of %d", s.indexPath(), st.Size(), maxIndexBytes)
	}
	data := make([]byte, st.Size())
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, fmt.Errorf("read %s: %w", s.indexPath(), err)
	}
	return data, nil
}

// open opens a regular file. It follows no link, and does not block on a named pipe.
func open(path string) (*os.File, fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|noFollow, 0)
	if err != nil {
		if st, statErr := os.Lstat(path); statErr == nil && !st.Mode().IsRegular() {
			err = fmt.Errorf("%s is not a regular file", path)
		}
		return nil, nil, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, st, nil
}

// checkWriters returns an error if somebody other than the user and root could have
// written the file.
func checkWriters(path string, st fs.FileInfo) error {
	if !private.HasModes {
		return nil
	}
	if owner, mine := private.Owner(st); !mine && owner != 0 {
		return fmt.Errorf("%s belongs to another user (%d): what it says was approved is not believed; move it away", path, owner)
	}
	if st.Mode()&0o022 != 0 {
		return fmt.Errorf("others may write to %s: what it says was approved is not believed; "+
			"if nobody did, chmod go-w it, else move it away and add your modules again", path)
	}
	return nil
}

// checkAbove is checkWriters for the directories above, and for links on the way.
func checkAbove(dir string) error {
	if err := private.CheckPath(dir); err != nil {
		return fmt.Errorf("%w; until then the modules that were added are not believed", err)
	}
	return nil
}

// Change replaces the records by the result of f, and stores the given modules that the
// new records name. Nobody else, in this process or in others, can change the store
// meanwhile, so f must not wait for a person. After an error, or a crash at any moment,
// the old records stand. For each record with another module or manifest than before,
// Change checks the manifest, its fingerprint, and that the module is there. Unchanged
// records are not checked, so that a damaged module can still be switched off.
func (s *Store) Change(modules [][]byte, f func([]Record) ([]Record, error)) error {
	if err := checkAbove(s.dir); err != nil { // the folder itself may not exist yet
		return err
	}
	if err := os.MkdirAll(s.moduleDir(), 0o700); err != nil {
		return err
	}
	unlock, err := s.lock()
	if err != nil {
		return err
	}
	defer unlock()
	records, lines, err := s.loadExact()
	if err != nil {
		return err
	}
	known, before := map[string]bool{}, map[string]bool{} // approval keys and digests of the old records
	for _, r := range records {
		known[r.approvalKey()], before[r.Digest] = true, true
	}
	if records, err = f(records); err != nil {
		return err
	}
	records = slices.SortedFunc(slices.Values(records), compare)
	now, newLines, err := encode(records)
	if err != nil {
		return err
	}
	if _, _, err := decodeExact(now); err != nil { // an index that cannot be read back is not written
		return fmt.Errorf("%s would be wrong: it %w", s.indexPath(), err)
	}
	given := map[string][]byte{}
	for _, code := range modules {
		given[tool.SHA256(code)] = code
	}
	named := map[string]bool{}
	for _, r := range records {
		named[r.Digest] = true
		code, ok := given[r.Digest]
		if ok && int64(len(code)) != r.Bytes {
			return fmt.Errorf("module %q has %d bytes, and its record says %d", r.Name, len(code), r.Bytes)
		}
		if known[r.approvalKey()] {
			continue
		}
		if err := r.checkManifest(); err != nil {
			return err
		}
		if !ok {
			if err := s.checkSize(r); err != nil {
				return err
			}
		}
	}
	for digest, code := range given {
		if named[digest] {
			if err := s.put(digest, code); err != nil {
				return fmt.Errorf("keep module %s: %w", digest, err)
			}
		}
	}
	if slices.Equal(lines, newLines) {
		return nil
	}
	for digest := range before {
		if !named[digest] { // sweepDelay starts now; without the time stamp it ends sooner
			_ = os.Chtimes(s.modulePath(digest), time.Time{}, time.Now())
		}
	}
	if err := private.Write(s.indexPath(), now); err != nil {
		return err
	}
	_ = s.sweep(records, sweepDelay) // the next change tries again
	return nil
}

func (s *Store) lock() (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(context.Background(), lockTimeout)
	defer cancel()
	lock := flock.New(filepath.Join(s.dir, "lock"), flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, 5*time.Millisecond); err != nil {
		return nil, fmt.Errorf("lock %s: %w", s.dir, err)
	}
	return func() { _ = lock.Unlock() }, nil
}

// put writes a module. It replaces a file of the same name with other content.
func (s *Store) put(digest string, code []byte) error {
	path := s.modulePath(digest)
	if kept, err := s.read(digest, int64(len(code))); err == nil && bytes.Equal(kept, code) {
		return private.SyncFolder(s.moduleDir()) // its writer may have been killed before the sync
	}
	if err := os.RemoveAll(path); err != nil { // whatever has the name: only modules belong there
		return err
	}
	if err := private.Write(path, code); err != nil {
		return err
	}
	return os.Chmod(path, 0o444) // only against mistakes: each read checks the content
}

// read returns the bytes of a module. It is an error if their size or their SHA-256 differs.
func (s *Store) read(digest string, size int64) ([]byte, error) {
	f, st, err := open(s.modulePath(digest))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if st.Size() != size {
		return nil, fmt.Errorf("%s has %d bytes, not %d", f.Name(), st.Size(), size)
	}
	code := make([]byte, size)
	if _, err := io.ReadFull(f, code); err != nil {
		return nil, fmt.Errorf("read %s: %w", f.Name(), err)
	}
	if sum := tool.SHA256(code); sum != digest {
		return nil, fmt.Errorf("%s holds other bytes than its name says: their SHA-256 is %s", f.Name(), sum)
	}
	return code, nil
}

// checkSize returns an error if the file of a module is missing or has another size than in
// the record. It does not read the file.
func (s *Store) checkSize(r Record) error {
	st, err := os.Lstat(s.modulePath(r.Digest))
	switch {
	case err != nil:
		return fmt.Errorf("module %q is not in the store: %w", r.Name, err)
	case !st.Mode().IsRegular() || st.Size() != r.Bytes:
		return fmt.Errorf("module %q is damaged in the store: %s", r.Name, s.modulePath(r.Digest))
	}
	return nil
}

// Module returns the module of a record. Each call of its Read reads the file, and
// returns only bytes with the SHA-256 of the record.
func (s *Store) Module(r Record) *tool.Module {
	return &tool.Module{
		Name: r.Name, Digest: r.Digest, Bytes: r.Bytes, Origin: tool.OriginAdded, Path: s.modulePath(r.Digest),
		Prefix: r.Name + "_", Version: r.Manifest.Version, Signer: r.Signer, Namespace: r.Namespace, Config: r.Manifest.Config, AllowLarge: r.AllowLarge,
		Read: func() ([]byte, error) {
			code, err := s.read(r.Digest, r.Bytes)
			if err != nil {
				return nil, fmt.Errorf("module %q: %w; %s", r.Name, err, r.readdHint())
			}
			return code, nil
		},
	}
}

// leftoverRE matches our temporary files, which stay when their writer is killed.
var leftoverRE = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\.([0-9a-f]{64}\.wasm|index\.json|refused\.json)-[0-9]+$`)
})

// unneededFiles lists the files of our kinds that nothing needs, and the files of other kinds.
// The caller holds the lock, so that nobody is writing one of them.
func (s *Store) unneededFiles(records []Record) (unnamed, foreign []string, err error) {
	needed := map[string]bool{}
	for _, r := range records {
		needed[r.Digest+".wasm"] = true
	}
	for _, dir := range []string{s.dir, s.moduleDir()} {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, err
		}
		for _, e := range entries {
			name, inside := e.Name(), dir == s.moduleDir()
			hash, isModule := strings.CutSuffix(name, ".wasm")
			switch {
			case leftoverRE().MatchString(name), inside && isModule && isHash(hash) && !needed[name]:
				unnamed = append(unnamed, filepath.Join(dir, name))
			case inside && needed[name], !inside && slices.Contains([]string{"index.json", "refused.json", "sha256", "lock"}, name):
			default:
				foreign = append(foreign, filepath.Join(dir, name))
			}
		}
	}
	return unnamed, foreign, nil
}

// Sweep removes the modules that no record names, and the temporary files of killed
// processes. A process that offers such a module and has not read it yet can no longer
// call it. If the records cannot be read, nothing is removed.
func (s *Store) Sweep() error {
	if _, err := os.Stat(s.dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	unlock, err := s.lock()
	if err != nil {
		return err
	}
	defer unlock()
	records, _, err := s.loadExact()
	if err != nil {
		return err
	}
	return s.sweep(records, 0)
}

// sweep removes unneeded files that are older than minAge; 0: all unneeded files.
func (s *Store) sweep(records []Record, minAge time.Duration) error {
	unnamed, _, err := s.unneededFiles(records)
	for _, path := range unnamed {
		st, statErr := os.Lstat(path)
		switch {
		case statErr != nil:
			err = errors.Join(err, statErr)
		case minAge == 0 || time.Since(st.ModTime()) > minAge:
			err = errors.Join(err, os.Remove(path))
		}
	}
	return err
}

// Finding is a problem in the store.
type Finding struct {
	Name     string // name of the record with the problem; empty: it concerns no record
	Message  string // the problem in words, with a remedy
	Unneeded bool   // set for a file that only takes space: nothing is lost or damaged
}

// Verify reads every module and compares everything: the bytes with their SHA-256, the
// manifest in each record with its rules and its fingerprint, the files with the records.
// It changes nothing and needs no network.
func (s *Store) Verify() []Finding {
	if _, err := os.Stat(s.dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	unlock, err := s.lock() // a concurrent change would look like damage
	if err != nil {
		return []Finding{{Message: err.Error()}}
	}
	defer unlock()
	records, _, err := s.loadExact()
	if err != nil {
		return []Finding{{Message: err.Error()}}
	}
	var found []Finding
	for _, r := range records {
		if err := r.checkManifest(); err != nil {
			found = append(found, Finding{Name: r.Name, Message: err.Error()})
		}
		if _, err := s.Module(r).Read(); err != nil {
			found = append(found, Finding{Name: r.Name, Message: err.Error()})
		}
	}
	unnamed, foreign, err := s.unneededFiles(records)
	if err != nil {
		found = append(found, Finding{Message: err.Error()})
	}
	for _, path := range unnamed {
		found = append(found, Finding{Message: path + " belongs to no module that you have added", Unneeded: true})
	}
	for _, path := range foreign {
		found = append(found, Finding{Message: path + " was not put there by stockade", Unneeded: true})
	}
	return found
}

func compare(a, b Record) int {
	return strings.Compare(a.Name+"\x00"+a.Project, b.Name+"\x00"+b.Project)
}
