package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/agent"
)

const (
	contextColumns = 76 // of the picture, which has to fit 80
	contextTools   = 5  // that have filled most
)

// context shows what fills the context of the model, and what the session has used.
func (t *turns) context(context.Context, string) error {
	_, err := io.WriteString(t.a.s.out, contextPicture(t.Context()))
	return err
}

// contextPicture is a bar of how full the context is, what fills it, what was left out
// of it, and what the session has used.
func contextPicture(c agent.Context) string {
	var b strings.Builder
	talk := c.System + c.Prompts + c.Answers + c.Calls + c.Results
	used, limit, unit := talk, c.Budget, "characters (history_char_budget)"
	if tokens := c.Spent.Last.Total(); tokens > 0 && c.Limit > 0 {
		used, limit, unit = tokens, c.Limit, "tokens, with the last answer"
	}
	fmt.Fprintf(&b, "  %s\n  %s of %s %s: %s\n\n", bar(used, limit, contextColumns), grouped(used), grouped(limit), unit, percent(used, limit))

	all := talk + c.Tools
	row := func(indent, what string, n int) {
		if n > 0 {
			fmt.Fprintf(&b, "  %-26s %11s  %4s  %s\n", indent+what, grouped(n), percent(n, all), strings.TrimRight(bar(n, all, 30), "."))
		}
	}
	fmt.Fprintf(&b, "  %-26s %11s\n", "what fills a request", "characters")
	row("", "system prompt", c.System)
	row("", "definitions of the tools", c.Tools)
	row("", "prompts", c.Prompts)
	row("", "answers", c.Answers)
	row("", "calls and results", c.Calls+c.Results)
	byTool := slices.SortedFunc(maps.Keys(c.ByTool), func(a, b string) int {
		if n := c.ByTool[b] - c.ByTool[a]; n != 0 {
			return n
		}
		return strings.Compare(a, b)
	})
	for _, name := range byTool[:min(len(byTool), contextTools)] {
		row("  ", fit(name, 22), c.ByTool[name])
	}
	if c.Left.Chars > 0 {
		fmt.Fprintf(&b, "  left out, so that it fits: %s characters\n", grouped(c.Left.Chars))
		if c.Left.Turns > 0 {
			fmt.Fprintf(&b, "    %s, from the first on\n", plural(c.Left.Turns, "whole turn"))
		}
		if c.Left.Shortened > 0 {
			fmt.Fprintf(&b, "    the arguments or the results of %s\n", plural(c.Left.Shortened, "call"))
		}
	}

	fmt.Fprintf(&b, "\n  the session: %s", plural(c.Spent.Turns, "turn"))
	switch u := c.Spent.Usage; {
	case u.Total() > 0:
		fmt.Fprintf(&b, ", %s tokens sent, %s received", grouped(u.InputTokens), grouped(u.OutputTokens))
	case c.Spent.Turns > 0:
		b.WriteString("; the provider does not say how many tokens")
	}
	if c.Spent.Cost != nil {
		b.WriteString(", " + dollars(*c.Spent.Cost))
	}
	b.WriteString("\n")
	if c.Limit == 0 {
		b.WriteString("  set model.context_tokens to see tokens here, and the prices to see the cost\n")
	}
	return b.String()
}

// bar is a row of columns of which a part is full: of something at least one, and of
// all that is not full never each.
func bar(n, of, columns int) string {
	full := 0
	if of > 0 {
		full = int(float64(n) / float64(of) * float64(columns))
	}
	switch {
	case n <= 0 || of <= 0:
		full = 0
	case n < of:
		full = min(max(full, 1), columns-1)
	default:
		full = columns
	}
	return strings.Repeat("#", full) + strings.Repeat(".", columns-full)
}

// percent is a part in whole percent.
func percent(n, of int) string {
	switch {
	case of <= 0:
		return ""
	case n > 0 && float64(n)/float64(of) < 0.01:
		return "<1 %"
	}
	return fmt.Sprintf("%.0f %%", 100*float64(n)/float64(of))
}

// grouped is a number with commas: 12,345.
func grouped(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// dollars is a cost as people read it: $1.20, $0.004, less than $0.0001.
func dollars(cost float64) string {
	switch {
	case cost >= 0.1:
		return fmt.Sprintf("$%.2f", cost)
	case cost >= 0.0001:
		return strings.TrimRight(fmt.Sprintf("$%.4f", cost), "0")
	}
	return "less than $0.0001"
}
