package prompt

import (
	"fmt"
	"slices"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/diff"
)

// pageRows is the number of rows of a page of [d], since a terminal forgets older rows.
const pageRows = 1000

// linesAtOnce is the number of lines of a difference that become rows in one go.
const linesAtOnce = 200

// whole shows everything about some questions, page by page. A difference is computed when
// its page is shown.
type whole struct {
	qs   []Question
	left []part     // changes that were not shown yet
	text *diff.Text // the difference that is being shown
	seen int        // how many of its lines were shown
}

// part is a question, and the index of one of its changes; below 0: all that is not about
// one change alone.
type part struct{ question, change int }

func (w *whole) ended() bool { return w.text == nil && len(w.left) == 0 }

// page returns the next page. The first one follows the last.
func (w *whole) page(v View) []string {
	p := page{v: v, all: true}
	if w.ended() {
		for i, q := range w.qs {
			w.left = append(w.left, part{i, -1})
			if q.Changes != nil {
				for _, c := range q.Changes.Order() {
					w.left = append(w.left, part{i, c})
				}
			}
		}
	}
	for !w.ended() && len(p.out) < pageRows {
		if w.text != nil {
			w.lines(&p)
			continue
		}
		next := w.left[0]
		w.left = w.left[1:]
		if next.change < 0 {
			w.begin(&p, next.question)
		} else {
			w.title(&p, w.qs[next.question].Changes, next.change)
		}
	}
	p.findings()
	if !w.ended() {
		changes := slices.DeleteFunc(slices.Clone(w.left), func(p part) bool { return p.change < 0 })
		p.barred(notes(v.width(), "[d] goes on, %d changes come after this one", len(changes)), 0)
	}
	return p.out
}

// begin writes what is not about one change alone.
func (w *whole) begin(p *page, at int) {
	q := w.qs[at]
	if len(w.qs) > 1 {
		p.ours(terminal.Bold, "  ", fmt.Sprintf("%d. %s", at+1, headline(q)))
	}
	p.texts(q, 0)
	if q.Changes == nil {
		return
	}
	for _, t := range q.Changes.All() {
		if !t.Alone() {
			p.look(t.Words)
			p.barred(p.title(item{Told: t}), 0)
		}
	}
}

// title writes the title of a change, and begins with its difference.
func (w *whole) title(p *page, set *diff.Set, change int) {
	w.text, w.seen = set.Text(change), 0
	words := set.Headline(change)
	p.look(words)
	p.barred(p.title(item{Told: diff.Told{Words: words}, text: w.text}), 0)
	if w.text.Err != nil {
		p.warn(fmt.Sprintf("the content is not shown: %v", w.text.Err))
	}
	if w.text.Hidden > 0 {
		p.warn(hiddenWords(w.text.Hidden))
	}
}

// lines writes the next lines of the difference.
func (w *whole) lines(p *page) {
	var lines []line
	at := 0
	for l := range allLines(w.text) {
		if at++; at > w.seen+linesAtOnce {
			break
		}
		if at > w.seen {
			lines = append(lines, l)
			p.look(l.Text)
		}
	}
	p.barred(rowsOfLines(lines, digits(w.text), p.v.width(), true), 0)
	if w.seen += linesAtOnce; at <= w.seen {
		w.text = nil
	}
}
