package anthropic

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/provider"
)

// event is an event of the stream. Unknown events, and fields of a wrong type, are ignored: the
// API adds events and blocks without notice, and other servers with this API differ.
type event struct {
	Type    string          `json:"type"`
	Index   json.RawMessage `json:"index"`
	Message struct {
		Usage json.RawMessage `json:"usage"`
	} `json:"message"`
	Block wireBlock `json:"content_block"`
	Delta struct {
		Type        string          `json:"type"`
		Text        string          `json:"text"`
		Thinking    string          `json:"thinking"`
		Signature   string          `json:"signature"`
		PartialJSON string          `json:"partial_json"`
		StopReason  string          `json:"stop_reason"`
		StopDetails json.RawMessage `json:"stop_details"`
	} `json:"delta"`
	Usage json.RawMessage `json:"usage"`
	Error json.RawMessage `json:"error"`
	// Content and StopReason belong to a whole answer, of a server that does not stream.
	Content    []wireBlock `json:"content"`
	StopReason string      `json:"stop_reason"`
}

type wireBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
}

// maxOpen limits the content blocks that are open at once; more are an error. The API opens one
// after the other.
const maxOpen = 100

// decode yields the deltas of one answer. It returns nil when the answer is complete or
// yield has returned false.
func (m *Model) decode(x *provider.Exchange, model string, yield func(llm.Delta) bool) error {
	d := decoder{model: model}
	for events := 0; ; events++ {
		data, err := x.Next()
		if err != nil {
			rest, ok := d.finish()
			if !ok || x.Cancelled() {
				return x.EndError(err, events == 0)
			}
			for _, delta := range rest {
				if !yield(delta) {
					break
				}
			}
			return nil
		}
		var ev event
		if err := json.Unmarshal(data, &ev); err != nil && !mistyped(err) {
			return m.BadEvent(data)
		}
		if d.done {
			continue
		}
		if ev.Type == "error" || ev.Type == "" && len(ev.Error) > 0 && string(ev.Error) != "null" {
			return m.StreamError(provider.ParseErrorDetail(ev.Error), data)
		}
		for _, delta := range d.handleEvent(&ev) {
			if delta.Text == "" && delta.Reasoning == "" && delta.Calls == nil && delta.ProviderData == nil {
				continue
			}
			if !yield(delta) {
				return nil
			}
		}
		if len(d.blocks) > maxOpen {
			return m.TooLarge(fmt.Sprintf("more than %d content blocks at once", maxOpen))
		}
	}
}

// mistyped reports whether the error means that JSON was decoded except for a field of a wrong
// type.
func mistyped(err error) bool {
	_, ok := errors.AsType[*json.UnmarshalTypeError](err)
	return ok
}

// block is a content block that has begun and not ended.
type block struct {
	kind      string // type of the block in the API
	call      int    // if the block is a tool_use: its position among the calls
	input     json.RawMessage
	streamed  bool // the input came in pieces
	signature []byte
}

// decoder makes deltas of the events of one answer.
type decoder struct {
	model   string         // model of the request
	blocks  map[int]*block // open blocks, by their index in the API
	calls   int            // number of calls so far
	hasText bool           // there was a text
	stop    string         // the API's reason to stop; empty: none yet
	refusal string         // the API's explanation of a refusal; may be empty
	usage   usage
	done    bool // the event that ends the message has come
}

// handleEvent returns the deltas of an event.
func (d *decoder) handleEvent(ev *event) (deltas []llm.Delta) {
	add := func(delta llm.Delta) { deltas = append(deltas, delta) }
	index, _ := strconv.Atoi(string(ev.Index))
	b := d.blocks[index]
	switch ev.Type {
	case "message_start":
		d.usage.merge(ev.Message.Usage)
	case "content_block_start":
		deltas = d.end(index)
		b = &block{kind: ev.Block.Type}
		if d.blocks == nil {
			d.blocks = map[int]*block{}
		}
		d.blocks[index] = b
		switch b.kind {
		case "text":
			add(d.textDelta(ev.Block.Text))
		case "thinking":
			b.signature = []byte(ev.Block.Signature)
			add(llm.Delta{Reasoning: ev.Block.Thinking})
		case "redacted_thinking":
			if ev.Block.Data != "" {
				add(d.providerDataDelta(thinkingData{Redacted: ev.Block.Data}))
			}
		case "tool_use":
			b.call, b.input = d.calls, ev.Block.Input
			d.calls++
			add(llm.Delta{Calls: []llm.CallDelta{{Index: b.call, ID: ev.Block.ID, Name: ev.Block.Name}}})
		}
	case "content_block_delta":
		if b == nil && ev.Delta.Type == "input_json_delta" { // some servers send another index than the block's
			for _, open := range d.blocks {
				if open.kind == "tool_use" && (b == nil || open.call > b.call) {
					b = open
				}
			}
		}
		if b == nil {
			break
		}
		switch delta := ev.Delta; {
		case b.kind == "text" && delta.Type == "text_delta":
			add(d.textDelta(delta.Text))
		case b.kind == "thinking" && delta.Type == "thinking_delta":
			add(llm.Delta{Reasoning: delta.Thinking})
		case b.kind == "thinking" && delta.Type == "signature_delta":
			b.signature = append(b.signature, delta.Signature...)
		case b.kind == "tool_use" && delta.Type == "input_json_delta" && delta.PartialJSON != "":
			b.streamed = true
			add(llm.Delta{Calls: []llm.CallDelta{{Index: b.call, Arguments: delta.PartialJSON}}})
		}
	case "content_block_stop":
		deltas = d.end(index)
	case "message_delta":
		d.usage.merge(ev.Usage)
		if ev.Delta.StopReason != "" {
			d.stop = ev.Delta.StopReason
		}
		var details struct {
			Explanation string `json:"explanation"`
		}
		if json.Unmarshal(ev.Delta.StopDetails, &details) == nil && details.Explanation != "" {
			d.refusal = details.Explanation
		}
	case "message_stop":
		d.done = true
	case "message":
		for _, block := range ev.Content {
			deltas = append(deltas, d.handleEvent(&event{Type: "content_block_start", Block: block})...)
		}
		d.usage.merge(ev.Usage)
		d.stop, d.done = ev.StopReason, true
	}
	return deltas
}

// end ends the block with the index, if there is one, and returns its last deltas.
func (d *decoder) end(index int) (deltas []llm.Delta) {
	b := d.blocks[index]
	delete(d.blocks, index)
	switch {
	case b == nil:
	case b.kind == "thinking" && len(b.signature) > 0:
		deltas = append(deltas, d.providerDataDelta(thinkingData{Signature: string(b.signature)}))
	case b.kind == "tool_use" && !b.streamed && bytes.HasPrefix(b.input, []byte("{")) && string(b.input) != "{}":
		deltas = append(deltas, llm.Delta{Calls: []llm.CallDelta{{Index: b.call, Arguments: string(b.input)}}})
	}
	return deltas
}

// finish returns the last deltas of an answer: those of open blocks, and the finish reason. ok is
// false if the answer is not complete.
func (d *decoder) finish() (deltas []llm.Delta, ok bool) {
	if d.stop == "" && !d.done {
		return nil, false
	}
	for index := range d.blocks {
		deltas = append(deltas, d.end(index)...)
	}
	last := llm.Delta{Finish: finishReason(d.stop, d.calls > 0), Usage: d.usage.sum()}
	if last.Finish == llm.FinishFilter && !d.hasText && d.refusal != "" {
		last.Text = d.refusal
	}
	return append(deltas, last), true
}

func (d *decoder) textDelta(text string) llm.Delta {
	d.hasText = d.hasText || text != ""
	return llm.Delta{Text: text}
}

func (d *decoder) providerDataDelta(k thinkingData) llm.Delta {
	data, _ := json.Marshal(k) // strings can always be encoded
	return llm.Delta{ProviderData: &llm.ProviderDataDelta{PartType: llm.ReasoningPart, ProviderData: llm.ProviderData{Provider: providerName, Model: d.model, Data: data}}}
}

func finishReason(stop string, calls bool) llm.FinishReason {
	switch stop {
	case "max_tokens", "model_context_window_exceeded":
		return llm.FinishLength
	case "pause_turn": // for tools that the server runs, which we never ask for: the answer is not complete
		return llm.FinishLength
	case "refusal":
		return llm.FinishFilter
	}
	if calls {
		return llm.FinishTools
	}
	return llm.FinishStop // end_turn, stop_sequence, and words of other servers
}

// usage holds the API's numbers of tokens; nil: the server has not sent the number. Input does not
// include tokens that were read from the cache or written into it.
type usage struct {
	Input      *int64 `json:"input_tokens"`
	CacheWrite *int64 `json:"cache_creation_input_tokens"`
	CacheRead  *int64 `json:"cache_read_input_tokens"`
	Output     *int64 `json:"output_tokens"`
	Details    struct {
		Thinking *int64 `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

// merge takes over the fields of an event that are higher than before. All are totals that never
// decrease, but some servers send 0 at the end. If a field is not a number, none is taken.
func (u *usage) merge(raw json.RawMessage) {
	var v usage
	if len(raw) == 0 || json.Unmarshal(raw, &v) != nil {
		return
	}
	for _, f := range []struct{ old, new **int64 }{
		{&u.Input, &v.Input}, {&u.CacheWrite, &v.CacheWrite}, {&u.CacheRead, &v.CacheRead}, {&u.Output, &v.Output}, {&u.Details.Thinking, &v.Details.Thinking},
	} {
		if *f.new != nil && (*f.old == nil || **f.new > **f.old) {
			*f.old = *f.new
		}
	}
}

// sum returns the usage; nil if the server has sent numbers of neither input nor output tokens.
func (u *usage) sum() *llm.Usage {
	if u.Input == nil && u.Output == nil {
		return nil
	}
	n := func(p *int64) int {
		if p == nil {
			return 0
		}
		return llm.ClampTokens(*p)
	}
	return &llm.Usage{
		InputTokens:  llm.ClampTokens(int64(n(u.Input)) + int64(n(u.CacheRead)) + int64(n(u.CacheWrite))),
		OutputTokens: n(u.Output), CachedTokens: n(u.CacheRead), CacheWriteTokens: n(u.CacheWrite), ReasoningTokens: n(u.Details.Thinking),
	}
}
