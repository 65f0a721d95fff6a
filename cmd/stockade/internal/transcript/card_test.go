package transcript

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

// TestACardHasAllOfACall, readable: no escape that a person would have to undo.
func TestACardHasAllOfACall(t *testing.T) {
	yes := true
	result := tool.Result{Output: tool.Marshal(map[string]any{"output": "Wrote\n12 lines\n", "bytes": 40}), Note: "said by the host"}
	result.Usage = tool.Usage{FuelUsed: 12_300, PeakMemoryBytes: 8 << 20, OutputBytes: 40}
	events := []session.Event{
		event(session.TypeSessionStarted, "", session.Started{Workspace: "/w"}),
		proposed("other", "ls", `{}`), gave("other", "x"),
		proposed("a", "file_write", `{"path":"a.txt","content":"<b>\n  \"two\"\n","mode":420}`),
		event(session.TypeCallIntended, "a", session.Intent{Module: "files", Digest: "5f1c", Cwd: "/w", Mounts: []string{"/w:rw"}, Rehearsal: true, TimeoutMS: 30_000, MemoryBytes: 64 << 20, Fuel: 2_000_000}),
		event(session.TypeDecision, "a", session.Decision{Effect: "ask", Risk: "medium", Rule: "risk medium", Source: "default", Reason: "it changes files", Answer: &yes, Scope: policy.ScopeOnce, AnsweredBy: "terminal"}),
		event(session.TypeCallChanges, "a", session.Changes{Files: []session.Change{{Path: "/w/a.txt", Kind: tool.Created, Diff: "@@ -0,0 +1,2 @@\n+<b>\n+  \"two\"\n", Added: 2}}}),
		returned("a", result),
		proposed("last", "ls", `{"path":"x"}`),
		proposed("undo", "undo", `{}`), event(session.TypeCallIntended, "undo", session.Intent{Module: "stockade", Cwd: "/w"}),
	}
	const want = `
  2  file_write a.txt                                              +2     3 ms
     when       1970-01-01 00:00:00
     module     files · sha256 5f1c
     in         /w
     sees       /w:rw
     limits     30.0 s, 64.0 MiB memory, 2.0 M fuel
     policy     ask, risk medium: it changes files
     rule       risk medium of default
     answer     kept, by terminal (asked because it changes files)
     arguments
     │ path: a.txt
     │ content: (2 lines)
     │     <b>
     │       "two"
     │ mode: 420
     changes
     │ created a.txt  +2
     │ 1 + <b>
     │ 2 +   "two"
     result
     │ Wrote
     │ 12 lines
     beside it
     │ bytes: 40
     note
     │ said by the host
     took       3 ms, 12.3 k fuel, 8.0 MiB memory, 40 B result, risk medium
`
	local := time.Local
	time.Local = time.UTC
	defer func() { time.Local = local }()
	for _, c := range []struct {
		number int
		begins string
		err    error
	}{
		{2, want, nil}, {1, "\n  1  ls   ", nil}, {3, "\n  3  ls x", nil}, {5, "", ErrNoCall},
		{0, "\n  4  undo" + strings.Repeat(" ", 60) + "no result\n     when       1970-01-01 00:00:00\n     in         /w\n", nil},
	} {
		rows, err := Card(sequence(events), c.number, options(80))
		got := "\n" + strings.Join(rows, "\n") + "\n"
		if !errors.Is(err, c.err) || !strings.HasPrefix(got, c.begins) {
			t.Errorf("call %d: %v\n%s", c.number, err, cmp.Diff(c.begins, got))
		}
	}
}

// long is a session of so many calls, each of which has five events, in turns of ten.
func long(calls int) []session.Event {
	var out []session.Event
	for i := range calls {
		turn := i/10 + 1
		add := func(e session.Event) {
			e.Turn = turn
			out = append(out, e)
		}
		if i%10 == 0 {
			add(event(session.TypeTurnStarted, "", session.TurnStarted{Prompt: fmt.Sprintf("prompt %d", turn)}))
		}
		id := fmt.Sprintf("c%d", i)
		add(proposed(id, "file_edit", fmt.Sprintf(`{"path":"f%d.go","old_string":"a","new_string":"b"}`, i)))
		add(event(session.TypeDecision, id, session.Decision{Effect: "allow"}))
		add(event(session.TypeCallIntended, id, session.Intent{Rehearsal: true}))
		add(event(session.TypeCallChanges, id, session.Changes{Files: []session.Change{{Path: "x", Kind: tool.Modified, Diff: diffText, Added: 2, Removed: 2}}}))
		add(gave(id, strings.Repeat("a line of output\n", 40)))
		if i%10 == 9 {
			add(event(session.TypeMessage, "", llm.Message{Kind: llm.Assistant, Content: fmt.Sprintf("answer %d", turn)}))
			add(ended(10))
		}
	}
	return out
}

func TestTheEndOfAConversation(t *testing.T) {
	for name, c := range map[string]struct {
		events []session.Event
		most   int
		want   []string
		not    []string
		calls  int
	}{
		"the last turns, and the calls of both in a row each": {long(2000), 40, []string{"> prompt 199", "1981  file_edit f1980.go", "{answer 199\n}", "> prompt 200", "2000  file_edit f1999.go", "{answer 200\n}", "10 calls · 10 changes"}, []string{"prompt 198", "TODO", "line of output"}, 2000},
		"as much as there is room for":                        {long(2000), 8, []string{"  …", "2000  file_edit f1999.go", "{answer 200\n}", "10 calls"}, []string{"prompt", "1995  "}, 2000},
		"an answer that is longer than that":                  {[]session.Event{event(session.TypeTurnStarted, "", session.TurnStarted{Prompt: "x"}), event(session.TypeMessage, "", llm.Message{Kind: llm.Assistant, Content: strings.Repeat("old\n", 99) + "new"})}, 3, []string{"  …", "{old\nold\nnew\n}"}, []string{"> x"}, 0},
		"a call that never ended":                             {long(5), 40, []string{"> prompt 1", "  5  file_edit"}, nil, 5},
		"a command of the person, which is apart from the turn": {append(long(10), proposed("p", "bash", `{"command":"cat x"}`), event(session.TypeCallIntended, "p", session.Intent{Exec: true}), gave("p", "x")), 40,
			[]string{"10 calls", "\n\n 11  bash  cat x ", "exit 0"}, nil, 11},
		"single calls": {[]session.Event{proposed("a", "ls", "{}"), gave("a", "x")}, 40, nil, []string{"ls"}, 1},
		"nothing":      {nil, 40, nil, []string{"."}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			parts, calls, err := Tail(sequence(c.events), options(80), c.most)
			if err != nil || calls != c.calls {
				t.Errorf("%d calls, %v; want %d", calls, err, c.calls)
			}
			var b strings.Builder
			write(&b, parts)
			rest, lines := b.String(), strings.Count(b.String(), "\n")
			if lines > c.most+4 {
				t.Errorf("it has %d lines", lines)
			}
			for _, want := range c.want {
				_, after, ok := strings.Cut(rest, want)
				if !ok {
					t.Fatalf("%q does not come where it should:\n%s", want, b.String())
				}
				rest = after
			}
			for _, not := range c.not {
				if strings.Contains(b.String(), not) {
					t.Errorf("it has %q:\n%s", not, b.String())
				}
			}
		})
	}
}

// TestALongTurnIsBounded: a turn without end does not fill the memory of who goes on
// with it.
func TestALongTurnIsBounded(t *testing.T) {
	events := []session.Event{event(session.TypeTurnStarted, "", session.TurnStarted{Prompt: "x"})}
	for i := range 5000 {
		id := fmt.Sprint(i)
		events = append(events, proposed(id, "ls", "{}"), gave(id, "x"))
	}
	parts, calls, err := Tail(sequence(events), options(80), 100_000)
	var b strings.Builder
	write(&b, parts)
	if rows := strings.Count(b.String(), "\n"); err != nil || calls != 5000 || rows > maxTailEvents || !strings.Contains(b.String(), "\n5000  ls ") {
		t.Errorf("%d rows of %d calls, %v", rows, calls, err)
	}
}

// BenchmarkShow renders a session of 10,000 events.
func BenchmarkShow(b *testing.B) {
	events := long(1930)[:10_000]
	o := options(80)
	o.Replay, o.Color = true, true
	b.ReportAllocs()
	for b.Loop() {
		t := New(o)
		for _, e := range events {
			t.Show(e)
		}
	}
}

// BenchmarkTail finds the end of a conversation.
func BenchmarkTail(b *testing.B) {
	events := long(1930)[:10_000]
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Tail(sequence(events), options(80), 24); err != nil {
			b.Fatal(err)
		}
	}
}
