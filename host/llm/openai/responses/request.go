package responses

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	sdk "github.com/sashabaranov/go-openai"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/provider"
)

// providerName marks the provider data of this package.
const providerName = "openai-responses"

// create sends the request, with all optional fields that were not refused before.
func (m *Model) create(x *provider.Exchange, wire sdk.CreateResponseRequest, entries []*llm.Entry) error {
	for {
		version := fmt.Sprint(wire.Model, " ", m.images.Version(), " ", m.refused.count())
		items := provider.EncodeEntries(entries, version, func(e *llm.Entry) []byte { return m.encodeEntry(e, wire.Model) })
		wire.PromptCacheKey, wire.Include, wire.Reasoning = "", nil, nil
		if m.noFormat.Load() {
			wire.Text = nil
		}
		if !m.noCacheKey.Load() {
			wire.PromptCacheKey = cacheKey(entries)
		}
		if !m.noEncrypted.Load() {
			wire.Include = []sdk.ResponseInclude{sdk.ResponseIncludeReasoningEncryptedContent}
		}
		if !m.noSummary.Load() {
			wire.Reasoning = &sdk.ResponseReasoning{Effort: m.ReasoningEffort, Summary: "auto"}
		} else if m.ReasoningEffort != "" {
			wire.Reasoning = &sdk.ResponseReasoning{Effort: m.ReasoningEffort}
		}
		body, err := json.Marshal(wire)
		if err == nil {
			err = x.Post("/responses", items.SpliceInto(body, placeholderMessage()))
		}
		if err == nil || !m.dropOptional(err, wire, entries) {
			return err
		}
	}
}

// dropOptional drops an optional field or reasoning that the error may be about. It reports
// whether the request has changed and can be sent again. Models that do not think take no
// summary and encrypt nothing. OpenAI gives summaries only to verified organizations, and one
// account cannot read what another has encrypted. LiteLLM refuses fields that the model behind
// it does not know.
func (m *Model) dropOptional(err error, wire sdk.CreateResponseRequest, entries []*llm.Entry) bool {
	failure, ok := errors.AsType[*llm.ProviderError](err)
	if !ok || failure.Code == llm.ContextExceeded || failure.Status != http.StatusBadRequest && failure.Status != http.StatusUnprocessableEntity && failure.Status != http.StatusNotFound {
		return false
	}
	message := strings.ToLower(failure.Code + " " + failure.Message)
	about := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(message, w) })
	}
	if about("invalid_encrypted_content", "could not be verified", "required following item", "required 'reasoning' item", "item with id") {
		return m.refused.add(entries, wire.Model)
	}
	switch {
	case failure.Status == http.StatusNotFound:
		return false
	case wire.PromptCacheKey != "" && about("prompt_cache_key"):
		m.noCacheKey.Store(true)
	case wire.Text != nil && about("text.format", "json_schema"):
		m.noFormat.Store(true)
	case wire.Include != nil && about("encrypted", "include"):
		m.noEncrypted.Store(true)
	case wire.Reasoning != nil && wire.Reasoning.Summary != "" && (about("summar") || m.ReasoningEffort == "" && about("reasoning")):
		m.noSummary.Store(true)
	default:
		return false
	}
	return true
}

// refusedReasoning is the set of reasoning items that the server has refused. New reasoning is
// still sent.
type refusedReasoning struct {
	mu    sync.Mutex        // guards items
	items map[[32]byte]bool // SHA-256 of each item
}

func (f *refusedReasoning) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.items)
}

func (f *refusedReasoning) has(item []byte) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.items) > 0 && f.items[sha256.Sum256(item)]
}

// add adds all reasoning of the model in entries, and reports whether the set has grown.
func (f *refusedReasoning) add(entries []*llm.Entry, model string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := len(f.items)
	for _, e := range entries {
		for _, p := range e.Parts {
			item := reasoningItem(p.ProviderData, model)
			if p.Type != llm.ReasoningPart || item == nil {
				continue
			}
			if f.items == nil {
				f.items = map[[32]byte]bool{}
			}
			f.items[sha256.Sum256(item)] = true
		}
	}
	return len(f.items) > before
}

// placeholderMessage returns the item in whose place the conversation is spliced.
func placeholderMessage() sdk.ResponseInputMessage { return message("user", provider.Placeholder()) }

// requestTemplate returns the request with a placeholder for its items, and without optional
// fields that may be refused.
func (m *Model) requestTemplate(req llm.Request) sdk.CreateResponseRequest {
	yes, no := true, false
	wire := sdk.CreateResponseRequest{
		Model: m.ModelOf(req), Input: []any{placeholderMessage()}, Store: &no, ParallelToolCalls: &yes, Stream: true,
	}
	if req.Schema != nil {
		wire.Text = &sdk.ResponseTextConfig{Format: &sdk.ResponseTextFormat{Type: "json_schema", Name: "answer", Schema: req.Schema}}
	}
	for _, def := range req.Tools {
		params := json.RawMessage(bytes.Clone(def.Parameters))
		if !json.Valid(params) {
			params = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		// The API's default is strict, which takes only some schemas.
		wire.Tools = append(wire.Tools, sdk.ResponseTool{Type: sdk.ToolTypeFunction, Parameters: map[string]any{
			"name": def.Name, "description": def.Description, "parameters": params, "strict": false,
		}})
	}
	return wire
}

// cacheKey returns a key for the server's cache of prompts. It is the same for all requests of a
// conversation, and differs between conversations that begin with the same instructions: it is a
// hash of the texts up to the first message of the user.
func cacheKey(entries []*llm.Entry) string {
	sum := sha256.New()
	for _, e := range entries {
		_, _ = io.WriteString(sum, e.Parts[0].Text) // cannot fail
		if e.Role == llm.RoleUser {
			break
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// encodeEntry returns the items of an entry, separated by commas.
func (m *Model) encodeEntry(e *llm.Entry, model string) []byte {
	var out provider.Pieces
	add := func(item any) { out = out.Add(marshal(item)) }
	switch e.Role {
	case llm.RoleSystem:
		add(message("system", e.Parts[0].Text))
	case llm.RoleUser:
		add(message("user", content(e.Parts[0].Text, m.images.Show(e.Parts[1:], "this message"))))
	case llm.RoleAssistant:
		// Reasoning is sent with the next item; the API refuses reasoning alone.
		var before [][]byte
		say := func(item any) {
			for _, b := range before {
				out = out.Add(b)
			}
			before = nil
			add(item)
		}
		for _, p := range e.Parts {
			switch p.Type {
			case llm.ReasoningPart:
				if item := reasoningItem(p.ProviderData, model); item != nil && !m.refused.has(item) {
					before = append(before, item)
				}
			case llm.TextPart:
				item := message("assistant", p.Text)
				item.Phase = phaseOf(p.ProviderData, model)
				say(item)
			case llm.CallPart:
				say(sdk.ResponseOutputItem{Type: "function_call", CallID: p.Call.ID, Name: p.Call.Function.Name, Arguments: p.Call.Function.Arguments})
			}
		}
	case llm.RoleTool:
		for _, p := range e.Parts {
			images := m.images.Show(p.Images, "the result of "+p.Result.CallID+", "+p.Result.Name)
			add(sdk.ResponseFunctionCallOutput{Type: "function_call_output", CallID: p.Result.CallID, Output: content(p.Text, images)})
		}
	}
	return bytes.Join(out, nil)
}

func message(role string, content any) sdk.ResponseInputMessage {
	return sdk.ResponseInputMessage{Type: "message", Role: role, Content: content}
}

// content returns a text and its attachments: as a string if no attachment is an image.
func content(text string, shown []provider.ImageOrText) any {
	texts, images := []string{text}, false
	parts := []any{sdk.ResponseInputText{Type: "input_text", Text: text}}
	for _, s := range shown {
		if s.Image == nil {
			texts = append(texts, s.Text)
			parts = append(parts, sdk.ResponseInputText{Type: "input_text", Text: s.Text})
			continue
		}
		images = true
		url := "data:" + s.Image.Mime + ";base64," + base64.StdEncoding.EncodeToString(s.Image.Data)
		parts = append(parts, sdk.ResponseInputImage{Type: "input_image", Detail: "auto", ImageURL: url})
	}
	if images {
		return parts
	}
	return strings.Join(texts, "\n")
}

// reasoning is a reasoning item in the form of provider data: the fields that the API takes back.
type reasoning struct {
	Type             string          `json:"type"`
	ID               string          `json:"id,omitempty"`
	Summary          json.RawMessage `json:"summary"`
	Content          json.RawMessage `json:"content,omitempty"` // set by servers that do not encrypt reasoning
	EncryptedContent string          `json:"encrypted_content,omitempty"`
}

// reasoningItem returns the reasoning item in provider data of the model; nil: there is none.
func reasoningItem(data *llm.ProviderData, model string) []byte {
	var r reasoning
	if !data.IsFrom(providerName, model) || json.Unmarshal(data.Data, &r) != nil || r.Type != "reasoning" {
		return nil
	}
	return data.Data
}

// phase is the provider data of a text: the phase of the answer to which the text belongs.
type phase struct {
	Phase string `json:"phase"`
}

func phaseOf(data *llm.ProviderData, model string) string {
	var p phase
	if !data.IsFrom(providerName, model) || json.Unmarshal(data.Data, &p) != nil {
		return ""
	}
	return p.Phase
}

func marshal(item any) []byte {
	out, err := json.Marshal(item)
	if err != nil {
		return nil // not reached: items hold only texts and valid JSON
	}
	return out
}
