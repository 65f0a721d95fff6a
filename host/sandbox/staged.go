package sandbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/stage"
	"github.com/stockade-dev/stockade/host/tool"
)

// Limits of the uncommitted changes of all calls together, in bytes; more is ENOSPC.
const (
	stagedMemoryBytes = 256 << 20
	stagedDiskBytes   = 4 << 30
)

// newStage returns the stage for a call that may write or start a process; nil: it may do
// neither, or its process changes files directly.
func (s *Sandbox) newStage(grant policy.Grant) (*stage.Set, error) {
	exec, starts := grant.Exec()
	mounts := grant.Mounts()
	switch {
	case starts && exec.Changes == policy.ChangesDirect:
		return nil, nil
	case starts:
		mounts = exec.Mounts
	}
	for _, m := range mounts {
		if m.Write || starts {
			dir := ""
			if s.opts.StageDir != nil {
				dir = s.opts.StageDir()
			}
			return stage.New(&stage.Options{Dir: dir, Budget: s.stageBudget})
		}
	}
	return nil, nil
}

// StageBudget returns the limit of all uncommitted changes, for callers that stage changes of
// other kinds.
func (s *Sandbox) StageBudget() *stage.Budget { return s.stageBudget }

// stagedChanges holds the changes of one call. It implements policy.Staged.
type stagedChanges struct {
	set     *stage.Set
	call    tool.Call
	digest  string        // digest of the call's module
	timeout time.Duration // time limit of Changes
	trial   bool          // set if the changes may be those of several calls: they are never committed
}

// Changes implements policy.Staged. It ends with an error after the time limit of the call,
// which begins anew here.
func (s *stagedChanges) Changes(ctx context.Context) ([]tool.Change, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return s.set.Changes(ctx)
}

// Commit implements policy.Staged. The time limit of the grant applies until it begins to
// replace files.
func (s *stagedChanges) Commit(ctx context.Context, grant policy.Grant) error {
	if err := grant.Check(s.call, s.digest); err != nil {
		return fmt.Errorf("commit %s: %w", s.call.Tool, err)
	}
	if grant.Rehearsal() || s.trial {
		return fmt.Errorf("commit %s: %w", s.call.Tool, policy.ErrNoGrant)
	}
	ctx, cancel := context.WithTimeout(ctx, grant.Limits().Timeout)
	defer cancel()
	return markUntidy(s.set.Commit(ctx))
}

// markUntidy makes the error of a commit that was made nevertheless wrap policy.ErrUntidy.
func markUntidy(err error) error {
	if left, ok := errors.AsType[*stage.CommitError](err); ok && left.Done {
		return fmt.Errorf("%w: %w", policy.ErrUntidy, err)
	}
	return err
}

// Refresh implements policy.StagedRefresh.
func (s *stagedChanges) Refresh(ctx context.Context) bool { return s.set.Refresh(ctx) }

// Drop implements policy.Staged.
func (s *stagedChanges) Drop() error { return s.set.Drop() }

// KeepCaches implements policy.StagedCaches.
func (s *stagedChanges) KeepCaches() { s.set.KeepCaches() }

// SawUnapproved implements policy.StagedCaches.
func (s *stagedChanges) SawUnapproved() bool { return s.set.SawUnapproved() }
