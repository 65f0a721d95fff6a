package sandbox

import (
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/stage"
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
