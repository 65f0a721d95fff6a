package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

// Conversation holds the messages of a session for the model, and counts about them. It is
// built only from recorded events, in earlier turns as in the running one: the model reads the
// log. The zero value is a new session.
type Conversation struct {
	position
	messages    []llm.Message
	about       []about                // facts about each message of messages
	starts      []turnStart            // turns that can be taken back, in their order
	changes     []change               // what reductions and summaries have taken from messages, the newest last
	facts       facts                  // facts about the work so far
	ids         map[string]bool        // IDs of all calls of the session, including a person's
	openCalls   []llm.CallData         // calls of the current step, in order
	results     map[string]llm.Message // results of the current step, by call ID
	answered    bool                   // set once the current step gets no further calls
	spent       Spent
	personCalls []PersonCall // calls of a person since the newest turn began, at most maxPersonCalls
}

// position holds what a conversation counts about its messages, and what a rewind takes back.
type position struct {
	numbered  int      // number of the newest message; 0: there was none
	read      int      // number of the newest message that a model has read or written; 0: none
	chars     int      // total size of messages, in characters
	leftOut   LeftOut  // parts that were left out so far
	step      [2]int   // turn and step of the newest message of a model
	stepStart int      // number of the first message of that step; 0: there is none
	reported  reported // the newest size in tokens that a provider has reported
	turn      int      // number of the newest turn; 0: none
}

// about holds facts about a message of a conversation.
type about struct {
	number int    // number of the message in the session, from 1; no other message ever gets it
	turn   int    // turn of the message, or for a message between two turns the turn before it
	call   string // ID of the call, if the message is a call or its result; else empty
	chars  int    // size of the message, in characters
}

// change holds messages as they were before a reduction or a summary, so that a rewind can put them
// back.
type change struct {
	at       int // index of the message before it was reduced; -1: messages are all that there were before a summary
	messages []llm.Message
	about    []about
}

// reported is the size of a conversation as a provider has counted it.
type reported struct {
	tokens int // tokens of the request and of its answer; 0: no provider has counted
	chars  int // size of the same messages, in characters
}

// PersonCall is a call that a person has made between two turns, and its result. The model
// does not read it, unless the person sends it with a prompt.
type PersonCall struct {
	Call   llm.CallData
	Result llm.Message // zero: there is none yet
}

// maxPersonCalls limits the kept calls of a person between two turns; the oldest are dropped.
const maxPersonCalls = 16

// PersonCalls returns the calls of a person since the newest turn began, without those that
// have no result: the newest 16 at most.
func (c *Conversation) PersonCalls() []PersonCall {
	return slices.DeleteFunc(slices.Clone(c.personCalls), func(a PersonCall) bool { return a.Result.Kind == "" })
}

// addPersonCall adds the message of a call outside of a turn, or of its result.
func (c *Conversation) addPersonCall(id string, m llm.Message) {
	var call llm.CallData
	switch {
	case m.Kind == llm.ToolCall && json.Unmarshal(m.Data, &call) == nil:
		call.ID = id
		c.personCalls = append(c.personCalls, PersonCall{Call: call})
		c.personCalls = c.personCalls[max(len(c.personCalls)-maxPersonCalls, 0):]
	case m.Kind == llm.ToolResult:
		if i := slices.IndexFunc(c.personCalls, func(a PersonCall) bool { return a.Call.ID == id }); i >= 0 {
			c.personCalls[i].Result = m
		}
	}
}

// ReadConversation builds a conversation from a session's events, up to their first error.
// Results come in the order of their calls, even if they ended in another order. A call
// without a result, as after a crash, gets one that says so. Events whose body has been
// deleted are left out. Parts that the running session left out are left out again, as its
// events say, so a resumed session sends the same requests.
func ReadConversation(events iter.Seq2[session.Event, error]) (Conversation, error) {
	var c Conversation
	for e, err := range events {
		if err != nil {
			return c, fmt.Errorf("read history: %w", err)
		}
		c.add(e)
	}
	c.endStep()
	return c, nil
}

// add adds an event. An event that is not stored adds no message.
func (c *Conversation) add(e session.Event) {
	c.turn = max(c.turn, e.Turn)
	c.facts.add(e)
	if e.Call != "" {
		c.reserveID(e.Call)
	}
	m, ok := e.Message()
	// Calls outside a turn are a person's own, and no part of the conversation. Briefs about
	// them are.
	if e.Turn == 0 && e.Call != "" {
		c.addPersonCall(e.Call, m)
		return
	}
	step := [2]int{e.Turn, e.Step}
	switch e.Type {
	case session.TypeTurnStarted:
		c.personCalls = nil
		c.endStep()
		c.starts = append(c.starts, turnStart{c.position, len(c.changes)})
	case session.TypeRewound:
		c.rewind(bodyOf[session.Rewound](e).Turn)
	case session.TypeStepEnded:
		if step != c.step && c.answered { // a step without any message
			c.endStep()
		}
		c.answered, c.read = true, c.numbered
		c.spent.Last = bodyOf[session.StepEnded](e).Usage
		if n := c.spent.Last.Total(); n > 0 {
			c.reported = reported{n, c.chars}
		}
	case session.TypeTurnEnded:
		end := bodyOf[session.TurnEnded](e)
		c.spent.Turns++
		c.spent.add(end.Usage, end.Cost)
	case session.TypeToolResult:
		c.answered = true
	case session.TypeContextReduced:
		c.endStep()
		c.reduce(bodyOf[session.ContextReduced](e).Parts)
	case session.TypeContextCompacted:
		compacted := bodyOf[session.ContextCompacted](e)
		if e.Turn == 0 { // otherwise the end of the turn counts it
			c.spent.add(compacted.Usage, compacted.Cost)
		}
		c.endStep()
		c.compact(compacted)
	}
	if !ok {
		return
	}
	if (m.Kind == llm.Assistant || m.Kind == llm.ToolCall) && (step != c.step || c.answered) {
		c.endStep()
		c.step, c.stepStart = step, c.numbered+1
	}
	switch m.Kind {
	case llm.ToolResult:
		var data llm.ResultData
		if bytes.Contains(m.Data, []byte(`"wrote":`)) && json.Unmarshal(m.Data, &data) == nil { // RawOutput is not sent, so it needs no memory
			data.RawOutput = ""
			m.Data = tool.Marshal(data)
		}
		if c.results == nil {
			c.results = map[string]llm.Message{}
		}
		c.results[e.Call] = m
	case llm.Assistant:
		c.append(m, "")
	case llm.ToolCall:
		var call llm.CallData
		if json.Unmarshal(m.Data, &call) == nil {
			call.ID = e.Call
			if call.Function.Original != nil { // it is not sent either
				call.Function.Original = nil
				m.Data = tool.Marshal(call)
			}
			c.openCalls = append(c.openCalls, call)
			c.append(m, e.Call)
		}
	default:
		c.endStep()
		c.append(m, "")
	}
}

// bodyOf returns the body of an event; zero: it has been deleted, or is not of this type.
func bodyOf[T any](e session.Event) (body T) {
	if json.Unmarshal(e.Body, &body) != nil {
		return *new(T)
	}
	return body
}

// append adds m at the end. call is the ID of the call, if m is a call or its result; else empty.
func (c *Conversation) append(m llm.Message, call string) {
	c.numbered++
	a := about{number: c.numbered, turn: c.turn, call: call, chars: size(m)}
	c.messages, c.about, c.chars = append(c.messages, m), append(c.about, a), c.chars+a.chars
}

// hasBrief reports whether messages have the text of b: as the newest brief under its name,
// or, if there is no brief under the name, as a part of the system prompt.
func hasBrief(messages []llm.Message, b Brief) bool {
	for _, m := range slices.Backward(messages) {
		if name, ok := m.Brief(); ok && name == b.Name {
			return m.Content == b.Text
		}
	}
	return slices.ContainsFunc(messages, func(m llm.Message) bool { return m.Kind == llm.System && strings.Contains(m.Content, b.Text) })
}

// endStep ends a step: it appends the results of its calls in the order of the calls. A
// call without a result counts as interrupted.
func (c *Conversation) endStep() {
	for _, call := range c.openCalls {
		m, ok := c.results[call.ID]
		if !ok {
			m = llm.ResultMessage(call.ID, call.Function.Name, interruptedResult(call.Function.Name))
		}
		c.append(m, call.ID)
		c.facts.addCommand(call, m)
	}
	c.openCalls, c.results, c.answered = nil, nil, false
}

// reserveID marks an ID as taken, so that no other call of the session gets it.
func (c *Conversation) reserveID(id string) {
	if c.ids == nil {
		c.ids = map[string]bool{}
	}
	c.ids[id] = true
}

// interruptedResult returns the result of a call without a result in the log.
func interruptedResult(name string) tool.Result {
	return tool.Failed(tool.CodeInterrupted, tool.InternalError, "%s was interrupted; whether it had any effect is not known", name)
}

// RecordInterrupted records that a call without a result was interrupted, as a failed result.
func RecordInterrupted(ctx context.Context, store session.Store, c session.OpenCall) error {
	r := interruptedResult(c.Name)
	r.Usage.Start = c.Time
	d := session.NewDraft(session.TypeToolResult, c.Turn, c.Step, c.Call, llm.ResultMessage(c.Call, c.Name, r))
	d.Session = c.Session
	_, err := store.Append(ctx, d)
	return err
}
