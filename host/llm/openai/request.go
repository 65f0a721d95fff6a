package openai

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/sashabaranov/go-openai"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/tool"
)

// create sends the request. If a server refuses one with images, it is sent again
// without: if that is what it takes, these images are not sent any more.
func (m *Model) create(ctx context.Context, client *openai.Client, wire openai.ChatCompletionRequest) (*openai.ChatCompletionStream, error) {
	wire.Messages = m.refused.without(wire.Messages)
	stream, err := m.createWithUsage(ctx, client, wire)
	failure, ok := errors.AsType[*llm.ProviderError](err)
	if !ok || !refusesImages(failure) || !hasImages(wire.Messages) {
		return stream, err
	}
	with := wire.Messages
	wire.Messages = replaceImages(with, func(string) (string, bool) { return failure.Message, true })
	stream, secondErr := m.createWithUsage(ctx, client, wire)
	if secondErr != nil {
		return nil, err
	}
	m.refused.add(with, failure.Message)
	return stream, nil
}

// createWithUsage asks for usage until a server refuses the request because of that,
// as some do that know no such option.
func (m *Model) createWithUsage(ctx context.Context, client *openai.Client, wire openai.ChatCompletionRequest) (*openai.ChatCompletionStream, error) {
	if m.noUsage.Load() {
		wire.StreamOptions = nil
	}
	stream, err := createPlain(ctx, client, wire)
	if wire.StreamOptions == nil || !refusesUsage(err) {
		return stream, err
	}
	m.noUsage.Store(true)
	wire.StreamOptions = nil
	return createPlain(ctx, client, wire)
}

// refusesUsage tells an error that names what asks for usage.
func refusesUsage(err error) bool {
	failure, ok := errors.AsType[*llm.ProviderError](err)
	return ok && (failure.Status == http.StatusBadRequest || failure.Status == http.StatusUnprocessableEntity) &&
		(strings.Contains(failure.Message, "stream_options") || strings.Contains(failure.Message, "include_usage"))
}

// createPlain sends it as it is. go-openai refuses some models with tools unless
// their reasoning is off; for those it is switched off.
func createPlain(ctx context.Context, client *openai.Client, wire openai.ChatCompletionRequest) (*openai.ChatCompletionStream, error) {
	stream, err := client.CreateChatCompletionStream(ctx, wire)
	if errors.Is(err, openai.ErrReasoningToolsRequireResponses) {
		wire.ReasoningEffort = openai.ReasoningEffortNone
		withoutReasoning, secondErr := client.CreateChatCompletionStream(ctx, wire)
		if errors.Is(secondErr, openai.ErrReasoningEffortUnsupported) {
			return nil, err // it cannot be switched off, so the first error is the one that helps
		}
		return withoutReasoning, secondErr
	}
	return stream, err
}

// wireRequest makes the request. Nothing of req's slices is kept.
func (m *Model) wireRequest(req llm.Request) openai.ChatCompletionRequest {
	wire := openai.ChatCompletionRequest{
		Model:         cmp.Or(req.Model, m.opts.Model),
		Messages:      wireMessages(req.Messages, m.results.begin()),
		Stream:        true,
		StreamOptions: &openai.StreamOptions{IncludeUsage: true},
	}
	for _, def := range req.Tools {
		params := json.RawMessage(bytes.Clone(def.Parameters))
		if !json.Valid(params) {
			params = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		wire.Tools = append(wire.Tools, openai.Tool{
			Type:     openai.ToolTypeFunction,
			Function: &openai.FunctionDefinition{Name: def.Name, Description: def.Description, Parameters: params},
		})
	}
	return wire
}

// sentResult is what a result is on the wire.
type sentResult struct{ data, call, text string }

// results keeps what results are on the wire, by their data: a conversation is sent again
// with every step, and to leave out what a model does not read takes longer than all else.
type results struct {
	mu   sync.Mutex
	last map[string]sentResult // those of the newest request
}

// begin begins a request, and returns what tells of each of its results what it is on the
// wire; false if it is none.
func (r *results) begin() func(llm.Message) (sentResult, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, now := r.last, map[string]sentResult{}
	r.last = now
	return func(m llm.Message) (sentResult, bool) {
		r.mu.Lock()
		defer r.mu.Unlock()
		sent, ok := before[string(m.Data)]
		if !ok {
			var data llm.ResultData
			if json.Unmarshal(m.Data, &data) != nil {
				return sentResult{}, false
			}
			sent = sentResult{string(m.Data), data.CallID, tool.ForModel(data.Output, data.Unsent)}
		}
		now[sent.data] = sent
		return sent, true
	}
}

// wireTurn is one message on the wire and, for an assistant message with
// calls, what the calls answered.
type wireTurn struct {
	message openai.ChatCompletionMessage
	results []string     // by call; "" is one that has not been found
	images  [][]llm.Part // of the results
}

// place is one call that waits for its result.
type place struct{ turn, call int }

// wireMessages translates a conversation. The API refuses one in which a call
// has no result right after it, or a result no call before it; a conversation
// that was interrupted, cut or forked has both. So each call gets its result
// wherever it stands later on, and a made one if there is none. A result
// without a call is dropped: what a tool wrote must not come back as the words
// of the user.
func wireMessages(messages []llm.Message, sent func(llm.Message) (sentResult, bool)) []openai.ChatCompletionMessage {
	var turns []*wireTurn
	waiting := make(map[string]place)
	previous := llm.Kind("")
	for _, m := range messages {
		kind := m.Kind
		switch kind {
		case llm.System:
			if m.Content != "" {
				turns = append(turns, plainTurn(openai.ChatMessageRoleSystem, m.Content))
			}
		case llm.User:
			turns = append(turns, &wireTurn{message: userMessage(cmp.Or(m.Content, "(empty message)"), wireImages(m.Parts, "this message"))})
		case llm.Assistant:
			if m.Content != "" {
				turns = append(turns, plainTurn(openai.ChatMessageRoleAssistant, m.Content))
			} else {
				kind = previous // as if it were not there
			}
		case llm.ToolCall:
			var data llm.CallData
			if json.Unmarshal(m.Data, &data) != nil {
				// Not ours, so nothing to answer to; the model still sees what it said.
				turns = append(turns, plainTurn(openai.ChatMessageRoleAssistant, cmp.Or(m.Content, "(unreadable tool call)")))
				kind = llm.Assistant
				break
			}
			if len(turns) == 0 || previous != llm.ToolCall && previous != llm.Assistant {
				turns = append(turns, &wireTurn{message: openai.ChatCompletionMessage{Role: openai.ChatMessageRoleAssistant}})
			}
			at := len(turns) - 1
			turn := turns[at]
			waiting[data.ID] = place{at, len(turn.results)}
			turn.message.ToolCalls = append(turn.message.ToolCalls, wireCall(data, turn.message.ToolCalls))
			turn.results, turn.images = append(turn.results, ""), append(turn.images, nil)
		case llm.ToolResult:
			result, ok := sent(m)
			if !ok {
				continue
			}
			if p, ok := waiting[result.call]; ok {
				turns[p.turn].results[p.call] = cmp.Or(result.text, m.Content, "(no output)")
				turns[p.turn].images[p.call] = m.Parts
				delete(waiting, result.call)
			}
		default:
			continue
		}
		previous = kind
	}

	var wire []openai.ChatCompletionMessage
	for _, turn := range turns {
		wire = append(wire, turn.message)
		var images []openai.ChatMessagePart
		for i, result := range turn.results {
			call := turn.message.ToolCalls[i]
			images = append(images, wireImages(turn.images[i], "the result of "+call.ID+", "+call.Function.Name)...)
			if result == "" {
				result = missingResult()
			}
			wire = append(wire, openai.ChatCompletionMessage{
				Role:       openai.ChatMessageRoleTool,
				Content:    result,
				ToolCallID: call.ID,
			})
		}
		if images != nil { // a message of a tool holds text only
			wire = append(wire, userMessage(llm.ResultImages, images))
		}
	}
	return wire
}

var missingResult = sync.OnceValue(func() string {
	return string(tool.Failed(tool.CodeInterrupted, tool.InternalError,
		"no result of this call was recorded; it may or may not have run").Envelope())
})

func plainTurn(role, content string) *wireTurn {
	return &wireTurn{message: openai.ChatCompletionMessage{Role: role, Content: content}}
}

// wireCall translates one call; siblings are the calls before it in the same message.
func wireCall(data llm.CallData, siblings []openai.ToolCall) openai.ToolCall {
	call := openai.ToolCall{
		ID:   wireID(data.ID),
		Type: openai.ToolTypeFunction,
		Function: openai.FunctionCall{
			Name:      wireName(data.Function.Name),
			Arguments: wireArguments(data.Function.Arguments),
		},
	}
	for _, s := range siblings {
		if s.ID == call.ID { // only in a conversation that Assembler did not make
			call.ID = wireID(fmt.Sprintf("%s\x00%d", data.ID, len(siblings)))
			break
		}
	}
	return call
}

// wireID keeps an id that the API accepts, which is at most 40 characters;
// another provider's may be longer.
func wireID(id string) string {
	const maxBytes = 40
	printable := !strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r >= 0x7f })
	if id != "" && len(id) <= maxBytes && printable {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "call_" + hex.EncodeToString(sum[:16])
}

// wireName makes the name of a tool that a model invented into one that the
// API accepts, or the whole conversation would be refused from then on.
func wireName(name string) string {
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

// wireArguments sends arguments that are not a JSON object inside of one: many
// servers parse them and refuse the request otherwise.
func wireArguments(args string) string {
	if trimmed := strings.TrimSpace(args); trimmed == "" {
		return "{}"
	} else if trimmed[0] == '{' && json.Valid([]byte(args)) {
		return args
	}
	quoted, _ := json.Marshal(map[string]string{"malformed_arguments": args}) // strings always encode
	return string(quoted)
}
