package tool

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/host/internal/nearest"
)

// explain says in one sentence which argument does not fit and what it wants,
// or "" when the reason is beyond it. The validator has decided by then; this
// only finds words that a model can act on, and never repeats a long value.
// It goes where [effort] has been, so it ends.
func explain(root, schema any, path string, value any) string {
	s, ok := schema.(map[string]any)
	if !ok {
		return ""
	}
	if ref, ok := s["$ref"].(string); ok {
		if target, err := resolveRef(root, ref); err == nil {
			if why := explain(root, target, path, value); why != "" {
				return why
			}
		}
	}
	if want := typeWords(s); want != "" && !hasType(s, value) {
		return fmt.Sprintf("%s is %s; it wants %s", place(path), valueWords(value), want)
	}
	if enum, ok := s["enum"].([]any); ok {
		if why := explainEnum(path, enum, value); why != "" {
			return why
		}
	}
	var why string
	switch value := value.(type) {
	case string:
		why = explainString(s, path, value)
	case int64:
		why = explainNumber(s, path, float64(value), value)
	case float64:
		why = explainNumber(s, path, value, value)
	case []any:
		why = explainArray(root, s, path, value)
	case map[string]any:
		why = explainObject(root, s, path, value)
	}
	if why != "" {
		return why
	}
	if all, ok := s["allOf"].([]any); ok {
		for _, sub := range all {
			if why := explain(root, sub, path, value); why != "" {
				return why
			}
		}
	}
	return ""
}

func explainEnum(path string, enum []any, value any) string {
	var words, texts []string
	for _, want := range enum {
		if equal(want, value) {
			return ""
		}
		words = append(words, shortJSON(want))
		if text, ok := want.(string); ok {
			texts = append(texts, text)
		}
	}
	const most = 32
	if len(words) > most {
		words = append(words[:most], "...")
	}
	hint := ""
	if text, ok := value.(string); ok {
		hint = nearest.Hint(text, texts)
	}
	return fmt.Sprintf("%s is %s; it wants one of %s%s", place(path), valueWords(value), strings.Join(words, ", "), hint)
}

// equal compares a value of the schema with one of the arguments, whose whole
// numbers are int64.
func equal(want, value any) bool {
	if n, ok := value.(int64); ok {
		value = float64(n)
	}
	a, errA := json.Marshal(want)
	b, errB := json.Marshal(value)
	return errA == nil && errB == nil && string(a) == string(b)
}

func explainString(s map[string]any, path, value string) string {
	n := float64(utf8.RuneCountInString(value))
	if least, ok := s["minLength"].(float64); ok && n < least {
		return fmt.Sprintf("%s has %v characters; it wants at least %v", place(path), n, least)
	}
	if most, ok := s["maxLength"].(float64); ok && n > most {
		return fmt.Sprintf("%s has %v characters; it wants at most %v", place(path), n, most)
	}
	if pattern, ok := s["pattern"].(string); ok {
		if re, err := regexp.Compile(pattern); err == nil && !re.MatchString(value) {
			return fmt.Sprintf("%s is %s; it wants text that matches the regular expression %.200q", place(path), valueWords(value), pattern)
		}
	}
	return ""
}

func explainNumber(s map[string]any, path string, n float64, shown any) string {
	for _, bound := range []struct {
		keyword, words string
		ok             func(n, limit float64) bool
	}{
		{"minimum", "at least", func(n, limit float64) bool { return n >= limit }},
		{"maximum", "at most", func(n, limit float64) bool { return n <= limit }},
		{"exclusiveMinimum", "more than", func(n, limit float64) bool { return n > limit }},
		{"exclusiveMaximum", "less than", func(n, limit float64) bool { return n < limit }},
		{"multipleOf", "a multiple of", func(n, limit float64) bool { return math.Mod(n, limit) == 0 }},
	} {
		if limit, ok := s[bound.keyword].(float64); ok && !bound.ok(n, limit) {
			return fmt.Sprintf("%s is %v; it wants %s %v", place(path), shown, bound.words, limit)
		}
	}
	return ""
}

func explainArray(root any, s map[string]any, path string, values []any) string {
	n := float64(len(values))
	if least, ok := s["minItems"].(float64); ok && n < least {
		return fmt.Sprintf("%s has %v items; it wants at least %v", place(path), n, least)
	}
	if most, ok := s["maxItems"].(float64); ok && n > most {
		return fmt.Sprintf("%s has %v items; it wants at most %v", place(path), n, most)
	}
	if items, ok := s["items"].(map[string]any); ok {
		for i, v := range values {
			if why := explain(root, items, fmt.Sprintf("%s[%d]", path, i), v); why != "" {
				return why
			}
		}
	}
	return ""
}

func explainObject(root any, s map[string]any, path string, values map[string]any) string {
	named, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	for _, r := range required {
		name, _ := r.(string)
		if _, ok := values[name]; ok {
			continue
		}
		want := ""
		if sub, ok := named[name].(map[string]any); ok {
			if want = typeWords(sub); want != "" {
				want = "; it wants " + want
			}
		}
		return fmt.Sprintf("%s is missing%s", place(join(path, name)), want)
	}
	names := sortedKeys(named)
	for _, name := range sortedKeys(values) {
		if sub, ok := named[name]; ok {
			if why := explain(root, sub, join(path, name), values[name]); why != "" {
				return why
			}
		} else if s["additionalProperties"] == false && s["patternProperties"] == nil {
			return unknown(place(join(path, name)), name, names)
		}
	}
	return ""
}

func unknown(place, name string, names []string) string {
	if len(names) == 0 {
		return "unknown " + place + "; there are no arguments here, send {}"
	}
	const most = 32
	list := strings.Join(names[:min(len(names), most)], ", ")
	if len(names) > most {
		list += ", ..."
	}
	return fmt.Sprintf("unknown %s%s; the arguments are: %.2000s", place, nearest.Hint(name, names), list)
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func place(path string) string {
	if path == "" {
		return "the argument object"
	}
	return fmt.Sprintf("argument %.200q", path)
}

var typeArticles = map[string]string{
	"string": "a string", "integer": "an integer", "number": "a number", "boolean": "true or false",
	"array": "an array", "object": "an object", "null": "null",
}

func schemaTypes(s map[string]any) []string {
	switch t := s["type"].(type) {
	case string:
		return []string{t}
	case []any:
		var out []string
		for _, e := range t {
			if name, ok := e.(string); ok {
				out = append(out, name)
			}
		}
		return out
	}
	return nil
}

func typeWords(s map[string]any) string {
	var words []string
	for _, t := range schemaTypes(s) {
		words = append(words, typeArticles[t])
	}
	return strings.Join(words, " or ")
}

func hasType(s map[string]any, value any) bool {
	types := schemaTypes(s)
	if slices.Contains(types, kindOf(value)) || len(types) == 0 {
		return true
	}
	return kindOf(value) == "integer" && slices.Contains(types, "number")
}

func kindOf(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case int64:
		return "integer"
	case float64:
		if v == math.Trunc(v) {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	}
	return "object"
}

func valueWords(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case bool:
		return fmt.Sprint(v)
	case []any, map[string]any:
		return typeArticles[kindOf(v)]
	case string:
		return "the string " + shortJSON(v)
	}
	return "the number " + shortJSON(value)
}

// shortJSON is the value as JSON, cut to what a sentence bears.
func shortJSON(value any) string {
	const most = 60
	text, cut := "", ""
	if s, ok := value.(string); ok && len(s) > most {
		value, cut = strings.ToValidUTF8(s[:most], ""), "..."
	}
	text = string(marshal(value))
	if len(text) > 6*most {
		text, cut = strings.ToValidUTF8(text[:most], ""), "..."
	}
	return text + cut
}
