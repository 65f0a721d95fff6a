package hostmod

import (
	"context"
	"fmt"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/redact"
	"github.com/stockade-dev/stockade/host/sandbox/abi"
	"github.com/stockade-dev/stockade/host/sandbox/search"
	"github.com/stockade-dev/stockade/host/sandbox/wasi"
	"github.com/stockade-dev/stockade/host/services"
	"github.com/stockade-dev/stockade/host/stage"
	"github.com/stockade-dev/stockade/host/tool"
)

// World is the access of one call to the host functions, and their state during the call.
// Access through WASI is a preview1.World. One guest uses a World, from one goroutine.
type World struct {
	Grant    policy.Grant // decides what the call may reach
	Cwd      string       // working directory of the call, on the host
	Services services.Set // do the work of the functions; without its service a function refuses
	// Config returns the value of a setting of the module; false: it is not declared. Nil: the
	// module has no settings.
	Config func(name string) (string, bool)
	Files  *wasi.FS // file system of the call; nil: it has no files
	// Stage receives the changes of the call's command. Nil: they go to the host's files.
	Stage *stage.Set
	// Terminal is the RenderTerminal of [services.Command]: it is set if the output of
	// commands is for a model.
	Terminal bool
	// Report receives messages of the guest, and messages about it. Nil: they are dropped.
	Report func(tool.Progress)
	// Redact removes secrets from messages before they are cut. Nil: there are none.
	Redact *redact.Redactor

	alloc     *abi.Allocator // allocator of the guest; nil until a result needs it
	search    *search.Search // search that was begun and not collected yet; nil: none
	hostCalls uint64         // number of calls into the host so far
	logBytes  int            // bytes logged so far; -1: the limit was exceeded, and nothing more is logged
	reports   int            // number of progress reports so far

	placeholders services.Placeholders // placeholders of the call; nil until the guest asks for one
	// TimedOut is the result of the command if it ran out of time; nil otherwise. The call
	// then counts as timed out, whatever the guest returns.
	TimedOut *services.CommandResult
	// HistoryErr is set if the command did not run because a git history has to be examined
	// first. It is kept even if the guest ignores the error, because the call can start again.
	HistoryErr *policy.HistoryError
	Notes      []string // remarks about the call's commands, for the result
	RawOutput  []byte   // RawOutput of the last command, see [services.CommandResult]
}

// End ends a search that the guest has not collected, and waits for it. Call End after the
// guest has stopped and before Files is closed. charge is called with the units of fuel that
// the search has not paid. An error means a bug of the host.
func (w *World) End(charge func(units uint64)) error {
	if w.search == nil {
		return nil
	}
	owed, err := w.search.Abandon()
	w.search = nil
	charge(owed)
	return err
}

// CountHostCall counts a call from the guest into the host. Above the limit it returns an
// error that wraps [ErrHostCalls] and has to end the guest.
func (w *World) CountHostCall() error {
	w.hostCalls++
	if limit := w.Grant.Limits().HostCalls; w.hostCalls > limit {
		return fmt.Errorf("%w: %d", ErrHostCalls, limit)
	}
	return nil
}

// whyDenied returns the reason why a function refuses; "": it does not refuse. what names its
// service. A nil World means that the module initialises.
func (w *World) whyDenied(granted bool, what string) string {
	switch {
	case w == nil:
		return what + " is not available while the module initialises"
	case !granted:
		return what + " is not granted to this call"
	}
	return ""
}

type worldKey struct{}

// WithWorld returns a context in which the host functions act in w.
func WithWorld(ctx context.Context, w *World) context.Context {
	return context.WithValue(ctx, worldKey{}, w)
}

func worldFrom(ctx context.Context) *World {
	w, _ := ctx.Value(worldKey{}).(*World)
	return w
}
