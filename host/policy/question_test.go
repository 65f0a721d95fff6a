package policy

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/diff"
	"github.com/stockade-dev/stockade/host/tool"
)

// holding returns a set with one file that has this new content.
func holding(text string) *diff.Set {
	open := func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }
	return diff.New(context.Background(), []tool.Change{{Path: "/w/a", Kind: tool.Created, After: &tool.Version{Size: int64(len(text)), Open: open}}}, "/w", nil)
}

func TestAnAnswerSettlesItsQuestionInTime(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	put := func(change func(*Question)) Question {
		q := Question{
			Call: tool.Call{ID: "c1", Args: json.RawMessage(`{"a":1}`), Caller: tool.CallerAgent, Cwd: "/w", Turn: 2, Step: 3},
			Tool: "t", Module: "d1", Command: "ls", Dir: "/w", Changes: holding("x"),
		}
		session, asked := "s", at
		if change != nil {
			change(&q)
			if q.Session != "" {
				session = q.Session
			}
			if !q.AskedAt.IsZero() {
				asked = q.AskedAt
			}
		}
		return q.Pose(session, asked)
	}
	q := put(nil)
	yes := Answer{Question: q.ID, Allow: true}
	for _, after := range []time.Duration{0, time.Minute, AnswerExpires} {
		if err := q.CheckAnswer(yes, at.Add(after)); err != nil {
			t.Errorf("after %s: %v", after, err)
		}
	}
	for name, after := range map[string]time.Duration{"late": AnswerExpires + 1, "before it was asked": -1} {
		if q.CheckAnswer(yes, at.Add(after)) == nil {
			t.Errorf("%s, it settles", name)
		}
	}
	for name, change := range map[string]func(*Question){
		"session":   func(q *Question) { q.Session = "other" },
		"moment":    func(q *Question) { q.AskedAt = at.Add(1) },
		"call":      func(q *Question) { q.Call.ID = "c2" },
		"arguments": func(q *Question) { q.Call.Args = json.RawMessage(`{"a":2}`) },
		"caller":    func(q *Question) { q.Call.Caller = tool.CallerPerson },
		"directory": func(q *Question) { q.Call.Cwd = "/v" },
		"turn":      func(q *Question) { q.Call.Turn++ },
		"step":      func(q *Question) { q.Call.Step++ },
		"tool":      func(q *Question) { q.Tool = "u" },
		"module":    func(q *Question) { q.Module = "d2" },
		"command":   func(q *Question) { q.Command = "ls -l" },
		"its place": func(q *Question) { q.Dir = "/v" },
		"changes":   func(q *Question) { q.Changes = holding("y") },
		"failure":   func(q *Question) { q.Failed = true },
		"name": func(q *Question) {
			q.Changes = diff.New(t.Context(), []tool.Change{{Path: "/w/b", Kind: tool.Created}}, "/w", nil)
		},
		"paths":      func(q *Question) { q.Paths = []string{"/w/a"} },
		"hosts":      func(q *Question) { q.Network = []string{"example.com"} },
		"opened":     func(q *Question) { q.OpensHost = "example.com" },
		"tier":       func(q *Question) { q.Tier = 2 },
		"secrets":    func(q *Question) { q.Secrets = []tool.Secret{{Name: "A"}} },
		"boundaries": func(q *Question) { q.Tool, q.Call.ID = "", "c1t" },
	} {
		other := put(change)
		if other.ID == q.ID || other.CheckAnswer(yes, other.AskedAt) == nil {
			t.Errorf("the answer settles a question with another %s", name)
		}
		changed := q
		change(&changed)
		if changed.CheckAnswer(yes, at) == nil {
			t.Errorf("the answer settles a question whose %s changed since it was put", name)
		}
	}
	if err := (Question{Tool: "t"}).CheckAnswer(Answer{Allow: true}, at); err == nil {
		t.Error("a question that was never put is settled")
	}
}
