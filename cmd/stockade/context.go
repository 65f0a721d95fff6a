package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/humanize"
	"github.com/stockade-dev/stockade/host/agent"
)

const (
	contextColumns = 76 // width of the bar for the whole context
	contextTools   = 5  // number of tools that are listed: those with the most text in the context
)

// context shows the content of the model's context, and the usage of the session.
func (t *conversation) context(context.Context, string) error {
	_, err := io.WriteString(t.a.s.out, contextPicture(t.ContextReport()))
	return err
}

// contextPicture draws a bar that shows how full the model's context is. Below it are the
// content, the parts that were left out, and the usage of the session.
func contextPicture(c agent.ContextReport) string {
	var b strings.Builder
	talk := c.System + c.Prompts + c.Answers + c.Calls + c.Results
	used, limit, unit := talk, c.Budget, "characters (history_char_budget)"
	if tokens := c.Spent.Last.Total(); tokens > 0 && c.Limit > 0 {
		used, limit, unit = tokens, c.Limit, "tokens, with the last answer"
	}
	fmt.Fprintf(&b, "  %s\n  %s of %s %s: %s\n\n", bar(used, limit, contextColumns), humanize.Exact(int64(used)), humanize.Exact(int64(limit)), unit, percent(used, limit))

	all := talk + c.Tools
	row := func(indent, what string, n int) {
		if n > 0 {
			fmt.Fprintf(&b, "  %-26s %11s  %4s  %s\n", indent+what, humanize.Exact(int64(n)), percent(n, all), strings.TrimRight(bar(n, all, 30), "."))
		}
	}
	fmt.Fprintf(&b, "  %-26s %11s\n", "what fills a request", "characters")
	row("", "system prompt, AGENTS.md", c.System)
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
	if c.LeftOut.Chars > 0 {
		fmt.Fprintf(&b, "  left out, so that it fits: %s characters\n", humanize.Exact(int64(c.LeftOut.Chars)))
		if c.LeftOut.Turns > 0 {
			fmt.Fprintf(&b, "    %s, from the first on\n", humanize.Plural(c.LeftOut.Turns, "whole turn"))
		}
		if c.LeftOut.Images > 0 {
			fmt.Fprintf(&b, "    %s\n", humanize.Plural(c.LeftOut.Images, "image"))
		}
		if c.LeftOut.Shortened > 0 {
			fmt.Fprintf(&b, "    the arguments or the results of %s\n", humanize.Plural(c.LeftOut.Shortened, "call"))
		}
	}

	fmt.Fprintf(&b, "\n  the session: %s", humanize.Plural(c.Spent.Turns, "turn"))
	switch u := c.Spent.Usage; {
	case u.Total() > 0:
		fmt.Fprintf(&b, ", %s tokens sent, %s received", humanize.Exact(int64(u.InputTokens)), humanize.Exact(int64(u.OutputTokens)))
	case c.Spent.Turns > 0:
		b.WriteString("; the provider does not say how many tokens")
	}
	if c.Spent.Cost != nil {
		b.WriteString(", " + humanize.Dollars(*c.Spent.Cost))
	}
	b.WriteString("\n")
	if n := c.Spent.Usage.CachedTokens; n > 0 {
		fmt.Fprintf(&b, "    of those sent %s came from the provider's cache\n", humanize.Exact(int64(n)))
	}
	if n := c.Spent.Usage.ReasoningTokens; n > 0 {
		fmt.Fprintf(&b, "    of those received %s were its reasoning\n", humanize.Exact(int64(n)))
	}
	if c.Limit == 0 {
		b.WriteString("  set model.context_tokens to see tokens here, and the prices to see the cost\n")
	}
	return b.String()
}

// bar draws a bar of columns columns, of which the share n/total is full. If n is above 0, at
// least one column is full; if n is below total, at least one is empty.
func bar(n, total, columns int) string {
	full := 0
	if total > 0 {
		full = int(float64(n) / float64(total) * float64(columns))
	}
	switch {
	case n <= 0 || total <= 0:
		full = 0
	case n < total:
		full = min(max(full, 1), columns-1)
	default:
		full = columns
	}
	return strings.Repeat("#", full) + strings.Repeat(".", columns-full)
}

func percent(n, total int) string {
	switch {
	case total <= 0:
		return ""
	case n > 0 && float64(n)/float64(total) < 0.01:
		return "<1 %"
	}
	return fmt.Sprintf("%.0f %%", 100*float64(n)/float64(total))
}
