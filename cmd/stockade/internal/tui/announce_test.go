package tui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// A question that waits calls the person once, with nothing of anybody else's.
func TestAQuestionThatWaitsCalls(t *testing.T) {
	d := newDesk(80, 24)
	sent := func(after time.Duration) string {
		d.time = d.time.Add(after)
		cmd := d.m.announce()
		if cmd == nil {
			return ""
		}
		raw, _ := cmd().(tea.RawMsg)
		return fmt.Sprint(raw.Msg)
	}
	if got := sent(time.Hour); got != "" {
		t.Errorf("without a question: %q", got)
	}
	d.does("ask")
	if got := sent(announceDelay - 1); got != "" {
		t.Errorf("at once: %q", got)
	}
	d.does("?") // a key: somebody is there
	if got := sent(announceDelay - 1); got != "" {
		t.Errorf("after a key: %q", got)
	}
	if got := sent(1); got != "\a"+ansi.Notify(waitingTitle)+ansi.WindowOp(22, 2)+ansi.SetWindowTitle(waitingTitle) || strings.ContainsFunc(waitingTitle, func(r rune) bool { return r < ' ' || r > '~' }) {
		t.Errorf("it calls with %q", got)
	}
	if got := sent(time.Hour); got != "" {
		t.Errorf("it calls again: %q", got)
	}
	d.m.closeQuestion(d.asked)
	if got := sent(0); got != ansi.SetWindowTitle("Stockade")+ansi.WindowOp(23, 2) {
		t.Errorf("it ends with %q", got)
	}
	if got := sent(time.Hour); got != "" {
		t.Errorf("it ends twice: %q", got)
	}
	d.m.o.Editor = nil // a run, which no person has to come back to
	d.does("ask")
	if got := sent(time.Hour); got != "" {
		t.Errorf("in a run: %q", got)
	}
}
