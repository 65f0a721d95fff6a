package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/humanize"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/session/stats"
)

func newSessionStatsCmd(a *app) *cobra.Command {
	var days int
	cmd := &cobra.Command{
		Use: "stats [SESSION]", Short: "Show what calls, tokens and money went where (default: all sessions)",
		Long: `Show what sessions have used: calls by tool, with how many succeeded, how long
they took and what fuel they used; requests, tokens and cost by model. Without
SESSION it counts all sessions in the log, single calls (stockade call) too.

` + sessionArgHelp,
		Example: "  stockade session stats\n  stockade session stats last\n  stockade session stats --days 7\n  stockade session stats --json | jq .requests.cost",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runSessionStats(cmd.Context(), a, strings.Join(args, ""), cmd.Flags().Changed("days"), days)
		},
	}
	cmd.Flags().IntVar(&days, "days", 0, "count only the last so many days (default: all)")
	cmd.Flags().BoolVar(&a.flags.json, "json", false, "print JSON")
	return cmd
}

func runSessionStats(ctx context.Context, a *app, prefix string, some bool, days int) error {
	counter := &stats.Counter{}
	if some {
		if days < 1 || days > 36500 {
			return usageError("--days 7 counts what happened in the last week", "--days: %d is not a number of days from 1 to 36500", days)
		}
		counter.Since = time.Now().AddDate(0, 0, -days)
	}
	st, infos, err := a.sessions(ctx)
	if err != nil {
		return err
	}
	if prefix != "" {
		id, err := st.Resolve(ctx, prefix)
		if err != nil {
			return err
		}
		infos = slices.DeleteFunc(infos, func(i session.Info) bool { return i.ID != id })
	}
	total, done, noted := 0, 0, time.Now()
	for _, i := range infos {
		total += i.Events
	}
	for _, i := range infos {
		if i.Last.Before(counter.Since) {
			done += i.Events
			continue
		}
		counter.BeginSession()
		for e, err := range st.Events(ctx, i.ID, 0) {
			if err != nil {
				return err
			}
			counter.Add(e)
			if done++; !a.flags.quiet && done%1000 == 0 && time.Since(noted) > time.Second {
				noted = time.Now()
				a.s.note("read %s of %s events ...", humanize.Exact(int64(done)), humanize.Exact(int64(total)))
			}
		}
	}
	s := counter.Stats()
	if a.flags.json {
		return printJSON(a.s, statsOf(s))
	}
	if s.Sessions == 0 {
		if len(infos) == 0 {
			a.s.note("no sessions yet")
		} else {
			a.s.note("nothing happened in the last %s", humanize.Plural(days, "day"))
			a.s.hint("without --days all is counted")
		}
		return nil
	}
	_, err = io.WriteString(a.s.out, statsPicture(s))
	return err
}

func (t *conversation) stats(ctx context.Context, _ string) error {
	counter := &stats.Counter{}
	for e, err := range t.Log.Events(ctx) {
		if err != nil {
			return err
		}
		counter.Add(e)
	}
	s := counter.Stats()
	if s.Turns == 0 && s.Calls.Number == 0 {
		t.a.s.note("nothing has happened in this session yet")
		return nil
	}
	_, err := io.WriteString(t.a.s.out, statsPicture(s))
	return err
}

// statsJSON is the output of `session stats --json`, a documented contract.
type statsJSON struct {
	Sessions   int                       `json:"sessions"`
	Events     int                       `json:"events"`
	Deleted    int                       `json:"deleted_bodies"` // part of Events: those whose bodies were deleted
	From       *time.Time                `json:"from,omitempty"` // time of the first event
	To         *time.Time                `json:"to,omitempty"`   // time of the last event
	Turns      int                       `json:"turns"`          // number of turns that were started
	Ended      map[session.EndReason]int `json:"ended"`          // number of turns by the reason of their end
	DurationMS int64                     `json:"duration_ms"`    // duration of all turns that have ended, together
	Calls      callsJSON                 `json:"calls"`
	Tools      []toolCallsJSON           `json:"tools"`
	Requests   requestsJSON              `json:"requests"`
	Models     []modelRequestsJSON       `json:"models"`
}

type callsJSON struct {
	Number    int    `json:"number"`
	Succeeded int    `json:"succeeded"`
	Failed    int    `json:"failed"`
	Denied    int    `json:"denied"`
	Stopped   int    `json:"stopped"`
	Fuel      uint64 `json:"fuel_used"`
	MedianMS  int64  `json:"median_ms"`
	SlowestMS int64  `json:"slowest_ms"`
}

type toolCallsJSON struct {
	Tool string `json:"tool"`
	callsJSON
}

type requestsJSON struct {
	Number    int       `json:"number"` // number of requests with an answer
	Restarts  int       `json:"restarts"`
	Failed    int       `json:"failed"` // number of turns that ended because the provider failed
	Usage     llm.Usage `json:"usage"`
	Cost      *float64  `json:"cost,omitempty"`
	MedianMS  int64     `json:"median_ms"`
	SlowestMS int64     `json:"slowest_ms"`
}

type modelRequestsJSON struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
	requestsJSON
}

func statsOf(s stats.Stats) statsJSON {
	calls := func(c stats.Calls) callsJSON {
		return callsJSON{c.Number, c.Succeeded, c.Failed(), c.Denied, c.Stopped, c.Fuel, c.Durations.Median().Milliseconds(), c.Durations.Slowest().Milliseconds()}
	}
	requests := func(r stats.ModelUse) requestsJSON {
		return requestsJSON{r.Requests, r.Restarts, r.Failed, r.Usage, r.Cost, r.Durations.Median().Milliseconds(), r.Durations.Slowest().Milliseconds()}
	}
	out := statsJSON{
		Sessions: s.Sessions, Events: s.Events, Deleted: s.Deleted, Turns: s.Turns, Ended: s.Ended, DurationMS: s.Duration.Milliseconds(),
		Calls: calls(s.Calls), Tools: []toolCallsJSON{}, Requests: requests(s.ModelUse), Models: []modelRequestsJSON{},
	}
	if s.Events > 0 {
		out.From, out.To = &s.From, &s.To
	}
	if out.Ended == nil {
		out.Ended = map[session.EndReason]int{}
	}
	for _, t := range s.Tools {
		out.Tools = append(out.Tools, toolCallsJSON{t.Name, calls(t.Calls)})
	}
	for _, m := range s.Models {
		out.Models = append(out.Models, modelRequestsJSON{m.Provider, m.Name, requests(m.ModelUse)})
	}
	return out
}

// statsRows limits the number of tools, and that of models, in the picture; the others are
// counted.
const statsRows = 20

// statsPicture draws the statistics in 80 columns, with bars for the shares of tools and
// models.
func statsPicture(s stats.Stats) string {
	var b strings.Builder
	head := []string{humanize.Plural(s.Sessions, "session"), humanize.Plural(s.Turns, "turn")}
	var failures []string
	for _, c := range []struct {
		n    int
		what string
	}{
		{s.Ended[session.EndCancelled], "stopped"}, {s.Ended[session.EndLimit] + s.Ended[session.EndCut], "cut short"},
		{s.Ended[session.EndProvider] + s.Ended[session.EndError], "failed"},
	} {
		if c.n > 0 {
			failures = append(failures, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	if failures != nil {
		head[1] += " (" + strings.Join(failures, ", ") + ")"
	}
	if s.Duration > 0 {
		head[1] += " in " + humanize.Duration(s.Duration)
	}
	const day = "2006-01-02"
	when := s.From.Local().Format(day)
	if last := s.To.Local().Format(day); last != when {
		when += " to " + last
	}
	fmt.Fprintf(&b, "  %s · %s · %s\n", head[0], head[1], when)
	if s.Deleted > 0 {
		fmt.Fprintf(&b, "  %s with a deleted body, which are not counted below\n", humanize.Plural(s.Deleted, "event"))
	}
	toolRows(&b, s)
	modelRows(&b, s)
	return b.String()
}

func toolRows(b *strings.Builder, s stats.Stats) {
	if s.Calls.Number == 0 {
		return
	}
	fmt.Fprintf(b, "\n  %-18s %6s %-10s %5s %6s %8s %8s %8s\n", "tool", "calls", "", "ok", "denied", "median", "slowest", "fuel")
	row := func(name string, c stats.Calls, bar string) {
		denied, median, slowest, fuel := "-", "-", "-", "-"
		if c.Denied > 0 {
			denied = fmt.Sprint(c.Denied)
		}
		if c.Durations.Number() > 0 {
			median, slowest = shortDuration(c.Durations.Median()), shortDuration(c.Durations.Slowest())
		}
		if c.Fuel > 0 {
			fuel = humanize.Count(c.Fuel)
		}
		fmt.Fprintf(b, "  %-18s %6d %-10s %5s %6s %8s %8s %8s\n", name, c.Number, bar, percent(c.Succeeded, c.Number), denied, median, slowest, fuel)
	}
	shown := s.Tools[:min(len(s.Tools), statsRows)]
	for _, t := range shown {
		name := t.Name
		if name != stats.Unknown && name != stats.Others {
			name = fit(humanize.ToolName(name), 18)
		}
		row(name, t.Calls, share(float64(t.Number), float64(s.Calls.Number), 10))
	}
	if rest := len(s.Tools) - len(shown); rest > 0 {
		fmt.Fprintf(b, "  and %s; --json has all\n", humanize.Plural(rest, "other tool"))
	}
	if len(s.Tools) > 1 {
		row("all", s.Calls, "")
	}
}

func modelRows(b *strings.Builder, s stats.Stats) {
	if len(s.Models) == 0 {
		return
	}
	shareOf, all := "of the requests", func(r stats.ModelUse) float64 { return float64(r.Requests) }
	switch {
	case s.ModelUse.Cost != nil && *s.ModelUse.Cost > 0:
		shareOf, all = "of the cost", func(r stats.ModelUse) float64 { return *llm.AddCosts(r.Cost, new(float64)) }
	case s.ModelUse.Usage.Total() > 0:
		shareOf, all = "of the tokens", func(r stats.ModelUse) float64 { return float64(r.Usage.Total()) }
	}
	fmt.Fprintf(b, "\n  %-36s %8s  %-17s %9s\n", "model", "requests", shareOf, "cost")
	below := func(text string) {
		for _, line := range terminal.Wrap(text, 74) {
			fmt.Fprintf(b, "    %s\n", line)
		}
	}
	row := func(name string, r stats.ModelUse, bar string) {
		cost := "-"
		if r.Cost != nil {
			cost = humanize.Dollars(*r.Cost)
		}
		fmt.Fprintf(b, "  %s %8d  %-17s %9s\n", name, r.Requests, bar, cost)
		if u := r.Usage; u.Total() > 0 {
			sent, received := humanize.Exact(int64(u.InputTokens))+" tokens sent", humanize.Exact(int64(u.OutputTokens))+" received"
			if u.CachedTokens > 0 {
				sent += " (" + humanize.Exact(int64(u.CachedTokens)) + " cached)"
			}
			if u.ReasoningTokens > 0 {
				received += " (" + humanize.Exact(int64(u.ReasoningTokens)) + " of reasoning)"
			}
			below(sent + ", " + received)
		}
		var parts []string
		if r.Durations.Number() > 0 {
			parts = append(parts, "answers took "+humanize.Duration(r.Durations.Median())+", the slowest "+humanize.Duration(r.Durations.Slowest()))
		}
		if r.Restarts > 0 {
			parts = append(parts, humanize.Plural(r.Restarts, "request")+" sent again")
		}
		if r.Failed > 0 {
			parts = append(parts, humanize.Plural(r.Failed, "turn")+" failed")
		}
		if parts != nil {
			below(strings.Join(parts, "; "))
		}
	}
	shown := s.Models[:min(len(s.Models), statsRows)]
	for _, m := range shown {
		name := fit(strings.TrimSpace(m.Provider+" "+m.Name), 36)
		if name == "" {
			name = "(not known)"
		}
		row(name+strings.Repeat(" ", max(36-terminal.Width(name), 0)), m.ModelUse, share(all(m.ModelUse), all(s.ModelUse), 17))
	}
	if rest := len(s.Models) - len(shown); rest > 0 {
		fmt.Fprintf(b, "  and %s; --json has all\n", humanize.Plural(rest, "other model"))
	}
	if len(s.Models) > 1 {
		row(fmt.Sprintf("%-36s", "all"), s.ModelUse, "")
	}
}

func shortDuration(d time.Duration) string {
	switch {
	case d < time.Minute:
		return humanize.Duration(d)
	case d < 100*time.Minute:
		return fmt.Sprintf("%.1f min", d.Minutes())
	}
	return fmt.Sprintf("%.1f h", d.Hours())
}

// share draws a bar for the share n/total; for all of total, it has columns columns.
func share(n, total float64, columns int) string {
	const fine = 1e6
	if total <= 0 {
		return ""
	}
	return bar(int(n/total*fine+0.5), fine, columns)
}
