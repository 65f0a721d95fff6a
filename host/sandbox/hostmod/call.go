package hostmod

import (
	"context"
	"errors"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/sandbox/abi"
	"github.com/stockade-dev/stockade/host/sandbox/search"
	"github.com/stockade-dev/stockade/host/sandbox/wasi"
)

// Exec starts the one process that a grant allows.
type Exec interface {
	Run(ctx context.Context, grant policy.Grant, cmd Command) (Outcome, error)
}

// Command is what exec.run asks for.
type Command struct {
	Argv        []string
	Dir         string // absolute
	Timeout     time.Duration
	MaxOutput   int // bytes of each stream
	MergeStderr bool
}

// Outcome is what became of a process.
type Outcome struct {
	Code      *int // exit status, unless a signal ended the process
	Signal    *int
	TimedOut  bool
	Stdout    []byte
	Stderr    []byte
	Truncated bool
}

// ErrCommandNotFound is returned by Exec when there is no such program.
var ErrCommandNotFound = errors.New("command not found")

// ErrDenied is wrapped by a service that refuses.
var ErrDenied = errors.New("denied")

// Services are what the host functions stand on.
type Services struct {
	Exec    Exec
	HTTP    HTTP
	Secrets Secrets
}

// Call is one call in progress, as the host functions see it. One guest uses
// it from one goroutine.
type Call struct {
	Grant    policy.Grant
	Cwd      string
	Services Services
	// Files is the file system of the call; nil is none.
	Files *wasi.FS
	// Log takes the guest's messages; Progress its progress. Nil drops them.
	Log      func(level, message string)
	Progress func(done uint64, total *uint64, note string)
	// Unset takes the name of a secret that the guest asks for and nobody has set.
	// Nil drops it.
	Unset func(secret string)
	// Redact takes secrets out of both before they are cut; nil knows none.
	Redact abi.Redactor

	search    *search.Search // that was begun and not collected
	hostCalls uint64
	logBytes  int
	reports   int

	placeholders Placeholders // once they are asked for
	// TimedOut is the outcome of the command if the command ran out of time:
	// the call then counts as timed out whatever the guest makes of it.
	TimedOut *Outcome
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
