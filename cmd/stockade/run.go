package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/humanize"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/transcript"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/tui"
	"github.com/stockade-dev/stockade/host/agent"
	"github.com/stockade-dev/stockade/host/config"
	"github.com/stockade-dev/stockade/host/door"
	"github.com/stockade-dev/stockade/host/instructions"
	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

// maxStdin limits a prompt from standard input, in bytes; a longer one is an error.
const maxStdin = 1 << 20

func newRunCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   `run "PROMPT"`,
		Short: "Run one turn: a prompt goes in, tools run in the sandbox, an answer comes out",
		Long: `Run one turn. The model is asked, its tool calls run in the sandbox, and its
answer is printed on stdout. Everything else goes to stderr. Standard input, when
piped, is added to the prompt; with "-" it is the prompt.

A file or directory that the prompt names as @PATH, or @"PATH" where it has
blanks, goes with it. It is read by a call of file_read: a rule that denies the call
denies the file. Piped input cannot name files.

` + exitHelp,
		Example: `  stockade run "what does this project do?"
  stockade "list files then read README.md"
  git diff | stockade run "review this"
  stockade run "what is wrong in @main.go?"
  stockade run --output-schema schema.json -o answer.json "which files are tests?"
  stockade run --json "list files" | jq -r 'select(.type=="tool_result").data.data_json.output | fromjson | .result.output'
  stockade run --allow file_edit --allow 'bash(command=go test ./...)' "fix the typo and test"`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return runTurn(cmd.Context(), a, "", args) },
	}
	addTurnFlags(cmd, a)
	addAskFlag(cmd, a)
	addAnswerFlags(cmd, a)
	return cmd
}

func addTurnFlags(cmd *cobra.Command, a *app) {
	cmd.Annotations = trustAsk.annotation()
	f := cmd.Flags()
	f.BoolVar(&a.flags.json, "json", false, "print every event as one line of JSON on stdout; nobody is asked, but see --ask of run")
	addModelFlags(cmd, a)
	f.StringVar(&a.flags.maxTurns, "max-turns", "", "steps with tool calls in one turn (default: max_tool_turns of the configuration)")
	f.StringVar(&a.flags.maxCost, "max-cost", "", "US dollars that the session may cost (default: max_cost of the configuration)")
	f.StringSliceVar(&a.flags.tools, "tools", nil, "offer the model these tools only, by their names or those of their modules: NAME,NAME (default: all that are switched on)")
	f.Var((*stringsFlag)(&a.flags.try), "tool", "try a module without adding it: FILE.wasm; it gets what --mount and --allow-net name; may be repeated")
	f.StringVar(&a.flags.auto, "auto", "", "make plain changes of files below the working directory without a question, see stockade help policy (default: auto of the configuration)")
	f.Lookup("auto").NoOptDefVal = "true"
	addLockedFlag(cmd, a)
	addGrantFlags(cmd, a)
}

func addModelFlags(cmd *cobra.Command, a *app) {
	f := cmd.Flags()
	f.StringVar(&a.flags.profile, "profile", "", "ask the model of this profile, see stockade help models (default: profile of the configuration, or what [model] says)")
	a.completeProfiles(cmd)
	f.StringVar(&a.flags.provider, "provider", "", "auto, "+strings.Join(config.Providers, ", ")+" (default: model.provider of the configuration)")
	f.StringVar(&a.flags.model, "model", "", "name of the model (default: that of the profile, or model.name of the configuration)")
}

// stringsFlag is the value of a flag that may be repeated. That of pflag allocates 4 KB to
// write its default, for each such flag of each command at each start.
type stringsFlag []string

func (r *stringsFlag) Set(value string) error {
	*r = append(*r, value)
	return nil
}

func (r *stringsFlag) String() string { return "" } // the default

func (r *stringsFlag) Type() string { return "stringArray" }

func addLockedFlag(cmd *cobra.Command, a *app) {
	cmd.Flags().BoolVar(&a.flags.locked, "locked", false, "offer exactly those added modules that stockade.lock names, or fail")
}

// applyToolsFlag returns the tools of the catalog that --tools names; without the flag, all of
// them. An empty --tools leaves none.
func (a *app) applyToolsFlag(catalog *tool.Catalog) (*tool.Catalog, error) {
	if a.flags.tools == nil {
		return catalog, nil
	}
	only, err := catalog.Only(a.flags.tools)
	if err != nil {
		return nil, usageError("`stockade tool list` shows the tools and their modules", "--tools: %v", err)
	}
	return only, nil
}

func addGrantFlags(cmd *cobra.Command, a *app) {
	f := cmd.Flags()
	f.Var((*stringsFlag)(&a.flags.allow), "allow", "answer a question before it is asked: TOOL, 'TOOL(ARGUMENT=VALUE)' or another rule, see stockade help policy; for a tool that uses secrets, 'TOOL with NAME,NAME'; may be repeated")
	f.Var((*stringsFlag)(&a.flags.allowNet), "allow-net", "let tools that ask for the network talk to a host: [http://]HOST[:PORT], see stockade help network; may be repeated")
	f.Var((*stringsFlag)(&a.flags.deny), "deny", "deny calls, in the form of --allow; may be repeated")
	f.Var((*stringsFlag)(&a.flags.mounts), "mount", "show tools another directory: DIR or DIR:rw, or DIR:ro read-only; may be repeated")
}

// readPrompt returns the prompt: the argument, standard input, or both together. With --ask,
// standard input is not read.
func readPrompt(a *app, args []string) (string, error) {
	s := a.s
	fromIn := len(args) == 1 && args[0] == "-"
	if fromIn {
		args = nil
	}
	var parts []string
	parts = append(parts, args...)
	if fromIn || s.piped() && !a.flags.ask {
		waiting := time.AfterFunc(time.Second, func() { s.note("reading standard input to its end ...") })
		defer waiting.Stop()
		data, err := io.ReadAll(io.LimitReader(s.in, maxStdin+1))
		if err != nil {
			return "", fmt.Errorf("read standard input: %w", err)
		}
		if len(data) > maxStdin {
			return "", usageError("put it into a file, and name the file in the prompt", "standard input has more than %d bytes", maxStdin)
		}
		parts = append(parts, string(data))
	}
	prompt := strings.TrimSpace(strings.ToValidUTF8(strings.Join(parts, "\n\n"), "\uFFFD"))
	if prompt == "" {
		return "", usageError(`for example: stockade run "list files"`, "no prompt")
	}
	return prompt, nil
}

// conversation is a session in which a person asks a model.
type conversation struct {
	*door.Session
	a           *app
	lines       *terminal.Lines
	chat        bool          // a person can type further prompts
	provider    door.Provider // provider in use, from the configuration or from /model
	tools       toolset
	ranCommands []agent.Attachment // commands of the person since the last turn, for the next prompt
	tail        []transcript.Part  // end of the resumed conversation, for printTail
	priorCalls  int                // number of calls before it was resumed, and of calls that are not shown
	answer      finalAnswer        // see there
	printer     *printer           // prints all turns; nil: nothing was printed yet, or the UI shows them

	instructions instructions.File // AGENTS.md as it was when a note last mentioned it
}

// openConversation opens the session with an id, or a new session if id is empty. It goes on with
// the input and the model of the conversation before; nil: there is none.
func openConversation(ctx context.Context, a *app, id string, answer finalAnswer, before *conversation) (*conversation, error) {
	if before == nil && a.drawsInPlace() {
		a.ui = tui.New()
	}
	found, err := a.findTools(ctx)
	if err != nil {
		return nil, err
	}
	a.noteSwitchedOff(found)
	catalog := found.Catalog
	offered, err := a.applyToolsFlag(catalog)
	if err != nil {
		return nil, err
	}
	mounts, err := a.workspaceMounts()
	if err != nil {
		return nil, err
	}
	var provider *door.Provider
	var lines *terminal.Lines
	if before != nil {
		provider, lines = &before.provider, before.lines
	} else {
		if provider, err = a.provider(ctx, ""); err == nil {
			err = a.ensureModel(ctx, provider)
		}
		if err != nil {
			return nil, err
		}
		lines = terminal.NewLines(a.s.in)
	}
	s, err := a.openSession(ctx, catalog, mounts, lines, door.SessionOptions{ID: id, Catalog: offered, Provider: provider, ExtraSystemPrompt: a.Config.SystemPrompt, IgnoreProjectInstructions: !a.Config.AgentsMD, Agent: agent.Options{
		MaxSteps: a.Config.MaxToolTurns, MaxCallsPerStep: a.Config.MaxToolCallsPerTurn, RepeatedCalls: a.Config.RepeatedCalls, HistoryChars: a.Config.HistoryCharBudget % config.NoCharBudget, ResultTokens: a.Config.ToolTokenLimit,
		MaxCalls: a.Config.TurnCalls, MaxTokens: a.Config.TurnTokens, SessionTokens: a.Config.SessionTokens, MaxTime: a.Config.TurnTime, MaxCost: a.Config.MaxCost, NoSummaries: a.Config.Compaction == "off",
		Steer: a.steer, Answer: answer.form,
	}})
	if err != nil {
		return nil, a.modelError(provider, err)
	}
	if s.Provider == door.ProviderOffline && !a.flags.quiet && before == nil {
		a.s.note("using the offline model, a small planner for demonstrations; `stockade init` sets up a language model")
		if provider.Name == door.ProviderAuto && !a.flags.json {
			a.suggestKeys()
			a.suggestOllama(a.findOllama(ctx))
		}
	}
	t := &conversation{Session: s, a: a, lines: lines, answer: answer, provider: *provider, tools: toolset{availableTools: availableTools{offered, found.added}, ceiling: a.Ceiling}}
	t.restoreCommands(s.PersonCalls)
	t.tellInstructions(false)
	if err = t.beginAuto(); err == nil && id != "" {
		t.tail, t.priorCalls, err = transcript.Tail(t.Log.Events(ctx), a.transcriptOptions(), tailRows)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	a.session.Store(s)
	return t, nil
}

// beginAuto lets plain changes be made without a question if the configuration says so. It is an
// error if a layer of the policy forbids that.
func (t *conversation) beginAuto() error {
	a := t.a
	if !a.Config.Auto {
		return nil
	}
	from := a.Config.Source("auto")
	if bounds := a.Ceiling.NoAuto; len(bounds) > 0 {
		return usageError("start it without", "auto (%s) is not permitted: %s", from, bounds[0].From)
	}
	t.Freedom().Open(a.Workspace, policy.Provenance{Source: policy.SourceSettings, Origin: from})
	if !a.flags.quiet && !a.flags.json {
		a.s.note("auto: plain changes below %s are made without a question", a.Workspace)
	}
	return nil
}

// show runs a turn and prints its events. typed is the part of the prompt in which a person
// may mention files.
func (t *conversation) show(ctx context.Context, prompt, typed string) error {
	end, err := t.render(t.ask(ctx, prompt, typed))
	if errors.Is(err, errInterrupted) { // interrupted before the turn, while its files were read
		end, err = session.TurnEnded{Reason: session.EndCancelled}, nil
	}
	if err != nil {
		return err
	}
	denied := t.noteDenied()
	err = t.endError(end)
	if err == nil {
		err = t.printAnswer()
	}
	if err != nil || !denied {
		return err
	}
	return &exitErr{code: exitNobodyToAsk}
}

// showCalls shows calls of the person.
func (t *conversation) showCalls(events iter.Seq2[session.Event, error]) error {
	_, err := t.render(events)
	t.noteDenied()
	return err
}

// printAnswer writes the answer to the file of -o, and an answer that fits --output-schema to
// stdout, unless that has it already.
func (t *conversation) printAnswer() error {
	if t.answer.form != nil && t.a.ui == nil && !t.a.flags.json {
		if _, err := io.WriteString(t.a.s.out, t.answer.harmless()); err != nil {
			return err
		}
	}
	return t.answer.write()
}

// render shows events, or prints them as JSON for --json, and returns the end of the turn.
func (t *conversation) render(events iter.Seq2[session.Event, error]) (end session.TurnEnded, _ error) {
	a := t.a
	if t.printer == nil {
		t.printer = newPrinter(a.s, t.transcriptOptions())
		t.printer.noAnswers = t.answer.form != nil
	}
	for e, err := range events {
		if err != nil {
			return end, err
		}
		if e.Type == session.TypeTurnEnded {
			_ = json.Unmarshal(e.Body, &end) // this program wrote it
		}
		if a.ui != nil {
			a.ui.Event(e)
		}
		t.checkBrief(e)
		t.answer.note(e)
		if a.flags.json {
			if err := writeJSONEvent(a.s, e.ForDisplay()); err != nil {
				return end, err // nobody reads the output any more: the turn is cancelled
			}
		}
		if a.ui == nil && (!a.flags.json || e.Type == session.TypeTurnEnded) {
			a.screen.Show(func() { t.printer.show(e) })
		}
	}
	return end, t.printer.writeErr
}

// noteDenied prints notes about calls that were denied because nobody could be asked. It
// returns false if there are none.
func (t *conversation) noteDenied() bool {
	denied := t.a.denyAll.takeDenied()
	for _, c := range denied {
		t.a.s.note("a call of %s was denied, because nobody could be asked; %s", c.tool, c.howToAllow())
	}
	return denied != nil
}

// endError returns the error of a turn that ended without an answer; nil: there is an answer.
func (t *conversation) endError(end session.TurnEnded) error {
	goOn := "go on with `stockade session resume " + t.Log.ID() + "`"
	if t.chat {
		goOn = "go on here"
	}
	switch end.Reason {
	case session.EndAnswered:
		return nil
	case session.EndLimit:
		return t.limitError(end, goOn)
	case session.EndCut:
		if t.Provider == door.ProviderOffline {
			return &exitErr{code: exitProvider, message: "the offline model did not understand all of the prompt", hint: "it knows a few phrases only; `stockade init` sets up a language model"}
		}
		if end.Limit == string(llm.FinishFilter) { // the filter would also cut the following answers
			goOn = "say it in other words: " + goOn
		}
		return &exitErr{code: exitLimit, message: "the provider cut the answer short (" + end.Limit + ")", hint: goOn}
	case session.EndProvider:
		return &exitErr{code: exitProvider, message: end.Error, hint: end.Hint}
	case session.EndCancelled:
		if t.chat {
			return &exitErr{code: exitInterrupted, message: "stopped; " + goOn}
		}
		return &exitErr{code: exitInterrupted, message: "interrupted",
			hint: "what was done is recorded: `stockade session show " + t.Log.ID() + "`"}
	}
	return errors.New(end.Error)
}

// limitError returns the error of a turn that a limit has ended. goOn says how to go on.
func (t *conversation) limitError(end session.TurnEnded, goOn string) *exitErr {
	what, hint := "the turn was ended: it has reached "+end.Limit, "raise "+end.Limit+", or "+goOn
	show := "`stockade session show " + t.Log.ID() + "`"
	switch end.Limit {
	case "repeated_calls":
		what = fmt.Sprintf("the turn was ended: the model made the same calls %d times and came to nothing new", t.a.Config.RepeatedCalls)
		hint = "say it in another way: " + goOn + "; " + show + " shows what was tried"
	case agent.OutputSchema:
		what, hint = "the answer does not fit --output-schema: it "+end.Error, "a simpler schema, or another model, may do; "+show+" has the answer"
	case llm.CallAsText:
		what = "the turn was ended: the model wrote a call as text again, which is never run"
		hint = "use another model, or a server that knows the calls of this one (`stockade help models`); or " + goOn
	case "max_tool_turns":
		what, hint = fmt.Sprintf("the turn reached its limit of %s with tool calls", humanize.Plural(end.Steps-1, "step")), "raise it with --max-turns or max_tool_turns, or "+goOn
		if limit, ok := t.a.Ceiling.Limits[end.Limit]; ok && int64(t.a.Config.MaxToolTurns) >= limit.Value {
			hint = fmt.Sprintf("no more is permitted: %s; %s", limit.From, goOn)
		}
	case "context_tokens":
		what = "the turn was ended: the request is too large for the context of the model"
		hint = "say it in fewer words, or name a file instead of its text; model.context_tokens says how much the model holds, and `/context` shows what fills it"
	case "history_char_budget":
		what = "the turn was ended: the request has more characters than may be sent (history_char_budget)"
	}
	return &exitErr{code: exitLimit, message: what, hint: hint}
}

// runTurn runs one turn of the session with an id, or of a new session if id is empty. A
// person may mention files in args, but not in standard input.
func runTurn(ctx context.Context, a *app, id string, args []string) error {
	prompt, err := readPrompt(a, args)
	if err != nil {
		return err
	}
	a.unattended = a.Config.Auto
	answer, err := a.newFinalAnswer()
	if err != nil {
		return err
	}
	t, err := openConversation(ctx, a, id, answer, nil)
	if err != nil {
		return err
	}
	show := func(ctx context.Context) error { return t.show(ctx, prompt, strings.Join(args, "\n\n")) }
	if a.ui == nil {
		return show(ctx)
	}
	var failed error
	err = t.runUI(ctx, nil, "-", func(ctx context.Context, _ string) (leave, _ bool) {
		failed = t.interruptible(ctx, show)
		return true, false
	})
	return errors.Join(err, failed)
}
