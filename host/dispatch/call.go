package dispatch

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/tool"
)

// Call is one call on its way. Its methods are safe for concurrent use.
type Call struct {
	d      *Dispatcher
	passed chan struct{} // closed by pass when the call has put its question, or has none to put before it runs
	pass   func()
	done   chan struct{} // closed when result and err are final

	mu    sync.Mutex
	state State

	// The rest belongs to the goroutine of the call until it is done.
	call   tool.Call
	asked  string // the tool's name as the caller wrote it, maybe an alias
	result tool.Result
	err    error

	rehearsing bool
	held       []tool.Progress // what a rehearsed call has said
	heldBytes  int
}

// State is where the call is now.
func (c *Call) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// Done is closed when the call is completed.
func (c *Call) Done() <-chan struct{} { return c.done }

// Wait returns what has come of the call, once it is completed. Everything that
// can go wrong with a call is a failed result, recorded like any other; an
// error means that the host or the log is at fault, and that the turn cannot go
// on.
func (c *Call) Wait() (tool.Result, error) {
	<-c.done
	return c.result, c.err
}

// errCrash is wrapped by the error of a call in which a part of the host has
// crashed.
var errCrash = errors.New("the host crashed")

// drive brings the call to its last state, whatever happens: what fails or
// crashes here ends this call, and neither the process nor the calls beside it.
func (c *Call) drive(ctx context.Context) {
	defer close(c.done)
	defer c.pass()
	c.result, c.err = hostFault(c.call.Tool), errCrash // until more is known
	result, err := contain(func() (tool.Result, error) { return c.carryOut(ctx) })
	if err != nil {
		c.rehearsing, c.held = false, nil
		result = hostFault(c.call.Tool)
	}
	recorded, recordErr := contain(func() (tool.Result, error) { return c.finish(ctx, result) })
	if errors.Is(recordErr, errCrash) {
		recorded = hostFault(c.call.Tool)
	}
	c.result, c.err = recorded, errors.Join(err, recordErr)
	_, err = contain(func() (tool.Result, error) { c.enter(StateCompleted); return tool.Result{}, nil })
	c.err = errors.Join(c.err, err)
}

// contain makes an error of a panic.
func contain(f func() (tool.Result, error)) (result tool.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			result, err = tool.Result{}, fmt.Errorf("%w: %v\n%s", errCrash, p, debug.Stack())
		}
	}()
	return f()
}

// carryOut is the call from its beginning to a result that is not recorded yet.
func (c *Call) carryOut(ctx context.Context) (tool.Result, error) {
	entry, refusal := c.find()
	if refusal != nil {
		return *refusal, nil
	}
	if refusal := c.checkArgs(ctx, entry); refusal != nil {
		return *refusal, nil
	}
	if refusal := c.checkSeen(entry); refusal != nil {
		return *refusal, nil
	}
	c.enter(StateEvaluatingPolicy)
	c.call.Earlier = c.d.counts.take(entry.Name)
	c.call.Files = NamedFiles(c.d.opts.Policy, c.call, entry)
	decision := c.d.opts.Policy.Decide(c.call, entry)
	grant, refusal, err := c.decide(ctx, decision)
	if err != nil {
		return tool.Result{}, err
	}
	if refusal != nil {
		c.d.counts.give(entry.Name)
		return *refusal, nil
	}
	if err := c.intend(ctx, grant, entry); err != nil {
		return tool.Result{}, err
	}
	c.enter(StateExecuting)
	result, err := c.execute(ctx, decision, grant, entry)
	if err == nil {
		c.d.seen.note(c.call, entry, result)
	}
	return result, err
}

// execute runs the tool and makes what it has changed, or drops it.
func (c *Call) execute(ctx context.Context, decision policy.Decision, grant policy.Grant, entry *tool.Entry) (tool.Result, error) {
	budgets := c.d.fuel.budgets(entry.Name)
	result, staged, err := c.d.opts.Runner.Run(ctx, grant.Drawing(budgets...), entry.Module, c.call, c.report)
	if staged != nil {
		defer c.drop(staged)
	}
	if err != nil {
		return tool.Result{}, err
	}
	return c.settle(ctx, decision, grant, result, staged)
}

func (c *Call) find() (*tool.Entry, *tool.Result) {
	catalog := c.d.catalog.Load()
	entry, ok := catalog.Find(c.call.Tool)
	if ok {
		c.call.Tool = entry.Name // an alias stands for its tool from here on
		return entry, nil
	}
	r := tool.Failed(tool.CodeUnknownTool, tool.NotFound, "there is no tool %.80q", c.call.Tool)
	if near := catalog.Nearest(c.call.Tool); near != "" {
		r.Err.Hint = fmt.Sprintf("did you mean %q?", near)
	} else {
		r.Err.Hint = "the tools are: " + strings.Join(catalog.Names(), ", ")
	}
	return nil, &r
}

const maxHintSchema = 8 << 10 // bytes

func (c *Call) cancelled() tool.Result {
	return tool.Failed(tool.CodeCancelled, tool.InternalError, "%s was cancelled before it ran", c.call.Tool)
}

func (c *Call) checkArgs(ctx context.Context, entry *tool.Entry) *tool.Result {
	args, err := entry.Schema.Check(ctx, c.call.Args)
	if err != nil && ctx.Err() != nil {
		r := c.cancelled()
		return &r
	}
	if err != nil {
		r := tool.Failed(tool.CodeInvalidArgs, tool.ValidationFailed, "%s: %v", entry.Name, err)
		if len(entry.Parameters) <= maxHintSchema { // a longer one would only push out what the model knows
			r.Err.Hint = "the schema of the arguments is: " + string(entry.Parameters)
		}
		return &r
	}
	c.call.Args = args
	return nil
}
