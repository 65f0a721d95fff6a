package main

import (
	"fmt"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/words"
	"github.com/stockade-dev/stockade/host/instructions"
	"github.com/stockade-dev/stockade/host/session"
)

// tellInstructions says what the model is told of AGENTS.md, at the start and when
// the file is another.
func (t *turns) tellInstructions(again bool) {
	f, err := t.Instructions()
	switch {
	case again && (err != nil || f == t.instructions):
	case err != nil:
		t.a.s.note("%v", err)
	case f.Name != "" && !t.a.flags.quiet:
		t.a.s.note("%s", instructionsWords(f, again))
	}
	t.instructions = f
}

// instructionsWords says how much of a file was read.
func instructionsWords(f instructions.File, again bool) string {
	said := f.Name + " read"
	if again {
		said += " again"
	}
	said += ", " + words.Bytes(f.Bytes)
	if f.Next > 0 {
		said += fmt.Sprintf(", of which the model gets %s", words.Bytes(int64(len(f.Text))))
	}
	if f.Hidden > 0 {
		said += fmt.Sprintf("; the model gets codes for %s of it that nobody sees", words.Plural(f.Hidden, "character"))
	}
	return said
}

// seeBrief looks whether a file of the project is told anew in this event.
func (t *turns) seeBrief(e session.Event) {
	if m, ok := e.Message(); ok && e.Type == session.TypeMessage {
		if _, ok := m.Brief(); ok {
			t.tellInstructions(true)
		}
	}
}
