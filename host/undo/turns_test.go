//go:build unix && cgo

package undo_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/undo"
)

// TestTurnsForARewind: what each turn has changed, what stays, and what is taken back already;
// and that no turn before the first of them is undone.
func TestTurnsForARewind(t *testing.T) {
	w := newWorld(t)
	before := w.snapshot("ws")
	w.change(1, func() { w.File("ws/one.txt", "1") })
	one := w.snapshot("ws")
	w.change(2, func() { w.File("ws/one.txt", "2"); w.File("ws/two.txt", "2") })
	tier := policy.Tier(3)
	done := tool.Result{Output: json.RawMessage(`{}`)}
	w.recordAs(2, session.Intent{Tool: "bash", Digest: "abc", Exec: true, Tier: &tier, Changes: policy.ChangesDirect}, nil, nil, done)
	w.recordAs(2, session.Intent{Tool: "http_fetch", Digest: "abc", Network: []string{"a.example"}}, nil, nil, done)
	w.change(3, func() { w.File("ws/gone.txt", "x") })
	w.change(3, func() { must(t, os.Remove(w.Path("ws/gone.txt"))) })
	w.change(0, func() { w.File("ws/own.txt", "mine") }) // a call of the person
	if r := w.undo(); r.Err == nil {
		t.Errorf("turn 2 was undone, which has changed files directly: %s", r.Output)
	}

	turns := func() []undo.Turn {
		got, err := undo.Turns(w.store.Events(t.Context(), id, 0))
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	want := []undo.Turn{
		{Number: 1, Prompt: "prompt 1", Files: []string{w.Path("ws/one.txt")}},
		{Number: 2, Prompt: "prompt 2", Files: []string{w.Path("ws/one.txt"), w.Path("ws/two.txt")},
			Kept: []string{`changed files directly: bash(command="make")`, `could reach the network: http_fetch(command="make")`}},
		{Number: 3, Prompt: "prompt 3", Others: []string{w.Path("ws/own.txt")}, Kept: []string{`your own call: edit(command="make")`}},
	}
	got := turns()
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}

	if r := w.undoOr(`{"from":3}`); r.Err == nil {
		t.Errorf("a turn before the third was undone: %s", r.Output)
	}
	if r := w.undoOr(`{"from":2}`); r.Err != nil {
		t.Fatal(r.Err)
	}
	must(t, os.Remove(w.Path("ws/own.txt")))
	if d := cmp.Diff(one, w.snapshot("ws")); d != "" {
		t.Error(d)
	}
	if r := w.undoOr(`{"from":2}`); r.Err == nil {
		t.Errorf("the first turn was undone: %s", r.Output)
	}
	if _, err := w.log.Append(t.Context(), session.NewDraft(session.TypeRewound, 0, 0, "", session.Rewound{Turn: 2})); err != nil {
		t.Fatal(err)
	}
	want = want[:1] // the rest is gone, and what the person has changed after it is not
	want[0].Others = []string{w.Path("ws/own.txt"), w.Path("ws/one.txt"), w.Path("ws/two.txt")}
	if d := cmp.Diff(want, turns()); d != "" {
		t.Error(d)
	}
	if r := w.undo(); r.Err != nil {
		t.Fatal(r.Err)
	}
	if d := cmp.Diff(before, w.snapshot("ws")); d != "" {
		t.Error(d)
	}
}
