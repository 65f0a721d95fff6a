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
	messages    []llm.Message
	chars       int                    // total size of messages, in characters
	maxChars    int                    // size of chars above which messages are left out; 0: none is
	retryChars  int                    // size of chars above which makeRoom tries again; 0: maxChars
	leftOut     LeftOut                // parts that were left out so far
	starts      []turnStart            // of the turns that can be taken back, in their order
	turn        int                    // number of the newest turn; 0: none
	ids         map[string]bool        // IDs of all calls of the session, including a person's
	openCalls   []llm.CallData         // calls of the current step, in order
	results     map[string]llm.Message // results of the current step, by call ID
	answered    bool                   // set once the current step gets no further calls
	spent       Spent
	personCalls []PersonCall // calls of a person since the newest turn began, at most maxPersonCalls
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
// deleted are left out. maxChars is [Options.HistoryChars] of the session: messages are left
// out as in the running session, so a resumed session sends the same requests. 0: no limit.
func ReadConversation(events iter.Seq2[session.Event, error], maxChars int) (Conversation, error) {
	c := Conversation{maxChars: maxChars}
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
	c.spent.add(e)
	if e.Call != "" {
		c.reserveID(e.Call)
	}
	if e.Type == session.TypeTurnStarted {
		c.personCalls = nil
		c.beginTurn(e.Turn)
	}
	if e.Type == session.TypeRewound {
		c.rewind(e.Body)
	}
	m, ok := e.Message()
	// Calls outside a turn are a person's own, and no part of the conversation. Briefs about
	// them are.
	if e.Turn == 0 && e.Call != "" {
		c.addPersonCall(e.Call, m)
		return
	}
	if e.Type == session.TypeStepEnded || e.Type == session.TypeToolResult {
		c.answered = true
	}
	if !ok {
		return
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
		if c.answered || len(c.openCalls) == 0 { // otherwise it is text between the calls of a step
			c.endStep()
			c.makeRoom()
		}
		c.append(m)
	case llm.ToolCall:
		if c.answered {
			c.endStep() // a new step without any text
		}
		if len(c.openCalls) == 0 {
			c.makeRoom()
		}
		var call llm.CallData
		if json.Unmarshal(m.Data, &call) == nil {
			call.ID = e.Call
			if call.Function.Original != nil { // it is not sent either
				call.Function.Original = nil
				m.Data = tool.Marshal(call)
			}
			c.openCalls = append(c.openCalls, call)
			c.append(m)
		}
	default:
		c.endStep()
		c.append(m)
	}
}

func (c *Conversation) append(m llm.Message) {
	c.messages = append(c.messages, m)
	c.chars += size(m)
	if slices.ContainsFunc(m.Parts, func(part llm.Part) bool { return part.Data != nil }) {
		c.dropImages()
	}
}

const (
	// imageChars is the size of an image in characters: providers count some 1,500 tokens for
	// one, independent of its bytes.
	imageChars = 6000
	// maxImages and maxImagesBytes limit the images in a request; above, the oldest are
	// dropped. Anthropic's API limits images to 2000 pixels a side if there are more than 20,
	// and Google's takes 20 MB of base64 and text:
	// https://docs.claude.com/en/docs/build-with-claude/vision,
	// https://ai.google.dev/gemini-api/docs/image-understanding.
	maxImages      = 20
	maxImagesBytes = 12 << 20
)

// dropImages drops the oldest images if there are more than a request may hold. It drops more
// than needed, down to half of the limits, because each change of earlier messages makes the
// provider's cache of them useless. The newest image stays.
func (c *Conversation) dropImages() {
	number, bytes := 0, 0
	each := func(f func(m *llm.Message, n int)) {
		for i := range slices.Backward(c.messages) {
			for n := range slices.Backward(c.messages[i].Parts) {
				if data := c.messages[i].Parts[n].Data; data != nil {
					number, bytes = number+1, bytes+len(data)
					f(&c.messages[i], n)
				}
			}
		}
	}
	each(func(*llm.Message, int) {})
	if number <= maxImages && bytes <= maxImagesBytes {
		return
	}
	number, bytes = 0, 0
	each(func(m *llm.Message, n int) {
		if number > 1 && (number > maxImages/2 || bytes > maxImagesBytes/2) {
			m.Parts = slices.Clone(m.Parts)
			m.Parts[n].Data = nil
			c.chars -= imageChars
			c.leftOut = c.leftOut.plus(LeftOut{Images: 1, Chars: imageChars})
		}
	})
}

// makeRoom leaves out messages, if the conversation has more than maxChars, until a quarter of
// maxChars is free: the following requests then begin like this one, so that the provider's
// cache stays useful, and nothing is shortened anew at each step. If it cannot free enough, it
// tries again once the conversation has grown by a sixteenth of maxChars. It is called before
// a request and, so that the log gives the same conversation, before the reply to the request.
func (c *Conversation) makeRoom() {
	if c.maxChars <= 0 || c.chars <= max(c.maxChars, c.retryChars) {
		return
	}
	kept, left := fit(c.messages, c.maxChars-c.maxChars/4)
	dropped := len(c.messages) - len(kept)
	c.messages = slices.Clone(kept) // so that the other messages can be freed
	c.moveStarts(dropped)
	c.leftOut = c.leftOut.plus(left)
	c.chars -= left.Chars
	c.retryChars = 0
	if c.chars > c.maxChars {
		c.retryChars = c.chars + c.maxChars/16
	}
}

// hasBrief reports whether the model has the text of b: as the newest brief under its name,
// or, if there is no brief under the name, as a part of the system prompt.
func (c *Conversation) hasBrief(b Brief) bool {
	for _, m := range slices.Backward(c.messages) {
		if name, ok := m.Brief(); ok && name == b.Name {
			return m.Content == b.Text
		}
	}
	return slices.ContainsFunc(c.messages, func(m llm.Message) bool { return m.Kind == llm.System && strings.Contains(m.Content, b.Text) })
}

// endStep ends a step: it appends the results of its calls in the order of the calls. A
// call without a result counts as interrupted.
func (c *Conversation) endStep() {
	for _, call := range c.openCalls {
		m, ok := c.results[call.ID]
		if !ok {
			m = llm.ResultMessage(call.ID, call.Function.Name, interruptedResult(call.Function.Name))
		}
		c.append(m)
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

// size returns the size of a message in a request, in characters: one for each byte of text,
// and imageChars for each image.
func size(m llm.Message) int {
	n := len(m.Content) + len(m.Data)
	for _, part := range m.Parts {
		if n += len(part.Text); part.ProviderData != nil {
			n += len(part.ProviderData.Data)
		}
		if part.Data != nil {
			n += imageChars
		}
	}
	return n
}

// fit returns the messages that fit into budget characters, and counts the parts that are left
// out. System messages stay, and the newest brief of each name. First images are left out,
// from the oldest on, then whole turns. If the current turn alone is too long, the arguments
// of its calls and their results become notes, from the oldest on, see recentMessages. If that
// is not enough, more characters than budget remain.
func fit(messages []llm.Message, budget int) ([]llm.Message, LeftOut) {
	total := 0
	for _, m := range messages {
		total += size(m)
	}
	if total <= budget {
		return messages, LeftOut{}
	}
	whole := total
	var left LeftOut
	messages = slices.Clone(messages)
	for i, m := range messages[:max(len(messages)-recentMessages, 0)] {
		if total > budget && len(m.Parts) > 0 {
			messages[i] = m.WithoutImages()
			saved := size(m) - size(messages[i])
			total, left.Images = total-saved, left.Images+saved/imageChars
		}
	}
	lastUser, stays := 0, map[int]bool{}
	seen := map[string]bool{} // names of briefs
	for i, m := range slices.Backward(messages) {
		name, brief := m.Brief()
		switch {
		case m.Kind == llm.System:
			stays[i] = true
		case brief:
			stays[i], seen[name] = !seen[name], true
		case m.Kind == llm.User && !m.IsDuringTurn():
			lastUser = max(lastUser, i)
		}
	}
	var out []llm.Message
	dropping := true
	for i, m := range messages {
		if m.Kind == llm.User && !m.IsDuringTurn() && !stays[i] && (total <= budget || i == lastUser) {
			dropping = false // a turn is kept or dropped as a whole
		}
		if dropping && !stays[i] {
			total -= size(m)
			if _, brief := m.Brief(); m.Kind == llm.User && !brief && !m.IsDuringTurn() {
				left.Turns++
			}
			if isShortened(m) { // it now counts as part of a turn
				left.Shortened--
			}
			continue
		}
		out = append(out, m)
	}
	for i := range out {
		if total <= budget {
			break
		}
		recent := i >= len(out)-recentMessages
		if out[i].Kind == llm.ToolResult && !recent || out[i].Kind == llm.ToolCall && (!recent || size(out[i]) > budget/recentMessages) {
			before := size(out[i])
			out[i] = shortened(out[i])
			if saved := before - size(out[i]); saved > 0 {
				total -= saved
				left.Shortened++
			}
		}
	}
	left.Chars = whole - total
	return out, left
}

// recentMessages is the number of messages at the end that fit does not shorten and that keep
// their images there. Calls with more than their share of the budget are shortened all the same.
const recentMessages = 8

// Marks of the notes that replace arguments and outputs, see isShortened.
const (
	leftOutKey  = "left_out"
	leftOutNote = ", left out to save room;"
)

// isShortened reports whether a message was shortened. It must have a mark and be short,
// because a tool may have written the same words.
func isShortened(m llm.Message) bool {
	const maxBytes = 1 << 10 // ids and names take a few hundred
	switch {
	case len(m.Data) > maxBytes:
	case m.Kind == llm.ToolCall:
		return bytes.Contains(m.Data, []byte(`{\"`+leftOutKey+`\":`))
	case m.Kind == llm.ToolResult:
		return bytes.Contains(m.Data, []byte(leftOutNote))
	}
	return false
}

// shortened returns a call with a note instead of its arguments, or a result with a note
// instead of its output; m itself if this is not shorter.
func shortened(m llm.Message) llm.Message {
	if isShortened(m) {
		return m
	}
	if m.Kind == llm.ToolCall {
		var data llm.CallData
		return replaceText(m, &data, &data.Function.Arguments, func(n int) any {
			return map[string]string{leftOutKey: fmt.Sprintf("%d bytes of arguments", n)}
		})
	}
	var data llm.ResultData
	return replaceText(m, &data, &data.Output, func(n int) any {
		return map[string]any{
			"tool_success": data.Success,
			"result":       map[string]string{"output": fmt.Sprintf("(%d bytes%s call the tool again if you need them)", n, leftOutNote)},
		}
	})
}

// replaceText returns m with a text in its data replaced by a note, if the note is shorter.
// data points to the type of m's Data, and text to a field in it. note makes the note, given
// the length of the text in bytes.
func replaceText(m llm.Message, data any, text *string, note func(length int) any) llm.Message {
	if json.Unmarshal(m.Data, data) != nil {
		return m
	}
	short := string(tool.Marshal(note(len(*text))))
	if len(short) >= len(*text) {
		return m
	}
	*text = short
	m.Data = tool.Marshal(data)
	if m.Kind == llm.ToolCall {
		m.Parts = nil // the reasoning behind a call is useless without its arguments
	}
	return m
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
