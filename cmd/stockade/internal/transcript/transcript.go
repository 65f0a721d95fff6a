package transcript

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/humanize"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/redact"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

// Options set the terminal, the amount of detail and the surroundings of a transcript.
type Options struct {
	// Columns returns the present width of the terminal. If Columns is nil or returns 0, there
	// is no terminal, and rows are not broken.
	Columns func() int
	Color   bool
	Quiet   bool // shows only the model's answer
	Verbose bool // also shows details of each call, such as its decision, and all lines of results
	// Replay is set for events of the past, as in a log: prompts, decisions and whole messages
	// are shown, too.
	Replay bool
	// CallTyped is set when a person typed the call. The call is not shown again, and
	// neither is its result, which the caller prints.
	CallTyped bool
	// Live is set when a live region shows the running calls, see [Transcript.Running].
	// Otherwise output of a command is shown as it arrives, from a second after the first
	// output on.
	Live bool
	// QuestionsShown is set when the caller prints questions between these rows. Changes and
	// answers that a question has shown are not repeated.
	QuestionsShown bool
	PriorCalls     int // the number of calls that the session had before the first event
	// ShowCommand is the command that shows everything about a call, without the number of the
	// call at its end. Empty: there is no such command.
	ShowCommand string
	HintText    func(tool.Hint) string // returns a hint in words, "" for no hint; must not be nil
	// Redactor removes secrets from all events but pieces of a live answer, which the log has
	// redacted; nil: no secrets are known.
	Redactor *redact.Redactor
}

// Part is a piece of the display of one event. Exactly one field is set.
type Part struct {
	// Rows are finished rows, apart from the answer. The first begins a line.
	Rows []string
	// Answer is a piece of the model's answer as the model wrote it; with [Options.Replay] it
	// is a whole message of the model.
	Answer  string
	Restart bool // set when the answer that was shown in this step is no longer valid
}

// Transcript shows the events of a session, which it gets in their order. Only one goroutine
// may use it. It keeps no more than the calls of one step.
type Transcript struct {
	o         Options
	number    int     // number of the last call in the session
	work      string  // directory of the workspace; empty: unknown
	openCalls []*call // calls of this step whose results are not shown yet, in their order
	last      shownKind
	compact   bool // each call is shown as one row, and results of unknown calls are left out
	ended     session.TurnEnded

	provider     string
	changedCalls int                   // number of calls of this turn that changed something
	waitingSince time.Time             // begin of the wait for the next sign of the model; zero: it is not waited for
	thinking     bool                  // the model has sent thoughts since waitingSince
	answering    bool                  // the model has sent a part of its answer and may go on at any time
	answered     bool                  // the model has answered after its last call
	writing      []session.CallWriting // calls that the model is writing, in their order
	retry        *session.Restart
}

// shownKind is the kind of the part that was shown last.
type shownKind int

const (
	nothingShown shownKind = iota
	rowsShown
	answerShown
)

// New returns a transcript that has seen no events.
func New(o Options) *Transcript {
	if o.Columns == nil {
		o.Columns = func() int { return 0 }
	}
	t := &Transcript{o: o, number: o.PriorCalls}
	if o.Replay || o.CallTyped {
		t.last = rowsShown // no empty row is needed above the first rows
	}
	return t
}

func (t *Transcript) formatter() formatter { return formatter{max(t.o.Columns(), 0), t.o.Color} }

// Show takes the next event and returns the parts to show now; nil: there is nothing to show.
func (t *Transcript) Show(e session.Event) []Part {
	var out parts
	e = e.ForDisplay()
	if e.Type != session.TypeDelta && t.o.Redactor != nil {
		e.Body = t.o.Redactor.JSON(e.Body)
	}
	switch {
	case e.Body == nil && e.Call == "":
		out.rows(t.formatter().ownRows(terminal.Dim, fmt.Sprintf("(%s: deleted)", e.Type)))
	case t.o.Replay && e.Body != nil && !isReadable(e):
		out.rows(t.unreadable(e))
	}
	switch e.Type {
	case session.TypeDelta:
		if d, ok := body[session.Delta](e); ok && d.Text != "" {
			t.waitingSince, t.retry, t.thinking, t.answering, t.answered = e.Time, nil, false, true, true
			out.answer(d.Text)
		}
	case session.TypeReasoning:
		if t.retry = nil; !t.thinking {
			t.waitingSince, t.thinking, t.answering = e.Time, true, false
		}
	case session.TypeWriting:
		if d, ok := body[session.CallWriting](e); ok && d.Number > 0 && d.Number <= len(t.writing)+1 {
			if d.Number > len(t.writing) {
				t.writing = append(t.writing, d)
			}
			t.writing[d.Number-1] = d
			t.waitingSince, t.retry, t.thinking = e.Time, nil, false
		}
	case session.TypeRestart:
		t.writing = nil
		if d, ok := body[session.Restart](e); ok {
			begun := t.answering
			t.waitingSince, t.retry, t.thinking, t.answering = e.Time, &d, false, false
			out = append(out, Part{Restart: true})
			if !t.o.Live || begun { // the text above is not the answer any more
				why, next := t.retryText(time.Duration(d.WaitMS) * time.Millisecond)
				out.rows(t.formatter().ownRows(terminal.Yellow, why+next))
			}
		}
	case session.TypeSessionStarted, session.TypeForked, session.TypeTurnStarted, session.TypeMessage:
		t.showStart(e, &out)
	case session.TypeRewound:
		if r, ok := body[session.Rewound](e); ok && t.o.Replay {
			out.rows(t.formatter().ownRows(terminal.Yellow, fmt.Sprintf("the conversation was taken back to before turn %d", r.Turn)))
		}
	case session.TypeStepEnded:
		t.writing = nil
		t.waitingSince, t.retry, t.thinking, t.answering = time.Time{}, nil, false, false
		if d, ok := body[session.StepEnded](e); ok && d.Provider != "" && t.o.Replay { // live, the restart has been shown already
			out.rows(t.formatter().ownRows(terminal.Dim, terminal.Line(humanize.Clip(d.Provider+" "+d.Model, maxLine))+" answered instead of the model of the turn, which had failed"))
		}
	case session.TypeContextCompacted, session.TypeContextReduced:
		out.rows(t.contextRows(e))
	case session.TypeTurnEnded:
		out.rows(t.closeCalls())
		t.ended, _ = body[session.TurnEnded](e)
		t.writing = nil
		t.waitingSince, t.retry, t.thinking, t.answering = time.Time{}, nil, false, false
		apart := func(rows []string) {
			if rows != nil && (t.last == rowsShown || len(out) > 0) {
				out.rows([]string{""})
			}
			out.rows(rows)
		}
		if t.ended.Reason == session.EndAnswered && !t.answered && !t.o.Replay {
			apart(t.formatter().ownRows(terminal.Yellow, "the model has answered nothing; ask again, or in other words"))
		}
		apart(t.summary())
	default:
		t.answered = false
		t.call(e, &out)
	}
	shown := t.withSpacing(out)
	if e.Type == session.TypeTurnStarted || e.Type == session.TypeTurnEnded {
		t.last = nothingShown // an empty row separates what follows from the prompt and from the turn
	}
	return shown
}

// parts collects the parts of one event.
type parts []Part

func (p *parts) rows(rows []string) {
	switch n := len(*p); {
	case len(rows) == 0:
	case n > 0 && (*p)[n-1].Rows != nil:
		(*p)[n-1].Rows = append((*p)[n-1].Rows, rows...)
	default:
		*p = append(*p, Part{Rows: rows})
	}
}

func (p *parts) answer(text string) { *p = append(*p, Part{Answer: text}) }

// withSpacing adds an empty row between rows and the answer, and drops parts that Quiet hides.
func (t *Transcript) withSpacing(in parts) (out []Part) {
	for _, p := range in {
		switch {
		case p.Restart:
		case p.Answer != "":
			if t.last != answerShown && !t.o.Quiet {
				out = append(out, Part{Rows: []string{""}})
			}
			t.last = answerShown
		case t.o.Quiet:
			continue
		default:
			if t.last != rowsShown {
				p.Rows = slices.Insert(p.Rows, 0, "")
			}
			t.last = rowsShown
		}
		out = append(out, p)
	}
	return out
}

// showStart adds to out what is shown of the start of a session or a turn, or of a message.
func (t *Transcript) showStart(e session.Event, out *parts) {
	p := t.formatter()
	switch e.Type {
	case session.TypeSessionStarted:
		s, ok := body[session.Started](e)
		if !ok {
			return
		}
		t.work = s.Workspace
		if t.o.Replay {
			out.rows(p.title(terminal.Dim, fmt.Sprintf("session %s, %s, %s in %s", e.Session, e.Time.Local().Format(time.DateTime), s.Program, s.Workspace)))
			out.rows(p.title(terminal.Dim, "mounts: "+strings.Join(s.Mounts, " ")))
		}
	case session.TypeForked:
		if f, ok := body[session.Forked](e); ok && t.o.Replay {
			out.rows(p.title(terminal.Dim, fmt.Sprintf("a copy of turns 1 to %d of session %s; times are those of the copy", f.Turn, f.From)))
		}
	case session.TypeTurnStarted:
		out.rows(t.closeCalls())
		s, ok := body[session.TurnStarted](e)
		if !ok {
			return
		}
		t.work, t.provider, t.changedCalls, t.waitingSince, t.answered = s.Workspace, s.Provider, 0, e.Time, false
		if t.o.Replay {
			t.last = nothingShown
			out.rows(p.title(terminal.Bold, "> "+s.Prompt))
			if !t.compact {
				out.rows(p.ownRows(terminal.Dim, fmt.Sprintf("turn %d, %s in %s", e.Turn, strings.TrimSpace(s.Provider+" "+s.Model), s.Workspace)))
			}
		}
	case session.TypeMessage:
		m, ok := e.Message()
		if m.IsDuringTurn() {
			t.waitingSince = e.Time
			out.rows(append([]string{""}, p.title(terminal.Bold, "> "+m.Content)...))
		}
		if name, brief := m.Brief(); name == llm.CallAsText {
			t.waitingSince, t.answered = e.Time, false
			out.rows(p.ownRows(terminal.Yellow, "the model has written a call as text, which is never run; it is told so"))
		} else if brief && t.o.Replay && !t.compact {
			out.rows(p.ownRows(terminal.Dim, fmt.Sprintf("told %s, %s", name, humanize.Bytes(int64(len(m.Content))))))
		}
		if ok && t.o.Replay && m.Kind == llm.Assistant && m.Content != "" {
			out.answer(strings.TrimRight(m.Content, "\n") + "\n")
		}
	}
}

// contextRows shows what later requests leave out of the conversation. A summary is one row, and in
// a verbose transcript or a replay its text.
func (t *Transcript) contextRows(e session.Event) (rows []string) {
	p, opened := t.formatter(), t.o.Verbose || t.o.Replay && !t.compact
	if r, ok := body[session.ContextReduced](e); ok && e.Type == session.TypeContextReduced {
		if slices.ContainsFunc(r.Parts, func(part session.ContextReduction) bool { return part.Part == session.PartPrompt }) {
			rows = p.ownRows(terminal.Yellow, "the model does not hold all of your words: of some older prompts it gets the beginning and the end, and can read the rest")
		}
		if opened {
			rows = append(rows, p.ownRows(terminal.Dim, fmt.Sprintf("left out of requests from here on: %s characters of %s", humanize.Exact(int64(r.Chars)), humanize.Plural(len(r.Parts), "part")))...)
		}
		return rows
	}
	c, ok := body[session.ContextCompacted](e)
	if !ok {
		return nil
	}
	if c.Error != "" {
		rows = p.ownRows(terminal.Yellow, "no model has summarized the conversation: "+terminal.Line(humanize.Clip(c.Error, maxLine)))
	}
	row := fmt.Sprintf("a summary stands for %s from here on, %s characters less", humanize.Plural(c.Messages, "message"), humanize.Exact(int64(c.Chars)))
	if n := c.Usage.Total(); n > 0 && t.provider != offline {
		row += ", " + humanize.Exact(int64(n)) + " tokens"
	}
	if c.Cost != nil {
		row += ", " + humanize.Dollars(*c.Cost)
	}
	if !opened && t.o.ShowCommand == "/show" {
		row += "; /show summary"
	}
	rows = append(rows, p.ownRows(terminal.Dim, row)...)
	if opened {
		rows = append(rows, p.quote("", clipped(linesOf(c.Message.Content)))...)
	}
	return rows
}

// SkipCall counts a call that the caller shows, so that later calls get the right numbers.
func (t *Transcript) SkipCall() { t.number++ }

// title returns a heading of ours, in one or more rows. The first starts in the first column;
// the others are indented.
func (p formatter) title(style, text string) (rows []string) {
	before := ""
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		for _, row := range p.wrap(terminal.Visible(line)) {
			rows = append(rows, p.style(style, before+row))
			before = "  "
		}
	}
	return rows
}

// closeCalls drops the calls that will not get a result any more, and returns their rows.
func (t *Transcript) closeCalls() (rows []string) {
	for _, c := range t.openCalls {
		rows = append(rows, t.finishedRows(c)...)
	}
	t.openCalls = nil
	return rows
}

// offline is the name of the provider without a language model.
const offline = "offline"

// summary returns the end of a turn: calls, changes, time, tokens and cost. It is one row, or
// several if the terminal is too narrow for one. It is nil if there is nothing to report.
func (t *Transcript) summary() (out []string) {
	e := t.ended
	var texts []string
	add := func(format string, args ...any) { texts = append(texts, fmt.Sprintf(format, args...)) }
	if e.Calls > 0 {
		var failures []string
		for _, c := range []struct {
			n    int
			what string
		}{{e.Failed - e.Denied - e.Stopped, "failed"}, {e.Denied, "not allowed"}, {e.Stopped, "stopped"}} {
			if c.n > 0 {
				failures = append(failures, fmt.Sprintf("%d %s", c.n, c.what))
			}
		}
		failed := ""
		if failures != nil {
			failed = " (" + strings.Join(failures, ", ") + ")"
		}
		add("%s%s", humanize.Plural(e.Calls, "call"), failed)
	}
	if t.changedCalls > 0 {
		add("%s", humanize.Plural(t.changedCalls, "change"))
	}
	tokens := int64(e.Usage.InputTokens) + int64(e.Usage.OutputTokens)
	if t.provider == offline {
		tokens = 0 // they are estimated
	}
	if texts == nil && tokens == 0 && !t.o.Replay {
		return nil
	}
	add("%s", humanize.Duration(time.Duration(e.DurationMS)*time.Millisecond))
	if tokens > 0 {
		used := ""
		if n := e.Usage.CachedTokens; n > 0 {
			used = ", " + humanize.Exact(int64(n)) + " cached"
		}
		if c := e.Context; c != nil && c.Limit > 0 {
			used += fmt.Sprintf(" (%d %% of the context)", (c.Used*100+c.Limit/2)/c.Limit)
		}
		add("%s tokens%s", humanize.Exact(tokens), used)
	}
	if e.Cost != nil {
		add("%s", humanize.Dollars(*e.Cost))
	}
	if t.o.Replay && e.Reason != session.EndAnswered {
		add("%s", "ended: "+string(e.Reason))
		if e.Error != "" {
			texts[len(texts)-1] += ", " + e.Error
		}
	}
	p := t.formatter()
	before, row := "  ", "" // the row is broken between its parts only
	end := func() {
		for _, row := range p.wrapped(row, len(before)) {
			out = append(out, p.style(terminal.Dim, before+row))
			before = "    "
		}
	}
	for i, part := range texts {
		if part = terminal.Line(part); i < len(texts)-1 {
			part += " ·"
		}
		joined := row + " " + part
		switch {
		case row == "":
			joined = part
		case p.columns > 0 && terminal.Width(joined) > p.columns-1-len(before):
			end()
			joined = part
		}
		row = joined
	}
	end()
	return out
}

var busy = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(` answered (429|503|529): `) })

// retryText returns the reason why a request is sent again, and a text about the next attempt.
// wait is the time until then.
func (t *Transcript) retryText(wait time.Duration) (why, next string) {
	why = "the provider failed: " + terminal.Line(humanize.Clip(t.retry.Error, maxLine))
	if m := busy().FindStringSubmatch(t.retry.Error); m != nil && !t.o.Verbose {
		why = "the provider is busy (" + m[1] + ")"
	}
	next = "; trying again"
	if wait >= time.Second {
		next = fmt.Sprintf("; next try in %d s", (wait+time.Second/2)/time.Second)
	}
	if p := t.retry.Profile; p != "" {
		next = "; asking " + terminal.Line(humanize.Clip(p, maxLine)) + " instead"
	}
	if t.retry.Attempts > 0 {
		next += fmt.Sprintf(", %d of %d", t.retry.Attempt, t.retry.Attempts)
	}
	return why, next
}

// body decodes the body of an event as a T. ok is false if the body is no JSON that fits T.
func body[T any](e session.Event) (body T, ok bool) {
	ok = json.Unmarshal(e.Body, &body) == nil
	return body, ok
}

// unreadable returns the rows for an event that this version of the program cannot decode.
func (t *Transcript) unreadable(e session.Event) []string {
	p := t.formatter()
	out := p.ownRows(terminal.Dim, fmt.Sprintf("(%s, which cannot be read:)", e.Type))
	return append(out, t.folded(linesOf(string(e.Body)), nil, false)...)
}

// isReadable reports whether this program can decode the body of an event, or need not.
func isReadable(e session.Event) (ok bool) {
	switch e.Type {
	case session.TypeToolResult:
		var m llm.Message
		if m, ok = e.Message(); ok {
			_, _, ok = EnvelopeOf(m)
		}
	case session.TypeMessage, session.TypeToolCall:
		_, ok = body[llm.Message](e)
	case session.TypeSessionStarted:
		_, ok = body[session.Started](e)
	case session.TypeTurnStarted:
		_, ok = body[session.TurnStarted](e)
	case session.TypeDecision:
		_, ok = body[session.Decision](e)
	case session.TypeCallChanges:
		_, ok = body[session.Changes](e)
	case session.TypeTurnEnded:
		_, ok = body[session.TurnEnded](e)
	case session.TypeContextReduced:
		_, ok = body[session.ContextReduced](e)
	case session.TypeContextCompacted:
		_, ok = body[session.ContextCompacted](e)
	default:
		return true // such an event is not shown
	}
	return ok
}
