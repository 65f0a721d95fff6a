package ollama

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/provider"
	"github.com/stockade-dev/stockade/host/tool"
)

// TestRequest compares a request byte by byte.
func TestRequest(t *testing.T) {
	call := func(id, arguments string, parts ...llm.Part) llm.Message {
		m := llm.CallMessage(llm.NewCall(id, "glob", arguments))
		m.Parts = parts
		return m
	}
	image := func(data string) llm.Part {
		return llm.Part{Type: llm.ImagePart, Mime: "image/png", Data: []byte(data)}
	}
	result := llm.ResultMessage("a", "glob", tool.Result{Output: tool.Text("x.c")})
	result.Parts = []llm.Part{image("IMAGE")}
	messages := []llm.Message{
		{Kind: llm.System, Content: "You work <here>."},
		{Kind: llm.User, Content: "Look.", Parts: []llm.Part{image("P")}},
		{Kind: llm.Assistant, Content: "I look.", Parts: []llm.Part{{Type: llm.ReasoningPart, Text: "Hm."}}},
		call("a", `{"z":1.50,"a":12345678901234567890,"z2":"<&>"}`, llm.Part{Type: llm.ReasoningPart, Text: "More."}),
		call("b", `{"pattern": "*.c`),
		result,
		{Kind: llm.User, Content: "Go on."},
	}
	m := New(provider.Options{})
	w := &contextWindow{numCtx: 8192, think: "true"}
	defs := []tool.Definition{{Name: "glob", Description: "Finds files.", Parameters: json.RawMessage(`{"type":"object","properties":{"z":{"type":"string"},"a":{}}}`)}}
	entries := m.transcript.Entries(messages)
	got := bytes.Join(w.body("qwen3", m.tools.Wire(defs, encodeTools), nil, provider.EncodeEntries(entries, m.images.Version(), m.wireEntry)), nil)
	want := `{"model":"qwen3","stream":true,"truncate":false,"shift":false,"options":{"num_ctx":8192},"think":true,` +
		`"tools":[{"type":"function","function":{"name":"glob","description":"Finds files.","parameters":{"type":"object","properties":{"z":{"type":"string"},"a":{}}}}}],` +
		`"messages":[{"role":"system","content":"You work <here>."},` +
		`{"role":"user","content":"Look.\n[image 1 of this message]","images":["UA=="]},` +
		`{"role":"assistant","content":"I look.","thinking":"Hm.\n\nMore.","tool_calls":[` +
		`{"id":"a","type":"function","function":{"index":0,"name":"glob","arguments":{"z":1.50,"a":12345678901234567890,"z2":"<&>"}}},` +
		`{"id":"b","type":"function","function":{"index":1,"name":"glob","arguments":{"malformed_arguments":"{\"pattern\": \"*.c"}}}]},` +
		`{"role":"tool","content":"` + strings.ReplaceAll(entries[3].Parts[0].Text, `"`, `\"`) + `","tool_name":"glob","tool_call_id":"a"},` +
		`{"role":"tool","content":"` + strings.ReplaceAll(entries[3].Parts[1].Text, `"`, `\"`) + `","tool_name":"glob","tool_call_id":"b"},` +
		`{"role":"user","content":"` + llm.ResultImagesHeading + `\n[image 1 of the result of a, glob]","images":["SU1BR0U="]},` +
		`{"role":"user","content":"Go on."}]}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	if complaint := complain(got); complaint != "" {
		t.Errorf("Ollama would refuse it: %s", complaint)
	}
}

func TestToolsAreMadeAnewWhenTheyChange(t *testing.T) {
	var w provider.LastTools
	def := tool.Definition{Name: "a", Parameters: json.RawMessage(`{"type":"object","properties":{}}`)}
	first := w.Wire([]tool.Definition{def}, encodeTools)
	def.Parameters[9] = 'O' // the caller's slice is its own
	changed := def
	changed.Description = "new"
	for _, c := range []struct {
		defs []tool.Definition
		want string
	}{{[]tool.Definition{def}, "Object"}, {[]tool.Definition{changed}, "new"}, {nil, ""}} {
		got := string(w.Wire(c.defs, encodeTools))
		if got == string(first) || !strings.Contains(got, c.want) || (got == "") != (c.defs == nil) {
			t.Errorf("%v: got %s", c.defs, got)
		}
	}
}

// TestParameters checks schemas. Ollama refuses a request for a single field of another type.
func TestParameters(t *testing.T) {
	for name, c := range map[string]struct{ schema, want string }{
		"a usual one is sent as it is": {`{"type":"object", "properties":{"b":{"type":["string","null"],"enum":["x",1]},"a":{"type":"array","items":{"type":"string"}}},"required":["b"],"additionalProperties":false}`, ``},
		"no properties":                {`{"type":"object"}`, `{"properties":{},"type":"object"}`},
		"true and false":               {`{"type":"object","properties":{"a":true,"b":{"type":"object","properties":{"c":false}}}}`, `{"properties":{"a":{},"b":{"properties":{"c":{}},"type":"object"}},"type":"object"}`},
		"a list of types at the top":   {`{"type":["object","null"],"properties":{}}`, `{"properties":{},"type":"object"}`},
		"one of several":               {`{"type":"object","properties":{"a":{"oneOf":[{"type":"string"},true]},"b":true}}`, `{"properties":{"a":{"anyOf":[{"type":"string"},{}]},"b":{}},"type":"object"}`},
		"fields of other types":        {`{"type":"object","properties":{"a":{"type":7,"description":["x"],"enum":"x","required":true,"minimum":3}},"required":"a"}`, `{"properties":{"a":{"minimum":3}},"type":"object"}`},
		"no schema":                    {`[`, `{"properties":{},"type":"object"}`},
		"true":                         {`true`, `{"properties":{},"type":"object"}`},
		"nothing":                      {`null`, `{"properties":{},"type":"object"}`},
	} {
		got := string(wireParameters(json.RawMessage(c.schema)))
		if c.want == "" {
			c.want = c.schema
		}
		if got != c.want || json.Unmarshal([]byte(got), new(parameters)) != nil {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}
