package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

// Tools is what the loop needs of the tools; the dispatcher has it.
type Tools interface {
	Definitions() []tool.Definition
	// Repair returns the name and the arguments that a model means by those that it has sent.
	Repair(ctx context.Context, name, args string) (string, string)
	// CallAll carries out the calls of one step, and records them. Their results
	// are in the order of the calls, each with limit for its LimitMessage; an error
	// ends the turn.
	CallAll(ctx context.Context, calls []tool.Call, limit string) ([]tool.Result, error)
}

// Preloader is a Tools that makes itself ready for a call that a model has begun to write.
type Preloader interface {
	Preload(name string)
}

// Options wires an agent. Model, Tools, Log, Cwd and the limits are needed.
type Options struct {
	Model     llm.Model
	Provider  string // for the record
	ModelName string // of the model, for the request and the record; empty: the provider's default
	Tools     Tools
	Log       *session.Log
	// System is the system prompt, asked for when a new session has its first turn.
	// Nil: there is none.
	System func() string
	// Briefs are what the model is told before the prompt of a turn, each again only
	// if it is another than the last time. Nil: nothing.
	Briefs       func() []Brief
	Cwd          string       // absolute; where the relative paths of calls start
	Conversation Conversation // from [ReadConversation], when a session is resumed; the agent's own from then on

	MaxSteps        int // steps with tool calls in one turn; [MaxSteps]
	MaxCallsPerStep int // calls of one step that are carried out; [MaxCallsPerStep]
	RepeatedCalls   int // how often a call may come to the same result with nothing new between; 4
	HistoryChars    int // characters of the conversation that a request may hold; 400,000

	ContextTokens int // of the model's context; 0: not known
	// Price is that of the model. Nil: not known, and no cost is told.
	Price *llm.Price
}

// Brief is what the program tells a model, and no person has said: the date, or what
// a file of the project says. It stays in every request, other than older turns.
type Brief struct {
	Name string // such as "date"; what was told under it before is out of date
	Text string
}

// The limits of a turn where no others are set.
const (
	MaxSteps        = 50
	MaxCallsPerStep = 15
)

// Agent runs the turns of one session, one after the other.
type Agent struct {
	opts         Options
	conversation Conversation
}

// New returns an agent that goes on from opts.Past.
func New(opts Options) *Agent {
	for _, limit := range []struct {
		of      *int
		without int
	}{{&opts.MaxSteps, MaxSteps}, {&opts.MaxCallsPerStep, MaxCallsPerStep}, {&opts.RepeatedCalls, 4}, {&opts.HistoryChars, 400_000}} {
		if *limit.of <= 0 {
			*limit.of = limit.without
		}
	}
	a := &Agent{opts: opts, conversation: opts.Conversation}
	a.conversation.maxChars = opts.HistoryChars
	opts.Log.Observe(a.conversation.add) // what the model reads next, also if it comes between turns
	return a
}

// Use has the next turns ask the Model, under the Provider, the Name, the ContextTokens
// and the Price that go with it. No turn may be running.
func (a *Agent) Use(o Options) {
	a.opts.Model, a.opts.Provider, a.opts.ModelName, a.opts.ContextTokens, a.opts.Price = o.Model, o.Provider, o.ModelName, o.ContextTokens, o.Price
}

// Run runs one turn and yields its events as they happen, stored ones when
// they are durable. The last event of every turn is turn.ended, which says why
// it ended; an error follows only when even that could not be recorded. A
// consumer that stops early cancels the turn. Turns do not overlap.
//
// What the model reads is the prompt and, behind [llm.AttachmentsHeading], what goes with it. The
// record of the turn has the prompt alone, as it was typed, and the message of the user
// all of it.
func (a *Agent) Run(ctx context.Context, prompt string, with ...Attachment) iter.Seq2[session.Event, error] {
	return a.opts.Log.During(ctx, func(ctx context.Context) error { return a.run(ctx, prompt, with) })
}

// Attachment is something that goes with a prompt, such as the content of a file.
type Attachment struct {
	Text   string
	Images []tool.Image // of which the text speaks
}

// turn is the state of one turn.
type turn struct {
	a            *Agent
	n            int // from 1
	step         int
	start        time.Time
	end          session.TurnEnded
	repeatCounts map[string]int  // by call: how often it was repeated since anything new has come of a step
	lastUsage    llm.Usage       // of the last request; zero: the provider did not say
	finalDrafts  []session.Draft // the last step, which is recorded with the end of the turn
	// Who answers since the model of the agent has failed, to the end of the turn, as
	// [llm.Failover] has it. Nil: it has not.
	fallback         *llm.Alternative
	warnedCallAsText bool // the model was told in this turn that it has written a call as text
}

// run runs one turn. Its error is one that could not be recorded.
func (a *Agent) run(ctx context.Context, prompt string, with []Attachment) error {
	t := &turn{a: a, n: a.conversation.turn + 1, start: time.Now(), repeatCounts: map[string]int{}}
	err := t.begin(ctx, prompt, with)
	for err == nil && t.end.Reason == "" {
		err = t.next(ctx)
	}
	t.setEndReason(ctx, err)
	t.end.Steps, t.end.DurationMS = t.step, time.Since(t.start).Milliseconds()
	t.end.Context = t.contextUse()
	t.step = 0
	return t.record(ctx, append(t.finalDrafts, t.draft(session.TypeTurnEnded, "", t.end))...)
}

func (t *turn) begin(ctx context.Context, prompt string, with []Attachment) error {
	var drafts []session.Draft
	system := ""
	if len(t.a.conversation.messages) == 0 && t.a.opts.System != nil {
		if system = t.a.opts.System(); system != "" {
			drafts = append(drafts, t.message(llm.System, system))
		}
	}
	said := llm.Message{Kind: llm.User, Content: prompt}
	for i, w := range with {
		if i == 0 {
			said.Content += "\n\n" + llm.AttachmentsHeading
		}
		said.Content += "\n\n" + w.Text
		said.Parts = append(said.Parts, llm.ImageParts(w.Images)...)
	}
	started := session.TurnStarted{Prompt: prompt, Provider: t.a.opts.Provider, Model: t.a.opts.ModelName, Workspace: t.a.opts.Cwd}
	drafts = append(drafts, t.draft(session.TypeTurnStarted, "", started))
	if t.a.opts.Briefs != nil {
		for _, b := range t.a.opts.Briefs() {
			if !strings.Contains(system, b.Text) && !t.a.conversation.hasBrief(b) {
				drafts = append(drafts, t.draft(session.TypeMessage, "", llm.BriefMessage(b.Name, b.Text)))
			}
		}
	}
	return t.record(ctx, append(drafts, t.draft(session.TypeMessage, "", said))...)
}

// next asks the model once and carries out what it asks for.
func (t *turn) next(ctx context.Context) error {
	t.step++
	last := t.step > t.a.opts.MaxSteps // the model is told to answer now
	reply, err := t.ask(ctx, last)
	if err != nil {
		return err
	}
	t.lastUsage = reply.Usage
	switch {
	case last:
		t.end.Reason, t.end.Limit = session.EndLimit, "max_tool_turns"
		return nil
	case len(reply.Calls) > 0:
		return t.callAll(ctx, reply.Calls)
	case reply.Finish == llm.FinishLength, reply.Finish == llm.FinishFilter:
		t.end.Reason, t.end.Limit = session.EndCut, string(reply.Finish)
	default:
		if name := reply.ToolCalledAsText(t.a.opts.Tools.Definitions()); name != "" {
			return t.warnCallAsText(ctx, name)
		}
		t.end.Reason = session.EndAnswered
	}
	return nil
}

// warnCallAsText tells the model that it has written a call as text, which is never run. The second
// time ends the turn.
func (t *turn) warnCallAsText(ctx context.Context, name string) error {
	if t.warnedCallAsText || t.step == t.a.opts.MaxSteps {
		t.end.Reason, t.end.Limit = session.EndLimit, llm.CallAsText
		return nil
	}
	told := fmt.Sprintf("[Your last reply is the text of a call of %s. Nothing was run: a call that is written as text never is. "+
		"Make the call in the format for tool calls. To show such a text, put it into a code fence after a sentence.]", name)
	drafts := append(t.finalDrafts, t.draft(session.TypeMessage, "", llm.BriefMessage(llm.CallAsText, told)))
	t.warnedCallAsText, t.finalDrafts = true, nil
	return t.record(ctx, drafts...)
}

// ask streams one reply and records it, but for one that ends the turn.
func (t *turn) ask(ctx context.Context, last bool) (llm.Reply, error) {
	start := time.Now()
	t.a.conversation.makeRoom()
	req := llm.Request{Model: t.a.opts.ModelName, Messages: t.a.conversation.messages}
	if !last {
		req.Tools = t.a.opts.Tools.Definitions()
	}
	assembler := llm.Assembler{Provider: t.a.opts.Provider}
	restarts := 0
	for delta, err := range t.a.opts.Model.Stream(ctx, req) {
		if delta.Restart != nil {
			restarts++
			t.spend(assembler.Reply().Usage)
		}
		if err == nil {
			err = assembler.Add(delta)
		}
		if err != nil {
			part := assembler.Reply()
			t.spend(part.Usage)
			return llm.Reply{}, errors.Join(err, t.recordPartial(ctx, part.Text))
		}
		if delta.Restart != nil {
			r := delta.Restart
			restart := session.Restart{Error: r.Err.Error(), WaitMS: r.Wait.Milliseconds(), Attempt: r.Attempt, Attempts: r.Attempts}
			if r.Alternative != nil {
				t.fallback, restart.Profile = r.Alternative, r.Alternative.Profile
			}
			t.show(session.TypeRestart, restart)
		}
		if delta.Reasoning != "" {
			t.show(session.TypeReasoning, session.Reasoning{Bytes: len(delta.Reasoning)})
		}
		t.preload(delta.Calls)
		if delta.Text != "" {
			t.show(session.TypeDelta, session.Delta{Text: delta.Text})
		}
	}
	reply := assembler.Reply()
	if last || reply.Finish == llm.FinishLength || reply.Finish == llm.FinishFilter {
		// Neither carried out nor kept: nobody offered tools any more, or the
		// arguments may be cut.
		reply.Calls = nil
	}
	for i := range reply.Calls {
		t.assignID(&reply.Calls[i])
		call := &reply.Calls[i].Function
		sent := *call
		if call.Name, call.Arguments = t.a.opts.Tools.Repair(ctx, sent.Name, sent.Arguments); call.Original == nil && *call != sent {
			call.Original = &sent
		}
	}
	var drafts []session.Draft
	calls := reply.Calls
	for _, m := range reply.Messages() {
		typ, id := session.TypeMessage, ""
		if m.Kind == llm.ToolCall {
			typ, id, calls = session.TypeToolCall, calls[0].ID, calls[1:]
		}
		drafts = append(drafts, t.draft(typ, id, m))
	}
	ended := session.StepEnded{Finish: reply.Finish, Usage: reply.Usage, DurationMS: time.Since(start).Milliseconds(), Restarts: restarts, Cost: t.spend(reply.Usage)}
	if t.fallback != nil {
		ended.Provider, ended.Model = t.fallback.Provider, t.fallback.Name
	}
	drafts = append(drafts, t.draft(session.TypeStepEnded, "", ended))
	if len(reply.Calls) == 0 {
		t.finalDrafts = drafts
		return reply, nil
	}
	return reply, t.record(ctx, drafts...)
}

// preload tells the tools which of them are named.
func (t *turn) preload(calls []llm.CallDelta) {
	tools, can := t.a.opts.Tools.(Preloader)
	for _, c := range calls {
		if can && c.Name != "" {
			tools.Preload(c.Name)
		}
	}
}

// spend counts what a request has used, also one whose answer broke off, and returns
// what it cost.
func (t *turn) spend(u llm.Usage) *float64 {
	price := t.a.opts.Price
	if t.fallback != nil {
		price = t.fallback.Price
	}
	cost := price.Cost(u)
	t.end.Usage, t.end.Cost = t.end.Usage.Plus(u), llm.AddCosts(t.end.Cost, cost)
	return cost
}

// recordPartial records what came of an answer that broke off. Calls that came with
// it are not kept: their arguments may be cut.
func (t *turn) recordPartial(ctx context.Context, text string) error {
	if text == "" {
		return nil
	}
	return t.record(ctx, t.draft(session.TypeMessage, "", llm.Message{Kind: llm.Assistant, Content: text, Data: json.RawMessage(`{"partial":true}`)}))
}

// assignID gives a call an id that the session has not seen: the log tells calls apart by
// it, and some models count from 1 in each reply.
func (t *turn) assignID(call *llm.CallData) {
	if !tool.ValidName(call.ID) {
		call.ID = "call" // headers are never deleted: they hold no text from a model
	}
	for base, n := call.ID, 2; t.a.conversation.ids[call.ID]; n++ {
		call.ID = fmt.Sprintf("%s_%d", base, n)
	}
	t.a.conversation.reserveID(call.ID)
}

// callAll carries out the calls of one step.
func (t *turn) callAll(ctx context.Context, calls []llm.CallData) error {
	limit := ""
	if t.step == t.a.opts.MaxSteps {
		limit = fmt.Sprintf("Tool call limit reached (%d). Answer now with what you have.", t.a.opts.MaxSteps)
	}
	var carriedOut, refused []llm.CallData
	for i, c := range calls {
		if i < t.a.opts.MaxCallsPerStep && c.Function.DroppedBytes == 0 {
			carriedOut = append(carriedOut, c)
		} else {
			refused = append(refused, c)
		}
	}
	toolCalls := make([]tool.Call, len(carriedOut))
	for i, c := range carriedOut {
		toolCalls[i] = tool.Call{
			ID: c.ID, Tool: c.Function.Name, Args: json.RawMessage(c.Function.Arguments),
			Caller: tool.CallerAgent, Cwd: t.a.opts.Cwd, Turn: t.n, Step: t.step,
		}
	}
	results, err := t.a.opts.Tools.CallAll(ctx, toolCalls, limit)
	if err == nil && t.isRepeating(carriedOut, results) {
		t.end.Reason, t.end.Limit = session.EndLimit, "repeated_calls"
	}
	for _, c := range refused {
		refusal, recordErr := t.refuse(ctx, c, limit)
		results, err = append(results, refusal), errors.Join(err, recordErr)
	}
	t.a.conversation.endStep()
	for _, r := range results {
		t.end.Calls++
		if r.Err != nil {
			t.end.Failed++
			switch r.Err.Code {
			case tool.CodeDenied:
				t.end.Denied++
			case tool.CodeCancelled:
				t.end.Stopped++
			}
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// isRepeating reports whether the model goes round in a circle: a call has come to
// the same result as often as is permitted, and no call of these steps has come
// to anything new.
func (t *turn) isRepeating(calls []llm.CallData, results []tool.Result) bool {
	if slices.ContainsFunc(results, func(r tool.Result) bool { return r.Repeats <= 1 }) {
		clear(t.repeatCounts)
		return false
	}
	step := map[string]bool{}
	for _, c := range calls {
		step[c.Function.Name+" "+c.Function.Arguments] = true
	}
	for call := range step {
		if t.repeatCounts[call]++; t.repeatCounts[call]+1 >= t.a.opts.RepeatedCalls {
			return true
		}
	}
	return false
}

// refuse answers a call beyond the number that one step may have, or one whose arguments
// were too large.
func (t *turn) refuse(ctx context.Context, c llm.CallData, limit string) (tool.Result, error) {
	r := tool.Failed(tool.CodeLimitReached, tool.ValidationFailed,
		"not run: only the first %d calls of one reply are (max_tool_calls_per_turn)", t.a.opts.MaxCallsPerStep)
	r.Err.Hint = tool.Advise("call it again in your next reply")
	if n := c.Function.DroppedBytes; n > 0 {
		r = tool.Failed(tool.CodeInvalidArgs, tool.ValidationFailed, "not run: its arguments have %d bytes; those of one call may have %d, and those of all calls of a reply %d",
			n, llm.MaxArgumentBytes, llm.MaxReplyArgumentBytes)
		r.Err.Hint = tool.Advise("pass less: divide the work among several calls, each in a reply of its own")
	}
	r.Usage.Start = time.Now()
	if limit != "" {
		r.Err.Hint, r.LimitMessage = nil, limit
	}
	return r, t.record(ctx, t.draft(session.TypeToolResult, c.ID, llm.ResultMessage(c.ID, c.Function.Name, r)))
}

// setEndReason fills in why the turn ended with an error.
func (t *turn) setEndReason(ctx context.Context, err error) {
	var provider *llm.ProviderError
	switch {
	case err == nil:
		return
	case ctx.Err() != nil:
		t.end.Reason, t.end.Error = session.EndCancelled, context.Cause(ctx).Error()
	case errors.As(err, &provider):
		t.end.Reason, t.end.Error, t.end.Hint = session.EndProvider, provider.Error(), provider.Hint
		if provider.Retryable && provider.Hint == "" {
			t.end.Hint = "try again later; what has come of the turn is kept"
		}
	default:
		t.end.Reason, t.end.Error = session.EndError, err.Error()
	}
}

// draft is an event of this turn before it is recorded.
func (t *turn) draft(typ session.Type, call string, body any) session.Draft {
	return session.NewDraft(typ, t.n, t.step, call, body)
}

// message is the event of a text.
func (t *turn) message(kind llm.Kind, text string) session.Draft {
	return t.draft(session.TypeMessage, "", llm.Message{Kind: kind, Content: text})
}

// record appends events, all or none, also when the caller has given up. What
// they say enters the conversation by that, and in no other way.
func (t *turn) record(ctx context.Context, drafts ...session.Draft) error {
	if _, err := t.a.opts.Log.Append(context.WithoutCancel(ctx), drafts...); err != nil {
		return fmt.Errorf("record %s: %w", drafts[0].Type, err)
	}
	return nil
}

// show emits an event that is not stored.
func (t *turn) show(typ session.Type, body any) { t.a.opts.Log.Emit(t.draft(typ, "", body)) }
