package google

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/provider"
	"github.com/stockade-dev/stockade/host/tool"
)

// body is the request: what stays the same from one to the next comes first, and none of
// it is translated again.
func (m *Model) body(model string, entries []*llm.Entry, tools []byte) provider.Pieces {
	w := writer{model, isVersion3(model), &m.images}
	version := model + " " + m.images.Version()
	var system provider.Pieces
	contents := make(provider.Pieces, 0, 3*len(entries)+8)
	role := llm.Role("") // of the last content
	for _, e := range entries {
		parts := e.Encode(version, w.entry)
		if e.Role == llm.RoleSystem {
			system = system.Add(parts)
			continue
		}
		if len(parts) > 0 {
			contents, role = join(contents, role, e.Role, parts), e.Role
		}
	}
	if role == "" || role == llm.RoleAssistant { // the API answers to the user only
		contents = join(contents, role, llm.RoleUser, goOn)
	}
	out := make(provider.Pieces, 0, len(contents)+len(system)+16)
	out = append(out, []byte("{"))
	if system != nil {
		out = append(append(append(out, []byte(`"systemInstruction":`), openUser), system...), closeContent)
	}
	if tools != nil {
		out = append(out, tools, comma)
	}
	if t := thinkingOf(model, m.ReasoningEffort); t != nil {
		out = append(out, []byte(`"generationConfig":{"thinkingConfig":`), tool.Marshal(t), []byte(`},`))
	}
	return append(append(append(out, []byte(`"contents":[`)), contents...), []byte(`]}]}`))
}

// join puts parts behind contents, of which the last is open. The roles of contents take
// turns, and the first is the user's: else the API refuses a conversation.
func join(contents provider.Pieces, last, role llm.Role, parts []byte) provider.Pieces {
	user := role != llm.RoleAssistant
	switch {
	case last == "" && user:
		contents = append(contents, openUser)
	case last == "":
		contents = append(contents, openUser, omittedStart, closeContent, openModel)
	case user == (last != llm.RoleAssistant):
		contents = append(contents, comma)
	case user:
		contents = append(contents, closeContent, openUser)
	default:
		contents = append(contents, closeContent, openModel)
	}
	return append(contents, parts)
}

// Pieces of a request.
var (
	comma        = []byte(`,`)
	openUser     = []byte(`{"role":"user","parts":[`)
	openModel    = []byte(`{"role":"model","parts":[`)
	closeContent = []byte(`]},`) // content
	// What stands for the words of a user where there are none.
	omittedStart = []byte(`{"text":"(what came before was left out)"}`)
	goOn         = []byte(`{"text":"(go on)"}`)
)

// declarations are tools as a request has them. They are mostly the same as before.
type declarations struct {
	mu    sync.Mutex
	tools []tool.Definition
	wire  []byte
}

// of is the field of a request with the tools; nil without any.
func (d *declarations) of(tools []tool.Definition) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(tools) == 0 {
		return nil
	}
	if !slices.EqualFunc(tools, d.tools, func(a, b tool.Definition) bool {
		return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.Parameters, b.Parameters)
	}) {
		d.tools, d.wire = slices.Clone(tools), declare(tools)
	}
	return d.wire
}

func declare(tools []tool.Definition) []byte {
	type declaration struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parametersJsonSchema"` // its parameters are a dialect of their own
	}
	list := make([]declaration, len(tools))
	for i, t := range tools {
		list[i] = declaration{wireName(t.Name), t.Description, t.Parameters}
		if !json.Valid(t.Parameters) {
			list[i].Parameters = json.RawMessage(`{"type":"object","properties":{}}`)
		}
	}
	return slices.Concat([]byte(`"tools":[{"functionDeclarations":`), tool.Marshal(list), []byte(`}]`))
}

// part is a piece of a content on the wire. It has one of Text, InlineData, FunctionCall
// and FunctionResponse.
type part struct {
	Text             *string           `json:"text,omitempty"` // may be empty if it brings a signature
	Thought          bool              `json:"thought,omitempty"`
	InlineData       *blob             `json:"inlineData,omitempty"`
	FunctionCall     *functionCall     `json:"functionCall,omitempty"`
	FunctionResponse *functionResponse `json:"functionResponse,omitempty"`
	ThoughtSignature string            `json:"thoughtSignature,omitempty"` // base64
}

type blob struct {
	MimeType string `json:"mimeType"`
	Data     []byte `json:"data"`
}

type functionCall struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

type functionResponse struct {
	ID       string      `json:"id,omitempty"`
	Name     string      `json:"name"`
	Response response    `json:"response"`
	Parts    []mediaPart `json:"parts,omitempty"`
}

// response is what has come of a call: one of Output and Error, as the reference of the
// API has them.
type response struct {
	Output string   `json:"output,omitempty"`
	Error  string   `json:"error,omitempty"`
	Images []string `json:"images,omitempty"` // what became of images that are not in the parts
}

type mediaPart struct {
	InlineData blob `json:"inlineData"`
}

// placeholderSignature stands for the signature of a call that another model has made, or a
// person: what Google's documentation of thought signatures names for these, and its own
// command line sends. Without one, models refuse the conversation from version 3 on.
// https://ai.google.dev/gemini-api/docs/thought-signatures#faqs
const placeholderSignature = "skip_thought_signature_validator"

// signatureData is what is kept of a signature: itself, and how many bytes of the end of the
// part's text came in the same piece. It goes back with these and not with the rest.
type signatureData struct {
	Signature string `json:"signature"`
	Bytes     int    `json:"bytes,omitempty"` // of a call: 0
}

// writer makes parts of entries, for one model.
type writer struct {
	model string
	// version3 says that the model is of version 3 or later: it takes the ids of calls,
	// which older ones refuse, and images in results, and wants signatures of calls.
	version3 bool
	images   *provider.RefusedImages
}

// entry is the parts of an entry, with commas between them.
func (w writer) entry(e *llm.Entry) []byte {
	var parts, behind []part
	calls := 0
	for _, p := range e.Parts {
		switch p.Type {
		case llm.TextPart:
			parts = append(parts, w.text(p)...)
		case llm.ReasoningPart:
			// A summary without a signature says nothing to the model, and that of
			// another model is not its thought.
			if w.signature(p).Signature != "" {
				parts = append(parts, w.text(p)...)
			}
		case llm.CallPart:
			parts = append(parts, w.call(p, calls == 0))
			calls++
		case llm.ResultPart:
			result, images := w.result(p)
			parts, behind = append(parts, result), append(behind, images...)
		}
	}
	if e.Role == llm.RoleUser {
		parts = append(parts, w.imageParts(e.Parts[1:], "this message")...)
	}
	if behind != nil {
		heading := llm.ResultImagesHeading
		parts = append(append(parts, part{Text: &heading}), behind...)
	}
	var out []byte
	for i, p := range parts {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, tool.Marshal(p)...)
	}
	return out
}

// signature is what this model has kept with a part.
func (w writer) signature(p llm.Part) (s signatureData) {
	if p.ProviderData.IsFrom(providerName, w.model) && json.Unmarshal(p.ProviderData.Data, &s) != nil {
		return signatureData{}
	}
	return s
}

// text is a text or reasoning: with a signature it is two parts, if that came with the
// end of it only.
func (w writer) text(p llm.Part) (parts []part) {
	s, text := w.signature(p), p.Text
	thought := p.Type == llm.ReasoningPart
	if at := len(text) - s.Bytes; s.Signature != "" && at > 0 && at <= len(text) && (at == len(text) || utf8.RuneStart(text[at])) {
		before := text[:at]
		parts, text = append(parts, part{Text: &before, Thought: thought}), text[at:]
	}
	return append(parts, part{Text: &text, Thought: thought, ThoughtSignature: s.Signature})
}

// call is a call of the model. The first one of a step bears the signature of the step.
func (w writer) call(p llm.Part, first bool) part {
	c := functionCall{Name: wireName(p.Call.Function.Name), Args: wireArgs(p.Call.Function.Arguments)}
	s := w.signature(p).Signature
	if w.version3 {
		c.ID = p.Call.ID
		if first && s == "" {
			s = placeholderSignature
		}
	}
	return part{FunctionCall: &c, ThoughtSignature: s}
}

// result is the result of a call, and the images that have to stand behind it.
func (w writer) result(p llm.Part) (result part, behind []part) {
	r := functionResponse{Name: wireName(p.Result.Name)}
	if r.Response.Output = p.Text; !p.Result.Success {
		r.Response = response{Error: p.Text}
	}
	if w.version3 {
		r.ID = p.Result.CallID
	}
	shown := w.imageParts(p.Images, "the result of "+p.Result.CallID+", "+p.Result.Name)
	if !w.version3 {
		return part{FunctionResponse: &r}, shown
	}
	for _, s := range shown {
		if s.InlineData == nil {
			r.Response.Images = append(r.Response.Images, *s.Text)
		} else {
			r.Parts = append(r.Parts, mediaPart{*s.InlineData})
		}
	}
	return part{FunctionResponse: &r}, nil
}

// imageParts are images, each behind a line that says what it is of.
func (w writer) imageParts(images []llm.Part, of string) (parts []part) {
	for _, s := range w.images.Show(images, of) {
		p := part{Text: &s.Text}
		switch {
		case s.Image == nil:
		case slices.Contains(imageTypes, s.Image.Mime):
			p = part{InlineData: &blob{s.Image.Mime, s.Image.Data}}
		default:
			s.Text = "[it could not be sent: Google takes no " + s.Image.Mime + "]"
		}
		parts = append(parts, p)
	}
	return parts
}

// imageTypes are the types of images that models see, in messages and in results.
// https://ai.google.dev/gemini-api/docs/image-understanding
var imageTypes = []string{"image/png", "image/jpeg", "image/webp"}

// wireName is the name of a tool as the API has them: it begins with a letter or '_'.
func wireName(name string) string {
	if strings.Trim(name[:1], "0123456789-") == "" {
		return "_" + name
	}
	return name
}

// names are the names of tools by those that they have on the wire.
func names(tools []tool.Definition) map[string]string {
	out := make(map[string]string, len(tools))
	for _, t := range tools {
		out[wireName(t.Name)] = t.Name
	}
	return out
}

// wireArgs are arguments as the API can take them. It reads numbers as float64, no half of
// a surrogate pair, and no more than 100 objects and lists inside of each other; a
// conversation with others would be refused from then on.
func wireArgs(arguments string) json.RawMessage {
	var args map[string]any
	if json.Unmarshal([]byte(arguments), &args) != nil || !shallow(args, maxDepth) {
		args = map[string]any{"malformed_arguments": arguments}
	}
	return tool.Marshal(args)
}

const maxDepth = 50

// shallow reports whether a value has at most so many objects and lists inside of each other.
func shallow(v any, depth int) bool {
	if depth == 0 {
		return false
	}
	switch v := v.(type) {
	case map[string]any:
		for _, inner := range v {
			if !shallow(inner, depth-1) {
				return false
			}
		}
	case []any:
		return !slices.ContainsFunc(v, func(inner any) bool { return !shallow(inner, depth-1) })
	}
	return true
}
