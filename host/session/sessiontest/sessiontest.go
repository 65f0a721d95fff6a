// Package sessiontest is the test suite for every [session.Store].
//
// A store's own tests call [Run] with a function that opens an empty store:
//
//	func TestStore(t *testing.T) {
//		sessiontest.Run(t, func(t *testing.T) session.Store { return open(t) })
//	}
//
// The suite does not depend on how a store keeps its events. Tests of one kind of store,
// such as crashes and damaged files, are with that store.
package sessiontest

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/session"
)

// Run runs the suite. open returns a new empty store, which the suite closes.
func Run(t *testing.T, open func(t *testing.T) session.Store) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, session.Store)
	}{
		{"append returns what is read back", appendReadsBack},
		{"append places events behind one another", appendChains},
		{"append of nothing does nothing", appendNothing},
		{"append of a draft that cannot be stored stores none", appendAllOrNone},
		{"append takes any text", appendAnyText},
		{"append takes a large body", appendLarge},
		{"a missing body is not a deleted one", appendWithoutBody},
		{"images are kept for each session, until its bodies go", images},
		{"many goroutines append", appendConcurrently},
		{"sessions are apart though interleaved", interleaved},
		{"the end of a read is the end when it began", readsEnd},
		{"a session verifies without its store", verifySession},
		{"deleted bodies leave the chain whole", deleteBodies},
		{"the beginning of an id is enough", resolve},
		{"sessions are listed by activity", sessions},
		{"titles are one clean line", titles},
		{"open calls are those without a result", openCalls},
		{"a reader may stop early", stopEarly},
		{"a reader may write and read while it reads", nested},
		{"a cancelled call does nothing", cancelled},
		{"a closed store refuses", closed},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := open(t)
			t.Cleanup(func() {
				if err := store.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			})
			test.run(t, store)
		})
	}
}

// Drafts returns n drafts for a session, each with another body.
func Drafts(id string, n int) []session.Draft {
	drafts := make([]session.Draft, n)
	for i := range drafts {
		drafts[i] = session.Draft{
			Session: id, Type: session.TypeMessage, Turn: 1, Step: i + 1,
			Body: json.RawMessage(fmt.Sprintf(`{"kind":"assistant","content":"%s %d"}`, id, i)),
		}
	}
	return drafts
}

// Append appends the drafts, and fails the test on an error.
func Append(t testing.TB, store session.Store, drafts ...session.Draft) []session.Event {
	t.Helper()
	events, err := store.Append(t.Context(), drafts...)
	if err != nil {
		t.Fatalf("append: %v", err)
	}
	if len(events) != len(drafts) {
		t.Fatalf("append of %d drafts returned %d events", len(drafts), len(events))
	}
	return events
}

// Collect reads a sequence to its end, and fails the test on an error.
func Collect(t testing.TB, events iter.Seq2[session.Event, error]) []session.Event {
	t.Helper()
	var all []session.Event
	for e, err := range events {
		if err != nil {
			t.Fatalf("read: %v", err)
		}
		all = append(all, e)
	}
	return all
}

// Verify verifies the store, and checks its number of events.
func Verify(t testing.TB, store session.Store, events int) session.Report {
	t.Helper()
	report, err := session.VerifyStore(store.All(t.Context()))
	if err != nil {
		t.Fatalf("verify: %v", err)
	}
	if report.Events != uint64(events) {
		t.Fatalf("the store has %d events, want %d", report.Events, events)
	}
	return report
}

func appendReadsBack(t *testing.T, store session.Store) {
	drafts := []session.Draft{
		{Session: "a", Type: session.TypeSessionStarted, Body: json.RawMessage(`{}`)},
		{Session: "a", Type: session.TypeCallIntended, Turn: 3, Step: 7, Call: "c1", Body: json.RawMessage(`{"tool": "ls"}`)},
	}
	want := Append(t, store, drafts...)
	for i, e := range want {
		d := session.Draft{Session: e.Session, Type: e.Type, Turn: e.Turn, Step: e.Step, Call: e.Call, Body: e.Body}
		if diff := cmp.Diff(drafts[i], d); diff != "" {
			t.Errorf("event differs from draft (-want +got):\n%s", diff)
		}
		if len(e.Salt) != session.SaltBytes {
			t.Errorf("salt has %d bytes, want %d", len(e.Salt), session.SaltBytes)
		}
	}
	if diff := cmp.Diff(want, Collect(t, store.All(t.Context()))); diff != "" {
		t.Errorf("all events (-appended +read):\n%s", diff)
	}
	if diff := cmp.Diff(want, Collect(t, store.Events(t.Context(), "a", 0))); diff != "" {
		t.Errorf("events of the session (-appended +read):\n%s", diff)
	}
}

func appendChains(t *testing.T, store session.Store) {
	var events []session.Event
	events = append(events, Append(t, store, Drafts("a", 2)...)...)
	events = append(events, Append(t, store, Drafts("b", 1)...)...)
	events = append(events, Append(t, store, Drafts("a", 1)...)...)
	var prev [32]byte
	inSession := map[string][32]byte{}
	for i, e := range events {
		if e.Seq != uint64(i+1) {
			t.Errorf("event %d has seq %d", i+1, e.Seq)
		}
		if e.Prev != prev {
			t.Errorf("event %d does not follow the one before it", e.Seq)
		}
		if e.SessionPrev != inSession[e.Session] {
			t.Errorf("event %d does not follow the one before it in its session", e.Seq)
		}
		if e.ComputeHash() != e.Hash {
			t.Errorf("event %d has another hash than its own", e.Seq)
		}
		prev, inSession[e.Session] = e.Hash, e.Hash
	}
	if report := Verify(t, store, 4); report.Head != prev {
		t.Errorf("head is %x, want %x", report.Head, prev)
	}
}

func appendNothing(t *testing.T, store session.Store) {
	events, err := store.Append(t.Context())
	if len(events) != 0 || err != nil {
		t.Errorf("got %v, %v", events, err)
	}
	Verify(t, store, 0)
}

func appendAllOrNone(t *testing.T, store session.Store) {
	Append(t, store, Drafts("a", 1)...)
	for name, bad := range map[string]session.Draft{
		"no session":     {Type: session.TypeMessage, Body: json.RawMessage(`{}`)},
		"no type":        {Session: "a", Body: json.RawMessage(`{}`)},
		"transient type": {Session: "a", Type: session.TypeDelta, Body: json.RawMessage(`{}`)},
		"not JSON":       {Session: "a", Type: session.TypeMessage, Body: json.RawMessage(`{`)},
	} {
		drafts := append(Drafts("a", 2), bad)
		if events, err := store.Append(t.Context(), drafts...); err == nil || events != nil {
			t.Errorf("%s: got %d events and error %v", name, len(events), err)
		}
	}
	Verify(t, store, 1)
	if e := Append(t, store, Drafts("a", 1)...); e[0].Seq != 2 {
		t.Errorf("the next event has seq %d, want 2", e[0].Seq)
	}
	Verify(t, store, 2)
}

func appendAnyText(t *testing.T, store session.Store) {
	texts := []string{"'; DROP TABLE events; --", "\"", "?1 :a @b $c", "nul\x00nul", "ümläut 🙂", "\xff\xfe", "%_*[a-z]", "\\"}
	for _, text := range texts {
		body, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		Append(t, store, session.Draft{Session: text, Type: session.TypeMessage, Call: text, Body: body})
	}
	Verify(t, store, len(texts))
	for _, text := range texts {
		events := Collect(t, store.Events(t.Context(), text, 0))
		if len(events) != 1 || events[0].Session != text || events[0].Call != text {
			t.Errorf("%q: read back %+v", text, events)
		}
		if id, err := store.Resolve(t.Context(), text); id != text || err != nil {
			t.Errorf("resolve %q: got %q, %v", text, id, err)
		}
	}
}

func appendLarge(t *testing.T, store session.Store) {
	large, err := json.Marshal(strings.Repeat("stockade ", 1<<18))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		Append(t, store, session.Draft{Session: "a", Type: session.TypeMessage, Body: large})
	}
	Verify(t, store, 3)
	for _, e := range Collect(t, store.All(t.Context())) {
		if string(e.Body) != string(large) {
			t.Errorf("event %d has another body", e.Seq)
		}
	}
}

func appendWithoutBody(t *testing.T, store session.Store) {
	events := Append(t, store,
		session.Draft{Session: "a", Type: session.TypeTurnEnded},
		session.Draft{Session: "a", Type: session.TypeTurnEnded, Body: json.RawMessage{}})
	if diff := cmp.Diff(events, Collect(t, store.All(t.Context()))); diff != "" {
		t.Errorf("(-appended +read):\n%s", diff)
	}
	if report := Verify(t, store, 2); report.Deleted != 0 {
		t.Errorf("%d events count as deleted", report.Deleted)
	}
}

func images(t *testing.T, store session.Store) {
	ctx := t.Context()
	random := make([]byte, session.MaxPreimageBytes)
	rand.Read(random)
	contents := map[string][]byte{
		"nothing": {}, "a text": []byte(strings.Repeat("a line\n", 1000)), "what gets no shorter": random, "one byte": {0},
	}
	with := func(id string, images ...[]byte) session.Draft {
		d := Drafts(id, 1)[0]
		d.Preimages = images
		return d
	}
	for name, content := range contents {
		sum := sha256.Sum256(content)
		if _, err := store.Preimage(ctx, "a", sum); !errors.Is(err, session.ErrNoPreimage) {
			t.Errorf("%s, before: %v", name, err)
		}
		Append(t, store, with("a", content, content), with("b", content))
		Append(t, store, with("a", content))
		if got, err := store.Preimage(ctx, "a", sum); err != nil || !bytes.Equal(got, content) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		if _, err := store.Preimage(ctx, "c", sum); !errors.Is(err, session.ErrNoPreimage) {
			t.Errorf("%s, of another session: %v", name, err)
		}
	}
	for name, images := range map[string][][]byte{
		"one too large":         {make([]byte, session.MaxPreimageBytes+1)},
		"too large all of them": {random, random, random, random, {1}},
	} {
		if _, err := store.Append(ctx, with("a", images...)); err == nil {
			t.Errorf("%s: they are kept", name)
		}
	}
	if err := store.DeleteBodies(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	for name, content := range contents {
		sum := sha256.Sum256(content)
		if _, err := store.Preimage(ctx, "a", sum); !errors.Is(err, session.ErrNoPreimage) {
			t.Errorf("%s, deleted: %v", name, err)
		}
		if got, err := store.Preimage(ctx, "b", sum); err != nil || !bytes.Equal(got, content) {
			t.Errorf("%s, of the other session: %v", name, err)
		}
	}
	Verify(t, store, 3*len(contents))
}

func appendConcurrently(t *testing.T, store session.Store) {
	const writers, rounds = 8, 25
	ctx := t.Context()
	var wg sync.WaitGroup
	total := 0
	for w := range writers {
		for i := range rounds {
			total += 1 + (w+i)%3
		}
		wg.Go(func() {
			id := fmt.Sprint("s", w%3)
			for i := range rounds {
				drafts := Drafts(id, 1+(w+i)%3)
				for j := range drafts {
					drafts[j].Turn, drafts[j].Call = i+1, fmt.Sprint("w", w)
				}
				events, err := store.Append(ctx, drafts...)
				if err != nil {
					t.Errorf("append: %v", err)
					return
				}
				for j, e := range events {
					if e.Seq != events[0].Seq+uint64(j) {
						t.Errorf("event %d came between those of one append", events[0].Seq+uint64(j))
					}
				}
			}
		})
		wg.Go(func() { // readers see a whole chain at any time
			if _, err := session.VerifyStore(store.All(ctx)); err != nil {
				t.Errorf("verify while appending: %v", err)
			}
		})
	}
	wg.Wait()
	Verify(t, store, total)
	turns := map[string]int{}
	for _, e := range Collect(t, store.All(ctx)) {
		if e.Turn < turns[e.Call] {
			t.Errorf("event %d: %s has gone back from append %d to %d", e.Seq, e.Call, turns[e.Call], e.Turn)
		}
		turns[e.Call] = e.Turn
	}
	for i := range 3 {
		if _, err := session.VerifySession(store.Events(ctx, fmt.Sprint("s", i), 0)); err != nil {
			t.Errorf("verify s%d: %v", i, err)
		}
	}
}

func interleaved(t *testing.T, store session.Store) {
	want := map[string][]session.Event{}
	for i := range 300 { // more than a page, whatever the size
		id := []string{"a", "b", "ab"}[i%3]
		want[id] = append(want[id], Append(t, store, Drafts(id, 1)...)...)
	}
	for id, events := range want {
		if diff := cmp.Diff(events, Collect(t, store.Events(t.Context(), id, 0))); diff != "" {
			t.Errorf("%s (-appended +read):\n%s", id, diff)
		}
		if diff := cmp.Diff(events[50:], Collect(t, store.Events(t.Context(), id, events[49].Seq))); diff != "" {
			t.Errorf("%s after event %d (-appended +read):\n%s", id, events[49].Seq, diff)
		}
	}
	for _, after := range []uint64{300, 301, 1 << 63, 1<<64 - 1} {
		if events := Collect(t, store.Events(t.Context(), "a", after)); len(events) != 0 {
			t.Errorf("after %d come %d events", after, len(events))
		}
	}
	for _, id := range []string{"c", "", "A", "a%"} {
		if events := Collect(t, store.Events(t.Context(), id, 0)); len(events) != 0 {
			t.Errorf("unknown session %q has %d events", id, len(events))
		}
	}
}

func readsEnd(t *testing.T, store session.Store) {
	Append(t, store, Drafts("a", 3)...)
	n := 0
	for _, err := range store.All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		Append(t, store, Drafts("a", 1)...)
	}
	if n != 3 {
		t.Errorf("read %d events, want the 3 that were there", n)
	}
}

func verifySession(t *testing.T, store session.Store) {
	for range 5 {
		Append(t, store, Drafts("a", 1)...)
		Append(t, store, Drafts("b", 2)...)
	}
	report, err := session.VerifySession(store.Events(t.Context(), "b", 0))
	if err != nil || report.Events != 10 {
		t.Fatalf("got %d events, %v", report.Events, err)
	}
	events := Collect(t, store.Events(t.Context(), "b", 0))
	if report.Head != events[9].Hash {
		t.Errorf("head is not the hash of the last event")
	}
	events[4].Body = json.RawMessage(`"edited"`)
	_, err = session.VerifySession(sequence(events))
	if e, ok := errors.AsType[*session.ChainError](err); !ok || e.Seq != events[4].Seq {
		t.Errorf("edited export: got %v, want a break at event %d", err, events[4].Seq)
	}
}

// sequence yields events without an error.
func sequence(events []session.Event) iter.Seq2[session.Event, error] {
	return func(yield func(session.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func deleteBodies(t *testing.T, store session.Store) {
	ctx := t.Context()
	a := Append(t, store, Drafts("a", 4)...)
	b := Append(t, store, Drafts("b", 2)...)
	if err := store.DeleteBodies(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	for i := range a {
		a[i].Body, a[i].Salt = nil, nil
	}
	check := func() {
		t.Helper()
		if diff := cmp.Diff(append(a[:4:4], b...), Collect(t, store.All(ctx))[:6]); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if report, err := session.VerifySession(store.Events(ctx, "a", 0)); err != nil || report.Deleted != 4 {
			t.Errorf("verify session: %d deleted, %v; want 4", report.Deleted, err)
		}
	}
	check()
	if report := Verify(t, store, 6); report.Deleted != 4 {
		t.Errorf("%d events count as deleted, want 4", report.Deleted)
	}
	if err := store.DeleteBodies(ctx, "a"); err != nil {
		t.Errorf("delete again: %v", err)
	}
	for _, unknown := range []string{"none", ""} {
		if err := store.DeleteBodies(ctx, unknown); !errors.Is(err, session.ErrNoSession) {
			t.Errorf("delete of the unknown session %q: got %v, want ErrNoSession", unknown, err)
		}
	}
	// The session continues.
	Append(t, store, Drafts("a", 1)...)
	if report := Verify(t, store, 7); report.Deleted != 4 {
		t.Errorf("%d events count as deleted, want 4", report.Deleted)
	}
	check()
}

func resolve(t *testing.T, store session.Store) {
	ctx := t.Context()
	if _, err := store.Resolve(ctx, "last"); !errors.Is(err, session.ErrNoSession) {
		t.Errorf("last of none: got %v, want ErrNoSession", err)
	}
	for _, id := range []string{"abc1", "abc2", "abd", "ab", "x\U0010ffff", "abc1"} {
		Append(t, store, Drafts(id, 1)...)
	}
	for _, test := range []struct {
		prefix, id string
		err        error
	}{
		{"abc1", "abc1", nil},
		{"abd", "abd", nil},
		{"ab", "ab", nil}, // complete, though others begin so
		{"x", "x\U0010ffff", nil},
		{"last", "abc1", nil},
		{"abc", "", session.ErrAmbiguous},
		{"a", "", session.ErrAmbiguous},
		{"abc3", "", session.ErrNoSession},
		{"abc11", "", session.ErrNoSession},
		{"zzz", "", session.ErrNoSession},
		{"%", "", session.ErrNoSession},
		{"", "", session.ErrNoSession},
	} {
		id, err := store.Resolve(ctx, test.prefix)
		if id != test.id || !errors.Is(err, test.err) || (err == nil) != (test.err == nil) {
			t.Errorf("%q: got %q, %v; want %q, %v", test.prefix, id, err, test.id, test.err)
		}
	}
}

func sessions(t *testing.T, store session.Store) {
	if infos, err := store.Sessions(t.Context()); len(infos) != 0 || err != nil {
		t.Errorf("empty store: got %v, %v", infos, err)
	}
	draft := func(id string, kind session.Type, call, body string) session.Draft {
		return session.Draft{Session: id, Type: kind, Call: call, Body: json.RawMessage(body)}
	}
	events := Append(t, store,
		draft("old", session.TypeSessionStarted, "", `{}`),
		draft("old", session.TypeTurnStarted, "", `{"prompt":"first prompt"}`),
		draft("new", session.TypeSessionStarted, "", `{"workspace":"/src","conversation":true}`),
		draft("old", session.TypeToolCall, "c1", `{}`),
		draft("old", session.TypeToolCall, "c2", `{}`),
		draft("old", session.TypeCallIntended, "c1", `{}`),
		draft("old", session.TypeTurnStarted, "", `{"prompt":"second prompt"}`),
		draft("gone", session.TypeTurnStarted, "", `{"prompt":"a secret"}`),
		draft("new", session.TypeMessage, "", `{}`),
	)
	if err := store.DeleteBodies(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	at := func(seq int) session.Header { return events[seq-1].Header }
	want := []session.Info{
		{ID: "new", Started: at(3).Time, Last: at(9).Time, Events: 2, Workspace: "/src", Conversation: true},
		{ID: "gone", Started: at(8).Time, Last: at(8).Time, Events: 1, Turns: 1, Conversation: true},
		{ID: "old", Started: at(1).Time, Last: at(7).Time, Events: 6, Turns: 2, Calls: 2, OpenCalls: 1, Title: "first prompt", Conversation: true},
	}
	infos, err := store.Sessions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, infos); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func titles(t *testing.T, store session.Store) {
	prompt := func(s string) string {
		body, err := json.Marshal(map[string]string{"prompt": s})
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	tests := []struct{ body, title string }{
		{prompt("fix the build"), "fix the build"},
		{prompt("\n  fix the build  \nand then\n"), "fix the build"},
		{prompt("one\r\ntwo"), "one"},
		{prompt("tab\there"), "tab here"},
		{prompt("\x1b[31mred\x07\x00 \u202egnihtemos"), "[31mred gnihtemos"},
		{prompt(strings.Repeat("ü", 100)), strings.Repeat("ü", 80)},
		{prompt(strings.Repeat("🙂", 80)), strings.Repeat("🙂", 80)},
		{prompt(""), ""},
		{`{"other":1}`, ""},
		{`{"prompt":1}`, ""},
		{`["prompt"]`, ""},
		{`null`, ""},
	}
	for i, test := range tests {
		Append(t, store, session.Draft{
			Session: fmt.Sprint(i), Type: session.TypeTurnStarted, Turn: 1, Body: json.RawMessage(test.body),
		})
	}
	infos, err := store.Sessions(t.Context())
	if err != nil || len(infos) != len(tests) {
		t.Fatalf("got %d sessions, %v", len(infos), err)
	}
	for i, test := range tests {
		if got := infos[len(tests)-1-i].Title; got != test.title {
			t.Errorf("%s: got %q, want %q", test.body, got, test.title)
		}
	}
}

func openCalls(t *testing.T, store session.Store) {
	ctx := t.Context()
	event := func(id string, kind session.Type, turn int, call, body string) session.Draft {
		return session.Draft{Session: id, Type: kind, Turn: turn, Step: 2, Call: call, Body: json.RawMessage(body)}
	}
	Append(t, store,
		event("a", session.TypeCallIntended, 1, "c1", `{"tool":"read"}`),
		event("a", session.TypeToolResult, 1, "c1", `{}`),
		event("a", session.TypeToolCall, 1, "c2", `{}`),
		event("a", session.TypeCallIntended, 1, "c2", `{"tool":"bash"}`),
		event("a", session.TypeToolCall, 1, "asked-only", `{}`),
		event("b", session.TypeCallIntended, 1, "c1", `{"tool":"write"}`), // "a" has a result for its own c1
		event("b", session.TypeCallIntended, 1, "c3", `null`),
		event("a", session.TypeCallIntended, 2, "c1", `[]`), // a provider uses an id again
	)
	at := map[session.OpenCall]time.Time{}
	for e, err := range store.All(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == session.TypeCallIntended {
			at[session.OpenCall{Session: e.Session, Turn: e.Turn, Step: e.Step, Call: e.Call}] = e.Time
		}
	}
	check := func(want ...session.OpenCall) {
		t.Helper()
		calls, err := store.OpenCalls(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range want {
			c.Name = ""
			want[i].Time = at[c]
		}
		if diff := cmp.Diff(want, calls); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	check(
		session.OpenCall{Session: "a", Turn: 1, Step: 2, Call: "c2", Name: "bash"},
		session.OpenCall{Session: "b", Turn: 1, Step: 2, Call: "c1", Name: "write"},
		session.OpenCall{Session: "b", Turn: 1, Step: 2, Call: "c3"},
		session.OpenCall{Session: "a", Turn: 2, Step: 2, Call: "c1"},
	)
	Append(t, store,
		event("a", session.TypeToolResult, 1, "c2", `{}`),
		event("a", session.TypeToolResult, 2, "c1", `{}`),
		event("b", session.TypeToolResult, 1, "c3", `{}`),
	)
	if err := store.DeleteBodies(ctx, "b"); err != nil {
		t.Fatal(err)
	}
	check(session.OpenCall{Session: "b", Turn: 1, Step: 2, Call: "c1"})
	Append(t, store, event("b", session.TypeToolResult, 9, "c1", `{}`))
	check()
}

func stopEarly(t *testing.T, store session.Store) {
	ctx := t.Context()
	Append(t, store, Drafts("a", 20)...)
	for range 200 {
		for e, err := range store.All(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Seq == 3 {
				break
			}
		}
		for _, err := range store.Events(ctx, "a", 5) {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	// No open iterator blocks a write or a deletion.
	Append(t, store, Drafts("a", 1)...)
	if err := store.DeleteBodies(ctx, "a"); err != nil {
		t.Error(err)
	}
	Verify(t, store, 21)
}

func nested(t *testing.T, store session.Store) {
	ctx := t.Context()
	Append(t, store, Drafts("a", 10)...)
	for _, err := range store.All(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range store.Events(ctx, "a", 4) {
			if err != nil {
				t.Fatal(err)
			}
			Append(t, store, Drafts("b", 1)...)
			break
		}
	}
	if err := store.DeleteBodies(ctx, "b"); err != nil {
		t.Error(err)
	}
	Verify(t, store, 20)
}

func cancelled(t *testing.T, store session.Store) {
	Append(t, store, Drafts("a", 3)...)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	mine := errors.New("mine")
	n := 0
	for _, err := range store.All(ctx) {
		n++
		if n == 1 {
			cancel(mine)
		} else if !errors.Is(err, mine) {
			t.Errorf("read after cancel: got %v, want the cause", err)
		}
	}
	if n != 2 {
		t.Errorf("the reader was called %d times, want 2: an event and the error", n)
	}
	if _, err := store.Append(ctx, Drafts("a", 1)...); !errors.Is(err, mine) {
		t.Errorf("append: got %v, want the cause", err)
	}
	if err := store.DeleteBodies(ctx, "a"); !errors.Is(err, mine) {
		t.Errorf("delete bodies: got %v, want the cause", err)
	}
	if _, err := store.Sessions(ctx); !errors.Is(err, mine) {
		t.Errorf("sessions: got %v, want the cause", err)
	}
	if _, err := store.Resolve(ctx, "last"); !errors.Is(err, mine) {
		t.Errorf("resolve: got %v, want the cause", err)
	}
	if report := Verify(t, store, 3); report.Deleted != 0 {
		t.Errorf("bodies were deleted")
	}

	// A cancelled append reports correctly whether it has written.
	var wg sync.WaitGroup
	var mu sync.Mutex
	acknowledged := 3
	for i := range 60 {
		ctx, cancel := context.WithCancel(t.Context())
		wg.Go(func() {
			events, err := store.Append(ctx, Drafts(fmt.Sprint(i), 2)...)
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("append: %v", err)
			}
			mu.Lock()
			acknowledged += len(events)
			mu.Unlock()
		})
		wg.Go(cancel)
	}
	wg.Wait()
	Verify(t, store, acknowledged)
}

func closed(t *testing.T, store session.Store) {
	Append(t, store, Drafts("a", 1)...)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Errorf("close again: %v", err)
	}
	if _, err := store.Append(t.Context(), Drafts("a", 1)...); err == nil {
		t.Error("append succeeds")
	}
	if err := store.DeleteBodies(t.Context(), "a"); err == nil {
		t.Error("delete bodies succeeds")
	}
	if _, err := store.Sessions(t.Context()); err == nil {
		t.Error("sessions succeeds")
	}
	n := 0
	for _, err := range store.All(t.Context()) {
		if n++; err == nil {
			t.Error("a read succeeds")
		}
	}
	if n != 1 {
		t.Errorf("a read yields %d times, want the error once", n)
	}
}
