package llm

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
)

// repairArguments returns the JSON object that a model meant by arguments that are not
// quite JSON. It repairs only what can mean just one thing:
//
//   - a line end or a tab within a string, which has to be escaped
//   - a comma behind the last value
//   - Python's True, False and None
//   - an object that is encoded as a string
//   - an object within a Markdown code fence
//   - an empty object before the real one, as some servers begin a stream
//
// Other arguments are returned unchanged, and the model is told. In particular a text that ends
// too early is not completed, because the missing part could be half of a file.
func repairArguments(arguments string) string {
	text := strings.TrimSpace(arguments)
	if isObject(text) {
		return arguments
	}
	if inner := ""; json.Unmarshal([]byte(text), &inner) == nil {
		text = strings.TrimSpace(inner)
	}
	if rest, found := strings.CutPrefix(text, "```"); found {
		_, rest, _ = strings.Cut(rest, "\n") // the language of the fence
		if rest, found = strings.CutSuffix(rest, "```"); found {
			text = strings.TrimSpace(rest)
		}
	}
	if rest, found := strings.CutPrefix(text, "{}"); found && strings.HasPrefix(rest, "{") {
		text = rest
	}
	if !isObject(text) {
		text = repairJSON(text)
	}
	if !isObject(text) {
		return arguments
	}
	return text
}

func isObject(text string) bool { return strings.HasPrefix(text, "{") && json.Valid([]byte(text)) }

// repairJSON turns text that is nearly JSON into JSON: it escapes control characters in
// strings, removes commas behind the last value, and replaces Python's words.
func repairJSON(text string) string {
	var out strings.Builder
	quoted, escaped := false, false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quoted && c < ' ' && !escaped:
			fmt.Fprintf(&out, `\u%04x`, c)
			continue
		case quoted:
			quoted = c != '"' || escaped
			escaped = c == '\\' && !escaped
		case c == '"':
			quoted = true
		case c == ',':
			if rest := strings.TrimLeftFunc(text[i+1:], unicode.IsSpace); strings.HasPrefix(rest, "}") || strings.HasPrefix(rest, "]") {
				continue
			}
		case c == 'T' || c == 'F' || c == 'N':
			for python, ours := range map[string]string{"True": "true", "False": "false", "None": "null"} {
				if strings.HasPrefix(text[i:], python) {
					out.WriteString(ours)
					i += len(python) - 1
					c = 0
					break
				}
			}
			if c == 0 {
				continue
			}
		}
		out.WriteByte(c)
	}
	return out.String()
}
