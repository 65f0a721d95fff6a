package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

// Runner runs a granted call; the sandbox is one.
type Runner interface {
	// Run returns a result for whatever the guest does and an error when the
	// host is at fault. What the call has changed comes back staged; nil if it
	// has failed, or could not change anything.
	Run(ctx context.Context, grant policy.Grant, mod *tool.Module, call tool.Call, report func(tool.Progress)) (tool.Result, policy.Staged, error)
}

// Approver asks a person. It may be called for several calls at once and
// queues them itself. An error counts as no.
type Approver interface {
	Approve(ctx context.Context, q policy.Question) (policy.Answer, error)
}

// Recorder is the session's log.
type Recorder interface {
	Append(ctx context.Context, drafts ...session.Draft) ([]session.Event, error)
	Emit(d session.Draft)
}

// Redactor takes secrets out of what a call comes to; secret.Redactor is one.
type Redactor interface {
	Text(text string) string
	JSON(data json.RawMessage) json.RawMessage
}

// Options wires a dispatcher. All fields are needed but the last four.
type Options struct {
	Catalog  *tool.Catalog
	Policy   *policy.Policy
	Approver Approver
	Runner   Runner
	Log      Recorder
	// Remember keeps the rule of an answer "always". Nil: such an answer holds
	// for the session.
	Remember func(policy.Rule) error
	// Spent is the fuel that the session has used before, by tool.
	Spent map[string]uint64
	// Calls is how many calls of each tool the session has made before.
	Calls map[string]int
	// Redact takes secrets out of every result, before it is recorded and
	// before anybody gets it. Nil: none are known.
	Redact Redactor
}

// Dispatcher carries out calls. It is safe for concurrent use.
type Dispatcher struct {
	opts    Options
	catalog atomic.Pointer[tool.Catalog]
	seen    seen
	fuel    *fuel
	counts  counts
}

// New returns a dispatcher.
func New(opts Options) *Dispatcher {
	d := &Dispatcher{
		opts: opts, seen: seen{hashes: map[string]string{}}, fuel: newFuel(opts.Policy.Limits(), opts.Spent),
		counts: newCounts(opts.Calls),
	}
	d.catalog.Store(opts.Catalog)
	return d
}

// SetCatalog replaces the tools; calls that are under way keep theirs.
func (d *Dispatcher) SetCatalog(c *tool.Catalog) { d.catalog.Store(c) }

// Definitions returns what the model sees of the tools: not those of which every
// call of its would be denied.
func (d *Dispatcher) Definitions() []tool.Definition {
	catalog := d.catalog.Load()
	return slices.DeleteFunc(catalog.Definitions(), func(def tool.Definition) bool {
		entry, ok := catalog.Find(def.Name)
		return !ok || d.opts.Policy.Hides(entry, tool.CallerAgent)
	})
}

// Call carries out one call. Everything that can go wrong with the call is a
// failed result, recorded like any other; an error means that the host or the
// log is at fault, and that the turn cannot go on.
func (d *Dispatcher) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	c := &carry{d: d, call: call, asked: call.Tool}

	entry, refusal := c.find()
	if refusal != nil {
		return c.finish(ctx, *refusal)
	}
	if refusal := c.checkArgs(entry); refusal != nil {
		return c.finish(ctx, *refusal)
	}
	if refusal := c.checkSeen(entry); refusal != nil {
		return c.finish(ctx, *refusal)
	}
	c.enter(StateEvaluatingPolicy)
	c.call.Earlier = d.counts.take(entry.Name)
	c.call.Files = NamedFiles(d.opts.Policy, c.call, entry)
	decision := d.opts.Policy.Decide(c.call, entry)
	// A call that only changes files runs before it is decided, on a stage.
	decide := c.decide
	if decision.CanRehearse() {
		decide = c.rehearse
	}
	grant, refusal, err := decide(ctx, decision)
	if err != nil {
		return tool.Result{}, err
	}
	if refusal != nil {
		d.counts.give(entry.Name)
		return c.finish(ctx, *refusal)
	}
	if err := c.intend(ctx, grant, entry); err != nil {
		return tool.Result{}, err
	}
	c.enter(StateExecuting)
	result, staged, err := d.opts.Runner.Run(ctx, grant.Drawing(d.fuel.budgets(entry.Name)...), entry.Module, c.call, c.report)
	if err == nil {
		result, err = c.settle(ctx, decision, grant, result, staged)
	}
	if staged != nil {
		c.drop(staged)
	}
	if err != nil {
		result = hostFault(call.Tool)
	}
	d.seen.note(c.call, entry, result)
	result, recordErr := c.finish(ctx, result)
	return result, errors.Join(err, recordErr)
}

// State is a stage of a call.
type State string

// The states.
const (
	StateEvaluatingPolicy   State = "evaluating_policy"
	StateAwaitingPermission State = "awaiting_permission"
	StateExecuting          State = "executing"
	StateCompleted          State = "completed"
)

// carry is one call on its way.
type carry struct {
	d     *Dispatcher
	call  tool.Call
	asked string // the tool's name as the caller wrote it, maybe an alias

	rehearsing bool
	held       []tool.Progress // what a rehearsed call has said
	heldBytes  int
}

func (c *carry) find() (*tool.Entry, *tool.Result) {
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

func (c *carry) checkArgs(entry *tool.Entry) *tool.Result {
	args, err := entry.Schema.Check(c.call.Args)
	if err != nil {
		r := tool.Failed(tool.CodeInvalidArgs, tool.ValidationFailed, "%s: %v", entry.Name, err)
		r.Err.Hint = "the schema of the arguments is: " + string(entry.Parameters)
		return &r
	}
	c.call.Args = args
	return nil
}

// decide turns a decision into a grant or a refusal, asking if it must. The
// answer is durable before there is a grant.
func (c *carry) decide(ctx context.Context, decision policy.Decision) (grant policy.Grant, refusal *tool.Result, err error) {
	return c.ask(ctx, decision, decision.Question())
}

// ask is decide with the question to ask.
func (c *carry) ask(ctx context.Context, decision policy.Decision, question policy.Question) (grant policy.Grant, refusal *tool.Result, err error) {
	body := c.decision(decision)
	var answer policy.Answer
	if decision.Effect() == policy.Ask {
		c.enter(StateAwaitingPermission)
		answer, err = c.d.opts.Approver.Approve(ctx, question)
		if err != nil {
			answer = policy.Answer{By: err.Error()}
		}
		body.Answer, body.Scope, body.By = &answer.Allow, answer.Scope, answer.By
	}
	recorded, err := c.record(ctx, session.TypeDecision, body)
	if err != nil {
		return policy.Grant{}, nil, err
	}
	switch {
	case ctx.Err() != nil:
		r := tool.Failed(tool.CodeCancelled, tool.InternalError, "%s was cancelled before it ran", c.call.Tool)
		return policy.Grant{}, &r, nil
	case decision.Effect() == policy.Allow:
		grant, err = decision.Grant()
	case decision.Effect() == policy.Ask && answer.Allow:
		if grant, err = decision.Approve(answer, recorded.Seq); err == nil {
			c.remember(decision, answer.Scope)
		}
	default:
		r := denied(c.call.Tool, decision, answer)
		return policy.Grant{}, &r, nil
	}
	if err != nil {
		r := tool.Failed(tool.CodeInvalidArgs, tool.ValidationFailed, "%v", err)
		return policy.Grant{}, &r, nil
	}
	return grant, nil, nil
}

func (c *carry) decision(d policy.Decision) session.Decision {
	return session.Decision{
		Tool: c.call.Tool, Effect: d.Effect().String(), Risk: d.Risk().String(),
		Rule: d.Rule(), Source: string(d.Source()), Origin: d.Origin(), Reason: d.Reason(),
	}
}

func denied(name string, decision policy.Decision, answer policy.Answer) tool.Result {
	r := tool.Failed(tool.CodeDenied, tool.PermissionDenied, "%s was denied: %s", name, decision.Reason())
	if decision.Effect() == policy.Ask {
		r.Err.Message = fmt.Sprintf("%s was denied: %s, and the answer was no (%s)", name, decision.Reason(), answer.By)
	}
	x := decision.Explain()
	r.Err.Rule, r.Err.Allow = x.Rule, x.Allow
	if data, err := json.Marshal(x); err == nil {
		r.Err.Denial = data
	}
	if decision.Effect() == policy.Deny {
		r.Err.Message += "; " + x.Change
	}
	r.Err.Hint = "do not try again in another way; say what you wanted to do and let the person decide"
	return r
}

// remember makes the rule of an answer hold. A rule that cannot be kept on
// disk holds for the session, and that is said.
func (c *carry) remember(decision policy.Decision, scope policy.Scope) {
	rule, err := decision.RuleFor(scope)
	if err != nil {
		return // once, or a scope that the question did not offer: holds once
	}
	if (scope == policy.ScopeAlways || scope == policy.ScopeProject) && c.d.opts.Remember != nil {
		if err := c.d.opts.Remember(rule); err != nil {
			c.report(tool.Progress{Level: "warn", Message: fmt.Sprintf("the answer holds for this session only: %v", err)})
		}
	}
	c.d.opts.Policy.Add(rule)
}

func (c *carry) intend(ctx context.Context, grant policy.Grant, entry *tool.Entry) error {
	limits := grant.Limits()
	body := session.Intent{
		Tool: entry.Name, Caller: string(c.call.Caller), Module: entry.Module.Name, Digest: entry.Module.Digest,
		ArgsDigest: fmt.Sprintf("%x", c.call.ArgsDigest()), Cwd: c.call.Cwd, Mounts: []string{},
		Secrets: tool.SecretNames(grant.Secrets()), Exec: grant.MayExec(), Network: grant.Network().Rules(), Rehearsal: grant.Rehearsal(), TimeoutMS: limits.Timeout.Milliseconds(), MemoryBytes: limits.MemoryBytes, Fuel: limits.Fuel,
	}
	for _, m := range grant.Mounts() {
		body.Mounts = append(body.Mounts, m.String())
	}
	_, err := c.record(ctx, session.TypeCallIntended, body)
	return err
}

// finish records the result.
func (c *carry) finish(ctx context.Context, result tool.Result) (tool.Result, error) {
	result = c.redact(result)
	if result.Err == nil {
		result.Usage.OutputBytes = len(result.Output)
	}
	if result.Usage.Start.IsZero() {
		result.Usage.Start = time.Now()
	}
	result.LimitReached, result.LimitMessage = c.call.Limit != "", c.call.Limit
	envelope := result.Envelope()
	data, err := json.Marshal(llm.ResultData{
		CallID: c.call.ID, Name: c.asked, Output: string(envelope), Success: result.Err == nil,
	})
	if err != nil {
		return result, fmt.Errorf("record the result of %s: %w", c.call.Tool, err)
	}
	message := llm.Message{Kind: llm.ToolResult, Content: result.Summary(), Data: data}
	if _, err := c.record(ctx, session.TypeToolResult, message); err != nil {
		return result, err
	}
	c.enter(StateCompleted)
	return result, nil
}

// redact is the result without secrets: every way to a result leads through it.
func (c *carry) redact(result tool.Result) tool.Result {
	r := c.d.opts.Redact
	if r == nil {
		return result
	}
	if result.Err == nil {
		result.Output, result.Note = r.JSON(result.Output), r.Text(result.Note)
		return result
	}
	clean := *result.Err
	for _, text := range []*string{&clean.Message, &clean.Hint, &clean.Stdout, &clean.Stderr, &clean.Rule, &clean.Allow} {
		*text = r.Text(*text)
	}
	if clean.Denial != nil {
		clean.Denial = r.JSON(clean.Denial)
	}
	result.Err = &clean
	return result
}

// hostFault is what the model reads when the host is to blame. The details are
// for the person, who gets the error.
func hostFault(name string) tool.Result {
	return tool.Failed(tool.CodeHost, tool.InternalError, "%s could not run: the host has a problem, which the user is told", name)
}

// record appends one event of this call and returns it. It does so also when
// the caller has given up: no call goes unrecorded.
func (c *carry) record(ctx context.Context, typ session.Type, body any) (session.Event, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return session.Event{}, fmt.Errorf("record %s: %w", typ, err)
	}
	events, err := c.d.opts.Log.Append(context.WithoutCancel(ctx), c.draft(typ, data))
	if err != nil {
		return session.Event{}, fmt.Errorf("record %s: %w", typ, err)
	}
	return events[0], nil
}

func (c *carry) draft(typ session.Type, body json.RawMessage) session.Draft {
	return session.Draft{Type: typ, Turn: c.call.Turn, Step: c.call.Step, Call: c.call.ID, Body: body}
}

// enter shows that the call is in a new state.
func (c *carry) enter(s State) {
	c.show(session.TypeCallState, session.CallState{State: string(s), Tool: c.call.Tool})
}

// report shows what the tool says while it runs.
func (c *carry) report(r tool.Progress) {
	if c.rehearsing {
		c.hold(r)
		return
	}
	c.show(session.TypeProgress, r)
}

func (c *carry) show(typ session.Type, body any) {
	if data, err := json.Marshal(body); err == nil {
		c.d.opts.Log.Emit(c.draft(typ, data))
	}
}
