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

// Options say for whom a transcript is.
type Options struct {
	// Columns is how wide the terminal is now; nil or 0: there is none, and rows are
	// not broken.
	Columns func() int
	Color   bool
	// Quiet shows nothing but the answer.
	Quiet bool
	// Verbose shows what else is on the card of a call, and the whole result.
	Verbose bool
	// Replay says that all of it is over, as in a log: prompts, decisions and whole
	// messages are shown too.
	Replay bool
	// CallTyped says that a person has typed the call: it is not shown again, nor its
	// result, which is printed elsewhere.
	CallTyped bool
	// Live says that what runs is shown in a live region, see [Transcript.Running].
	// Without one the output of a command is shown as it comes, once a person has
	// waited for a second.
	Live bool
	// QuestionsShown says that questions were shown where these rows are: the changes that one
	// has shown are not repeated, nor the answer.
	QuestionsShown bool
	// PriorCalls is how many calls the session has had before.
	PriorCalls int
	// ShowCommand is what a person types, with the number of a call behind it, to see all of
	// it; empty: nothing is said of that.
	ShowCommand string
	// HintText puts a hint into words for the person.
	HintText func(tool.Hint) string
	// Redactor takes secrets out of what is shown; nil: none are known.
	Redactor *redact.Redactor
}

// Part is what an event shows. One of the fields is set.
type Part struct {
	// Rows are finished, and begin where a line does. They are not the answer.
	Rows []string
	// Answer is a piece of the answer, or with [Options.Replay] the whole of it, as the
	// model has written it.
	Answer string
	// Restart says that the answer of this step is void.
	Restart bool
}

// Transcript shows the events of a session, in their order. It is used by one
// goroutine. What it keeps is bounded by the calls of one step.
type Transcript struct {
	o         Options
	number    int     // of the last call
	work      string  // the workspace
	openCalls []*call // of this step, in their order, the first of which are not shown yet
	last      shownKind
	compact   bool // calls are one row each, and those that are not there are not shown
	ended     session.TurnEnded

	provider     string
	changedCalls int       // calls of this turn that have changed something
	waitingSince time.Time // since when the model is waited for; zero: it is not
	thinking     bool      // and that it does since then
	answering    bool      // it has begun to answer, and may go on at any time
	answered     bool      // it has answered something since its last call
	retry        *session.Restart
}

// shownKind is what was shown last.
type shownKind int

const (
	nothingShown shownKind = iota
	rowsShown
	answerShown
)

// New returns a transcript that begins with a turn.
func New(o Options) *Transcript {
	if o.Columns == nil {
		o.Columns = func() int { return 0 }
	}
	t := &Transcript{o: o, number: o.PriorCalls}
	if o.Replay || o.CallTyped {
		t.last = rowsShown // nothing that would have to be kept apart
	}
	return t
}

// Ended is the end of the last turn; zero before there is one.
func (t *Transcript) Ended() session.TurnEnded { return t.ended }

func (t *Transcript) formatter() formatter { return formatter{max(t.o.Columns(), 0), t.o.Color} }

// Show shows an event.
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
	case session.TypeRestart:
		if d, ok := body[session.Restart](e); ok {
			begun := t.answering
			t.waitingSince, t.retry, t.thinking, t.answering = e.Time, &d, false, false
			out = append(out, Part{Restart: true})
			if !t.o.Live || begun { // what stands there is no answer
				why, next := t.retryText(time.Duration(d.WaitMS) * time.Millisecond)
				out.rows(t.formatter().ownRows(terminal.Yellow, why+next))
			}
		}
	case session.TypeSessionStarted, session.TypeTurnStarted, session.TypeMessage:
		t.showStart(e, &out)
	case session.TypeStepEnded:
		t.waitingSince, t.retry, t.thinking, t.answering = time.Time{}, nil, false, false
		if d, ok := body[session.StepEnded](e); ok && d.Provider != "" && t.o.Replay { // of now, the restart has said so
			out.rows(t.formatter().ownRows(terminal.Dim, terminal.Line(humanize.Clip(d.Provider+" "+d.Model, maxLine))+" stood in for the model of the turn, which had failed"))
		}
	case session.TypeTurnEnded:
		out.rows(t.closeCalls())
		t.ended, _ = body[session.TurnEnded](e)
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
		t.last = nothingShown // what follows the prompt does not belong to it, nor to the turn
	}
	return shown
}

// parts are what one event shows.
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

// withSpacing puts an empty row between rows and the answer, and leaves out what is not to be
// shown.
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

// showStart shows what begins a session, a turn or an answer.
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

// SkipCall counts a call that is shown elsewhere, so that the numbers of the next ones are
// right.
func (t *Transcript) SkipCall() { t.number++ }

// title is a row of ours that begins at the left, and what follows in it hangs.
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

// closeCalls shows the calls that will have no result any more.
func (t *Transcript) closeCalls() (rows []string) {
	for _, c := range t.openCalls {
		rows = append(rows, t.finishedRows(c)...)
	}
	t.openCalls = nil
	return rows
}

// offline is the provider that is no language model.
const offline = "offline"

// summary is what a turn took.
func (t *Transcript) summary() (out []string) {
	e := t.ended
	var said []string
	add := func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }
	if e.Calls > 0 {
		var not []string
		for _, c := range []struct {
			n    int
			what string
		}{{e.Failed - e.Denied - e.Stopped, "failed"}, {e.Denied, "not allowed"}, {e.Stopped, "stopped"}} {
			if c.n > 0 {
				not = append(not, fmt.Sprintf("%d %s", c.n, c.what))
			}
		}
		failed := ""
		if not != nil {
			failed = " (" + strings.Join(not, ", ") + ")"
		}
		add("%s%s", humanize.Plural(e.Calls, "call"), failed)
	}
	if t.changedCalls > 0 {
		add("%s", humanize.Plural(t.changedCalls, "change"))
	}
	tokens := int64(e.Usage.InputTokens) + int64(e.Usage.OutputTokens)
	if t.provider == offline {
		tokens = 0 // that is a guess
	}
	if said == nil && tokens == 0 && !t.o.Replay {
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
			said[len(said)-1] += ", " + e.Error
		}
	}
	p := t.formatter()
	before, row := "  ", "" // it is broken between what it says
	end := func() {
		for _, row := range p.wrapped(row, len(before)) {
			out = append(out, p.style(terminal.Dim, before+row))
			before = "    "
		}
	}
	for i, part := range said {
		if part = terminal.Line(part); i < len(said)-1 {
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

// retryText say why a request is sent again, and when.
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

// body is the body of an event, if it is one of that type.
func body[T any](e session.Event) (body T, ok bool) {
	ok = json.Unmarshal(e.Body, &body) == nil
	return body, ok
}

// unreadable shows an event of another version.
func (t *Transcript) unreadable(e session.Event) []string {
	p := t.formatter()
	out := p.ownRows(terminal.Dim, fmt.Sprintf("(%s, which cannot be read:)", e.Type))
	return append(out, t.folded(linesOf(string(e.Body)), nil, false)...)
}

// isReadable reports whether the body of an event is one of its type, as this program
// makes it.
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
	default:
		return true // it is not shown
	}
	return ok
}
