package door

import (
	"context"
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

// SessionOptions configures one session. The zero value of each field is its default.
type SessionOptions struct {
	ID string // ID of an earlier session that goes on; empty: a new session
	// Workspace is the directory in which the relative paths of a model's calls start. Tools
	// see it only if Policy.Mounts has it. Empty: the current directory.
	Workspace string
	Catalog   *tool.Catalog // tools of the session; nil: the built-in ones
	// Policy holds the mounts, rules and limits of the session. Its zero value has no mounts
	// and no rules. Layers, Tier and LikelyTier must be unset, because the door sets them.
	Policy   policy.Options
	Approver dispatch.Approver       // answers the questions of the policy; nil: every answer is no
	Remember func(policy.Rule) error // saves the rule of an answer "always"; nil: it holds for the session
	// Agent configures turns. The door sets Tools, Log, Conversation and Cwd. If System is
	// nil, it also sets System and Briefs: the workspace, the tools, the limits, the date, and
	// the text of AGENTS.md. A Model of the caller's own counts as the provider named in
	// Agent.Provider, if the layers list permitted providers. Without a Model, and without the
	// Provider below, the session has calls and no turns.
	Agent             agent.Options
	ExtraSystemPrompt string // text of the user, added below the system prompt of the door; empty: none
	// IgnoreProjectInstructions is set if the model does not get the text of AGENTS.md or CLAUDE.md.
	IgnoreProjectInstructions bool
	Provider                  *Provider // configures the model if Agent.Model is nil; nil: there is none
}

// Session is one open session. It is safe for concurrent use, but turns must not overlap.
type Session struct {
	Tools *dispatch.Dispatcher // carries out the calls
	Log   *session.Log
	// PersonCalls holds the calls, the newest 16 at most, that a person had made since the final
	// turn of an earlier session when it was opened again; nil: none, or a new session.
	PersonCalls []agent.PersonCall
	// Provider is the name of the provider that is asked first. It is empty if the session has
	// no model, or a model of the caller's own.
	Provider string

	door                *Door
	policy              *policy.Policy
	workspace           string
	ignoreInstructions  bool
	maxInstructionBytes int            // limit for the text of Instructions; 0: that of package instructions
	agent               *agent.Agent   // nil: the session has no turns
	closers             []func() error // called by end, in reverse order
}

// Open opens a session. The log of an earlier session is verified as a whole while it is read,
// see [session.VerifyEach]. The error may be an error of [Door.Store], a *[ModelError], or
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
		HistoryTool: builtinTool(gitTool), // even if the session does not offer it
		Artifact: func(ctx context.Context, name string) (string, error) {
			return agent.ReadArtifact(s.Log.Events(ctx), name)
		},
	})
	var past agent.Conversation
	if !isNew { // none of its events counts before all of them are verified
		events := s.Tools.Resume(resumableEvents(session.VerifyEach(s.Log.Events(ctx))))
		if past, err = agent.ReadConversation(events); err != nil {
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
		s.begin(d.opts.Program, opts, p)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sessions[s] = true
	return s, nil
}

// builtinTool returns a built-in tool; nil: this program has none of the name.
func builtinTool(name string) *tool.Entry {
	builtin, err := registry.Builtin()
	if err != nil {
		return nil
	}
	entry, _ := builtin.Find(name)
	return entry
}

// checkConfig returns an error if Config has a value that a built-in module of the catalog
// does not declare, or that is too large.
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

// loadSecrets reads the secrets that the tools of a catalog ask for: they must be known before
// anything that may hold one is shown or recorded, and a passphrase is asked for before a turn
// and not during one. It skips tools whose every call would be denied, and opens the vault
// only if another tool asks for a secret. A secret that cannot be read is a warning, unless the
// vault has none of this name.
func (d *Door) loadSecrets(ctx context.Context, catalog *tool.Catalog, p *policy.Policy) {
	if d.opts.Secrets == nil {
		return
	}
	seen := map[string]bool{} // names that were read, and errors that were reported
	for _, e := range catalog.Entries() {
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

// resumableEvents yields the events of a session that goes on, up to an error. It adds an
// error if there are no events, or if the body of an event was deleted.
func resumableEvents(events iter.Seq2[session.Event, error]) iter.Seq2[session.Event, error] {
	return func(yield func(session.Event, error) bool) {
		none := true
		for e, err := range events {
			if err == nil && e.Body == nil { // the model would go on with a part of the conversation
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

// begin prepares the first event of a new session, which is recorded with the first call or
// turn.
func (s *Session) begin(program string, opts SessionOptions, p *policy.Policy) {
	body := session.Started{Program: program, Workspace: opts.Workspace, Mounts: []string{}, Tools: opts.Catalog.Names(), UIDMap: jail.UserNamespace(), Conversation: s.agent != nil}
	for _, m := range p.Mounts() {
		body.Mounts = append(body.Mounts, m.String())
	}
	s.Log.Begin(session.NewDraft(session.TypeSessionStarted, 0, 0, "", body))
}

// Close ends the session, so that another process can go on with it. No call may be running. A
// further Close does nothing.
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

// Call records and carries out one call outside of a turn. The call's ID must be new in the
// session, its Caller names who calls, and its Cwd is the directory where relative paths
// start. Everything that can go wrong with the call is a failed result; an error means that
// the host or the log is at fault.
func (s *Session) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	if err := s.recordToolCall(ctx, call); err != nil {
		return tool.Result{}, err
	}
	return s.Tools.Call(ctx, call)
}

// Undo puts back the files that the newest turn which is not undone yet has changed. With
// Redo, it makes the changes of the last undone turn again. See [dispatch.Dispatcher.Undo].
// The output of a success is an [undo.Output]. If others have changed the files since, the
// call fails, and Stdout of the failure shows up to 64 KiB of their changes. No turn may be
// running.
func (s *Session) Undo(ctx context.Context, args undo.Args) (tool.Result, error) {
	call := tool.Call{ID: "undo_" + session.NewID(time.Now()), Tool: tool.UndoTool, Args: tool.Marshal(args), Cwd: s.workspace}
	if err := s.recordToolCall(ctx, call); err != nil {
		return tool.Result{}, err
	}
	return s.Tools.Undo(ctx, call)
}

// Rewind takes the conversation back to before a turn, see [agent.Agent.Rewind]. No file counts
// as read any more.
func (s *Session) Rewind(ctx context.Context, turn int, changed []string) error {
	if s.agent == nil {
		return errNoModel
	}
	s.Tools.ForgetFiles()
	return s.agent.Rewind(ctx, turn, changed)
}

// Turns returns the turns of the session. No turn may be running.
func (s *Session) Turns(ctx context.Context) ([]undo.Turn, error) {
	return undo.Turns(s.Log.Events(ctx))
}

// recordToolCall records that a call was requested.
func (s *Session) recordToolCall(ctx context.Context, call tool.Call) error {
	_, err := s.Log.Append(ctx, session.NewDraft(session.TypeToolCall, 0, 0, call.ID, llm.CallMessage(llm.NewCall(call.ID, call.Tool, string(call.Args)))))
	return err
}

// Permissions returns the rules that answer questions in this session, the newest last.
func (s *Session) Permissions() []policy.Rule {
	return slices.DeleteFunc(s.policy.Rules(), func(r policy.Rule) bool {
		return r.Effect != policy.Allow || r.Turn != 0 || r.Project != "" && r.Project != s.workspace
	})
}

// Revoke removes the rules that were answered in this session, and sets the mode to ask.
func (s *Session) Revoke() { s.policy.Revoke() }

// Freedom returns the mode of the chat, and what may be changed without a question.
func (s *Session) Freedom() *policy.Freedom { return s.policy.Freedom() }

var errNoModel = errors.New("the session has no model")

func noModel(yield func(session.Event, error) bool) { yield(session.Event{}, errNoModel) }

// Run runs one turn and yields its events as they happen, see [agent.Agent.Run]. Without a model
// it yields only an error.
func (s *Session) Run(ctx context.Context, prompt string, with ...agent.Attachment) iter.Seq2[session.Event, error] {
	if s.agent == nil {
		return noModel
	}
	return s.agent.Run(ctx, prompt, with...)
}

// Compact replaces the earlier calls and answers of the conversation by a summary, see
// [agent.Agent.Compact]. Without a model it yields only an error. No turn may be running.
func (s *Session) Compact(ctx context.Context, focus string) iter.Seq2[session.Event, error] {
	if s.agent == nil {
		return noModel
	}
	return s.agent.Compact(ctx, focus)
}

// ContextReport returns the size of the next request, and the use of the session so far. It
// may be called between turns only. Without a model it returns the zero value.
func (s *Session) ContextReport(ctx context.Context) agent.ContextReport {
	if s.agent == nil {
		return agent.ContextReport{}
	}
	return s.agent.ContextReport(ctx)
}

// ApproverFunc is an approver made of a function that blocks until one question is answered.
// The function may be called for several questions at once, and need not set the answer's
// Question.
type ApproverFunc func(ctx context.Context, q policy.Question) (policy.Answer, error)

// Approve implements dispatch.Approver.
func (f ApproverFunc) Approve(ctx context.Context, q policy.Question) func() (policy.Answer, error) {
	return func() (policy.Answer, error) {
		answer, err := f(ctx, q)
		answer.Question = q.ID
		return answer, err
	}
}
