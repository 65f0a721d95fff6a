package prompt

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/policy"
)

// Asker puts prompts to a person, on whatever the person has before them.
type Asker interface {
	// Ask shows a prompt until something is chosen that answers it. What was typed
	// before the person could see it, or what was shown last, answers nothing. The end
	// of input is [Prompt.No]. If ctx ends, the prompt ends with it, and the error is
	// the cause. It is called by one goroutine at a time.
	Ask(ctx context.Context, p *Prompt) (Choice, error)
}

// View is where a prompt is shown. The zero value is 80 columns, 24 rows and no colours.
type View struct {
	Width, Height int
	Color         bool
}

func (v View) width() int {
	if v.Width <= 0 {
		return 80
	}
	return v.Width
}

func (v View) height() int {
	if v.Height <= 0 {
		return 24
	}
	return v.Height
}

func (v View) style(style, text string) string { return terminal.Style(v.Color, style, text) }

// ownRows is a text of ours, in as many rows as it needs.
func (v View) ownRows(style, indent, text string) (rows []string) {
	for _, row := range terminal.Wrap(text, max(v.width()-len(indent)-1, 2)) {
		rows = append(rows, v.style(style, indent+row))
	}
	return rows
}

// Choice is what a key stands for. Its words are ours.
type Choice struct {
	Letter rune
	Label  string // what it does

	scope policy.Scope
	rule  string // what it allows beyond this call, in our words
	shows bool   // it answers nothing, and shows something
}

// Prompt is a question with its keys. Its rows are printable ASCII, bars and whatever of
// others' text shows as what it is, and the colours of this program; none is wider than
// the view, and none begins with others' text. It is used by one goroutine at a time.
type Prompt struct {
	question    string   // is asked
	choices     []Choice // on the row of keys, numbered from 1; the last one does nothing
	moreChoices []Choice // that count when "?" was pressed, which shows what each allows

	rows      func(v View, room int) (rows []string, folded bool)
	details   func(View) []string
	fullText  func(View) []string // nil: there is no more than the rows show
	arguments func(View) []string // nil: there are none

	last struct { // what was shown last
		View
		rows   []string
		folded bool
	}

	recap       string // says once more what it is about
	yesNeedsAll bool   // the first choice counts only where nothing is folded
	opened      bool   // "?" was pressed
	yesReply    string // what is said after a yes, and a no
	noReply     string
}

// New is a question of another kind than about calls: what is asked, the choices of
// which the last one does nothing, and the text before and after "?", in rows.
func New(what string, choices []Choice, short, long func() string) *Prompt {
	rows := func(text string) []string { return strings.Split(strings.TrimSuffix(text, "\n"), "\n") }
	return &Prompt{
		question: what, choices: choices, details: func(View) []string { return rows(long()) },
		rows: func(View, int) ([]string, bool) { return rows(short()), false },
	}
}

// Rows are the question, without the keys. With them it is no higher than the view, if
// that has at least 12 rows.
func (p *Prompt) Rows(v View) []string {
	rows, _ := p.cachedRows(v)
	return rows
}

func (p *Prompt) cachedRows(v View) (rows []string, folded bool) {
	if p.last.rows == nil || p.last.View != v { // whoever draws a screen asks often
		p.last.View = v
		p.last.rows, p.last.folded = p.rows(v, v.height()-len(p.keys(v, p.choices, true))-1) // one for what is typed meanwhile
	}
	return p.last.rows, p.last.folded
}

// offered are the choices on the row of keys, and whether something is folded.
func (p *Prompt) offered(v View) (choices []Choice, folded bool) {
	_, folded = p.cachedRows(v)
	if p.yesNeedsAll && folded {
		return p.choices[1:], folded
	}
	return p.choices, folded
}

// Keys are the row with what is asked and the keys that answer it; more than one where
// they do not fit.
func (p *Prompt) Keys(v View) []string {
	choices, folded := p.offered(v)
	return p.keys(v, choices, folded)
}

// The keys that answer nothing, and show something.
const (
	keyDetails   = '?'
	keyFullText  = 'd'
	keyArguments = 'j'
)

func (p *Prompt) keys(v View, choices []Choice, folded bool) []string {
	words := make([]string, 0, len(choices)+2)
	for i, c := range choices {
		words = append(words, strings.TrimRight("["+string(c.Letter)+"]"+strconv.Itoa(i+1)+" "+c.Label, " "))
	}
	if folded && p.fullText != nil {
		words = append(words, "["+string(keyFullText)+"] all of it")
	}
	words = append(words, "["+string(keyDetails)+"]")
	const typed = " x" // is room for the answer
	if len("  "+p.question+"  "+strings.Join(words, "  ")+typed) >= v.width() {
		for i, word := range words { // a letter is enough for what everybody knows
			if rest, short := strings.CutSuffix(word, " yes"); short {
				words[i] = rest
			} else if rest, short := strings.CutSuffix(word, " no"); short {
				words[i] = rest
			}
		}
	}
	rows := View{Width: v.Width}.ownRows("", "  ", p.question)
	row := rows[len(rows)-1]
	rows = rows[:len(rows)-1]
	indent := strings.Repeat(" ", len(row))
	if len(row) > v.width()/4 {
		indent = "  "
	}
	for _, word := range words {
		parts := terminal.Wrap(word, max(v.width()-len(indent)-len("  "+typed)-1, 2))
		if len(row)+len("  "+parts[0]+typed) >= v.width() {
			rows, row = append(rows, row), indent
		}
		row += "  " + parts[0]
		for _, part := range parts[1:] {
			rows, row = append(rows, row), indent+"  "+part
		}
	}
	rows = append(rows, row)
	for i, row := range rows {
		rows[i] = v.style(terminal.Bold, row)
	}
	return rows
}

// Answer is what a key, or a line, stands for; false: for nothing. Enter alone stands
// for nothing, so that no key pressed by chance answers.
func (p *Prompt) Answer(v View, typed string) (Choice, bool) {
	typed = strings.ToLower(strings.TrimSpace(typed))
	choices, _ := p.offered(v)
	for i, c := range choices {
		if typed == string(c.Letter) || typed == strconv.Itoa(i+1) || typed == map[rune]string{'y': "yes", 'n': "no"}[c.Letter] && typed != "" {
			return c, true
		}
	}
	if i := slices.IndexFunc(p.moreChoices, func(c Choice) bool { return typed == string(c.Letter) }); p.opened && i >= 0 {
		return p.moreChoices[i], true
	}
	switch {
	case typed == string(keyDetails),
		typed == string(keyFullText) && p.fullText != nil,
		typed == string(keyArguments) && p.arguments != nil:
		return Choice{Letter: rune(typed[0]), shows: true}, true
	}
	return Choice{}, false
}

// Expand are the rows that a choice shows; nil if the choice is an answer. Where the
// question then is no longer in sight, [Prompt.Recap] follows.
func (p *Prompt) Expand(v View, c Choice) []string {
	if !c.shows {
		return nil
	}
	switch c.Letter {
	case keyFullText:
		return p.fullText(v)
	case keyArguments:
		return p.arguments(v)
	}
	p.opened = true
	return p.details(v)
}

// Recap says in a row what the question is about.
func (p *Prompt) Recap(v View) []string {
	if p.recap == "" {
		return nil
	}
	return v.ownRows(terminal.Bold, "  ", p.recap)
}

// InvalidAnswer is what is said to who has typed something else.
func (p *Prompt) InvalidAnswer(v View) string {
	choices, _ := p.offered(v)
	var letters []string
	for _, c := range choices {
		letters = append(letters, string(c.Letter))
	}
	last := len(letters) - 1
	return "  That is no answer: type " + strings.Join(letters[:last], ", ") + " or " + letters[last] + "; ? shows more."
}

// No is the choice that does nothing.
func (p *Prompt) No() Choice { return p.choices[len(p.choices)-1] }

// Reply is what is said after an answer, in a row of ours; empty: nothing.
func (p *Prompt) Reply(c Choice) string {
	switch {
	case c.rule != "":
		return "  " + p.yesReply + "; allowed " + c.rule
	case c.Letter == 'y':
		return indented(p.yesReply)
	case c.Letter == p.No().Letter:
		return indented(p.noReply)
	}
	return ""
}

func indented(text string) string {
	if text == "" {
		return ""
	}
	return "  " + text
}
