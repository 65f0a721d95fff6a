package google

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/llmtest"
	"github.com/stockade-dev/stockade/host/tool"
)

func say(kind llm.Kind, text string, parts ...llm.Part) llm.Message {
	return llm.Message{Kind: kind, Content: text, Parts: parts}
}

func callMsg(id, name, args string, parts ...llm.Part) llm.Message {
	m := llm.CallMessage(llm.NewCall(id, name, args))
	m.Parts = parts
	return m
}

func resultMsg(id, name, text string, images ...llm.Part) llm.Message {
	m := llm.ResultMessage(id, name, tool.Result{})
	m.Data = tool.Marshal(llm.ResultData{CallID: id, Name: name, Output: text, Success: !strings.Contains(text, "failed")})
	m.Parts = images
	return m
}

func picture(mime, data string) llm.Part {
	return llm.Part{Type: llm.ImagePart, Mime: mime, Data: []byte(data)}
}

// kept is a part of the type that has nothing but a signature of the model.
func kept(typ llm.PartType, model, text, signature string, n int) llm.Part {
	return llm.Part{Type: typ, Text: text, ProviderData: &llm.ProviderData{Provider: "google", Model: model, Data: tool.Marshal(signatureData{signature, n})}}
}

// conversations are each sent by us, and by the client of Google's library.
func conversation(model string) []llm.Message {
	return []llm.Message{
		say(llm.System, "You work in a sandbox."),
		say(llm.System, "Be brief."),
		say(llm.User, "What <is> this?", picture("image/png", "of the prompt")),
		say(llm.User, "The date is today."),
		say(llm.Assistant, "I look twice.", kept(llm.ReasoningPart, model, "Hmm.", "dGhvdWdodA==", 4), kept(llm.ReasoningPart, "another", "Ah.", "AAAA", 0), kept(llm.TextPart, model, "", "dGV4dA==", 6)),
		callMsg("a", "file_read", `{"path":"x","limit":3,"size":1e3}`, kept(llm.CallPart, model, "", "Y2FsbA==", 0)),
		callMsg("b", "7zip-list", ``),
		resultMsg("b", "7zip-list", "it failed"),
		resultMsg("a", "file_read", `{"tool_success":true,"result":{"text":"<x>"}}`, picture("image/png", "of a call"), picture("image/gif", "moving")),
		say(llm.Assistant, "An x.", kept(llm.TextPart, model, "", "ZW5k", 0)),
		say(llm.User, "And now?"),
		callMsg("c", "file_read", `{"malformed`, kept(llm.CallPart, "another", "", "Zm9yZWlnbg==", 0)),
		resultMsg("c", "file_read", "it failed, too"),
	}
}

var definitions = []tool.Definition{
	{Name: "file_read", Description: "Reads <a> file.", Parameters: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string","pattern":"^x"},"limit":{"type":["integer","null"]}},"additionalProperties":false}`)},
	{Name: "7zip-list", Parameters: json.RawMessage(`{"type":"object"}`)},
}

// inTheirs is the conversation in the words of the library.
func inTheirs(model string) ([]*genai.Content, *genai.GenerateContentConfig) {
	id := func(id string) string {
		if isModern(model) {
			return id
		}
		return ""
	}
	text := func(t string) *genai.Part { return &genai.Part{Text: t} }
	image := func(data string) *genai.Part {
		return &genai.Part{InlineData: &genai.Blob{MIMEType: "image/png", Data: []byte(data)}}
	}
	result := func(call, name string, response map[string]any) *genai.Part {
		return &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: id(call), Name: name, Response: response}}
	}
	foreign := &genai.Part{FunctionCall: &genai.FunctionCall{ID: id("c"), Name: "file_read", Args: map[string]any{"malformed_arguments": `{"malformed`}}}
	read := map[string]any{"output": `{"tool_success":true,"result":{"text":"<x>"}}`}
	results := []*genai.Part{result("a", "file_read", read), result("b", "_7zip-list", map[string]any{"error": "it failed"})}
	const label, gif = "[image 1 of the result of a, file_read]", "[image 2 of the result of a, file_read]"
	const refused = "[it could not be sent: Google takes no image/gif]"
	if isModern(model) {
		// The library reads the documented text as the base64 that it is for the API, too.
		foreign.ThoughtSignature = decoded(placeholderSignature)
		read["images"] = []any{label, gif, refused}
		results[0].FunctionResponse.Parts = []*genai.FunctionResponsePart{{InlineData: &genai.FunctionResponseBlob{MIMEType: "image/png", Data: []byte("of a call")}}}
	} else {
		results = append(results, text(llm.ResultImagesHeading), text(label), image("of a call"), text(gif), text(refused))
	}
	contents := []*genai.Content{
		{Role: genai.RoleUser, Parts: []*genai.Part{text("What <is> this?"), text("[image 1 of this message]"), image("of the prompt"), text("The date is today.")}},
		{Role: genai.RoleModel, Parts: []*genai.Part{
			{Text: "Hmm.", Thought: true, ThoughtSignature: []byte("thought")},
			text("I look "), {Text: "twice.", ThoughtSignature: []byte("text")},
			{FunctionCall: &genai.FunctionCall{ID: id("a"), Name: "file_read", Args: map[string]any{"path": "x", "limit": 3, "size": 1000}}, ThoughtSignature: []byte("call")},
			{FunctionCall: &genai.FunctionCall{ID: id("b"), Name: "_7zip-list", Args: map[string]any{}}},
		}},
		{Role: genai.RoleUser, Parts: results},
		{Role: genai.RoleModel, Parts: []*genai.Part{text("An x."), {ThoughtSignature: []byte("end")}}},
		{Role: genai.RoleUser, Parts: []*genai.Part{text("And now?")}},
		{Role: genai.RoleModel, Parts: []*genai.Part{foreign}},
		{Role: genai.RoleUser, Parts: []*genai.Part{result("c", "file_read", map[string]any{"error": "it failed, too"})}},
	}
	config := &genai.GenerateContentConfig{
		SystemInstruction: &genai.Content{Parts: []*genai.Part{text("You work in a sandbox."), text("Be brief.")}},
		ThinkingConfig:    &genai.ThinkingConfig{IncludeThoughts: true},
		Tools: []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{
			{Name: "file_read", Description: "Reads <a> file.", ParametersJsonSchema: definitions[0].Parameters},
			{Name: "_7zip-list", ParametersJsonSchema: definitions[1].Parameters},
		}}},
	}
	if isModern(model) {
		config.ThinkingConfig.ThinkingLevel = genai.ThinkingLevelLow
	} else {
		budget := int32(1024)
		config.ThinkingConfig.ThinkingBudget = &budget
	}
	return contents, config
}

// TestGooglesLibrarySendsTheSame: what we send of a conversation is what its client sends.
func TestGooglesLibrarySendsTheSame(t *testing.T) {
	for _, model := range []string{"gemini-2.5-flash", "gemini-3.8-flash"} {
		s := newServer(t, `{"text":"ours"}`, `{"text":"theirs"}`)
		for _, signature := range []string{"dGhvdWdodA==", "dGV4dA==", "Y2FsbA==", "ZW5k"} {
			s.sign(signature)
		}
		opts := options(t, s)
		opts.ReasoningEffort = "low"
		reply, err := llmtest.Collect(t.Context(), t, New(opts), llm.Request{Model: model, Messages: conversation(model), Tools: definitions})
		if err != nil || reply.Text != "ours" {
			t.Fatalf("%s: got %+v, %v", model, reply, err)
		}
		client, err := genai.NewClient(t.Context(), &genai.ClientConfig{
			APIKey: llmtest.APIKey, Backend: genai.BackendGeminiAPI, HTTPClient: opts.HTTPClient, HTTPOptions: genai.HTTPOptions{BaseURL: opts.BaseURL},
		})
		if err != nil {
			t.Fatal(err)
		}
		contents, config := inTheirs(model)
		text := ""
		for answer, err := range client.Models.GenerateContentStream(t.Context(), model, contents, config) {
			if err != nil {
				t.Fatalf("%s: %v", model, err)
			}
			text += answer.Text()
		}
		if text != "theirs" {
			t.Errorf("%s: got %q", model, text)
		}
		if diff := cmp.Diff(canonical(t, s.bodies[1]), canonical(t, s.bodies[0])); diff != "" {
			t.Errorf("%s: the body (-theirs +ours):\n%s", model, diff)
		}
	}
}

// canonical is a body without what makes no difference to the API: whether what is empty is
// there, and which alphabet of base64 it has.
func canonical(t *testing.T, body []byte) (v any) {
	t.Helper()
	body = bytes.ReplaceAll(body, []byte(placeholderSignature), []byte(strings.ReplaceAll(placeholderSignature, "_", "/")))
	for _, empty := range []string{`"text":"",`, `,"args":{}`} {
		body = bytes.ReplaceAll(body, []byte(empty), nil)
	}
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestConversationsThatTheAPITakes uses a server that refuses the same requests as Google's.
func TestConversationsThatTheAPITakes(t *testing.T) {
	user, answer := say(llm.User, "hello"), say(llm.Assistant, "hi")
	call, result := callMsg("a", "glob", "{}"), resultMsg("a", "glob", "x")
	own := callMsg("b", "glob", "{}", kept(llm.CallPart, "gemini-3.8-flash", "", "b3du", 0))
	for name, messages := range map[string][]llm.Message{
		"nothing":                            nil,
		"the system alone":                   {say(llm.System, "be brief")},
		"one that begins with an answer":     {answer, user},
		"one that begins with a call":        {call, result},
		"one that ends with an answer":       {user, answer},
		"two of the user":                    {user, user},
		"two answers":                        {user, answer, answer, user},
		"a user behind results":              {user, call, result, user},
		"a call without a result":            {user, call, user, result, answer, user},
		"a result without a call":            {user, result, answer, user},
		"a call of another model, then ours": {user, call, result, own, resultMsg("b", "glob", "y")},
		"ours, then that of another model":   {user, own, resultMsg("b", "glob", "y"), answer, call, result},
		"thoughts of another model alone":    {user, say(llm.Assistant, "", kept(llm.ReasoningPart, "another", "Hmm.", "AAAA", 4)), user},
		"a signature that is broken":         {user, callMsg("a", "glob", "{}", llm.Part{Type: llm.CallPart, ProviderData: &llm.ProviderData{Provider: "google", Model: "gemini-3.8-flash", Data: json.RawMessage(`"x"`)}}), result},
		"a tool with a strange name":         {user, callMsg("a", "what is this?", "{}"), resultMsg("a", "what is this?", "x")},
		"arguments of half a character":      {user, callMsg("a", "glob", `{"a":"\ud800"}`), result},
	} {
		for _, model := range []string{"gemini-2.5-flash", "gemini-3.8-flash", "gemma-4-31b-it"} {
			s := newServer(t, `{"text":"yes"}`)
			s.sign("b3du")
			if _, err := llmtest.Collect(t.Context(), t, New(options(t, s)), llm.Request{Model: model, Messages: messages}); err != nil {
				t.Errorf("%s, %s: %v", name, model, err)
			}
		}
	}
}

// TestSignedTexts checks that a signature goes back with its piece, or with the whole text
// if there is no such piece any more.
func TestSignedTexts(t *testing.T) {
	w := writer{model: "m"}
	for n, want := range map[int]string{
		0:  `[{"text":"née"},{"text":"","thoughtSignature":"c2ln"}]`,
		1:  `[{"text":"né"},{"text":"e","thoughtSignature":"c2ln"}]`,
		2:  `[{"text":"née","thoughtSignature":"c2ln"}]`, // within a character
		4:  `[{"text":"née","thoughtSignature":"c2ln"}]`,
		99: `[{"text":"née","thoughtSignature":"c2ln"}]`,
		-1: `[{"text":"née","thoughtSignature":"c2ln"}]`,
	} {
		if got := string(tool.Marshal(w.text(kept(llm.TextPart, "m", "née", "c2ln", n)))); got != want {
			t.Errorf("%d: got %s", n, got)
		}
	}
}

func TestArguments(t *testing.T) {
	deep := strings.Repeat(`[`, 60) + strings.Repeat(`]`, 60)
	for args, want := range map[string]string{
		`{"b":1.50,"a":[null,"<x>"]}`: `{"a":[null,"<x>"],"b":1.5}`,
		`{"a":9007199254740993}`:      `{"a":9007199254740992}`, // as the API reads it
		`{"a":"\ud800"}`:              "{\"a\":\"\uFFFD\"}",
		`{"a":1e999}`:                 `{"malformed_arguments":"{\"a\":1e999}"}`,
		`{"a":` + deep + `}`:          `{"malformed_arguments":"{\"a\":` + deep + `}"}`,
	} {
		if got := string(wireArgs(args)); got != want {
			t.Errorf("%s: got %s", args, got)
		}
	}
}

func TestThinking(t *testing.T) {
	for _, c := range []struct{ model, reasoning, want string }{
		{"gemini-3.8-flash", "", `{"includeThoughts":true}`},
		{"gemini-3-pro-preview", "high", `{"includeThoughts":true,"thinkingLevel":"HIGH"}`},
		{"gemini-flash-latest", "low", `{"includeThoughts":true,"thinkingLevel":"LOW"}`},
		{"gemini-2.5-pro", "", `{"includeThoughts":true}`},
		{"gemini-2.5-pro", "medium", `{"includeThoughts":true,"thinkingBudget":8192}`},
		{"gemini-2.0-flash", "", "null"},
		{"gemma-4-31b-it", "", "null"},
		{"gemma-4-31b-it", "high", `{"includeThoughts":true,"thinkingLevel":"HIGH"}`},
	} {
		if got := string(tool.Marshal(thinkingOf(c.model, c.reasoning))); got != c.want {
			t.Errorf("%s, %q: got %s", c.model, c.reasoning, got)
		}
	}
}
