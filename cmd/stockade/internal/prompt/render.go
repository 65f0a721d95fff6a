package prompt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/secret"
	"github.com/stockade-dev/stockade/host/tool"
)

// Question is what a person is asked, and what the host has looked up for it.
type Question struct {
	policy.Question
	// LeadsTo is where a path leads, by the path, if that is elsewhere: through
	// symbolic links.
	LeadsTo map[string]string
}

// Renderer turns questions into text. Its output is printable ASCII and whatever
// of others' text shows as what it is, line ends, and the colours of this
// program; no row of it is wider than the terminal. The zero value is for a
// terminal of 80 columns without colours.
type Renderer struct {
	Width int // columns; 0 is 80
	Color bool
}

func (r Renderer) width() int {
	if r.Width <= 0 {
		return 80
	}
	return r.Width
}

// Question is the text of a question, all of it or with long text folded, and
// whether something was folded.
func (r Renderer) Question(q Question, all bool) (text string, folded bool) {
	p := page{r: r, all: all}
	p.line("", "", "")
	p.question(q, "")
	return p.String(), p.folded
}

// Batch is the text of several questions, and whether something was folded.
func (r Renderer) Batch(qs []Question) (text string, folded bool) {
	p := page{r: r}
	p.line("", "", "")
	p.line(terminal.Bold, "", fmt.Sprintf("%d calls wait for an answer:", len(qs)))
	for i, q := range qs {
		p.question(q, fmt.Sprintf("%d. ", i+1))
	}
	return p.String(), p.folded
}

// Text is a text of others behind bars, for questions of another kind, all of it
// or folded, and whether something was.
func (r Renderer) Text(text string, all bool) (shown string, cut bool) {
	p := page{r: r, all: all}
	p.rows(field{lines: lines(text), fold: foldRows})
	return p.String(), p.folded
}

// Choices is what can be answered to a question. It says once more what that is
// about: the lines above may have scrolled away.
func (r Renderer) Choices(q Question, folded bool) string {
	return r.ask(fmt.Sprintf("%s (risk %s): Allow?", name(q.Tool), q.Risk), choices(q, folded))
}

// choices are the answers to a question, each with its letter in brackets.
func choices(q Question, folded bool) []string {
	choices := []string{"[y]es once"}
	for _, scope := range q.Scopes {
		if scope := string(scope); scope != string(policy.ScopeOnce) && scope != "" {
			choices = append(choices, fmt.Sprintf("[%s]%s", scope[:1], scope[1:]))
		}
	}
	if folded {
		choices = append(choices, "[v]iew all")
	}
	return append(choices, "[n]o")
}

// BatchChoices is what can be answered to a batch. together says whether one yes
// can be for all of them.
func (r Renderer) BatchChoices(qs []Question, together bool) string {
	worst := slices.MaxFunc(qs, func(a, b Question) int { return int(a.Risk) - int(b.Risk) }).Risk
	return r.ask(fmt.Sprintf("%d calls (the highest risk is %s): Allow?", len(qs), worst), batchChoices(together))
}

func batchChoices(together bool) []string {
	choices := []string{"[o]ne by one", "[n]o to all"}
	if together {
		return append([]string{"[y]es to all once"}, choices...)
	}
	return choices
}

// noAnswer says what could be answered to who has typed something else.
func (r Renderer) noAnswer(choices []string) string {
	letters := make([]string, len(choices))
	for i, c := range choices {
		letters[i] = c[1:2]
	}
	last := len(letters) - 1
	p := page{r: r}
	p.line("", "", fmt.Sprintf("that is no answer: type %s or %s, and Enter", strings.Join(letters[:last], ", "), letters[last]))
	return p.String()
}

// ask is the line at the end of which the answer is typed. It is broken between
// choices only.
func (r Renderer) ask(what string, choices []string) string {
	var rows []string
	row := what
	for i, c := range choices {
		if i < len(choices)-1 {
			c += ","
		} else {
			c += ":"
		}
		if len(row)+1+len(c)+2 > r.width() { // with the blank before the answer
			rows, row = append(rows, row), "  "+c
			continue
		}
		row += " " + c
	}
	p := page{r: r}
	for _, row := range append(rows, row) {
		p.line(terminal.Bold, "", row)
	}
	return strings.TrimSuffix(p.String(), "\n") + " "
}

// page is a text on its way.
type page struct {
	r      Renderer
	all    bool
	folded bool
	suspect
	b strings.Builder
}

func (p *page) String() string { return p.b.String() }

// line writes a line of ours, in as many rows as it needs.
func (p *page) line(style, indent, text string) {
	columns := max(p.r.width()-len(indent)-1, 2)
	row := ""
	end := func() {
		p.b.WriteString(terminal.Style(p.r.Color, style, indent+row) + "\n")
		row = ""
	}
	for i, word := range strings.Split(text, " ") {
		if i > 0 && len(row)+1+len(word) > columns {
			end()
		} else if i > 0 {
			row += " "
		}
		parts := terminal.Rows(word, columns)
		for _, part := range parts[:len(parts)-1] {
			row += part
			end()
		}
		row += parts[len(parts)-1]
	}
	end()
}

// field is what others have written, and the title of ours under which it stands.
type field struct {
	title string
	style string // of the title
	lines []string
	fold  fold
	paint bool // as a diff
}

func lines(text string) []string { return strings.Split(text, "\n") }

func (p *page) field(f field) {
	p.line(f.style, "  ", f.title)
	p.rows(f)
}

// rows writes a field without its title.
func (p *page) rows(f field) {
	text := strings.Join(f.lines, "\n")
	p.look(text)
	rows, cut := gutter(f.lines, p.r.width()), false
	if !p.all {
		rows, cut = folded(rows, text, f.fold, p.r.width())
	}
	p.folded = p.folded || cut
	style := ""
	for _, r := range rows {
		if f.paint && r.before == bar {
			style = diffStyle(r.text)
		}
		s := style
		if r.before == note {
			s = terminal.Dim
		}
		p.b.WriteString(r.before + terminal.Style(p.r.Color && r.text != "", s, r.text) + "\n")
	}
}

// diffStyle is the colour of a line of a diff.
func diffStyle(line string) string {
	switch {
	case strings.HasPrefix(line, "+"):
		return terminal.Green
	case strings.HasPrefix(line, "-"):
		return terminal.Red
	case strings.HasPrefix(line, "@"):
		return terminal.Dim
	}
	return ""
}

// question writes all that there is to one question.
func (p *page) question(q Question, number string) {
	p.suspect = suspect{}
	wants := "wants to run"
	if q.Changes != "" {
		wants = "wants to keep what it did"
	}
	p.line(terminal.Yellow, "", fmt.Sprintf("%s[risk %s] %s %s", number, q.Risk, name(q.Tool), wants))
	p.field(field{title: "because:", lines: lines(q.Reason), fold: sideRows})
	switch {
	case q.Command != "":
		p.field(field{title: "command:", lines: lines(q.Command), fold: foldRows})
		if q.Says != "" {
			p.field(field{title: "what it says that this does:", lines: lines(q.Says), fold: sideRows})
		}
		p.field(field{title: fmt.Sprintf("in the directory (jail %s):", q.Tier), lines: []string{q.Dir}, fold: sideRows})
		if q.Output != "" {
			p.field(field{title: "what it has written:", lines: lines(q.Output), fold: foldRows})
		}
		if q.Changes != "" {
			p.field(field{title: "what it would change:", lines: lines(strings.TrimSuffix(q.Changes, "\n")), fold: foldRows, paint: true})
		} else if q.First != "" {
			p.field(field{title: "it has not run yet, because:", lines: lines(q.First), fold: sideRows})
		}
	case q.Changes != "":
		p.field(field{title: "changes:", lines: lines(strings.TrimSuffix(q.Changes, "\n")), fold: foldRows, paint: true})
		p.field(field{title: "arguments:", lines: []string{readable(q.Call.Args)}, fold: sideRows}) // what they have led to is above
	default:
		p.field(field{title: "arguments:", lines: []string{readable(q.Call.Args)}, fold: foldRows})
	}
	p.where(q)
	if q.Warning != "" {
		p.field(field{title: "warning:", style: terminal.Red, lines: []string{q.Warning}, fold: sideRows})
	}
	for _, scope := range q.Scopes {
		if words := q.Rules[scope]; words != "" {
			title := string(scope) + ":"
			if slices.Contains([]policy.Scope{policy.ScopeAlways, policy.ScopeProject, policy.ScopeKeepBelow}, scope) {
				title = string(scope) + ", kept until `stockade policy revoke`:"
			}
			p.field(field{title: title, lines: []string{words}, fold: foldRows})
		}
	}
	var changed []string
	for _, c := range q.Changed {
		changed = append(changed, c.InWords()...)
	}
	if changed != nil {
		p.field(field{title: "changed:", lines: changed, fold: foldRows})
	}
	if !tool.ValidName(q.Tool) {
		p.say("name", "the name of the tool is none that a tool can have")
	}
	for _, found := range p.found {
		p.line(terminal.Red, "  ", "warning: "+found)
	}
}

// where writes which files and hosts it is about, and which secrets go there.
func (p *page) where(q Question) {
	title := "file:"
	if q.Command != "" {
		title = "file that a yes lets it read:"
	}
	for _, path := range q.Paths {
		p.field(field{title: title, lines: []string{path}, fold: foldRows})
		if to := q.LeadsTo[path]; to != "" {
			p.field(field{title: "which leads, through a symbolic link, to:", style: terminal.Red, lines: []string{to}, fold: foldRows})
		}
	}
	if q.Network != nil {
		p.field(field{title: "hosts that it may reach:", lines: q.Network, fold: foldRows})
	}
	var secrets []string
	for _, s := range q.Secrets {
		secrets = append(secrets, secretWords(s))
	}
	if secrets != nil {
		p.field(field{title: "secrets:", lines: secrets, fold: foldRows})
	}
}

// secretWords says what a tool gets of a secret.
func secretWords(s tool.Secret) string {
	header, hosts := s.Header, strings.Join(s.Hosts, ", ")
	if header == "" {
		header = "the header that it is bound to, or " + secret.DefaultHeader
	}
	if hosts == "" {
		hosts = "the hosts that it is bound to"
	}
	return fmt.Sprintf("%s, as a placeholder; the value goes to %s, in %s", s.Name, hosts, header)
}

// maxName is how much of a name that no tool can have is shown.
const maxName = 60

// name is the name of a tool as a part of a line of ours: whatever is no valid
// one is quoted, in ASCII.
func name(s string) string {
	if tool.ValidName(s) {
		return s
	}
	s = strconv.QuoteToASCII(s)
	if len(s) > maxName {
		s = s[:maxName] + `..."`
	}
	return s
}

// readable is JSON without escapes of what can be read without.
func readable(args json.RawMessage) string {
	var v any
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.UseNumber()
	if dec.Decode(&v) != nil || dec.More() {
		return string(args)
	}
	return string(tool.Marshal(v))
}
