package wasi

import (
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

	"github.com/stockade-dev/stockade/host/beneath"
)

// StageOptions says where staged content is kept. The zero value of a field is
// its default, a negative one is an error.
type StageOptions struct {
	// Dir is an existing directory, absolute and clean, in which the stage
	// makes a private one for what does not fit in memory. It may be inside of
	// a mount: the guest never sees the private one. Empty: memory only, and
	// what does not fit there is ENOSPC.
	Dir string
	// MemoryBytes is how much content stays in memory. Default 1 MiB, or 64 MiB
	// without Dir.
	MemoryBytes int64
	// MaxBytes is how much content there may be in all, counted in blocks of
	// 4 KiB. More is ENOSPC. Default 4 GiB.
	MaxBytes int64
	// Budget is shared with other stages. What it has no room for is ENOSPC.
	// Default: no limit beside those above.
	Budget *Budget
}

// Stage takes what one guest changes in its writable mounts, so that the guest
// sees it and the host does not. When the guest has ended, [Stage.Changes] says
// what it is, and [Stage.Commit] or [Stage.Drop] ends the stage; neither needs
// the FS to be open still. None of the three may be called while the guest
// runs.
type Stage struct {
	// Fixed at creation.
	dir   string   // the private directory; empty without one
	root  *os.Root // of dir; no guest names anything in it
	umask fs.FileMode
	arena *arena

	budget *Budget
	tree   int64 // of maxTreeBytes

	before  func(op, path string) error // of a test, before each step of a commit
	inSteps bool                        // of a test: as if exchange were not there

	layers []*layer // fixed when the FS is made

	over atomic.Bool
	mu   sync.Mutex        // one of Changes, Commit and Drop at a time
	err  error             // of Commit
	told map[identity]bool // what Changes has said last; nil if it was not called
	done bool              // by a commit that succeeded
}

const (
	defaultStageMemory     int64 = 1 << 20
	defaultStageMemoryOnly int64 = 64 << 20
	defaultStageBytes      int64 = 4 << 30
)

// NewStage makes a stage for one FS. Nil options are the zero value. The
// caller must Commit or Drop the result.
func NewStage(opts *StageOptions) (*Stage, error) {
	var o StageOptions
	if opts != nil {
		o = *opts
	}
	if o.MemoryBytes < 0 || o.MaxBytes < 0 {
		return nil, fmt.Errorf("stage: negative limit in %+v", o)
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = defaultStageBytes
	}
	if o.MemoryBytes == 0 {
		o.MemoryBytes = defaultStageMemory
		if o.Dir == "" {
			o.MemoryBytes = defaultStageMemoryOnly
		}
	}
	if o.Budget == nil {
		o.Budget = NewBudget(0, 0)
	}
	s := &Stage{arena: &arena{memory: o.MemoryBytes, limit: o.MaxBytes, budget: o.Budget}, budget: o.Budget}
	if o.Dir == "" {
		if err := s.probe(); err != nil {
			return nil, fmt.Errorf("stage: %w", err)
		}
		return s, nil
	}
	if err := checkHostPath(o.Dir); err != nil {
		return nil, fmt.Errorf("stage %q: %w", o.Dir, err)
	}
	if err := s.open(o.Dir); err != nil {
		_ = s.Drop()
		return nil, fmt.Errorf("stage: %w", err)
	}
	return s, nil
}

func (s *Stage) open(parent string) error {
	dir, err := os.MkdirTemp(parent, ".stockade-stage-*") // mode 0700
	if err != nil {
		return err
	}
	s.dir = dir
	if s.root, err = os.OpenRoot(dir); err != nil {
		return err
	}
	s.arena.create = s.file
	s.umask, err = umaskIn(s.root)
	return err
}

// probe finds the umask without a directory of its own.
func (s *Stage) probe() error {
	dir, err := os.MkdirTemp("", "stockade-umask-*")
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return errors.Join(err, os.Remove(dir))
	}
	s.umask, err = umaskIn(root)
	return errors.Join(err, root.Close(), os.Remove(dir))
}

// umaskIn makes a file: the only way to learn the umask of the process without
// changing it is to see what it leaves.
func umaskIn(root *os.Root) (fs.FileMode, error) {
	file, err := root.OpenFile("umask", os.O_CREATE|os.O_EXCL|os.O_WRONLY, newDirMode)
	if err != nil {
		return 0, err
	}
	fi, err := file.Stat()
	if err := errors.Join(err, file.Close(), root.Remove("umask")); err != nil {
		return 0, err
	}
	return newDirMode &^ fi.Mode().Perm(), nil
}

// file makes the file for what does not fit in memory.
func (s *Stage) file() (*os.File, error) {
	name := "content-" + rand.Text()
	f, err := s.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	// Where an open file cannot be removed, Drop does it.
	_ = s.root.Remove(name)
	return f, nil
}

// attach makes the writable mounts of an FS staged.
func (s *Stage) attach(f *FS) error {
	switch {
	case s.ended():
		return errors.New("stage: it has ended")
	case s.layers != nil:
		return errors.New("stage: it is used already")
	}
	s.layers = []*layer{}
	for i, m := range f.mounts {
		for _, other := range f.mounts[:i] {
			// Each would show the changes of the other too late.
			if (m.write || other.write) && beneath.SameFile(m.info, other.info) {
				return fmt.Errorf("stage: %s and %s are one directory", m.host, other.host)
			}
		}
		if !m.write {
			continue
		}
		l, err := s.newLayer(m)
		if err != nil {
			return fmt.Errorf("stage %s: %w", m.host, err)
		}
		m.layer = l
		s.layers = append(s.layers, l)
	}
	return nil
}

// ended reports whether the guest can do nothing with it any more.
func (s *Stage) ended() bool { return s.over.Load() }

// Drop frees everything and leaves the host's files as they are. It may be
// called at any time when the guest has ended, more than once, and after
// Commit.
func (s *Stage) Drop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.drop()
}

func (s *Stage) drop() error {
	if s.over.Swap(true) {
		return nil
	}
	errs := []error{s.arena.drop()}
	s.budget.memory.take(-s.tree)
	for _, l := range s.layers {
		errs = append(errs, l.root.Close())
		l.top, l.away = nil, nil
	}
	if s.root != nil {
		errs = append(errs, s.root.Close())
	}
	if s.dir != "" {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}

// hostPath is a name below a mount as the host has it.
func (l *layer) hostPath(rel string) string {
	return filepath.Join(l.m.host, filepath.FromSlash(rel))
}

// digest is the SHA-256 of a file.
type digest [sha256.Size]byte

// maxDigest is the largest file whose content is looked at again by a commit;
// larger ones are known by identity, size and time.
const maxDigest = 4 << 20

// digest is that of the original, if the guest has read that and it is not too
// large.
func (n *node) digest(file *os.File, fi os.FileInfo) (*digest, error) {
	if !n.read || fi.Size() > maxDigest {
		return nil, nil
	}
	sum, err := digestOf(io.NewSectionReader(file, 0, maxDigest+1))
	return &sum, err
}

func digestOf(r io.Reader) (sum digest, _ error) {
	h := sha256.New()
	_, err := io.Copy(h, r)
	return digest(h.Sum(nil)), err
}
