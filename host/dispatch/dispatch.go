package dispatch

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/redact"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/toolstore"
)

// Runner runs a granted call. *sandbox.Sandbox is one.
type Runner interface {
	// Run returns a result for everything that the guest does, also for its failures. An error
	// means that the host is at fault, or is [policy.ErrAskFirst] or a *[policy.HistoryError].
	// The changes of the call come back staged, and are not made yet. The policy.Staged is nil
	// if nothing was staged, as for a process that changes files directly; and nil or without
	// changes if the call has failed.
	Run(ctx context.Context, grant policy.Grant, mod *tool.Module, call tool.Call, report func(tool.Progress)) (tool.Result, policy.Staged, error)
}

// Preloader is a Runner that can make a module ready before a call of the module has a grant.
type Preloader interface {
	// Preload makes the module ready in the background; it runs nothing of the module.
	Preload(mod *tool.Module)
}

// Approver asks a person. Approve may be called for several calls at once: it puts the
// question behind those that wait and returns at once; wait returns the answer. An answer
// carries the ID of its question. An error, a panic, and an answer to another question
// count as no. When ctx ends, nobody waits for the answer any more.
type Approver interface {
	Approve(ctx context.Context, q policy.Question) (wait func() (policy.Answer, error))
}

// Recorder is the session's log. Append stores events; Emit shows an event without storing it.
type Recorder interface {
	Append(ctx context.Context, drafts ...session.Draft) ([]session.Event, error)
	Emit(d session.Draft)
}

// Options wires a dispatcher. All fields up to Log are required.
type Options struct {
	Catalog  *tool.Catalog
	Policy   *policy.Policy
	Approver Approver
	Runner   Runner
	Log      Recorder
	// SessionID is part of the ID of each question: an answer counts in no other session.
	SessionID string
	Remember  func(policy.Rule) error // saves the rule of a lasting answer; nil: it holds for the session
	// Redact takes secrets out of every result, before the result is recorded and before
	// anybody gets it. Nil: no secrets are known.
	Redact *redact.Redactor
	// HistoryTool is the built-in tool that searches the history of a repository before
	// commands can read the repository. Nil: every history counts as unsearched.
	HistoryTool *tool.Entry
	// Artifact returns the text of an earlier result of the session, by the ID of its call. Nil:
	// no call can read one.
	Artifact func(ctx context.Context, name string) (string, error)
	Undo     Undoer // stages the changes that undo a turn; nil: nothing can be undone
}

// Dispatcher carries out calls. It is safe for concurrent use.
type Dispatcher struct {
	opts          Options
	catalog       atomic.Pointer[tool.Catalog]
	seenFiles     seenFiles
	fuel          *fuel
	counts        counts
	rateLimits    rateLimits
	denials       denials
	rehearsedRuns rehearsedRuns
	repeats       repeats
	openGroups    openGroups
	stores        *toolstore.Stores
}

// New returns a dispatcher for a new session. [Dispatcher.Resume] gives it the state of an
// earlier one.
func New(opts Options) *Dispatcher {
	d := &Dispatcher{
		opts: opts, seenFiles: seenFiles{files: map[string]knownFile{}}, fuel: newFuel(opts.Policy.Limits(), nil),
		counts: counts{byTool: map[string]int{}}, stores: toolstore.New(opts.Policy.Limits(), time.Now),
	}
	d.catalog.Store(opts.Catalog)
	return d
}

// SetCatalog replaces the tools. A call that has already found its tool keeps it.
func (d *Dispatcher) SetCatalog(c *tool.Catalog) { d.catalog.Store(c) }

// Call carries out one call; the end of ctx cancels it. Everything that can go wrong with
// a call is a failed result, recorded like any other. An error means that the host or the
// log is at fault, and that the turn cannot go on.
func (d *Dispatcher) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	return d.start(ctx, call).wait()
}

// start begins to carry out a call, and waits neither for a person nor for the tool.
func (d *Dispatcher) start(ctx context.Context, call tool.Call) *pending {
	p := d.newPending(call)
	go p.drive(ctx)
	return p
}

// newPending returns a call that has not begun.
func (d *Dispatcher) newPending(call tool.Call) *pending {
	p := &pending{
		d: d, call: call, requestedName: call.Tool, state: stateIdle, seen: &d.seenFiles,
		nextMayStart: make(chan struct{}), done: make(chan struct{}),
	}
	p.letNextStart = sync.OnceFunc(func() { close(p.nextMayStart) })
	return p
}
