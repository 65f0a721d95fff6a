package main

import (
	"container/heap"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/guests/git/repo"
	"github.com/stockade-dev/stockade/guests/git/textdiff"
	"github.com/stockade-dev/stockade/sdk/go/lines"
	"github.com/stockade-dev/stockade/sdk/go/tool"
)

const (
	maxBlameLines = 1000
	// maxBlamed is how many commits are looked at.
	maxBlamed = 50_000
)

// origin is a file in a commit, to which lines may go back.
type origin struct {
	commit *repo.Link // nil: what is not committed
	path   string
	blob   repo.ID
	text   *textdiff.Text // of what is not committed, or nil
	lines  []span
}

// span is lines of the file that is shown: so many from at on, which are in a file in
// history from from on.
type span struct{ at, from, n int }

// blamed is to what a line goes back.
type blamed struct {
	*origin
	from     int
	boundary bool
}

type blame struct {
	*call
	queue   byOriginDate
	origins map[originKey]*origin
	out     []blamed // of the lines that are shown
	first   int
	looked  int
	texts   []cachedText
}

type originKey struct {
	commit repo.ID
	path   string
}

type cachedText struct {
	id   repo.ID
	text *textdiff.Text
}

// byOriginDate is a heap of what is still to be looked at, the latest commit first.
type byOriginDate []*origin

func (h byOriginDate) Len() int { return len(h) }
func (h byOriginDate) Less(i, j int) bool {
	a, b := h[i].commit, h[j].commit
	if a == nil || b == nil {
		return a == nil && b != nil
	}
	return a.When > b.When
}
func (h byOriginDate) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *byOriginDate) Push(x any)   { *h = append(*h, x.(*origin)) }
func (h *byOriginDate) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// blame is the operation: git blame --date=short of a range of lines.
func (c *call) blame() error {
	if c.only == "" {
		return tool.InvalidInput("blame needs path, a file")
	}
	b := &blame{call: c, origins: map[originKey]*origin{}}
	start, err := b.start()
	if err != nil {
		return err
	}
	text, err := b.textOf(start)
	if err != nil {
		return err
	}
	if lines.IsBinary(text.Data()) {
		return tool.Parse("%s is a binary file; blame is for text", quote(c.only))
	}
	b.first = max(c.Offset, 1) - 1
	limit := c.Limit
	if limit == 0 {
		limit = maxBlameLines
	}
	last := min(b.first+min(limit, maxBlameLines), text.Len())
	if text.Len() == 0 {
		c.note("%s is empty", quote(c.only))
		return nil
	}
	if b.first >= text.Len() {
		return tool.InvalidInput("offset %d is beyond the end of %s, which has %d lines", c.Offset, quote(c.only), text.Len())
	}
	b.out = make([]blamed, last-b.first)
	start.lines = []span{{b.first, b.first, last - b.first}}
	heap.Push(&b.queue, start)
	for b.queue.Len() > 0 {
		o := heap.Pop(&b.queue).(*origin)
		if o.commit != nil {
			delete(b.origins, originKey{o.commit.ID, o.path}) // thousands would be kept
		}
		if err := b.pass(o); err != nil {
			return err
		}
	}
	if b.looked > maxBlamed {
		c.note("%d commits were looked at: lines marked with ^ may be older", maxBlamed)
	}
	if c.Shallow() {
		c.note("the clone is shallow: lines marked with ^ may be older")
	}
	return b.write(text)
}

// start is the file that is shown: of a revision, or as it is.
func (b *blame) start() (*origin, error) {
	rev := b.Revision
	if rev == "" {
		rev = "HEAD"
	}
	commit, err := b.CommitOf(rev)
	if err != nil {
		return nil, err
	}
	e, found, err := b.Lookup(commit.Tree, b.only)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, tool.NotFound("%s is not in %s; log with path tells which commits have changed it", quote(b.only), rev)
	}
	switch repo.Type(e.Mode) {
	case repo.ModeTree, repo.ModeGitlink:
		return nil, tool.InvalidInput("%s is a directory; blame is for a file", quote(b.only))
	}
	if b.secret(b.only) {
		return nil, tool.Denied("%s looks like a secret; it is not shown", quote(b.only))
	}
	o := b.originOf(&commit.Link, b.only, e.ID)
	if b.Revision != "" || b.Worktree == "" || e.Mode == repo.ModeLink {
		return o, nil
	}
	x, err := b.Index()
	if err != nil {
		return nil, err
	}
	b.indexed = map[string]*repo.IndexEntry{}
	for i := range x.Entries {
		if x.Entries[i].Path == b.only {
			b.indexed[b.only] = &x.Entries[i]
		}
	}
	info, err := os.Lstat(b.abs(b.only))
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return o, nil
	}
	now, err := b.workingContent(file{path: b.only, mode: e.Mode, working: true})
	if err != nil {
		return nil, err
	}
	if now.why != "" {
		return nil, b.tooLarge(b.only)
	}
	if hashOf(now.data) == e.ID {
		return o, nil
	}
	return &origin{path: b.only, text: textdiff.Lines(now.data), blob: e.ID}, nil
}

func (b *blame) tooLarge(path string) error {
	return repo.TooLarge("%s has more than %d MiB; blame looks at smaller files", quote(path), maxText>>20)
}

func (b *blame) originOf(commit *repo.Link, path string, blob repo.ID) *origin {
	key := originKey{commit.ID, path}
	o := b.origins[key]
	if o == nil {
		o = &origin{commit: commit, path: path, blob: blob}
		b.origins[key] = o
	}
	return o
}

// maxTexts is how many texts are kept.
const maxTexts = 4

func (b *blame) textOf(o *origin) (*textdiff.Text, error) {
	if o.text != nil {
		return o.text, nil
	}
	for i, t := range b.texts {
		if t.id == o.blob {
			copy(b.texts[1:], b.texts[:i])
			b.texts[0] = t
			return t.text, nil
		}
	}
	data, err := b.ReadAs(o.blob, repo.KindBlob)
	if err != nil {
		return nil, err
	}
	if len(data) > maxText {
		return nil, b.tooLarge(o.path)
	}
	t := cachedText{o.blob, textdiff.Lines(data)}
	b.texts = append([]cachedText{t}, b.texts[:min(len(b.texts), maxTexts-1)]...)
	return t.text, nil
}

// give adds lines to an origin, and it to the queue.
func (b *blame) give(o *origin, lines []span) {
	if len(lines) == 0 {
		return
	}
	if len(o.lines) == 0 {
		heap.Push(&b.queue, o)
	}
	o.lines = append(o.lines, lines...)
	slices.SortFunc(o.lines, func(a, b span) int {
		if a.from != b.from {
			return a.from - b.from
		}
		return a.at - b.at
	})
}

// keep says that lines go back to an origin and no further.
func (b *blame) keep(o *origin, lines []span, boundary bool) {
	for _, l := range lines {
		for i := range l.n {
			b.out[l.at-b.first+i] = blamed{o, l.from + i, boundary}
		}
	}
}

// pass passes lines on to the parents of a commit, as far as they have them.
func (b *blame) pass(o *origin) error {
	lines := o.lines
	o.lines = nil
	if err := b.Check(); err != nil {
		return err
	}
	if o.commit == nil { // what is not committed
		head, err := b.CommitOf("HEAD")
		if err != nil {
			return err
		}
		rest, err := b.share(o, b.originOf(&head.Link, o.path, o.blob), lines)
		b.keep(o, rest, false)
		return err
	}
	if b.looked++; b.looked > maxBlamed || len(o.commit.Parents) == 0 {
		b.keep(o, lines, true)
		return nil
	}
	var parents []*origin
	var without []*repo.Link
	for _, id := range o.commit.Parents {
		p, err := b.Link(id)
		if err != nil {
			return err
		}
		e, found := repo.Entry{ID: o.blob}, true
		if p.Tree != o.commit.Tree {
			if e, found, err = b.Lookup(p.Tree, o.path); err != nil {
				return err
			}
		}
		switch {
		case !found || repo.Type(e.Mode) == repo.ModeTree || e.Mode == repo.ModeGitlink:
			without = append(without, p)
		case e.ID == o.blob:
			b.give(b.originOf(p, o.path, e.ID), lines)
			return nil
		default:
			parents = append(parents, b.originOf(p, o.path, e.ID))
		}
	}
	for _, p := range without {
		from, err := b.renamed(o, p)
		if err != nil {
			return err
		}
		if from == nil {
			continue
		}
		if from.blob == o.blob {
			b.give(from, lines)
			return nil
		}
		parents = append(parents, from)
	}
	for i, p := range parents {
		if len(lines) == 0 {
			return nil
		}
		if slices.ContainsFunc(parents[:i], func(other *origin) bool { return other.blob == p.blob }) {
			continue
		}
		var err error
		if lines, err = b.share(o, p, lines); err != nil {
			return err
		}
	}
	b.keep(o, lines, false)
	return nil
}

// renamed finds the file under another name in a parent.
func (b *blame) renamed(o *origin, p *repo.Link) (*origin, error) {
	changes, err := b.diffTrees(p.Tree, o.commit.Tree, true)
	if err != nil {
		return nil, err
	}
	// Only what becomes this file is of interest.
	wanted := changes[:0]
	for _, ch := range changes {
		if l := ch.letter(); l == 'D' || l == 'A' {
			wanted = append(wanted, ch)
		}
	}
	if wanted, err = b.findRenames(wanted); err != nil {
		return nil, err
	}
	for _, ch := range wanted {
		if ch.to.path == o.path && ch.renamed() {
			return b.originOf(p, ch.from.path, ch.from.id), nil
		}
	}
	return nil, nil
}

// share gives a parent the lines that it has too, and returns the others.
func (b *blame) share(o, p *origin, lines []span) (rest []span, err error) {
	now, err := b.textOf(o)
	if err != nil {
		return nil, err
	}
	old, err := b.textOf(p)
	if err != nil {
		return nil, err
	}
	changes, err := textdiff.Diff(old, now, b.Check)
	if err != nil {
		return nil, err
	}
	// Behind the last change there is one more that changes nothing.
	changes = append(changes, textdiff.Change{A: old.Len(), AEnd: old.Len(), B: now.Len(), BEnd: now.Len()})
	var given []span
	i, shift := 0, 0 // the change that ends behind a line, and how far lines before it moved
	for _, l := range lines {
		for l.n > 0 {
			for i > 0 && changes[i-1].BEnd > l.from {
				i--
			}
			for changes[i].BEnd <= l.from && i < len(changes)-1 {
				i++
			}
			ch := changes[i]
			if shift = ch.A - ch.B; l.from < ch.B {
				n := min(l.n, ch.B-l.from)
				given = append(given, span{l.at, l.from + shift, n})
				l = span{l.at + n, l.from + n, l.n - n}
				continue
			}
			n := min(l.n, ch.BEnd-l.from)
			if n <= 0 {
				n = l.n // the end of the text
			}
			rest = append(rest, span{l.at, l.from, n})
			l = span{l.at + n, l.from + n, l.n - n}
		}
	}
	b.give(p, given)
	return rest, nil
}

func (b *blame) write(text *textdiff.Text) error {
	type row struct{ hash, path, author, date string }
	rows := make([]row, len(b.out))
	short := 0
	authors := map[repo.ID]repo.Signature{}
	for _, l := range b.out {
		if l.commit == nil {
			continue
		}
		if _, known := authors[l.commit.ID]; !known {
			commit, err := b.Commit(l.commit.ID)
			if err != nil {
				return err
			}
			authors[commit.ID] = commit.Author
			short = max(short, len(b.Short(commit.ID)))
		}
	}
	if short == 0 {
		short = len(b.Short(repo.ID{}))
	}
	short++ // for the mark of a boundary
	widePath, wideAuthor, showPath := 0, 0, false
	for i, l := range b.out {
		r := row{path: quote(l.path), hash: strings.Repeat("0", short), author: "Not Committed Yet", date: strings.Repeat("-", len("2006-01-02"))}
		if l.commit != nil {
			r.hash = l.commit.ID.String()[:short]
			if l.boundary {
				r.hash = "^" + r.hash[:short-1]
			}
			author := authors[l.commit.ID]
			r.author = oneLine(author.Name)
			r.date = author.When.Format("2006-01-02")
		}
		const longest = 60
		if utf8.RuneCountInString(r.author) > longest {
			r.author = string([]rune(r.author)[:longest])
		}
		showPath = showPath || l.path != b.only
		widePath = max(widePath, utf8.RuneCountInString(r.path))
		wideAuthor = max(wideAuthor, utf8.RuneCountInString(r.author))
		rows[i] = r
	}
	wideNumber := len(strconv.Itoa(b.first + len(rows)))
	b.page.skip, b.page.limit = 0, 0
	for i, r := range rows {
		line := r.hash
		if showPath {
			line += " " + r.path + strings.Repeat(" ", widePath-utf8.RuneCountInString(r.path))
		}
		line += fmt.Sprintf(" (%s%s %s %*d) %s", r.author, strings.Repeat(" ", wideAuthor-utf8.RuneCountInString(r.author)), r.date,
			wideNumber, b.first+i+1, strings.TrimSuffix(string(text.Line(b.first+i)), "\n"))
		if err := b.page.line(line); err != nil {
			b.page.next = b.first + i + 1
			return err
		}
	}
	if end := b.first + len(rows); end < text.Len() {
		b.page.full, b.page.next = true, end+1
	}
	return nil
}
