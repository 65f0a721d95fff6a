package anthropic

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/provider"
	"github.com/stockade-dev/stockade/host/tool"
)

// providerName marks provider data of this package. It does not depend on the configured
// name of the provider, because signatures belong to the API.
const providerName = "anthropic"

// thinkingData is the form of [llm.ProviderData.Data] of a reasoning part. The text of the
// thinking is in the part.
type thinkingData struct {
	Signature string `json:"signature,omitempty"`
	Redacted  string `json:"redacted,omitempty"` // content of a redacted_thinking block
}

// Stand-ins for messages of the user. The API requires that a conversation begins and ends with
// the user; a conversation that was cut or forked may not.
var (
	omittedStart = []byte(`{"text":"(what came before was left out)","type":"text"}`)
	goOn         = []byte(`{"text":"(go on)","type":"text"}`)
)

// Separators between the content blocks of entries.
var (
	comma        = []byte(",")
	openUser     = []byte(`{"role":"user","content":[`)
	toUser       = []byte(`]},{"role":"user","content":[`)
	toAssistant  = []byte(`]},{"role":"assistant","content":[`)
	closing      = []byte(`]}`)
	cacheHere    = `,"cache_control":{"type":"ephemeral"}}` // replaces the last } of a block
	cachedToNext = []byte(cacheHere + string(toAssistant))
	cachedToEnd  = []byte(cacheHere + string(closing))
)

// object is a JSON object. The API defines its fields: https://docs.anthropic.com/en/api/messages
type object map[string]any

func textBlock(text string) object { return object{"type": "text", "text": text} }

// cachePoint is the cache_control of a block up to which the API may cache the request.
var cachePoint = object{"type": "ephemeral"}

// conversation returns the messages of entries. Consecutive entries of one role form one message,
// such as the results of calls and the user's next words. blocks returns the content blocks of an
// entry, separated by commas.
//
// Two messages are marked as points up to which the API caches: the last message, for the next
// request, and the message that was the last in the preceding request. The second is needed
// because the API searches its cache only among the 20 blocks before such a point, and a step
// with many calls has more.
func conversation(entries []*llm.Entry, blocks func(*llm.Entry) []byte) provider.Pieces {
	out := make(provider.Pieces, 0, 2*len(entries)+4)
	var role llm.Role
	answered := 0 // index of the last piece that ends a user message before an assistant message
	add := func(next llm.Role, wire []byte) {
		switch {
		case role == next:
			out = append(out, comma)
		case role == "":
			out = append(out, openUser)
		case next == llm.RoleAssistant:
			answered = len(out)
			out = append(out, toAssistant)
		default:
			out = append(out, toUser)
		}
		role, out = next, append(out, wire)
	}
	for _, e := range entries {
		if e.Role == llm.RoleSystem {
			continue
		}
		wire := blocks(e)
		if len(wire) == 0 {
			continue // only reasoning, which is not sent
		}
		if e.Role != llm.RoleAssistant {
			add(llm.RoleUser, wire)
			continue
		}
		if role == "" {
			add(llm.RoleUser, omittedStart)
		}
		add(llm.RoleAssistant, wire)
	}
	if role != llm.RoleUser {
		add(llm.RoleUser, goOn)
	}
	cache := func(at int, with []byte) {
		block := out[at-1]
		out[at-1], out[at] = block[:len(block)-1], with // without its final }
	}
	if answered > 0 {
		cache(answered, cachedToNext)
	}
	out = append(out, closing)
	cache(len(out)-1, cachedToEnd)
	return out
}

// blockEncoder encodes entries as content blocks, for one model.
type blockEncoder struct {
	model           string
	images          *provider.RefusedImages
	refusedThinking map[[32]byte]bool // hashes of provider data that the server refuses; it is not sent
	omitThinking    bool              // no earlier thinking is sent
}

// blocks returns the content blocks of an entry, separated by commas. Empty: nothing is sent.
func (v *blockEncoder) blocks(e *llm.Entry) []byte {
	var out []object
	for _, p := range e.Parts {
		switch p.Type {
		case llm.TextPart:
			if strings.TrimSpace(p.Text) != "" { // the API refuses an empty text
				out = append(out, textBlock(p.Text))
			} else if e.Role != llm.RoleAssistant {
				out = append(out, textBlock("(empty message)"))
			}
		case llm.ReasoningPart:
			if block := v.reasoning(p); block != nil {
				out = append(out, block)
			}
		case llm.CallPart:
			out = append(out, object{"type": "tool_use", "id": p.Call.ID, "name": p.Call.Function.Name, "input": json.RawMessage(p.Call.Function.Arguments)})
		case llm.ResultPart:
			out = append(out, v.result(p))
		}
	}
	if e.Role == llm.RoleUser {
		for _, shown := range v.images.Show(e.Parts[1:], "this message") {
			out = append(out, imageBlock(shown))
		}
	}
	wire, err := json.Marshal(out)
	if err != nil || len(out) == 0 {
		return []byte{} // an error is not reached: blocks hold only texts and valid JSON
	}
	return wire[1 : len(wire)-1]
}

// reasoning returns a block of thinking, or nil if the block must not be sent: without a signature
// it is refused, and thinking of another model is at best ignored.
func (v *blockEncoder) reasoning(p llm.Part) object {
	if v.omitThinking || !p.ProviderData.IsFrom(providerName, v.model) || v.refusedThinking[sha256.Sum256(p.ProviderData.Data)] {
		return nil
	}
	var k thinkingData
	switch err := json.Unmarshal(p.ProviderData.Data, &k); {
	case err != nil || k == thinkingData{}:
		return nil
	case k.Redacted != "":
		return object{"type": "redacted_thinking", "data": k.Redacted}
	}
	return object{"type": "thinking", "thinking": p.Text, "signature": k.Signature}
}

func (v *blockEncoder) result(p llm.Part) object {
	text := p.Text
	if strings.TrimSpace(text) == "" {
		text = "(no output)"
	}
	content := []object{textBlock(text)}
	images := false
	for _, shown := range v.images.Show(p.Images, "this result") {
		images = images || shown.Image != nil
		content = append(content, imageBlock(shown))
	}
	r := object{"type": "tool_result", "tool_use_id": p.Result.CallID, "content": content}
	if !p.Result.Success && !images { // an error must not have images
		r["is_error"] = true
	}
	return r
}

func imageBlock(shown provider.ImageOrText) object {
	if shown.Image == nil {
		return textBlock(shown.Text)
	}
	return object{"type": "image", "source": object{"type": "base64", "media_type": shown.Image.Mime, "data": base64.StdEncoding.EncodeToString(shown.Image.Data)}}
}

// placeholderMessage returns the message in whose place the conversation is spliced.
var placeholderMessage = sync.OnceValue(func() object {
	return object{"role": "user", "content": []object{textBlock(provider.Placeholder())}}
})

// requestTemplate is a request without its messages. It is the same in each step of a
// conversation, and it is cached because encoding it takes the most time.
type requestTemplate struct {
	settings settings
	body     []byte // the encoded request, with a placeholder for the conversation
}

// settings holds everything in a request except its messages.
type settings struct {
	model     string
	maxTokens int64
	thinking  thinking
	effort    string
	system    []string
	tools     []tool.Definition
	noCalls   bool // the model must not call: the tools are defined only for calls in the conversation
}

func (s settings) same(t settings) bool {
	return s.model == t.model && s.maxTokens == t.maxTokens && s.thinking == t.thinking && s.effort == t.effort && s.noCalls == t.noCalls &&
		slices.Equal(s.system, t.system) && provider.SameTools(s.tools, t.tools)
}

// newRequestTemplate encodes the settings, which must not change afterwards.
func newRequestTemplate(s settings) (*requestTemplate, error) {
	params := object{"model": s.model, "max_tokens": s.maxTokens, "stream": true, "messages": []object{placeholderMessage()}}
	var system, tools []object
	for _, text := range s.system {
		system = append(system, textBlock(text))
	}
	for _, def := range s.tools {
		tools = append(tools, object{"name": def.Name, "description": def.Description, "input_schema": inputSchema(def.Parameters)})
	}
	// The model reads the tools before the system. A cache point at the end of the system
	// therefore covers both.
	if len(system) > 0 {
		system[len(system)-1]["cache_control"] = cachePoint
		params["system"] = system
	} else if len(tools) > 0 {
		tools[len(tools)-1]["cache_control"] = cachePoint
	}
	if len(tools) > 0 {
		params["tools"] = tools
	}
	if s.noCalls {
		params["tool_choice"] = object{"type": "none"}
	}
	switch s.thinking {
	case thinkingAdaptive:
		params["thinking"] = object{"type": "adaptive", "display": "summarized"}
		params["output_config"] = object{"effort": s.effort}
	case thinkingBudgeted:
		if budget := min(budgets[s.effort], s.maxTokens/2); budget >= leastBudget {
			params["thinking"] = object{"type": "enabled", "budget_tokens": budget}
		}
	}
	body, err := json.Marshal(params)
	return &requestTemplate{s, body}, err
}

// inputSchema returns the schema of a tool's arguments in a form that the API takes: the schema
// of an object, without alternatives at the top. The tool still checks its arguments by the
// original schema.
func inputSchema(parameters json.RawMessage) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(parameters, &fields) != nil || fields == nil {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	whole := string(fields["type"]) == `"object"`
	for _, name := range []string{"oneOf", "anyOf", "allOf"} {
		if _, ok := fields[name]; ok {
			delete(fields, name)
			whole = false
		}
	}
	if whole {
		return parameters
	}
	fields["type"] = json.RawMessage(`"object"`)
	out, err := json.Marshal(fields)
	if err != nil {
		return json.RawMessage(`{"type":"object","properties":{}}`) // not reached: every field was JSON
	}
	return out
}

// calledTools returns definitions, with names only, of all tools that the conversation calls.
// The API refuses calls in a request that defines no tools.
func calledTools(entries []*llm.Entry) (defs []tool.Definition) {
	for _, e := range entries {
		for _, p := range e.Parts {
			if p.Type == llm.CallPart && !slices.ContainsFunc(defs, func(d tool.Definition) bool { return d.Name == p.Call.Function.Name }) {
				defs = append(defs, tool.Definition{Name: p.Call.Function.Name})
			}
		}
	}
	return defs
}

// systemTexts returns the texts of all system entries. The API takes them only in one place.
func systemTexts(entries []*llm.Entry) (texts []string) {
	for _, e := range entries {
		if e.Role == llm.RoleSystem && strings.TrimSpace(e.Parts[0].Text) != "" {
			texts = append(texts, e.Parts[0].Text)
		}
	}
	return texts
}
