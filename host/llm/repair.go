package llm

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
)

// repairArguments are arguments that a model has written not quite in JSON, as JSON, where they
// can mean one thing only:
//
//   - a line end or a tab within a string, which has to be escaped
//   - a comma behind the last value
//   - Python's True, False and None
//   - an object as the text of a string
//   - an object within a fence of Markdown
//   - an empty object before the real one, as some servers begin a stream
//
// Everything else stays as it is, and the model is told: a text that ends too early above
// all, because what is missing could be half of a file.
func repairArguments(arguments string) string {
	text := strings.TrimSpace(arguments)
	if isObject(text) {
		return arguments
	}
	if inner := ""; json.Unmarshal([]byte(text), &inner) == nil {
		text = strings.TrimSpace(inner)
	}
	if rest, found := strings.CutPrefix(text, "```"); found {
		_, rest, _ = strings.Cut(rest, "\n") // the language
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

// repairJSON writes a text that is nearly JSON as JSON: what is in a string is escaped, a comma
// behind the last value is left out, and Python's words are JSON's.
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
