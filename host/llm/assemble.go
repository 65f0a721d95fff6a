package llm

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits on one reply, which comes from the network. A reply over a limit is a [ProviderError]
// that is not retryable, with one exception: a call over MaxArgumentBytes or
// MaxReplyArgumentBytes only loses its arguments, see [FunctionData.DroppedBytes].
const (
	MaxTextBytes          = 4 << 20  // bytes of the texts of one reply
	MaxReasoningBytes     = 4 << 20  // bytes of the reasoning of one reply; as many again of provider data
	maxParts              = 1000     // parts of one reply, not counting its calls
	MaxArgumentBytes      = 2 << 20  // bytes of the arguments of one call
	MaxReplyArgumentBytes = 4 << 20  // bytes of the arguments of all calls of one reply
	maxDroppedBytes       = 64 << 20 // bytes of dropped arguments of all calls of one reply
	MaxCalls              = 128      // calls of one reply
)

// Limits on a name and an id, in bytes; no tool and no id of ours is longer. A longer name is cut,
// which makes it the name of an unknown tool; a longer id is replaced.
const (
	maxNameBytes = 256
	maxIDBytes   = 256
)

// Reply is one whole answer of a model.
type Reply struct {
	Text string
	// Calls are sorted by their beginning in the answer. Ids are unique within the reply, and
	// arguments are never empty.
	Calls []CallData
	// Parts holds the answer in its order if it has more than a text and calls; else nil. The n-th
	// call part stands for the n-th of Calls.
	Parts  []Part
	Finish FinishReason // empty: the answer is not complete
	Usage  Usage
}

// Messages returns the messages of the reply: one for each text and for each call. Reasoning is in
// the message that follows it.
func (r Reply) Messages() []Message {
	parts := r.Parts
	if parts == nil {
		if r.Text != "" {
			parts = append(parts, Part{Type: TextPart, Text: r.Text})
		}
		parts = append(parts, slices.Repeat([]Part{{Type: CallPart}}, len(r.Calls))...)
	}
	var out []Message
	var before []Part
	calls := r.Calls
	for _, p := range parts {
		var m Message
		switch {
		case p.Type == TextPart:
			m = Message{Kind: Assistant, Content: p.Text}
		case p.Type == CallPart && len(calls) > 0:
			m, calls = CallMessage(calls[0]), calls[1:]
		case p.Type == ReasoningPart:
			before = append(before, p)
			continue
		default:
			continue // the call was removed from the reply
		}
		if m.Parts, before = before, nil; p.ProviderData != nil {
			m.Parts = append(m.Parts, Part{Type: p.Type, ProviderData: p.ProviderData})
		}
		out = append(out, m)
	}
	if before != nil {
		out = append(out, Message{Kind: Assistant, Parts: before})
	}
	return out
}

// Assembler makes a [Reply] of the deltas of one answer. The zero value is ready; set the exported
// fields before the first Add. It is for one goroutine.
type Assembler struct {
	Provider string // name of the provider in errors; empty: "model"
	// NewID returns an id for a call that has none, or that has the id of another call. Nil: ids
	// are "call_" and random letters.
	NewID func() string

	parts             []part
	calls             []*callParts       // calls in the order of their first pieces
	byIndex           map[int]*callParts // calls by [CallDelta.Index], which may be any number
	textBytes         int                // bytes of all texts so far
	reasoningBytes    int                // bytes of all reasoning so far
	providerDataBytes int                // bytes of all provider data so far
	argBytes          int                // bytes of the arguments of all calls so far
	droppedBytes      int                // bytes of arguments of all calls that were dropped
	finish            FinishReason
	usage             Usage
	err               error
}

// part is a part of the answer while it grows.
type part struct {
	typ          PartType
	text         []byte
	providerData *ProviderData
	call         *callParts
}

type callParts struct {
	id, name     string
	args         []byte
	droppedBytes int // bytes of the call's arguments that were dropped; 0: args are complete
	providerData *ProviderData
}

// Add adds one delta. It returns a *ProviderError if the reply exceeds a limit. All later calls
// return the same error, until a delta with Restart begins a new reply.
func (a *Assembler) Add(d Delta) error {
	if d.Restart != nil {
		*a = Assembler{Provider: a.Provider, NewID: a.NewID}
	}
	if a.err != nil {
		return a.err
	}
	if len(d.Reasoning) > MaxReasoningBytes-a.reasoningBytes {
		return a.tooMuch("reasoning of more than %d bytes", MaxReasoningBytes)
	}
	if len(d.Text) > MaxTextBytes-a.textBytes {
		return a.tooMuch("a text of more than %d bytes", MaxTextBytes)
	}
	a.reasoningBytes, a.textBytes = a.reasoningBytes+len(d.Reasoning), a.textBytes+len(d.Text)
	if err := cmp.Or(a.grow(ReasoningPart, d.Reasoning), a.grow(TextPart, d.Text)); err != nil {
		return err
	}
	if d.ProviderData != nil {
		if err := a.addProviderData(*d.ProviderData); err != nil {
			return err
		}
	}
	for _, c := range d.Calls {
		if err := a.addCall(c); err != nil {
			return err
		}
	}
	if d.Finish != "" {
		a.finish = d.Finish
	}
	if d.Usage != nil {
		a.usage = *d.Usage // some providers report usage more than once: each report is a total
	}
	return nil
}

// openPart returns the part to which more text or provider data of the type is added: the part at
// the end of the reply so far, or nil if that has another type or is closed by provider data.
// Calls do not end a text, because servers send both at once in any order.
func (a *Assembler) openPart(typ PartType) *part {
	for i := range slices.Backward(a.parts) {
		if p := &a.parts[i]; p.typ == typ && p.providerData == nil {
			return p
		} else if p.typ != CallPart || typ != TextPart {
			return nil
		}
	}
	return nil
}

// add begins a new part. It returns an error if there are too many.
func (a *Assembler) add(p part) error {
	if len(a.parts)-len(a.calls) >= maxParts {
		return a.tooMuch("more than %d parts", maxParts)
	}
	a.parts = append(a.parts, p)
	return nil
}

// grow appends text to the open part of the type, or begins a new part.
func (a *Assembler) grow(typ PartType, text string) error {
	if text == "" {
		return nil
	}
	if p := a.openPart(typ); p != nil {
		p.text = append(p.text, text...)
		return nil
	}
	return a.add(part{typ: typ, text: []byte(text)})
}

func (a *Assembler) addProviderData(d ProviderDataDelta) error {
	if err := a.countProviderData(&d.ProviderData); err != nil {
		return err
	}
	if p := a.openPart(d.PartType); p != nil {
		p.providerData = &d.ProviderData
		return nil
	}
	return a.add(part{typ: d.PartType, providerData: &d.ProviderData})
}

func (a *Assembler) countProviderData(k *ProviderData) error {
	if a.providerDataBytes += len(k.Data); a.providerDataBytes > MaxReasoningBytes {
		return a.tooMuch("more than %d bytes of data to send back", MaxReasoningBytes)
	}
	return nil
}

func (a *Assembler) addCall(d CallDelta) error {
	c := a.byIndex[d.Index]
	if c == nil {
		if len(a.calls) == MaxCalls {
			return a.tooMuch("more than %d tool calls", MaxCalls)
		}
		if a.byIndex == nil {
			a.byIndex = make(map[int]*callParts)
		}
		c = new(callParts)
		a.byIndex[d.Index] = c
		a.calls = append(a.calls, c)
		a.parts = append(a.parts, part{typ: CallPart, call: c})
	}
	if d.ProviderData != nil && c.providerData == nil {
		if err := a.countProviderData(d.ProviderData); err != nil {
			return err
		}
		c.providerData = d.ProviderData
	}
	if c.id == "" && len(d.ID) <= maxIDBytes {
		c.id = strings.ToValidUTF8(d.ID, "")
	}
	if c.name == "" { // some servers repeat the name in each piece
		c.name = strings.ToValidUTF8(d.Name[:min(len(d.Name), maxNameBytes)], "")
	}
	n := len(d.Arguments)
	if c.droppedBytes == 0 && n <= MaxArgumentBytes-len(c.args) && n <= MaxReplyArgumentBytes-a.argBytes {
		c.args = append(c.args, d.Arguments...)
		a.argBytes += n
		return nil
	}
	a.argBytes -= len(c.args)
	n += len(c.args)
	c.args, c.droppedBytes, a.droppedBytes = nil, c.droppedBytes+n, a.droppedBytes+n
	if a.droppedBytes > maxDroppedBytes {
		return a.tooMuch("tool calls with more than %d bytes of arguments", maxDroppedBytes)
	}
	return nil
}

// Arguments returns the arguments so far of the call with a [CallDelta.Index]; nil: there are none,
// or they are dropped.
func (a *Assembler) Arguments(index int) []byte {
	if c := a.byIndex[index]; c != nil {
		return c.args
	}
	return nil
}

func (a *Assembler) tooMuch(format string, args ...any) error {
	a.err = &ProviderError{Provider: cmp.Or(a.Provider, "model"), Code: "reply_too_large", Message: "it sent " + fmt.Sprintf(format, args...)}
	return a.err
}

// Reply returns the reply so far. A reply without Finish is not complete, and its calls must not
// be carried out: their arguments may be cut.
func (a *Assembler) Reply() Reply {
	r := Reply{Finish: a.finish, Usage: a.usage}
	a.assignCallIDs()
	plain := true // the reply has only a text and calls
	for _, p := range a.parts {
		part := Part{Type: p.typ, Text: strings.ToValidUTF8(string(p.text), "\uFFFD"), ProviderData: p.providerData}
		if p.typ == TextPart {
			r.Text += part.Text
		}
		if p.call != nil {
			part.ProviderData = p.call.providerData
		}
		plain = plain && part.ProviderData == nil && p.typ != ReasoningPart
		r.Parts = append(r.Parts, part)
	}
	if plain {
		r.Parts = nil
	}
	for _, c := range a.calls {
		args := strings.ToValidUTF8(string(c.args), "\uFFFD")
		if strings.TrimSpace(args) == "" {
			args = "{}" // models call a tool without arguments like this
		}
		call := NewCall(c.id, c.name, repairArguments(args))
		call.Function.DroppedBytes = c.droppedBytes
		if call.Function.Arguments != args {
			call.Function.Original = &FunctionData{Name: c.name, Arguments: args}
		}
		r.Calls = append(r.Calls, call)
	}
	return r
}

// InferFinish returns the finish reason of an answer that ended without a reason. Empty: the
// answer is not complete, because it has neither a text nor calls, or because the arguments of a
// call are not complete JSON.
func (a *Assembler) InferFinish() FinishReason {
	r := a.Reply()
	for i, c := range r.Calls {
		if len(a.calls[i].args) == 0 || !json.Valid([]byte(c.Function.Arguments)) {
			return ""
		}
	}
	switch {
	case len(r.Calls) > 0:
		return FinishTools
	case r.Text != "":
		return FinishStop
	}
	return ""
}

// assignCallIDs gives each call a unique id. If several calls have the same id, the first
// of them keeps it, even if a call without an id came before.
func (a *Assembler) assignCallIDs() {
	owner := make(map[string]*callParts, len(a.calls))
	for _, c := range a.calls {
		if c.id != "" && owner[c.id] == nil {
			owner[c.id] = c
		}
	}
	for _, c := range a.calls {
		if c.id != "" && owner[c.id] == c {
			continue
		}
		newID := a.NewID
		if newID == nil {
			newID = func() string { return "call_" + rand.Text() }
		}
		base := newID()
		id := base
		// NewID may return an id twice, or one that the model sent; a suffix makes it unique.
		for n := 2; id == "" || owner[id] != nil; n++ {
			id = fmt.Sprintf("%s_%d", base, n)
		}
		c.id = id
		owner[id] = c
	}
}

// Limits of a summary of a call, in characters; what is longer is cut.
const (
	maxSummaryRunes = 200
	maxValueRunes   = 80 // characters of the value of one argument
)

// CallSummary describes a call for a person in one line of at most 200 characters, such as
// `glob(pattern="*.c", path="src/")`. The arguments are in the model's order. It cuts long
// values, escapes characters that a terminal does not print, and quotes what is no JSON.
func CallSummary(name, arguments string) string {
	label := printable(Truncate(name, 64))
	if label == "" {
		label = "(unnamed)"
	}
	room := maxSummaryRunes - utf8.RuneCountInString(label) - 2
	return label + "(" + Truncate(summarizeArguments(arguments), max(room, 20)) + ")"
}

func summarizeArguments(arguments string) string {
	if !json.Valid([]byte(arguments)) {
		return strconv.Quote(Truncate(arguments, maxSummaryRunes))
	}
	dec := json.NewDecoder(strings.NewReader(arguments))
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
		return summarizeValue(json.RawMessage(arguments))
	}
	var out strings.Builder
	for dec.More() && out.Len() < 4*maxSummaryRunes {
		key, err := dec.Token()
		if err != nil {
			break // not reached: the text is valid JSON
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			break
		}
		if out.Len() > 0 {
			out.WriteString(", ")
		}
		out.WriteString(printable(Truncate(fmt.Sprint(key), maxValueRunes)) + "=" + summarizeValue(value))
	}
	return out.String()
}

func summarizeValue(value json.RawMessage) string {
	var s string
	if json.Unmarshal(value, &s) == nil && bytes.HasPrefix(bytes.TrimSpace(value), []byte(`"`)) {
		return strconv.Quote(Truncate(s, maxValueRunes))
	}
	var compact bytes.Buffer
	if json.Compact(&compact, value) != nil {
		return "?" // not reached: the text is valid JSON
	}
	return printable(Truncate(compact.String(), maxValueRunes))
}

// Truncate returns s if it has at most n characters, else its first n-1 characters and "…".
func Truncate(s string, n int) string {
	count := 0
	last := 0 // where the n-th character starts
	for i := range s {
		if count == n-1 {
			last = i
		}
		if count == n {
			return s[:last] + "…"
		}
		count++
	}
	return s
}

// printable escapes characters that could move a cursor, break a line or change the
// direction of the text.
func printable(s string) string {
	var out strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)):
			fmt.Fprintf(&out, `\x%02x`, s[i])
		case unicode.IsPrint(r):
			out.WriteRune(r)
		default:
			quoted := strconv.QuoteRune(r)
			out.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return out.String()
}
