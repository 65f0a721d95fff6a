package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

func event(turn int, typ session.Type, call string, body any) session.Event {
	data, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return session.Seal(session.Draft{Type: typ, Turn: turn, Step: 1, Call: call, Body: data}, 1, time.Now(), [32]byte{}, [32]byte{})
}

func said(turn int, kind llm.Kind, text string) session.Event {
	return event(turn, session.TypeMessage, "", llm.Message{Kind: kind, Content: text})
}

func called(turn int, id string) session.Event {
	return event(turn, session.TypeToolCall, id, llm.CallMessage(llm.NewCall(id, "ls", "{}")))
}

func returned(turn int, id string) session.Event {
	return event(turn, session.TypeToolResult, id, llm.ResultMessage(id, "ls", tool.Result{Output: tool.Text("of " + id)}))
}

func deleted(e session.Event) session.Event {
	e.Body, e.Salt = nil, nil
	return e
}

func of(events ...session.Event) iter.Seq2[session.Event, error] {
	return func(yield func(session.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// outline returns one word for each message of a conversation.
func outline(t testing.TB, messages []llm.Message) []string {
	var out []string
	for _, m := range messages {
		switch m.Kind {
		case llm.ToolCall:
			out = append(out, "call:"+decode[llm.CallData](t, m.Data).ID)
		case llm.ToolResult:
			data := decode[llm.ResultData](t, m.Data)
			word := "result:"
			if strings.Contains(data.Output, string(tool.CodeInterrupted)) {
				word = "interrupted:"
			}
			out = append(out, word+data.CallID)
		default:
			out = append(out, string(m.Kind)+":"+m.Content)
		}
	}
	return out
}

func TestHistory(t *testing.T) {
	for name, c := range map[string]struct {
		events []session.Event
		want   string
		turn   int
	}{
		"an empty session": {nil, "", 0},
		"results come in the order of the calls": {[]session.Event{
			said(1, llm.User, "q"), called(1, "a"), called(1, "b"), returned(1, "b"), returned(1, "a"), said(1, llm.Assistant, "x"),
		}, "user:q call:a call:b result:a result:b assistant:x", 1},
		"a step without text behind another": {[]session.Event{
			said(1, llm.User, "q"), called(1, "a"), called(1, "b"), returned(1, "b"), returned(1, "a"), called(1, "c"), called(1, "d"), returned(1, "d"), returned(1, "c"),
		}, "user:q call:a call:b result:a result:b call:c call:d result:c result:d", 1},
		"a crash during a call": {[]session.Event{
			said(1, llm.User, "q"), called(1, "a"), called(1, "b"), returned(1, "b"),
		}, "user:q call:a call:b interrupted:a result:b", 1},
		"and the session goes on": {[]session.Event{
			said(1, llm.User, "q"), called(1, "a"), said(2, llm.User, "r"), said(2, llm.Assistant, "x"),
		}, "user:q call:a interrupted:a user:r assistant:x", 2},
		"a result that was found to be missing later": {[]session.Event{
			said(1, llm.User, "q"), called(1, "a"), event(1, session.TypeToolResult, "a", llm.ResultMessage("a", "ls", interruptedResult("ls"))), said(2, llm.User, "r"),
		}, "user:q call:a interrupted:a user:r", 2},
		"a call whose text is deleted": {[]session.Event{
			said(1, llm.User, "q"), deleted(called(1, "a")), called(1, "b"), returned(1, "a"), returned(1, "b"), said(1, llm.Assistant, "x"),
		}, "user:q call:b result:b assistant:x", 1},
		"a result whose text is deleted": {[]session.Event{
			said(1, llm.User, "q"), called(1, "a"), deleted(returned(1, "a")), said(1, llm.Assistant, "x"),
		}, "user:q call:a interrupted:a assistant:x", 1},
		"everything deleted": {[]session.Event{
			deleted(said(1, llm.System, "s")), deleted(said(1, llm.User, "q")), deleted(called(3, "a")), deleted(returned(3, "a")),
		}, "", 3},
		"a person's own calls": {[]session.Event{
			called(0, "p"), returned(0, "p"), said(1, llm.User, "q"), called(0, "p2"), returned(0, "p2"), said(1, llm.Assistant, "x"),
			called(0, "p3"), returned(0, "p3"), event(0, session.TypeMessage, "", llm.BriefMessage("undo", "told of p3")), said(2, llm.User, "r"),
		}, "user:q assistant:x user:told of p3 user:r", 2},
		"a result that no call asked for": {[]session.Event{
			said(1, llm.User, "q"), returned(1, "ghost"), said(1, llm.Assistant, "x"),
		}, "user:q assistant:x", 1},
		"what a command wrote where a terminal shows something else": {[]session.Event{
			said(1, llm.User, "q"), called(1, "a"),
			event(1, session.TypeToolResult, "a", llm.ResultMessage("a", "ls", tool.Result{Output: tool.Text("100%"), RawOutput: "99%\r100%"})),
		}, "user:q call:a result:a", 1},
		"events that are no messages": {[]session.Event{
			event(1, session.TypeTurnStarted, "", session.TurnStarted{Prompt: "q"}), said(1, llm.User, "q"), called(1, "a"),
			event(1, session.TypeDecision, "a", session.Decision{}), event(1, session.TypeCallIntended, "a", session.Intent{}), returned(1, "a"),
			event(1, session.TypeStepEnded, "", session.StepEnded{}), event(1, session.TypeTurnEnded, "", session.TurnEnded{}),
		}, "user:q call:a result:a", 1},
	} {
		t.Run(name, func(t *testing.T) {
			past, err := ReadConversation(of(c.events...), 0)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(outline(t, past.messages), " "); got != c.want || past.turn != c.turn {
				t.Errorf("got  %s, turn %d\nwant %s, turn %d", got, past.turn, c.want, c.turn)
			}
			if m := past.messages; len(m) > 0 && strings.Contains(string(m[len(m)-1].Data), "99%") {
				t.Errorf("it has what is never sent: %s", m[len(m)-1].Data)
			}
			checkPairs(t, past.messages)
		})
	}
}

func TestHistoryTellsThatTheLogCannotBeRead(t *testing.T) {
	bad := errors.New("disk I/O error")
	_, err := ReadConversation(func(yield func(session.Event, error) bool) {
		_ = yield(said(1, llm.User, "q"), nil) && yield(session.Event{}, bad)
	}, 0)
	if !errors.Is(err, bad) {
		t.Errorf("got %v", err)
	}
}

func TestInterruptRecordsAResultForACallWithoutOne(t *testing.T) {
	s := &memory{}
	open := session.OpenCall{Session: "s", Turn: 1, Step: 2, Call: "a", Time: time.UnixMilli(1705680000000), Name: "bash"}
	if err := RecordInterrupted(t.Context(), s, open); err != nil {
		t.Fatal(err)
	}
	e := s.events[0]
	m, ok := e.Message()
	if !ok || e.Call != "a" || e.Turn != 1 || e.Step != 2 || e.Session != "s" || e.Type != session.TypeToolResult {
		t.Errorf("got %+v", e)
	}
	if data := decode[llm.ResultData](t, m.Data); data.Success || data.Name != "bash" || !strings.Contains(data.Output, "whether it had any effect is not known") ||
		!strings.Contains(data.Output, `"timestamp":1705680000000,`) {
		t.Errorf("got %+v", data)
	}
}

func messages(turns ...int) []llm.Message {
	out := []llm.Message{{Kind: llm.System, Content: strings.Repeat("s", 50)}}
	id := 0
	for n, steps := range turns {
		out = append(out, llm.Message{Kind: llm.User, Content: fmt.Sprintf("prompt %d", n)})
		for range steps {
			id++
			name := fmt.Sprintf("c%d", id)
			data, _ := json.Marshal(llm.CallData{ID: name})
			out = append(out, llm.Message{Kind: llm.ToolCall, Data: data},
				llm.ResultMessage(name, "ls", tool.Result{Output: tool.Text(strings.Repeat("x", 1000))}))
		}
		out = append(out, llm.Message{Kind: llm.Assistant, Content: fmt.Sprintf("answer %d", n)})
	}
	return out
}

func total(messages []llm.Message) (n int) {
	for _, m := range messages {
		n += size(m)
	}
	return n
}

func fitted(messages []llm.Message, budget int) []llm.Message {
	out, _ := fit(messages, budget)
	return out
}

// TestRoomIsMadeRarely: requests stay within the limit, most begin like the one before,
// and they are the same in a resumed session.
func TestRoomIsMadeRarely(t *testing.T) {
	for name, c := range map[string]struct {
		turns []int // steps of each
		room  int   // characters, in steps of some 1,200
	}{
		"one long turn":       {[]int{200}, 80},
		"many turns":          {slices.Repeat([]int{1, 0, 3}, 40), 30},
		"a long one behind":   {[]int{2, 3, 100}, 45},
		"one with large ends": {slices.Repeat([]int{30}, 4), 25},
	} {
		t.Run(name, func(t *testing.T) {
			all := messages(c.turns...)
			budget := 1200 * c.room
			known, again := Conversation{maxChars: budget}, Conversation{maxChars: budget}
			var last []llm.Message
			requests, others := 0, 0
			for _, m := range all {
				if m.Kind == llm.ToolCall || m.Kind == llm.Assistant { // the reply to a request
					known.makeRoom()
					requests++
					if total(known.messages) > budget {
						t.Fatalf("request %d has %d characters of %d", requests, total(known.messages), budget)
					}
					if len(known.messages) < len(last) || !slices.EqualFunc(last, known.messages[:len(last)], func(a, b llm.Message) bool { return bytes.Equal(a.Data, b.Data) }) {
						others++
					}
					last = slices.Clone(known.messages)
				}
				known.append(m)
				typ, call := session.TypeMessage, ""
				switch m.Kind {
				case llm.ToolCall:
					typ, call = session.TypeToolCall, decode[llm.CallData](t, m.Data).ID
				case llm.ToolResult:
					typ, call = session.TypeToolResult, decode[llm.ResultData](t, m.Data).CallID
				}
				again.add(event(1, typ, call, m))
			}
			checkPairs(t, known.messages)
			again.endStep()
			if most := total(all)/(budget/4) + 1; others == 0 || others > most {
				t.Errorf("%d of %d requests begin otherwise than the one before, at most %d need to", others, requests, most)
			}
			if diff := cmp.Diff(outline(t, known.messages), outline(t, again.messages)); diff != "" || known.leftOut != again.leftOut {
				t.Errorf("resumed it is another conversation (-was +is):\n%s%+v, %+v", diff, known.leftOut, again.leftOut)
			}
			if known.chars != total(known.messages) || known.leftOut.Chars != total(all)-known.chars {
				t.Errorf("%d characters are known, and said to be %d; %+v are left out of %d", total(known.messages), known.chars, known.leftOut, total(all))
			}
			short := 0
			for _, m := range known.messages {
				if isShortened(m) {
					short++
				}
			}
			if short != known.leftOut.Shortened {
				t.Errorf("%d messages are short, and said to be %d", short, known.leftOut.Shortened)
			}
		})
	}
}

// If nothing more can be left out, this is not tried again at each step.
func TestThereIsNotAlwaysRoom(t *testing.T) {
	p := Conversation{maxChars: 1000}
	p.append(llm.Message{Kind: llm.User, Content: strings.Repeat("p", 2000)})
	tried := 0
	for range 100 {
		before := p.retryChars
		if p.makeRoom(); p.retryChars != before {
			tried++
		}
		p.append(llm.Message{Kind: llm.Assistant, Content: "0123456789"})
	}
	if tried < 10 || tried > 1000/(1000/16)+2 {
		t.Errorf("it was tried %d times in 100 steps", tried)
	}
}

func TestFitLeavesWhatFits(t *testing.T) {
	m := messages(1, 1)
	for _, budget := range []int{total(m), total(m) + 1} {
		if diff := cmp.Diff(m, fitted(m, budget)); diff != "" {
			t.Errorf("budget %d: %s", budget, diff)
		}
	}
}

func TestFitDropsTheOldestTurnsAsAWhole(t *testing.T) {
	m := messages(1, 0, 1)
	got := outline(t, fitted(m, total(m)-1))
	want := []string{"system:" + strings.Repeat("s", 50), "user:prompt 1", "assistant:answer 1", "user:prompt 2", "call:c2", "result:c2", "assistant:answer 2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestFitKeepsTheLastBriefOfEachName(t *testing.T) {
	m := slices.Concat([]llm.Message{llm.BriefMessage("date", "Monday"), llm.BriefMessage("file", "tabs")}, messages(1)[1:],
		[]llm.Message{llm.BriefMessage("date", "Tuesday")}, messages(1)[1:])
	kept, _ := fit(m, total(m)*2/3)
	got := strings.Join(outline(t, kept), " ")
	if want := "user:tabs user:Tuesday user:prompt 0 call:c1 result:c1 assistant:answer 0"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, _ := fit(m, total(m)); len(got) != len(m) {
		t.Errorf("of what fits %d messages are left of %d", len(got), len(m))
	}
}

func TestFitShortensOldResultsOfALongTurn(t *testing.T) {
	m := messages(20)
	before := slices.Clone(m)
	got := fitted(m, 15_000)
	if diff := cmp.Diff(before, m); diff != "" {
		t.Errorf("the conversation itself was changed: %s", diff)
	}
	if total(got) > 15_000 || len(got) != len(m) {
		t.Errorf("%d characters, %d messages", total(got), len(got))
	}
	first := decode[llm.ResultData](t, got[3].Data)
	if first.CallID != "c1" || !strings.Contains(first.Output, "left out to save room") || !json.Valid([]byte(first.Output)) {
		t.Errorf("got %+v", first)
	}
	if diff := cmp.Diff(m[len(m)-recentMessages:], got[len(got)-recentMessages:]); diff != "" {
		t.Errorf("the last ones were changed: %s", diff)
	}
}

// TestFitHolds: for any conversation and any budget, system messages and the current turn
// stay, calls and results stay together and in order, and the budget holds unless the
// rest has to stay.
func TestFitHolds(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 400 {
		var turns []int
		for range rnd.IntN(6) {
			turns = append(turns, rnd.IntN(12))
		}
		m := messages(append(turns, rnd.IntN(20))...)
		if rnd.IntN(2) == 0 {
			m = m[:len(m)-1] // in the middle of a turn
		}
		budget := rnd.IntN(total(m) + 100)
		got := fitted(m, budget)
		checkPairs(t, got)

		current := m[slices.IndexFunc(m, func(x llm.Message) bool { return x.Content == fmt.Sprintf("prompt %d", len(turns)) }):]
		if got[0].Kind != llm.System || len(got) < 1+len(current) {
			t.Fatalf("budget %d: %v is all that is left of %v", budget, outline(t, got), outline(t, m))
		}
		if diff := cmp.Diff(outline(t, current), outline(t, got[len(got)-len(current):])); diff != "" {
			t.Fatalf("budget %d: the current turn: %s", budget, diff)
		}
		if len(got) > 1 && got[1].Kind != llm.User {
			t.Fatalf("budget %d: it begins with a %s", budget, got[1].Kind)
		}
		if budget == 0 || total(got) <= budget {
			continue
		}
		if len(got) != 1+len(current) {
			t.Fatalf("budget %d: %d characters, and an older turn is still there", budget, total(got))
		}
		for i := range len(got) - recentMessages {
			if got[i].Kind == llm.ToolResult && !strings.Contains(string(got[i].Data), "left out to save room") {
				t.Fatalf("budget %d: %d characters, and message %d is whole", budget, total(got), i)
			}
		}
	}
}
