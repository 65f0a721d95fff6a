package prompt

import (
	"fmt"
	"slices"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/diff"
)

// pageRows is the length of a page behind [d], in rows: a terminal forgets older rows.
const pageRows = 1000

// linesAtOnce is the number of lines of a difference that become rows in one go.
const linesAtOnce = 200

// whole shows all that there is to some questions, page by page. Each difference is made
// when its page comes.
type whole struct {
	qs   []Question
	left []part     // what was not shown yet
	text *diff.Text // that is being shown
	seen int        // lines of it that were
}

// part is a change of a question; below 0: what is not about one change alone.
type part struct{ question, change int }

func (w *whole) ended() bool { return w.text == nil && len(w.left) == 0 }

// page is the next page. Behind the last one comes the first.
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

// begin shows what is not about one change alone.
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

// title begins a change.
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

// lines shows some more lines.
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
