package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/humanize"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/table"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/transcript"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/session/sqlite"
	"github.com/stockade-dev/stockade/host/visible"
)

func newSessionCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "session", Short: "The sessions: list, show, resume, fork, export, stats", Long: "List, show, continue, fork, export or count sessions. `stockade help sessions` describes them."}
	var limit int
	var all bool
	list := &cobra.Command{
		Use: "list [WORD...]", Short: "List the sessions, newest first",
		Long: `List the sessions, newest first. With words, list those that have all of them in
the id, the title or the path of the workspace, in upper or lower case.`,
		Example: "  stockade session list\n  stockade session list parser garden\n  stockade session list --all\n  stockade session list --json | jq -r '.[0].id'",
		RunE: func(cmd *cobra.Command, words []string) error {
			if all && !cmd.Flags().Changed("limit") {
				limit = 0
			}
			return runSessionList(cmd.Context(), a, limit, all, words)
		},
	}
	list.Flags().BoolVar(&all, "all", false, "list all of them, and single calls (stockade call), too, as --json does")
	list.Flags().IntVarP(&limit, "limit", "n", 20, "how many; 0 lists all")
	var call int
	var files bool
	show := &cobra.Command{
		Use: "show [SESSION]", Short: "Show what happened in a session (default: the last)",
		Long: `Show what happened in a session: prompts, calls with the decisions about them,
their results and changes, and answers. A long result is cut; --call shows all of
one call. --files lists the changed files, and the data that the tools stored.

` + sessionArgHelp,
		Example: "  stockade session show\n  stockade session show --call 3\n  stockade session show --files\n  stockade session show 01k --json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runSessionShow(cmd.Context(), a, sessionArg(args), call, files)
		},
	}
	show.Flags().IntVar(&call, "call", 0, "show all of one call, by its number: arguments, decision, changes, result")
	show.Flags().BoolVar(&files, "files", false, "list the files that its calls have changed, and the data that its tools stored")
	show.MarkFlagsMutuallyExclusive("call", "files")
	resume := &cobra.Command{
		Use: "resume [SESSION] [PROMPT]", Short: "Continue a session, with its whole conversation",
		Long: `Continue a session. With a prompt, run one turn; without one, start a chat.
SESSION is an id, the beginning of one, or "last": the conversation that began in
this workspace (the current directory, or that of -C) and was last continued.
Single calls (stockade call) are not conversations.`,
		Example: "  stockade session resume last \"and now the tests\"\n  stockade session resume 01k",
		Args:    cobra.MaximumNArgs(2),
		RunE:    func(cmd *cobra.Command, args []string) error { return runSessionResume(cmd.Context(), a, args) },
	}
	for _, c := range []*cobra.Command{list, show} {
		c.Flags().BoolVar(&a.flags.json, "json", false, "print JSON")
	}
	addTurnFlags(resume, a)
	addAskFlag(resume, a)
	addAnswerFlags(resume, a)
	cmd.AddCommand(list, show, resume, newSessionForkCmd(a), newSessionExportCmd(a), newSessionStatsCmd(a))
	return cmd
}

// sessionArgHelp is a part of the help of each command with the argument SESSION.
const sessionArgHelp = `SESSION is an id, the beginning of one, or "last": the session that was added to
last, in whatever directory. It may be a single call (stockade call).`

func sessionArg(args []string) string {
	if len(args) == 0 {
		return "last"
	}
	return args[0]
}

func runSessionList(ctx context.Context, a *app, limit int, all bool, words []string) error {
	_, infos, err := a.sessions(ctx)
	if err != nil {
		return err
	}
	infos = slices.DeleteFunc(infos, func(i session.Info) bool { return !hasWords(i, words) })
	single := 0
	if !all && !a.flags.json {
		before := len(infos)
		infos = slices.DeleteFunc(infos, func(i session.Info) bool { return !i.Conversation })
		single = before - len(infos)
	}
	if limit > 0 && len(infos) > limit {
		infos = infos[:limit]
	}
	none := "no sessions yet"
	switch {
	case single > 0:
		none = humanize.Plural(single, "single call") + " left out; --all shows them"
	case len(words) > 0:
		none = "no session has these words; all are listed without any"
	}
	if done, err := printedList(a, infos, none); done {
		return err
	}
	if single > 0 && !a.flags.quiet {
		defer a.s.note("%s", none)
	}
	w := table.New(table.Fixed("SESSION"), table.Fixed("LAST"), table.Fixed("TURNS"), table.Fixed("CALLS"), table.Text("TITLE"), table.Path("WORKSPACE"))
	for _, i := range infos {
		w.Row(i.ID, i.Last.Local().Format(time.DateTime), i.Turns, i.Calls, humanize.Clip(titleOf(i), 60), i.Workspace)
	}
	return a.s.table(w)
}

// sessions returns the store and its sessions, the newest first.
func (a *app) sessions(ctx context.Context) (session.Store, []session.Info, error) {
	st, err := a.door().Store(ctx)
	if err != nil {
		return nil, nil, err
	}
	infos, err := st.Sessions(ctx)
	return st, infos, err
}

// titleOf returns the title of a session for a list. One without a prompt is described.
func titleOf(i session.Info) string {
	switch {
	case i.Title != "" || i.Turns > 0:
		return i.Title
	case i.Conversation:
		return "(only !commands)"
	}
	return "(stockade call)"
}

// hasWords reports whether all words are in the id, the title or the workspace of a session, in
// upper or lower case.
func hasWords(i session.Info, words []string) bool {
	text := strings.ToLower(i.ID + "\n" + i.Title + "\n" + i.Workspace)
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, strings.ToLower(w)) })
}

func runSessionShow(ctx context.Context, a *app, prefix string, call int, files bool) error {
	st, id, err := a.findSession(ctx, prefix)
	if err != nil {
		return err
	}
	switch {
	case files:
		return runSessionFiles(ctx, a, st, id)
	case call == 0 && a.flags.json:
		return printJSONEvents(a.s, st.Events(ctx, id, 0), session.Event.ForDisplay)
	}
	// Here the session is the result: all of it goes to stdout.
	page := *a.s
	page.err, page.color = a.s.out, a.s.outColor()
	if !a.s.outTTY {
		page.columns = nil
	}
	o := a.transcriptOptions()
	o.Replay, o.Quiet, o.QuestionsShown, o.Columns, o.Color = true, false, false, page.columns, page.color
	if call > 0 {
		return printCard(&page, st.Events(ctx, id, 0), call, o)
	}
	if prefix != "last" {
		o.ShowCommand = "stockade session show " + terminal.Line(prefix) + " --call"
	}
	t := transcript.New(o)
	for e, err := range st.Events(ctx, id, 0) {
		if err != nil {
			return err
		}
		printReplay(&page, t.Show(e))
	}
	return nil
}

// findSession returns the store, and the id of the session whose id begins with prefix; "last"
// stands for the session that was added to last.
func (a *app) findSession(ctx context.Context, prefix string) (session.Store, string, error) {
	st, err := a.door().Store(ctx)
	if err != nil {
		return nil, "", err
	}
	id, err := st.Resolve(ctx, prefix)
	return st, id, err
}

func runSessionResume(ctx context.Context, a *app, args []string) error {
	st, id, err := a.findConversation(ctx, sessionArg(args))
	if err != nil {
		return err
	}
	if err := a.enterWorkspace(ctx, st, id); err != nil {
		return err
	}
	if forProgram := a.flags.ask || a.flags.schema != "" || a.flags.output != ""; len(args) < 2 && !a.s.piped() && !forProgram {
		return runChat(ctx, a, id, "")
	}
	return runTurn(ctx, a, id, args[min(1, len(args)):])
}

// findConversation is findSession, except for "last". Of the conversations that began in the
// workspace, this is the one with the newest event. Newer ones of other directories do not count,
// because the next prompt goes into the conversation.
func (a *app) findConversation(ctx context.Context, prefix string) (session.Store, string, error) {
	if prefix != "last" {
		return a.findSession(ctx, prefix)
	}
	st, infos, err := a.sessions(ctx)
	if err != nil {
		return nil, "", err
	}
	for _, i := range infos {
		if i.Conversation && i.Workspace == a.Workspace {
			return st, i.ID, nil
		}
	}
	return nil, "", &exitErr{code: exitError, message: "there is no conversation in " + a.Workspace + " yet",
		hint: "`stockade session list` shows those of all directories; `stockade session resume SESSION` goes on with one where it began"}
}

// wrapChainError returns the error for a session that cannot be resumed because somebody
// changed its log. It returns other errors unchanged.
func wrapChainError(id string, err error) error {
	if broken, ok := errors.AsType[*session.ChainError](err); ok {
		return &exitErr{code: exitError, message: fmt.Sprintf("session %s cannot be resumed: its log was changed: %v", terminal.Line(id), broken),
			hint: fmt.Sprintf("`stockade audit verify %s` says more; `stockade chat` begins a new session", terminal.Line(id))}
	}
	return err
}

// enterWorkspace changes to the workspace of a session, unless -C names another one: the
// files that a session may touch must not depend on the current directory.
func (a *app) enterWorkspace(ctx context.Context, st session.Store, id string) error {
	began := a.Workspace
	for e, err := range session.VerifyEach(st.Events(ctx, id, 0)) {
		if err != nil {
			return wrapChainError(id, err)
		}
		var s session.Started
		if e.Type == session.TypeSessionStarted && json.Unmarshal(e.Body, &s) == nil {
			began = s.Workspace
		}
		break
	}
	switch {
	case began == a.Workspace:
		return nil
	case a.flags.dir != "":
		a.s.note("warning: the session began in %s and goes on in %s", began, a.Workspace)
		return nil
	}
	work, err := workspace(began)
	if err != nil {
		return usageError("-C names the directory to continue in", "the session began in %s: %v", began, err)
	}
	a.s.note("going on in %s, where the session began", work)
	a.Workspace = work
	a.closeDoor() // it was opened for another workspace
	return a.loadConfig(ctx)
}

func newAuditCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "audit", Short: "Check that the log was not changed"}
	verify := &cobra.Command{
		Use: "verify [SESSION]", Short: "Check the hash chain of the whole log, or of one session",
		Long: `Check every event, and its links to the event before it in the log and in its
session. Nothing is written. Keep the head that is printed: comparing it later
shows whether events were cut off at the end. See ` + "`stockade help sessions`" + `.

` + sessionArgHelp,
		Example: "  stockade audit verify\n  stockade audit verify last",
		Args:    cobra.MaximumNArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return runAuditVerify(cmd.Context(), a, args) },
	}
	verify.Flags().BoolVar(&a.flags.json, "json", false, "print JSON")
	cmd.AddCommand(verify)
	return cmd
}

// runAuditVerify reads the log without opening the store, because opening it would give
// results to open calls.
func runAuditVerify(ctx context.Context, a *app, args []string) error {
	v, err := sqlite.Verify(ctx, a.Dirs.Sessions(), strings.Join(args, ""))
	what := "log"
	if v.Session != "" {
		what = "session " + terminal.Line(v.Session)
	}
	head := fmt.Sprintf("%x", v.Head)
	broken, isBroken := errors.AsType[*session.ChainError](err)
	if isBroken {
		err = fmt.Errorf("%s: the chain is broken after %s: %w", what, humanize.Plural(int(v.Events), "good event"), broken)
	}
	if v.Problems != nil {
		found := fmt.Errorf("%s: the file is damaged or was tampered with: %s", what, strings.Join(v.Problems, "; "))
		if err == nil && v.Events > 0 {
			found = fmt.Errorf("%w (the chain of %s holds, head %s)", found, humanize.Plural(int(v.Events), "event"), head)
		}
		err = errors.Join(found, err)
	}
	if a.flags.json {
		out := map[string]any{"ok": err == nil, "events": v.Events, "deleted_bodies": v.Deleted, "head": head, "open_calls": append([]session.OpenCall{}, v.OpenCalls...)}
		if v.Problems != nil {
			out["problems"] = v.Problems
		}
		if err != nil {
			out["error"] = err.Error()
		}
		line, encodeErr := json.Marshal(out)
		if encodeErr != nil {
			return encodeErr
		}
		if _, writeErr := fmt.Fprintf(a.s.out, "%s\n", visible.EscapeJSON(line)); writeErr != nil {
			return writeErr
		}
	}
	if err != nil || a.flags.json {
		return err
	}
	fmt.Fprintf(a.s.out, "%s: %d events, chain intact, head %s\n", what, v.Events, head)
	if v.Deleted > 0 {
		fmt.Fprintf(a.s.out, "%d of them had their body deleted\n", v.Deleted)
	}
	for _, c := range v.OpenCalls {
		fmt.Fprintf(a.s.out, "a call of %s in session %s has no result: it still runs, or ended in a crash, or later events were removed\n",
			terminal.Line(c.Name), terminal.Line(c.Session))
	}
	return nil
}
