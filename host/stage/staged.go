package stage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/tool"
)

// Staged holds the changes of one call. It implements [policy.Staged].
type Staged struct {
	*Set
	Call    tool.Call
	Digest  string        // digest of the call's module; empty: the host carries it out
	Timeout time.Duration // time limit of Changes, which begins anew there
	// CommitTimeout is the least time limit of Commit, whose grant may have a higher one.
	CommitTimeout time.Duration
	Trial         bool // set if the changes may be those of several calls: they are never committed
}

// Changes implements policy.Staged.
func (s *Staged) Changes(ctx context.Context) ([]tool.Change, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	return s.Set.Changes(ctx)
}

// Commit implements policy.Staged. The time limit applies until it begins to replace files.
func (s *Staged) Commit(ctx context.Context, grant policy.Grant) error {
	if err := grant.Check(s.Call, s.Digest); err != nil {
		return fmt.Errorf("commit %s: %w", s.Call.Tool, err)
	}
	if grant.Rehearsal() || s.Trial {
		return fmt.Errorf("commit %s: %w", s.Call.Tool, policy.ErrNoGrant)
	}
	ctx, cancel := context.WithTimeout(ctx, max(grant.Limits().Timeout, s.CommitTimeout))
	defer cancel()
	return markUntidy(s.Set.Commit(ctx))
}

// markUntidy makes the error of a commit that was made nevertheless wrap policy.ErrUntidy.
func markUntidy(err error) error {
	if left, ok := errors.AsType[*CommitError](err); ok && left.Done {
		return fmt.Errorf("%w: %w", policy.ErrUntidy, err)
	}
	return err
}
