package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/markdown"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/transcript"
	"github.com/stockade-dev/stockade/host/session"
)

// printer prints the parts of a transcript line by line: the answer on stdout, everything
// else on stderr.
type printer struct {
	*transcript.Transcript
	s *stdio

	answerStream *markdown.Stream // the open answer on a terminal; nil: no answer is open
	atLineStart  bool             // the next byte on stdout starts a line
	held         strings.Builder  // the answer of this step, if stdout is not a terminal
	noAnswers    bool             // answers are printed elsewhere
	writeErr     error            // first error of writing to stdout
}

// transcriptOptions returns the options that all transcripts on this terminal share.
func (a *app) transcriptOptions() transcript.Options {
	return transcript.Options{
		Columns: a.s.columns, Color: a.s.color, Quiet: a.flags.quiet || a.flags.json, Verbose: a.flags.verbose, QuestionsShown: a.s.errTTY,
		ShowCommand: showCallCommand, HintText: hintText, Redactor: a.s.redactor,
	}
}

// showCallCommand shows a call of the newest session; the number of the call follows.
const showCallCommand = "stockade session show --call"

func (t *conversation) transcriptOptions() transcript.Options {
	o := t.a.transcriptOptions()
	o.PriorCalls = t.priorCalls
	if t.chat {
		o.ShowCommand, o.HintText = "/show", chatHintText
	}
	return o
}

func newPrinter(s *stdio, o transcript.Options) *printer {
	return &printer{Transcript: transcript.New(o), s: s, atLineStart: true}
}

func (p *printer) show(e session.Event) {
	p.print(p.Show(e))
	switch e.Type {
	case session.TypeToolCall, session.TypeStepEnded, session.TypeTurnEnded:
		p.endLine()
	}
}

func (p *printer) print(parts []transcript.Part) {
	for _, part := range parts {
		switch {
		case part.Restart:
			p.held.Reset() // void, also the part that a terminal has not shown yet
			p.answerStream = nil
			p.endLine()
		case part.Answer != "" && p.noAnswers:
		case part.Answer != "":
			p.answer(part.Answer)
		default:
			p.endLine()
			for _, row := range part.Rows {
				fmt.Fprintln(p.s.err, row)
			}
		}
	}
}

// answer prints a piece of the answer. A terminal gets finished rows at once. Other outputs
// get the whole answer at the end of the step, because it may still become void.
func (p *printer) answer(text string) {
	if !p.s.outTTY {
		p.held.WriteString(text)
		return
	}
	if p.answerStream == nil {
		p.answerStream = markdown.New(markdown.Options{Width: func() int { return p.s.outColumns() - 1 }, Color: p.s.colors()})
	}
	p.writeRows(p.answerStream.Add(text))
}

func (p *printer) writeRows(rows []string) {
	for _, row := range rows {
		p.write(row + "\n")
	}
}

func (p *printer) write(text string) {
	if text == "" {
		return
	}
	if _, err := fmt.Fprint(p.s.out, text); err != nil && p.writeErr == nil {
		p.writeErr = err
	}
	p.atLineStart = strings.HasSuffix(text, "\n")
}

// endLine prints the rest of the answer, and ends its line.
func (p *printer) endLine() {
	p.write(terminal.EscapeControls(p.held.String()))
	p.held.Reset()
	if p.answerStream != nil {
		p.writeRows(p.answerStream.End())
		p.answerStream = nil
	}
	if !p.atLineStart {
		p.write("\n")
	}
	if err := p.s.flushOut(); err != nil && p.writeErr == nil {
		p.writeErr = err
	}
}

// printReplay prints past events, answers too, on s.err. It puts a mark before each line of
// an answer, so that no line can look like a row of ours.
func printReplay(s *stdio, parts []transcript.Part) {
	columns := 0
	if s.columns != nil {
		columns = s.columns()
	}
	const mark, goesOn = "< ", "<   "
	for _, part := range parts {
		for _, row := range part.Rows {
			fmt.Fprintln(s.err, row)
		}
		if part.Answer == "" {
			continue
		}
		for line := range strings.SplitSeq(strings.TrimRight(part.Answer, "\n"), "\n") {
			rows, before := []string{terminal.Visible(line)}, mark
			if columns > 0 {
				rows = terminal.Wrap(strings.ReplaceAll(rows[0], "\t", "    "), max(columns-1-len(goesOn), 8))
			}
			for _, row := range rows {
				fmt.Fprintln(s.err, before+row)
				before = goesOn
			}
		}
	}
}

// printTail prints the tail of the resumed conversation. A redrawn terminal shows it as it
// looked at the time.
func (t *conversation) printTail() {
	if t.a.ui == nil {
		printReplay(t.a.s, t.tail)
		return
	}
	shown := markdown.Options{Width: func() int { return t.a.s.columns() - 1 }, Color: t.a.s.color}
	for _, part := range t.tail {
		if part.Answer != "" {
			part.Rows = markdown.Render(part.Answer, shown)
		}
		for _, row := range part.Rows {
			fmt.Fprintln(t.a.s.err, row)
		}
	}
}

// printCard prints everything about one call of a session. number is the number of the call,
// from 1; 0: the last call. If no call has the number, the error is a usage error.
func printCard(s *stdio, events iter.Seq2[session.Event, error], number int, o transcript.Options) error {
	card, err := transcript.Card(events, number, o)
	if errors.Is(err, transcript.ErrNoCall) {
		return usageError("`stockade session show` shows the numbers of the calls", "%v", err)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(s.out, strings.Join(card, "\n"))
	return err
}

// tailRows limits the rows of a conversation that a person sees when resuming it.
const tailRows = 24

func (t *conversation) showCall(ctx context.Context, arg string) error {
	number := 0
	if arg == "summary" {
		text := terminal.Visible(cmp.Or(t.ContextReport(ctx).Summary, "the conversation is sent without a summary"))
		_, err := fmt.Fprintln(t.a.s.out, text)
		return err
	}
	if arg != "" {
		n, err := strconv.Atoi(arg)
		if err != nil || n < 1 {
			return fmt.Errorf("%q is not the number of a call; each call is shown with its number", arg)
		}
		number = n
	}
	return printCard(t.a.s, t.Log.Events(ctx), number, t.a.transcriptOptions())
}

// printJSONEvents prints what part returns of each event as JSON, one a line.
func printJSONEvents(s *stdio, events iter.Seq2[session.Event, error], part func(session.Event) session.Event) error {
	for e, err := range events {
		if err == nil {
			err = writeJSONEvent(s, part(e))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func writeJSONEvent(s *stdio, e session.Event) error {
	line, err := e.Line()
	if err != nil {
		return err
	}
	if _, err = s.out.Write(line); err == nil && e.Type == session.TypeQuestion {
		err = s.flushOut() // nothing follows until it is answered
	}
	return err
}
