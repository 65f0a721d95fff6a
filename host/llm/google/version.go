package google

import (
	"strconv"
	"strings"
)

// version returns the version in the name of a model, such as 2.5 for "gemini-2.5-flash". A Gemini
// without a number, such as "gemini-flash-latest", has the version newest. ok is false for models
// that are not a Gemini.
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

const newest = 1000 // higher than any version

// isVersion3 reports whether the model is of version 3 or later. Such a model takes ids of calls,
// which older models refuse, and images in results. It also requires signatures of calls.
func isVersion3(model string) bool {
	v, _ := version(model)
	return v >= 3
}

// thinking configures the thinking of a model. The zero value is the model's default.
type thinking struct {
	IncludeThoughts bool   `json:"includeThoughts"`
	ThinkingLevel   string `json:"thinkingLevel,omitempty"`
	ThinkingBudget  int    `json:"thinkingBudget,omitempty"` // tokens; 0: the model's default
}

// budgets holds the number of tokens for thinking, by reasoning effort, that Google's own server
// with OpenAI's API uses. https://ai.google.dev/gemini-api/docs/openai#thinking
var budgets = map[string]int{"low": 1024, "medium": 8192, "high": 24_576}

// thinkingOf returns the thinking configuration for a reasoning effort: "", low, medium or high.
// It returns nil if no effort is asked for and the model does not think or does not show its
// thoughts: such models refuse a configuration.
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
