package sandbox_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/tool"
	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// writer returns a call that makes the file "made" in a directory, and answers ok.
func writer(t *testing.T, dir string, a ask) job {
	t.Helper()
	a.mounts = []policy.Mount{{Host: dir, Write: true}}
	a.caps, a.cwd = tool.Capabilities{Files: tool.FilesWrite}, dir
	return granted(t, probe(touches(filepath.Join(dir, "made"))), a)
}

func mustStage(t *testing.T, box *sandbox.Sandbox, j job) policy.Staged {
	t.Helper()
	r, staged, err := box.Run(t.Context(), j.grant, j.mod, j.call, nil)
	if err != nil || r.Err != nil || staged == nil {
		t.Fatalf("got %+v, %v, %v", r.Err, staged, err)
	}
	t.Cleanup(func() { _ = staged.Drop() })
	return staged
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

func TestACallChangesNothingBeforeItsCommit(t *testing.T) {
	stages := t.TempDir()
	box := newBox(t, sandbox.Options{StageDir: func() string { return stages }})
	dir := t.TempDir()
	made := filepath.Join(dir, "made")
	j := writer(t, dir, ask{})

	staged := mustStage(t, box, j)
	changes, err := staged.Changes(t.Context())
	if err != nil || len(changes) != 1 || changes[0].Path != made || changes[0].Kind != tool.Created {
		t.Errorf("its changes are %+v, %v", changes, err)
	}
	if exists(made) {
		t.Error("the file is there before the commit")
	}
	if err := staged.Drop(); err != nil || exists(made) {
		t.Errorf("a dropped call: %v, the file is there: %v", err, exists(made))
	}
	if staged.Commit(t.Context(), j.grant) == nil || exists(made) {
		t.Error("a dropped call was committed")
	}

	staged = mustStage(t, box, j)
	if err := staged.Commit(t.Context(), j.grant); err != nil || !exists(made) {
		t.Errorf("a commit: %v, the file is there: %v", err, exists(made))
	}
	if left, err := os.ReadDir(stages); err != nil || len(left) != 0 {
		t.Errorf("what is left of the stages is %v, %v", left, err)
	}
}

func TestACommitNeedsAGrantForTheSameCall(t *testing.T) {
	box := newBox(t, sandbox.Options{})
	dir := t.TempDir()
	rehearsal := writer(t, dir, ask{rehearsal: true})
	staged := mustStage(t, box, rehearsal)
	for name, grant := range map[string]policy.Grant{
		"the zero grant":      {},
		"the rehearsal's":     rehearsal.grant,
		"that of another id":  writer(t, dir, ask{id: "call-2"}).grant,
		"for other arguments": writer(t, dir, ask{args: `{"a":1}`}).grant,
	} {
		if err := staged.Commit(t.Context(), grant); err == nil || exists(filepath.Join(dir, "made")) {
			t.Errorf("%s: got %v, the file is there: %v", name, err, exists(filepath.Join(dir, "made")))
		}
	}
	if err := staged.Commit(t.Context(), writer(t, dir, ask{}).grant); err != nil {
		t.Error(err)
	}
}

// A commit has as much time as a call.
func TestACommitHasALimitOfTime(t *testing.T) {
	box := newBox(t, sandbox.Options{})
	dir := t.TempDir()
	made := filepath.Join(dir, "made")
	j := writer(t, dir, ask{})
	staged := mustStage(t, box, j)
	late := writer(t, dir, ask{limits: policy.Limits{Timeout: time.Nanosecond}})
	if err := staged.Commit(t.Context(), late.grant); !errors.Is(err, context.DeadlineExceeded) || exists(made) {
		t.Errorf("got %v, the file is there: %v", err, exists(made))
	}
	if err := staged.Commit(t.Context(), j.grant); err != nil || !exists(made) {
		t.Errorf("in time: %v, the file is there: %v", err, exists(made))
	}
}

func TestACallThatFailsHasChangedNothing(t *testing.T) {
	stages := t.TempDir()
	box := newBox(t, sandbox.Options{StageDir: func() string { return stages }})
	dir := t.TempDir()
	imports, body, segment := touch(filepath.Join(dir, "made"))
	j := granted(t, probe(w.ToolOptions{Imports: imports, Call: code(body, w.Unreachable()), Data: []w.Segment{segment}}),
		ask{mounts: []policy.Mount{{Host: dir, Write: true}}, caps: tool.Capabilities{Files: tool.FilesWrite}, cwd: dir})
	r, staged, err := box.Run(t.Context(), j.grant, j.mod, j.call, nil)
	if err != nil || r.Err == nil || r.Err.Code != tool.CodeTrap || staged != nil {
		t.Fatalf("got %+v, %v, %v", r.Err, staged, err)
	}
	left, err := os.ReadDir(stages)
	if exists(filepath.Join(dir, "made")) || err != nil || len(left) != 0 {
		t.Errorf("the file is there: %v; the stages hold %v, %v", exists(filepath.Join(dir, "made")), left, err)
	}
}

func TestACommitIsRefusedWhereAFileHasChanged(t *testing.T) {
	box := newBox(t, sandbox.Options{})
	dir := t.TempDir()
	made := filepath.Join(dir, "made")
	j := writer(t, dir, ask{})
	staged := mustStage(t, box, j)
	if err := os.WriteFile(made, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := staged.Commit(t.Context(), j.grant); !errors.Is(err, policy.ErrChanged) {
		t.Errorf("got %v", err)
	}
	if data, err := os.ReadFile(made); string(data) != "mine" {
		t.Errorf("the file holds %q, %v", data, err)
	}
}

// TestACallIsTriedOnTheChangesOfAnother: it sees them, nothing is on the host, and nothing of
// several calls can be committed.
func TestACallIsTriedOnTheChangesOfAnother(t *testing.T) {
	stages := t.TempDir()
	box := newBox(t, sandbox.Options{StageDir: func() string { return stages }})
	dir := t.TempDir()
	first := writer(t, dir, ask{rehearsal: true})
	again := writer(t, dir, ask{rehearsal: true, id: "call-2"})
	a := ask{rehearsal: true, id: "call-3", mounts: []policy.Mount{{Host: dir, Write: true}}, caps: tool.Capabilities{Files: tool.FilesWrite}, cwd: dir}
	other := granted(t, probe(touches(filepath.Join(dir, "other"))), a)

	var staged policy.Staged
	for i, j := range []job{first, again, other} {
		r, s, err := box.Try(t.Context(), j.grant, j.mod, j.call, staged)
		if err != nil || r.Err != nil || s == nil {
			t.Fatalf("call %d: %+v, %v", i+1, r.Err, err)
		}
		staged = s
	}
	changes, err := staged.Changes(t.Context())
	if err != nil || len(changes) != 2 {
		t.Errorf("the changes are %+v, %v", changes, err)
	}
	a.rehearsal = false
	if staged.Commit(t.Context(), granted(t, other.mod, a).grant) == nil || exists(filepath.Join(dir, "made")) {
		t.Error("the changes of several calls were committed")
	}
	_ = staged.Drop()

	for name, try := range map[string]func(on policy.Staged) error{
		"without a rehearsal": func(on policy.Staged) error {
			j := writer(t, dir, ask{})
			_, _, err := box.Try(t.Context(), j.grant, j.mod, j.call, on)
			return err
		},
		"with the grant of another call": func(on policy.Staged) error {
			_, _, err := box.Try(t.Context(), again.grant, first.mod, first.call, on)
			return err
		},
	} {
		_, on, err := box.Try(t.Context(), first.grant, first.mod, first.call, nil)
		if err != nil || try(nil) == nil || try(on) == nil {
			t.Errorf("%s: a call was tried", name)
		}
	}
	if _, on, err := box.Run(t.Context(), first.grant, first.mod, first.call, nil); err != nil {
		t.Error(err)
	} else { // that of an ordinary run is not built upon
		_, s, err := box.Try(t.Context(), again.grant, again.mod, again.call, on)
		if changes, listErr := on.Changes(t.Context()); err != nil || listErr != nil || len(changes) != 1 {
			t.Errorf("%v, %v, %v", err, listErr, changes)
		}
		_, _ = s.Drop(), on.Drop()
	}
	if left, err := os.ReadDir(stages); err != nil || len(left) != 0 {
		t.Errorf("what is left of the stages is %v, %v", left, err)
	}
}
