// Package services is the vocabulary of what a guest may have done outside of its
// sandbox: start a process, make a request, use a secret.
//
// An effect is what a host function asks of a service. The request and the
// answer are plain values; whatever is not an answer is an error, and an [Error]
// where a caller tells its kind apart. A service gets the policy.Grant of the
// call and checks it by itself, so that nobody can forget to.
//
// [Set] are the services of a sandbox: package jail starts processes,
// package egress makes requests, package secret keeps secrets. What a guest gets
// of an answer or an error is for package hostmod to say.
package services

import (
	"context"
	"net/url"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/stage"
	"github.com/stockade-dev/stockade/host/tool"
)

// Set are what the host functions stand on. One that is nil is granted to
// nobody. They are safe for concurrent use.
type Set struct {
	Exec    Exec
	HTTP    HTTP
	Secrets Secrets
}

// Exec starts the one process that a grant allows.
type Exec interface {
	// Run returns when the process has ended. A command that fails, is killed or
	// runs out of time has ended; an error means that it was not started. The
	// kinds of that are Denied and NotFound (there is no such program).
	Run(ctx context.Context, grant policy.Grant, cmd Command) (CommandResult, error)
}

// Command is a process to start.
type Command struct {
	Argv []string
	Dir  string // absolute
	// Timeout and MaxOutput lower the grant's limits; 0 leaves them as they are.
	Timeout   time.Duration
	MaxOutput int // bytes of each stream that are kept, half of them from its end
	// MergeStderr sends both streams to Stdout in the order of writing.
	MergeStderr bool
	// RenderTerminal asks for the text that a terminal shows of each stream. False: its bytes.
	RenderTerminal bool
	// Stage takes what the process changes in files, of which the host then has
	// nothing. Nil: it changes the host's.
	Stage *stage.Set
	// OnOutput gets the beginning of what the process writes, without secrets, while it
	// runs: of a process that runs again, the first time. Nil: nobody looks.
	OnOutput func(text string)
}

// CommandResult is the end and the output of a process. Of a long text, the beginning and the end are kept.
type CommandResult struct {
	Code      *int // nil when a signal ended the process
	Signal    *int
	TimedOut  bool          // its deadline has passed
	CPU       time.Duration // of the user and of the system
	Stdout    []byte
	Stderr    []byte
	RawOutput []byte // the bytes of the streams that a terminal shows in another way
	Truncated bool   // there was more than was kept
	// Notes are for whoever reads the result: what was hidden from the process, what
	// it has changed, what of that was taken back.
	Notes []string
}

// HTTP makes the requests that a grant allows.
type HTTP interface {
	// Fetch makes a request to the hosts of the grant's network, within its limits
	// and on its account. An answer of any status is no error. The request ends
	// with ctx at the latest. Its errors have every kind but NotFound.
	Fetch(ctx context.Context, grant policy.Grant, req Request) (*Response, error)
}

// Request is what a guest wants to be sent.
type Request struct {
	Method  string
	URL     string // absolute, http or https
	Headers [][2]string
	Body    []byte        // nil: none
	Timeout time.Duration // of the whole; 0, or more than the call's limit: that limit
	// MaxBytes is how much of the body is kept; of more, the beginning. 0, or more
	// than the call's limit: an answer over that limit is an error.
	MaxBytes int
	// Fill puts the values of secrets in the place of their placeholders. What it
	// changes is sent with this request, and with none that a redirect leads to. A
	// header that it changes has one value, and no part of the answer is asked for
	// then. Authorization is sent only if Fill has changed it. Nil: the call has no
	// placeholders.
	Fill Fill
}

// Fill returns the headers of a request with what the guest may not see in them,
// or an error. It changes nothing that it is given.
type Fill func(u *url.URL, headers map[string][]string, body []byte) (map[string][]string, error)

// Response is the last answer, after all redirects, without the secrets that are
// known, and without the length and the digests of a body that holds one, or may.
type Response struct {
	Status    int
	URL       string
	Headers   [][2]string // sorted by name
	Body      []byte
	Truncated bool // there is more, or it did not come in time
}

// Secrets makes the placeholders of calls.
type Secrets interface {
	// Placeholders returns those of a new call that was granted these secrets.
	Placeholders(granted []tool.Secret) Placeholders
}

// Placeholders are those of one call: what stands for a value inside the guest,
// and the only way from there to the value. They are safe for concurrent use.
type Placeholders interface {
	// Placeholder returns a text that stands for a secret. The kinds of its errors
	// are Denied and NotFound (nobody has set the secret); the text of any other
	// error is for the person, and not for the guest.
	Placeholder(ctx context.Context, name string) (string, error)
	// Fill is a [Fill] that returns an error if a placeholder is where no value may
	// go.
	Fill(u *url.URL, headers map[string][]string, body []byte) (map[string][]string, error)
}
