package prompt

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/policy"
)

// Asker shows prompts to a person, on any kind of terminal.
type Asker interface {
	// Ask shows a prompt until the person chooses an answer. Input that arrived before the
	// person could see the prompt, or its newest rows, is no answer. The end of input answers
	// with [Prompt.No]. If ctx ends, Ask removes the prompt and returns the cause of ctx. Ask
	// is called by one goroutine at a time.
	Ask(ctx context.Context, p *Prompt) (Choice, error)
}

// View is the room for a prompt on the screen. Width is in columns, Height in rows; 0 means 80
// columns and 24 rows. Color permits colours.
type View struct {
	Width, Height int
	Color         bool
}

func (v View) width() int  { return cmp.Or(v.Width, 80) }
func (v View) height() int { return cmp.Or(v.Height, 24) }

func (v View) style(style, text string) string { return terminal.Style(v.Color, style, text) }

// ownRows returns a text of ours in as many rows as it needs, each behind indent.
func (v View) ownRows(style, indent, text string) (rows []string) {
	for _, row := range terminal.Wrap(text, max(v.width()-len(indent)-1, 2)) {
		rows = append(rows, v.style(style, indent+row))
	}
	return rows
}

// Choice is an answer that a key stands for. Its texts are ours.
type Choice struct {
	Letter rune
	Label  string // effect of the key, in words

	scope   policy.Scope
	rule    string // effect of the choice beyond this call, in our words; empty: none
	shows   bool   // the key shows more of the question and does not answer it
	reply   string // text after this answer; empty: that of the question
	details string // explanation of a kind of no
	because string // reason of a person for a no; empty: none
}

// AsksWhy reports whether the person is to type a reason for the no before the choice counts.
func (c Choice) AsksWhy() bool { return c.Letter == keyWhy && c.because == "" }

// Because returns the choice with a reason; ok is false if the reason is empty or too long.
func (c Choice) Because(reason string) (_ Choice, ok bool) {
	c.because = strings.TrimSpace(strings.ToValidUTF8(reason, "�"))
	return c, c.because != "" && len(c.because) <= maxReasonBytes
}

// WhyLabel stands before the line in which a person types a reason, and WhyHint explains it.
const (
	WhyLabel = "no, because: "
	WhyHint  = "Enter sends it to the model, Esc goes back to the question"
)

// maxReasonBytes limits the reason for a no, in bytes.
const maxReasonBytes = 16 << 10

// numbersOf returns the number of each choice on the row of keys; empty: it has none, because it
// allows much.
func numbersOf(choices []Choice) []string {
	out, n := make([]string, len(choices)), 0
	for i, c := range choices {
		if c.scope != policy.ScopeFree {
			n++
			out[i] = strconv.Itoa(n)
		}
	}
	return out
}

// Prompt is a question with its keys. Its rows contain printable ASCII, bars, visible text of
// others, and colours of this program. No row is wider than the view, and none begins with
// text of others. Only one goroutine at a time may use a Prompt.
type Prompt struct {
	question    string   // the question itself, such as "Run it?"
	choices     []Choice // choices on the row of keys, numbered from 1; the last one does nothing
	sideChoices []Choice // kinds of no, on the row of keys, without numbers
	moreChoices []Choice // further choices after "?" was pressed, explained in the details

	rows      func(v View, room int) (rows []string, folded bool)
	details   func(View) []string
	fullText  func(View) []string // returns rows with everything; nil: the rows above show everything
	arguments func(View) []string // returns the rows about the arguments; nil: there are none

	last struct { // the rows that were shown last
		View
		rows   []string
		folded bool
	}

	subject     string // tool of the only call; empty: several calls, or no call
	warned      bool   // the rows that were shown last have a warning
	separable   bool   // the question may be answered with keyOneByOne without the person
	recap       string // subject of the question, repeated when the question is out of sight; may be empty
	yesNeedsAll bool   // a yes counts only if nothing is folded
	opened      bool   // "?" was pressed
	yesReply    string // text after a yes; noReply: text after a no
	noReply     string
}

// New returns a question that is not about calls, such as about a module. what is the
// question, and the last of choices does nothing. short returns the rows, as text, before "?"
// is pressed, and long those after it.
func New(what string, choices []Choice, short, long func() string) *Prompt {
	rows := func(text string) []string { return strings.Split(strings.TrimSuffix(text, "\n"), "\n") }
	return &Prompt{
		question: what, choices: choices, details: func(View) []string { return rows(long()) },
		rows: func(View, int) ([]string, bool) { return rows(short()), false },
	}
}

// Rows returns the rows of the question, without the row of keys. If the view has at least 12
// rows, question and keys fit into it together.
func (p *Prompt) Rows(v View) []string {
	rows, _ := p.cachedRows(v)
	return rows
}

func (p *Prompt) cachedRows(v View) (rows []string, folded bool) {
	if p.last.rows == nil || p.last.View != v { // a screen asks each time it is drawn
		p.last.View = v
		p.last.rows, p.last.folded = p.rows(v, v.height()-len(p.keys(v, p.choices, true))-1) // one row for the typed answer
	}
	return p.last.rows, p.last.folded
}

// Subject returns the tool that the question is about; empty if the question is about several
// calls, or has a warning.
func (p *Prompt) Subject(v View) string {
	if p.cachedRows(v); p.warned {
		return ""
	}
	return p.subject
}

// Unseen answers a question about several calls with "one by one" if not all of it fits into the
// view: nobody is to see such a question. It returns false if the question must be shown.
func (p *Prompt) Unseen(v View) (Choice, bool) {
	_, folded := p.cachedRows(v)
	return Choice{Letter: keyOneByOne}, p.separable && folded
}

// offered returns the choices on the row of keys; folded: some rows of the question are
// folded.
func (p *Prompt) offered(v View) (choices []Choice, folded bool) {
	_, folded = p.cachedRows(v)
	if p.yesNeedsAll && folded {
		return slices.DeleteFunc(slices.Clone(p.choices), func(c Choice) bool { return c.scope != "" }), folded
	}
	return p.choices, folded
}

// Keys returns the question itself and its keys, in one row, or in several if one is too
// narrow.
func (p *Prompt) Keys(v View) []string {
	choices, folded := p.offered(v)
	return p.keys(v, choices, folded)
}

// Keys that show more and do not answer.
const (
	keyDetails   = '?'
	keyFullText  = 'd'
	keyArguments = 'j'
)

// lowView is the number of rows of a view below which the keys take as few rows as possible.
const lowView = 20

// thisSession ends the label of a choice that holds for the session. Several such choices stand
// together.
const thisSession = ", this session"

func (p *Prompt) keys(v View, choices []Choice, folded bool) []string {
	var words, forSession []string
	for i, digit := range numbersOf(choices) {
		word := strings.TrimRight("["+string(choices[i].Letter)+"]"+digit+" "+choices[i].Label, " ")
		if strings.HasSuffix(word, thisSession) {
			forSession = append(forSession, strings.TrimSuffix(word, thisSession))
		}
		words = append(words, word)
	}
	known := []string{" yes", " no"} // one letter is enough for keys that everybody knows
	for _, c := range p.sideChoices {
		words = append(words, "["+string(c.Letter)+"] "+c.Label)
		if v.height() < lowView { // "?" explains them
			known = append(known, " "+c.Label)
		}
	}
	if len(forSession) > 1 {
		words = slices.DeleteFunc(words, func(word string) bool { return strings.HasSuffix(word, thisSession) })
		words = append(words, "this session: "+strings.Join(forSession, "  "))
	}
	if folded && p.fullText != nil {
		words = append(words, "["+string(keyFullText)+"] all of it")
	}
	words = append(words, "["+string(keyDetails)+"]")
	const typed = " x" // leaves room for the answer
	if len("  "+p.question+"  "+strings.Join(words, "  ")+typed) >= v.width() {
		for i := range words {
			for _, label := range known {
				words[i] = strings.TrimSuffix(words[i], label)
			}
		}
	}
	rows := View{Width: v.Width}.ownRows("", "  ", p.question)
	row := rows[len(rows)-1]
	rows = rows[:len(rows)-1]
	indent := strings.Repeat(" ", len(row))
	if len(row) > v.width()/5 {
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

// Answer returns the choice for a key or a typed line; false: no choice has it. An empty line
// is not a choice, because a key that is pressed by chance must not answer.
func (p *Prompt) Answer(v View, typed string) (Choice, bool) {
	typed = strings.ToLower(strings.TrimSpace(typed))
	if typed == "yes" || typed == "no" {
		typed = typed[:1]
	}
	choices, _ := p.offered(v)
	all := slices.Concat(choices, p.sideChoices)
	if p.opened {
		all = append(all, p.moreChoices...)
	}
	i := slices.IndexFunc(all, func(c Choice) bool { return typed == string(c.Letter) })
	if i < 0 && typed != "" {
		i = slices.Index(numbersOf(choices), typed)
	}
	switch {
	case i >= 0:
		return all[i], true
	case typed == string(keyDetails),
		typed == string(keyFullText) && p.fullText != nil,
		typed == string(keyArguments) && p.arguments != nil:
		return Choice{Letter: rune(typed[0]), shows: true}, true
	}
	return Choice{}, false
}

// Expand returns the rows that a choice shows; nil: the choice is an answer. If the question
// has moved out of sight by these rows, the caller shows [Prompt.Recap] next.
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

// Recap returns a row with the subject of the question; nil: the question has none.
func (p *Prompt) Recap(v View) []string {
	if p.recap == "" {
		return nil
	}
	return v.ownRows(terminal.Bold, "  ", p.recap)
}

// InvalidAnswer returns a text for a person whose input is no answer. It names the keys on the row
// of keys.
func (p *Prompt) InvalidAnswer(v View) string {
	choices, _ := p.offered(v)
	var letters []string
	for _, c := range slices.Concat(choices, p.sideChoices) {
		letters = append(letters, string(c.Letter))
	}
	last := len(letters) - 1
	return "  That is not an answer: type " + strings.Join(letters[:last], ", ") + " or " + letters[last] + "; ? shows more."
}

// No returns the choice that changes nothing.
func (p *Prompt) No() Choice { return p.choices[len(p.choices)-1] }

// Reply returns the text that is shown after an answer; empty: none.
func (p *Prompt) Reply(c Choice) string {
	reply := c.reply
	switch {
	case reply != "":
	case c.rule != "":
		reply = p.yesReply + "; allowed " + c.rule
	case c.Letter == 'y':
		reply = p.yesReply
	case c.Letter == p.No().Letter:
		reply = p.noReply
	}
	return strings.TrimRight("  "+reply, " ")
}
