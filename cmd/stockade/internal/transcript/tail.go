package transcript

import (
	"iter"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/session"
)

const (
	tailTurns = 2 // the number of turns that the tail of a conversation shows
	// Limits of each turn: the number of its events, and the bytes of their bodies, without
	// the prompt. Earlier events are dropped, but never the last one.
	maxTailEvents = 500
	maxTailBytes  = 2 << 20
)

// pastTurn holds the last events of one turn.
type pastTurn struct {
	prompt session.Event
	before int // number of calls in the session before the first of events
	events []session.Event
	bytes  int
}

// Tail returns the end of a conversation for a person who resumes it: the last turns, each
// call in one row, at most maxRows rows and lines of answers together, and one row for those
// left out. calls is the number of calls of the session. Tail reads all events and keeps a few.
func Tail(events iter.Seq2[session.Event, error], o Options, maxRows int) (out []Part, calls int, _ error) {
	var turns []*pastTurn
	for e, err := range events {
		if err != nil {
			return nil, calls, err
		}
		switch e.Type {
		case session.TypeTurnStarted:
			turns = append(turns, &pastTurn{prompt: e, before: calls})
			turns = turns[max(len(turns)-tailTurns, 0):]
			continue
		case session.TypeRewound:
			r, _ := body[session.Rewound](e)
			turns = slices.DeleteFunc(turns, func(t *pastTurn) bool { return t.prompt.Turn >= r.Turn })
			continue
		case session.TypeToolCall:
			calls++
		case session.TypeMessage, session.TypeCallIntended, session.TypeDecision, session.TypeCallChanges, session.TypeToolResult, session.TypeTurnEnded:
		default:
			continue
		}
		if len(turns) == 0 {
			continue // calls outside of any conversation
		}
		t := turns[len(turns)-1]
		t.events, t.bytes = append(t.events, e), t.bytes+len(e.Body)
		for len(t.events) > maxTailEvents || t.bytes > maxTailBytes && len(t.events) > 1 {
			if t.bytes -= len(t.events[0].Body); t.events[0].Type == session.TypeToolCall {
				t.before++
			}
			t.events = t.events[1:]
		}
	}
	o.Replay, o.Quiet = true, false
	t := New(o)
	t.compact = true
	for _, turn := range turns {
		out = append(out, t.Show(turn.prompt)...)
		t.number = turn.before
		for _, e := range turn.events {
			out = append(out, t.Show(e)...)
		}
	}
	if rest := t.closeCalls(); rest != nil {
		out = append(out, Part{Rows: rest})
	}
	return t.lastRows(out, maxRows), calls, nil
}

// lastRows returns the last parts, at most maxRows rows and lines. One more row marks the
// place where earlier parts were left out.
func (t *Transcript) lastRows(in []Part, maxRows int) (out []Part) {
	for i := len(in) - 1; i >= 0; i-- {
		p := in[i]
		length := len(p.Rows) + strings.Count(p.Answer, "\n")
		if length <= maxRows {
			out, maxRows = append(out, p), maxRows-length
			continue
		}
		if p.Answer != "" {
			lines := strings.SplitAfter(p.Answer, "\n")
			out = append(out, Part{Answer: strings.Join(lines[len(lines)-1-maxRows:], "")})
		} else {
			out = append(out, Part{Rows: p.Rows[length-maxRows:]})
		}
		out = append(out, Part{Rows: []string{t.formatter().style(terminal.Dim, "  …")}})
		break
	}
	slices.Reverse(out)
	return out
}
