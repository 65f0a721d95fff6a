package prompt

import (
	"fmt"

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
	at   int        // of qs
	next []int      // changes of that which were not shown yet; nil: it has not begun
	text *diff.Text // that is being shown
	seen int        // lines of it that were
}

// page is the next page. Behind the last one comes the first.
func (w *whole) page(v View) []string {
	p := page{v: v, all: true}
	for !w.ended() && len(p.out) < pageRows {
		switch q := w.qs[w.at]; {
		case w.next == nil:
			w.begin(&p, q)
		case w.text != nil:
			w.lines(&p)
		default:
			w.title(&p, q)
		}
	}
	p.findings()
	if w.ended() {
		w.at = 0
		return p.out
	}
	for _, r := range notes(v.width(), "[d] goes on, %d changes come after this one", len(w.next)) {
		p.out = append(p.out, r.before+v.style(r.style, r.text))
	}
	return p.out
}

// ended goes on to the next question behind the end of one, and reports whether there is
// none.
func (w *whole) ended() bool {
	if w.next != nil && w.text == nil && len(w.next) == 0 {
		w.at, w.next = w.at+1, nil
	}
	return w.at == len(w.qs)
}

// begin shows what is not about one change alone.
func (w *whole) begin(p *page, q Question) {
	if len(w.qs) > 1 {
		p.ours(terminal.Bold, "  ", fmt.Sprintf("%d. %s", w.at+1, headline(q)))
	}
	p.texts(q, 0)
	w.next = []int{}
	if q.Changes == nil {
		return
	}
	for _, t := range q.Changes.All() {
		if !t.Alone() {
			p.look(t.Words)
			p.barred(p.title(item{Told: t}), 0)
		}
	}
	w.next = append(w.next, q.Changes.Order()...)
}

// title begins the next change.
func (w *whole) title(p *page, q Question) {
	i := w.next[0]
	w.next, w.text, w.seen = w.next[1:], q.Changes.Text(i), 0
	words := q.Changes.Headline(i)
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
	lines, more := []line(nil), false
	at := 0
	for l := range allLines(w.text) {
		if at++; at <= w.seen {
			continue
		}
		if more = len(lines) == linesAtOnce; more {
			break
		}
		lines = append(lines, l)
		p.look(l.Text)
	}
	p.barred(rowsOfLines(lines, digits(w.text), p.v.width(), everything), 0)
	if w.seen += len(lines); !more {
		w.text = nil
	}
}
