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
	// maxResultLines is how much of a result is shown below its call.
	maxResultLines = 10
	// liveOutputDelay is how long a person waits before the output of a command is shown.
	liveOutputDelay = time.Second
	// maxOutputBytes is how much of that is kept, in bytes.
	maxOutputBytes = 64 << 10
	// maxImages is how many images of a result have a row below its call.
	maxImages = 3
	// maxMessageRows is how many messages of a tool are kept for the rows below its call.
	maxMessageRows = 64
)

// call is a call whose result is not shown yet.
type call struct {
	id     string
	step   int
	number int // 0: the session has no such call
	name   string
	args   string // the main ones, visible
	task   string // how far the list of tasks is, if it was the call's to change

	rowShown    bool // its row is shown, without what came of it
	state       string
	since       time.Time // when it began to run
	readsFile   bool      // it gives the content of a file
	exec        bool      // it may start processes
	staged      bool      // what it changes is decided when it has run
	decision    *session.Decision
	afterRun    bool // that is about what it has changed
	changes     *session.Changes
	messageRows []string // rows below it, of what it has said and what cannot be read
	note        string   // what it has said last
	output      output

	done    bool
	deleted bool // nobody knows what came of it any more
	result  Envelope
	wrote   string // see [llm.ResultData]
}

// output is what a command has written so far, and how much of it is shown.
type output struct {
	text  string
	since time.Time
	shown int // lines
}

// Envelope is what the envelope of a result says, for showing it.
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

// EnvelopeOf is what the message of a result holds; false where it is not one of a tool.
func EnvelopeOf(m llm.Message) (data llm.ResultData, env Envelope, ok bool) {
	ok = json.Unmarshal(m.Data, &data) == nil && json.Unmarshal([]byte(data.Output), &env) == nil
	return data, env, ok
}

// OutputText is the part of a result that a person reads.
func OutputText(result json.RawMessage) string {
	var fields struct {
		Output *string `json:"output"`
	}
	if json.Unmarshal(result, &fields) == nil && fields.Output != nil {
		return *fields.Output
	}
	return string(result)
}

// StderrText is what a command has written to standard error, if a tool tells that apart.
func StderrText(result json.RawMessage) string {
	var fields struct {
		Stderr string `json:"stderr"`
	}
	_ = json.Unmarshal(result, &fields) // what is no object has none
	return fields.Stderr
}

// HintAndExitCode is what a result says beside its output: a hint, and how a command has ended
// that did not end well.
func HintAndExitCode(result json.RawMessage) (hint string, exitCode int) {
	var fields struct {
		Hint     string `json:"hint"`
		ExitCode int    `json:"exit_code"`
	}
	if json.Unmarshal(result, &fields) != nil {
		return "", 0
	}
	return fields.Hint, fields.ExitCode
}

// call takes in an event of a call, and shows what can be shown now.
func (t *Transcript) call(e session.Event, out *parts) {
	if e.Type == session.TypeToolCall {
		if n := len(t.openCalls); n > 0 && e.Step != t.openCalls[n-1].step {
			out.rows(t.closeCalls())
		}
		t.number++
		c := &call{id: e.Call, step: e.Step, number: t.number, name: "(deleted)"}
		if m, ok := e.Message(); ok {
			var data llm.CallData
			if json.Unmarshal(m.Data, &data) == nil {
				arguments := json.RawMessage(data.Function.Arguments)
				c.name, c.args = humanize.ToolName(data.Function.Name), mainArgs(data.Function.Name, arguments)
				c.readsFile = isFileRead(data.Function.Name, arguments)
			} else {
				c.name, c.args = "(unknown)", inline(m.Content)
			}
		}
		t.waitingSince = time.Time{}
		t.openCalls = append(t.openCalls, c)
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
			t.waitingSince = e.Time
		}
	}
}

// update takes in what has happened to a call.
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
		if c.result, c.wrote = env, data.RawOutput; c.number == 0 {
			c.name = humanize.ToolName(data.Name)
		}
		if c.name == "add_task" || c.name == "update_task" {
			c.setTask()
		}
		if c.decision != nil && c.decision.AllowHint != nil { // the model knows no flags
			if said, ok := strings.CutSuffix(env.Error, c.decision.AllowHint.String()); ok {
				c.result.Error = said + t.o.HintText(c.decision.AllowHint)
			}
		}
	}
}

// setTask makes the row of a call that has changed the list of tasks: the task with its
// mark, and how far the list is.
func (c *call) setTask() {
	var fields struct {
		Output           string
		Completed, Total int
	}
	if c.result.Success && json.Unmarshal(c.result.Result, &fields) == nil && fields.Total > 0 {
		first, _, _ := strings.Cut(fields.Output, "\n")
		c.args, c.task = inline(first), fmt.Sprintf("%d of %d done", fields.Completed, fields.Total)
	}
}

// message is what a tool or the host says during a call, if it matters.
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

// liveRows shows the row of a call that a person has waited for, and what it has written
// since, where no live region does.
func (t *Transcript) liveRows(c *call, now time.Time) (rows []string) {
	if t.o.Live || t.o.Replay || c.output.since.IsZero() || now.Sub(c.output.since) < liveOutputDelay {
		return nil
	}
	if !c.rowShown && !t.o.CallTyped {
		rows = append(rows, t.formatter().head(t.title(c), c.args))
	}
	c.rowShown = true
	if lines := linesOf(visible.RenderTerminal(c.output.text)); len(lines) > c.output.shown {
		most := len(lines)
		if !t.o.Verbose {
			most = min(most, maxResultLines)
		}
		if most > c.output.shown {
			rows = append(rows, t.formatter().quote("", clipped(lines[c.output.shown:most]))...)
		}
		c.output.shown = len(lines)
	}
	return rows
}

// title is the beginning of the row of a call.
func (t *Transcript) title(c *call) span {
	number := "  ?"
	if c.number > 0 {
		number = fmt.Sprintf("%3d", c.number)
	}
	return span{terminal.Bold, number + "  " + c.name}
}

// finishedRows is a call with what has come of it.
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
		rows = append(rows, p.ownRows(terminal.Dim, decisionText(d))...)
	}
	rows = append(rows, c.messageRows...)
	if c.done && !c.deleted {
		rows = append(rows, t.resultRows(c)...)
	}
	if said := t.verdict(c); said != "" {
		rows = append(rows, p.ownRows(terminal.Dim, said)...)
	}
	if t.o.Verbose && c.done && !c.deleted && !t.o.CallTyped {
		rows = append(rows, p.ownRows(terminal.Dim, c.cost())...)
	}
	return rows
}

// hasChanged reports whether the call has changed something.
func (c *call) hasChanged() bool { return c.changes != nil && c.done && c.result.Success }

// resultRows are the rows about what has come of a call.
func (t *Transcript) resultRows(c *call) (rows []string) {
	p, env := t.formatter(), c.result
	if !env.Success && !t.o.CallTyped {
		rows = append(rows, t.failed(c)...)
	}
	hint, _ := HintAndExitCode(env.Result)
	if env.Success && !t.o.CallTyped {
		rows = append(rows, t.images(env.Images)...)
		if _, to := c.fetchStatus(); to != "" {
			rows = append(rows, p.ownRows(terminal.Dim, "redirected to "+to)...)
		}
		text := OutputText(env.Result)
		if t.o.Verbose || c.exec || (!c.readsFile && c.task == "" && c.changes == nil && !(c.staged && !c.exec)) {
			rows = append(rows, t.folded(linesOf(text), c, c.exec)...)
		}
		if text := StderrText(env.Result); c.exec && text != "" {
			rows = append(rows, p.ownRows(terminal.Dim, "on standard error:")...)
			rows = append(rows, t.folded(linesOf(text), nil, true)...)
		}
		if hint != "" {
			rows = append(rows, p.prose(terminal.Dim, hint)...)
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

// images are the rows about the images of a result, which no terminal shows.
func (t *Transcript) images(images []tool.ImageInfo) (rows []string) {
	most := len(images)
	if !t.o.Verbose {
		most = min(most, maxImages)
	}
	for _, i := range images[:most] {
		rows = append(rows, t.formatter().ownRows(terminal.Dim, ImageText(i))...)
	}
	if more := len(images) - most; more > 0 {
		rows = append(rows, t.formatter().ownRows(terminal.Dim, "… "+humanize.Plural(more, "more image"))...)
	}
	return rows
}

// ImageText say what an image is: image/png 640x480, 31.2 KiB.
func ImageText(i tool.ImageInfo) string {
	return fmt.Sprintf("%s %dx%d, %s", terminal.Line(humanize.Clip(i.Mime, 40)), i.Width, i.Height, humanize.Bytes(int64(i.Bytes)))
}

// failed are the rows about why a call has failed.
func (t *Transcript) failed(c *call) (rows []string) {
	p, env := t.formatter(), c.result
	switch {
	case env.Code == tool.CodeDenied && c.wasAsked() && !*c.decision.Answer:
		return nil // that is said in a word
	case env.Code == tool.CodeUnknownTool && env.Hint != "" && !t.o.Verbose: // the row says so already
		rows = p.ownRows("", humanize.Clip(env.Hint, maxLine))
	case c.stoppedByPerson() && !t.o.Verbose: // so does it of this
	case env.Code == tool.CodeCancelled && c.exec && !c.wasAsked() && env.Metadata.MS > 0 && !t.o.Verbose: // so is that
	case !env.Code.FromHost() && (env.Code != tool.CodeInvalidArgs || env.Metadata.Fuel > 0) || env.Code == tool.CodeTrap: // in words of the tool
		rows = p.prose(terminal.Red, clipped(strings.Split(env.Error, "\n")))
	default:
		rows = p.ownRows("", humanize.Clip(env.Error, 1000))
	}
	wrote := env.Stdout
	if wrote == "" && env.Stderr == "" { // it was stopped: what was seen of it does not vanish
		wrote = visible.RenderTerminal(c.output.text)
	}
	rows = append(rows, t.folded(linesOf(wrote), c, true)...)
	rows = append(rows, t.folded(linesOf(env.Stderr), nil, true)...)
	if env.Hint != "" && t.o.Verbose {
		rows = append(rows, p.ownRows(terminal.Dim, "hint: "+env.Hint)...)
	}
	return rows
}

// stoppedByPerson reports whether a person has ended a call while it ran.
func (c *call) stoppedByPerson() bool {
	return c.result.Code == tool.CodeCancelled && stoppedAfter().MatchString(c.result.Error)
}

var stoppedAfter = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(` was cancelled( after \d+ units of fuel)?$`) })

// wasAsked reports whether a person has been asked.
func (c *call) wasAsked() bool { return c.decision != nil && c.decision.Answer != nil }

// verdict is what a person has said.
func (t *Transcript) verdict(c *call) string {
	if !c.wasAsked() || !c.done || c.deleted || !*c.decision.Answer && (t.o.CallTyped || c.result.Code == tool.CodeCancelled) {
		return ""
	}
	d, said := c.decision, ""
	if t.o.QuestionsShown && !t.o.Replay && d.AnsweredBy == "terminal" {
		return "" // that was said below the question
	}
	switch yes := *d.Answer; {
	case yes && c.afterRun && c.result.Success:
		said = "kept" + scopeText(d.Scope)
	case yes && (scopeText(d.Scope) != "" || !c.afterRun && t.o.Replay):
		said = "allowed" + scopeText(d.Scope)
	case !yes && c.afterRun:
		said = "dropped"
	case !yes:
		said = "not run"
	default:
		return ""
	}
	if t.o.Replay || !*d.Answer && d.AnsweredBy != "terminal" {
		who := ", by "
		if strings.HasPrefix(d.AnsweredBy, "no") { // body, or terminal to ask on
			who = ": "
		}
		said += who + terminal.Line(d.AnsweredBy)
	}
	if t.o.Replay {
		said += " (asked because " + terminal.Line(d.Reason) + ")"
	}
	return said
}

// scopeText say for how long an answer holds, if it is for more than the call.
func scopeText(s policy.Scope) string {
	switch s {
	case "", policy.ScopeOnce:
		return ""
	case policy.ScopeTurn:
		return ", for the rest of this turn"
	case policy.ScopeSession:
		return ", for this session"
	case policy.ScopeProject:
		return ", in this project"
	case policy.ScopeBelow:
		return ", in this directory, for this session"
	case policy.ScopeKeepBelow:
		return ", in this directory, always"
	}
	return ", " + terminal.Line(string(s))
}

func decisionText(d *session.Decision) string {
	return fmt.Sprintf("%s: %s (risk %s, rule %s of %s)", d.Tool, d.Effect, d.Risk, d.Rule, d.Source)
}

// outcomes are what a failure is in a word or two.
var outcomes = map[tool.Code]string{
	tool.CodeUnknownTool:  "no such tool",
	tool.CodeInvalidArgs:  "wrong arguments",
	tool.CodeUnseen:       "not read yet",
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

// outcome is what stands at the right of a call.
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
		return []span{{style, what}} // it has not run
	}
	return []span{{style, what}, {terminal.Dim, fmt.Sprintf("  %7s", humanize.Duration(time.Duration(env.Metadata.MS)*time.Millisecond))}}
}

// success is what has come of a call that has done what it was to do.
func (c *call) success() (what, style string) {
	lines := len(linesOf(OutputText(c.result.Result)))
	if c.exec {
		_, code := HintAndExitCode(c.result.Result)
		if what = fmt.Sprintf("exit %d", code); lines == 0 && StderrText(c.result.Result) == "" {
			what = "no output, " + what
		}
		if code != 0 {
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
	if status, _ := c.fetchStatus(); status != 0 && status != 200 {
		if status >= 400 {
			style = terminal.Red
		}
		return strconv.Itoa(status), style
	}
	if lines == 0 {
		return "empty", ""
	}
	if c.name == "file_read" && c.readsFile {
		return c.readRange(), ""
	}
	return humanize.Plural(lines, "line"), ""
}

// fetchStatus is the status of a request, and where it was redirected to; of other calls
// neither.
func (c *call) fetchStatus() (status int, to string) {
	var fields struct {
		Status    int
		URL, Note string
	}
	if c.name != "http_fetch" || json.Unmarshal(c.result.Result, &fields) != nil {
		return 0, ""
	}
	if fields.URL != "" && strings.Contains(fields.Note, "redirected to "+fields.URL) {
		to = humanize.Clip(terminal.Line(fields.URL), maxLine)
	}
	return fields.Status, to
}

var leadingNumber = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(\d{1,9}): `) })

// readRange says which lines of a file were read, and how many it has. The note that may
// follow them is none.
func (c *call) readRange() string {
	var fields struct {
		Output string
		Lines  int
		Next   int `json:"next_offset"`
	}
	_ = json.Unmarshal(c.result.Result, &fields) // of another form, it says nothing
	read := strings.Count(fields.Output, "\n")
	if !strings.HasSuffix(fields.Output, "\n") {
		read++
	}
	last := fields.Lines
	if fields.Next > 0 {
		last = fields.Next - 1
	}
	if last <= 0 { // of a directory, too
		return humanize.Plural(read, "line")
	}
	if m := leadingNumber().FindStringSubmatch(fields.Output); m != nil {
		first, _ := strconv.Atoi(m[1])
		if n := last - first + 1; n == read || n == read-1 {
			read = n
		}
	}
	exact := func(n int) string { return humanize.Exact(int64(n)) }
	of := ""
	if fields.Lines > 0 {
		of = " of " + exact(fields.Lines)
	}
	switch {
	case read == fields.Lines:
		return humanize.Plural(read, "line")
	case read == 1:
		return "line " + exact(last) + of
	}
	return "lines " + exact(last-read+1) + " to " + exact(last) + of
}

// cost is what a call has taken.
func (c *call) cost() string {
	m := c.result.Metadata
	said := []string{fmt.Sprintf("%d ms", m.MS)}
	if m.Fuel > 0 {
		said = append(said, humanize.Count(m.Fuel)+" fuel")
	}
	if m.Memory > 0 {
		said = append(said, humanize.Bytes(int64(m.Memory))+" memory")
	}
	said = append(said, humanize.Bytes(m.Bytes)+" result")
	if d := c.decision; d != nil {
		if d.Risk != "" {
			said = append(said, "risk "+terminal.Line(d.Risk))
		}
		if d.Tier != nil {
			said = append(said, "jail "+d.Tier.String())
		}
	}
	return strings.Join(said, ", ")
}

// folded is a result behind bars, without what of it is shown: its beginning, or its end
// if that matters more. The call may be nil.
func (t *Transcript) folded(lines []string, c *call, end bool) (rows []string) {
	p := t.formatter()
	most, more := len(lines), ""
	if !t.o.Verbose {
		most = min(most, maxResultLines)
	}
	if left := len(lines) - most; left > 0 {
		more = humanize.Plural(left, "more line") + t.showHint(c)
	}
	from := 0
	if c != nil && c.rowShown && c.output.shown > 0 && strings.HasPrefix(strings.Join(lines, "\n"), strings.TrimRight(visible.RenderTerminal(c.output.text), "\n")) {
		from, end = c.output.shown, false
	}
	if end && more != "" {
		rows = append(rows, p.ownRows(terminal.Dim, "… "+more)...)
		return append(rows, p.quote("", clipped(lines[len(lines)-most:]))...)
	}
	if from < most {
		rows = append(rows, p.quote("", clipped(lines[from:most]))...)
	}
	if more != "" {
		rows = append(rows, p.ownRows(terminal.Dim, "… "+more)...)
	}
	return rows
}

// showHint is how to see all of a call.
func (t *Transcript) showHint(c *call) string {
	if t.o.ShowCommand == "" || c == nil || c.number == 0 {
		return ""
	}
	return fmt.Sprintf(", %s %d", t.o.ShowCommand, c.number)
}
