package responses

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	sdk "github.com/sashabaranov/go-openai"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/provider"
)

// maxItems limits the items of an answer; more are an error. An [llm.Reply] has no room for more.
const maxItems = 2000

// event is an event of the stream. A field that differs from server to server is raw JSON: a bad
// value is ignored, and the rest of the answer is kept.
type event struct {
	Object       json.RawMessage `json:"object"`
	Type         json.RawMessage `json:"type"`
	OutputIndex  json.RawMessage `json:"output_index"`
	ItemID       json.RawMessage `json:"item_id"`
	SummaryIndex json.RawMessage `json:"summary_index"`
	Delta        json.RawMessage `json:"delta"`
	Arguments    json.RawMessage `json:"arguments"`
	Item         json.RawMessage `json:"item"`
	Response     json.RawMessage `json:"response"`
	Error        json.RawMessage `json:"error"`
}

type item struct {
	Type      json.RawMessage `json:"type"`
	ID        json.RawMessage `json:"id"`
	CallID    json.RawMessage `json:"call_id"`
	Name      json.RawMessage `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Phase     json.RawMessage `json:"phase"`
	Content   json.RawMessage `json:"content"`
	Summary   json.RawMessage `json:"summary"`
	Encrypted json.RawMessage `json:"encrypted_content"`
}

type response struct {
	Status     json.RawMessage   `json:"status"`
	Output     []json.RawMessage `json:"output"`
	Error      json.RawMessage   `json:"error"`
	Incomplete struct {
		Reason json.RawMessage `json:"reason"`
	} `json:"incomplete_details"`
	Usage struct {
		Input  json.RawMessage `json:"input_tokens"`
		Output json.RawMessage `json:"output_tokens"`
		In     struct {
			Cached  json.RawMessage `json:"cached_tokens"`
			Written json.RawMessage `json:"cache_write_tokens"`
		} `json:"input_tokens_details"`
		Out struct {
			Reasoning json.RawMessage `json:"reasoning_tokens"`
		} `json:"output_tokens_details"`
	} `json:"usage"`
}

// itemState is the state of an item of the answer.
type itemState struct {
	call       int    // position among the calls; -1: it is no call
	hasContent bool   // some of its text or arguments has come
	raw        bool   // its reasoning comes unabridged, not as a summary
	summary    string // index of the latest part of its summary
	done       bool   // the event that ends it has come
}

// decoder makes deltas of events.
type decoder struct {
	m     *Model
	model string
	yield func(llm.Delta) bool

	items         map[string]*itemState // states of the items, by output index and by item id
	count         int                   // number of items so far
	last          *itemState            // item of the latest event
	calls         int                   // number of calls so far
	lastText      *itemState            // item with the latest text, which may continue; nil: none
	lastReasoning *itemState            // item with the latest reasoning, which may continue; nil: none
	stopped       bool                  // yield has returned false
}

// decode yields the deltas of one answer. It returns nil when the answer is complete or
// yield has returned false.
func (d *decoder) decode(x *provider.Exchange) error {
	for events := 0; ; events++ {
		line, err := x.Next()
		if err != nil {
			return x.EndError(err, events == 0)
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return d.m.BadEvent(line)
		}
		finish, err := d.event(e, line)
		if err != nil || d.stopped {
			return err
		}
		if finish.Finish != "" {
			x.Drain()
			d.yield(finish)
			return nil
		}
	}
}

// send yields a delta.
func (d *decoder) send(delta llm.Delta) { d.stopped = d.stopped || !d.yield(delta) }

// event handles one event. At the end of the answer it returns the last delta, with a finish
// reason. Unknown events are ignored, as the API asks.
func (d *decoder) event(e event, line []byte) (finish llm.Delta, err error) {
	switch typ := sdk.ResponseStreamEventType(provider.ScalarText(e.Type)); typ {
	case sdk.ResponseStreamEventOutputItemAdded, sdk.ResponseStreamEventOutputItemDone:
		var i item
		if json.Unmarshal(e.Item, &i) != nil {
			return llm.Delta{}, nil
		}
		s, err := d.state(e.OutputIndex, i.ID, true)
		if err != nil {
			return llm.Delta{}, err
		}
		return llm.Delta{}, d.item(s, i, typ == sdk.ResponseStreamEventOutputItemDone)
	case sdk.ResponseStreamEventOutputTextDelta, sdk.ResponseStreamEventRefusalDelta,
		sdk.ResponseStreamEventReasoningSummaryTextDelta, sdk.ResponseStreamEventReasoningTextDelta,
		sdk.ResponseStreamEventFunctionArgumentsDelta, sdk.ResponseStreamEventFunctionArgumentsDone:
		s, err := d.state(e.OutputIndex, e.ItemID, false)
		if err != nil {
			return llm.Delta{}, err
		}
		d.piece(typ, s, e)
	case sdk.ResponseStreamEventCompleted, sdk.ResponseStreamEventIncomplete:
		return d.end(typ, e.Response)
	case sdk.ResponseStreamEventFailed:
		var r response
		_ = json.Unmarshal(e.Response, &r) // an event without an error is a failure, too
		return llm.Delta{}, d.m.StreamError(provider.ParseErrorDetail(r.Error), line)
	case sdk.ResponseStreamEventError:
		detail := provider.ParseErrorDetail(e.Error)
		if detail.Message == "" {
			detail = provider.ParseErrorDetail(line)
			detail.Kind = "" // it is only "error"
		}
		return llm.Delta{}, d.m.StreamError(detail, line)
	case "":
		if detail := provider.ParseErrorDetail(e.Error); detail != (provider.ErrorDetail{}) {
			return llm.Delta{}, d.m.StreamError(detail, line)
		}
		if provider.ScalarText(e.Object) == "response" { // the answer of a server that does not stream
			return d.end(typ, line)
		}
	}
	return llm.Delta{}, nil
}

// state returns the state of the item with the index, or else with the id. A server that sends
// neither means the item of the latest event, unless the event begins a new item.
func (d *decoder) state(index, id json.RawMessage, begins bool) (*itemState, error) {
	var keys []string
	if n, err := strconv.Atoi(provider.ScalarText(index)); err == nil {
		keys = append(keys, strconv.Itoa(n))
	}
	if id := provider.ScalarText(id); id != "" && len(id) <= 256 {
		keys = append(keys, "id "+id)
	}
	var s *itemState
	for _, k := range keys {
		if s = d.items[k]; s != nil {
			break
		}
	}
	if s == nil && len(keys) == 0 && (!begins || d.last != nil && !d.last.done) {
		s = d.last
	}
	if s == nil {
		if d.count++; d.count > maxItems {
			return nil, d.m.TooLarge(fmt.Sprintf("more than %d items", maxItems))
		}
		s = &itemState{call: -1}
	}
	for _, k := range keys {
		if d.items == nil {
			d.items = map[string]*itemState{}
		}
		if d.items[k] == nil {
			d.items[k] = s
		}
	}
	d.last = s
	return s, nil
}

// piece handles an event with a piece of an item.
func (d *decoder) piece(typ sdk.ResponseStreamEventType, s *itemState, e event) {
	text := provider.ScalarText(e.Delta)
	switch typ {
	case sdk.ResponseStreamEventOutputTextDelta, sdk.ResponseStreamEventRefusalDelta:
		d.text(s, text)
	case sdk.ResponseStreamEventReasoningSummaryTextDelta:
		d.reason(s, text, false, provider.ScalarText(e.SummaryIndex))
	case sdk.ResponseStreamEventReasoningTextDelta:
		d.reason(s, text, true, "")
	case sdk.ResponseStreamEventFunctionArgumentsDelta:
		d.arguments(s, text)
	case sdk.ResponseStreamEventFunctionArgumentsDone:
		if !s.hasContent {
			d.arguments(s, provider.ScalarText(e.Arguments))
		}
	}
}

// text sends a piece of a text. Texts of different messages are separated by an empty line.
func (d *decoder) text(s *itemState, text string) {
	if text == "" {
		return
	}
	if d.lastText != nil && d.lastText != s {
		text = "\n\n" + text
	}
	s.hasContent, d.lastText, d.lastReasoning = true, s, nil
	d.send(llm.Delta{Text: text})
}

// reason sends a piece of reasoning. If an item has both a summary and raw reasoning, only the one
// that comes first is sent. Parts of a summary, by their index summary, are separated by an empty
// line.
func (d *decoder) reason(s *itemState, text string, raw bool, summary string) {
	if text == "" || s.hasContent && s.raw != raw {
		return
	}
	if d.lastReasoning != nil && (d.lastReasoning != s || s.summary != summary) {
		text = "\n\n" + text
	}
	s.hasContent, s.raw, s.summary, d.lastReasoning, d.lastText = true, raw, summary, s, nil
	d.send(llm.Delta{Reasoning: text})
}

// arguments sends a piece of the arguments of a call.
func (d *decoder) arguments(s *itemState, text string) {
	if text == "" || s.call < 0 {
		return
	}
	s.hasContent = true
	d.send(llm.Delta{Calls: []llm.CallDelta{{Index: s.call, Arguments: text}}})
}

// item handles an item at its beginning, or with done at its end. A server that sends no pieces
// sends only the item.
func (d *decoder) item(s *itemState, i item, done bool) error {
	if s.done {
		return nil
	}
	s.done = done
	switch provider.ScalarText(i.Type) {
	case "function_call":
		if s.call < 0 {
			if d.calls++; d.calls > llm.MaxCalls {
				return d.m.TooLarge(fmt.Sprintf("more than %d tool calls", llm.MaxCalls))
			}
			s.call, d.lastReasoning = d.calls-1, nil
		}
		d.send(llm.Delta{Calls: []llm.CallDelta{{Index: s.call, ID: provider.ScalarText(i.CallID), Name: provider.ScalarText(i.Name)}}})
		if done && !s.hasContent {
			d.arguments(s, provider.ScalarText(i.Arguments))
		}
	case "message":
		if !done {
			break
		}
		if !s.hasContent {
			d.text(s, strings.Join(textsOf(i.Content), ""))
		}
		if p := provider.ScalarText(i.Phase); p != "" && s.hasContent {
			d.send(llm.Delta{ProviderData: d.providerDataDelta(llm.TextPart, phase{p})})
			d.lastText = nil
		}
	case "reasoning":
		if !done {
			break
		}
		summary, content := textsOf(i.Summary), textsOf(i.Content)
		if !s.hasContent && len(summary) > 0 {
			d.reason(s, strings.Join(summary, "\n\n"), false, "")
		} else if !s.hasContent {
			d.reason(s, strings.Join(content, ""), true, "")
		}
		r := reasoning{Type: "reasoning", ID: provider.ScalarText(i.ID), Summary: json.RawMessage("[]"), EncryptedContent: provider.ScalarText(i.Encrypted)}
		if summary != nil {
			r.Summary = i.Summary
		}
		if len(content) > 0 {
			r.Content = i.Content
		}
		// An item with neither cannot be sent back: the server would look it up, and stores
		// nothing.
		if r.EncryptedContent != "" || r.Content != nil {
			d.send(llm.Delta{ProviderData: d.providerDataDelta(llm.ReasoningPart, r)})
			d.lastReasoning = nil
		}
	}
	return nil
}

func (d *decoder) providerDataDelta(of llm.PartType, data any) *llm.ProviderDataDelta {
	return &llm.ProviderDataDelta{PartType: of, ProviderData: llm.ProviderData{Provider: providerName, Model: d.model, Data: marshal(data)}}
}

// textsOf returns the texts and refusals in a list of parts; nil: it is not a list.
func textsOf(raw json.RawMessage) []string {
	var parts []struct{ Text, Refusal json.RawMessage }
	if json.Unmarshal(raw, &parts) != nil || parts == nil {
		return nil
	}
	texts := []string{}
	for _, p := range parts {
		if text := provider.ScalarText(p.Text) + provider.ScalarText(p.Refusal); text != "" {
			texts = append(texts, text)
		}
	}
	return texts
}

// end handles the event at the end of an answer. It returns the last delta, or an error if the
// answer has failed.
func (d *decoder) end(typ sdk.ResponseStreamEventType, raw json.RawMessage) (llm.Delta, error) {
	var r response
	_ = json.Unmarshal(raw, &r) // fields that do not fit stay empty
	if d.count == 0 {
		for n, raw := range r.Output {
			var i item
			if json.Unmarshal(raw, &i) != nil {
				continue
			}
			s, err := d.state(json.RawMessage(strconv.Itoa(n)), i.ID, true)
			if err != nil {
				return llm.Delta{}, err
			}
			if err := d.item(s, i, true); err != nil {
				return llm.Delta{}, err
			}
		}
	}
	finish := llm.Delta{Finish: llm.FinishStop, Usage: &llm.Usage{
		InputTokens: provider.ParseTokens(r.Usage.Input), OutputTokens: provider.ParseTokens(r.Usage.Output), ReasoningTokens: provider.ParseTokens(r.Usage.Out.Reasoning),
		CachedTokens: provider.ParseTokens(r.Usage.In.Cached), CacheWriteTokens: provider.ParseTokens(r.Usage.In.Written),
	}}
	// Some servers end all answers alike, and mark an incomplete one only in the response.
	incomplete := typ == sdk.ResponseStreamEventIncomplete || provider.ScalarText(r.Status) == string(sdk.ResponseStatusIncomplete)
	switch {
	case incomplete && provider.ScalarText(r.Incomplete.Reason) == "content_filter":
		finish.Finish = llm.FinishFilter
	case incomplete:
		finish.Finish = llm.FinishLength
	case d.calls > 0:
		finish.Finish = llm.FinishTools
	}
	return finish, nil
}
