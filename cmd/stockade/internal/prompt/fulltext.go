package prompt

import (
	"fmt"
	"slices"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/diff"
)

// pageRows is the number of rows of each page that the key d shows. More would not help: a
// terminal forgets older rows.
const pageRows = 1000

// linesAtOnce is the number of lines of a difference that become rows in one step.
const linesAtOnce = 200

// fullText shows everything about some questions, page by page. It computes each difference
// only for its page.
type fullText struct {
	qs         []Question
	pending    []part     // parts that were not shown yet
	textDiff   *diff.Text // difference that is being shown; nil: none
	linesShown int        // number of lines of textDiff that were shown
}

// part names a change by the indexes of its question and of the change. A negative change
// stands for everything in the question that is not about a single change.
type part struct{ question, change int }

func (w *fullText) ended() bool { return w.textDiff == nil && len(w.pending) == 0 }

// page returns the rows of the next page. After the last page, the first comes again.
func (w *fullText) page(v View) []string {
	p := rowBuilder{v: v, all: true}
	if w.ended() {
		for i, q := range w.qs {
			w.pending = append(w.pending, part{i, -1})
			if q.Changes != nil {
				for _, c := range q.Changes.Order() {
					w.pending = append(w.pending, part{i, c})
				}
			}
		}
	}
	for !w.ended() && len(p.out) < pageRows {
		if w.textDiff != nil {
			w.lines(&p)
			continue
		}
		next := w.pending[0]
		w.pending = w.pending[1:]
		if next.change < 0 {
			w.begin(&p, next.question)
		} else {
			w.title(&p, w.qs[next.question].Changes, next.change)
		}
	}
	p.findings()
	if !w.ended() {
		changes := slices.DeleteFunc(slices.Clone(w.pending), func(p part) bool { return p.change < 0 })
		p.quoted(notes(v.width(), "[d] goes on, %d changes come after this one", len(changes)), 0)
	}
	return p.out
}

// begin adds everything in a question that is not about a single change.
func (w *fullText) begin(p *rowBuilder, at int) {
	q := w.qs[at]
	if len(w.qs) > 1 {
		p.own(terminal.Bold, "  ", fmt.Sprintf("%d. %s", at+1, headline(q)))
	}
	p.body(q, 0)
	if q.Changes == nil {
		return
	}
	for _, t := range q.Changes.AllLines() {
		if !t.IsSingle() {
			p.check(t.Words)
			p.quoted(p.title(changeItem{SummaryLine: t}), 0)
		}
	}
}

// title adds the title of a change, and prepares its difference for lines.
func (w *fullText) title(p *rowBuilder, set *diff.Set, change int) {
	w.textDiff, w.linesShown = set.Text(change), 0
	words := set.Headline(change)
	p.check(words)
	p.quoted(p.title(changeItem{SummaryLine: diff.SummaryLine{Words: words}, textDiff: w.textDiff}), 0)
	if w.textDiff.Err != nil {
		p.warn(fmt.Sprintf("the content is not shown: %v", w.textDiff.Err))
	}
	if w.textDiff.Hidden > 0 {
		p.warn(hiddenLinesText(w.textDiff.Hidden))
	}
}

// lines adds the next lines of textDiff, about one page.
func (w *fullText) lines(p *rowBuilder) {
	var lines []line
	at := 0
	for l := range allLines(w.textDiff) {
		if at++; at > w.linesShown+linesAtOnce {
			break
		}
		if at > w.linesShown {
			lines = append(lines, l)
			p.check(l.Text)
		}
	}
	p.quoted(rowsOfLines(lines, digits(w.textDiff), p.v.width(), true), 0)
	if w.linesShown += linesAtOnce; at <= w.linesShown {
		w.textDiff = nil
	}
}
