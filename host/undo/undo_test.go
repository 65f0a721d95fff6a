//go:build unix && cgo

package undo_test

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/dispatch"
	"github.com/stockade-dev/stockade/host/internal/hosttest"
	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/redact"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/session/sqlite"
	"github.com/stockade-dev/stockade/host/stage"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/undo"
)

// world is a workspace and a log in which turns are recorded that have changed it.
type world struct {
	*hosttest.World
	store  *sqlite.Store
	log    *session.Log
	opts   policy.Options
	budget *stage.Budget
	known  redact.Redactor
	asked  []policy.Question
	answer bool
	turns  int
	calls  int
	loads  func() // called before the first content is read from the store; nil: nothing is
}

// contents is the store of a world.
type contents struct {
	session.Store
	w *world
}

func (c contents) Preimage(ctx context.Context, id string, sum [sha256.Size]byte) ([]byte, error) {
	if do := c.w.loads; do != nil {
		c.w.loads = nil
		do()
	}
	return c.Store.Preimage(ctx, id, sum)
}

const id = "01m00000000000000000"

func newWorld(t *testing.T) *world {
	w := &world{World: hosttest.New(t)}
	var err error
	if w.store, err = sqlite.Open(t.Context(), w.Path("log/sessions.db")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.store.Close() })
	w.log = session.NewLog(w.store, id, time.Now)
	w.opts.Mounts = []policy.Mount{{Host: w.Path("ws"), Write: true}}
	w.File("ws/secret.key", "a key")
	w.File("ws/run", "run")
	w.Dir("ws/empty")
	w.Dir("ws/dir")
	w.Link("ws/link", "f.txt")
	return w
}

// snapshot is what there is below a directory, by name.
func (w *world) snapshot(dir string) map[string]string {
	out := map[string]string{}
	err := filepath.WalkDir(w.Path(dir), func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == w.Path(dir) {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		what := fi.Mode().String()
		switch fi.Mode().Type() {
		case 0:
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			what += " " + string(data)
		case fs.ModeSymlink:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			what += " " + target
		}
		out[path] = what
		return nil
	})
	if err != nil {
		w.T.Fatal(err)
	}
	return out
}

// change lets a call of a turn change the workspace, and records what it has changed.
func (w *world) change(turn int, edit func()) session.Changes {
	w.T.Helper()
	before := w.snapshot("ws")
	edit()
	after := w.snapshot("ws")
	changes := session.Changes{Tool: "edit"}
	var images [][]byte
	version := func(what string, there bool) *session.Version {
		if !there {
			return nil
		}
		mode, content, _ := strings.Cut(what, " ")
		v := &session.Version{Mode: mode}
		switch mode[0] {
		case 'L':
			v.Target = content
		case '-':
			v.Bytes, v.SHA256 = int64(len(content)), fmt.Sprintf("%x", sha256.Sum256([]byte(content)))
			images = append(images, []byte(content))
		}
		return v
	}
	for path := range union(before, after) {
		b, was := before[path]
		a, is := after[path]
		if a == b && was == is {
			continue
		}
		c := session.Change{Path: path, Kind: tool.Modified, Before: version(b, was), After: version(a, is)}
		if !was {
			c.Kind = tool.Created
		} else if !is {
			c.Kind = tool.Removed
		}
		changes.Files = append(changes.Files, c)
	}
	w.record(turn, changes, images)
	return changes
}

func union(a, b map[string]string) map[string]bool {
	out := map[string]bool{}
	for k := range a {
		out[k] = true
	}
	for k := range b {
		out[k] = true
	}
	return out
}

// record records a staged command and its changes, in the form of an older version.
// changes nil: no changes are recorded.
func (w *world) record(turn int, changes any, images [][]byte) {
	w.recordAs(turn, session.Intent{Tool: "edit", Digest: "abc", Exec: changes != nil}, changes, images, tool.Result{Output: json.RawMessage(`{}`)})
}

func (w *world) recordAs(turn int, intent session.Intent, changes any, images [][]byte, result tool.Result) {
	w.T.Helper()
	w.calls++
	call := fmt.Sprint("call_", w.calls)
	drafts := []session.Draft{}
	if turn > w.turns {
		w.turns = turn
		drafts = append(drafts, session.NewDraft(session.TypeTurnStarted, turn, 0, "", session.TurnStarted{Prompt: fmt.Sprint("prompt ", turn)}))
	}
	drafts = append(drafts,
		session.NewDraft(session.TypeToolCall, turn, 1, call, llm.CallMessage(llm.NewCall(call, intent.Tool, `{"command":"make"}`))),
		session.NewDraft(session.TypeCallIntended, turn, 1, call, intent))
	if changes != nil {
		d := session.NewDraft(session.TypeCallChanges, turn, 1, call, changes)
		d.Preimages = images
		drafts = append(drafts, d)
	}
	drafts = append(drafts, session.NewDraft(session.TypeToolResult, turn, 1, call, llm.ResultMessage(call, intent.Tool, result)))
	if _, err := w.log.Append(w.T.Context(), drafts...); err != nil {
		w.T.Fatal(err)
	}
}

// undo undoes the last turn.
func (w *world) undo() tool.Result { return w.undoOr(`{}`) }

// undoOr makes a call of undo with these arguments.
func (w *world) undoOr(args string) tool.Result {
	w.T.Helper()
	catalog, err := tool.NewCatalogOf(nil)
	if err != nil {
		w.T.Fatal(err)
	}
	w.Dir("stages")
	d := dispatch.New(dispatch.Options{
		Catalog: catalog, Policy: policy.New(w.opts), Approver: w, Log: w.log, SessionID: id,
		Undo: undo.New(contents{w.store, w}, id, func() string { return w.Path("stages") }, w.budget, &w.known),
	})
	w.calls++
	call := tool.Call{ID: fmt.Sprint("undo_", w.calls), Tool: tool.UndoTool, Args: json.RawMessage(args), Cwd: w.Path("ws")}
	body := llm.CallMessage(llm.NewCall(call.ID, call.Tool, "{}"))
	if _, err := w.log.Append(w.T.Context(), session.NewDraft(session.TypeToolCall, 0, 0, call.ID, body)); err != nil {
		w.T.Fatal(err)
	}
	r, err := d.Undo(w.T.Context(), call)
	if err != nil {
		w.T.Fatal(err)
	}
	return r
}

// Approve implements dispatch.Approver.
func (w *world) Approve(_ context.Context, q policy.Question) func() (policy.Answer, error) {
	w.asked = append(w.asked, q)
	return func() (policy.Answer, error) { return policy.Answer{Question: q.ID, Allow: w.answer}, nil }
}

// events returns the bodies of one type.
func (w *world) events(typ session.Type) (out []string) {
	for e, err := range w.store.Events(w.T.Context(), id, 0) {
		if err != nil {
			w.T.Fatal(err)
		}
		if e.Type == typ {
			out = append(out, string(e.Body))
		}
	}
	return out
}

// everything makes every kind of change in the workspace.
func (w *world) everything() {
	w.File("ws/f.txt", "changed")
	w.File("ws/new/deep/x.txt", "new")
	w.File("ws/new/y.txt", "new")
	must(w.T, os.Remove(w.Path("ws/d/g.txt")))
	must(w.T, os.Remove(w.Path("ws/d")))
	must(w.T, os.Chmod(w.Path("ws/run"), 0o755))
	must(w.T, os.Remove(w.Path("ws/link")))
	w.Link("ws/link", "run")
	w.Link("ws/new/link", "../f.txt")
	must(w.T, os.Remove(w.Path("ws/empty")))
	w.File("ws/empty", "a file now")
	must(w.T, os.Chmod(w.Path("ws/dir"), 0o700))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestTurnsAreUndoneOneAfterTheOther(t *testing.T) {
	w := newWorld(t)
	states := []map[string]string{w.snapshot("ws")}
	for turn, edit := range []func(){
		w.everything,
		func() { w.File("ws/f.txt", "again"); w.File("ws/d", "a file") },
		func() { must(t, os.RemoveAll(w.Path("ws/new"))); must(t, os.Chmod(w.Path("ws/f.txt"), 0o600)) },
	} {
		w.change(turn+1, edit)
		states = append(states, w.snapshot("ws"))
	}
	w.record(4, nil, nil) // a turn that only reads
	for turn := 3; turn > 0; turn-- {
		r := w.undo()
		var out undo.Output
		if r.Err != nil || json.Unmarshal(r.Output, &out) != nil || out.Turn != turn || out.Prompt != fmt.Sprint("prompt ", turn) {
			t.Fatalf("turn %d: %s %+v", turn, r.Output, r.Err)
		}
		if d := cmp.Diff(states[turn-1], w.snapshot("ws")); d != "" {
			t.Fatalf("turn %d (-before it +after it was undone):\n%s", turn, d)
		}
	}
	if r := w.undo(); r.Err == nil || !strings.Contains(r.Err.Message, "no turn of this session has changed files") {
		t.Errorf("once more: %s %+v", r.Output, r.Err)
	}
	if len(w.asked) > 0 {
		t.Errorf("it was asked about: %+v", w.asked)
	}
	told := w.events(session.TypeMessage)
	if len(told) != 3 || !strings.Contains(told[2], `"brief":"undo"`) || !strings.Contains(told[2], "ws/d/g.txt") {
		t.Errorf("the model is told %q", told)
	}
	if left, err := os.ReadDir(w.Path("stages")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if _, err := session.VerifySession(w.store.Events(t.Context(), id, 0)); err != nil {
		t.Error(err)
	}
}

// Undone changes can be made again, in the opposite order, and undone again.
func TestWhatWasUndoneIsMadeAgain(t *testing.T) {
	w := newWorld(t)
	states := []map[string]string{w.snapshot("ws")}
	for turn, edit := range []func(){w.everything, func() { w.File("ws/f.txt", "again") }} {
		w.change(turn+1, edit)
		states = append(states, w.snapshot("ws"))
	}
	const undone, redo = `{}`, `{"redo":true}`
	for i, step := range []struct {
		args  string
		state int
		fails string
	}{
		{redo, 2, "nothing was undone that could be made again"},
		{undone, 1, ""}, {redo, 2, ""}, {undone, 1, ""}, {undone, 0, ""}, {redo, 1, ""}, {redo, 2, ""},
		{redo, 2, "nothing was undone that could be made again"},
		{undone, 1, ""}, {undone, 0, ""}, {undone, 0, "no turn of this session has changed files"}, {redo, 1, ""},
	} {
		r := w.undoOr(step.args)
		if (r.Err == nil) != (step.fails == "") || r.Err != nil && !strings.Contains(r.Err.Message, step.fails) {
			t.Fatalf("step %d: %s %+v", i, r.Output, r.Err)
		}
		if d := cmp.Diff(states[step.state], w.snapshot("ws")); d != "" {
			t.Fatalf("step %d:\n%s", i, d)
		}
	}
	w.File("ws/f.txt", "mine")
	if r := w.undoOr(redo); r.Err == nil || !strings.Contains(r.Err.Stdout, "+mine") || w.Content("ws/f.txt") != "mine" {
		t.Errorf("over what has changed since: %s %+v", r.Output, r.Err)
	}
}

// The calls of a turn are undone together, in whatever order they came.
func TestTheCallsOfATurnAreUndoneTogether(t *testing.T) {
	w := newWorld(t)
	before := w.snapshot("ws")
	w.change(1, func() { w.File("ws/f.txt", "one"); w.File("ws/temp", "x"); w.File("ws/gone/x", "x") })
	w.recordAs(1, session.Intent{Tool: "edit", Digest: "abc"}, session.Changes{Files: []session.Change{{Path: w.Path("ws/f.txt"), Kind: tool.Removed}}}, nil,
		tool.Failed(tool.CodeNotKept, tool.IOError, "a commit that failed"))
	w.change(1, func() { w.File("ws/f.txt", "two"); must(t, os.Remove(w.Path("ws/temp"))) })
	w.change(1, func() { must(t, os.RemoveAll(w.Path("ws/gone"))); must(t, os.Remove(w.Path("ws/f.txt"))) })
	if r := w.undo(); r.Err != nil {
		t.Fatal(r.Err)
	}
	if d := cmp.Diff(before, w.snapshot("ws")); d != "" {
		t.Error(d)
	}
}

// If a turn cannot be undone, everything stays as it is.
func TestNothingIsUndone(t *testing.T) {
	edit := func(w *world) { w.change(1, w.everything) }
	for _, c := range []struct {
		name  string
		turn  func(*world)
		since func(*world)
		want  string // of the message
		diff  string // of what it shows
		asks  bool

		hidden string // what it does not show
	}{
		{name: "a file has changed since", since: func(w *world) { w.File("ws/f.txt", "mine") }, want: `f.txt" (it has changed)`, diff: "-changed\n\\ No newline at end of file\n+mine\n"},
		{name: "it holds a secret now", since: func(w *world) {
			w.File("ws/f.txt", "a secret\nof two lines\n")
			w.known.Add("a secret\nof two lines")
		}, want: `f.txt" (it has changed)`, hidden: "of two lines"},
		{name: "one of the same size", since: func(w *world) { w.File("ws/f.txt", "CHANGED") }, want: `f.txt" (it has changed)`, diff: "+CHANGED\n"},
		{name: "its mode has changed", since: func(w *world) { must(w.T, os.Chmod(w.Path("ws/run"), 0o700)) }, want: `run" (its mode is -rwx------)`},
		{name: "the mode of a directory has changed", since: func(w *world) { must(w.T, os.Chmod(w.Path("ws/dir"), 0o750)) }, want: `dir" (its mode is -rwxr-x---)`},
		{name: "a file is gone", since: func(w *world) { must(w.T, os.Remove(w.Path("ws/new/y.txt"))) }, want: `new/y.txt" (it is gone)`},
		{name: "a removed file is there again", since: func(w *world) { w.File("ws/d/g.txt", "mine") }, want: `d/g.txt" (something is there now)`, diff: "+mine\n"},
		{name: "a link leads elsewhere", since: func(w *world) { must(w.T, os.Remove(w.Path("ws/link"))); w.Link("ws/link", "../out/secret") }, want: `link" (it leads elsewhere)`},
		{name: "calls have staged as much as there may be", since: func(w *world) { w.budget = stage.NewBudget(1, 1) }, want: "no space left on device"},
		{name: "the directory is gone", turn: func(w *world) { w.change(1, func() { must(w.T, os.Remove(w.Path("ws/d/g.txt"))) }) },
			since: func(w *world) { must(w.T, os.Remove(w.Path("ws/d"))) }, want: "its directory is gone"},

		// Attacks.
		{name: "a link out in the place of a file", since: func(w *world) { must(w.T, os.Remove(w.Path("ws/f.txt"))); w.Link("ws/f.txt", "../out/secret") }, want: `f.txt" (something else is there now)`},
		{name: "a link to its twin in the place of a file", since: func(w *world) {
			w.Rename("ws/f.txt", "ws/g")
			w.Link("ws/f.txt", "g")
		}, want: `f.txt" (something else is there now)`},
		{name: "a FIFO in the place of a file", since: func(w *world) { must(w.T, os.Remove(w.Path("ws/f.txt"))); mkfifo(w.T, w.Path("ws/f.txt")) }, want: `f.txt" (something else is there now)`},
		{name: "the directory is a link out", turn: func(w *world) { w.change(1, func() { must(w.T, os.Remove(w.Path("ws/d/g.txt"))) }) },
			since: func(w *world) { must(w.T, os.Remove(w.Path("ws/d"))); w.Link("ws/d", "../out/dir") }, want: "a link or a file now"},
		{name: "the directory is a link to its twin", turn: func(w *world) { w.change(1, func() { w.File("ws/d/g.txt", "x") }) },
			since: func(w *world) { w.Rename("ws/d", "ws/e"); w.Link("ws/d", "e") }, want: "a link or a file now"},
		{name: "the directory may only be read now", since: func(w *world) { w.opts.Mounts[0].Write = false }, want: "which tools may only read now"},
		{name: "one in it may only be read now", since: func(w *world) {
			w.opts.Mounts = append(w.opts.Mounts, policy.Mount{Host: w.Path("ws/new")})
		}, want: "which tools may only read now"},
		{name: "tools are shown another directory now", since: func(w *world) { w.opts.Mounts[0].Host = w.Path("out") }, want: "in no directory that tools are shown now"},
		{name: "it is hidden from tools now", since: func(w *world) { w.opts.Masked = []string{w.Path("ws/new/deep")} }, want: "is hidden from tools, or leads"},
		{name: "a rule denies it", since: func(w *world) {
			w.opts.Rules = []policy.Rule{{Effect: policy.Deny, Tool: policy.AnyTool, Source: policy.SourceUser}}
		}, want: "undo was denied"},
		{name: "every call asks, and nobody says yes", since: func(w *world) { w.opts.ConfirmAll = true }, want: "the answer was no", asks: true},
		{name: "what it would restore is closed to tools", turn: func(w *world) {
			w.Dir("ws/.git/hooks")
			w.change(1, func() { w.File("ws/.git/hooks/pre-commit", "evil") })
		}, want: "git hooks"},
		{name: "closed, of a repository of another name", turn: func(w *world) {
			w.File("ws/bare/HEAD", "ref: refs/heads/main\n")
			w.File("ws/bare/hooks/update", "mine")
			w.change(1, func() { w.File("ws/bare/hooks/update", "evil") })
		}, want: "a part of a git repository"},
		{name: "what it would restore is asked about, and nobody says yes", turn: func(w *world) {
			w.change(1, func() { w.File("ws/.bashrc", "x") })
		}, want: "the answer was no", asks: true},
		{name: "a link that leads out would come back", turn: func(w *world) {
			w.Link("ws/out", "../out")
			w.change(1, func() { must(w.T, os.Remove(w.Path("ws/out"))) })
		}, want: "the answer was no", asks: true},
		{name: "a name that leads out", turn: func(w *world) {
			w.record(1, session.Changes{Files: []session.Change{{Path: w.Path("ws") + "/../out/secret", Kind: tool.Created, After: &session.Version{Mode: "-rw-r--r--"}}}}, nil)
		}, want: "is no name that a call has changed"},
		{name: "an image was exchanged", since: func(w *world) { w.exec("UPDATE images SET packed = x'6576696c', size = 4") }, want: "not what was written"},
		{name: "an image of another session was put there", since: func(w *world) {
			w.exec("UPDATE images SET session = 'other'")
		}, want: "is not stored"},
		{name: "the log was changed", since: func(w *world) {
			w.exec(`DROP TRIGGER bodies_no_update; UPDATE bodies SET body = CAST(replace(CAST(body AS TEXT), 'f.txt', 'x.txt') AS BLOB)`)
		}, want: "the log is not as it was written"},

		// What is not known.
		{name: "images made room", since: func(w *world) { w.exec("DELETE FROM images") }, want: "is not stored"},
		{name: "bodies were deleted", since: func(w *world) { must(w.T, w.store.DeleteBodies(w.T.Context(), id)) }, want: "was deleted from the log"},
		{name: "it looks like a secret", turn: func(w *world) {
			w.record(1, session.Changes{Files: []session.Change{{Path: w.Path("ws/secret.key"), Kind: tool.Modified, NoPreimage: session.NoPreimageSecret,
				Before: &session.Version{Mode: "-rw-r--r--", SHA256: "00"}, After: &session.Version{Mode: "-rw-r--r--", SHA256: "11"}}}}, nil)
		}, want: "it looks like a secret"},
		{name: "a command has changed files directly", turn: func(w *world) {
			w.change(1, w.everything)
			w.recordAs(1, session.Intent{Tool: "bash", Exec: true, Changes: policy.ChangesDirect}, nil, nil, tool.Result{Output: json.RawMessage(`{}`)})
		}, want: "changed files directly"},
		{name: "a command of an older version", turn: func(w *world) {
			w.recordAs(1, session.Intent{Tool: "bash", Exec: true}, nil, nil, tool.Result{Output: json.RawMessage(`{}`)})
		}, want: "changed files directly"},
		{name: "more files than are listed", turn: func(w *world) {
			w.record(1, session.Changes{More: 5, Files: []session.Change{{Path: w.Path("ws/f.txt"), Kind: tool.Created}}}, nil)
		}, want: "has changed 6 files"},
		{name: "a directory was moved", turn: func(w *world) {
			v := &session.Version{Mode: "drwxr-xr-x"}
			w.record(1, session.Changes{Files: []session.Change{{Path: w.Path("ws/d"), From: w.Path("ws/was"), Kind: tool.Renamed, Before: v, After: v}}}, nil)
		}, want: "move it back by hand"},
		{name: "somebody else changed a file between two calls", turn: func(w *world) {
			w.change(1, func() { w.File("ws/f.txt", "one") })
			w.File("ws/f.txt", "mine")
			w.change(1, func() { w.File("ws/f.txt", "two") })
		}, want: "changed by somebody else between two of its calls"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			if c.turn == nil {
				c.turn = edit
			}
			c.turn(w)
			if c.since != nil {
				c.since(w)
			}
			before, outside := w.snapshotAll(), w.snapshot("out")
			r := w.undo()
			if r.Err == nil || !strings.Contains(r.Err.Message, c.want) || !strings.Contains(r.Err.Stdout, c.diff) {
				t.Errorf("%s %+v", r.Output, r.Err)
			}
			if c.hidden != "" && strings.Contains(r.Err.Stdout, c.hidden) {
				t.Errorf("it shows %s", r.Err.Stdout)
			}
			if d := cmp.Diff(before, w.snapshotAll()); d != "" {
				t.Errorf("changed:\n%s", d)
			}
			if d := cmp.Diff(outside, w.snapshot("out")); d != "" {
				t.Errorf("changed outside:\n%s", d)
			}
			if (len(w.asked) > 0) != c.asks {
				t.Errorf("asked %d times", len(w.asked))
			}
			if told := w.events(session.TypeMessage); len(told) > 0 {
				t.Errorf("the model is told %q", told)
			}
		})
	}
}

// snapshotAll returns the snapshot of the workspace.
func (w *world) snapshotAll() map[string]string {
	out := map[string]string{}
	must(w.T, filepath.WalkDir(w.Path("ws"), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		out[path] = fmt.Sprint(fi.Mode(), fi.ModTime())
		if fi.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			must(w.T, err)
			out[path] += " " + string(data)
		}
		return nil
	}))
	return out
}

// exec changes the database of the log directly.
func (w *world) exec(statements string) {
	w.T.Helper()
	db, err := sql.Open("sqlite3", w.Path("log/sessions.db"))
	must(w.T, err)
	defer db.Close()
	_, err = db.Exec(statements)
	must(w.T, err)
}

// An undo of a special path is asked about, with the content that it would get.
func TestPathsThatNeedCareAreAskedAbout(t *testing.T) {
	w := newWorld(t)
	w.answer = true
	before := w.snapshot("ws")
	w.change(1, func() { w.File("ws/.bashrc", "x\n") })
	if r := w.undo(); r.Err != nil {
		t.Fatal(r.Err)
	}
	if len(w.asked) != 1 || !strings.Contains(w.asked[0].Changes.String(), "removed .bashrc") {
		t.Errorf("asked %+v", w.asked)
	}
	if d := cmp.Diff(before, w.snapshot("ws")); d != "" {
		t.Error(d)
	}
}

// A directory that the turn has made stays if others have put files into it since.
func TestADirectoryWithOtherFilesStays(t *testing.T) {
	w := newWorld(t)
	w.change(1, w.everything)
	w.File("ws/new/deep/mine", "mine")
	r := w.undo()
	var out undo.Output
	if r.Err != nil || json.Unmarshal(r.Output, &out) != nil || !slices.Equal(out.KeptDirs, []string{w.Path("ws/new"), w.Path("ws/new/deep")}) {
		t.Fatalf("%s %+v", r.Output, r.Err)
	}
	if slices.Contains(out.Files, w.Path("ws/new")) || !slices.Contains(out.Files, w.Path("ws/new/y.txt")) {
		t.Errorf("put back: %q", out.Files)
	}
	var left []string
	for path := range w.snapshot("ws/new") {
		left = append(left, path)
	}
	if slices.Sort(left); !slices.Equal(left, []string{w.Path("ws/new/deep"), w.Path("ws/new/deep/mine")}) {
		t.Errorf("it holds %q", left)
	}
}

// A turn is never undone in part in a directory, and in part in another one that has its place.
func TestTheWorkspaceIsReplaced(t *testing.T) {
	w := newWorld(t)
	w.change(1, func() { w.File("ws/f.txt", "new"); w.File("ws/run", "new") })
	w.loads = func() {
		w.Rename("ws", "moved")
		must(t, os.CopyFS(w.Path("ws"), os.DirFS(w.Path("moved"))))
	}
	if r := w.undo(); r.Err == nil || w.Content("ws/f.txt")+w.Content("ws/run")+w.Content("moved/f.txt")+w.Content("moved/run") != "newnewnewnew" {
		t.Errorf("%s %+v; there are %q and %q", r.Output, r.Err, w.snapshot("ws"), w.snapshot("moved"))
	}
}

// The changes of an interrupted call are all made, or none is.
func TestAnInterruptedCall(t *testing.T) {
	interrupted := tool.Failed(tool.CodeInterrupted, tool.InternalError, "interrupted")
	for _, made := range []bool{true, false} {
		w := newWorld(t)
		before := w.snapshot("ws")
		w.change(1, func() { w.File("ws/f.txt", "one") })
		version := func(text string) *session.Version {
			return &session.Version{Mode: "-rw-r--r--", Bytes: int64(len(text)), SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(text)))}
		}
		w.recordAs(1, session.Intent{Tool: "edit", Digest: "abc"}, session.Changes{Files: []session.Change{
			{Path: w.Path("ws/f.txt"), Kind: tool.Modified, Before: version("one"), After: version("two")},
		}}, nil, interrupted)
		if made {
			w.File("ws/f.txt", "two")
		}
		if r := w.undo(); r.Err != nil {
			t.Errorf("made %t: %v", made, r.Err)
		}
		if d := cmp.Diff(before, w.snapshot("ws")); d != "" {
			t.Errorf("made %t: %s", made, d)
		}
	}
}

// An undo that was killed before its result was recorded counts as done.
func TestWhatIsUndoneAlreadyIsNoted(t *testing.T) {
	w := newWorld(t)
	w.change(1, func() { w.File("ws/f.txt", "one") })
	w.change(2, func() { w.File("ws/f.txt", "two"); must(t, os.Chmod(w.Path("ws/dir"), 0o700)) })
	w.File("ws/f.txt", "one")
	must(t, os.Chmod(w.Path("ws/dir"), 0o755))
	for _, want := range []string{`{"turn":2,"prompt":"prompt 2","files":[]}`, fmt.Sprintf(`{"turn":1,"prompt":"prompt 1","files":[%q]}`, w.Path("ws/f.txt"))} {
		if r := w.undo(); string(r.Output) != want {
			t.Errorf("%s %+v", r.Output, r.Err)
		}
	}
	if got := w.Content("ws/f.txt"); got != "inside" {
		t.Errorf("it is %q", got)
	}
}
