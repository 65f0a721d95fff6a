package door

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/session"
)

func TestAForkEndsWithAWholeTurn(t *testing.T) {
	const (
		turn1   = "session.started turn.started message call.intended tool_result turn.ended"
		command = "tool_call call.intended tool_result" // of a person, between the turns
	)
	for _, test := range []struct {
		name, events string
		turn         int
		want         string // types of the copied events; empty: an error
		err          error
	}{
		{"all of a session", turn1 + " turn.started message turn.ended", 0, turn1 + " turn.started message turn.ended", nil},
		{"up to a turn", turn1 + " turn.started message turn.ended", 1, turn1, nil},
		{"a command after the turn", turn1 + " " + command, 1, turn1, nil},
		{"a command that still runs", turn1 + " tool_call call.intended", 0, turn1, nil},
		{"the last turn still runs", turn1 + " turn.started message", 0, turn1, nil},
		{"the last turn is asked for, and runs", turn1 + " turn.started message", 2, "", ErrNoTurn},
		{"the first turn still runs", "session.started turn.started message", 0, "", ErrNoTurn},
		{"a crash has ended a turn", "session.started turn.started message turn.started message turn.ended", 1, "", ErrNoTurn},
		{"no such turn", turn1, 2, "", ErrNoTurn},
		{"no turn at all", "session.started " + command, 0, "", ErrNoTurn},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := New(Options{})
			defer d.Close()
			st, err := d.Store(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			id, turn := session.NewID(time.Now()), 0
			for typ := range strings.FieldsSeq(test.events) {
				e := session.NewDraft(session.Type(typ), turn, 0, "", llm.Message{Kind: llm.User})
				switch e.Type {
				case session.TypeSessionStarted:
					e = session.NewDraft(e.Type, 0, 0, "", session.Started{Workspace: "/w"})
				case session.TypeTurnStarted:
					turn++
					e = session.NewDraft(e.Type, turn, 0, "", session.TurnStarted{Prompt: "p"})
				case session.TypeToolCall, session.TypeCallIntended, session.TypeToolResult:
					e.Call = "c"
				}
				e.Session = id
				if _, err := st.Append(t.Context(), e); err != nil {
					t.Fatal(err)
				}
			}
			fork, f, err := d.Fork(t.Context(), id, test.turn)
			if test.want == "" {
				if !errors.Is(err, test.err) || fork != "" {
					t.Errorf("got %v %v", f, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := strings.Replace(test.want, "session.started", "session.started session.forked", 1)
			if got := types(t, d, fork); got != want || f.Events != strings.Count(test.want, " ") {
				t.Errorf("%d events are copied:\n got %s\nwant %s", f.Events, got, want)
			}
			if _, err := session.VerifyStore(st.All(t.Context())); err != nil {
				t.Error(err)
			}
			if got := types(t, d, id); got != test.events {
				t.Errorf("the first session is changed: %s", got)
			}
		})
	}
}

func TestAChangedSessionIsNotForked(t *testing.T) {
	d := New(Options{})
	defer d.Close()
	st, err := d.Store(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	id := session.NewID(time.Now())
	for _, e := range []session.Draft{
		session.NewDraft(session.TypeSessionStarted, 0, 0, "", session.Started{}),
		session.NewDraft(session.TypeTurnStarted, 1, 0, "", session.TurnStarted{}),
		session.NewDraft(session.TypeTurnEnded, 1, 0, "", session.TurnEnded{}),
	} {
		e.Session = id
		if _, err := st.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.DeleteBodies(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	_, _, err = d.Fork(t.Context(), id, 0)
	if broken, ok := errors.AsType[*session.ChainError](err); !ok {
		t.Errorf("got %v, %v", err, broken)
	}
	if infos, err := st.Sessions(t.Context()); len(infos) != 1 || err != nil {
		t.Errorf("there are %d sessions, %v", len(infos), err)
	}
}
