package policy

import (
	"context"

	"github.com/stockade-dev/stockade/host/tool"
)

// Staged holds the changes that a call has made on a stage, while the host's files are
// unchanged. The owner must end it with Commit or Drop. It is used by one goroutine at a time.
type Staged interface {
	// Changes returns the changes that a commit would make, sorted by path. ctx cancels it.
	Changes(ctx context.Context) ([]tool.Change, error)
	// Commit makes all changes or none. The grant must be for the same call, and not a
	// rehearsal. The error wraps [ErrChanged] if the host's files have changed since the call
	// saw them. If it wraps [ErrUntidy], all changes are made.
	Commit(ctx context.Context, grant Grant) error
	// Drop discards the changes. After a commit it does nothing.
	Drop() error
	// Refresh accepts files of the host that were replaced or touched since Changes, but have the
	// same content. It reports whether it has accepted any.
	Refresh(ctx context.Context) bool
	// KeepCaches makes what a process has written to caches of toolchains visible to later calls.
	// It is called once the call is allowed; otherwise the content is dropped with the call.
	KeepCaches()
	// SawUnapproved reports whether the process has seen files that processes without approval
	// have built.
	SawUnapproved() bool
}
