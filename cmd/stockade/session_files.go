package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/humanize"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/table"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/transcript"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/toolstore"
	"github.com/stockade-dev/stockade/host/undo"
)

// taskJSON is a task of a session in the output of `session show --files --json`.
type taskJSON struct {
	ID      string `json:"id"`
	Status  string `json:"status"`
	Content string `json:"content"`
}

// tasksIn returns the tasks in the data that the tools of a session have stored, in the order
// in which they were added.
func tasksIn(contents []toolstore.Listing) []taskJSON {
	tasks := []taskJSON{}
	for _, c := range contents {
		if c.Owner != "builtin:tasks" {
			continue
		}
		for _, e := range c.Entries {
			t := taskJSON{ID: e.Key}
			if json.Unmarshal(e.Value, &t) == nil {
				tasks = append(tasks, t)
			}
		}
	}
	slices.SortFunc(tasks, func(a, b taskJSON) int { return a.number() - b.number() })
	return tasks
}

func (t taskJSON) number() int {
	n, _ := strconv.Atoi(strings.TrimPrefix(t.ID, "task_"))
	return n
}

func showTasks(s *stdio, tasks []taskJSON) {
	done := 0
	for _, t := range tasks {
		mark := map[string]string{"in_progress": "[~]", "completed": "[x]"}[t.Status]
		switch mark {
		case "":
			mark = "[ ]"
		case "[x]":
			done++
		}
		first, _, more := strings.Cut(t.Content, "\n")
		if more {
			first += " ..."
		}
		for i, row := range terminal.Wrap(terminal.Line(humanize.Clip(t.ID+" "+first, 400)), s.width()-9) {
			if i > 0 {
				mark = "   "
			}
			fmt.Fprintf(s.out, "  │ %s %s\n", mark, row)
		}
	}
	fmt.Fprintf(s.out, "%d of %s done\n", done, humanize.Plural(len(tasks), "task"))
}

func (t *conversation) tasks(context.Context, string) error {
	tasks := tasksIn(t.Tools.StoreContents())
	if len(tasks) == 0 {
		fmt.Fprintln(t.a.s.out, "There are no tasks. The model adds tasks when a piece of work is longer.")
		return nil
	}
	showTasks(t.a.s, tasks)
	return nil
}

type filesJSON struct {
	Files []undo.File `json:"files"`
	// Unrecorded is the number of calls that may have changed files, but have no record of
	// changes in the log.
	Unrecorded int            `json:"unrecorded_calls"`
	Kept       []toolDataJSON `json:"kept"`
	Tasks      []taskJSON     `json:"tasks"`
}

// toolDataJSON describes the data that one module has stored in the session.
type toolDataJSON struct {
	Module string   `json:"module"`
	Owner  string   `json:"owner"`
	Bytes  int      `json:"bytes"`
	Keys   []string `json:"keys"`
}

// runSessionFiles shows the files that the calls of a session have changed, and the data
// that its tools have stored.
func runSessionFiles(ctx context.Context, a *app, st session.Store, id string) error {
	stores, work := toolstore.New(policy.DefaultLimits(), time.Now), ""
	files, unrecorded, err := undo.Files(func(yield func(session.Event, error) bool) {
		for e, err := range st.Events(ctx, id, 0) {
			stores.Fold(e)
			var s session.Started
			if e.Type == session.TypeSessionStarted && json.Unmarshal(e.Body, &s) == nil {
				work = s.Workspace
			}
			if !yield(e, err) {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	out := filesJSON{Files: files, Unrecorded: unrecorded, Kept: []toolDataJSON{}}
	contents := stores.List()
	out.Tasks = tasksIn(contents)
	for _, c := range contents {
		k := toolDataJSON{Module: c.Module, Owner: c.Owner, Bytes: c.Bytes}
		for _, e := range c.Entries {
			k.Keys = append(k.Keys, e.Key)
		}
		out.Kept = append(out.Kept, k)
	}
	if a.flags.json {
		return printJSON(a.s, out)
	}
	return a.showFiles(out, work)
}

// maxFileRows limits the files shown to a person; others are counted, and --json has them.
const maxFileRows = 1000

func (a *app) showFiles(out filesJSON, work string) error {
	if len(out.Files) > 0 {
		w := table.New(table.Path("FILE"), table.Fixed("HOW"), table.Fixed("LINES"), table.Fixed("CALLS"), table.Fixed("UNDONE"))
		for _, f := range out.Files[:min(len(out.Files), maxFileRows)] {
			name := transcript.Relative(f.Path, work)
			if f.From != "" {
				name = transcript.Relative(f.From, work) + " → " + name
			}
			lines := ""
			if f.Added+f.Removed > 0 {
				lines = fmt.Sprintf("+%d -%d", f.Added, f.Removed)
			}
			w.Row(name, f.Status, lines, f.Calls, f.Undone)
		}
		if err := a.s.table(w); err != nil {
			return err
		}
		if more := len(out.Files) - maxFileRows; more > 0 {
			fmt.Fprintf(a.s.out, "and %s, which --json lists\n", humanize.Plural(more, "more file"))
		}
	} else {
		a.s.note("no call of this session has changed a file")
	}
	if out.Unrecorded > 0 {
		fmt.Fprintln(a.s.out, wrapHanging(humanize.Plural(out.Unrecorded, "command")+" may have changed files directly, which the log does not record", a.s.width()))
	}
	if len(out.Kept) > 0 {
		fmt.Fprintln(a.s.out)
		w := table.New(table.Text("KEPT BY"), table.Fixed("KEYS"), table.Fixed("SIZE"), table.Path("OWNER"))
		for _, k := range out.Kept {
			w.Row(k.Module, len(k.Keys), humanize.Bytes(int64(k.Bytes)), k.Owner)
		}
		if err := a.s.table(w); err != nil {
			return err
		}
	}
	if len(out.Tasks) > 0 {
		fmt.Fprintln(a.s.out)
		showTasks(a.s, out.Tasks)
	}
	return nil
}
