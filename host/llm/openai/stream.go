package openai

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/provider"
)

// chunk is one event of a stream; servers differ from the documentation. A field that differs from
// server to server is raw JSON: a bad value is ignored, and the rest of the answer is kept.
type chunk struct {
	Object  json.RawMessage `json:"object"`
	Error   json.RawMessage `json:"error"`
	Choices []choice        `json:"choices"`
	Usage   json.RawMessage `json:"usage"`
}

type choice struct {
	Index        json.RawMessage `json:"index"`
	Delta        *delta          `json:"delta"`
	Message      *delta          `json:"message"` // a whole answer in one event, which some servers send
	FinishReason json.RawMessage `json:"finish_reason"`
}

type delta struct {
	Content   json.RawMessage `json:"content"`
	Refusal   json.RawMessage `json:"refusal"`
	Reasoning json.RawMessage `json:"reasoning_content"` // DeepSeek, xAI, vLLM
	Thoughts  json.RawMessage `json:"reasoning"`         // OpenRouter, Groq
	Blocks    json.RawMessage `json:"thinking_blocks"`   // LiteLLM, beside Reasoning
	ToolCalls []callPiece     `json:"tool_calls"`
	Function  json.RawMessage `json:"function_call"` // servers that do not know tools yet
}

type callPiece struct {
	Index    json.RawMessage `json:"index"`
	ID       json.RawMessage `json:"id"`
	Function function        `json:"function"`
}

type function struct {
	Name      json.RawMessage `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

type usage struct {
	PromptTokens     json.RawMessage `json:"prompt_tokens"`
	CompletionTokens json.RawMessage `json:"completion_tokens"`
	TotalTokens      json.RawMessage `json:"total_tokens"`
	Hit              json.RawMessage `json:"prompt_cache_hit_tokens"` // DeepSeek
	Prompt           struct {
		Cached  json.RawMessage `json:"cached_tokens"`
		Written json.RawMessage `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	Completion struct {
		Reasoning json.RawMessage `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// count returns the usage. xAI does not count reasoning as a part of the answer; it is added.
func (u usage) count() *llm.Usage {
	out := llm.Usage{
		InputTokens: provider.ParseTokens(u.PromptTokens), OutputTokens: provider.ParseTokens(u.CompletionTokens), ReasoningTokens: provider.ParseTokens(u.Completion.Reasoning),
		CachedTokens: cmp.Or(provider.ParseTokens(u.Prompt.Cached), provider.ParseTokens(u.Hit)), CacheWriteTokens: provider.ParseTokens(u.Prompt.Written),
	}
	if out.ReasoningTokens > 0 && provider.ParseTokens(u.TotalTokens) == out.InputTokens+out.OutputTokens+out.ReasoningTokens {
		out.OutputTokens += out.ReasoningTokens
	}
	return &out
}

// decode yields the deltas of one answer of the model. It returns nil when the answer is
// complete or yield has returned false.
func (m *Model) decode(x *provider.Exchange, model string, yield func(llm.Delta) bool) error {
	var (
		calls   calls
		finish  llm.FinishReason
		events  int
		thought reasoningData // provider data of reasoning that nothing has followed yet
	)
	for {
		line, err := x.Next()
		if err != nil {
			// With a finish reason the answer is complete; at most the usage is missing.
			if finish == "" || x.Cancelled() {
				return x.EndError(err, events == 0)
			}
			if finish == llm.FinishStop && len(calls.list) > 0 {
				finish = llm.FinishTools // Ollama ends calls with "stop"
			}
			x.Drain()
			yield(llm.Delta{Finish: finish})
			return nil
		}
		events++
		var c chunk
		if err := json.Unmarshal(line, &c); err != nil {
			return m.BadEvent(line)
		}
		if provider.IsSet(c.Error) {
			return m.StreamError(provider.ParseErrorDetail(c.Error), c.Error)
		}
		if provider.ScalarText(c.Object) == "error" {
			return m.StreamError(provider.ParseErrorDetail(line), line)
		}
		var u usage
		if provider.IsSet(c.Usage) && json.Unmarshal(c.Usage, &u) == nil && !yield(llm.Delta{Usage: u.count()}) {
			return nil
		}
		for _, choice := range c.Choices {
			if n, ok := number(choice.Index); ok && n != 0 {
				continue
			}
			d, k, err := m.choiceDelta(&calls, choice)
			if err != nil {
				return err
			}
			if d.Reasoning != "" && !yield(llm.Delta{Reasoning: d.Reasoning}) {
				return nil
			}
			thought, d.Reasoning = cmp.Or(k, thought), ""
			hasContent := d.Text != "" || len(d.Calls) > 0
			if (hasContent || k.Signature != "") && thought.Field != "" {
				if !yield(llm.Delta{ProviderData: m.providerDataDelta(model, thought)}) {
					return nil
				}
				thought = reasoningData{}
			}
			if hasContent && !yield(d) {
				return nil
			}
			switch reason := provider.ScalarText(choice.FinishReason); {
			case reason == "":
			case reason == "error", reason == "network_error", reason == "insufficient_system_resource": // OpenRouter, GLM, DeepSeek
				return m.StreamError(provider.ErrorDetail{}, line)
			case finish == "": // some servers repeat the reason
				finish = finishReason(reason)
			}
		}
	}
}

// choiceDelta returns the delta of a choice, and the provider data of its reasoning.
func (m *Model) choiceDelta(calls *calls, c choice) (d llm.Delta, k reasoningData, err error) {
	piece := c.Delta
	if piece == nil {
		piece = c.Message
	}
	if piece == nil {
		return llm.Delta{}, k, nil
	}
	d.Text = contentText(piece.Content) + contentText(piece.Refusal)
	if d.Reasoning = contentText(piece.Reasoning); d.Reasoning != "" {
		k.Field = reasoningContent
	} else if d.Reasoning = contentText(piece.Thoughts); d.Reasoning != "" {
		k.Field = reasoningText
	}
	if s := signature(piece.Blocks); s != "" {
		k = reasoningData{thinkingBlocks, s}
	}
	var f function
	if json.Unmarshal(piece.Function, &f) == nil && len(piece.ToolCalls) == 0 {
		piece.ToolCalls = []callPiece{{Function: f}}
	}
	for _, p := range piece.ToolCalls {
		call := llm.CallDelta{ID: provider.ScalarText(p.ID), Name: provider.ScalarText(p.Function.Name), Arguments: arguments(p.Function.Arguments)}
		if call.ID == "" && call.Name == "" && call.Arguments == "" {
			continue // an empty piece begins no call
		}
		index, ok := number(p.Index)
		call.Index = calls.place(index, ok, call)
		if len(calls.list) > llm.MaxCalls {
			return d, k, m.TooLarge(fmt.Sprintf("more than %d tool calls", llm.MaxCalls))
		}
		d.Calls = append(d.Calls, call)
	}
	return d, k, nil
}

// calls assigns the pieces of an answer to its calls. The index of a piece identifies the call,
// but some servers leave it out, send 0 for every call, or send arguments with another index
// than the id.
type calls struct {
	list    []callState // calls in the order of their first pieces
	byIndex map[int]int // index on the wire → position in list of the latest call with that index
}

type callState struct {
	index    int            // index on the wire of the call's first piece
	id, name string         // empty: not sent yet
	args     bracketCounter // state of the arguments
}

// place adds the piece to its call, or to a new call, and returns the call's position in list.
// index is valid if hasIndex is set.
func (c *calls) place(index int, hasIndex bool, piece llm.CallDelta) int {
	at := c.find(index, hasIndex, piece)
	if at < 0 {
		at = len(c.list)
		c.list = append(c.list, callState{index: index})
	}
	if hasIndex {
		if c.byIndex == nil {
			c.byIndex = make(map[int]int)
		}
		c.byIndex[index] = at
	}
	s := &c.list[at]
	s.id, s.name = cmp.Or(s.id, piece.ID), cmp.Or(s.name, piece.Name)
	s.args.add(piece.Arguments)
	return at
}

// find returns the position of the call to which the piece belongs; -1: it begins a new call.
func (c *calls) find(index int, hasIndex bool, piece llm.CallDelta) int {
	last := len(c.list) - 1
	for i, s := range slices.Backward(c.list) {
		if piece.ID != "" && s.id == piece.ID && (!hasIndex || s.index == index || piece.Name == "" || s.continuesWith(piece)) {
			return i
		}
	}
	nameless := piece.ID == "" && piece.Name == ""
	known, ok := c.byIndex[index]
	switch ok = ok && hasIndex; {
	case ok && nameless && c.list[known].args.whole() && !c.list[last].args.whole() && strings.TrimSpace(piece.Arguments) != "":
		return last // some servers send arguments with the index of the preceding call
	case ok && c.list[known].endedBy(piece):
		return -1
	case ok:
		return known
	case nameless, // without an index, or with another index than the id
		!hasIndex && piece.Name == "", // each piece has a new id
		!hasIndex && piece.ID == "" && last >= 0 && c.list[last].continuesWith(piece):
		return last
	}
	return -1
}

// endedBy reports whether a piece with the same index begins another call.
func (s callState) endedBy(piece llm.CallDelta) bool {
	if piece.Name == "" || s.name == "" {
		return false
	}
	if piece.ID != "" && s.id != "" {
		return piece.ID != s.id
	}
	return s.args.whole() && !s.continuesWith(piece)
}

// continuesWith reports whether a piece with the call's name continues the call. Some servers
// repeat the name in each piece of the arguments.
func (s callState) continuesWith(piece llm.CallDelta) bool {
	return s.name == piece.Name && (piece.Arguments == "" || !s.args.whole())
}

// bracketCounter finds the end of a JSON value that comes in pieces. It counts the brackets.
type bracketCounter struct {
	depth   int  // number of open brackets
	quoted  bool // the pieces so far end in a string
	escaped bool // the pieces so far end in a backslash in a string
	begun   bool // there was a character other than white space
}

func (s *bracketCounter) add(text string) {
	for i := range len(text) {
		switch c := text[i]; {
		case s.escaped:
			s.escaped = false
		case s.quoted:
			s.escaped, s.quoted = c == '\\', c != '"'
		case c == '"':
			s.quoted = true
		case c == '{', c == '[':
			s.depth++
		case c == '}', c == ']':
			s.depth--
		}
	}
	s.begun = s.begun || strings.TrimSpace(text) != ""
}

// whole reports whether the value is complete.
func (s bracketCounter) whole() bool { return s.begun && s.depth == 0 && !s.quoted }

// arguments returns a piece of arguments as text. Some servers send an object instead of a text.
func arguments(raw json.RawMessage) (text string) {
	if provider.IsSet(raw) && json.Unmarshal(raw, &text) != nil {
		text = string(raw)
	}
	return text
}

// contentText returns the text of a content: a string, or the text parts of a list.
func contentText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return ""
	}
	for _, p := range parts {
		if p.Type == "text" {
			s += p.Text
		}
	}
	return s
}

func finishReason(reason string) llm.FinishReason {
	switch r := llm.FinishReason(strings.ToLower(reason)); r {
	case llm.FinishStop, llm.FinishTools, llm.FinishLength, llm.FinishFilter:
		return r
	case "function_call":
		return llm.FinishTools
	case "max_tokens", "model_length", "model_context_window_exceeded": // Gemini, Mistral, GLM
		return llm.FinishLength
	}
	return llm.FinishStop // "eos", "end_turn" and other synonyms
}

// number parses an integer. ok is false for anything else, and for numbers that overflow.
func number(raw json.RawMessage) (n int, ok bool) {
	n, err := strconv.Atoi(provider.ScalarText(raw))
	return n, err == nil
}
