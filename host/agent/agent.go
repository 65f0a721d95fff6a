package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

// Tools offers tools to the loop, and carries out calls. The dispatcher implements it.
type Tools interface {
	// Definitions returns the tools that the next request offers to the model.
	Definitions() []tool.Definition
	// Repair returns the name and the arguments of a call as they were probably meant.
	Repair(ctx context.Context, name, args string) (string, string)
	// CallAll carries out and records the calls of one step. It returns their results in the
	// order of the calls, each with limit as its LimitMessage: empty, except in the final step
	// with calls that a turn may have. An error ends the turn.
	CallAll(ctx context.Context, calls []tool.Call, limit string) ([]tool.Result, error)
}

// Preloader is a Tools that can prepare a tool while the model is still writing its call.
type Preloader interface {
	Preload(name string)
}

// Options wires an agent. Model, Tools, Log and Cwd are required; a limit of 0 is the default.
type Options struct {
	Model     llm.Model // model that answers the requests
	Provider  string    // name of the provider, only for records and errors
	ModelName string    // name of the model in requests and records; empty: the provider's default
	Tools     Tools
	Log       *session.Log
	System    func() string // returns the system prompt of a new session; nil: there is none
	// Briefs returns the briefs that precede the prompt of a turn. A brief that has not
	// changed since it was sent, or that the system prompt holds, is not sent. Nil: none.
	Briefs       func() []Brief
	Cwd          string       // absolute directory in which the relative paths of calls start
	Conversation Conversation // conversation of a resumed session, from [ReadConversation]; the agent owns it from then on

	MaxSteps        int           // steps with calls in one turn, after which the model has to answer; 0: [MaxSteps]
	MaxCallsPerStep int           // calls of one step that are carried out, the others fail; 0: [MaxCallsPerStep]
	MaxCalls        int           // calls of one turn, after which it ends; 0: no limit
	MaxTokens       int           // tokens of one turn, as the provider reports them, after which it ends; 0: no limit
	SessionTokens   int           // tokens of the session, after which no turn goes on; 0: no limit
	MaxTime         time.Duration // time of one turn, after which it ends; 0: no limit
	MaxCost         float64       // US dollars of the session, after which no turn goes on; 0: no limit
	RepeatedCalls   int           // equal results of one call, with no new result in between, that end the turn; 0: 4
	HistoryChars    int           // characters of a conversation that no request exceeds; 0: only ContextTokens limits it
	ResultTokens    int           // tokens of one result that the model gets, from its head and its tail; 0: [ResultTokens]

	// Steer returns what the person has said since the turn began or Steer was last called, for
	// the next request of the turn, in which these are the person's words. Nil: nobody does.
	Steer func() []string

	Answer        *AnswerForm      // form of the answer of each turn; nil: any text
	ContextTokens int              // size of the model's context, in tokens; 0: the server is asked, see [AssumedContextTokens]
	Price         *llm.Price       // price of the model; nil: unknown, and no cost is reported
	Summarizer    *llm.Alternative // asked for the summaries of conversations that are too long; nil: Model is
	NoSummaries   bool             // a summary is written only when a person asks for it
}

// AnswerForm makes the answer of a turn a JSON object that fits a schema. The model is told, and
// may call tools before. An answer that does not fit leads to one new try without tools, in which
// the provider keeps the model to the schema if it can. The second time, the turn ends with the
// limit [OutputSchema], and the reason in its error.
type AnswerForm struct {
	Schema   json.RawMessage
	Compiled *tool.Schema // the same schema
}

// OutputSchema is the name of briefs about the form of the answer, and of the limit that ends a
// turn whose answer does not have it.
const OutputSchema = "output_schema"

// Brief is a message for the model that the program has written, and no person: the date, or
// the instructions of a project file. The newest one of a name stays in every request, unlike
// older turns.
type Brief struct {
	Name string // such as "date"; of several with the same name, the newest counts
	Text string
}

// Defaults for the limits of a turn.
const (
	MaxSteps        = 50
	MaxCallsPerStep = 15
	ResultTokens    = 20_000 // a page of file_read fits
)

// Agent runs the turns of one session, one after the other.
type Agent struct {
	opts         Options
	conversation Conversation
	tools        []tool.Definition // tools that the next request offers
	// askedTokens holds the sizes of contexts that servers have told, in tokens, by model; 0: not told.
	askedTokens map[llm.Model]int
	// refusedTokens is less than the size of the smallest request that a provider has refused as
	// too long, in tokens; 0: none was refused.
	refusedTokens int
}

// New returns an agent that continues opts.Conversation.
func New(opts Options) *Agent {
	for _, limit := range []struct {
		value        *int
		defaultValue int
	}{{&opts.MaxSteps, MaxSteps}, {&opts.MaxCallsPerStep, MaxCallsPerStep}, {&opts.RepeatedCalls, 4}, {&opts.ResultTokens, ResultTokens}, {&opts.MaxCalls, math.MaxInt}, {&opts.MaxTokens, math.MaxInt}, {&opts.SessionTokens, math.MaxInt}} {
		if *limit.value <= 0 {
			*limit.value = limit.defaultValue
		}
	}
	a := &Agent{opts: opts, conversation: opts.Conversation, askedTokens: map[llm.Model]int{}}
	opts.Log.Observe(a.conversation.add) // events between turns, too
	return a
}

// Use makes the next turns ask the Model of o, with its Provider, ModelName, ContextTokens, Price
// and Summarizer. The other fields of o are ignored. No turn may be running.
func (a *Agent) Use(o Options) {
	a.refusedTokens = 0
	a.opts.Model, a.opts.Provider, a.opts.ModelName, a.opts.ContextTokens, a.opts.Price = o.Model, o.Provider, o.ModelName, o.ContextTokens, o.Price
	a.opts.Summarizer = o.Summarizer
}

// Run runs one turn and yields its events as they happen, stored ones when they are durable.
// The final event of every turn is turn.ended, with the reason for the end. An error follows
// only if this event could not be recorded. A consumer that stops early cancels the turn.
// Turns must not overlap.
//
// The model reads the prompt and, behind [llm.AttachmentsHeading], the attachments. The event
// turn.started holds the prompt alone, as it was typed, and the user's message both.
func (a *Agent) Run(ctx context.Context, prompt string, attachments ...Attachment) iter.Seq2[session.Event, error] {
	return a.opts.Log.During(ctx, func(ctx context.Context) error { return a.run(ctx, prompt, attachments) })
}

// Attachment is a part of the message for the model behind the prompt, such as the content of
// a file.
type Attachment struct {
	Text   string
	Images []tool.Image // images that the text mentions; nil: none
}

// turn is the state of one turn.
type turn struct {
	a            *Agent
	n            int // number of the turn, from 1
	step         int // number of the step, from 1; 0 before the first and after the final step
	start        time.Time
	end          session.TurnEnded // body of the event turn.ended, which is filled in step by step
	repeatCounts map[string]int    // steps with a call since any call had a new result, by name and arguments
	lastUsage    llm.Usage         // usage of the newest request; zero: the provider did not report it
	finalDrafts  []session.Draft   // events of a step without calls, recorded with the end of the turn
	// fallback is the model that answers for the rest of the turn because the agent's own
	// model has failed, see [llm.Failover]. Nil: the agent's own model answers.
	fallback *llm.Alternative
	// told holds the limits that the turn ends with if its next answer is not better: OutputSchema
	// and llm.CallAsText.
	told map[string]bool
}

// run runs one turn. It returns an error only if the event turn.ended could not be recorded.
func (a *Agent) run(ctx context.Context, prompt string, attachments []Attachment) error {
	t := &turn{a: a, n: a.conversation.turn + 1, start: time.Now(), repeatCounts: map[string]int{}, told: map[string]bool{}}
	a.tools = a.opts.Tools.Definitions()
	if limit := a.opts.MaxTime; limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, &limitError{"turn_time"})
		defer cancel()
	}
	err := t.begin(ctx, prompt, attachments)
	for err == nil && t.end.Reason == "" {
		err = t.next(ctx)
	}
	t.setEndReason(ctx, err)
	t.end.Steps, t.end.DurationMS = t.step, time.Since(t.start).Milliseconds()
	if limit := a.contextTokens(ctx, t.model(), false); limit > 0 && t.lastUsage.Total() > 0 {
		t.end.Context = &session.ContextUse{Used: int64(t.lastUsage.Total()), Limit: int64(limit)}
	}
	t.step = 0
	return t.record(ctx, append(t.finalDrafts, t.draft(session.TypeTurnEnded, "", t.end))...)
}

// opening returns the messages before the next prompt: the system prompt of a new session, and the
// briefs that the model does not have.
func (a *Agent) opening() (out []llm.Message) {
	if len(a.conversation.messages) == 0 && a.opts.System != nil {
		if text := a.opts.System(); text != "" {
			out = append(out, llm.Message{Kind: llm.System, Content: text})
		}
	}
	if a.opts.Briefs != nil {
		for _, b := range a.opts.Briefs() {
			if !hasBrief(append(out, a.conversation.messages...), b) {
				out = append(out, llm.BriefMessage(b.Name, b.Text))
			}
		}
	}
	return out
}

// begin records the first events: the system prompt of a new session, the briefs, the prompt.
func (t *turn) begin(ctx context.Context, prompt string, attachments []Attachment) error {
	first := t.a.opening()
	if form := t.a.opts.Answer; form != nil {
		text := "[A program reads the answer to the following prompt. Once you have done all that it needs, answer with one JSON object that fits this JSON Schema, and with nothing around it, no code fence either: " + string(form.Schema) + "]"
		first = append(first, llm.BriefMessage(OutputSchema, text))
	}
	message := llm.Message{Kind: llm.User, Content: prompt}
	for i, a := range attachments {
		if i == 0 {
			message.Content += "\n\n" + llm.AttachmentsHeading
		}
		message.Content += "\n\n" + a.Text
		message.Parts = append(message.Parts, llm.ImageParts(a.Images)...)
	}
	first = append(first, message)
	started := t.draft(session.TypeTurnStarted, "", session.TurnStarted{Prompt: prompt, Provider: t.a.opts.Provider, Model: t.a.opts.ModelName, Workspace: t.a.opts.Cwd})
	if err := t.checkPrompt(ctx, first); err != nil {
		return errors.Join(err, t.record(ctx, started)) // nothing of it is sent, now or later
	}
	var drafts []session.Draft
	for _, m := range first {
		drafts = append(drafts, t.draft(session.TypeMessage, "", m))
	}
	turn := slices.IndexFunc(first, func(m llm.Message) bool { return m.Kind != llm.System })
	return t.record(ctx, slices.Insert(drafts, turn, started)...)
}

// next asks the model once, and carries out the calls of its reply. If the turn is over, it
// sets the reason in t.end.
func (t *turn) next(ctx context.Context) error {
	if err := t.checkLimits(); err != nil {
		return err
	}
	t.step++
	last := t.step > t.a.opts.MaxSteps // no tools are offered any more, as for a second try of an answer
	t.a.tools = t.a.opts.Tools.Definitions()
	var reply llm.Reply
	var tooLong error // the provider has refused the request with it
	err := errSmallerContext
	for errors.Is(err, errSmallerContext) { // once for each model that stands in at the most: what was left out stays so
		if err = t.makeRoom(ctx, tooLong != nil); err != nil {
			return cmp.Or(tooLong, err)
		}
		reply, err = t.ask(ctx, last)
		if e, ok := errors.AsType[*llm.ProviderError](err); ok && e.Code == llm.ContextExceeded && tooLong == nil && ctx.Err() == nil {
			tooLong, err = err, errSmallerContext
			c := &t.a.conversation // the context is smaller than it was believed to be
			tokens := c.reported.tokensFor(c.chars, t.a.toolChars())
			t.a.refusedTokens = min(cmp.Or(t.a.refusedTokens, tokens), tokens) * 9 / 10
		}
	}
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
	case t.a.opts.Answer != nil:
		err := t.a.opts.Answer.Compiled.Validate(ctx, json.RawMessage(reply.Text))
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return t.askAgain(ctx, OutputSchema, err.Error(), "[Your answer does not fit the JSON Schema: "+err.Error()+". Answer again, with the JSON object alone.]")
		}
		t.end.Reason = session.EndAnswered
	default:
		if name := reply.ToolCalledAsText(t.a.tools); name != "" {
			return t.askAgain(ctx, llm.CallAsText, "", fmt.Sprintf("[Your last reply is the text of a call of %s. Nothing was run: a call that is written as text never is. "+
				"Make the call in the format for tool calls. To show such a text, put it into a code fence after a sentence.]", name))
		}
		t.end.Reason = session.EndAnswered
	}
	return nil
}

// askAgain tells the model what is wrong with its answer. The second time in a turn, or if the
// next step has no tools for a call, it ends the turn with a limit and the reason.
func (t *turn) askAgain(ctx context.Context, limit, reason, text string) error {
	if t.told[limit] || limit == llm.CallAsText && t.step == t.a.opts.MaxSteps {
		t.end.Reason, t.end.Limit, t.end.Error = session.EndLimit, limit, reason
		return nil
	}
	drafts := append(t.finalDrafts, t.draft(session.TypeMessage, "", llm.BriefMessage(limit, text)))
	t.told[limit], t.finalDrafts = true, nil
	return t.record(ctx, drafts...)
}

// ask requests one reply and shows it as it comes. A reply with calls is recorded; the events
// of another become finalDrafts. If last is set, or in a second try of an answer, no tools are
// offered.
func (t *turn) ask(ctx context.Context, last bool) (llm.Reply, error) {
	start := time.Now()
	req := llm.Request{Model: t.a.opts.ModelName, Messages: t.a.conversation.messages}
	switch {
	case t.told[OutputSchema]:
		req.Schema, last = t.a.opts.Answer.Schema, true
	case !last:
		req.Tools = t.a.tools
	}
	assembler := llm.Assembler{Provider: t.a.opts.Provider}
	arriving := writing{}
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
			if part.Text != "" { // without its calls: their arguments may be cut
				err = errors.Join(err, t.record(ctx, t.draft(session.TypeMessage, "", llm.Message{Kind: llm.Assistant, Content: part.Text, Data: json.RawMessage(`{"partial":true}`)})))
			}
			return llm.Reply{}, err
		}
		if delta.Restart != nil {
			r := delta.Restart
			restart := session.Restart{Error: r.Err.Error(), WaitMS: r.Wait.Milliseconds(), Attempt: r.Attempt, Attempts: r.Attempts}
			if r.Alternative != nil {
				t.fallback, restart.Profile = r.Alternative, r.Alternative.Profile
			}
			t.show(session.TypeRestart, restart)
			clear(arriving)
			if b, _ := t.budget(ctx, 0); r.Alternative != nil && t.a.conversation.chars > b.limit {
				return llm.Reply{}, errSmallerContext
			}
		}
		if delta.Reasoning != "" {
			t.show(session.TypeReasoning, session.Reasoning{Bytes: len(delta.Reasoning)})
		}
		for _, c := range delta.Calls {
			if tools, can := t.a.opts.Tools.(Preloader); can && c.Name != "" {
				tools.Preload(c.Name)
			}
			if shown, news := arriving.add(c, assembler.Arguments(c.Index)); news {
				t.show(session.TypeWriting, shown)
			}
		}
		if delta.Text != "" {
			t.show(session.TypeDelta, session.Delta{Text: delta.Text})
		}
	}
	reply := assembler.Reply()
	if last || reply.Finish == llm.FinishLength || reply.Finish == llm.FinishFilter {
		// Such calls are neither carried out nor recorded: no tools were offered, or the
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

// spend adds the usage of a request to the turn, and returns its cost; nil: unknown.
func (t *turn) spend(u llm.Usage) *float64 {
	cost := t.model().Price.Cost(u)
	t.end.Usage, t.end.Cost = t.end.Usage.Plus(u), llm.AddCosts(t.end.Cost, cost)
	return cost
}

// assignID gives a call an ID that is new in the session: the log identifies calls by their
// ID, and some models count from 1 in each reply.
func (t *turn) assignID(call *llm.CallData) {
	if !tool.ValidName(call.ID) {
		call.ID = "call" // the ID is in event headers, which are never deleted, so it must hold no text of a model
	}
	for base, n := call.ID, 2; t.a.conversation.ids[call.ID]; n++ {
		call.ID = fmt.Sprintf("%s_%d", base, n)
	}
	t.a.conversation.reserveID(call.ID)
}

// callAll carries out the calls of one step, except for those that refuse is for.
func (t *turn) callAll(ctx context.Context, calls []llm.CallData) error {
	limit := ""
	if t.step == t.a.opts.MaxSteps {
		limit = fmt.Sprintf("Tool call limit reached (%d). Answer now with what you have.", t.a.opts.MaxSteps)
	}
	var carriedOut, refused []llm.CallData
	for i, c := range calls {
		if i < min(t.a.opts.MaxCallsPerStep, t.a.opts.MaxCalls-t.end.Calls) && c.Function.DroppedBytes == 0 {
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
	var said []session.Draft // words of the person during the turn, for the next request
	for _, r := range results {
		t.end.Calls++
		if r.PersonSays != "" {
			said = append(said, t.draft(session.TypeMessage, "", llm.DuringTurn(r.PersonSays)))
		}
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
	if err == nil && t.end.Reason == "" && t.a.opts.Steer != nil {
		for _, text := range t.a.opts.Steer() {
			said = append(said, t.draft(session.TypeMessage, "", llm.DuringTurn(text)))
		}
	}
	if said != nil {
		err = errors.Join(err, t.record(ctx, said...))
	}
	if err == nil && t.end.Reason == "" && t.fuelIsSpent(results) {
		return &limitError{"session_fuel"}
	}
	return err
}

// isRepeating reports whether the model goes round in a circle: in RepeatedCalls steps a call
// has had the same result, and no call of the steps from the second on had a new result.
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

// refuse records a failed result for a call beyond MaxCallsPerStep, or with arguments that
// were too large. limit is the LimitMessage of the result; empty: none.
func (t *turn) refuse(ctx context.Context, c llm.CallData, limit string) (tool.Result, error) {
	r := tool.Failed(tool.CodeLimitReached, tool.ValidationFailed,
		"not run: only the first %d calls of one reply are run (max_tool_calls_per_turn)", t.a.opts.MaxCallsPerStep)
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

// setEndReason sets the reason, the error and the hint of a turn that ends with err, if any.
func (t *turn) setEndReason(ctx context.Context, err error) {
	var provider *llm.ProviderError
	var limit *limitError
	switch {
	case err == nil:
		return
	case ctx.Err() != nil && errors.As(context.Cause(ctx), &limit), ctx.Err() == nil && errors.As(err, &limit):
		t.end.Reason, t.end.Limit = session.EndLimit, limit.key
	case ctx.Err() != nil:
		t.end.Reason, t.end.Error = session.EndCancelled, context.Cause(ctx).Error()
	case errors.As(err, &provider):
		t.end.Reason, t.end.Error, t.end.Hint = session.EndProvider, provider.Error(), provider.Hint
		if provider.Retryable && provider.Hint == "" {
			t.end.Hint = "try again later; the results of the turn so far are kept"
		}
	default:
		t.end.Reason, t.end.Error = session.EndError, err.Error()
	}
}

// draft returns an event of this turn that is not recorded yet.
func (t *turn) draft(typ session.Type, call string, body any) session.Draft {
	return session.NewDraft(typ, t.n, t.step, call, body)
}

// record appends events to the log, all or none, even if ctx has ended. The conversation gets
// their messages from the log.
func (t *turn) record(ctx context.Context, drafts ...session.Draft) error {
	if _, err := t.a.opts.Log.Append(context.WithoutCancel(ctx), drafts...); err != nil {
		return fmt.Errorf("record %s: %w", drafts[0].Type, err)
	}
	return nil
}

// show emits an event that is not stored.
func (t *turn) show(typ session.Type, body any) { t.a.opts.Log.Emit(t.draft(typ, "", body)) }
