package session_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/session"
)

// chain seals one event for each of the named sessions, in that order.
func chain(sessions ...string) []session.Event {
	var (
		events []session.Event
		prev   [32]byte
		last   = map[string][32]byte{}
	)
	for i, id := range sessions {
		e := session.Seal(session.Draft{
			Session: id, Type: session.TypeMessage, Turn: 1, Step: i, Call: "c",
			Body: json.RawMessage(fmt.Sprintf(`{"n":%d}`, i)),
		}, uint64(i+1), time.Unix(int64(i), 0), prev, last[id])
		prev, last[id] = e.Hash, e.Hash
		events = append(events, e)
	}
	return events
}

func sequence(events []session.Event) iter.Seq2[session.Event, error] {
	return func(yield func(session.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// only returns the events of one session.
func only(events []session.Event, id string) []session.Event {
	return slices.DeleteFunc(slices.Clone(events), func(e session.Event) bool { return e.Session != id })
}

func TestVerifySound(t *testing.T) {
	events := chain("a", "b", "a", "a", "b")
	events[0].Body, events[0].Salt = nil, nil // deleted
	for _, test := range []struct {
		name   string
		verify func(iter.Seq2[session.Event, error]) (session.Report, error)
		events []session.Event
		want   session.Report
	}{
		{"a store", session.VerifyStore, events, session.Report{Events: 5, Deleted: 1, Head: events[4].Hash}},
		{"a session", session.VerifySession, only(events, "a"), session.Report{Events: 3, Deleted: 1, Head: events[3].Hash}},
		{"an empty store", session.VerifyStore, nil, session.Report{}},
		{"an empty session", session.VerifySession, nil, session.Report{}},
	} {
		if got, err := test.verify(sequence(test.events)); !reflect.DeepEqual(got, test.want) || err != nil {
			t.Errorf("%s: got %+v, %v; want %+v", test.name, got, err, test.want)
		}
	}
}

func TestVerifyFinds(t *testing.T) {
	// Event 4 is the fourth of the store and the second of session b.
	edit := func(f func(e *session.Event)) func([]session.Event) []session.Event {
		return func(events []session.Event) []session.Event {
			for i := range events {
				if events[i].Seq == 4 {
					f(&events[i])
				}
			}
			return events
		}
	}
	remove := func(match func(session.Event) bool) func([]session.Event) []session.Event {
		return func(events []session.Event) []session.Event { return slices.DeleteFunc(events, match) }
	}
	for _, test := range []struct {
		name    string
		tamper  func([]session.Event) []session.Event
		store   uint64 // where VerifyStore finds it
		session uint64 // where VerifySession finds it in session b; 0: not there
	}{
		{"edited body", edit(func(e *session.Event) { e.Body = json.RawMessage(`{"n":9}`) }), 4, 4},
		{"emptied body", edit(func(e *session.Event) { e.Body = json.RawMessage{} }), 4, 4},
		{"changed salt", edit(func(e *session.Event) { e.Salt[0]++ }), 4, 4},
		{"removed salt", edit(func(e *session.Event) { e.Salt = nil }), 4, 4},
		{"byte moved from body to salt", edit(func(e *session.Event) {
			e.Salt, e.Body = append(slices.Clone(e.Salt), e.Body[0]), e.Body[1:]
		}), 4, 4},
		{"byte moved from salt to body", edit(func(e *session.Event) {
			e.Body = append(json.RawMessage{e.Salt[15]}, e.Body...)
			e.Salt = e.Salt[:15]
		}), 4, 4},
		{"removed body", edit(func(e *session.Event) { e.Body, e.Salt = nil, nil }), 4, 4},
		{"edited seq", edit(func(e *session.Event) { e.Seq = 40 }), 4, 40},
		{"edited session", edit(func(e *session.Event) { e.Session = "a" }), 4, 4},
		{"edited time", edit(func(e *session.Event) { e.Time = e.Time.Add(1) }), 4, 4},
		{"edited type", edit(func(e *session.Event) { e.Type = session.TypeToolResult }), 4, 4},
		{"edited turn", edit(func(e *session.Event) { e.Turn++ }), 4, 4},
		{"edited step", edit(func(e *session.Event) { e.Step++ }), 4, 4},
		{"edited call", edit(func(e *session.Event) { e.Call = "d" }), 4, 4},
		{"edited digest", edit(func(e *session.Event) { e.Digest[31]++ }), 4, 4},
		{"edited prev", edit(func(e *session.Event) { e.Prev[31]++ }), 4, 4},
		{"edited session prev", edit(func(e *session.Event) { e.SessionPrev[31]++ }), 4, 4},
		{"edited hash", edit(func(e *session.Event) { e.Hash[31]++ }), 4, 4},
		{"edited, with a new hash", edit(func(e *session.Event) {
			e.Turn++
			e.Hash = e.ComputeHash()
		}), 5, 6},
		{"edited body, with a new digest and hash", edit(func(e *session.Event) {
			e.Body = json.RawMessage(`{"n":9}`)
			e.Digest = session.BodyDigest(e.Salt, e.Body)
			e.Hash = e.ComputeHash()
		}), 5, 6},
		{"bodies swapped", func(events []session.Event) []session.Event {
			x, y := &events[len(events)-3], &events[len(events)-1]
			x.Body, y.Body = y.Body, x.Body
			x.Salt, y.Salt = y.Salt, x.Salt
			return events
		}, 4, 2},
		{"events swapped", func(events []session.Event) []session.Event {
			n := len(events)
			events[n-1], events[n-2] = events[n-2], events[n-1]
			return events
		}, 5, 6},
		{"removed in the middle", remove(func(e session.Event) bool { return e.Seq == 4 }), 4, 6},
		{"removed at the beginning", remove(func(e session.Event) bool { return e.Seq <= 2 }), 1, 4},
		{"removed session", remove(func(e session.Event) bool { return e.Session == "a" }), 1, 0},
		{"doubled", func(events []session.Event) []session.Event {
			return append(events, events[len(events)-1])
		}, 7, 6},
		{"inserted", func(events []session.Event) []session.Event {
			// Sealed as well as possible without changing the later events.
			at := slices.IndexFunc(events, func(e session.Event) bool { return e.Seq == 4 })
			before := events[at]
			forged := session.Seal(session.Draft{Session: "b", Type: session.TypeMessage},
				5, before.Time, before.Hash, before.Hash)
			return slices.Insert(events, at+1, forged)
		}, 6, 6},
	} {
		t.Run(test.name, func(t *testing.T) {
			fresh := func() []session.Event { return chain("a", "b", "a", "b", "a", "b") }
			check := func(what string, err error, want uint64) {
				t.Helper()
				if want == 0 {
					if err != nil {
						t.Errorf("%s: %v", what, err)
					}
					return
				}
				if e, ok := errors.AsType[*session.ChainError](err); !ok || e.Seq != want {
					t.Errorf("%s: got %v, want a break at event %d", what, err, want)
				}
			}
			_, err := session.VerifyStore(sequence(test.tamper(fresh())))
			check("store", err, test.store)
			_, err = session.VerifySession(sequence(test.tamper(only(fresh(), "b"))))
			check("session", err, test.session)
			// A reader of the session gets the broken event as an error.
			tampered, got := test.tamper(only(fresh(), "b")), 0
			err = nil
			for _, failed := range session.VerifyEach(sequence(tampered)) {
				if err = failed; err == nil {
					got++
				}
			}
			check("reading", err, test.session)
			for i, e := range tampered {
				if e.Seq == test.session && i < got && test.name != "doubled" {
					t.Errorf("event %d is read", e.Seq)
				}
			}
		})
	}
}

func TestVerifyPassesErrorsOn(t *testing.T) {
	mine := errors.New("mine")
	events := chain("a", "a")
	report, err := session.VerifyStore(func(yield func(session.Event, error) bool) {
		if yield(events[0], nil) {
			yield(session.Event{}, mine)
		}
	})
	if err != mine || report.Events != 1 {
		t.Errorf("got %+v, %v", report, err)
	}
}

// TestTheBeginningIsRecordedWithWhatComesFirst checks that a session without events leaves
// nothing behind, and that after a failed write the next one records the beginning.
func TestTheBeginningIsRecordedWithWhatComesFirst(t *testing.T) {
	store := &keeping{}
	log := session.NewLog(store, "s", time.Now)
	log.SetRedactor(covers("hunter2"))
	var shown []string
	log.Observe(func(e session.Event) { shown = append(shown, string(e.Type)) })
	log.Begin(session.Draft{Type: session.TypeSessionStarted, Body: json.RawMessage(`{"workspace":"hunter2"}`)})
	if len(store.drafts) != 0 {
		t.Fatalf("%d events are recorded", len(store.drafts))
	}
	store.fails = errors.New("no space left on device")
	message := session.Draft{Type: session.TypeMessage, Body: json.RawMessage(`{}`)}
	if _, err := log.Append(t.Context(), message); !errors.Is(err, store.fails) {
		t.Errorf("got %v", err)
	}
	store.fails = nil
	for range 2 {
		events, err := log.Append(t.Context(), message)
		if err != nil || len(events) != 1 || events[0].Type != session.TypeMessage {
			t.Errorf("got %d events, %v", len(events), err)
		}
	}
	if got := strings.Join(shown, " "); got != "session.started message message" || len(store.drafts) != 3 ||
		store.drafts[0].Session != "s" || strings.Contains(string(store.drafts[0].Body), "hunter2") {
		t.Errorf("shown are %s, and recorded %+v", got, store.drafts)
	}
}
