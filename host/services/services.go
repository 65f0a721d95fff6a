// Package services declares the services that do something for a guest outside of its sandbox:
// start a process, make a request, use a secret.
//
// A host function, which a guest calls, passes a plain request to a service, and gets a plain
// answer or an error; it is an [Error] if the caller needs its kind. Each service gets the
// policy.Grant of the call and checks the grant itself, so that no caller can forget to.
//
// A [Set] holds the services of a sandbox: package jail starts processes, package egress makes
// requests, package secret keeps secrets. Package hostmod decides which part of an answer or
// an error the guest gets.
package services

import (
	"context"
	"net/url"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/stage"
	"github.com/stockade-dev/stockade/host/tool"
)

// Set holds the services that host functions use. A service that is nil is denied to every
// call. The services are safe for concurrent use.
type Set struct {
	Exec    Exec
	HTTP    HTTP
	Secrets Secrets
}

// Exec starts the one process that a grant allows.
type Exec interface {
	// Run runs a process and returns after its end. A process that fails, is killed or runs
	// out of time is no error. An error means that the process was not started (the kind is
	// Denied, or NotFound for the program), or that others kept changing its files.
	Run(ctx context.Context, grant policy.Grant, cmd Command) (CommandResult, error)
}

// Command is a process to start.
type Command struct {
	Argv []string
	Dir  string // working directory, absolute
	// Timeout and MaxOutput lower the grant's limits; 0: the grant's limits hold.
	Timeout        time.Duration // running time after which the process is killed
	MaxOutput      int           // bytes of each stream that are kept: its first and its last half
	MergeStderr    bool          // set if the standard error is part of Stdout, in the order of writing
	RenderTerminal bool          // set if the output is as a terminal would show it; false: as written
	// Stage collects the file changes of the process, so that the host's files stay unchanged.
	// Nil: the process changes the host's files.
	Stage *stage.Set
	// OnOutput gets the beginning of the output while the process runs, without secrets. It is
	// not called without MergeStderr, and not if the process runs again. Nil: nobody looks.
	OnOutput func(text string)
}

// CommandResult is the end and the output of a process. The middle of a long output is left
// out.
type CommandResult struct {
	Code      *int          // exit code; nil: a signal ended the process
	Signal    *int          // nil: the process has exited by itself
	TimedOut  bool          // set if the process was killed because its time was up
	CPU       time.Duration // user and system time together
	Stdout    []byte
	Stderr    []byte   // nil with MergeStderr
	RawOutput []byte   // output as written, if RenderTerminal has changed it; otherwise nil
	Truncated bool     // set if a part of the output was left out
	Notes     []string // notes on hidden paths, changed files, and changes that were taken back
}

// HTTP makes the requests that a grant allows.
type HTTP interface {
	// Fetch makes a request to a host of the grant's network, within the grant's limits,
	// against which it counts. An answer with any status is no error. The request ends with
	// ctx at the latest. Its errors have every kind except NotFound.
	Fetch(ctx context.Context, grant policy.Grant, req Request) (*Response, error)
}

// Request is an HTTP request of a guest.
type Request struct {
	Method  string
	URL     string // absolute, http or https
	Headers [][2]string
	Body    []byte        // nil: none
	Timeout time.Duration // limit for the whole request; 0, or more than the grant's limit: that limit
	// MaxBytes limits the body of the answer, in bytes; the rest is cut off. 0, or more than
	// the grant's limit: a longer answer than that limit is an error.
	MaxBytes int
	// Fill replaces placeholders of secrets by their values. Its changes are sent with this
	// request, and not with the requests of redirects. A header that it changes must have one
	// value, and ranges cannot be requested then. The header Authorization is allowed only if
	// Fill changes it. Nil: the call has no placeholders.
	Fill Fill
}

// Fill returns the headers of a request with the secret values in them, which the guest must
// not see, or an error. It does not change its arguments.
type Fill func(u *url.URL, headers map[string][]string, body []byte) (map[string][]string, error)

// Response is the final answer, after all redirects. Known secrets are taken out, and so are
// the headers with the length and the digests of a body that holds one, or may hold one.
type Response struct {
	Status    int
	URL       string      // URL of the final request
	Headers   [][2]string // name in lower case and value; sorted by name
	Body      []byte
	Truncated bool // set if the body is longer, or its rest did not come in time
}

// Secrets makes the placeholders of calls.
type Secrets interface {
	// Placeholders returns the placeholders of a new call with these granted secrets.
	Placeholders(granted []tool.Secret) Placeholders
}

// Placeholders holds the placeholders of one call: the texts that stand for secret values
// inside the guest, and the only way from a placeholder to its value. It is safe for
// concurrent use.
type Placeholders interface {
	// Placeholder returns the text that stands for a secret. The kinds of its errors are
	// Denied and NotFound (nobody has set the secret). The text of any other error is for the
	// person, and not for the guest.
	Placeholder(ctx context.Context, name string) (string, error)
	// Fill is a [Fill]. It returns an error if a placeholder is where its value is not
	// allowed.
	Fill(u *url.URL, headers map[string][]string, body []byte) (map[string][]string, error)
}
