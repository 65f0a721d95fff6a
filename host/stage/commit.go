package stage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/stockade-dev/stockade/host/policy"
)

// ErrDropped is the error of a commit after [Set.Drop].
var ErrDropped = errors.New("the stage was dropped")

// CommitError is the error of a commit that was begun. Unless it lists
// something, everything is as it was before.
type CommitError struct {
	Op   string // what was being done
	Path string // to what, on the host
	Err  error
	// Left names what could not be put back, and why. If Done is set, the
	// changes are all made, and this is what could not be tidied up.
	Left []string
	Done bool
}

func (e *CommitError) Error() string {
	s := fmt.Sprintf("commit: %s %s: %v", e.Op, e.Path, e.Err)
	if len(e.Left) > 0 {
		s += "; left behind: " + strings.Join(e.Left, "; ")
	}
	return s
}

func (e *CommitError) Unwrap() error { return e.Err }

// Commit makes the changes on the host, all or none. It is refused, with an
// error that wraps [policy.ErrChanged], if anything that was changed, replaced or
// removed, or the place of something new, is no longer what was seen, or if it
// would do anything else than [Set.Changes] has listed last. An error later on
// puts everything back; see [CommitError].
//
// A commit that succeeded ends the set, and further calls return nil. After
// an error the set is as before: Drop it, or try again. ctx can end a commit
// until names are exchanged.
func (s *Set) Commit(ctx context.Context) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.done:
		return s.err
	case s.Ended():
		return ErrDropped
	}
	c := &commit{ctx: ctx, s: s, dirs: map[*Node]*handle{}, sources: map[*Node]location{}, movedTo: map[*Node]location{}, cursors: map[*Tree]*Cursor{}, journal: journal{set: s}}
	defer c.close()
	err = c.run()
	_ = c.journal.end() // not where it panics
	if err != nil {
		if left, ok := errors.AsType[*CommitError](err); ok && left.Done {
			s.done, s.err = true, err
			NoteWrite()
			_ = s.drop()
		}
		return err
	}
	s.done = true
	NoteWrite()
	_ = s.drop() // nothing in it is needed any more
	return nil
}

// commit is one attempt.
type commit struct {
	ctx     context.Context
	s       *Set
	all     []change
	dirs    map[*Node]*handle  // directories, of the host and prepared
	sources map[*Node]location // what was prepared or moved aside

	op, path      string             // what is being done, for the error
	doneSteps     []*step            // what was done, in order
	preparedSteps []*step            // what was prepared
	removals      []removal          // what is to be removed in the end
	movedTo       map[*Node]location // where directories are that are not where they were
	finalModes    []finalMode        // the deepest first
	journal       journal
	cursors       map[*Tree]*Cursor
}

func (c *commit) close() {
	for _, cur := range c.cursors {
		cur.Close()
	}
	for _, h := range c.dirs {
		h.close()
	}
}

// begin says what is done next. It is where tests let things go wrong.
func (c *commit) begin(op, path string) error {
	c.op, c.path = op, path
	if c.s.stepHook != nil {
		return c.s.stepHook(op, path)
	}
	return nil
}

// beginAt is begin with a node, and says where that is.
func (c *commit) beginAt(op string, tree *Tree, n *Node) (location, error) {
	if err := c.begin(op, tree.hostPath(n.Path())); err != nil {
		return location{}, err
	}
	h, err := c.dir(tree, n.parent)
	return location{h, n.name}, err
}

func (c *commit) run() error {
	if c.s.failure != nil {
		return c.s.failure
	}
	var err error
	if c.all, err = c.s.changes(c.ctx); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	if c.s.lastListed != nil && !maps.Equal(c.s.lastListed, changeSet(c.all)) {
		return fmt.Errorf("commit: %w: what is to be changed is not what was listed", policy.ErrChanged)
	}
	if err := c.verify(); err != nil {
		return err
	}
	for _, phase := range []func() error{c.unlock, c.prepare, c.verify, c.apply, c.recheck, c.noteModes} {
		if err := phase(); err != nil {
			return c.rollBack(err)
		}
	}
	if err := c.journal.write(journalLine{Done: true}); err != nil {
		return c.rollBack(err)
	}
	return c.tidy()
}

func (c *commit) changedError(path, how string) error {
	return fmt.Errorf("commit: %s: %w: %s", path, policy.ErrChanged, how)
}
