package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

// previewLines is how much of a result the terminal shows; the whole is in the
// session.
const previewLines = 12

// renderer shows the events of a turn to a person: the answer on stdout,
// everything else on stderr.
type renderer struct {
	s       *stdio
	quiet   bool
	verbose bool
	past    bool // what is shown is over: nobody has seen its questions

	shown       terminal.Stream // the answer on a terminal
	atLineStart bool            // of the answer on stdout
	held        strings.Builder // the answer of this step, where stdout is no terminal
	writeErr    error           // of stdout, the first
	decisions   map[string]session.Decision
	announced   map[string]session.Changes // by call: what it is about to change
	calls       []*openCall                // of this step, those whose result is not shown yet
	live        map[string]*live           // by call
	ended       session.TurnEnded
}

func newRenderer(s *stdio, quiet, verbose bool) *renderer {
	return &renderer{
		s: s, quiet: quiet, verbose: verbose, atLineStart: true,
		decisions: map[string]session.Decision{}, announced: map[string]session.Changes{}, live: map[string]*live{},
	}
}

// openCall is a call whose result is not shown yet. Calls run at the same time,
// and are shown one after the other, each with its result: the first is on the
// screen, and what happens to the others is kept until it is their turn.
type openCall struct {
	id, line string
	kept     []session.Event
}

// live is what a command writes while it runs. It is shown when a person has waited
// for a second: the result follows otherwise.
type live struct {
	since time.Time
	text  string
	lines int  // of the text that are shown
	asked bool // about a command that has run: the question has shown the end of it all
}

const liveAfter = time.Second

// turnOf shows a call and what has happened to it.
func (r *renderer) turnOf(c *openCall) {
	r.line(terminal.Bold, "-> %s", c.line)
	for _, e := range c.kept {
		r.show(e)
	}
}

// next ends the turn of the first call.
func (r *renderer) next() {
	if r.calls = r.calls[1:]; len(r.calls) > 0 {
		r.turnOf(r.calls[0])
	}
}

// keep keeps an event of a call whose turn it is not.
func (r *renderer) keep(e session.Event) bool {
	i := slices.IndexFunc(r.calls, func(c *openCall) bool { return c.id == e.Call })
	if i > 0 {
		r.calls[i].kept = append(r.calls[i].kept, e)
	}
	return i > 0
}

// show renders one event.
func (r *renderer) show(e session.Event) {
	if m, ok := e.Message(); ok && e.Type == session.TypeToolCall {
		r.endLine()
		r.calls = append(r.calls, &openCall{id: e.Call, line: m.Content})
		if len(r.calls) == 1 {
			r.turnOf(r.calls[0])
		}
		return
	}
	if r.keep(e) {
		return
	}
	switch {
	case e.Body == nil:
		r.line(terminal.Dim, "   (%s: deleted)", e.Type)
	case r.past && !readable(e):
		r.line(terminal.Dim, "   (%s, which cannot be read:)", e.Type)
		r.preview(string(e.Body), nil)
	}
	switch e.Type {
	case session.TypeDelta:
		if d, ok := body[session.Delta](e); ok {
			r.answer(d.Text)
		}
	case session.TypeRestart:
		if d, ok := body[session.Restart](e); ok {
			r.held.Reset() // void; a terminal has shown it already
			r.endLine()
			r.line(terminal.Yellow, "stockade: %s; trying again", d.Error)
		}
	case session.TypeStepEnded:
		r.endLine()
	case session.TypeDecision:
		if d, ok := body[session.Decision](e); ok {
			r.decisions[e.Call] = d
			if l := r.live[e.Call]; l != nil {
				l.asked = d.Answer != nil
			}
			if r.verbose {
				r.line(terminal.Dim, "   %s: %s (risk %s, rule %s of %s)", d.Tool, d.Effect, d.Risk, d.Rule, d.Source)
			}
			if r.past && d.Answer != nil {
				r.line(terminal.Dim, "   asked (%s): %s", d.Reason, answerText(d))
			}
		}
	case session.TypeCallChanges:
		if c, ok := body[session.Changes](e); ok {
			r.announced[e.Call] = c
		}
	case session.TypeProgress:
		p, _ := body[tool.Progress](e)
		if p.Message != "" && (r.verbose || p.Level == "warn" || p.Level == "error") {
			r.line(terminal.Dim, "   %s%s", p.Message, suffix(": ", inWords(p.Hint)))
		}
		if p.Output != "" {
			r.writes(e.Call, p.Output)
		}
	case session.TypeToolResult:
		if m, ok := e.Message(); ok {
			r.result(e, m)
		}
		if len(r.calls) > 0 && r.calls[0].id == e.Call {
			r.next()
		}
	case session.TypeTurnEnded:
		r.endLine()
		for len(r.calls) > 0 { // without a result
			r.next()
		}
		r.ended, _ = body[session.TurnEnded](e)
	}
}

// body is the body of an event, if it is one of that type.
func body[T any](e session.Event) (body T, ok bool) {
	ok = json.Unmarshal(e.Body, &body) == nil
	return body, ok
}

// answer shows a piece of the answer: at once on a terminal, and elsewhere when
// the step has ended, because a piece may yet turn out to be void.
func (r *renderer) answer(text string) {
	if !r.s.outTTY {
		r.held.WriteString(text)
		return
	}
	r.write(r.shown.Visible(text))
}

func (r *renderer) write(text string) {
	if text == "" {
		return
	}
	if _, err := fmt.Fprint(r.s.out, text); err != nil && r.writeErr == nil {
		r.writeErr = err
	}
	r.atLineStart = strings.HasSuffix(text, "\n")
}

// endLine ends the answer's line, so that what follows starts a new one.
func (r *renderer) endLine() {
	r.write(r.held.String())
	r.held.Reset()
	r.shown = terminal.Stream{}
	if !r.atLineStart {
		r.write("\n")
	}
	if err := r.s.flushOut(); err != nil && r.writeErr == nil {
		r.writeErr = err
	}
}

func (r *renderer) line(st, format string, args ...any) {
	r.rows(st, "", hanging, fmt.Sprintf(format, args...))
}

// rows prints a text in rows that fit the terminal, so that no part of it can
// stand where a line of ours would.
func (r *renderer) rows(st, first, next, text string) {
	if r.quiet {
		return
	}
	columns := 0
	if r.s.columns != nil {
		columns = r.s.columns()
	}
	for _, row := range terminal.Fold(r.s.known.Text(text), first, next, columns) {
		fmt.Fprintln(r.s.err, terminal.Style(r.s.color, st, row))
	}
}

// envelope is what a result's envelope says, for showing it.
type envelope struct {
	Success  bool            `json:"tool_success"`
	Result   json.RawMessage `json:"result"`
	Error    string          `json:"error"`
	Code     tool.Code       `json:"error_code"`
	Hint     string          `json:"hint"`
	Note     string          `json:"note"`
	Stdout   string          `json:"stdout"`
	Stderr   string          `json:"stderr"`
	Metadata struct {
		MS     int64  `json:"execution_time_ms"`
		Bytes  int64  `json:"data_size_bytes"`
		Fuel   uint64 `json:"fuel_used"`
		Memory uint64 `json:"peak_memory_bytes"`
	} `json:"metadata"`
}

func envelopeOf(m llm.Message) (data llm.ResultData, env envelope, ok bool) {
	ok = json.Unmarshal(m.Data, &data) == nil && json.Unmarshal([]byte(data.Output), &env) == nil
	return data, env, ok
}

func (r *renderer) result(e session.Event, m llm.Message) {
	data, env, ok := envelopeOf(m)
	if !ok {
		return
	}
	r.changes(e.Call, env.Success)
	if change := r.decisions[e.Call].Change; change != nil { // the model knows no flags
		if said, ok := strings.CutSuffix(env.Error, change.String()); ok {
			env.Error = said + inWords(change)
		}
	}
	shown := r.live[e.Call]
	delete(r.live, e.Call)
	if env.Success {
		r.preview(outputText(env.Result), shown)
		if aside := asideOf(env.Result); aside != "" {
			r.line(terminal.Dim, "   %s", aside)
		}
	} else {
		r.line(terminal.Red, "   %s: %s", env.Code, env.Error)
		r.preview(env.Stdout, shown)
		r.preview(env.Stderr, nil)
		if env.Hint != "" && r.verbose {
			r.line(terminal.Dim, "   hint: %s", env.Hint)
		}
	}
	for note := range strings.Lines(env.Note) {
		r.line(terminal.Dim, "   %s", strings.TrimSuffix(note, "\n"))
	}
	r.line(terminal.Dim, "   = %s", cost(data.Name, env, r.decisions[e.Call]))
}

// cost is the last line of a call: what it took and who allowed it.
func cost(name string, env envelope, d session.Decision) string {
	parts := []string{name}
	if env.Success {
		parts = append(parts, "ok")
	} else {
		parts = append(parts, "failed")
	}
	parts = append(parts, fmt.Sprintf("%d ms", env.Metadata.MS))
	if env.Metadata.Fuel > 0 {
		parts = append(parts, humanCount(env.Metadata.Fuel)+" fuel")
	}
	if env.Metadata.Memory > 0 {
		parts = append(parts, humanBytes(int64(env.Metadata.Memory))+" memory")
	}
	parts = append(parts, humanBytes(env.Metadata.Bytes)+" result")
	if d.Risk != "" {
		parts = append(parts, "risk "+d.Risk)
	}
	if d.Tier != nil {
		parts = append(parts, "jail "+d.Tier.String())
	}
	return strings.Join(parts, ", ")
}

// asideOf is what a result says beside its output: a hint, and how a command
// ended.
func asideOf(result json.RawMessage) string {
	var fields struct {
		Hint     string `json:"hint"`
		ExitCode int    `json:"exit_code"`
	}
	if json.Unmarshal(result, &fields) != nil {
		return ""
	}
	if fields.ExitCode != 0 {
		return fmt.Sprintf("the command ended with exit code %d", fields.ExitCode)
	}
	return fields.Hint
}

// outputText is the part of a result that a person reads.
func outputText(result json.RawMessage) string {
	var fields struct {
		Output *string `json:"output"`
	}
	if json.Unmarshal(result, &fields) == nil && fields.Output != nil {
		return *fields.Output
	}
	return string(result)
}

// preview shows the beginning of a text, without what of it is on the screen.
func (r *renderer) preview(text string, shown *live) {
	text = strings.TrimRight(text, "\n")
	if text == "" {
		return
	}
	lines, from := strings.Split(text, "\n"), 0
	switch {
	case shown == nil:
	case shown.asked && len(lines) <= policy.OutputLines:
		from = len(lines)
	case strings.HasPrefix(text, strings.TrimRight(shown.text, "\n")):
		from = shown.lines
	}
	if more := r.previewed(lines, from); more > 0 {
		r.line(terminal.Dim, "   | ... %d more lines", more)
	}
}

// previewed shows the lines that belong to a preview, but the first, and returns how
// many there are beyond it.
func (r *renderer) previewed(lines []string, first int) (more int) {
	if len(lines) > previewLines && !r.verbose {
		more = len(lines) - previewLines
		lines = lines[:previewLines]
	}
	for _, l := range lines[min(first, len(lines)):] {
		r.rows("", "   | ", "   : ", clip(l, 200))
	}
	return more
}

// writes shows what a command has written, once that is to be.
func (r *renderer) writes(call, text string) {
	l := r.live[call]
	if l == nil {
		l = &live{since: time.Now()}
		r.live[call] = l
	}
	l.text += text
	if time.Since(l.since) < liveAfter {
		return
	}
	if whole := strings.TrimRight(l.text, "\n"); whole != "" {
		lines := strings.Split(whole, "\n")
		r.previewed(lines, l.lines)
		l.lines = len(lines)
	}
}

// clip cuts a line to n characters.
func clip(s string, n int) string {
	runes := 0
	for i := range s {
		if runes == n {
			return s[:i] + " ..."
		}
		runes++
	}
	return s
}

func humanBytes(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}

// humanCount is a number to three digits or so: 950, 12.3 k, 4.5 M.
func humanCount(n uint64) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	value := float64(n) / 1000
	units := "kMGT"
	for len(units) > 1 && value >= 1000 {
		value /= 1000
		units = units[1:]
	}
	return fmt.Sprintf("%.1f %c", value, units[0])
}

func writeJSONEvent(s *stdio, e session.Event) error {
	line, err := e.Line()
	if err != nil {
		return err
	}
	_, err = s.out.Write(line)
	return err
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// maxShownChanges is how many changes of a call are listed.
const maxShownChanges = 8

// changed lists what the call of a result has changed, and nothing else of it.
func (r *renderer) changed(e session.Event) {
	if m, ok := e.Message(); ok {
		_, env, ok := envelopeOf(m)
		r.changes(e.Call, ok && env.Success)
	}
}

// changes lists what a call has changed. It was announced before it was done, and
// comes to nothing if the call fails.
func (r *renderer) changes(call string, done bool) {
	c := r.announced[call]
	delete(r.announced, call)
	if !done {
		return
	}
	if c.Summary != nil {
		for _, line := range c.Summary {
			r.line(terminal.Dim, "   %s", clip(line, 200))
		}
		return
	}
	for _, change := range c.Files[:min(len(c.Files), maxShownChanges)] {
		r.line(terminal.Dim, "   %s %s", change.Kind, clip(change.Path, 200))
	}
	if more := len(c.Files) + c.More - maxShownChanges; more > 0 {
		r.line(terminal.Dim, "   and %s more", plural(more, "change"))
	}
}
