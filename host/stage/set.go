package stage

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
)

// Options configures the place for the content of a set. Zero values are defaults.
type Options struct {
	// Dir is the absolute, clean path of an existing directory, in which the set makes a
	// private one for content that does not fit in memory, and for the journal of a commit, see
	// [Set.Dir]. Empty: there is only memory, and no journal.
	Dir string
	// MemoryBytes limits the content in memory. With more, all of it moves to a file in Dir;
	// without Dir more is ENOSPC. Default 1 MiB, or 64 MiB without Dir; a negative value is an
	// error. There may be 4 GiB in the end, counted in blocks of 4 KiB; more is ENOSPC.
	MemoryBytes int64
	// Budget is a limit that sets share. Beyond its memory, content moves to Dir if there is
	// one; any other change beyond it is ENOSPC. Nil: no limit.
	Budget *Budget
}

// Set holds the changes that one call makes in directories of the host, its trees, as long as
// the host does not have the changes. When the call has ended, [Set.Changes] lists them, and
// [Set.Commit] or [Set.Drop] ends the set. Nobody may use a tree during these three.
type Set struct {
	// Fixed at creation.
	dir    string   // path of the private directory; empty: none
	root   *os.Root // the private directory, or nil; no name in it comes from a call
	umask  fs.FileMode
	arena  *arena
	budget *Budget

	stepHook   func(op, path string) error // for tests: runs before and after each step of a commit
	noExchange bool                        // for tests: the host cannot exchange names

	trees             []*Tree
	layers            []*Layer // of the trees that have overlays
	skipped           []string // see Skipped
	droppedAttributes []string // see DroppedAttributes
	failure           error    // see Fail
	treeBytes         int64    // bytes reserved for nodes that were made or moved, at most maxTreeBytes

	cacheCallbacks []func(keep bool) // see OnCacheDecision
	sawUnapproved  bool              // see SawUnapproved

	ended      atomic.Bool     // see Ended
	mu         sync.Mutex      // held by Changes, Commit, Drop and other methods of Set
	err        error           // the result of a commit that has made all changes
	lastListed map[change]bool // changes of the latest successful Changes; nil: none
	done       bool            // a commit has made all changes
}

// Defaults of Options.MemoryBytes, with Dir and without.
const (
	defaultMemory     int64 = 1 << 20
	defaultMemoryOnly int64 = 64 << 20
)

// New returns an empty set. Nil is the zero value of Options. The caller must Commit or Drop.
func New(opts *Options) (*Set, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.MemoryBytes < 0 {
		return nil, fmt.Errorf("stage: %d bytes of memory", o.MemoryBytes)
	}
	memory := defaultMemory
	if o.Dir == "" {
		memory = defaultMemoryOnly
	}
	o.MemoryBytes = cmp.Or(o.MemoryBytes, memory)
	if o.Budget == nil {
		o.Budget = NewBudget(0, 0)
	}
	s := &Set{arena: &arena{memory: o.MemoryBytes, budget: o.Budget}, budget: o.Budget}
	if o.Dir == "" {
		if err := s.probe(); err != nil {
			return nil, fmt.Errorf("stage: %w", err)
		}
		return s, nil
	}
	if !filepath.IsAbs(o.Dir) || filepath.Clean(o.Dir) != o.Dir {
		return nil, fmt.Errorf("stage %q: not an absolute, clean path", o.Dir)
	}
	if err := s.open(o.Dir); err != nil {
		_ = s.Drop()
		return nil, fmt.Errorf("stage: %w", err)
	}
	return s, nil
}

// open makes the private directory in parent, and sets umask.
func (s *Set) open(parent string) error {
	dir, err := os.MkdirTemp(parent, ".stockade-stage-*") // mode 0700
	if err != nil {
		return err
	}
	s.dir = dir
	if s.root, err = os.OpenRoot(dir); err != nil {
		return err
	}
	s.arena.create = s.file
	s.umask, err = umaskIn(dir)
	return err
}

// probe sets umask for a set without a private directory.
func (s *Set) probe() error {
	dir, err := os.MkdirTemp("", "stockade-umask-*")
	if err != nil {
		return err
	}
	s.umask, err = umaskIn(dir)
	return errors.Join(err, os.Remove(dir))
}

// umaskIn returns the umask of the process. It makes a file in dir and looks at its mode,
// because no other way without a change of the umask works on all hosts.
func umaskIn(dir string) (fs.FileMode, error) {
	name := filepath.Join(dir, "umask")
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fs.ModePerm)
	if err != nil {
		return 0, err
	}
	fi, err := file.Stat()
	if err := errors.Join(err, file.Close(), os.Remove(name)); err != nil {
		return 0, err
	}
	return fs.ModePerm &^ fi.Mode().Perm(), nil
}

// file makes the arena's file in the private directory.
func (s *Set) file() (*os.File, error) {
	name := "content-" + rand.Text()
	f, err := s.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	// If the host cannot remove an open file, Drop removes it.
	_ = s.root.Remove(name)
	return f, nil
}

// Dir returns the path of the private directory; empty if there is none. Users of a tree must
// not be able to reach it.
func (s *Set) Dir() string { return s.dir }

// Failure returns the error of the latest call of Fail, or nil.
func (s *Set) Failure() error { return s.failure }

// Skipped returns the host's paths for sockets, FIFOs and devices that commands have made in
// overlays. No commit makes such files.
func (s *Set) Skipped() []string { return s.skipped }

// DroppedAttributes returns the host's paths of files and directories whose extended attributes
// or ACLs a command has set or removed in an overlay. No commit makes these changes, because
// [Set.Changes] does not show them.
func (s *Set) DroppedAttributes() []string { return s.droppedAttributes }

// Ended reports whether Commit or Drop has ended the set. The trees cannot be used then.
func (s *Set) Ended() bool { return s.ended.Load() }

// Drop frees everything, and leaves the files of the host as they are. It may be called more
// than once and after Commit, but not before the call has ended. The error is about files that
// could not be closed or removed.
func (s *Set) Drop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.drop()
}

// drop is Drop for callers that hold s.mu, or that are the only users.
func (s *Set) drop() error {
	if s.ended.Swap(true) {
		return nil
	}
	s.endCaches(false)
	errs := []error{s.arena.drop(), s.releaseTrees()}
	if s.root != nil {
		errs = append(errs, s.root.Close())
	}
	if s.dir != "" {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}

// Fail marks a set whose changes are not known or not complete. From then on, until the set
// ends, Changes and Commit only return err.
func (s *Set) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = err
}

// OnCacheDecision registers a function for a process that has written to caches. end is called
// once: with true by KeepCaches, to keep the written files, or with false when the set ends
// before. unasked reports whether the process has seen files that processes without approval
// have built.
func (s *Set) OnCacheDecision(end func(keep bool), unasked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cacheCallbacks, s.sawUnapproved = append(s.cacheCallbacks, end), s.sawUnapproved || unasked
}

// KeepCaches keeps the files that processes have written to caches, see [Set.OnCacheDecision].
func (s *Set) KeepCaches() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endCaches(true)
}

func (s *Set) endCaches(keep bool) {
	for _, end := range s.cacheCallbacks {
		end(keep)
	}
	s.cacheCallbacks = nil
}

// SawUnapproved reports whether unasked was true in a call of [Set.OnCacheDecision].
func (s *Set) SawUnapproved() bool { return s.sawUnapproved }

// Forget removes all trees and layers with their changes. The set stays usable.
func (s *Set) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.releaseTrees()
}

func (s *Set) releaseTrees() (err error) {
	s.budget.memory.reserve(-s.treeBytes)
	for _, l := range s.layers {
		l.Drop()
	}
	for _, tree := range s.trees {
		err = errors.Join(err, tree.root.Close())
		tree.top, tree.displaced = nil, nil
	}
	s.treeBytes, s.layers, s.trees, s.skipped, s.droppedAttributes = 0, nil, nil, nil, nil
	return err
}

// digest is the SHA-256 of the content of a file.
type digest [sha256.Size]byte

// maxDigest limits the bytes of a file whose content a commit compares. Larger files are
// recognized by identity, size, mode and times.
const maxDigest = 4 << 20

// digest returns the digest of file, the origin of n; nil if n was never opened for reading or
// the file has more than maxDigest bytes. fi is the state of file.
func (n *Node) digest(file *os.File, fi os.FileInfo) (*digest, error) {
	if !n.openedToRead || fi.Size() > maxDigest {
		return nil, nil
	}
	sum, err := digestOf(file)
	return &sum, err
}

// digestOf returns the digest of the first maxDigest+1 bytes of a file.
func digestOf(file *os.File) (digest, error) {
	h := sha256.New()
	_, err := io.Copy(h, io.NewSectionReader(file, 0, maxDigest+1))
	return digest(h.Sum(nil)), err
}
