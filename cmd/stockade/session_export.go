package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/humanize"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/transcript"
	"github.com/stockade-dev/stockade/host/door"
	"github.com/stockade-dev/stockade/host/session"
)

func newSessionForkCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "fork SESSION[@TURN]", Short: "Begin a session with a copy of another one",
		Long: `Begin a session with a copy of another one, up to the end of a turn (default: the
last that has ended), and print its id. The other session stays as it is, and may
be in use. Files are not copied: both sessions work on the same. What was
allowed for the other session only is asked about again, and the files that it has
overwritten or removed come back only by its own /undo. SESSION is an id, the
beginning of one, or "last": the conversation of this workspace, as for resume.`,
		Example: "  stockade session fork last\n  stockade session fork 01k@3\n  stockade session resume $(stockade session fork last@2) \"try it another way\"",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return runSessionFork(cmd.Context(), a, args[0]) },
	}
}

func runSessionFork(ctx context.Context, a *app, arg string) error {
	prefix, number, named := strings.Cut(arg, "@")
	turn, err := strconv.Atoi(number)
	if named && (err != nil || turn < 1) {
		return usageError("for example: stockade session fork last@2", "%q is not the number of a turn", humanize.Clip(number, maxShownName))
	}
	_, id, err := a.findConversation(ctx, prefix)
	if err != nil {
		return err
	}
	fork, f, err := a.door().Fork(ctx, id, turn)
	switch {
	case errors.Is(err, door.ErrNoTurn):
		return usageError("`stockade session show "+terminal.Line(prefix)+"` shows the turns", "%v", err)
	case err != nil:
		return wrapChainError(id, err)
	}
	a.s.note("turns 1 to %d of session %s are copied; `stockade session resume %s` goes on with the copy", f.Turn, id, fork)
	_, err = fmt.Fprintln(a.s.out, fork)
	return err
}

func newSessionExportCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "export [SESSION]", Short: "Write a session as Markdown, or as JSON lines (default: the last)",
		Long: `Write a session to stdout: as Markdown for people, with long results cut, or with
--json as one line for each event, as it was recorded, with its images. The hash
chain is checked. Secrets that are known are left out, others may be in it: read
it before you share it.

` + sessionArgHelp,
		Example: "  stockade session export >session.md\n  stockade session export 01k --json >session.jsonl",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runSessionExport(cmd.Context(), a, sessionArg(args))
		},
	}
	cmd.Flags().BoolVar(&a.flags.json, "json", false, "write each event as one line of JSON")
	return cmd
}

func runSessionExport(ctx context.Context, a *app, prefix string) error {
	st, id, err := a.findSession(ctx, prefix)
	if err != nil {
		return err
	}
	events := session.VerifyEach(st.Events(ctx, id, 0))
	if a.flags.json { // unlike session show --json, with the images
		return printJSONEvents(a.s, events, func(e session.Event) session.Event { return e })
	}
	o := a.transcriptOptions()
	o.Columns, o.Color, o.Replay, o.Quiet, o.QuestionsShown = nil, false, true, false, false
	o.ShowCommand = "stockade session show " + id + " --call"
	return writeMarkdown(a.s.out, transcript.New(o), events)
}

// writeMarkdown writes a session as Markdown. All that was said and done stands in code blocks, so
// that no text can look like a part of the page, hide what follows, or fetch something.
func writeMarkdown(w io.Writer, t *transcript.Transcript, events iter.Seq2[session.Event, error]) error {
	var rows []string // rows of the next code block
	block := func() { // its fence is longer than any fence in the rows
		text := terminal.EscapeControls(strings.Trim(strings.Join(rows, "\n"), "\n"))
		fence := "```"
		for strings.Contains(text, fence) {
			fence += "`"
		}
		if rows = nil; text != "" {
			fmt.Fprintf(w, "%[1]stext\n%[2]s\n%[1]s\n\n", fence, text)
		}
	}
	for e, err := range events {
		if err != nil {
			return err
		}
		switch e.Type {
		case session.TypeSessionStarted:
			fmt.Fprintf(w, "# Session %s\n\n%s\n\n", e.Session, e.Time.Local().Format(time.DateTime))
		case session.TypeTurnStarted:
			block()
			fmt.Fprintf(w, "## Turn %d\n\n", e.Turn)
		}
		for _, part := range t.Show(e) {
			if rows = append(rows, part.Rows...); part.Answer != "" {
				block()
				fmt.Fprint(w, "The model:\n\n")
				rows = []string{part.Answer}
				block()
			}
		}
	}
	block()
	return nil
}
