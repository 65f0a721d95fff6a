package stage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/stockade-dev/stockade/host/policy"
)

// ErrDropped is returned by [Set.Commit] after [Set.Drop].
var ErrDropped = errors.New("the stage was dropped")

// CommitError is the error of a commit that may have begun to change the host. If Left is
// empty, everything on the host is as it was before.
type CommitError struct {
	Op   string // the operation that failed
	Path string // its file or directory on the host; "the commit" if Done is set
	Err  error
	// Left describes the steps that could not be put back, with reasons, and names originals
	// that have other names now. If Done is set, all changes are made, and Left lists what
	// could not be tidied up.
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

// Commit makes the changes on the host, all or none. It is refused if anything that was
// changed, replaced or removed, or the place of something new, differs from what the call has
// seen, or if the changes are not those that the latest [Set.Changes] has listed. The error
// then wraps [policy.ErrChanged]. A later error puts everything back; see [CommitError].
//
// A commit that has made all changes ends the set, and further calls return its result. After
// any other error the set is as before: Drop it, or try again. ctx can cancel a commit until
// names are exchanged.
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
	_ = c.journal.end() // not deferred: after a panic the journal is needed
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

// commit is one attempt of [Set.Commit].
type commit struct {
	ctx     context.Context
	s       *Set
	all     []change
	dirs    map[*Node]*handle  // open directories: of the host, and prepared ones
	sources map[*Node]location // places from which place moves nodes, prepared or moved aside; never updated

	op, path      string    // the current operation and its file, for the error
	doneSteps     []*step   // steps that were done, in order, without those in preparedSteps
	preparedSteps []*step   // steps that made files, and steps of unlock
	removals      []removal // files and directories that tidy removes
	// movedTo holds the present places of nodes that the commit has moved, except originals
	// that it has exchanged, and of directories that it has made. currentPath expects other
	// nodes of the host at their old names in their old directories.
	movedTo    map[*Node]location
	finalModes []finalMode // the deepest directory first
	journal    journal
	cursors    map[*Tree]*Cursor // for lstat
}

func (c *commit) close() {
	for _, cur := range c.cursors {
		cur.Close()
	}
	for _, h := range c.dirs {
		h.close()
	}
}

// begin sets the operation and the path that errors name. In tests a hook can make it fail.
func (c *commit) begin(op, path string) error {
	c.op, c.path = op, path
	if c.s.stepHook != nil {
		return c.s.stepHook(op, path)
	}
	return nil
}

// beginAt calls begin for a node, and returns its location on the host after the commit.
func (c *commit) beginAt(op string, tree *Tree, n *Node) (location, error) {
	if err := c.begin(op, tree.hostPath(n.Path())); err != nil {
		return location{}, err
	}
	h, err := c.dir(tree, n.parent)
	return location{h, n.name}, err
}

// run does all phases. A failure after the first verify and before tidy puts everything back.
func (c *commit) run() error {
	if c.s.failure != nil {
		return c.s.failure
	}
	err := c.begun()
	if errors.Is(err, policy.ErrChanged) && c.s.refresh(c.ctx) {
		err = c.begun()
	}
	if err != nil {
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

// begun lists the changes and compares them, and the host, with what the call has seen.
func (c *commit) begun() (err error) {
	if c.all, err = c.s.changes(c.ctx); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	if c.s.lastListed != nil && !maps.Equal(c.s.lastListed, changeSet(c.all)) {
		return fmt.Errorf("commit: %w: the changes are not those that were listed", policy.ErrChanged)
	}
	return c.verify()
}

// changedError returns an error that wraps [policy.ErrChanged]. how describes the difference
// to the earlier state of the file.
func (c *commit) changedError(path, how string) error {
	return fmt.Errorf("commit: %s: %w: %s", path, policy.ErrChanged, how)
}
