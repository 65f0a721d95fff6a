package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/humanize"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/transcript"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/undo"
)

// undo undoes the changes of the last turn whose changes are not undone yet.
func (t *conversation) undo(ctx context.Context, _ string) error {
	_, err := t.runUndo(ctx, undo.Args{})
	return err
}

// redo restores the changes that were undone last.
func (t *conversation) redo(ctx context.Context, _ string) error {
	_, err := t.runUndo(ctx, undo.Args{Redo: true})
	return err
}

// runUndo undoes a turn or makes its changes again, and shows the result. done is false if
// nothing was changed, with the reason shown.
func (t *conversation) runUndo(ctx context.Context, args undo.Args) (done bool, err error) {
	var changes session.Changes
	stop := t.Log.Observe(func(e session.Event) {
		switch e.Type {
		case session.TypeToolCall:
			t.skipCall()
		case session.TypeCallChanges:
			_ = json.Unmarshal(e.Body, &changes) // this program wrote it
		}
	})
	result, err := t.Undo(ctx, args)
	stop()
	if err != nil {
		return false, err
	}
	if failure := result.Err; failure != nil {
		t.a.s.note("%s%s", failure.Message, prefixIfSet("; ", hintText(failure.AllowHint)))
		for line := range strings.Lines(failure.Stdout) { // files that were changed since
			fmt.Fprintf(t.a.s.err, "  │ %s\n", terminal.Line(strings.TrimSuffix(line, "\n")))
		}
		if failure.Code != tool.CodeDenied { // the hint is for a model
			if hint := hintText(failure.Hint); hint != "" {
				t.a.s.hint("%s", hint)
			}
		}
		return false, nil
	}
	w := t.a.s.out
	var out undo.Output
	if err := json.Unmarshal(result.Output, &out); err != nil {
		return false, err
	}
	what, next := "undone: the changes of", "/undo again goes one turn further back, /redo makes the changes again"
	if out.Redo {
		what, next = "made again: the changes of", "/undo takes them back, /redo goes one turn further"
	}
	if len(out.Files) == 0 {
		fmt.Fprintln(w, wrapHanging(fmt.Sprintf("nothing to do: the files of turn %d are like that already; %s", out.Turn, next), t.a.s.width()))
		return true, nil
	}
	fmt.Fprintf(w, "%s turn %d, in %s\n", what, out.Turn, humanize.Plural(len(changes.Files)+changes.More, "file"))
	prompt, _, _ := strings.Cut(out.Prompt, "\n")
	fmt.Fprintf(w, "  │ > %s\n", terminal.Line(humanize.Clip(prompt, 70)))
	lines := changes.Summary
	if len(lines) == 0 {
		for _, c := range changes.Files {
			lines = append(lines, transcript.ChangeText(c, t.a.Workspace))
		}
	}
	const most = 20
	for _, line := range lines[:min(len(lines), most)] {
		fmt.Fprintf(w, "  │ %s\n", terminal.Line(line))
	}
	if more := len(lines) - most; more > 0 {
		fmt.Fprintf(w, "  and %d more\n", more)
	}
	for _, dir := range out.KeptDirs {
		fmt.Fprintf(w, "  stays, because it holds other files now:\n  │ %s\n", terminal.Line(transcript.Relative(dir, t.a.Workspace)))
	}
	if args.From == 0 {
		fmt.Fprintln(w, wrapHanging(next, t.a.s.width()))
	}
	return true, nil
}

// skipCall counts a call that is not shown, so that later calls have the numbers of the
// session, which /show uses.
func (t *conversation) skipCall() {
	t.priorCalls++
	switch {
	case t.a.ui != nil:
		t.a.ui.SkipCall()
	case t.printer != nil:
		t.printer.SkipCall()
	}
}
