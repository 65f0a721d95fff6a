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
	"time"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/guests/git/repo"
	"github.com/stockade-dev/stockade/guests/git/textdiff"
	"github.com/stockade-dev/stockade/sdk/go/lines"
	"github.com/stockade-dev/stockade/sdk/go/tool"
)

const maxBlameLines = 1000 // lines that one call shows

// maxBlamed limits the commits that one blame reads, in addition to the limit for work. Lines
// that go back to further commits are shown as maybe older.
var maxBlamed = 250_000

// origin is a version of a file to which lines may go back: in a commit, or in the worktree.
type origin struct {
	commit *repo.CommitNode // nil: the version in the worktree
	path   string
	blob   repo.ID        // content in the commit; for the worktree, that in HEAD
	text   *textdiff.Text // text of the worktree's version; nil: it is read from blob
	lines  []span         // lines that go back at least to this version; nil once they were passed on
}

// span is a run of n lines, which begins at line at of the blamed file, and at line from of an
// origin. Lines count from 0.
type span struct{ at, from, n int }

// blamedLine is the origin of one line.
type blamedLine struct {
	*origin
	from     int  // line number in the origin, from 0
	boundary bool // set if the origin is a commit without parents, see [repo.CommitNode]
	orOlder  bool // set if the line may be older, which was not examined
}

// blamer is the state of one blame.
type blamer struct {
	*call
	queue   byOriginDate          // origins whose lines may be older
	origins map[originKey]*origin // origins in commits that were not taken from the queue yet
	out     []blamedLine          // results, one for each shown line
	first   int                   // number of the first shown line, from 0
	looked  int                   // number of origins whose parents were looked at
	oldest  int64                 // time of the commit of the last of these, in seconds since 1970
	large   bool                  // set if something was too large, such as a version of the file
	texts   []cachedText          // up to maxTexts texts, the one used last first
}

type originKey struct {
	commit repo.ID
	path   string
}

type cachedText struct {
	id   repo.ID
	text *textdiff.Text
}

// byOriginDate is a heap of origins, the worktree first, then the latest commit.
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

// blame writes git blame --date=short for a range of lines.
func (c *call) blame() error {
	if c.pathFilter == "" {
		return tool.InvalidInput("blame needs path, a file")
	}
	b := &blamer{call: c, origins: map[originKey]*origin{}}
	start, err := b.start()
	if err != nil {
		return err
	}
	text, err := b.textOf(start)
	if err != nil {
		return err
	}
	if lines.IsBinary(text.Data()) {
		return tool.Parse("%s is a binary file, and blame is for text; log with path tells which commits have changed it", quote(c.pathFilter))
	}
	b.first = max(c.Offset, 1) - 1
	limit := c.Limit
	if limit == 0 {
		limit = maxBlameLines
	}
	last := min(b.first+min(limit, maxBlameLines), text.Len())
	if text.Len() == 0 {
		c.note("%s is empty", quote(c.pathFilter))
		return nil
	}
	if b.first >= text.Len() {
		return tool.InvalidInput("offset %d is beyond the end of %s, which has %d lines", c.Offset, quote(c.pathFilter), text.Len())
	}
	b.out = make([]blamedLine, last-b.first)
	start.lines = []span{{b.first, b.first, last - b.first}}
	heap.Push(&b.queue, start)
	for b.queue.Len() > 0 {
		o := heap.Pop(&b.queue).(*origin)
		if o.commit != nil {
			delete(b.origins, originKey{o.commit.ID, o.path}) // otherwise thousands would stay in memory
		}
		rest, err := b.passToParents(o)
		if repo.IsTooLarge(err) && !repo.IsSpent(err) && o.commit != nil {
			b.large = true
		} else if err != nil && (!repo.IsSpent(err) || o.commit == nil) {
			return err
		}
		if err != nil {
			b.assign(o, rest, blamedLine{orOlder: true})
		}
		if repo.IsSpent(err) {
			break
		}
	}
	for _, o := range b.queue {
		b.assign(o, o.lines, blamedLine{orOlder: true})
	}
	if c.Shallow() {
		c.note("the clone is shallow: lines marked with ^ may be older")
	}
	c.AllowMore(workToWrite)
	return b.write(text)
}

// start returns the version of the file that is shown: that of the revision, or without one
// that of the worktree, or of HEAD if the file is the same there, or gone.
func (b *blamer) start() (*origin, error) {
	rev := b.Revision
	if rev == "" {
		rev = "HEAD"
	}
	commit, err := b.CommitOf(rev)
	if err != nil {
		return nil, err
	}
	e, found, err := b.Lookup(commit.Tree, b.pathFilter)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, tool.NotFound("%s is not in %s; log with path tells which commits have changed it", quote(b.pathFilter), rev)
	}
	switch repo.Type(e.Mode) {
	case repo.ModeTree, repo.ModeGitlink:
		return nil, tool.InvalidInput("%s is a directory; blame is for a file", quote(b.pathFilter))
	}
	if b.isSecret(b.pathFilter) {
		return nil, tool.Denied("%s looks like a secret, and is shown only if it exists and a person says yes to the call; do without it", quote(b.pathFilter))
	}
	o := b.originOf(&commit.CommitNode, b.pathFilter, e.ID)
	if b.Revision != "" || b.Worktree == "" || e.Mode == repo.ModeLink {
		return o, nil
	}
	x, err := b.Index()
	if err != nil {
		return nil, err
	}
	b.comparedIndex = x
	info, err := os.Lstat(b.abs(b.pathFilter))
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return o, nil
	}
	now, err := b.workingContent(file{path: b.pathFilter, mode: e.Mode, inWorktree: true})
	if err != nil {
		return nil, err
	}
	if now.notCompared != "" {
		return nil, b.tooLarge(b.pathFilter)
	}
	if hashOf(now.data) == e.ID {
		return o, nil
	}
	return &origin{path: b.pathFilter, text: b.call.lines(now.data), blob: e.ID}, nil
}

func (b *blamer) tooLarge(path string) error {
	return repo.TooLarge("%s has more than %d MiB; blame looks at smaller files, and git blame, run by bash, at all", quote(path), maxText>>20)
}

// originOf returns the origin for a path in a commit from b.origins, or adds a new one to it.
func (b *blamer) originOf(commit *repo.CommitNode, path string, blob repo.ID) *origin {
	key := originKey{commit.ID, path}
	o := b.origins[key]
	if o == nil {
		o = &origin{commit: commit, path: path, blob: blob}
		b.origins[key] = o
	}
	return o
}

const maxTexts = 4 // texts that are kept in memory

func (b *blamer) textOf(o *origin) (*textdiff.Text, error) {
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
	t := cachedText{o.blob, b.call.lines(data)}
	b.texts = append([]cachedText{t}, b.texts[:min(len(b.texts), maxTexts-1)]...)
	return t.text, nil
}

// addLines adds lines to an origin, and puts the origin into the queue if it had no lines.
func (b *blamer) addLines(o *origin, lines []span) {
	if len(lines) == 0 {
		return
	}
	if len(o.lines) == 0 {
		heap.Push(&b.queue, o)
	}
	if len(o.lines) == 0 {
		o.lines = lines // in order already
		return
	}
	o.lines = append(slices.Clip(o.lines), lines...)
	slices.SortFunc(o.lines, func(a, b span) int {
		if a.from != b.from {
			return a.from - b.from
		}
		return a.at - b.at
	})
}

// appendSpan adds a span, or lengthens the last span if the new one continues it. Otherwise
// each version of the file would make more spans.
func appendSpan(spans []span, s span) []span {
	if i := len(spans) - 1; i >= 0 && spans[i].at+spans[i].n == s.at && spans[i].from+spans[i].n == s.from {
		spans[i].n += s.n
		return spans
	}
	return append(spans, s)
}

// assign records that some lines come from an origin. The flags boundary and orOlder of their
// results are those of as.
func (b *blamer) assign(o *origin, lines []span, as blamedLine) {
	as.origin = o
	for _, l := range lines {
		for i := range l.n {
			as.from = l.from + i
			b.out[l.at-b.first+i] = as
		}
	}
}

// passToParents passes the lines of an origin on to parents of its commit with the same lines
// (from the worktree, to HEAD), and assigns the others. After an error, rest holds the lines
// whose origin is not known.
func (b *blamer) passToParents(o *origin) (rest []span, err error) {
	lines := o.lines
	o.lines = nil
	if err := b.Check(); err != nil {
		return lines, err
	}
	if o.commit == nil { // the worktree
		head, err := b.CommitOf("HEAD")
		if err != nil {
			return lines, err
		}
		rest, err := b.passShared(o, b.originOf(&head.CommitNode, o.path, o.blob), lines)
		if err == nil {
			b.assign(o, rest, blamedLine{})
		}
		return rest, err
	}
	if b.looked == maxBlamed {
		b.assign(o, lines, blamedLine{orOlder: true})
		return nil, nil
	}
	if len(o.commit.Parents) == 0 {
		b.assign(o, lines, blamedLine{boundary: true})
		return nil, nil
	}
	if b.KnownUnchanged(o.commit, o.path) {
		p, err := b.Parent(o.commit, 0)
		if err == nil {
			b.seen(o)
			b.addLines(b.originOf(p, o.path, o.blob), lines)
		}
		return lines, err
	}
	var parents []*origin
	var without []*repo.CommitNode
	for i := range o.commit.Parents {
		p, err := b.Parent(o.commit, i)
		if err != nil {
			return lines, err
		}
		e, found := repo.Entry{ID: o.blob}, true
		if p.Tree != o.commit.Tree {
			if e, found, err = b.Lookup(p.Tree, o.path); err != nil {
				return lines, err
			}
		}
		switch {
		case !found || repo.Type(e.Mode) == repo.ModeTree || e.Mode == repo.ModeGitlink:
			without = append(without, p)
		case e.ID == o.blob:
			b.seen(o)
			b.addLines(b.originOf(p, o.path, e.ID), lines)
			return nil, nil
		default:
			parents = append(parents, b.originOf(p, o.path, e.ID))
		}
	}
	for _, p := range without {
		from, err := b.findRenamed(o, p)
		if err != nil {
			return lines, err
		}
		if from == nil {
			continue
		}
		if from.blob == o.blob {
			b.seen(o)
			b.addLines(from, lines)
			return nil, nil
		}
		parents = append(parents, from)
	}
	for i, p := range parents {
		if len(lines) == 0 {
			break
		}
		if slices.ContainsFunc(parents[:i], func(other *origin) bool { return other.blob == p.blob }) {
			continue
		}
		rest, err := b.passShared(o, p, lines)
		if err != nil {
			return lines, err
		}
		lines = rest
	}
	b.seen(o)
	b.assign(o, lines, blamedLine{})
	return nil, nil
}

func (b *blamer) seen(o *origin) {
	b.looked++
	b.oldest = o.commit.When
}

// findRenamed returns the file in the parent p that was renamed to that of o; nil: none.
func (b *blamer) findRenamed(o *origin, p *repo.CommitNode) (*origin, error) {
	changes, err := b.diffTrees(p.Tree, o.commit.Tree, true)
	if err != nil {
		return nil, err
	}
	// Only the rename to this file is needed.
	wanted := changes[:0]
	for _, ch := range changes {
		if l := ch.statusLetter(); l == 'D' || l == 'A' {
			wanted = append(wanted, ch)
		}
	}
	if wanted, err = b.findRenames(wanted); err != nil {
		return nil, err
	}
	for _, ch := range wanted {
		if ch.to.path == o.path && ch.isRename() {
			return b.originOf(p, ch.from.path, ch.from.id), nil
		}
	}
	return nil, nil
}

// passShared passes the lines of o that p also has on to p, and returns the others.
func (b *blamer) passShared(o, p *origin, lines []span) (rest []span, err error) {
	now, err := b.textOf(o)
	if err != nil {
		return nil, err
	}
	old, err := b.textOf(p)
	if err != nil {
		return nil, err
	}
	changes, err := b.compare(old, now)
	if err != nil {
		return nil, err
	}
	// An empty change behind the last one simplifies the loop.
	changes = append(changes, textdiff.Change{A: old.Len(), AEnd: old.Len(), B: now.Len(), BEnd: now.Len()})
	var given []span
	i, shift := 0, 0 // the first change that ends behind a line, and the shift of lines before it
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
				given = appendSpan(given, span{l.at, l.from + shift, n})
				l = span{l.at + n, l.from + n, l.n - n}
				continue
			}
			n := min(l.n, ch.BEnd-l.from)
			if n <= 0 {
				n = l.n // the end of the text
			}
			rest = appendSpan(rest, span{l.at, l.from, n})
			l = span{l.at + n, l.from + n, l.n - n}
		}
	}
	b.addLines(p, given)
	return rest, nil
}

// noteOlder notes the number of lines that may be older than shown, and the reason.
func (b *blamer) noteOlder(lines int) {
	why := fmt.Sprintf("%d commits were looked at, back to %s, which is as much as one call may do", b.looked, time.Unix(b.oldest, 0).UTC().Format(time.DateOnly))
	if b.large {
		why = fmt.Sprintf("an older version of the file has more than %d MiB, or another is too large to look at", maxText>>20)
	}
	command := "git blame -L FROM,TO "
	if b.Revision != "" {
		command += oneLine(b.Revision) + " "
	}
	b.note("%s: %d of the %d lines are marked \"or older\", which are of the commit that stands there or of an older one; %s-- %s, run by bash, finds them%s",
		why, lines, len(b.out), command, quote(b.pathFilter), b.faster())
}

func (b *blamer) write(text *textdiff.Text) error {
	type row struct{ hash, path, author, date string }
	rows := make([]row, len(b.out))
	short, older := 0, 0
	authors := map[repo.ID]repo.Signature{}
	for _, l := range b.out {
		if l.orOlder {
			older++
			short = max(short, len(b.Short(l.commit.ID)))
		}
		if l.commit == nil || l.orOlder {
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
			if l.boundary || l.orOlder {
				r.hash = "^" + r.hash[:short-1]
			}
			author := authors[l.commit.ID]
			if l.orOlder {
				author = repo.Signature{Name: "or older", When: time.Unix(l.commit.When, 0).UTC()}
			}
			r.author = oneLine(author.Name)
			r.date = author.When.Format(time.DateOnly)
		}
		const longest = 60
		if utf8.RuneCountInString(r.author) > longest {
			r.author = string([]rune(r.author)[:longest])
		}
		showPath = showPath || l.path != b.pathFilter
		widePath = max(widePath, utf8.RuneCountInString(r.path))
		wideAuthor = max(wideAuthor, utf8.RuneCountInString(r.author))
		rows[i] = r
	}
	if older > 0 {
		b.noteOlder(older)
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
