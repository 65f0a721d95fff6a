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

// World is what the guest of one call reaches through the host functions, and what
// they keep of it; what it reaches through WASI is a preview1.World. One guest
// uses it from one goroutine.
type World struct {
	Grant    policy.Grant
	Cwd      string
	Services services.Set
	// Config returns what the module is configured with under a name; nil is nothing.
	Config func(name string) (string, bool)
	// Files is the file system of the call; nil is none.
	Files *wasi.FS
	// Stage takes what its command changes; nil: that changes the host's files.
	Stage *stage.Set
	// Terminal is [services.Command]'s: what the guest reads is for a model.
	Terminal bool
	// Report takes what the guest says, and what is to be said about it. Nil drops
	// that.
	Report func(tool.Progress)
	// Redact takes secrets out of what the guest says before that is cut.
	Redact *redact.Redactor

	alloc     *abi.Allocator // of the guest; nil until a result needs it
	search    *search.Search // that was begun and not collected
	hostCalls uint64
	logBytes  int
	reports   int

	placeholders services.Placeholders // once they are asked for
	// TimedOut is how the command ended if it ran out of time: the call then counts
	// as timed out whatever the guest makes of it.
	TimedOut *services.CommandResult
	// HistoryErr is why the command of the call did not run, even if the guest ignores the error:
	// the call can begin again.
	HistoryErr *policy.HistoryError
	// Notes are remarks about the command.
	Notes []string
	// RawOutput is as of [services.CommandResult].
	RawOutput []byte
}

// End ends what the guest has left behind, and waits for that. It is called
// when the guest does not run any more and before Files is closed. What is owed
// goes to charge. An error is a mistake of ours.
func (w *World) End(charge func(units uint64)) error {
	if w.search == nil {
		return nil
	}
	owed, err := w.search.Abandon()
	w.search = nil
	charge(owed)
	return err
}

// CountHostCall counts a call from the guest into the host. The error is why it ends; it
// wraps [ErrHostCalls].
func (w *World) CountHostCall() error {
	w.hostCalls++
	if limit := w.Grant.Limits().HostCalls; w.hostCalls > limit {
		return fmt.Errorf("%w: %d", ErrHostCalls, limit)
	}
	return nil
}

// whyDenied explains why a function refuses, or is empty. No world is that of a module
// that initialises.
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
