package policy

import (
	"context"

	"github.com/stockade-dev/stockade/host/tool"
)

// Staged is what a call has changed on a stage, where the host's files are
// still as they were. Whoever has one must end it, by Commit or by Drop. It is
// used by one goroutine at a time.
type Staged interface {
	// Changes lists what a commit would do, sorted by path. ctx ends it.
	Changes(ctx context.Context) ([]tool.Change, error)
	// Commit makes all changes or none, under a grant for the same call that is
	// not a rehearsal. It fails with [ErrChanged] if the host's files are not
	// any more what the call has seen. Where an error wraps [ErrUntidy], all
	// changes are made.
	Commit(ctx context.Context, grant Grant) error
	// Drop forgets the changes; after a commit it does nothing.
	Drop() error
}

// StagedCaches is a [Staged] of a call that has run a process. What the process has written to
// caches of toolchains waits for the decision, too.
type StagedCaches interface {
	// KeepCaches lets later calls have what was written to caches. It is called once the call is
	// allowed; otherwise it is dropped with the call.
	KeepCaches()
	// SawUnapproved reports whether the process has seen what processes without approval have built.
	SawUnapproved() bool
}
