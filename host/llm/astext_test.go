package llm

import (
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/tool"
)

func TestCallsAreKnownInTexts(t *testing.T) {
	tools := []tool.Definition{{Name: "file_read"}, {Name: "ls"}, {Name: "add_task"}}
	const call = `{"name":"file_read","arguments":{"path":"a.txt"}}`
	for name, text := range map[string]string{
		"JSON":                             call,
		"JSON over lines":                  "{\n  \"name\": \"file_read\",\n  \"arguments\": {\n    \"path\": \"a.txt\"\n  }\n}\n",
		"JSON with parameters":             `{"name":"file_read","parameters":{"path":"a.txt"}}`,
		"JSON with a tool":                 `{"tool":"file_read","input":{"path":"a.txt"}}`,
		"JSON with a description of it":    `{"name":"add_task","arguments":{"description":"x"}}`,
		"JSON of an API":                   `{"tool_calls":[{"id":"1","type":"function","function":{"name":"file_read","arguments":"{}"}}]}`,
		"JSON of an older API":             `{"function_call":{"name":"functions.file_read","arguments":"{}"}}`,
		"JSON with the function's name":    `{"function":"file_read","arguments":{"path":"a.txt"}}`,
		"JSON of an action":                `{"action":"file_read","action_input":"a.txt"}`,
		"JSON that is not quite JSON":      "{\"name\":\"file_read\",\"arguments\":{\"path\":\"a\nb\",\"all\":True,}}",
		"a list":                           "[" + call + "]",
		"two in two lines":                 call + "\n" + call,
		"in a fence":                       "```json\n" + call + "\n```",
		"in a fence without a language":    "```\n" + call + "```",
		"behind a sentence":                "I'll read the file.\n\n" + call,
		"behind thoughts":                  "<think>I must read it.</think>" + call,
		"Hermes, Qwen":                     "<tool_call>\n" + call + "\n</tool_call>",
		"Hermes, behind a sentence":        "I look. <tool_call>" + call + "</tool_call>",
		"Hermes, whose end was swallowed":  "<tool_call>\n" + call,
		"Hermes, in a fence":               "```xml\n<tool_call>\n" + call + "\n</tool_call>\n```",
		"GLM":                              "<tool_call>file_read\n<arg_key>path</arg_key>\n<arg_value>a.txt</arg_value>\n</tool_call>",
		"Qwen Coder":                       "<function=file_read>\n<parameter=path>\na.txt\n</parameter>\n</function>",
		"Qwen Coder, without ends":         "I'll read it.\n\n<function=file_read>\n<parameter=path> a.txt",
		"Llama 3":                          "<function=file_read>{\"path\":\"a.txt\"}</function>",
		"Llama 3.1":                        "<|python_tag|>" + call,
		"Llama 4":                          `[file_read(path="a.txt"), ls()]`,
		"Mistral":                          "[TOOL_CALLS] [" + call + "]",
		"Mistral, newer":                   `[TOOL_CALLS]file_read[ARGS]{"path":"a.txt"}`,
		"Granite, Phi":                     "<|tool_call|>[" + call + "]<|/tool_call|>",
		"Kimi":                             `<|tool_calls_section_begin|><|tool_call_begin|>functions.file_read:0<|tool_call_argument_begin|>{"path":"a.txt"}<|tool_call_end|><|tool_calls_section_end|>`,
		"DeepSeek":                         "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>file_read\n```json\n{\"path\":\"a.txt\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
		"DeepSeek, newer":                  `<｜DSML｜function_calls><｜DSML｜invoke name="file_read"><｜DSML｜parameter name="path" string="true">a.txt</｜DSML｜parameter></｜DSML｜invoke></｜DSML｜function_calls>`,
		"MiniMax":                          "<minimax:tool_call>\n<invoke name=\"file_read\">\n<parameter name=\"path\">a.txt</parameter>\n</invoke>\n</minimax:tool_call>",
		"Anthropic's older models":         "<function_calls>\n<invoke name=\"file_read\">\n<parameter name=\"path\">a.txt</parameter>\n</invoke>\n</function_calls>",
		"gpt-oss":                          `<|channel|>commentary to=functions.file_read <|constrain|>json<|message|>{"path":"a.txt"}<|call|>`,
		"Command":                          `<|START_ACTION|>[{"tool_call_id":"0","tool_name":"file_read","parameters":{"path":"a.txt"}}]<|END_ACTION|>`,
		"Gemma":                            "```tool_code\nprint(default_api.file_read(path=\"a.txt\"))\n```",
		"ReAct":                            "Thought: I read it.\nAction: file_read\nAction Input: {\"path\":\"a.txt\"}",
		"behind a fence that is something": "The list:\n```\nls\n```\n<tool_call>\n" + call + "\n</tool_call>",
	} {
		for where, r := range map[string]Reply{"": {Text: text}, ", in reasoning": {Text: "\n", Parts: []Part{{Type: ReasoningPart, Text: text}, {Type: TextPart, Text: "\n"}}}} {
			if got := r.ToolCalledAsText(tools); got != "file_read" && got != "add_task" {
				t.Errorf("%s%s: got %q", name, where, got)
			}
		}
	}
	for name, text := range map[string]string{
		"nothing":                            "",
		"an answer":                          "The file has two lines.",
		"a tool that nobody offers":          `{"name":"launch","arguments":{}}`,
		"marks of a tool that nobody offers": "<tool_call>\n{\"name\":\"launch\",\"arguments\":{}}\n</tool_call>",
		"a fence in an explanation":          "A call looks like this:\n\n```json\n" + call + "\n```",
		"a fence in a longer one":            "A call looks like this:\n```\n<tool_call>\n" + call + "\n</tool_call>\n```\nThe server reads it.",
		"two fences":                         "```json\n" + call + "\n```\nor\n```xml\n<tool_call>" + call + "</tool_call>\n```",
		"marks in a line":                    "Qwen writes <tool_call> around " + call,
		"JSON in a line":                     "A call looks like this: " + call,
		"code in a line":                     "`<tool_call>" + call + "</tool_call>` is what Qwen writes (see file_read)",
		"marks at the beginning of a line":   "<tool_call> is the mark for calls such as file_read.",
		"words behind it":                    "<tool_call>" + call + "</tool_call>\nThat is how Qwen writes a call.",
		"words behind JSON":                  call + "\nis such a call (as JSON)",
		"the definition of a tool":           `{"name":"file_read","description":"Reads.","parameters":{"type":"object"}}`,
		"other JSON":                         `{"name":"file_read","version":1}`,
		"a list of names":                    `["file_read","ls"]`,
		"a link":                             "See\n[ls(1)](https://example.com/ls)",
		"a final answer of gpt-oss":          "<|channel|>final<|message|>file_read(1)",
		"a list of tasks":                    "- file_read\n- [ls]",
	} {
		if got := (Reply{Text: text}).ToolCalledAsText(tools); got != "" {
			t.Errorf("%s: got %q", name, got)
		}
	}
	// An answer counts, whatever was thought before it; and a text without an end costs little.
	thought := Reply{Text: "Yes.", Parts: []Part{{Type: ReasoningPart, Text: call}, {Type: TextPart, Text: "Yes."}}}
	if got := thought.ToolCalledAsText(tools); got != "" {
		t.Errorf("reasoning before an answer: got %q", got)
	}
	for _, hostile := range []string{strings.Repeat("[{", 100_000) + "}", strings.Repeat("\n[x(", 50_000) + ")]", strings.Repeat("\n{\"a\":1}", 20_000), call + strings.Repeat(" ", 10) + strings.Repeat("}", MaxTextBytes/2)} {
		if got := (Reply{Text: hostile}).ToolCalledAsText(tools); got != "" {
			t.Errorf("got %q", got)
		}
	}
}
