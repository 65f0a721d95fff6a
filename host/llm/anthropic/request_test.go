package anthropic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/llmtest"
	"github.com/stockade-dev/stockade/host/tool"
)

func user(text string, parts ...llm.Part) llm.Message {
	return llm.Message{Kind: llm.User, Content: text, Parts: parts}
}

func said(text string, parts ...llm.Part) llm.Message {
	return llm.Message{Kind: llm.Assistant, Content: text, Parts: parts}
}

func called(id string, parts ...llm.Part) llm.Message {
	m := llm.CallMessage(llm.NewCall(id, "glob", `{"pattern":"`+id+`"}`))
	m.Parts = parts
	return m
}

func returned(id, text string, parts ...llm.Part) llm.Message {
	m := llm.ResultMessage(id, "glob", tool.Result{Output: tool.Text(text)})
	m.Parts = parts
	return m
}

// ask sends a request and returns the request that the server has received.
func ask(t testing.TB, model *Model, s *server, messages ...llm.Message) (*request, llm.Reply, error) {
	t.Helper()
	req := llmtest.Request()
	req.Messages = messages
	reply, err := llmtest.Collect(t.Context(), t, model, req)
	if err != nil {
		return nil, reply, err
	}
	return s.requests[len(s.requests)-1], reply, nil
}

const yes = `{"text":"yes"}`

// brief writes each message of a request on one line.
func brief(r *request) (lines []string) {
	for _, m := range r.Messages {
		line := m.Role
		for _, b := range m.Content {
			line += " " + b.Type
			switch b.Type {
			case "text":
				line += fmt.Sprintf("(%s)", b.Text)
			case "tool_use":
				line += fmt.Sprintf("(%s %s)", b.ID, b.Input)
			case "tool_result":
				line += "(" + b.ToolUseID
				for _, c := range b.Content {
					line += " " + c.Type
					if c.Text != "" {
						line += " " + llm.Truncate(c.Text, 20)
					}
				}
				if b.IsError {
					line += " failed"
				}
				line += ")"
			case "thinking":
				line += fmt.Sprintf("(%s)", *b.Thinking)
			}
			if b.CacheControl != nil {
				line += "*"
			}
		}
		lines = append(lines, line)
	}
	return lines
}

func TestAConversationOnTheWire(t *testing.T) {
	image := llm.Part{Type: llm.ImagePart, Mime: "image/png", Data: []byte("x")}
	left := llm.Part{Type: llm.ImagePart, Mime: "image/png"}
	failed := returned("b", "no")
	failed.Data = tool.Marshal(llm.ResultData{CallID: "b", Name: "glob", Output: `{"tool_success":false,"error":"no"}`})
	failedWithImage := failed
	failedWithImage.Parts = []llm.Part{image}
	tests := []struct {
		name     string
		messages []llm.Message
		want     []string
	}{{
		"a first request",
		[]llm.Message{{Kind: llm.System, Content: "s"}, user("u")},
		[]string{"user text(u)*"},
	}, {
		"results come first in the message behind the calls, and what the user says after them",
		[]llm.Message{user("u"), said("a"), called("a"), called("b"), failed, returned("a", "found"), user("v", image, left)},
		[]string{"user text(u)*", `assistant text(a) tool_use(a {"pattern":"a"}) tool_use(b {"pattern":"b"})`,
			`user tool_result(a text {"tool_success":tru…) tool_result(b text {"tool_success":fal… failed) text(v) text([image 1 of this message]) image ` +
				`text([image 2 of this message was left out to save room; read it again if you need it])*`},
	}, {
		"an error with an image is not called one, which the API refuses",
		[]llm.Message{user("u"), called("b"), failedWithImage},
		[]string{"user text(u)*", `assistant tool_use(b {"pattern":"b"})`, `user tool_result(b text {"tool_success":fal… text [image 1 of this re… image)*`},
	}, {
		"a conversation that begins with the model, and ends with it",
		[]llm.Message{said("a")},
		[]string{"user text((what came before was left out))*", "assistant text(a)", "user text((go on))*"},
	}, {
		"texts of white space are left out, or something is put in their place",
		[]llm.Message{user(" \n"), said("\n\n"), called("a"), returned("a", " ")},
		[]string{"user text((empty message))*", `assistant tool_use(a {"pattern":"a"})`, `user tool_result(a text {"tool_success":tru…)*`},
	}, {
		"reasoning of which nothing is sent leaves no message",
		[]llm.Message{user("u"), said("", llm.Part{Type: llm.ReasoningPart, Text: "hm"}), user("v")},
		[]string{"user text(u) text(v)*"},
	}, {
		"the ends of the last two requests are cached",
		[]llm.Message{user("u"), said("a"), user("v"), said("b"), user("w"), said("c"), user("x")},
		[]string{"user text(u)", "assistant text(a)", "user text(v)", "assistant text(b)", "user text(w)*", "assistant text(c)", "user text(x)*"},
	}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := &server{}
			got, _, err := ask(t, New(scripted(t, s, yes)), s, tt.messages...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, brief(got)); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTheLibraryReadsTheRequest decodes our requests with the library, which must know each
// field.
func TestTheLibraryReadsTheRequest(t *testing.T) {
	s := &server{thinks: true}
	opts := scripted(t, s, yes, yes)
	opts.ReasoningEffort = "high"
	model := New(opts)
	messages := []llm.Message{{Kind: llm.System, Content: "<s> & \u2028"}, user("u", llm.Part{Type: llm.ImagePart, Mime: "image/gif", Data: []byte("x")})}
	_, reply, err := ask(t, model, s, messages...)
	if err != nil {
		t.Fatal(err)
	}
	messages = append(append(messages, reply.Messages()...), called("a"), returned("a", "found"))
	got, _, err := ask(t, model, s, messages...)
	if err != nil {
		t.Fatal(err)
	}
	var params sdk.MessageNewParams
	if err := json.Unmarshal(got.body, &params); err != nil {
		t.Fatal(err)
	}
	params.SetExtraFields(map[string]any{"stream": true})
	again, err := json.Marshal(params)
	if err != nil {
		t.Fatal(err)
	}
	var ours, theirs any
	if json.Unmarshal(got.body, &ours) != nil || json.Unmarshal(again, &theirs) != nil {
		t.Fatal("not JSON")
	}
	if diff := cmp.Diff(ours, theirs); diff != "" {
		t.Errorf("the request (-ours +what the library has read):\n%s", diff)
	}
}

// TestTheAPITakesEveryConversation makes random conversations. A server that refuses the
// same requests as the API accepts them.
func TestTheAPITakesEveryConversation(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	texts := []string{"", " ", "words", "\n", "<&>\u2028"}
	parts := func() []llm.Part {
		all := []llm.Part{
			{Type: llm.ReasoningPart, Text: "r"},
			{Type: llm.ReasoningPart, ProviderData: &llm.ProviderData{Provider: "anthropic", Model: "test-model", Data: json.RawMessage(`{"redacted":"secret"}`)}},
			{Type: llm.ReasoningPart, ProviderData: &llm.ProviderData{Provider: "anthropic", Model: "another", Data: json.RawMessage(`{"signature":"s"}`)}},
			{Type: llm.ReasoningPart, ProviderData: &llm.ProviderData{Provider: "anthropic", Model: "test-model", Data: json.RawMessage(`{}`)}},
			{Type: llm.ReasoningPart, ProviderData: &llm.ProviderData{Provider: "anthropic", Model: "test-model", Data: json.RawMessage(`[`)}},
			{Type: llm.ReasoningPart, ProviderData: &llm.ProviderData{Provider: "google", Model: "test-model", Data: json.RawMessage(`{"signature":"s"}`)}},
			{Type: llm.ImagePart, Mime: "image/png", Data: []byte("x")},
			{Type: llm.ImagePart},
		}
		return all[rnd.IntN(len(all)):][:1]
	}
	n := 0
	s := &server{}
	var script []string
	for range 300 {
		script = append(script, yes)
	}
	model := New(scripted(t, s, script...))
	var messages []llm.Message
	for range 300 {
		if rnd.IntN(20) == 0 {
			messages = messages[rnd.IntN(len(messages)+1):]
		}
		for range 1 + rnd.IntN(4) {
			id := fmt.Sprint("call_", n-rnd.IntN(3))
			switch rnd.IntN(7) {
			case 0:
				messages = append(messages, llm.Message{Kind: llm.System, Content: texts[rnd.IntN(len(texts))]})
			case 1:
				messages = append(messages, user(texts[rnd.IntN(len(texts))], parts()...))
			case 2:
				messages = append(messages, said(texts[rnd.IntN(len(texts))], parts()...))
			case 3, 4:
				n++ // an agent makes ids unique over the session
				messages = append(messages, called(fmt.Sprint("call_", n), parts()...))
			default:
				messages = append(messages, returned(id, texts[rnd.IntN(len(texts))], parts()...))
			}
		}
		req := llmtest.Request()
		req.Messages = messages
		if rnd.IntN(3) == 0 {
			req.Tools = nil
		}
		if _, err := llmtest.Collect(t.Context(), t, model, req); err != nil {
			t.Fatalf("%v:\n%+v", err, messages)
		}
	}
	if s.refused != nil {
		t.Errorf("%d requests were refused, such as %s", len(s.refused), s.refused[0])
	}
}

func TestThinkingGoesBackUnchanged(t *testing.T) {
	s := &server{thinks: true}
	call := `{"text":"I look.","tool_calls":[{"id":"toolu_%d","name":"glob","arguments":{"pattern":"*"}}]}`
	opts := scripted(t, s, fmt.Sprintf(call, 1), fmt.Sprintf(call, 2), yes, yes, yes, yes, yes)
	opts.ReasoningEffort = "medium"
	model := New(opts)
	messages := []llm.Message{{Kind: llm.System, Content: "s"}, user("u")}
	for i := 1; i <= 3; i++ {
		_, reply, err := ask(t, model, s, messages...)
		if err != nil {
			t.Fatal(err)
		}
		messages = append(messages, reply.Messages()...)
		if i < 3 {
			messages = append(messages, returned(fmt.Sprint("toolu_", i), "found"))
		}
	}
	step := func(n int) string {
		return fmt.Sprintf(`assistant thinking(thought %d) redacted_thinking text(I look.) tool_use(toolu_%[1]d {"pattern":"*"})`, n)
	}
	messages = append(messages, user("v"))
	got, reply, err := ask(t, model, s, messages...)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"user text(u)", step(1), `user tool_result(toolu_1 text {"tool_success":tru…)`, step(2), `user tool_result(toolu_2 text {"tool_success":tru…)*`,
		"assistant thinking(thought 3) redacted_thinking text(yes)", "user text(v)*"}
	if diff := cmp.Diff(want, brief(got)); diff != "" || s.refused != nil {
		t.Errorf("refused %q; messages (-want +got):\n%s", s.refused, diff)
	}

	// The conversation is cut. Its thinking does not fit any more: it is refused once, and
	// not sent again. New thinking is sent.
	messages = append(append(messages[:1:1], user("w")), append(messages[5:], reply.Messages()...)...)
	messages = append(messages, user("x"))
	got, reply, err = ask(t, model, s, messages...)
	if err != nil || len(s.refused) != 1 || bytes.Contains(got.body, []byte("thinking\"}")) || slices.ContainsFunc(brief(got), func(l string) bool { return strings.Contains(l, "thinking") }) {
		t.Fatalf("%v, refused %q, sent %q", err, s.refused, brief(got))
	}
	messages = append(append(messages, reply.Messages()...), user("y"))
	got, _, err = ask(t, model, s, messages...)
	lines := brief(got)
	if err != nil || len(s.refused) != 1 || !strings.Contains(lines[len(lines)-2], "thinking(thought 5)") || strings.Contains(lines[1], "thinking") {
		t.Errorf("%v, refused %q, sent %q", err, s.refused, lines)
	}

	// Another model gets no thinking.
	req := llmtest.Request()
	req.Model, req.Messages = "another", messages
	if _, err := llmtest.Collect(t.Context(), t, model, req); err != nil || len(s.refused) != 1 || strings.Contains(strings.Join(brief(s.requests[len(s.requests)-1]), ""), "thinking") {
		t.Errorf("%v, refused %q", err, s.refused)
	}
}

// TestStepsHitTheCache uses a server that searches its cache only at breakpoints, and among
// the 20 blocks before each of them.
func TestStepsHitTheCache(t *testing.T) {
	s := &server{}
	calls := func(step, n int) (messages []llm.Message) {
		for i := range n {
			messages = append(messages, called(fmt.Sprintf("c%d_%d", step, i)))
		}
		for i := range n {
			messages = append(messages, returned(fmt.Sprintf("c%d_%d", step, i), "found"))
		}
		return messages
	}
	parallel := []int{1, 2, 30, 1, 12, 0, 3}
	var script []string
	for range parallel {
		script = append(script, yes)
	}
	model := New(scripted(t, s, script...))
	messages := []llm.Message{{Kind: llm.System, Content: "s"}, user("u")}
	cached := map[string]bool{}
	for step, n := range parallel {
		got, _, err := ask(t, model, s, messages...)
		if err != nil {
			t.Fatal(err)
		}
		// All blocks in the model's order, with the breakpoints.
		prefix, blocks, last := fmt.Sprintf("%+v", got.Tools), []string(nil), []int(nil)
		add := func(role string, list []contentBlock) {
			for _, b := range list {
				text, _ := json.Marshal(uncached([]contentBlock{b}))
				prefix += role + string(text)
				blocks = append(blocks, prefix)
				if b.CacheControl != nil {
					last = append(last, len(blocks)-1)
				}
			}
		}
		add("system", got.System)
		for _, m := range got.Messages {
			add(m.Role, m.Content)
		}
		hit := -1
		for _, at := range last {
			for i := at; i >= max(at-20, 0); i-- {
				if cached[blocks[i]] {
					hit = max(hit, i)
				}
			}
		}
		// The end of the preceding request is read from the cache.
		if step > 0 && hit < len(blocks)-1-2*parallel[step-1]-2 {
			t.Errorf("step %d: of %d blocks %d are from the cache", step, len(blocks), hit+1)
		}
		for _, at := range last {
			cached[blocks[at]] = true
		}
		if len(last) < 2 || len(last) > 4 || last[len(last)-1] != len(blocks)-1 {
			t.Errorf("step %d: breakpoints at %v of %d", step, last, len(blocks))
		}
		messages = append(messages, said("next"))
		if n == 0 {
			messages = append(messages, user("and now?"))
		}
		messages = append(messages, calls(step, n)...)
	}
}

func TestWhatIsAskedBesideTheConversation(t *testing.T) {
	s := &server{}
	opts := scripted(t, s, yes, yes, yes, yes, yes)
	opts.ReasoningEffort = "low"
	model := New(opts)
	conversation := []llm.Message{user("u"), called("a"), returned("a", "found")}
	got, _, err := ask(t, model, s, append([]llm.Message{{Kind: llm.System, Content: "one"}, {Kind: llm.System, Content: "two"}}, conversation...)...)
	if err != nil {
		t.Fatal(err)
	}
	if want := []contentBlock{{Type: "text", Text: "one"}, {Type: "text", Text: "two", CacheControl: &cacheControl{"ephemeral"}}}; !cmp.Equal(want, got.System) {
		t.Errorf("system: %+v", got.System)
	}
	if got.MaxTokens != 64_000 || *got.Thinking != (thinkingConfig{Type: "adaptive", Display: "summarized"}) || got.OutputConfig.Effort != "low" || got.ToolChoice != nil {
		t.Errorf("asked %+v, %+v, %+v", got, got.Thinking, got.OutputConfig)
	}
	if len(got.Tools) != 1 || got.Tools[0].Name != "glob" || got.Tools[0].CacheControl != nil {
		t.Errorf("tools: %+v", got.Tools)
	}
	// Without a system message, the tools can be cached.
	if got, _, err = ask(t, model, s, conversation...); err != nil || got.System != nil || got.Tools[0].CacheControl == nil {
		t.Errorf("%v: %+v", err, got)
	}
	// An older model thinks within a budget.
	req := llmtest.Request()
	req.Model = "claude-haiku-4-5-20251001"
	if _, err := llmtest.Collect(t.Context(), t, model, req); err != nil {
		t.Fatal(err)
	}
	if got = s.requests[len(s.requests)-1]; *got.Thinking != (thinkingConfig{Type: "enabled", BudgetTokens: 4096}) || got.OutputConfig.Effort != "" {
		t.Errorf("asked %+v, %+v", got.Thinking, got.OutputConfig)
	}
	// A request without tools still has the tools of the conversation, unchanged, and
	// forbids calls.
	for _, model := range []*Model{model, New(opts)} {
		req := llmtest.Request()
		req.Messages, req.Tools = conversation, nil
		if _, err := llmtest.Collect(t.Context(), t, model, req); err != nil {
			t.Fatal(err)
		}
		if got = s.requests[len(s.requests)-1]; len(got.Tools) != 1 || got.ToolChoice == nil || got.ToolChoice.Type != "none" {
			t.Errorf("tools: %+v, choice %+v", got.Tools, got.ToolChoice)
		}
	}
	if got := s.requests[3].Tools[0]; got.Description == "" || got.InputSchema["properties"] == nil {
		t.Errorf("the tool was not kept: %+v", got)
	}
}

func TestASchemaIsOneThatTheAPITakes(t *testing.T) {
	for in, want := range map[string]string{
		`{"type":"object","properties":{"b":{"anyOf":[{}]},"a":{}}}`:     `{"type":"object","properties":{"b":{"anyOf":[{}]},"a":{}}}`,
		`{"properties":{"a":{}}}`:                                        `{"properties":{"a":{}},"type":"object"}`,
		`{"type":"object","oneOf":[{}],"allOf":[{}],"anyOf":[{}],"x":1}`: `{"type":"object","x":1}`,
		`{"type":["object","null"],"properties":{}}`:                     `{"properties":{},"type":"object"}`,
		`true`: `{"type":"object","properties":{}}`,
		`{`:    `{"type":"object","properties":{}}`,
		`null`: `{"type":"object","properties":{}}`,
		``:     `{"type":"object","properties":{}}`,
	} {
		if got := string(inputSchema(json.RawMessage(in))); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

// BenchmarkStep encodes the request of a step after many others, with results of 2 KB each.
func BenchmarkStep(b *testing.B) {
	for _, steps := range []int{10, 400} {
		b.Run(fmt.Sprint(steps), func(b *testing.B) {
			messages := []llm.Message{{Kind: llm.System, Content: strings.Repeat("s", 6000)}, user("u")}
			for i := range steps {
				id := fmt.Sprint("call_", i)
				messages = append(messages, said("next"), called(id), returned(id, strings.Repeat("x", 2000)))
			}
			m := New(options(nil))
			v := blockEncoder{model: "m", images: &m.images}
			b.ReportAllocs()
			for b.Loop() {
				entries := m.transcript.Entries(messages)
				if conversation(entries, func(e *llm.Entry) []byte { return e.Encode("1", v.blocks) }).Len() == 0 {
					b.Fatal("nothing")
				}
			}
		})
	}
}
