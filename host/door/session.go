package door

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/stockade-dev/stockade/host/agent"
	"github.com/stockade-dev/stockade/host/dispatch"
	"github.com/stockade-dev/stockade/host/jail"
	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/registry"
	"github.com/stockade-dev/stockade/host/secret"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/undo"
)

// SessionOptions says what one session has. The zero value of each field is its
// default.
type SessionOptions struct {
	// ID names a session of the past, to go on with it. Empty: a new one.
	ID string
	// Workspace is the directory in which the relative paths of a model's calls
	// start. It is shown to tools only if Policy.Mounts has it. Empty: the current
	// one.
	Workspace string
	// Catalog lists the tools. Nil: the built-in ones.
	Catalog *tool.Catalog
	// Policy is what is granted and answered beforehand: nothing. Layers are the
	// door's.
	Policy policy.Options
	// Approver is asked whatever the policy asks. Nil: nobody is, and the answer is
	// no.
	Approver dispatch.Approver
	// Remember keeps the rule of an answer for good. Nil: it holds for the session.
	Remember func(policy.Rule) error
	// Agent says how turns are run. Tools, Log, Past and Cwd are filled in, and
	// System and Briefs where System is nil: where the model is, which tools it has,
	// what limits it, the date, and what AGENTS.md says. A Model of the caller's own
	// counts as the Provider that is named here, where the layers list providers.
	// Without a Model, and without a Provider below, the session has calls and no turns.
	Agent agent.Options
	// ExtraSystemPrompt are the user's own, which stand below the system prompt that is filled in.
	ExtraSystemPrompt string
	// IgnoreProjectInstructions leaves out what a file of the project says to agents.
	IgnoreProjectInstructions bool
	// Provider is where the model is, if Agent has none. Nil: nowhere.
	Provider *Provider
}

// Session is one open session. It is safe for concurrent use but for its turns,
// which do not overlap.
type Session struct {
	// Tools carries out the calls.
	Tools *dispatch.Dispatcher
	Log   *session.Log
	// PersonCalls are the calls that a person has made since the last turn of a session of
	// the past.
	PersonCalls []agent.PersonCall
	// Provider is where the model is; empty if none was made.
	Provider string

	door                *Door
	policy              *policy.Policy
	workspace           string
	ignoreInstructions  bool
	maxInstructionBytes int          // bytes of a file of the project that the model is told
	agent               *agent.Agent // nil: there are no turns
	closers             []func() error
}

// Open opens a session. One of the past is checked as a whole while it is read, see
// [session.VerifyEach]. The error may be one of [Door.Store], a *[ModelError], or
// wrap a *session.ChainError, session.ErrInUse, session.ErrNoSession or registry.ErrNoBuiltin.
func (d *Door) Open(ctx context.Context, opts SessionOptions) (_ *Session, err error) {
	if opts.Catalog == nil {
		if opts.Catalog, err = registry.Builtin(); err != nil {
			return nil, err
		}
	}
	if err = d.checkConfig(opts.Catalog); err != nil {
		return nil, err
	}
	opts.Catalog = opts.Catalog.WithConfig(d.opts.Config)
	if opts.Workspace, err = Directory(opts.Workspace); err != nil {
		return nil, err
	}
	if opts.Provider != nil {
		for _, p := range append(opts.Provider.Fallback, *opts.Provider) {
			d.AddSecret(p.Client.APIKey)
		}
	}
	st, err := d.Store(ctx)
	if err != nil {
		return nil, err
	}
	p, err := d.Policy(opts.Policy)
	if err != nil {
		return nil, err
	}
	d.loadSecrets(ctx, opts.Catalog, p)
	s := &Session{door: d, policy: p, workspace: opts.Workspace, ignoreInstructions: opts.IgnoreProjectInstructions, maxInstructionBytes: opts.Agent.HistoryChars / 4}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.end())
		}
	}()
	isNew := opts.ID == ""
	if isNew {
		opts.ID = session.NewID(time.Now())
	}
	unlock, err := session.Lock(d.locks, opts.ID)
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, unlock)
	s.Log = session.NewLog(st, opts.ID, time.Now)
	s.Log.SetRedactor(d.opts.Redact)
	if opts.Approver == nil {
		opts.Approver = ApproverFunc(func(context.Context, policy.Question) (policy.Answer, error) {
			return policy.Answer{By: "nobody to ask"}, nil
		})
	}
	s.Tools = dispatch.New(dispatch.Options{
		Catalog: opts.Catalog, Policy: p, Approver: opts.Approver, Runner: d.Sandbox(), Log: s.Log, SessionID: opts.ID, Remember: opts.Remember,
		Redact: d.opts.Redact, Undo: undo.New(st, opts.ID, d.stageDir, d.Sandbox().StageBudget(), d.opts.Redact),
		HistoryTool: historyTool(),
	})
	var past agent.Conversation
	if !isNew { // nothing of it counts before all of it has been checked
		events := s.Tools.Resume(resumableEvents(session.VerifyEach(st.Events(ctx, opts.ID, 0))))
		if past, err = agent.ReadConversation(events, opts.Agent.HistoryChars); err != nil {
			return nil, err
		}
		s.PersonCalls = past.PersonCalls()
	}
	switch {
	case opts.Agent.Model != nil:
		err = d.checkProvider(opts.Agent.Provider)
	case opts.Provider != nil:
		err = s.fillModel(&opts.Agent, *opts.Provider)
	}
	if err != nil {
		return nil, err
	}
	if opts.Agent.Model != nil {
		opts.Agent.Tools, opts.Agent.Log, opts.Agent.Conversation, opts.Agent.Cwd = s.Tools, s.Log, past, opts.Workspace
		if opts.Agent.System == nil {
			s.fillPrompt(&opts)
		}
		s.agent = agent.New(opts.Agent)
	}
	if isNew {
		if err := s.begin(d.opts.Program, opts, p); err != nil {
			return nil, err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sessions[s] = true
	return s, nil
}

// historyTool is the built-in tool that looks through the history of a repository, whether
// or not the session offers it; nil: there is none.
func historyTool() *tool.Entry {
	builtin, err := registry.Builtin()
	if err != nil {
		return nil
	}
	entry, _ := builtin.Find(gitTool)
	return entry
}

// checkConfig finds what the modules of a catalog are configured with and would not get.
func (d *Door) checkConfig(catalog *tool.Catalog) error {
	if len(d.opts.Config) == 0 {
		return nil
	}
	for _, e := range catalog.Entries() {
		if e.Module.Origin != tool.OriginBuiltin {
			continue
		}
		for name, value := range d.opts.Config[e.Module.Name] {
			if _, ok := e.Module.Config[name]; !ok {
				return fmt.Errorf("the module %s is configured with %.80q, which it does not declare", e.Module.Name, name)
			}
			if len(value) > tool.MaxConfigBytes {
				return fmt.Errorf("the module %s is configured with %d bytes of %s; at most %d are given", e.Module.Name, len(value), name, tool.MaxConfigBytes)
			}
		}
	}
	return nil
}

// loadSecrets reads the secrets that the tools of a catalog ask for, so that they are
// known before anything that may hold one is shown or recorded, and a passphrase
// is asked for before a turn and not in the middle of one. Where no tool asks for
// any, nothing is opened; nor is it for a tool of which no call can come to anything.
func (d *Door) loadSecrets(ctx context.Context, catalog *tool.Catalog, p *policy.Policy) {
	if d.opts.Secrets == nil {
		return
	}
	seen := map[string]bool{} // names, and what was said
	for _, name := range catalog.Names() {
		e, _ := catalog.Find(name)
		if len(e.Capabilities.Secrets) == 0 || p.Hides(e, tool.CallerAgent) && p.Hides(e, tool.CallerPerson) {
			continue
		}
		for _, s := range e.Capabilities.Secrets {
			if seen[s.Name] {
				continue
			}
			seen[s.Name] = true
			_, err := d.opts.Secrets.Get(ctx, s.Name)
			if err != nil && !errors.Is(err, secret.ErrNotFound) && !seen[err.Error()] {
				seen[err.Error()] = true // one reason can hold for all of them
				d.opts.Note("warning: a secret cannot be read: %v", err)
			}
		}
	}
}

// resumableEvents yields the events of a session to go on with. A session without events, or with one that
// has lost its body, is an error.
func resumableEvents(events iter.Seq2[session.Event, error]) iter.Seq2[session.Event, error] {
	return func(yield func(session.Event, error) bool) {
		none := true
		for e, err := range events {
			if err == nil && e.Body == nil { // the model would go on without what it was told
				err = &session.ChainError{Seq: e.Seq, Problem: "has lost its body"}
			}
			if none = false; !yield(e, err) || err != nil {
				return
			}
		}
		if none {
			yield(session.Event{}, session.ErrNoSession)
		}
	}
}

// begin makes the first event, which is recorded with the first call or turn.
func (s *Session) begin(program string, opts SessionOptions, p *policy.Policy) error {
	body := session.Started{Program: program, Workspace: opts.Workspace, Mounts: []string{}, Tools: opts.Catalog.Names(), UIDMap: jail.UserNamespace()}
	for _, m := range p.Mounts() {
		body.Mounts = append(body.Mounts, m.String())
	}
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	s.Log.Begin(session.Draft{Type: session.TypeSessionStarted, Body: data})
	return nil
}

// Close ends the session, so that another process can go on with it. No call may
// be running.
func (s *Session) Close() error {
	s.door.mu.Lock()
	defer s.door.mu.Unlock()
	if !s.door.sessions[s] {
		return nil
	}
	delete(s.door.sessions, s)
	return s.end()
}

func (s *Session) end() error {
	var errs []error
	for _, f := range slices.Backward(s.closers) {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

// Call carries out one call that is no part of a turn, and records that it was
// asked for. Its ID is one that no other call of the session has, its Caller says
// who calls, and its Cwd is where relative paths start. Whatever goes wrong with
// the call is a failed result; an error means that the host or the log is at
// fault.
func (s *Session) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	if err := s.recordToolCall(ctx, call); err != nil {
		return tool.Result{}, err
	}
	return s.Tools.Call(ctx, call)
}

// Undo puts the files back that the last turn has changed which is not undone yet, or
// makes again what was undone last, or changes nothing: see [dispatch.Dispatcher.Undo].
// The output of a success is an [undo.Output]. Where changes that others have made since
// are in the way, the Stdout of the failure shows them, 64 KiB at most. No turn may be
// running.
func (s *Session) Undo(ctx context.Context, args undo.Args) (tool.Result, error) {
	call := tool.Call{ID: "undo_" + session.NewID(time.Now()), Tool: tool.UndoTool, Args: tool.Marshal(args), Cwd: s.workspace}
	if err := s.recordToolCall(ctx, call); err != nil {
		return tool.Result{}, err
	}
	return s.Tools.Undo(ctx, call)
}

// recordToolCall records that a call is asked for.
func (s *Session) recordToolCall(ctx context.Context, call tool.Call) error {
	body, err := json.Marshal(llm.CallMessage(llm.NewCall(call.ID, call.Tool, string(call.Args))))
	if err != nil {
		return err
	}
	_, err = s.Log.Append(ctx, session.Draft{Type: session.TypeToolCall, Call: call.ID, Body: body})
	return err
}

var errNoModel = errors.New("the session has no model")

// Run runs one turn and yields its events as they happen, see [agent.Agent.Run].
func (s *Session) Run(ctx context.Context, prompt string, with ...agent.Attachment) iter.Seq2[session.Event, error] {
	if s.agent == nil {
		return func(yield func(session.Event, error) bool) {
			yield(session.Event{}, errNoModel)
		}
	}
	return s.agent.Run(ctx, prompt, with...)
}

// ContextReport is what the next request would hold, and what the session has used. It is
// called between two turns; without a model there is nothing to tell.
func (s *Session) ContextReport() agent.ContextReport {
	if s.agent == nil {
		return agent.ContextReport{}
	}
	return s.agent.ContextReport()
}

// ApproverFunc makes an approver of a function that waits for the answer to one question.
// It may be called for several at once.
type ApproverFunc func(ctx context.Context, q policy.Question) (policy.Answer, error)

// Approve implements dispatch.Approver.
func (f ApproverFunc) Approve(ctx context.Context, q policy.Question) func() (policy.Answer, error) {
	return func() (policy.Answer, error) {
		answer, err := f(ctx, q)
		answer.Question = q.ID
		return answer, err
	}
}
