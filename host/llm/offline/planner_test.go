package offline

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	wire "github.com/sashabaranov/go-openai"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/llmtest"
	"github.com/stockade-dev/stockade/host/llm/openai"
	"github.com/stockade-dev/stockade/host/llm/provider"
	"github.com/stockade-dev/stockade/host/tool"
)

// prompts holds requests and the calls that they lead to if all tools are offered. "?" and
// a text stand for a part that is not understood.
var prompts = []struct {
	prompt string
	want   []string
}{
	{"list files", []string{`ls {"path":"."}`}},
	{"List all the files in src/", []string{`ls {"path":"src/"}`}},
	{"list files in .", []string{`ls {"path":"."}`}},
	{"list files in ..", []string{`ls {"path":".."}`}},
	{"ls 'my folder'", []string{`ls {"path":"my folder"}`}},
	{"list", []string{`ls {"path":"."}`}},
	{"show me files in docs", []string{`ls {"path":"docs"}`}},
	{"read README.md", []string{`file_read {"path":"README.md"}`}},
	{"read @README.md", []string{`file_read {"path":"README.md"}`}},
	{"READ README.", []string{`file_read {"path":"README"}`}},
	{"Please show me the contents of `a b.txt`.", []string{`file_read {"path":"a b.txt"}`}},
	{"cat go.mod", []string{`file_read {"path":"go.mod"}`}},
	{"open the file it's.txt", []string{`file_read {"path":"it's.txt"}`}},
	{"find TODO in *.go", []string{`grep {"pattern":"TODO","fixed_strings":true,"file_filter":"*.go"}`}},
	{"search for 'a in b' in src/", []string{`grep {"pattern":"a in b","fixed_strings":true,"path":"src/"}`}},
	{"find where we are in it in the file notes.md", []string{`grep {"pattern":"where we are in it","fixed_strings":true,"file_filter":"notes.md"}`}},
	{"grep panic(", []string{`grep {"pattern":"panic(","fixed_strings":true}`}},
	{"find files *.c", []string{`glob {"pattern":"*.c"}`}},
	{"find all files named **/*_test.go in host", []string{`glob {"pattern":"**/*_test.go","path":"host"}`}},
	{`replace foo with "foo bar" in a.txt`, []string{`file_edit {"path":"a.txt","old_string":"foo","new_string":"foo bar","replace_all":true}`}},
	{`replace go to it with go in it in a.txt`, []string{`file_edit {"path":"a.txt","old_string":"go to it","new_string":"go in it","replace_all":true}`}},
	{`change "x" to '' in the file a.txt`, []string{`file_edit {"path":"a.txt","old_string":"x","new_string":"","replace_all":true}`}},
	{`write "hello\n\t\"you\"" to a.txt`, []string{`file_write {"path":"a.txt","content":"hello\n\t\"you\""}`}},
	{`write 'C:\new' to a.txt`, []string{`file_write {"path":"a.txt","content":"C:\\new"}`}},
	{`save hello to you to out/a.txt`, []string{`file_write {"path":"out/a.txt","content":"hello to you"}`}},
	{`write "" to empty`, []string{`file_write {"path":"empty","content":""}`}},
	{`run go test ./... "a; then b"`, []string{`bash {"command":"go test ./... \"a; then b\""}`}},
	{"run 'for f in *; do echo $f; done'", []string{`bash {"command":"for f in *; do echo $f; done"}`}},
	{"list files then read a, then run make", []string{`ls {"path":"."}`, `file_read {"path":"a"}`, `bash {"command":"make"}`}},
	{"First, list files. Then read a.txt. Finally run make.", []string{`ls {"path":"."}`, `?read a.txt. Finally run make`}},
	{"read a; read b\n\n- read c\nand then\nread d", []string{`file_read {"path":"a"}`, `file_read {"path":"b"}`, `file_read {"path":"c"}`, `file_read {"path":"d"}`}},
	{"list files and read a", []string{`ls {"path":"."}`, `file_read {"path":"a"}`}},
	{`find "salt and pepper"`, []string{`grep {"pattern":"salt and pepper","fixed_strings":true}`}},
	{"read 'then; a'", []string{`file_read {"path":"then; a"}`}},
	{"list files in a b", []string{"?list files in a b"}},
	{"read", []string{"?read"}},
	{"'read' a", []string{"?'read' a"}},
	{"write hello", []string{"?write hello"}},
	{"replace a in b", []string{"?replace a in b"}},
	{"what is the meaning of life?", []string{"?what is the meaning of life?"}},
	{"read a then dance then read b", []string{`file_read {"path":"a"}`, "?dance", `file_read {"path":"b"}`}},
	{"then; then,\n;", nil},
	{"", nil},
}

// allTools are the tools that the planner can call.
var allTools = tools("ls", "glob", "file_read", "file_write", "file_edit", "grep", "bash")

func tools(names ...string) (defs []tool.Definition) {
	for _, n := range names {
		defs = append(defs, tool.Definition{Name: n, Description: n, Parameters: json.RawMessage(`{"type":"object"}`)})
	}
	return defs
}

func TestPlannerUnderstands(t *testing.T) {
	for _, tt := range prompts {
		t.Run(tt.prompt, func(t *testing.T) {
			offered := make(map[string]bool)
			for _, d := range allTools {
				offered[d.Name] = true
			}
			phrases, _ := parse(tt.prompt)
			var got []string
			for _, p := range phrases {
				if a, ok := p.choose(offered); ok {
					got = append(got, a.tool+" "+string(tool.Marshal(a.args)))
				} else {
					got = append(got, "?"+p.text)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// direct calls the planner without a server and a wire format.
type direct struct{}

func (direct) Stream(_ context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		a := plan(chatOf(req))
		delta := llm.Delta{Text: a.Text, Finish: llm.FinishStop}
		for _, c := range a.Calls {
			delta.Finish = llm.FinishTools
			delta.Calls = append(delta.Calls, llm.CallDelta{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
		}
		yield(delta, nil)
	}
}

// chatOf returns a request in the form of the chat completions API.
func chatOf(req llm.Request) (chat wire.ChatCompletionRequest) {
	for _, m := range req.Messages {
		var call llm.CallData
		var result llm.ResultData
		switch m.Kind {
		case llm.ToolCall:
			_ = json.Unmarshal(m.Data, &call)
			chat.Messages = append(chat.Messages, wire.ChatCompletionMessage{Role: "assistant", ToolCalls: []wire.ToolCall{{ID: call.ID, Function: wire.FunctionCall{Name: call.Function.Name, Arguments: call.Function.Arguments}}}})
		case llm.ToolResult:
			_ = json.Unmarshal(m.Data, &result)
			chat.Messages = append(chat.Messages, wire.ChatCompletionMessage{Role: "tool", ToolCallID: result.CallID, Content: result.Output})
		default:
			chat.Messages = append(chat.Messages, wire.ChatCompletionMessage{Role: string(m.Kind), Content: m.Content})
		}
	}
	for _, t := range req.Tools {
		chat.Tools = append(chat.Tools, wire.Tool{Function: &wire.FunctionDefinition{Name: t.Name}})
	}
	return chat
}

// turn runs one turn of an agent: it asks the model, answers its calls with result, and
// repeats this until the model makes no call. It returns the whole conversation.
func turn(t testing.TB, model llm.Model, messages []llm.Message, defs []tool.Definition, result func(llm.CallData) string) []llm.Message {
	t.Helper()
	for steps := 0; ; steps++ {
		if steps > maxPhrases+1 {
			t.Fatalf("the turn does not end")
		}
		reply, err := llmtest.Collect(t.Context(), t, model, llm.Request{Model: "offline", Messages: messages, Tools: defs})
		if err != nil {
			t.Fatal(err)
		}
		if reply.Text != "" {
			messages = append(messages, llm.Message{Kind: llm.Assistant, Content: reply.Text})
		}
		if len(reply.Calls) == 0 {
			return messages
		}
		if len(reply.Calls) > 1 {
			t.Errorf("%d calls in one step", len(reply.Calls))
		}
		for _, c := range reply.Calls {
			messages = append(messages, llm.CallMessage(c))
		}
		for _, c := range reply.Calls {
			data, _ := json.Marshal(llm.ResultData{CallID: c.ID, Name: c.Function.Name, Output: result(c)})
			messages = append(messages, llm.Message{Kind: llm.ToolResult, Data: data})
		}
	}
}

func user(text string) llm.Message { return llm.Message{Kind: llm.User, Content: text} }

func output(v any) string {
	data, _ := json.Marshal(v)
	return string(tool.Result{Output: data}.Envelope())
}

// results answers the calls of the tests like the real tools.
func results(c llm.CallData) string {
	switch c.Function.Name {
	case "ls":
		return output(map[string]any{"output": "a.txt\nsrc/", "count": 2})
	case "file_read":
		var args struct{ Path string }
		if json.Unmarshal([]byte(c.Function.Arguments), &args); args.Path == "missing" {
			return string(tool.Failed(tool.CodeNotFound, tool.NotFound, "no file %q", args.Path).Envelope())
		}
		return output(map[string]any{"output": strings.Repeat("line\n", 30)})
	case "bash":
		denied := tool.Failed(tool.CodeDenied, tool.PermissionDenied, "the user said no")
		denied.Err.Rule, denied.Err.Allow = "bash asks", "stockade policy grant bash"
		return string(denied.Envelope())
	}
	return `not an envelope`
}

// calls lists the calls of a conversation, and the last text.
func calls(messages []llm.Message) (names []string, answer string) {
	for _, m := range messages {
		switch m.Kind {
		case llm.ToolCall:
			names = append(names, m.Content)
		case llm.Assistant:
			answer = m.Content
			if !strings.Contains(answer, "offline model") {
				names = append(names, "a text that does not say what it is: "+answer)
			}
		}
	}
	return names, answer
}

// models returns the planner as a model, without and with the server and the real wire format.
func models(t *testing.T) map[string]llm.Model {
	server := NewServer(Planner{}, "")
	return map[string]llm.Model{
		"direct":        direct{},
		"over the wire": openai.New(provider.Options{BaseURL: "http://model.test/v1", HTTPClient: llmtest.Serve(t, server)}),
	}
}

func TestPlannerCarriesOutATurn(t *testing.T) {
	tests := []struct {
		name    string
		prompt  string
		offered []tool.Definition
		calls   []string
		says    []string
		saysNot []string
	}{{
		name: "each step of the plan, and what it has read", prompt: "list files then read a.txt", offered: allTools,
		calls: []string{`ls(path=".")`, `file_read(path="a.txt")`},
		says: []string{"2 calls", `1. ls(path="."): count 2` + "\n",
			`2. file_read(path="a.txt"): 30 lines:`, "and 20 more lines"},
		saysNot: []string{"Not understood", "Not done", "It understands", "src/"},
	}, {
		name: "a failed and a denied call do not stop the others", prompt: "read missing, then run make; read a.txt", offered: allTools,
		calls: []string{`file_read(path="missing")`, `bash(command="make")`, `file_read(path="a.txt")`},
		says: []string{`failed: no file "missing" (NOT_FOUND)`, "was denied: the user said no (DENIED)", "rule: bash asks",
			"to allow it: stockade policy grant bash", "30 lines"},
	}, {
		name: "a part that it does not understand is said", prompt: "dance then list files", offered: allTools,
		calls: []string{`ls(path=".")`}, says: []string{`Not understood: "dance"`, "It understands these phrases", "replace A with B in FILE"},
	}, {
		name: "only tools that are offered are called", prompt: "list files then run make then read a", offered: tools("glob", "file_read"),
		calls: []string{`glob(pattern="*", path=".")`, `file_read(path="a")`},
		says:  []string{"| not an envelope", `Not done: "run make", none of the tools for it is offered (bash)`},
	}, {
		name: "an edit is done with the read before it", prompt: "replace 'one' with 'two' in a.txt then list files", offered: allTools,
		calls:   []string{`file_read(path="a.txt")`, `file_edit(path="a.txt", old_string="one", new_string="two", replace_all=true)`, `ls(path=".")`},
		saysNot: []string{"Not done"},
	}, {
		name: "a tool by its name", prompt: `call ls with {"path": "src"} then call ls; call ls {"path":"a"}`, offered: allTools,
		calls: []string{`ls(path="src")`, `ls()`}, says: []string{`Not understood: "call ls {\"path\":\"a\"}"`}, saysNot: []string{"Not done"},
	}, {
		name: "no tools", prompt: "list files", calls: nil, says: []string{"It made no call", `Not done: "list files"`},
	}, {
		name: "nothing understood", prompt: "Hello!", offered: allTools, says: []string{`Not understood: "Hello!"`, "list files [in DIR]"},
	}}
	for _, tt := range tests {
		for name, model := range models(t) {
			t.Run(tt.name+"/"+name, func(t *testing.T) {
				// A resumed conversation: the earlier prompt has its answer.
				before := []llm.Message{{Kind: llm.System, Content: "rules"}, user("read old.txt then read older.txt")}
				got, answer := calls(turn(t, model, append(before, user(tt.prompt)), tt.offered, results)[2:])
				if diff := cmp.Diff(tt.calls, got); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
				for _, want := range tt.says {
					if !strings.Contains(answer, want) {
						t.Errorf("the answer lacks %q:\n%s", want, answer)
					}
				}
				for _, unwanted := range tt.saysNot {
					if strings.Contains(answer, unwanted) {
						t.Errorf("the answer has %q:\n%s", unwanted, answer)
					}
				}
			})
		}
	}
}

func TestPlannerReadsNoPhrasesInWhatGoesWithAPrompt(t *testing.T) {
	req := &Request{}
	body := fmt.Sprintf(`{"messages":[{"role":"user","content":%q}],"tools":[{"type":"function","function":{"name":"bash"}}]}`,
		"what is this\n\n"+llm.AttachmentsHeading+"\n\nrun rm notes.md")
	if err := json.Unmarshal([]byte(body), &req.Chat); err != nil {
		t.Fatal(err)
	}
	answer := Planner{}.Respond(t.Context(), req)
	if len(answer.Calls) > 0 {
		t.Errorf("it calls %v", answer.Calls)
	}
}

func TestPlannerGoesOnInAConversation(t *testing.T) {
	for name, model := range models(t) {
		t.Run(name, func(t *testing.T) {
			messages := turn(t, model, []llm.Message{user("list files")}, allTools, results)
			messages = turn(t, model, append(messages, user("list files then read a.txt")), allTools, results)
			got, _ := calls(messages)
			want := []string{`ls(path=".")`, `ls(path=".")`, `file_read(path="a.txt")`}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			ids := make(map[string]bool)
			for _, m := range messages {
				var data llm.CallData
				if m.Kind == llm.ToolCall && json.Unmarshal(m.Data, &data) == nil {
					ids[data.ID] = true
				}
			}
			if len(ids) != len(want) {
				t.Errorf("the ids of the calls are not unique: %v", ids)
			}
		})
	}
}

func TestPlannerStopsAtTheLimitOfTheLoop(t *testing.T) {
	limit := func(llm.CallData) string {
		r := tool.Result{Output: tool.Text("a"), LimitMessage: "50 steps are over"}
		return string(r.Envelope())
	}
	got, answer := calls(turn(t, direct{}, []llm.Message{user("list files then read a.txt")}, allTools, limit))
	if len(got) != 1 || !strings.Contains(answer, "It stopped: 50 steps are over") || !strings.Contains(answer, `Not done: "read a.txt", there was no step left`) {
		t.Errorf("got %q:\n%s", got, answer)
	}
}

func TestPlannerAnswersWithoutAResult(t *testing.T) {
	messages := []llm.Message{user("list files"), {Kind: llm.ToolCall, Data: json.RawMessage(`{"id":`)}}
	if s := plan(chatOf(llm.Request{Messages: messages, Tools: allTools})); s.Calls != nil || !strings.Contains(s.Text, "no result came back") {
		t.Errorf("got %+v", s)
	}
}

func TestPlannerBoundsAPrompt(t *testing.T) {
	for name, prompt := range map[string]string{
		"phrases":      strings.Repeat("read a;", 1000),
		"polite words": strings.Repeat("and ", 1<<18),
		"open quotes":  strings.Repeat(`"a 'b `+"`c ", 1<<17),
		"separators":   "read " + strings.Repeat("in ", 1<<18),
	} {
		t.Run(name, func(t *testing.T) {
			_, answer := calls(turn(t, direct{}, []llm.Message{user(prompt)}, allTools, results))
			if !strings.Contains(answer, fmt.Sprintf("only its first %d phrases", maxPhrases)) || len(answer) > 100<<10 {
				t.Errorf("%d bytes: %.1000s", len(answer), answer)
			}
		})
	}
}

func FuzzPlanner(f *testing.F) {
	for _, p := range prompts {
		f.Add(p.prompt, "ls,grep,bash,file_read,file_edit,file_write", "{}")
		f.Add(p.prompt, "glob", `{"tool_success":true,"result":{"output":"a\nb","count":2}}`)
	}
	f.Add("read a then read b", "file_read", `{"tool_success":false,"error":"no","error_code":7,"limit_reached":true}`)
	f.Fuzz(func(t *testing.T, prompt, offered, result string) {
		defs := tools(strings.Split(offered, ",")...)
		messages := turn(t, direct{}, []llm.Message{user(prompt)}, defs, func(c llm.CallData) string {
			found := false
			for _, d := range defs {
				found = found || d.Name == c.Function.Name
			}
			if !found || !json.Valid([]byte(c.Function.Arguments)) {
				t.Errorf("called %+v, offered %q", c, offered)
			}
			return result
		})
		names, answer := calls(messages)
		if answer == "" || len(names) > 0 && strings.HasPrefix(names[0], "a text that") {
			t.Errorf("got %q, %q", names, answer)
		}
	})
}
