package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/humanize"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/prompt"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/table"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/transcript"
	"github.com/stockade-dev/stockade/host/undo"
)

// rewindChoices are the answers to what a rewind takes back. Their labels are the second
// argument of /rewind, too.
var rewindChoices = []prompt.Choice{{Letter: 'b', Label: "both"}, {Letter: 'c', Label: "conversation"}, {Letter: 'f', Label: "files"}, noChoice}

// rewind lists the turns, or takes back the conversation, the files, or both, to before a turn.
func (t *conversation) rewind(ctx context.Context, arg string) error {
	turns, err := t.Turns(ctx)
	if err != nil {
		return err
	}
	if arg == "" {
		return t.listTurns(turns)
	}
	number, what, _ := strings.Cut(arg, " ")
	from := slices.IndexFunc(turns, func(turn undo.Turn) bool { return strconv.Itoa(turn.Number) == number })
	if from < 0 {
		return fmt.Errorf("there is no turn %.20q to go back to; /rewind lists the turns", number)
	}
	turns = turns[from:]
	for _, c := range rewindChoices[:3] {
		if c.Label == what {
			return t.takeBack(ctx, turns, c.Letter)
		}
	}
	asker := t.a.asker(t.lines)
	if what != "" || asker == nil {
		return fmt.Errorf("use /rewind %[1]s both, /rewind %[1]s conversation or /rewind %[1]s files", number)
	}
	text := func(most int) func() string { return func() string { return t.rewindText(turns, most) } }
	choice, err := asker.Ask(ctx, prompt.New("Take back?", rewindChoices, text(5), text(200)))
	if err != nil || choice.Letter == noChoice.Letter {
		return err
	}
	return t.takeBack(ctx, turns, choice.Letter)
}

// listTurns shows the turns that can be taken back.
func (t *conversation) listTurns(turns []undo.Turn) error {
	if len(turns) == 0 {
		fmt.Fprintln(t.a.s.out, "There are no turns yet.")
		return nil
	}
	w := table.New(table.Fixed("TURN"), table.Fixed("FILES"), table.Text("PROMPT"))
	for _, turn := range turns {
		w.Row(strconv.Itoa(turn.Number), strconv.Itoa(len(turn.Files)), turnTitle(turn))
	}
	if err := t.a.s.table(w); err != nil {
		return err
	}
	fmt.Fprintln(t.a.s.out, "/rewind N goes back to before turn N, with the conversation, the files, or both")
	return nil
}

// turnTitle returns the first line of a turn's prompt.
func turnTitle(turn undo.Turn) string {
	first, _, _ := strings.Cut(turn.Prompt, "\n")
	if turn.Rewound {
		first += " (not in the conversation any more)"
	}
	return terminal.Line(humanize.Clip(first, 200))
}

// rewindText describes what goes back and what stays, with at most so many lines of each.
func (t *conversation) rewindText(turns []undo.Turn, most int) string {
	v := prompt.View{Width: t.a.s.width(), Color: t.a.s.color}
	var titles, files, kept []string
	for _, turn := range turns {
		titles = append(titles, strconv.Itoa(turn.Number)+" "+turnTitle(turn))
		for _, f := range turn.Files {
			files = append(files, transcript.Relative(f, t.a.Workspace))
		}
		kept = append(kept, turn.Kept...)
	}
	slices.Sort(files)
	files = slices.Compact(files)
	var b strings.Builder
	for _, part := range []struct {
		title string
		lines []string
	}{
		{"goes back to before " + humanize.Plural(len(titles), "turn"), titles},
		{"puts back " + humanize.Plural(len(files), "file"), files},
		{"stays as it is, whatever you answer", kept},
	} {
		if more := len(part.lines) - most; more > 0 {
			part.lines = append(part.lines[:most:most], fmt.Sprintf("and %d more", more))
		}
		if len(part.lines) > 0 {
			fmt.Fprintf(&b, "  %s\n%s", part.title, v.Text(strings.Join(part.lines, "\n"), true))
		}
	}
	return b.String()
}

// takeBack undoes the changes of files in turns, goes back to the conversation before the first, or
// does both, by the letter of [rewindChoices]. If a file stays, the conversation does, too.
func (t *conversation) takeBack(ctx context.Context, turns []undo.Turn, letter rune) error {
	var changed []string
	for _, turn := range turns {
		changed = append(changed, turn.Others...)
		if letter == 'c' || len(turn.Files) == 0 {
			changed = append(changed, turn.Files...)
		} else if done, err := t.runUndo(ctx, undo.Args{From: turns[0].Number}); err != nil {
			return err
		} else if !done {
			return errors.New("not all files were put back, and the conversation is as it was")
		}
		for _, c := range turn.Kept {
			t.a.s.note("stays: %s", terminal.Line(humanize.Clip(c, 200)))
		}
	}
	if letter == 'f' {
		return nil
	}
	if i := slices.IndexFunc(turns, func(turn undo.Turn) bool { return !turn.Rewound }); i >= 0 {
		slices.Sort(changed)
		if err := t.Rewind(ctx, turns[i].Number, slices.Compact(changed)); err != nil {
			return err
		}
		fmt.Fprintf(t.a.s.out, "the conversation is back to before turn %d; the log keeps everything\n", turns[i].Number)
	}
	return nil
}
