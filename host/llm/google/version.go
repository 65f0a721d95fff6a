package google

import (
	"strconv"
	"strings"
)

// version is the version of a model by its name, such as 2.5 of "gemini-2.5-flash".
// "gemini-flash-latest" and others without one are of the newest. Not ok for models that
// are no Gemini.
func version(model string) (v float64, ok bool) {
	name, ok := strings.CutPrefix(model, "gemini-")
	if !ok {
		return 0, false
	}
	number, _, _ := strings.Cut(name, "-")
	if v, err := strconv.ParseFloat(number, 64); err == nil {
		return v, true
	}
	return newest, true
}

const newest = 1000

// isVersion3 reports whether the model is of version 3 or later: it takes the ids of calls,
// which older ones refuse, and images in results, and wants signatures of calls.
func isVersion3(model string) bool {
	v, _ := version(model)
	return v >= 3
}

// thinking is how a model thinks. The zero value is what it does by itself.
type thinking struct {
	IncludeThoughts bool   `json:"includeThoughts"`
	ThinkingLevel   string `json:"thinkingLevel,omitempty"`
	ThinkingBudget  int    `json:"thinkingBudget,omitempty"` // tokens
}

// budgets are those that Google's own server of OpenAI's API has for these words.
// https://ai.google.dev/gemini-api/docs/openai#thinking
var budgets = map[string]int{"low": 1024, "medium": 8192, "high": 24_576}

// thinkingOf is how hard the model is asked to think: "", low, medium or high. It is nil if nothing
// is asked of a model that does not think, or not so that it says so: these refuse the question.
func thinkingOf(model, reasoning string) *thinking {
	v, gemini := version(model)
	switch {
	case gemini && v >= 2.5 && v < 3:
		return &thinking{IncludeThoughts: true, ThinkingBudget: budgets[reasoning]}
	case gemini && v >= 3 || reasoning != "":
		return &thinking{IncludeThoughts: true, ThinkingLevel: strings.ToUpper(reasoning)}
	}
	return nil
}
