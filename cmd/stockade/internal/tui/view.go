package tui

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/prompt"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
)

var frames = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

// Limits of the rows below the answer; more are left out, and queued texts are counted.
const (
	maxRunningRows = 8 // rows of running calls
	maxQueuedRows  = 3
	maxEditorRows  = 8 // rows of the editor
)

// A terminal that becomes smaller breaks the drawn rows. Rows that no longer fit move into its
// history, and nothing removes them from there. While somebody drags the edge of the terminal,
// the answer has few rows, so that this happens once and not at each step.
const (
	maxShrinkingRows = 2           // rows of the answer during that time
	resizeDelay      = time.Second // time without a change of the size that ends it
)

// View implements tea.Model: it returns the moving part, which fits the rows of the terminal.
func (m *model) View() tea.View {
	var cursor *tea.Cursor
	below := m.question()
	if below == nil {
		below = m.running()
	}
	below = append(below, m.queued()...)
	ed := m.o.Editor
	if m.openQuestion != nil && m.openQuestion.why != nil {
		ed = m.openQuestion.why
	}
	if ed != nil && !m.leaving {
		typed := strings.Split(ed.View(m.room(), min(maxEditorRows, m.height-1)), "\n")
		if c := ed.Cursor(); c != nil {
			at := *c
			at.Y += len(below)
			cursor = &at
		}
		below = append(below, typed...)
		below = append(below, m.noticeRows()...)
	}
	room := m.height - max(m.flushingRows, 1)
	if over := len(below) - room; over > 0 { // a question folds itself; this is the last resort
		below = below[over:]
		if cursor != nil {
			cursor.Y = max(cursor.Y-over, 0)
		}
	}
	var above []string
	if m.answer != nil {
		maxRows := max(room-len(below), 0)
		if m.now().Sub(m.shrunk) < resizeDelay {
			maxRows = min(maxRows, maxShrinkingRows)
		}
		above = m.answer.Rest(maxRows)
		if cursor != nil {
			cursor.Y += len(above)
		}
	}
	rows := append(above, below...)
	if m.suspended { // the rows stay on the screen
		rows, cursor = []string{""}, nil
	}
	for i, row := range rows {
		rows[i] = ansi.Truncate(row, m.width, "")
	}
	m.region.height, m.region.peak = len(rows), max(m.region.peak, len(rows))
	m.drawnWidths = m.drawnWidths[:0]
	for i, row := range rows {
		if cursor == nil || i < cursor.Y {
			m.drawnWidths = append(m.drawnWidths, ansi.StringWidth(row))
		}
	}
	v := tea.NewView(strings.Join(rows, "\n"))
	v.Cursor = cursor
	return v
}

// question returns the rows of the open question, with its keys; nil if none is open.
func (m *model) question() []string {
	q := m.openQuestion
	if q == nil {
		return nil
	}
	v := m.questionView()
	rows, keys := q.prompt.Rows(v), q.prompt.Keys(v)
	if q.why != nil {
		keys = []string{terminal.Style(m.o.Color, terminal.Bold, "  "+prompt.WhyLabel) + m.dim(prompt.WhyHint)}
	}
	if over := len(rows) + len(keys) - max(v.Height, 1); over > 0 && len(rows) > 2 { // the question cannot fold itself to so few rows
		rest := rows[min(over+2, len(rows)):]
		rows = append([]string{rows[0], m.dim("  … there are too few rows here: ? and a larger terminal show more")}, rest...)
	}
	rows = append(rows, keys...)
	switch {
	case m.isDrafting():
		rows = append(rows, m.dim("  Enter sends what you type after this, Esc sets it aside; then answer"))
	case q.invalidKey:
		rows = append(rows, q.prompt.InvalidAnswer(v))
	}
	return append(rows, "")
}

// running returns the rows about the running work, with the key that stops it; nil: nothing
// runs.
func (m *model) running() []string {
	if !m.busy {
		return nil
	}
	frame := frames[m.ticks%len(frames)]
	rows := m.o.Transcript.Running(m.now(), frame, min(maxRunningRows, m.height-4))
	switch {
	case rows != nil:
	case m.answer != nil && m.height > 4: // the row shows the wait when the answer pauses
		rows = []string{m.dim("  " + frame + " Ctrl-C stops it")}
	case m.answer == nil && m.now().Sub(m.since) > time.Second:
		rows = []string{fmt.Sprintf("  %s %d s   Ctrl-C stops it", frame, int(m.now().Sub(m.since).Seconds()))}
	}
	if rows != nil {
		rows = append(rows, "")
	}
	return rows
}

// queued returns the rows with the texts that wait to be carried out.
func (m *model) queued() []string {
	var rows []string
	for i, typed := range m.queue {
		if i == maxQueuedRows {
			return append(rows, m.dim(fmt.Sprintf("  and %d more", len(m.queue)-maxQueuedRows)))
		}
		line, _, _ := strings.Cut(terminal.Line(strings.TrimSpace(typed)), "\n")
		label := "  queued: "
		if m.steers(typed) {
			label = "  for its next step (Esc takes it back): "
		}
		rows = append(rows, m.dim(ansi.Truncate(label+line, m.room(), "…")))
	}
	return rows
}

// noticeRows returns the rows of the notice below the editor, or else about the mode of the
// chat; nil: there is none.
func (m *model) noticeRows() []string {
	text := "Ctrl-C again leaves. " + m.o.LeaveHint()
	switch {
	case m.busy && !m.stoppingSince.IsZero() && m.now().Sub(m.stoppingSince) >= doublePress:
		text = "It is being stopped. Ctrl-C again leaves without waiting for it. " + m.o.LeaveHint()
	case m.warnedCtrlD:
		text = "Ctrl-C stops it; Ctrl-D leaves when nothing runs."
	case !m.warnedCtrlC:
		if text = m.o.Mode(); text == "" {
			return nil
		}
	}
	rows := terminal.Wrap(text, max(m.room()-2, 1))
	for i, row := range rows {
		rows[i] = m.dim("  " + row)
	}
	return rows
}

func (m *model) dim(row string) string { return terminal.Style(m.o.Color, terminal.Dim, row) }
