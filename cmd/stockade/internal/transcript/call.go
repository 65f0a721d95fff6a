package transcript

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/humanize"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/visible"
)

const (
	maxResultLines  = 10          // limits the lines of a result below its call, unless Verbose; others are counted
	liveOutputDelay = time.Second // time from the first output of a command until it is shown
	// maxOutputBytes limits the bytes of a running command's output: the last ones are kept.
	maxOutputBytes = 64 << 10
	// maxImages limits the number of images of a result that are listed below its call without
	// Verbose; the others are only counted.
	maxImages = 3
	// maxMessageRows limits the rows with messages below a call; further messages are left
	// out.
	maxMessageRows = 64
)

// call is a call whose result is not shown yet.
type call struct {
	id       string
	step     int
	number   int // number of the call in the session, from 1; 0: the session does not have this call
	function llm.FunctionData
	name     string // visible name of the function
	args     string // main arguments in one visible line
	task     string // progress of the list of tasks, if the call changed it

	rowShown    bool // the row of the call is shown already, without the outcome
	state       string
	since       time.Time // time of the first state or intent of the call; zero: it waits
	exec        bool      // the call may start processes
	staged      bool      // a decision about the changes follows the run
	decision    *session.Decision
	afterRun    bool // the decision is about the changes, after a run on a stage; perhaps nobody was asked
	changes     *session.Changes
	messageRows []string // rows below the call: messages, and events that cannot be read
	note        string   // last message of the tool, for the live region
	output      output

	done    bool
	deleted bool // the result cannot be read, usually because it was deleted
	result  Envelope
	fields  Result // decoded from result
	wrote   string // text that the tool wrote, before it was changed for the model, see [llm.ResultData]
}

// output is the output of a running command so far.
type output struct {
	text  string    // the last bytes of the output, at most maxOutputBytes
	since time.Time // time of the first output
	shown int       // number of lines of text that were shown already, or left out
}

// Envelope is the form in which the model gets the result of a tool.
type Envelope struct {
	Success  bool             `json:"tool_success"`
	Result   json.RawMessage  `json:"result"`
	Images   []tool.ImageInfo `json:"images"`
	Error    string           `json:"error"`
	Code     tool.Code        `json:"error_code"`
	Hint     string           `json:"hint"`
	Note     string           `json:"note"`
	Stdout   string           `json:"stdout"`
	Stderr   string           `json:"stderr"`
	Metadata struct {
		MS      int64          `json:"execution_time_ms"`
		Bytes   int64          `json:"data_size_bytes"`
		Fuel    uint64         `json:"fuel_used"`
		Memory  uint64         `json:"peak_memory_bytes"`
		Network []tool.Traffic `json:"network"`
	} `json:"metadata"`
}

// EnvelopeOf decodes a message with the result of a tool. ok is false for any other message.
func EnvelopeOf(m llm.Message) (data llm.ResultData, env Envelope, ok bool) {
	ok = json.Unmarshal(m.Data, &data) == nil && json.Unmarshal([]byte(data.Output), &env) == nil
	return data, env, ok
}

// Result holds the fields of a tool's result that a person sees. A result in another form leaves
// them zero.
type Result struct {
	Text     string `json:"-"` // the output, or else all of the result
	Output   any
	Stderr   string // standard error of a command; empty if the tool does not report it separately
	ExitCode int    `json:"exit_code"`
	Hint     string

	URL, Note        string
	Status           int
	Lines            int
	Next             int `json:"next_offset"`
	Completed, Total int
}

// ResultOf decodes a result.
func ResultOf(result json.RawMessage) (r Result) {
	_ = json.Unmarshal(result, &r) // see Result
	var ok bool
	if r.Text, ok = r.Output.(string); !ok {
		r.Text = string(result)
	}
	return r
}

// newCall returns the call of a tool_call event, with its number in the session.
func newCall(e session.Event, number int) *call {
	c := &call{id: e.Call, step: e.Step, number: number, name: "(deleted)"}
	var data llm.CallData
	switch m, ok := e.Message(); {
	case !ok:
	case json.Unmarshal(m.Data, &data) != nil:
		c.name, c.args = "(unknown)", inline(m.Content)
	default:
		c.name, c.args, c.function = humanize.ToolName(data.Function.Name), mainArgs(data.Function), data.Function
	}
	return c
}

// call handles an event of a call, and adds the rows that can be shown now to out.
func (t *Transcript) call(e session.Event, out *parts) {
	if e.Type == session.TypeToolCall {
		if n := len(t.openCalls); n > 0 && e.Step != t.openCalls[n-1].step {
			out.rows(t.closeCalls())
		}
		t.number++
		t.wait.since = time.Time{}
		t.openCalls = append(t.openCalls, newCall(e, t.number))
		return
	}
	i := slices.IndexFunc(t.openCalls, func(c *call) bool { return c.id == e.Call })
	if i < 0 {
		if e.Type == session.TypeProgress && e.Call == "" {
			p, _ := body[tool.Progress](e)
			out.rows(t.message(p))
		}
		if e.Type != session.TypeToolResult || t.compact {
			return
		}
		c := &call{id: e.Call, name: "(unknown)"}
		t.openCalls, i = append(t.openCalls, c), len(t.openCalls)
	}
	c := t.openCalls[i]
	t.update(c, e)
	if i == 0 && !c.done {
		out.rows(t.liveRows(c, e.Time))
	}
	for len(t.openCalls) > 0 && t.openCalls[0].done {
		out.rows(t.finishedRows(t.openCalls[0]))
		t.openCalls = t.openCalls[1:]
		if len(t.openCalls) == 0 {
			t.wait.since = e.Time
		}
	}
}

func (t *Transcript) update(c *call, e session.Event) {
	if t.o.Replay && e.Body != nil && !isReadable(e) {
		c.messageRows = append(c.messageRows, t.unreadable(e)...)
	}
	switch e.Type {
	case session.TypeCallState:
		s, _ := body[session.CallState](e)
		c.state = s.State
		if c.since.IsZero() {
			c.since = e.Time
		}
	case session.TypeDecision:
		if d, ok := body[session.Decision](e); ok && d.Histories == nil {
			c.decision, c.afterRun = &d, c.staged
			c.exec = c.exec || d.Tier != nil
		}
	case session.TypeCallIntended:
		if i, ok := body[session.Intent](e); ok {
			c.exec, c.staged = c.exec || i.Exec, i.Rehearsal
		}
		if c.since.IsZero() {
			c.since = e.Time
		}
	case session.TypeCallChanges:
		if x, ok := body[session.Changes](e); ok {
			c.changes = &x
		}
	case session.TypeProgress:
		p, _ := body[tool.Progress](e)
		c.note = p.Message
		if len(c.messageRows) < maxMessageRows {
			c.messageRows = append(c.messageRows, t.message(p)...)
		}
		if p.Output != "" {
			if c.output.since.IsZero() {
				c.output.since = e.Time
			}
			c.output.text = lastBytes(c.output.text+p.Output, maxOutputBytes)
		}
	case session.TypeToolResult:
		c.done = true
		m, ok := e.Message()
		data, env, read := EnvelopeOf(m)
		if c.deleted = !ok || !read; c.deleted {
			return
		}
		if c.result, c.fields, c.wrote = env, ResultOf(env.Result), data.RawOutput; c.number == 0 {
			c.name = humanize.ToolName(data.Name)
		}
		if (c.name == "add_task" || c.name == "update_task") && env.Success && c.fields.Total > 0 {
			first, _, _ := strings.Cut(c.fields.Text, "\n") // the task with its mark
			c.args, c.task = inline(first), fmt.Sprintf("%d of %d done", c.fields.Completed, c.fields.Total)
		}
		if c.decision != nil && c.decision.AllowHint != nil { // the model knows no flags
			if text, ok := strings.CutSuffix(env.Error, c.decision.AllowHint.String()); ok {
				c.result.Error = text + t.o.HintText(c.decision.AllowHint)
			}
		}
	}
}

// message returns the rows of a message that a tool or the host sent during a call. Without
// Verbose, it returns nil for one that is no warning or error.
func (t *Transcript) message(p tool.Progress) []string {
	if p.Message == "" || !(t.o.Verbose || p.Level == "warn" || p.Level == "error") {
		return nil
	}
	text := p.Message
	if hint := t.o.HintText(p.Hint); hint != "" {
		text += ": " + hint
	}
	return t.formatter().prose(terminal.Dim, text)
}

// liveRows returns the new output of a running call in rows, from liveOutputDelay after the first
// output on; without Verbose, only its first maxResultLines lines. The first time, the row of a
// call that no person typed comes first. It returns nil in a replay and with a live region.
func (t *Transcript) liveRows(c *call, now time.Time) (rows []string) {
	if t.o.Live || t.o.Replay || c.output.since.IsZero() || now.Sub(c.output.since) < liveOutputDelay {
		return nil
	}
	if !c.rowShown && !t.o.CallTyped {
		rows = append(rows, t.formatter().head(t.title(c), c.args))
	}
	c.rowShown = true
	if lines := linesOf(visible.RenderTerminal(c.output.text)); len(lines) > c.output.shown {
		limit := len(lines)
		if !t.o.Verbose {
			limit = min(limit, maxResultLines)
		}
		if limit > c.output.shown {
			rows = append(rows, t.formatter().quote("", clipped(lines[c.output.shown:limit]))...)
		}
		c.output.shown = len(lines)
	}
	return rows
}

// title returns the left end of a call's row: the call's number and the tool.
func (t *Transcript) title(c *call) span {
	number := "  ?"
	if c.number > 0 {
		number = fmt.Sprintf("%3d", c.number)
	}
	return span{terminal.Bold, number + "  " + c.name}
}

// finishedRows returns the row of a call with its outcome, and all rows below it.
func (t *Transcript) finishedRows(c *call) (rows []string) {
	p := t.formatter()
	what := t.outcome(c)
	switch {
	case t.o.CallTyped:
	case c.rowShown:
		rows = append(rows, p.head(span{}, "", what...))
	default:
		rows = append(rows, p.head(t.title(c), c.args, what...))
	}
	if c.hasChanged() {
		t.changedCalls++
	}
	if t.compact {
		return rows
	}
	if d := c.decision; d != nil && t.o.Verbose {
		rows = append(rows, p.ownRows(terminal.Dim, fmt.Sprintf("%s: %s (risk %s, rule %s of %s)", d.Tool, d.Effect, d.Risk, d.Rule, d.Source))...)
	}
	rows = append(rows, c.messageRows...)
	if c.done && !c.deleted {
		rows = append(rows, t.resultRows(c)...)
	}
	if answer := t.verdict(c); answer != "" {
		rows = append(rows, p.ownRows(terminal.Dim, answer)...)
	}
	if t.o.Verbose && c.done && !c.deleted && !t.o.CallTyped {
		rows = append(rows, p.ownRows(terminal.Dim, c.cost())...)
	}
	return rows
}

// hasChanged reports whether the call succeeded and changed files.
func (c *call) hasChanged() bool { return c.changes != nil && c.done && c.result.Success }

// resultRows returns the rows below a call that show its result.
func (t *Transcript) resultRows(c *call) (rows []string) {
	p, env, result := t.formatter(), c.result, c.fields
	if !env.Success && !t.o.CallTyped {
		rows = append(rows, t.failed(c)...)
	}
	if env.Success && !t.o.CallTyped {
		rows = append(rows, t.images(env.Images)...)
		if to := result.URL; c.name == "http_fetch" && to != "" && strings.Contains(result.Note, "redirected to "+to) {
			rows = append(rows, p.ownRows(terminal.Dim, "redirected to "+humanize.Clip(terminal.Line(to), maxLine))...)
		}
		if t.o.Verbose || c.exec || (!c.readsFile() && c.task == "" && c.changes == nil && !(c.staged && !c.exec)) {
			rows = append(rows, t.folded(linesOf(result.Text), c, c.exec)...)
		}
		if c.exec && result.Stderr != "" {
			rows = append(rows, p.ownRows(terminal.Dim, "on standard error:")...)
			rows = append(rows, t.folded(linesOf(result.Stderr), nil, true)...)
		}
		if result.Hint != "" {
			rows = append(rows, p.prose(terminal.Dim, result.Hint)...)
		}
	}
	if c.hasChanged() && !(t.o.QuestionsShown && c.wasAsked() && c.afterRun) {
		rows = append(rows, t.changeRows(c, t.o.Verbose, maxFiles, maxDiffLines)...)
	}
	if env.Success && c.exec && c.staged && c.changes == nil && !t.o.CallTyped {
		rows = append(rows, p.ownRows(terminal.Dim, "changed nothing")...)
	}
	if !t.o.CallTyped {
		for note := range strings.Lines(env.Note) {
			rows = append(rows, p.ownRows(terminal.Dim, note)...)
		}
	}
	return rows
}

// images returns rows that describe the images of a result: a terminal cannot show images.
func (t *Transcript) images(images []tool.ImageInfo) (rows []string) {
	limit := len(images)
	if !t.o.Verbose {
		limit = min(limit, maxImages)
	}
	for _, i := range images[:limit] {
		rows = append(rows, t.formatter().ownRows(terminal.Dim, ImageText(i))...)
	}
	if more := len(images) - limit; more > 0 {
		rows = append(rows, t.formatter().ownRows(terminal.Dim, "… "+humanize.Plural(more, "more image"))...)
	}
	return rows
}

// ImageText describes an image, for example: image/png 640x480, 31.2 KiB.
func ImageText(i tool.ImageInfo) string {
	return fmt.Sprintf("%s %dx%d, %s", terminal.Line(humanize.Clip(i.Mime, 40)), i.Width, i.Height, humanize.Bytes(int64(i.Bytes)))
}

// failed returns the rows below a failed call: the error, unless the row of the call shows it,
// and output.
func (t *Transcript) failed(c *call) (rows []string) {
	p, env := t.formatter(), c.result
	switch {
	case env.Code == tool.CodeDenied && c.wasAsked() && !*c.decision.Answer:
		return nil // the row says "you said no"
	case env.Code == tool.CodeUnknownTool && env.Hint != "" && !t.o.Verbose: // the row says so already
		rows = p.ownRows("", humanize.Clip(env.Hint, maxLine))
	case c.stoppedByPerson() && !t.o.Verbose: // the row says so, too
	case env.Code == tool.CodeCancelled && c.exec && !c.wasAsked() && env.Metadata.MS > 0 && !t.o.Verbose: // and here
	case !env.Code.FromHost() && (env.Code != tool.CodeInvalidArgs || env.Metadata.Fuel > 0) || env.Code == tool.CodeTrap: // the tool wrote the text
		rows = p.prose(terminal.Red, clipped(strings.Split(env.Error, "\n")))
	default:
		rows = p.ownRows("", humanize.Clip(env.Error, 1000))
	}
	wrote := env.Stdout
	if wrote == "" && env.Stderr == "" { // it was stopped: its output that was on the screen must not vanish
		wrote = visible.RenderTerminal(c.output.text)
	}
	rows = append(rows, t.folded(linesOf(wrote), c, true)...)
	rows = append(rows, t.folded(linesOf(env.Stderr), nil, true)...)
	if env.Hint != "" && t.o.Verbose {
		rows = append(rows, p.ownRows(terminal.Dim, "hint: "+env.Hint)...)
	}
	return rows
}

func (c *call) stoppedByPerson() bool {
	return c.result.Code == tool.CodeCancelled && stoppedAfter().MatchString(c.result.Error)
}

var stoppedAfter = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(` was cancelled( after \d+ units of fuel)?$`) })

func (c *call) wasAsked() bool { return c.decision != nil && c.decision.Answer != nil }

// verdict returns the answer to the question about the call, as text. It is empty if nobody
// was asked, if the call has no result yet, or if other rows show the answer or its effect.
func (t *Transcript) verdict(c *call) string {
	if !c.wasAsked() || !c.done || c.deleted || !*c.decision.Answer && (t.o.CallTyped || c.result.Code == tool.CodeCancelled) {
		return ""
	}
	d, text := c.decision, ""
	if t.o.QuestionsShown && !t.o.Replay && d.AnsweredBy == "terminal" {
		return "" // the question has shown it
	}
	switch yes := *d.Answer; {
	case yes && c.afterRun && c.result.Success:
		text = "kept" + scopeText(d.Scope)
	case yes && (scopeText(d.Scope) != "" || !c.afterRun && t.o.Replay):
		text = "allowed" + scopeText(d.Scope)
	case !yes && c.afterRun:
		text = "dropped"
	case !yes:
		text = "not run"
	default:
		return ""
	}
	if t.o.Replay || !*d.Answer && d.AnsweredBy != "terminal" {
		who := ", by "
		if strings.HasPrefix(d.AnsweredBy, "no") { // body, or terminal to ask on
			who = ": "
		}
		text += who + terminal.Line(d.AnsweredBy)
	}
	if t.o.Replay {
		text += " (asked because " + terminal.Line(d.Reason) + ")"
	}
	return text
}

// scopeText returns the scope of an answer as the end of a sentence; empty if the answer is for
// one call only.
func scopeText(s policy.Scope) string {
	if text, ok := scopeTexts[s]; ok {
		return text
	}
	return ", " + terminal.Line(string(s))
}

var scopeTexts = map[policy.Scope]string{
	"":                    "",
	policy.ScopeOnce:      "",
	policy.ScopeTurn:      ", for the rest of this turn",
	policy.ScopeSession:   ", for this session",
	policy.ScopeProject:   ", in this project",
	policy.ScopeFree:      ", like all plain changes here, for this session",
	policy.ScopeBelow:     ", in this directory, for this session",
	policy.ScopeKeepBelow: ", in this directory, always",
}

// outcomes maps the code of a failure to a short text for the row of the call. Any other code is
// shown as "failed".
var outcomes = map[tool.Code]string{
	tool.CodeUnknownTool:  "no such tool",
	tool.CodeInvalidArgs:  "wrong arguments",
	tool.CodeUnseen:       "not read yet",
	"NOT_READ":            "not read yet", // of file_edit and apply_patch
	tool.CodeDenied:       "not allowed",
	tool.CodeFilesChanged: "changed by others",
	tool.CodeNotKept:      "not kept",
	tool.CodeNoSpace:      "no room",
	tool.CodeTrap:         "crashed",
	tool.CodeFuel:         "out of fuel",
	tool.CodeTimeout:      "timed out",
	tool.CodeMemory:       "out of memory",
	tool.CodeCancelled:    "stopped",
	tool.CodeBadABI:       "broke the ABI",
	tool.CodeNotAdmitted:  "refused",
	tool.CodeInterrupted:  "interrupted",
	tool.CodeRateLimited:  "too often",
	tool.CodeLimitReached: "not run",
	tool.CodeHost:         "fault of the host",
}

// outcome returns the right end of a call's row, which shows how the call ended.
func (t *Transcript) outcome(c *call) []span {
	env := c.result
	what, style := "", ""
	switch {
	case !c.done:
		return []span{{terminal.Dim, "no result"}}
	case c.deleted:
		return []span{{terminal.Dim, "deleted"}}
	case env.Success:
		what, style = c.success()
	case env.Code == tool.CodeDenied && c.wasAsked() && !*c.decision.Answer && c.decision.AnsweredBy == "terminal":
		return []span{{terminal.Yellow, "you said no"}}
	case env.Code == tool.CodeDenied:
		return []span{{terminal.Red, "not allowed"}}
	case c.stoppedByPerson():
		what, style = "you stopped it", terminal.Red
	default:
		if what, style = outcomes[env.Code], terminal.Red; what == "" {
			what = "failed"
		}
	}
	if !env.Success && env.Metadata.MS == 0 {
		return []span{{style, what}} // the call has not run
	}
	return []span{{style, what}, {terminal.Dim, fmt.Sprintf("  %7s", humanize.Duration(time.Duration(env.Metadata.MS)*time.Millisecond))}}
}

// success returns the outcome of a successful call in words, and the style of this text.
func (c *call) success() (what, style string) {
	r := c.fields
	lines := len(linesOf(r.Text))
	if c.exec {
		if what = fmt.Sprintf("exit %d", r.ExitCode); lines == 0 && r.Stderr == "" {
			what = "no output, " + what
		}
		if r.ExitCode != 0 {
			style = terminal.Red
		}
		return what, style
	}
	if c.changes != nil {
		added, removed := 0, 0
		for _, f := range c.changes.Files {
			added, removed = added+f.Added, removed+f.Removed
		}
		switch n := len(c.changes.Files) + c.changes.More; {
		case added+removed > 0:
			return counts(added, removed), ""
		case n == 1:
			return string(c.changes.Files[0].Kind), ""
		default:
			return humanize.Plural(n, "change"), ""
		}
	}
	if c.staged {
		return "changed nothing", ""
	}
	if c.task != "" {
		return c.task, ""
	}
	if n := len(c.result.Images); n > 0 {
		return humanize.Plural(n, "image"), ""
	}
	if c.name == "http_fetch" && r.Status != 0 && r.Status != 200 {
		if r.Status >= 400 {
			style = terminal.Red
		}
		return strconv.Itoa(r.Status), style
	}
	if lines == 0 {
		return "empty", ""
	}
	if c.name == "file_read" {
		return r.readRange(), ""
	}
	return humanize.Plural(lines, "line"), ""
}

var leadingNumber = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(\d{1,9}): `) })

// readRange describes the range of lines that the reading of a file returned, and the number
// of lines in the file. A note after the lines does not count as a line.
func (r Result) readRange() string {
	read := strings.Count(r.Text, "\n")
	if !strings.HasSuffix(r.Text, "\n") {
		read++
	}
	last := r.Lines
	if r.Next > 0 {
		last = r.Next - 1
	}
	if last <= 0 { // also for a directory
		return humanize.Plural(read, "line")
	}
	if m := leadingNumber().FindStringSubmatch(r.Text); m != nil {
		first, _ := strconv.Atoi(m[1])
		if n := last - first + 1; n == read || n == read-1 {
			read = n
		}
	}
	exact := func(n int) string { return humanize.Exact(int64(n)) }
	total := ""
	if r.Lines > 0 {
		total = " of " + exact(r.Lines)
	}
	switch {
	case read == r.Lines:
		return humanize.Plural(read, "line")
	case read == 1:
		return "line " + exact(last) + total
	}
	return "lines " + exact(last-read+1) + " to " + exact(last) + total
}

// cost returns the resources that a call used, its risk and its jail, in words.
func (c *call) cost() string {
	m := c.result.Metadata
	parts := []string{fmt.Sprintf("%d ms", m.MS)}
	if m.Fuel > 0 {
		parts = append(parts, humanize.Count(m.Fuel)+" fuel")
	}
	if m.Memory > 0 {
		parts = append(parts, humanize.Bytes(int64(m.Memory))+" memory")
	}
	parts = append(parts, humanize.Bytes(m.Bytes)+" result")
	if d := c.decision; d != nil {
		if d.Risk != "" {
			parts = append(parts, "risk "+terminal.Line(d.Risk))
		}
		if d.Tier != nil {
			parts = append(parts, fmt.Sprintf("jail %s of %d", d.Tier, policy.MaxTier))
		}
	}
	return strings.Join(parts, ", ")
}

// folded returns lines of a result in rows behind bars. Without Verbose, it shows at most
// maxResultLines: the first ones, or with end the last ones. Lines that were shown while the
// call c ran are left out. c may be nil.
func (t *Transcript) folded(lines []string, c *call, end bool) (rows []string) {
	p := t.formatter()
	limit, more := len(lines), ""
	if !t.o.Verbose {
		limit = min(limit, maxResultLines)
	}
	if left := len(lines) - limit; left > 0 {
		more = humanize.Plural(left, "more line") + t.showHint(c)
	}
	from := 0
	if c != nil && c.rowShown && c.output.shown > 0 && strings.HasPrefix(strings.Join(lines, "\n"), strings.TrimRight(visible.RenderTerminal(c.output.text), "\n")) {
		from, end = c.output.shown, false
	}
	if end && more != "" {
		rows = append(rows, p.ownRows(terminal.Dim, "… "+more)...)
		return append(rows, p.quote("", clipped(lines[len(lines)-limit:]))...)
	}
	if from < limit {
		rows = append(rows, p.quote("", clipped(lines[from:limit]))...)
	}
	if more != "" {
		rows = append(rows, p.ownRows(terminal.Dim, "… "+more)...)
	}
	return rows
}

// showHint returns the command that shows everything about a call, after a comma. It is empty
// if there is no such command.
func (t *Transcript) showHint(c *call) string {
	if t.o.ShowCommand == "" || c == nil || c.number == 0 {
		return ""
	}
	return fmt.Sprintf(", %s %d", t.o.ShowCommand, c.number)
}
