package tool

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/sdk/go/nearest"
)

// String returns the fault as one sentence that a model can act on, mostly with the argument,
// its value, and the values that it accepts. It cuts a long value.
func (f *fault) String() string {
	text := f.words(f.at.describe())
	for i, a := range f.alternatives {
		text += fmt.Sprintf("; %d: %.300s", i+1, a.words(a.at.describe()))
	}
	return text
}

func wrongType(n *node, value any, at *argPath) *fault {
	return &fault{at: at, words: func(where string) string {
		return fmt.Sprintf("%s is %s; it wants %s", where, valueWords(value), typeWords(n.types))
	}}
}

func wrongChoice(c *choice, value any, at *argPath) *fault {
	return &fault{at: at, words: func(where string) string {
		var texts []string
		for _, want := range c.values {
			if text, ok := want.(string); ok {
				texts = append(texts, text)
			}
		}
		hint := ""
		if text, ok := value.(string); ok {
			if hint = nearest.Hint(text, texts); hint == "" {
				if ours := translateWord(text, texts); ours != "" {
					hint = fmt.Sprintf(" (did you mean %q?)", ours)
				}
			}
		}
		return fmt.Sprintf("%s is %s; it wants %s%s", where, valueWords(value), c, hint)
	}}
}

// String returns at most 32 of the values as words.
func (c *choice) String() string {
	const maxValues = 32
	var words []string
	for _, v := range c.values[:min(len(c.values), maxValues)] {
		words = append(words, shortJSON(v))
	}
	if len(c.values) > maxValues {
		words = append(words, "...")
	}
	if len(words) == 1 {
		return words[0]
	}
	return "one of " + strings.Join(words, ", ")
}

func noMatch(p *pattern, text string, at *argPath) *fault {
	return &fault{at: at, words: func(where string) string {
		return fmt.Sprintf("%s is %s; it wants text that matches the regular expression %.200q", where, valueWords(text), p.source)
	}}
}

// boundWords holds words for the keywords of JSON Schema about numbers.
var boundWords = map[string]string{
	"minimum": "at least", "maximum": "at most", "exclusiveMinimum": "more than", "exclusiveMaximum": "less than", "multipleOf": "a multiple of",
}

func outOfBounds(b bound, value any, at *argPath) *fault {
	return &fault{at: at, words: func(where string) string {
		return fmt.Sprintf("%s is %v; it wants %s %v", where, value, boundWords[b.keyword], b.limit)
	}}
}

// countFault returns a fault if the number n of things is outside of an interval; nil if it is
// within. what names the things in the plural.
func countFault(i interval, n int, what string, at *argPath) *fault {
	words, limit := "at least", i.least
	switch {
	case n > i.most:
		words, limit = "at most", i.most
	case n >= i.least:
		return nil
	}
	return &fault{at: at, words: func(where string) string {
		return fmt.Sprintf("%s has %d %s; it wants %s %d", where, n, what, words, limit)
	}}
}

func duplicateItem(first, second int, at *argPath) *fault {
	return &fault{at: at, words: func(where string) string {
		return fmt.Sprintf("%s has the same item at %d and at %d; each item may occur only once", where, first, second)
	}}
}

func excludedValue(value any, at *argPath) *fault {
	return &fault{at: at, words: func(where string) string {
		return fmt.Sprintf("%s is %s, which its schema excludes", where, valueWords(value))
	}}
}

func noAlternative(value any, at *argPath, faults []*fault) *fault {
	return &fault{at: at, alternatives: faults, words: func(where string) string {
		return fmt.Sprintf("%s is %s, which fits no alternative of its schema", where, valueWords(value))
	}}
}

func missingName(n *node, name string, at *argPath) *fault {
	return &fault{at: at.property(name), wrongName: true, words: func(where string) string {
		want := ""
		switch sub := n.props[name]; {
		case sub == nil:
		case len(sub.choices) > 0:
			want = "; it wants " + sub.choices[0].String()
		case len(sub.types) > 0:
			want = "; it wants " + typeWords(sub.types)
		}
		return where + " is missing" + want
	}}
}

// unknownNames returns the fault of sorted names that the schema does not have. It lists the
// first few names: a caller that has one name wrong often has others wrong.
func unknownNames(n *node, wrong []string, at *argPath) *fault {
	return &fault{at: at.property(wrong[0]), wrongName: true, words: func(where string) string {
		if len(n.props) == 0 {
			return "unknown " + where + "; there are no arguments here, send {}"
		}
		const maxNames, maxWrong = 32, 4
		names := sortedKeys(n.props)
		list := strings.Join(names[:min(len(names), maxNames)], ", ")
		if len(names) > maxNames {
			list += ", ..."
		}
		unknown := where + didYouMean(wrong[0], names)
		for _, name := range wrong[1:min(len(wrong), maxWrong)] {
			unknown += ", " + at.property(name).describe() + didYouMean(name, names)
		}
		if len(wrong) > maxWrong {
			unknown += ", ..."
		}
		return fmt.Sprintf("unknown %s; the arguments are: %.2000s", unknown, list)
	}}
}

// didYouMean returns a suggestion in brackets for a wrong name; empty if no name is similar.
func didYouMean(wrong string, names []string) string {
	if ours := translateArg(wrong, names); ours != "" {
		return fmt.Sprintf(" (it is called %q here)", ours)
	}
	return nearest.Hint(wrong, names)
}

// describe returns the place as words, such as: argument "a.b[1]".
func (s *argPath) describe() string {
	const maxBytes = 200
	var way []*argPath
	for ; s.parent != nil; s = s.parent {
		way = append(way, s)
	}
	if len(way) == 0 {
		return "the argument object"
	}
	path := ""
	for i, s := range slices.Backward(way) {
		switch {
		case len(path) > 4*maxBytes:
		case s.index >= 0:
			path += fmt.Sprintf("[%d]", s.index)
		case i == len(way)-1:
			path = s.name
		default:
			path += "." + s.name
		}
	}
	return fmt.Sprintf("argument %.*q", maxBytes, path)
}

// typeArticles holds words for the types of JSON Schema.
var typeArticles = map[string]string{
	"string": "a string", "integer": "an integer", "number": "a number", "boolean": "true or false",
	"array": "an array", "object": "an object", "null": "null",
}

func typeWords(types []string) string {
	words := make([]string, len(types))
	for i, name := range types {
		words[i] = typeArticles[name]
	}
	return strings.Join(words, " or ")
}

// jsonType returns the type of a value in the terms of JSON Schema.
func jsonType(value any) string {
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
		return typeArticles[jsonType(v)]
	case string:
		return "the string " + shortJSON(v)
	}
	return "the number " + shortJSON(value)
}

// shortJSON returns a value as JSON, cut to a length that fits into a sentence.
func shortJSON(value any) string {
	const limit = 60
	text, cut := "", ""
	if s, ok := value.(string); ok && len(s) > limit {
		value, cut = strings.ToValidUTF8(s[:limit], ""), "..."
	}
	text = string(Marshal(value))
	if len(text) > 6*limit {
		text, cut = strings.ToValidUTF8(text[:limit], ""), "..."
	}
	return text + cut
}
