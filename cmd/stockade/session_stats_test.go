package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/session/stats"
	"github.com/stockade-dev/stockade/host/tool"
)

// TestTheStatisticsFit: whatever tools and models are called, and however much there is,
// no row is wider than 80 columns, and none is theirs.
func TestTheStatisticsFit(t *testing.T) {
	var c stats.Counter
	n := 0
	add := func(typ session.Type, call string, body any) {
		n++
		c.Add(session.Seal(session.NewDraft(typ, 1, 1, call, body), uint64(n), time.UnixMilli(0), [32]byte{}, [32]byte{}))
	}
	for i := range 50 {
		name := fmt.Sprintf("\x1b[31m%d\n  all   100 ", i) + strings.Repeat("界", 200)
		cost := 123456.78
		add(session.TypeTurnStarted, "", session.TurnStarted{Provider: name, Model: name})
		add(session.TypeToolCall, "a", llm.CallMessage(llm.NewCall("a", name, "{}")))
		add(session.TypeCallIntended, "a", session.Intent{Tool: name})
		add(session.TypeToolResult, "a", llm.ResultMessage("a", name, tool.Result{Usage: tool.Usage{Duration: time.Duration(i*i) * time.Minute, FuelUsed: 1e14}}))
		add(session.TypeStepEnded, "", session.StepEnded{Usage: llm.Usage{InputTokens: 1e9, OutputTokens: 1e9, CachedTokens: 1e9, ReasoningTokens: 1e9}, DurationMS: 1e7, Restarts: 3, Cost: &cost})
		add(session.TypeTurnEnded, "", session.TurnEnded{Reason: session.EndProvider, DurationMS: 1e7})
	}
	rows := strings.Split(strings.TrimSuffix(statsPicture(c.Stats()), "\n"), "\n")
	for _, row := range rows {
		if terminal.Width(row) > 80 || !strings.HasPrefix(row, "  ") && row != "" || strings.ContainsRune(row, '\x1b') {
			t.Errorf("%q: %d columns", row, terminal.Width(row))
		}
	}
	if len(rows) > 140 || !strings.Contains(strings.Join(rows, "\n"), "\n  and 30 other tools; --json has all\n") {
		t.Errorf("%d rows:\n%s", len(rows), strings.Join(rows, "\n"))
	}
}
