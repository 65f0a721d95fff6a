package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/undo"
)

// undo puts back what the last turn has changed that is not undone yet.
func (t *turns) undo(ctx context.Context, _ string) error { return t.putBack(ctx, undo.Args{}) }

// redo makes again what was undone last.
func (t *turns) redo(ctx context.Context, _ string) error {
	return t.putBack(ctx, undo.Args{Redo: true})
}

func (t *turns) putBack(ctx context.Context, args undo.Args) error {
	var changes session.Changes
	stop := t.Log.Observe(func(e session.Event) {
		switch e.Type {
		case session.TypeToolCall:
			t.passed()
		case session.TypeCallChanges:
			_ = json.Unmarshal(e.Body, &changes) // our own
		}
	})
	result, err := t.Undo(ctx, args)
	stop()
	if err != nil {
		return err
	}
	if failure := result.Err; failure != nil {
		t.a.s.note("%s%s", failure.Message, suffix("; ", inWords(failure.Change)))
		for line := range strings.Lines(failure.Stdout) { // what has changed since
			fmt.Fprintf(t.a.s.err, "  │ %s\n", terminal.Line(strings.TrimSuffix(line, "\n")))
		}
		if failure.Code != tool.CodeDenied { // the hint is for a model
			if hint := inWords(failure.Hint); hint != "" {
				t.a.s.hint("%s", hint)
			}
		}
		return nil
	}
	w := t.a.s.out
	var out undo.Output
	if err := json.Unmarshal(result.Output, &out); err != nil {
		return err
	}
	what, next := "undone: the changes of", "/undo again goes one turn further back, /redo makes the changes again"
	if out.Redo {
		what, next = "made again: the changes of", "/undo takes them back, /redo goes one turn further"
	}
	if len(out.Files) == 0 {
		fmt.Fprintf(w, "nothing to do: the files of turn %d are like that already; %s\n", out.Turn, next)
		return nil
	}
	fmt.Fprintf(w, "%s turn %d, in %s\n", what, out.Turn, plural(len(changes.Files)+changes.More, "file"))
	prompt, _, _ := strings.Cut(out.Prompt, "\n")
	fmt.Fprintf(w, "  │ > %s\n", terminal.Line(clip(prompt, 70)))
	lines := changes.Summary
	if len(lines) == 0 {
		for _, c := range changes.Files {
			lines = append(lines, t.relative(c.Path)+effectOf(c))
		}
	}
	const most = 20
	for _, line := range lines[:min(len(lines), most)] {
		fmt.Fprintf(w, "  │ %s\n", terminal.Line(line))
	}
	if more := len(lines) - most; more > 0 {
		fmt.Fprintf(w, "  and %d more\n", more)
	}
	for _, dir := range out.Stays {
		fmt.Fprintf(w, "  stays, because it holds other files now:\n  │ %s\n", terminal.Line(t.relative(dir)))
	}
	fmt.Fprintln(w, next)
	return nil
}

// passed counts a call of which no row is shown: the numbers of the next ones are those
// of the session, which /show opens.
func (t *turns) passed() {
	t.calls++
	switch {
	case t.a.ui != nil:
		t.a.ui.Passed()
	case t.shown != nil:
		t.shown.Passed()
	}
}

// relative is a path as it is shown: from the workspace, where it is in there.
func (t *turns) relative(path string) string {
	if rel, err := filepath.Rel(t.a.Work, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// effectOf is what a change has done to a file, in short.
func effectOf(c session.Change) string {
	switch {
	case c.Kind == tool.Modified && c.Added+c.Removed > 0:
		return fmt.Sprintf("   +%d −%d", c.Added, c.Removed)
	default:
		return "   " + string(c.Kind)
	}
}
