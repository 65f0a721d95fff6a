package transcript

import (
	"fmt"
	"strings"
	"time"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/humanize"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/visible"
)

// stopHint tells the person how to stop a call.
const stopHint = "Ctrl-C stops it"

// Running returns the rows of the live region, at most maxRows: the calls that Show has not
// shown yet, running ones with their newest output, or the wait for the model. It returns nil
// if there is neither, and with Quiet. frame is the current picture of the spinner.
func (t *Transcript) Running(now time.Time, frame string, maxRows int) (out []string) {
	if t.o.Quiet || maxRows <= 0 {
		return nil
	}
	p := t.formatter()
	if writing := t.wait.writing; len(t.openCalls) == 0 && len(writing) > 0 {
		for _, w := range writing[max(len(writing)-maxRows, 0):] {
			out = append(out, p.head(span{terminal.Bold, ownIndent + humanize.ToolName(w.Tool)}, inline(w.Subject),
				span{"", frame + " is being written, " + humanize.Bytes(int64(w.Bytes))}, span{terminal.Dim, "   " + stopHint}))
		}
		return out
	}
	if len(t.openCalls) == 0 {
		what, next := t.waitText(now)
		if what == "" {
			return nil
		}
		next += "   " + stopHint
		before := "  " + frame + " "
		// Only the text of others is cut: it may be long.
		row := fitted(what, p.width()-1-terminal.Width(before+next)) + next
		return []string{p.style(terminal.Dim, fitted(before+strings.TrimLeft(row, "; "), p.width()-1))}
	}
	calls, room := t.openCalls, maxRows-len(t.openCalls) // room: rows left for output
	if room < 0 {
		calls, room = calls[:maxRows-1], 0
	}
	for i, c := range calls {
		out = append(out, p.head(t.title(c), c.args, t.stateSpans(c, now, frame)...))
		if c.done || room <= 0 {
			continue
		}
		share := (room + len(calls) - i - 1) / (len(calls) - i)
		rows := t.newest(c, min(share, maxResultLines))
		room -= len(rows)
		out = append(out, rows...)
	}
	if more := len(t.openCalls) - len(calls); more > 0 {
		out = append(out, p.style(terminal.Dim, ownIndent+"and "+humanize.Plural(more, "more call")))
	}
	return out
}

// waitText describes the wait for the model, and the next attempt. Both texts are empty if
// there is nothing to show.
func (t *Transcript) waitText(now time.Time) (what, next string) {
	waited := now.Sub(t.wait.since)
	switch {
	case t.wait.since.IsZero(), t.wait.answering && waited < 2*time.Second:
		return "", ""
	case t.wait.retry != nil:
		if left := time.Duration(t.wait.retry.WaitMS)*time.Millisecond - waited; left > 0 {
			return t.retryText(left)
		}
	}
	what = "waiting for the model"
	if t.wait.thinking {
		what = "the model thinks"
	}
	return fmt.Sprintf("%s, %d s", what, max(waited, 0)/time.Second), ""
}

// stateSpans returns the right end of a call's row in the live region, which shows its state.
func (t *Transcript) stateSpans(c *call, now time.Time, frame string) []span {
	switch {
	case c.done:
		return t.outcome(c)
	case c.state == "awaiting_permission":
		return []span{{terminal.Yellow, "waits for your answer"}}
	case c.since.IsZero():
		return []span{{terminal.Dim, "waits"}}
	}
	return []span{{"", fmt.Sprintf("%s %d s", frame, max(now.Sub(c.since), 0)/time.Second)}, {terminal.Dim, "   " + stopHint}}
}

// newest returns the last rows of a call's output, at most maxRows; without output, the last
// message of the tool.
func (t *Transcript) newest(c *call, maxRows int) []string {
	text := visible.RenderTerminal(lastBytes(c.output.text, 8<<10))
	if text == "" {
		text = c.note
	}
	lines := linesOf(text)
	lines = lines[max(len(lines)-maxRows, 0):]
	if len(lines) == 0 {
		return nil
	}
	rows := t.formatter().quote(terminal.Dim, clipped(lines))
	return rows[max(len(rows)-maxRows, 0):]
}
