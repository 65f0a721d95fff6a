package google

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/provider"
	"github.com/stockade-dev/stockade/host/tool"
)

// body returns the body of a request. Parts that stay the same come first, and are not encoded
// again.
func (m *Model) body(model string, entries []*llm.Entry, tools []byte, schema json.RawMessage) provider.Pieces {
	w := writer{model, isVersion3(model), &m.images}
	version := model + " " + m.images.Version()
	var system provider.Pieces
	contents := make(provider.Pieces, 0, 3*len(entries)+8)
	role := llm.Role("") // role of the last content
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
	if role == "" || role == llm.RoleAssistant { // the API answers only to the user
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
	config := map[string]any{}
	if t := thinkingOf(model, m.ReasoningEffort); t != nil {
		config["thinkingConfig"] = t
	}
	if schema != nil {
		config["responseMimeType"], config["responseJsonSchema"] = "application/json", schema
	}
	if len(config) > 0 {
		out = append(out, []byte(`"generationConfig":`), tool.Marshal(config), comma)
	}
	return append(append(append(out, []byte(`"contents":[`)), contents...), []byte(`]}]}`))
}

// join adds parts to contents, whose last content is still open. last is the role of this content;
// empty: there is none. role is the role of the parts. The API requires that roles alternate and
// that the user comes first.
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

// Pieces of a request. omittedStart and goOn stand in for messages of the user.
var (
	comma        = []byte(`,`)
	openUser     = []byte(`{"role":"user","parts":[`)
	openModel    = []byte(`{"role":"model","parts":[`)
	closeContent = []byte(`]},`)
	omittedStart = []byte(`{"text":"(what came before was left out)"}`)
	goOn         = []byte(`{"text":"(go on)"}`)
)

// declare returns the field of a request with the tools.
func declare(tools []tool.Definition) []byte {
	type declaration struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parametersJsonSchema"` // the API's parameters field takes only its own dialect
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

// part is a part of a content on the wire. Exactly one of Text, InlineData, FunctionCall and
// FunctionResponse is set.
type part struct {
	Text             *string           `json:"text,omitempty"` // may be empty if there is a signature
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

// response is the result of a call. It has either Output or Error, as in the API's reference.
type response struct {
	Output string   `json:"output,omitempty"`
	Error  string   `json:"error,omitempty"`
	Images []string `json:"images,omitempty"` // lines about the images that are not among the parts
}

type mediaPart struct {
	InlineData blob `json:"inlineData"`
}

// placeholderSignature replaces the signature of a call that another model or a person has made.
// Google's documentation of thought signatures names it, and Google's own command line tool sends
// it. Models of version 3 and later refuse a conversation with an unsigned call.
// https://ai.google.dev/gemini-api/docs/thought-signatures#faqs
const placeholderSignature = "skip_thought_signature_validator"

// signatureData is the provider data of a part: a signature, and the number of bytes at the end
// of the part's text that came in the same piece. The signature goes back with just these bytes.
type signatureData struct {
	Signature string `json:"signature"`
	Bytes     int    `json:"bytes,omitempty"` // 0 for the signature of a call
}

// writer encodes entries for one model.
type writer struct {
	model    string
	version3 bool // the model is of version 3 or later, see [isVersion3]
	images   *provider.RefusedImages
}

// entry returns the parts of an entry, separated by commas.
func (w writer) entry(e *llm.Entry) []byte {
	var parts, behind []part
	calls := 0
	for _, p := range e.Parts {
		switch p.Type {
		case llm.TextPart:
			parts = append(parts, w.text(p)...)
		case llm.ReasoningPart:
			// A summary without a signature is useless to the model, and a summary of
			// another model is not its own thought.
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

// signature returns the signature that w.model has sent with a part; empty: there is none.
func (w writer) signature(p llm.Part) (s signatureData) {
	if p.ProviderData.IsFrom(providerName, w.model) && json.Unmarshal(p.ProviderData.Data, &s) != nil {
		return signatureData{}
	}
	return s
}

// text returns the parts for a text or reasoning: two if a signature came with only its end.
func (w writer) text(p llm.Part) (parts []part) {
	s, text := w.signature(p), p.Text
	thought := p.Type == llm.ReasoningPart
	if at := len(text) - s.Bytes; s.Signature != "" && at > 0 && at <= len(text) && (at == len(text) || utf8.RuneStart(text[at])) {
		before := text[:at]
		parts, text = append(parts, part{Text: &before, Thought: thought}), text[at:]
	}
	return append(parts, part{Text: &text, Thought: thought, ThoughtSignature: s.Signature})
}

// call returns the part for a call. The first call of a step has the step's signature, or a
// placeholder.
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

// result returns the part for the result of a call, and the images that must follow all results.
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

// imageParts returns parts for images. A line before each image names its source, of.
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

// imageTypes holds the media types of images that models can see, in messages and in results.
// https://ai.google.dev/gemini-api/docs/image-understanding
var imageTypes = []string{"image/png", "image/jpeg", "image/webp"}

// wireName returns the name of a tool in the API's form: it begins with a letter or '_'.
func wireName(name string) string {
	if strings.Trim(name[:1], "0123456789-") == "" {
		return "_" + name
	}
	return name
}

// names returns the names of tools, by their names on the wire.
func names(tools []tool.Definition) map[string]string {
	out := make(map[string]string, len(tools))
	for _, t := range tools {
		out[wireName(t.Name)] = t.Name
	}
	return out
}

// wireArgs returns arguments in a form that the API takes: if they are no JSON object or nest
// too deeply, as a text in an object. The API reads numbers as float64, refuses half a surrogate
// pair, and refuses more than 100 nested objects and lists. A conversation with such arguments
// would be refused from then on.
func wireArgs(arguments string) json.RawMessage {
	var args map[string]any
	if json.Unmarshal([]byte(arguments), &args) != nil || !shallow(args, maxDepth) {
		args = map[string]any{"malformed_arguments": arguments}
	}
	return tool.Marshal(args)
}

const maxDepth = 50 // nested objects and lists of arguments; deeper arguments are sent as a text

// shallow reports whether a value has fewer than depth nested objects and lists.
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
