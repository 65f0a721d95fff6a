package hostmod

import (
	"context"

	"github.com/stockade-dev/stockade/host/effect"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/redact"
	"github.com/stockade-dev/stockade/host/sandbox/search"
	"github.com/stockade-dev/stockade/host/sandbox/wasi"
)

// Call is one call in progress, as the host functions see it. One guest uses
// it from one goroutine.
type Call struct {
	Grant    policy.Grant
	Cwd      string
	Services effect.Services
	// Files is the file system of the call; nil is none.
	Files *wasi.FS
	// Log takes the guest's messages; Progress its progress. Nil drops them.
	Log      func(level, message string)
	Progress func(done uint64, total *uint64, note string)
	// Redact takes secrets out of both before they are cut.
	Redact *redact.Redactor

	search    *search.Search // that was begun and not collected
	hostCalls uint64
	logBytes  int
	reports   int

	placeholders effect.Placeholders // once they are asked for
	// TimedOut is the outcome of the command if the command ran out of time:
	// the call then counts as timed out whatever the guest makes of it.
	TimedOut *effect.Ended
}

// End ends what the guest has left behind, and waits for that. It is called
// when the guest does not run any more and before Files is closed. What is owed
// goes to charge. An error is a mistake of ours.
func (c *Call) End(charge func(units uint64)) error {
	if c.search == nil {
		return nil
	}
	owed, err := c.search.Abandon()
	c.search = nil
	charge(owed)
	return err
}

type callKey struct{}

// WithCall returns a context in which the host functions act for c.
func WithCall(ctx context.Context, c *Call) context.Context {
	return context.WithValue(ctx, callKey{}, c)
}

func callFrom(ctx context.Context) *Call {
	c, _ := ctx.Value(callKey{}).(*Call)
	return c
}
