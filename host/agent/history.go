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

// Conversation is what has happened in a session, and the conversation that the model has
// of it. Recorded events make it, those of the turns before as those of the turn
// that runs: the log is what the model reads. The zero value is a new session.
type Conversation struct {
	messages    []llm.Message
	chars       int                    // in them
	maxChars    int                    // characters of a request; what is too much is forgotten; 0: nothing is
	retryChars  int                    // characters from which room is made again, where there are more than most
	leftOut     LeftOut                // what was forgotten
	turn        int                    // the last one
	ids         map[string]bool        // of all calls, those that are no part of messages too
	openCalls   []llm.CallData         // the calls of this step, in order
	results     map[string]llm.Message // of this step, by the id of the call
	answered    bool                   // the model has said all of this step
	spent       Spent
	personCalls []PersonCall // since the last turn
}

// PersonCall is a call that a person has made between two turns, and its result. It is no
// part of the conversation until they tell the model of it.
type PersonCall struct {
	Call   llm.CallData
	Result llm.Message
}

// maxPersonCalls is how many calls of a person are kept for the next turn, the newest.
const maxPersonCalls = 16

// PersonCalls are the calls of a person since the last turn, the newest 16.
func (p *Conversation) PersonCalls() []PersonCall {
	return slices.DeleteFunc(slices.Clone(p.personCalls), func(a PersonCall) bool { return a.Result.Kind == "" })
}

// addPersonCall takes an event of a call outside of a turn.
func (p *Conversation) addPersonCall(id string, m llm.Message) {
	var call llm.CallData
	switch {
	case m.Kind == llm.ToolCall && json.Unmarshal(m.Data, &call) == nil:
		call.ID = id
		p.personCalls = append(p.personCalls, PersonCall{Call: call})
		p.personCalls = p.personCalls[max(len(p.personCalls)-maxPersonCalls, 0):]
	case m.Kind == llm.ToolResult:
		if i := slices.IndexFunc(p.personCalls, func(a PersonCall) bool { return a.Call.ID == id }); i >= 0 {
			p.personCalls[i].Result = m
		}
	}
}

// ReadConversation makes a conversation of a session's events. Results come in the
// order of their calls, whatever the order in which they ended; a call without
// a result, as after a crash, gets one that says so. Events whose body has
// been deleted are left out. What has no room in requests of at most so many characters
// is forgotten as it was then: a session that is resumed asks with what it would have
// asked with, and the memory that it takes does not grow with it. 0 forgets nothing.
func ReadConversation(events iter.Seq2[session.Event, error], most int) (Conversation, error) {
	past := Conversation{maxChars: most}
	for e, err := range events {
		if err != nil {
			return past, fmt.Errorf("read history: %w", err)
		}
		past.add(e)
	}
	past.endStep()
	return past, nil
}

// add takes an event into the past. One that is not stored changes nothing.
func (p *Conversation) add(e session.Event) {
	p.turn = max(p.turn, e.Turn)
	p.spent.add(e)
	if e.Call != "" {
		p.reserveID(e.Call)
	}
	if e.Type == session.TypeTurnStarted {
		p.personCalls = nil
	}
	m, ok := e.Message()
	// Calls outside a turn are a person's own, and no part of the conversation. What the
	// model is told of one is.
	if e.Turn == 0 && e.Call != "" {
		p.addPersonCall(e.Call, m)
		return
	}
	if e.Type == session.TypeStepEnded || e.Type == session.TypeToolResult {
		p.answered = true
	}
	if !ok {
		return
	}
	switch m.Kind {
	case llm.ToolResult:
		var data llm.ResultData
		if bytes.Contains(m.Data, []byte(`"wrote":`)) && json.Unmarshal(m.Data, &data) == nil { // is not sent, so it needs no memory
			data.RawOutput = ""
			m.Data = tool.Marshal(data)
		}
		if p.results == nil {
			p.results = map[string]llm.Message{}
		}
		p.results[e.Call] = m
	case llm.Assistant:
		if p.answered || len(p.openCalls) == 0 { // else a text between the calls of a step
			p.endStep()
			p.makeRoom()
		}
		p.append(m)
	case llm.ToolCall:
		if p.answered {
			p.endStep() // a new step without any text
		}
		if len(p.openCalls) == 0 {
			p.makeRoom()
		}
		var call llm.CallData
		if json.Unmarshal(m.Data, &call) == nil {
			call.ID = e.Call
			if call.Function.Original != nil { // is not sent either
				call.Function.Original = nil
				m.Data = tool.Marshal(call)
			}
			p.openCalls = append(p.openCalls, call)
			p.append(m)
		}
	default:
		p.endStep()
		p.append(m)
	}
}

func (p *Conversation) append(m llm.Message) {
	p.messages = append(p.messages, m)
	p.chars += size(m)
	if slices.ContainsFunc(m.Parts, func(part llm.Part) bool { return part.Data != nil }) {
		p.dropImages()
	}
}

const (
	// imageChars is what an image counts for, in characters: providers take some 1,500
	// tokens for one, whatever its bytes are.
	imageChars = 6000
	// What a request may hold of images. Anthropic's API wants those of more than 20 to
	// have 2000 pixels a side at most, and Google's takes 20 MB of base64 and text:
	// https://docs.claude.com/en/docs/build-with-claude/vision,
	// https://ai.google.dev/gemini-api/docs/image-understanding.
	maxImages      = 20
	maxImagesBytes = 12 << 20
)

// dropImages forgets the oldest images once there are more than a request may hold. It
// leaves room for new ones: each time that it changes what the model has read before, the
// provider's cache of that is of no more use. The newest image stays.
func (p *Conversation) dropImages() {
	number, bytes := 0, 0
	each := func(f func(m *llm.Message, n int)) {
		for i := range slices.Backward(p.messages) {
			for n := range slices.Backward(p.messages[i].Parts) {
				if data := p.messages[i].Parts[n].Data; data != nil {
					number, bytes = number+1, bytes+len(data)
					f(&p.messages[i], n)
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
			p.chars -= imageChars
			p.leftOut = p.leftOut.plus(LeftOut{Images: 1, Chars: imageChars})
		}
	})
}

// makeRoom forgets what has no room in the next request. It is called before a request
// and, so that the log gives the same conversation, before the reply to it. It leaves a
// quarter free: the requests of the steps that follow begin as this one does, so that the
// provider's cache of them is of use, and nothing is shortened at each step again. Where
// that much cannot be forgotten, it is tried again when a sixteenth has come since.
func (p *Conversation) makeRoom() {
	if p.maxChars <= 0 || p.chars <= max(p.maxChars, p.retryChars) {
		return
	}
	kept, left := fit(p.messages, p.maxChars-p.maxChars/4)
	p.messages = slices.Clone(kept) // the others are to be collected
	p.leftOut = p.leftOut.plus(left)
	p.chars -= left.Chars
	p.retryChars = 0
	if p.chars > p.maxChars {
		p.retryChars = p.chars + p.maxChars/16
	}
}

// hasBrief reports whether the model has been told this, and nothing else under the name
// since: in the system prompt, where it never was after that.
func (p *Conversation) hasBrief(b Brief) bool {
	for _, m := range slices.Backward(p.messages) {
		if name, ok := m.Brief(); ok && name == b.Name {
			return m.Content == b.Text
		}
	}
	return slices.ContainsFunc(p.messages, func(m llm.Message) bool { return m.Kind == llm.System && strings.Contains(m.Content, b.Text) })
}

// endStep ends a step: the results of its calls stand in the order of the calls,
// and one that has none by now gets none any more.
func (p *Conversation) endStep() {
	for _, call := range p.openCalls {
		m, ok := p.results[call.ID]
		if !ok {
			m = llm.ResultMessage(call.ID, call.Function.Name, interruptedResult(call.Function.Name))
		}
		p.append(m)
	}
	p.openCalls, p.results, p.answered = nil, nil, false
}

// reserveID makes the id one that no other call of the session gets.
func (p *Conversation) reserveID(id string) {
	if p.ids == nil {
		p.ids = map[string]bool{}
	}
	p.ids[id] = true
}

// interruptedResult is the result of a call that never got one.
func interruptedResult(name string) tool.Result {
	return tool.Failed(tool.CodeInterrupted, tool.InternalError, "%s was interrupted; whether it had any effect is not known", name)
}

// size is what a message adds to a request, in characters.
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

// fit returns the messages that fit into budget characters, and what it left out.
// System messages stay, and the last brief of each name. Images are left out from the
// oldest on, then whole turns are dropped; when the current turn alone is too long, its
// older tool results are replaced by a line that says so. The last messages always stay.
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
		case m.Kind == llm.User:
			lastUser = max(lastUser, i)
		}
	}
	var out []llm.Message
	dropping := true
	for i, m := range messages {
		if m.Kind == llm.User && !stays[i] && (total <= budget || i == lastUser) {
			dropping = false // a turn is kept or dropped as a whole
		}
		if dropping && !stays[i] {
			total -= size(m)
			if _, brief := m.Brief(); m.Kind == llm.User && !brief {
				left.Turns++
			}
			if isShortened(m) { // it is left out altogether
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

// recentMessages is how many of the last messages are not shortened, but for
// calls with arguments that would fill the request by themselves.
const recentMessages = 8

// What stands in the place of what was left out begins with these words, or has them.
const (
	leftOutKey  = "left_out"
	leftOutNote = ", left out to save room;"
)

// isShortened reports whether a message was shortened, by its words and because it is short:
// a tool may have written the same words.
func isShortened(m llm.Message) bool {
	const most = 1 << 10 // bytes, of which ids and names have a few hundred
	switch {
	case len(m.Data) > most:
	case m.Kind == llm.ToolCall:
		return bytes.Contains(m.Data, []byte(`{\"`+leftOutKey+`\":`))
	case m.Kind == llm.ToolResult:
		return bytes.Contains(m.Data, []byte(leftOutNote))
	}
	return false
}

// shortened is a call without its arguments, or a result without its output, if
// that makes it shorter.
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

// replaceText puts a note, which says how long it was, in the place of a text in the
// data of a message.
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
		m.Parts = nil // what led to a call is of no use without it
	}
	return m
}

// RecordInterrupted records, for a call that has no result, that it was interrupted.
func RecordInterrupted(ctx context.Context, store session.Store, c session.OpenCall) error {
	r := interruptedResult(c.Name)
	r.Usage.Start = c.Time
	d := session.NewDraft(session.TypeToolResult, c.Turn, c.Step, c.Call, llm.ResultMessage(c.Call, c.Name, r))
	d.Session = c.Session
	_, err := store.Append(ctx, d)
	return err
}
