package transcript

import (
	"fmt"
	"strings"
	"time"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/humanize"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/visible"
)

// stopHint are the way out.
const stopHint = "Ctrl-C stops it"

// Running are the rows of the live region, at most so many: the calls that run, with the
// newest lines that a command has written, or the wait for the model. frame is the
// spinner.
func (t *Transcript) Running(now time.Time, frame string, most int) (out []string) {
	if t.o.Quiet || most <= 0 {
		return nil
	}
	p := t.formatter()
	if len(t.openCalls) == 0 {
		what, next := t.waitText(now)
		if what == "" {
			return nil
		}
		next += "   " + stopHint
		before := "  " + frame + " "
		// What others say of it may be long, and is what is cut.
		row := fitted(what, p.width()-1-terminal.Width(before+next)) + next
		return []string{p.style(terminal.Dim, fitted(before+strings.TrimLeft(row, "; "), p.width()-1))}
	}
	calls, room := t.openCalls, most-len(t.openCalls) // for what they have written
	if room < 0 {
		calls, room = calls[:most-1], 0
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

// waitText says for what the turn waits, and what comes next.
func (t *Transcript) waitText(now time.Time) (what, next string) {
	waited := now.Sub(t.waitingSince)
	switch {
	case t.waitingSince.IsZero(), t.answering && waited < 2*time.Second:
		return "", ""
	case t.retry != nil:
		if left := time.Duration(t.retry.WaitMS)*time.Millisecond - waited; left > 0 {
			return t.retryText(left)
		}
	}
	what = "waiting for the model"
	if t.thinking {
		what = "the model thinks"
	}
	return fmt.Sprintf("%s, %d s", what, max(waited, 0)/time.Second), ""
}

// stateSpans is what stands at the right of a call that is not shown yet.
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

// newest are the rows with what a call has written or said last.
func (t *Transcript) newest(c *call, most int) []string {
	text := visible.RenderTerminal(lastBytes(c.output.text, 8<<10))
	if text == "" {
		text = c.note
	}
	lines := linesOf(text)
	lines = lines[max(len(lines)-most, 0):]
	if len(lines) == 0 {
		return nil
	}
	rows := t.formatter().quote(terminal.Dim, clipped(lines))
	return rows[max(len(rows)-most, 0):]
}
