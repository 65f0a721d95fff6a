package main

import (
	"fmt"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/humanize"
	"github.com/stockade-dev/stockade/host/instructions"
	"github.com/stockade-dev/stockade/host/session"
)

// tellInstructions prints a note about the size of AGENTS.md, or of CLAUDE.md if that is read
// instead: at the start, and with again after the file has changed.
func (t *conversation) tellInstructions(again bool) {
	f, err := t.Instructions()
	switch {
	case again && (err != nil || f == t.instructions):
	case err != nil:
		t.a.s.note("%v", err)
	case f.Name != "" && !t.a.flags.quiet:
		t.a.s.note("%s", instructionsText(f, again))
	}
	t.instructions = f
}

// instructionsText returns the note about AGENTS.md, or CLAUDE.md, with its size. If the file
// is cut, the note has the size of the part that the model gets.
func instructionsText(f instructions.File, again bool) string {
	text := f.Name + " read"
	if again {
		text += " again"
	}
	text += ", " + humanize.Bytes(f.Bytes)
	if f.NextLine > 0 {
		text += fmt.Sprintf(", of which the model gets %s", humanize.Bytes(int64(len(f.Text))))
	}
	if f.HiddenCount > 0 {
		text += fmt.Sprintf("; the model gets codes for %s that are invisible", humanize.Plural(f.HiddenCount, "character"))
	}
	return text
}

// checkBrief prints a note if an event tells the model that AGENTS.md has changed.
func (t *conversation) checkBrief(e session.Event) {
	if m, ok := e.Message(); ok && e.Type == session.TypeMessage {
		if _, ok := m.Brief(); ok {
			t.tellInstructions(true)
		}
	}
}
