package transcript

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/humanize"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/session"
)

// ErrNoCall is returned when the session has no call with the number.
var ErrNoCall = errors.New("no such call")

// record holds everything that a log has about one call.
type record struct {
	call
	proposed session.Event
	intent   *session.Intent
}

// Card returns the card of a call: rows with everything about it. number is the number of the
// call in the session, from 1; 0 means the last call. Without such a call, the error
// is [ErrNoCall]. Card reads the events in their order until the numbered call has its result;
// for 0, it reads all. It keeps only those of one call in memory.
func Card(events iter.Seq2[session.Event, error], number int, o Options) ([]string, error) {
	o.Replay, o.Verbose, o.ShowCommand = true, true, ""
	t := New(o)
	var r *record
	calls := 0
	for e, err := range events {
		if err != nil {
			return nil, err
		}
		if o.Redactor != nil {
			e.Body = o.Redactor.JSON(e.Body)
		}
		switch {
		case e.Type == session.TypeSessionStarted:
			if s, ok := body[session.Started](e); ok {
				t.work = s.Workspace
			}
		case e.Type == session.TypeToolCall:
			if calls++; number == 0 || calls == number {
				r = &record{call: *newCall(e, calls), proposed: e}
			}
		case r != nil && e.Call == r.id && !r.done:
			if i, ok := body[session.Intent](e); ok && e.Type == session.TypeCallIntended {
				r.intent = &i
			}
			if t.update(&r.call, e); r.done && number != 0 {
				return t.card(r), nil
			}
		}
	}
	switch {
	case r != nil:
		return t.card(r), nil
	case calls == 0:
		return nil, fmt.Errorf("%w: the session has none", ErrNoCall)
	}
	return nil, fmt.Errorf("%w: the session has calls 1 to %d", ErrNoCall, calls)
}

// card returns the rows of a card. The titles are ours; texts of others stand behind bars.
func (t *Transcript) card(r *record) (out []string) {
	p, c := t.formatter(), &r.call
	out = append(out, p.head(t.title(c), c.args, t.outcome(c)...))
	add := func(title, text string) {
		if text != "" {
			out = append(out, p.ownRows("", fmt.Sprintf("%-10s %s", title, text))...)
		}
	}
	quoted := func(title, text string) {
		if lines := linesOf(text); lines != nil {
			out = append(out, p.style(terminal.Bold, ownIndent+title))
			out = append(out, p.quote("", strings.Join(lines, "\n"))...)
		}
	}
	when := r.proposed.Time.Local().Format(time.DateTime)
	if r.proposed.Turn > 0 {
		when = fmt.Sprintf("turn %d, step %d, %s", r.proposed.Turn, r.proposed.Step, when)
	}
	add("when", when)
	if i := r.intent; i != nil {
		if i.Digest != "" { // else the host answered the call without a module
			add("module", fmt.Sprintf("%s · sha256 %s", terminal.Line(i.Module), terminal.Line(i.Digest)))
		}
		add("in", terminal.Line(i.Cwd))
		add("sees", terminal.Line(strings.Join(i.Mounts, ", ")))
		add("network", terminal.Line(strings.Join(i.Network, ", ")))
		add("secrets", terminal.Line(strings.Join(i.Secrets, ", ")))
		add("limits", fmt.Sprintf("%s, %s memory, %s fuel", humanize.Duration(time.Duration(i.TimeoutMS)*time.Millisecond), humanize.Bytes(int64(i.MemoryBytes)), humanize.Count(i.Fuel)))
	}
	if d := c.decision; d != nil {
		add("policy", terminal.Line(fmt.Sprintf("%s, risk %s: %s", d.Effect, d.Risk, d.Reason)))
		origin := ""
		if d.Origin != "" {
			origin = " (" + d.Origin + ")"
		}
		add("rule", terminal.Line(fmt.Sprintf("%s of %s%s", d.Rule, d.Source, origin)))
	}
	add("answer", t.verdict(c))
	quoted("arguments", cmp.Or(fieldText(json.RawMessage(c.function.Arguments)), c.function.Arguments))
	if sent := c.function.Original; sent != nil {
		quoted("as the model sent it", sent.Name+" "+sent.Arguments)
	}
	if c.messageRows != nil {
		out = append(out, p.style(terminal.Bold, ownIndent+"said"))
		out = append(out, c.messageRows...)
	}
	if c.changes != nil {
		title := "changes"
		if !c.hasChanged() {
			title = "changes, which were not made"
		}
		out = append(out, p.style(terminal.Bold, ownIndent+title))
		out = append(out, t.changeRows(c, true, len(c.changes.Files), len(c.changes.Files)*(64<<10))...)
	}
	switch env := c.result; {
	case !c.done:
		add("result", "none")
	case c.deleted:
		add("result", "deleted")
	case !env.Success:
		quoted("failed: "+terminal.Line(string(env.Code)), env.Error)
		add("hint", env.Hint)
		quoted("stdout", env.Stdout)
		quoted("stderr", env.Stderr)
	case len(linesOf(c.fields.Text)) == 0:
		add("result", "empty")
	default:
		quoted("result", c.fields.Text)
	}
	if c.done && !c.deleted {
		but := []string{"output"}
		if c.hasChanged() {
			but = append(but, "diff") // the diff is above
		}
		if text := fieldText(c.result.Result, but...); c.fields.Text != string(c.result.Result) { // then the output was all of it
			quoted("beside it", text)
		}
		quoted("as it was written", c.wrote)
		quoted("note", c.result.Note)
		add("took", c.cost())
		for _, n := range c.result.Metadata.Network {
			add("network", fmt.Sprintf("%s: %s, %s sent, %s received", terminal.Line(n.Host), humanize.Plural(n.Requests, "request"), humanize.Bytes(n.SentBytes), humanize.Bytes(n.ReceivedBytes)))
		}
	}
	return out
}

// fieldText returns the fields of an object, except those named in but: one line for each, or
// for a text of several lines a block below the name. It is empty for other JSON values.
func fieldText(object json.RawMessage, but ...string) string {
	var b strings.Builder
	for name, value := range fieldsOf(object) {
		var s string
		switch {
		case slices.Contains(but, name):
		case json.Unmarshal(value, &s) != nil:
			fmt.Fprintf(&b, "%s: %s\n", terminal.Line(name), humanize.JSON(value))
		case !strings.Contains(s, "\n"):
			fmt.Fprintf(&b, "%s: %s\n", terminal.Line(name), s)
		default:
			fmt.Fprintf(&b, "%s: (%s)\n", terminal.Line(name), humanize.Plural(strings.Count(strings.TrimSuffix(s, "\n"), "\n")+1, "line"))
			for line := range strings.Lines(s) {
				b.WriteString("    " + strings.TrimSuffix(line, "\n") + "\n")
			}
		}
	}
	return b.String()
}
