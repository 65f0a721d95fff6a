package llm

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/stockade-dev/stockade/host/tool"
)

// Role is the author of an entry.
type Role string

// The roles.
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool" // results of the calls in the preceding entry
)

// Entry is a piece of a conversation in a form that every API accepts. It is immutable.
//
// The parts of an entry depend on its role:
//
//   - system: one text
//   - user: one text, never empty, and images
//   - assistant: reasoning, texts and calls; at least one part
//   - tool: one result for each call of the preceding entry, in the order of the calls
//
// An entry with calls is always followed by an entry of the tool. The id of a call is unique in
// its entry, has at most 40 characters, and is a valid name ([tool.ValidName]), like the name
// of the call. Its arguments are a JSON object. A result has the id and the name of its call.
type Entry struct {
	Role  Role
	Parts []Part

	begins int  // index of its first message in the conversation
	ends   int  // index after its last message in the conversation
	whole  bool // every call has a result from the conversation

	mu      sync.Mutex // guards wire and version
	wire    []byte     // result of Encode for version; nil: none yet
	version string
}

// Encode returns the entry in a provider's wire format, as make encodes it. The result is cached
// until another version is asked for. A provider whose format depends on more than the entry
// passes a new version whenever that changes.
func (e *Entry) Encode(version string, make func(*Entry) []byte) []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.wire == nil || e.version != version {
		e.wire, e.version = make(e), version
	}
	return e.wire
}

// Transcript makes entries of the messages of a request. A conversation is sent again with every
// step. Messages that are the same as in the preceding request keep their entries, and so the
// cached wire format. The zero value is ready. A Transcript is safe for concurrent use, but only
// useful for a single conversation.
type Transcript struct {
	mu       sync.Mutex // guards the fields below
	messages []Message  // messages of the preceding request
	entries  []*Entry   // entries of the preceding request
}

// Entries returns the entries of a conversation. A call gets the result that follows anywhere
// after it, or a made-up one if there is none. A result without a call is dropped: a tool's
// output must not be sent as words of the user.
func (t *Transcript) Entries(messages []Message) []*Entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	same := 0
	for same < min(len(messages), len(t.messages)) && messages[same].same(&t.messages[same]) {
		same++
	}
	// An entry is reused if no new message can belong to it: the next entry begins with an
	// unchanged message, too.
	keep := 0
	for keep+1 < len(t.entries) && t.entries[keep].whole && t.entries[keep].ends <= same && t.entries[keep+1].begins < same {
		keep++
	}
	// The calls of an entry and their results are reused together.
	if keep > 0 && t.entries[keep-1].hasCalls() {
		keep--
	}
	from := 0
	if keep > 0 {
		from = t.entries[keep].begins
	}
	b := builder{entries: t.entries[:keep], waiting: map[string]resultSlot{}}
	for i, m := range messages[from:] {
		b.add(from+i, m)
	}
	b.finish()
	t.messages, t.entries = append(t.messages[:same], messages[same:]...), b.entries
	return slices.Clone(b.entries)
}

// same reports whether two messages are equal. It is quick if they share memory.
func (m *Message) same(n *Message) bool {
	return m.Kind == n.Kind && m.Content == n.Content && bytes.Equal(m.Data, n.Data) &&
		slices.EqualFunc(m.Parts, n.Parts, func(a, b Part) bool {
			return a.Type == b.Type && a.Text == b.Text && a.Mime == b.Mime && bytes.Equal(a.Data, b.Data) && a.ProviderData.same(b.ProviderData)
		})
}

func (k *ProviderData) same(l *ProviderData) bool {
	return k == l || k != nil && l != nil && k.Provider == l.Provider && k.Model == l.Model && bytes.Equal(k.Data, l.Data)
}

func (e *Entry) hasCalls() bool {
	return slices.ContainsFunc(e.Parts, func(p Part) bool { return p.Type == CallPart })
}

// builder makes entries of messages.
type builder struct {
	entries []*Entry
	waiting map[string]resultSlot // places for missing results, by the id of the call in the messages
	inStep  bool                  // the previous message was a text, reasoning or a call of the model
}

// resultSlot is the place for the result of a call.
type resultSlot struct {
	entry *Entry // an entry with the role [RoleTool]
	part  int    // index in entry.Parts
}

func (b *builder) add(i int, m Message) {
	step := false
	switch m.Kind {
	case System:
		if m.Content != "" {
			b.begin(i, RoleSystem, Part{Type: TextPart, Text: m.Content})
		}
	case User:
		b.begin(i, RoleUser, append([]Part{{Type: TextPart, Text: cmp.Or(m.Content, "(empty message)")}}, images(m.Parts)...)...)
	case Assistant:
		parts := slices.DeleteFunc(slices.Clone(m.Parts), func(p Part) bool { return p.Type != ReasoningPart })
		if m.Content != "" {
			parts = append(parts, Part{Type: TextPart, Text: m.Content, ProviderData: providerDataOf(m.Parts, TextPart)})
		}
		if step = len(parts) > 0; step {
			b.addToStep(i, parts)
		}
	case ToolCall:
		step = true
		var data CallData
		if json.Unmarshal(m.Data, &data) != nil {
			// Not our data, so no result can belong to the call; the model still sees its text.
			b.addToStep(i, []Part{{Type: TextPart, Text: cmp.Or(m.Content, "(unreadable tool call)")}})
			break
		}
		b.call(i, data, m.Parts)
	case ToolResult:
		b.result(i, m)
	}
	b.inStep = step
}

// begin begins an entry with message i.
func (b *builder) begin(i int, role Role, parts ...Part) *Entry {
	e := &Entry{Role: role, Parts: parts, begins: i, ends: i + 1, whole: true}
	b.entries = append(b.entries, e)
	return e
}

// addToStep adds parts to the assistant's entry of the current step, or begins one.
func (b *builder) addToStep(i int, parts []Part) *Entry {
	if b.inStep {
		for at := len(b.entries) - 1; at >= max(len(b.entries)-2, 0); at-- {
			if e := b.entries[at]; e.Role == RoleAssistant {
				e.Parts, e.ends = append(e.Parts, parts...), i+1
				return e
			}
		}
	}
	return b.begin(i, RoleAssistant, parts...)
}

func (b *builder) call(i int, data CallData, parts []Part) {
	reasoning := slices.DeleteFunc(slices.Clone(parts), func(p Part) bool { return p.Type != ReasoningPart })
	call := CallData{ID: toValidID(data.ID), Type: "function", Function: FunctionData{
		Name: toValidName(data.Function.Name), Arguments: toValidArguments(data.Function.Arguments),
	}}
	e := b.addToStep(i, reasoning)
	n := 0
	for _, p := range e.Parts {
		if p.Type != CallPart {
			continue
		}
		if n++; p.Call.ID == call.ID { // only in a conversation that Assembler did not make
			call.ID = hashedID(fmt.Sprintf("%s\x00%d", data.ID, len(e.Parts)))
		}
	}
	e.Parts = append(e.Parts, Part{Type: CallPart, Call: &call, ProviderData: providerDataOf(parts, CallPart)})
	e.ends = i + 1
	if n == 0 {
		b.begin(i, RoleTool)
	}
	results := b.entries[len(b.entries)-1]
	results.Parts = append(results.Parts, Part{Type: ResultPart, Result: &ResultData{CallID: call.ID, Name: call.Function.Name}})
	results.ends, results.whole = i+1, false
	b.waiting[data.ID] = resultSlot{results, len(results.Parts) - 1}
}

func (b *builder) result(i int, m Message) {
	var data ResultData
	if json.Unmarshal(m.Data, &data) != nil {
		return
	}
	p, ok := b.waiting[data.CallID]
	if !ok {
		return
	}
	delete(b.waiting, data.CallID)
	part := &p.entry.Parts[p.part]
	part.Text = cmp.Or(tool.ForModel(data.Output, data.Unsent), m.Content, "(no output)")
	part.Images = images(m.Parts)
	part.Result.Success = data.Success
	p.entry.ends = max(p.entry.ends, i+1)
}

// finish puts a made-up result in the place of each result that is missing.
func (b *builder) finish() {
	for _, e := range b.entries {
		if e.whole {
			continue
		}
		e.whole = true
		for i := range e.Parts {
			if e.Parts[i].Text == "" {
				e.Parts[i].Text, e.whole = missingResult(), false
			}
		}
	}
}

var missingResult = sync.OnceValue(func() string {
	return string(tool.Failed(tool.CodeInterrupted, tool.InternalError,
		"no result of this call was recorded; it may or may not have run").Envelope())
})

func images(parts []Part) []Part {
	return slices.DeleteFunc(slices.Clone(parts), func(p Part) bool { return p.Type != ImagePart })
}

// providerDataOf returns the provider data of the first part of the type, or nil.
func providerDataOf(parts []Part, typ PartType) *ProviderData {
	for _, p := range parts {
		if p.Type == typ {
			return p.ProviderData
		}
	}
	return nil
}

// toValidID returns id, or its hash if some API does not accept it. OpenAI takes at most 40
// characters, and Anthropic only characters of names.
func toValidID(id string) string {
	if len(id) <= 40 && tool.ValidName(id) {
		return id
	}
	return hashedID(id)
}

func hashedID(id string) string {
	sum := sha256.Sum256([]byte(id))
	return "call_" + hex.EncodeToString(sum[:16])
}

// toValidName turns a tool name that a model invented into a name that APIs accept. Otherwise they
// would refuse the whole conversation from then on.
func toValidName(name string) string {
	if tool.ValidName(name) {
		return name
	}
	name = strings.Map(func(r rune) rune {
		if r < 0x80 && tool.ValidName(string(r)) {
			return r
		}
		return '_'
	}, name)
	return cmp.Or(name[:min(len(name), 64)], "unknown")
}

// toValidArguments wraps arguments in a JSON object if they are not an object. Some APIs take
// nothing else, and many servers of the other APIs refuse the request.
func toValidArguments(args string) string {
	if trimmed := strings.TrimSpace(args); trimmed == "" {
		return "{}"
	} else if trimmed[0] == '{' && json.Valid([]byte(args)) {
		return args
	}
	quoted, _ := json.Marshal(map[string]string{"malformed_arguments": args}) // strings can always be encoded
	return string(quoted)
}
