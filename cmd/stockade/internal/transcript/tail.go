package transcript

import (
	"iter"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/session"
)

const (
	// tailTurns is how many turns the end of a conversation has.
	tailTurns = 2
	// What is kept of each of them, beside its prompt.
	maxTailEvents = 500
	maxTailBytes  = 2 << 20
)

// pastTurn is the end of a turn.
type pastTurn struct {
	prompt session.Event
	before int // calls before those that are kept
	events []session.Event
	bytes  int
}

// Tail is the end of a conversation, for who goes on with it: the last turns, their calls
// as one row each, in at most so many rows and lines of answers, and how many calls the
// session has had. It reads all events of the session, and keeps a few.
func Tail(events iter.Seq2[session.Event, error], o Options, most int) (out []Part, calls int, _ error) {
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
		case session.TypeToolCall:
			calls++
		case session.TypeMessage, session.TypeCallIntended, session.TypeDecision, session.TypeCallChanges, session.TypeToolResult, session.TypeTurnEnded:
		default:
			continue
		}
		if len(turns) == 0 {
			continue // single calls, before any conversation
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
	return t.lastRows(out, most), calls, nil
}

// lastRows leaves at most so many rows and lines, the last ones, and says if others are left
// out.
func (t *Transcript) lastRows(in []Part, most int) (out []Part) {
	for i := len(in) - 1; i >= 0; i-- {
		p := in[i]
		length := len(p.Rows) + strings.Count(p.Answer, "\n")
		if length <= most {
			out, most = append(out, p), most-length
			continue
		}
		if p.Answer != "" {
			lines := strings.SplitAfter(p.Answer, "\n")
			out = append(out, Part{Answer: strings.Join(lines[len(lines)-1-most:], "")})
		} else {
			out = append(out, Part{Rows: p.Rows[length-most:]})
		}
		out = append(out, Part{Rows: []string{t.formatter().style(terminal.Dim, "  …")}})
		break
	}
	slices.Reverse(out)
	return out
}
