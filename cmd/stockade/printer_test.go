package main

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal/terminaltest"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/transcript"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

func eventOf(typ session.Type, body any) session.Event {
	return session.Event{Header: session.Header{Type: typ}, Body: json.RawMessage(tool.Marshal(body))}
}

// terminalOf is a terminal whose stdout goes to out.
func terminalOf(out io.Writer) *stdio {
	return &stdio{out: out, err: io.Discard, outTTY: true, outColumns: func() int { return 60 }, env: func(string) string { return "" }}
}

// TestAnAnswerInPiecesIsHarmless, and what it shows is what it says.
func TestAnAnswerInPiecesIsHarmless(t *testing.T) {
	print := func(out io.Writer, text string) {
		p := newPrinter(terminalOf(out), transcript.Options{HintText: hintText})
		for _, c := range text {
			p.show(eventOf(session.TypeDelta, session.Delta{Text: string(c)}))
		}
		p.show(eventOf(session.TypeStepEnded, session.StepEnded{}))
	}
	for _, v := range terminaltest.Vectors() {
		if !utf8.ValidString(v.Text) {
			continue // JSON brings none
		}
		out := &terminaltest.Emulator{Columns: 60}
		if print(out, v.Text); out.Acts != nil {
			t.Errorf("%s: it did more than print: %q", v.Name, out.Acts)
		}
		past := &terminaltest.Emulator{Columns: 60, Wide: true}
		printReplay(&stdio{err: past, columns: func() int { return 60 }}, []transcript.Part{{Answer: v.Text}})
		for _, row := range past.Rows() {
			if !strings.HasPrefix(row.Text, "< ") && !strings.HasPrefix(row.Text, "<   ") || row.Wrapped {
				t.Errorf("%s: of the past it has %q", v.Name, row.Text)
			}
		}
		if past.Acts != nil {
			t.Errorf("%s: of the past it did more than print: %q", v.Name, past.Acts)
		}
	}
	const marks = "Vie\u0323\u0302t \u26a0\ufe0f"
	var out bytes.Buffer
	if print(&out, marks); out.String() != marks+"\n" {
		t.Errorf("in pieces it is %q", out.String())
	}
}

// TestAVoidAnswerIsNotPrinted where it could be waited for.
func TestAVoidAnswerIsNotPrinted(t *testing.T) {
	events := []session.Event{
		eventOf(session.TypeDelta, session.Delta{Text: "Hel"}), eventOf(session.TypeRestart, session.Restart{Error: "broke off"}),
		eventOf(session.TypeDelta, session.Delta{Text: "Hello."}), eventOf(session.TypeStepEnded, session.StepEnded{}),
	}
	for _, tty := range []bool{false, true} {
		var out bytes.Buffer
		s := terminalOf(&out)
		s.outTTY = tty
		p := newPrinter(s, transcript.Options{HintText: hintText})
		for _, e := range events {
			p.show(e)
		}
		if out.String() != "Hello.\n" {
			t.Errorf("on a terminal (%v) it is %q", tty, out.String())
		}
	}
}
