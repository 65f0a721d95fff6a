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

// Options says where staged content is kept. The zero value of a field is
// its default, a negative one is an error.
type Options struct {
	// Dir is an existing directory, absolute and clean, in which the set makes a
	// private one for what does not fit in memory, see [Set.Dir]. Empty: memory
	// only, and what does not fit there is ENOSPC.
	Dir string
	// MemoryBytes is how much content stays in memory. Default 1 MiB, or 64 MiB
	// without Dir. In all there may be 4 GiB, counted in blocks of 4 KiB, and
	// more is ENOSPC.
	MemoryBytes int64
	// Budget is shared with other sets. What it has no room for is ENOSPC.
	// Default: no limit beside those above.
	Budget *Budget
}

// Set is what one call changes, in the directories that are its trees, and what
// the host does not have yet. When the call has ended, [Set.Changes] says what
// it is, and [Set.Commit] or [Set.Drop] ends the set. None of the three may be
// called while somebody uses a tree.
type Set struct {
	// Fixed at creation.
	dir    string   // the private directory; empty without one
	root   *os.Root // of dir; no name in it comes from a call
	umask  fs.FileMode
	arena  *arena
	budget *Budget

	stepHook   func(op, path string) error // of a test, before each step of a commit
	noExchange bool                        // of a test: as if exchange were not there

	trees             []*Tree
	layers            []*Layer // of overlays
	skipped           []string // that they have, and are not for the host
	droppedAttributes []string // files whose attributes or ACLs a command has set, see Unkept
	failure           error    // of what they have
	treeBytes         int64    // of maxTreeBytes

	cacheCallbacks []func(keep bool) // the callbacks of Then
	sawUnapproved  bool

	ended      atomic.Bool
	mu         sync.Mutex      // one of Changes, Commit and Drop at a time
	err        error           // of Commit
	lastListed map[change]bool // what Changes has said last; nil if it was not called
	done       bool            // by a commit that succeeded
}

const (
	defaultMemory     int64 = 1 << 20
	defaultMemoryOnly int64 = 64 << 20
)

// New makes an empty set. Nil options are the zero value. The caller must Commit
// or Drop the result.
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

// probe finds the umask without a directory of its own.
func (s *Set) probe() error {
	dir, err := os.MkdirTemp("", "stockade-umask-*")
	if err != nil {
		return err
	}
	s.umask, err = umaskIn(dir)
	return errors.Join(err, os.Remove(dir))
}

// umaskIn makes a file: the only way to learn the umask of the process without
// changing it is to see what it leaves.
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

// file makes the file for what does not fit in memory.
func (s *Set) file() (*os.File, error) {
	name := "content-" + rand.Text()
	f, err := s.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	// Where an open file cannot be removed, Drop does it.
	_ = s.root.Remove(name)
	return f, nil
}

// Dir is the private directory; empty without one. Nobody who uses a tree may
// reach it.
func (s *Set) Dir() string { return s.dir }

// Failure is what was given to Fail.
func (s *Set) Failure() error { return s.failure }

// Skipped are the sockets, FIFOs and devices that an overlay has, which no commit
// makes.
func (s *Set) Skipped() []string { return s.skipped }

// DroppedAttributes lists the files and directories of an overlay whose extended attributes or ACLs were
// set. No commit keeps these settings, because nothing would show them.
func (s *Set) DroppedAttributes() []string { return s.droppedAttributes }

// Ended reports whether nothing can be done with the trees any more.
func (s *Set) Ended() bool { return s.ended.Load() }

// Drop frees everything and leaves the host's files as they are. It may be
// called at any time when the call has ended, more than once, and after Commit.
func (s *Set) Drop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.drop()
}

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

// Fail makes the set one of which nothing can be said or done but err: whoever was
// to change it could not.
func (s *Set) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = err
}

// OnCacheDecision calls end once it is known whether to keep what a process has written to caches: with
// true by Keep, or else with false by Drop. unasked says that the process has seen what others
// without approval have built.
func (s *Set) OnCacheDecision(end func(keep bool), unasked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cacheCallbacks, s.sawUnapproved = append(s.cacheCallbacks, end), s.sawUnapproved || unasked
}

// KeepCaches keeps what processes have written to caches, see [Set.OnCacheDecision].
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

// SawUnapproved reports whether a process has seen what others without approval have built.
func (s *Set) SawUnapproved() bool { return s.sawUnapproved }

// Forget makes the set empty.
func (s *Set) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.releaseTrees()
}

// releaseTrees lets go of all trees.
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

// digest is the SHA-256 of a file.
type digest [sha256.Size]byte

// maxDigest is the largest file whose content is looked at again by a commit;
// larger ones are known by identity, size and time.
const maxDigest = 4 << 20

// digest is that of the original, if that was read and is not too large.
func (n *Node) digest(file *os.File, fi os.FileInfo) (*digest, error) {
	if !n.openedToRead || fi.Size() > maxDigest {
		return nil, nil
	}
	sum, err := digestOf(file)
	return &sum, err
}

func digestOf(file *os.File) (digest, error) {
	h := sha256.New()
	_, err := io.Copy(h, io.NewSectionReader(file, 0, maxDigest+1))
	return digest(h.Sum(nil)), err
}
