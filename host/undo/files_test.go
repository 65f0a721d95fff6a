//go:build unix && cgo

package undo_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/undo"
)

func TestTheFilesOfASession(t *testing.T) {
	was := &session.Version{Bytes: 1, Mode: "-rw-r--r--"}
	created := func(path string) session.Change { return session.Change{Path: path, Kind: tool.Created, Added: 2} }
	modified := func(path string) session.Change {
		return session.Change{Path: path, Kind: tool.Modified, Before: was, Added: 1, Removed: 3}
	}
	removed := func(path string) session.Change {
		return session.Change{Path: path, Kind: tool.Removed, Before: was, Removed: 1}
	}
	renamed := func(from, path string) session.Change {
		return session.Change{Path: path, From: from, Kind: tool.Renamed, Before: was}
	}
	call := func(files ...session.Change) session.Changes { return session.Changes{Tool: "edit", Files: files} }
	direct := session.Intent{Tool: "bash", Digest: "abc", Exec: true, Changes: policy.ChangesDirect}
	undid := func(turn int, redo bool) tool.Result {
		return tool.Result{Output: tool.Marshal(map[string]any{"turn": turn, "redo": redo})}
	}
	for name, c := range map[string]struct {
		log        func(w *world)
		want       []undo.File
		unrecorded int
	}{
		"nothing": {log: func(w *world) { w.record(1, nil, nil) }, want: []undo.File{}},
		"each way": {log: func(w *world) {
			w.record(1, call(created("/a"), modified("/b"), removed("/c"), renamed("/d", "/e")), nil)
		}, want: []undo.File{
			{Path: "/a", Status: "created", Added: 2, Calls: 1, Undone: "no"}, {Path: "/b", Status: "changed", Added: 1, Removed: 3, Calls: 1, Undone: "no"},
			{Path: "/c", Status: "deleted", Removed: 1, Calls: 1, Undone: "no"}, {Path: "/e", From: "/d", Status: "moved", Calls: 1, Undone: "no"}}},
		"several calls": {log: func(w *world) {
			w.record(1, call(created("/a"), removed("/b"), created("/c")), nil)
			w.record(1, call(modified("/a"), created("/b"), removed("/c")), nil)
			w.record(2, call(renamed("/a", "/x")), nil)
		}, want: []undo.File{
			{Path: "/x", Status: "created", Added: 3, Removed: 3, Calls: 3, Undone: "no"}, {Path: "/b", Status: "changed", Added: 2, Removed: 1, Calls: 2, Undone: "no"},
			{Path: "/c", Status: "came and went", Added: 2, Removed: 1, Calls: 2, Undone: "no"}}},
		"a file in the place of another": {log: func(w *world) {
			w.record(1, call(modified("/a"), modified("/b")), nil)
			w.record(1, call(renamed("/a", "/b")), nil)
		}, want: []undo.File{
			{Path: "/b", From: "/a", Status: "moved", Added: 1, Removed: 3, Calls: 2, Undone: "no"}, {Path: "/b", Status: "deleted", Added: 1, Removed: 3, Calls: 1, Undone: "no"}}},
		"what is undone": {log: func(w *world) {
			w.record(1, call(modified("/a")), nil)
			w.record(2, call(modified("/a"), created("/b")), nil)
			w.recordAs(0, session.Intent{Tool: tool.UndoTool}, call(removed("/b")), nil, undid(2, false))
		}, want: []undo.File{{Path: "/a", Status: "changed", Added: 2, Removed: 6, Calls: 2, Undone: "partly"}, {Path: "/b", Status: "created", Added: 2, Calls: 1, Undone: "yes"}}},
		"what was made again": {log: func(w *world) {
			w.record(1, call(created("/b")), nil)
			w.recordAs(0, session.Intent{Tool: tool.UndoTool}, call(removed("/b")), nil, undid(1, false))
			w.recordAs(0, session.Intent{Tool: tool.UndoTool}, call(created("/b")), nil, undid(1, true))
		}, want: []undo.File{{Path: "/b", Status: "created", Added: 2, Calls: 1, Undone: "no"}}},
		"a call that has failed": {log: func(w *world) {
			w.recordAs(1, session.Intent{Tool: "edit", Digest: "abc"}, call(created("/a")), nil, tool.Failed(tool.CodeNotKept, "", "no"))
		}, want: []undo.File{}},
		"what the log does not say": {log: func(w *world) {
			w.recordAs(1, direct, nil, nil, tool.Result{Output: tool.Text("")})
			w.record(1, session.Changes{Files: []session.Change{created("/a")}, More: 7}, nil)
		}, want: []undo.File{{Path: "/a", Status: "created", Added: 2, Calls: 1, Undone: "no"}}, unrecorded: 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c.log(w)
			got, unrecorded, err := undo.Files(w.store.Events(t.Context(), id, 0))
			if err != nil || unrecorded != c.unrecorded {
				t.Errorf("%d calls are not recorded, %v", unrecorded, err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
