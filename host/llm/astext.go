package llm

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/stockade-dev/stockade/host/tool"
)

// CallAsText is the name of the brief that tells a model that it has written a call as text.
const CallAsText = "call_as_text"

// maxCallText limits the bytes of a text that is searched for a call; longer ones are not.
const maxCallText = 256 << 10

// callStarts matches the beginning of a call: its first group matches the marks of a model's
// template, and its second group JSON.
var callStarts = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("(?m)(?:^|[.!?:>])[ \t]*(" +
		`<(?:\w+:)?(?:tool_calls?|function_calls?|tool_use|invoke)\b|<function[= ]|` + // Hermes, Qwen, GLM, MiniMax, Llama
		`<\s?[|｜]\s?(?:tool|DSML|python_tag|START_ACTION|action_start)|` + // Kimi, DeepSeek, Granite, Phi, Llama, Command, InternLM
		`<\|channel\|>commentary|\[TOOL_CALLS\]|functools\[|` + // gpt-oss; Mistral; Phi
		"\\[\\w+\\(.*\\)\\]$|Action:.*\n+Action Input:|```tool_)|" + // Llama; ReAct; Gemma
		`(?:^|>)[ \t]*([{\[]\s*[{"])`)
})

// callEnds matches the end of a call, from which some servers remove the last marks.
var callEnds = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("(?:[>})\\]`]|<parameter[= ][^<>]*>[^<]*)$") })

// ToolCalledAsText returns the name of the tool, one of tools, that a reply calls in its text,
// or in its reasoning if it has no text. Models do so if the server does not know their format.
// Empty: the reply has no such call, or it only explains one: words follow the call, or the call
// is in a code fence after words.
func (r Reply) ToolCalledAsText(tools []tool.Definition) string {
	text := r.Text
	for i := 0; i < len(r.Parts) && strings.TrimSpace(r.Text) == ""; i++ {
		text += r.Parts[i].Text
	}
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "```") && !strings.HasPrefix(text, "```tool_") && strings.HasSuffix(text, "```") && strings.Count(text, "```") == 2 {
		_, text, _ = strings.Cut(strings.TrimSuffix(text, "```"), "\n")
		text = strings.TrimSpace(text)
	}
	if len(text) > maxCallText || !callEnds().MatchString(text) {
		return ""
	}
	offered := func(name string) bool {
		return slices.ContainsFunc(tools, func(d tool.Definition) bool { return d.Name == name })
	}
	for _, at := range callStarts().FindAllStringSubmatchIndex(text, 20) {
		start := max(at[2], at[4])
		if strings.Count("\n"+text[:start], "\n```")%2 == 1 {
			continue // in a code fence
		}
		name, call := "", text[start:]
		if at[4] >= 0 {
			var value any
			if json.Unmarshal([]byte(repairArguments(call)), &value) == nil {
				name = findCalledTool(value, offered)
			}
		} else { // the name is one of the first words
			words := strings.FieldsFunc(call[:min(len(call), 400)], func(r rune) bool { return !tool.ValidName(string(r)) })
			if i := slices.IndexFunc(words, offered); i >= 0 {
				name = words[i]
			}
		}
		if name != "" {
			return name
		}
	}
	return ""
}

// findCalledTool returns the name of the offered tool that a JSON value calls, in any of the forms
// that models and APIs use. Empty: none.
func findCalledTool(value any, offered func(string) bool) (called string) {
	switch v := value.(type) {
	case []any:
		for _, element := range v {
			called = cmp.Or(called, findCalledTool(element, offered))
		}
	case map[string]any:
		has := func(key string) bool { return v[key] != nil }
		for _, key := range []string{"name", "tool", "tool_name", "action", "function"} {
			name, _ := v[key].(string)
			name = name[strings.LastIndexAny(name, ".:")+1:]
			if offered(name) && !has("description") && slices.ContainsFunc([]string{"arguments", "parameters", "args", "input", "action_input"}, has) {
				return name // a description makes it the definition of a tool
			}
		}
		for _, key := range []string{"function", "function_call", "tool_call", "tool_calls"} {
			called = cmp.Or(called, findCalledTool(v[key], offered))
		}
	}
	return called
}
