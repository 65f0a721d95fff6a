package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/humanize"
	"github.com/stockade-dev/stockade/host/agent"
	"github.com/stockade-dev/stockade/host/session"
)

const (
	contextColumns = 76 // width of the bar for the whole context
	contextTools   = 5  // number of tools that are listed: those with the most text in the context
)

// context shows the content of the model's context, and the usage of the session.
func (t *conversation) context(ctx context.Context, _ string) error {
	_, err := io.WriteString(t.a.s.out, contextPicture(t.ContextReport(ctx)))
	return err
}

// compact replaces the earlier work of the model by a summary. focus says what matters.
func (t *conversation) compact(ctx context.Context, focus string) error {
	done := false
	_, err := t.render(func(yield func(session.Event, error) bool) {
		for e, err := range t.Compact(ctx, focus) {
			done = done || e.Type == session.TypeContextCompacted
			if !yield(e, err) {
				return
			}
		}
	})
	if err == nil && !done {
		t.a.s.note("there is nothing to summarize yet")
	}
	return err
}

// contextPicture draws a bar that shows how full the model's context is, with a letter for each
// kind of content. Below it are the content, the parts that were left out, and the usage of the session.
func contextPicture(c agent.ContextReport) string {
	var b strings.Builder
	kinds := []struct {
		mark byte
		what string
		n    int
	}{
		{'s', "system prompt, AGENTS.md", c.System}, {'t', "definitions of the tools", c.Tools}, {'p', "prompts", c.Prompts},
		{'a', "answers", c.Answers}, {'c', "calls and results", c.Calls + c.Results},
	}
	all := 0
	for _, k := range kinds {
		all += k.n
	}
	picture, done := "", 0
	full := len(bar(c.Tokens, c.Limit, contextColumns))
	for _, k := range kinds {
		done += k.n
		picture += strings.Repeat(string(k.mark), max(full*done/max(all, 1)-len(picture), 0))
	}
	about := ""
	if c.Spent.Last.Total() == 0 {
		about = "about "
	}
	fmt.Fprintf(&b, "  %s%s\n  %s%s of %s tokens: %s\n", picture, strings.Repeat(".", contextColumns-len(picture)),
		about, humanize.Exact(int64(c.Tokens)), humanize.Exact(int64(c.Limit)), percent(c.Tokens, c.Limit))
	if c.Assumed {
		b.WriteString("  the size of the context is assumed; model.context_tokens sets it\n")
	}
	if talk := all - c.Tools; c.Budget > 0 {
		fmt.Fprintf(&b, "  %s of %s characters (history_char_budget): %s\n", humanize.Exact(int64(talk)), humanize.Exact(int64(c.Budget)), percent(talk, c.Budget))
	}

	row := func(indent, what string, n int) {
		if n > 0 {
			fmt.Fprintf(&b, "  %-26s %11s  %4s  %s\n", indent+what, humanize.Exact(int64(n)), percent(n, all), bar(n, all, 28))
		}
	}
	fmt.Fprintf(&b, "\n  %-28s %9s\n", "what fills a request", "characters")
	for _, k := range kinds {
		row(string(k.mark)+" ", k.what, k.n)
	}
	byTool := slices.SortedFunc(maps.Keys(c.ByTool), func(a, b string) int {
		return cmp.Or(c.ByTool[b]-c.ByTool[a], strings.Compare(a, b))
	})
	for _, name := range byTool[:min(len(byTool), contextTools)] {
		row("    ", fit(name, 20), c.ByTool[name])
	}
	if c.LeftOut.Chars > 0 {
		fmt.Fprintf(&b, "  left out, so that it fits: %s characters of %s\n", humanize.Exact(int64(c.LeftOut.Chars)), humanize.Plural(c.LeftOut.Parts, "part"))
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
	return b.String()
}

// bar draws a bar for the share n/total of columns columns. If n is above 0, it has at least one
// column; if n is below total, it lacks at least one.
func bar(n, total, columns int) string {
	switch {
	case n <= 0 || total <= 0:
		return ""
	case n < total:
		columns = min(max(int(float64(n)/float64(total)*float64(columns)), 1), columns-1)
	}
	return strings.Repeat("#", columns)
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
