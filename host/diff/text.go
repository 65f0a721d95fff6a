package diff

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"github.com/stockade-dev/stockade/host/tool"
)

// Text is the difference of one file.
type Text struct {
	Change         tool.Change
	Notes          []string // what is to be known of all of the file, in words of ours
	Hunks          []Hunk   // nil: no line differs
	Added, Removed int      // lines
	Hidden         int      // lines in which something is hidden
	Err            error    // why nothing of it is shown

	hidden int // those of Hidden that come
}

// Hunk is a place of a file where lines differ, with those around them.
type Hunk struct {
	Was, Is       int // the numbers of the first lines
	WasEnd, IsEnd int // those behind the last ones
	Runs          []Run
}

// Run is some lines in a row. Op is '-' where they go, '+' where they come, and else ' '.
type Run struct {
	Op   byte
	Text string
}

// Line is one line of a hunk, and how often it stands there in a row.
type Line struct {
	Op     byte
	Number int // of a line that goes in the former file, of any other in the new one
	Text   string
	NoEnd  bool // it has no end, and is the last of its file
	Times  int
}

// content is a text, and how a file has it.
type content struct{ text, encoding string }

// fits reports whether the encoding of another content may be that of this one, too.
func (c content) fits(other content) bool {
	ascii := strings.IndexFunc(c.text, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
	return c == content{} || c.encoding == "" && ascii && other.encoding == windows
}

// compare is the difference between two contents of a change. Where all lines end in CRLF
// that is not in the lines.
func compare(c tool.Change, before, after content, hide func(string) string) *Text {
	t := &Text{Change: c}
	if before == after {
		return t
	}
	note := func(format string, args ...any) { t.Notes = append(t.Notes, fmt.Sprintf(format, args...)) }
	was, wasEnds := ends(before.text)
	is, isEnds := ends(after.text)
	switch {
	case wasEnds == "" && isEnds == "CRLF":
		note("its lines end in %s", isEnds)
	case wasEnds != "" && isEnds != "" && wasEnds != isEnds:
		note("line endings change from %s to %s", wasEnds, isEnds)
	}
	if wasEnds == mixed || isEnds == mixed { // then each shows
		was, is = before.text, after.text
	}
	switch encoding := cmp.Or(after.encoding, before.encoding); {
	case before.encoding != after.encoding && !before.fits(after) && !after.fits(before):
		note("the encoding changes from %s to %s", cmp.Or(before.encoding, "UTF-8"), cmp.Or(after.encoding, "UTF-8"))
	case encoding != "":
		note("it is in %s", encoding)
	}
	if was == is {
		if len(t.Notes) > 0 {
			t.Notes = []string{strings.Join(t.Notes, "; ") + ", and nothing else"}
		}
		return t
	}
	t.differ(was, is)
	if hide != nil {
		t.conceal(was, is, hide)
	}
	return t
}

// mixed says that lines end both ways.
const mixed = "a mix of both"

// ends is a text without the CR at the end of its lines, and how these end; empty if none
// does.
func ends(text string) (without, end string) {
	all, crlf := strings.Count(text, "\n"), strings.Count(text, "\r\n")
	switch {
	case all == 0:
		return text, ""
	case crlf == 0:
		return text, "LF"
	case crlf < all:
		return text, mixed
	}
	return strings.ReplaceAll(text, "\r\n", "\n"), "CRLF"
}

// maxCompared is how many lines of two texts are compared with each other. Of more, all
// go and all come.
const maxCompared = 1 << 20

// differ finds the places where two texts differ, and counts the lines.
func (t *Text) differ(was, is string) {
	edits := []udiff.Edit{{Start: 0, End: len(was), New: is}}
	if was != "" && is != "" && lineCount(was)+lineCount(is) <= maxCompared {
		edits = udiff.Lines(was, is)
	}
	at, last := 0, &Hunk{WasEnd: 1, IsEnd: 1}
	add := func(op byte, text string) {
		n := lineCount(text)
		switch op {
		case '-':
			t.Removed, last.WasEnd = t.Removed+n, last.WasEnd+n
		case '+':
			t.Added, last.IsEnd = t.Added+n, last.IsEnd+n
		default:
			last.WasEnd, last.IsEnd = last.WasEnd+n, last.IsEnd+n
		}
		if n > 0 {
			last.Runs = append(last.Runs, Run{op, text})
		}
	}
	for _, e := range edits {
		between := was[at:e.Start]
		n := lineCount(between)
		if len(t.Hunks) == 0 || n > 2*contextFor {
			far := max(n-contextFor, 0)
			first, is := last.WasEnd+far, last.IsEnd+far
			if len(t.Hunks) > 0 {
				add(' ', firstLines(between, contextFor))
			}
			t.Hunks = append(t.Hunks, Hunk{Was: first, Is: is, WasEnd: first, IsEnd: is})
			last = &t.Hunks[len(t.Hunks)-1]
			between = between[len(firstLines(between, far)):]
		}
		add(' ', between)
		add('-', was[e.Start:e.End])
		add('+', e.New)
		at = e.End
	}
	add(' ', firstLines(was[at:], contextFor))
}

// Bytes is how many bytes the lines have.
func (t *Text) Bytes() (n int) {
	for _, h := range t.Hunks {
		for _, r := range h.Runs {
			n += len(r.Text)
		}
	}
	return n
}

// lineCount is how many lines a text has; the last one may have no end.
func lineCount(text string) int {
	n := strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		n++
	}
	return n
}

func firstLines(text string, n int) string {
	at := 0
	for ; n > 0 && at < len(text); n-- {
		i := strings.IndexByte(text[at:], '\n')
		if i < 0 {
			return text
		}
		at += i + 1
	}
	return text[:at]
}

// Lines are those of a hunk. Equal ones in a row are one line with a number of times.
func (h Hunk) Lines() iter.Seq[Line] {
	return func(yield func(Line) bool) {
		was, is := h.Was, h.Is
		for _, r := range h.Runs {
			for rest := r.Text; rest != ""; {
				text, after, ended := strings.Cut(rest, "\n")
				l := Line{Op: r.Op, Number: is, Text: text, NoEnd: !ended, Times: 1}
				for next := text + "\n"; ended && strings.HasPrefix(after, next); l.Times++ {
					after = after[len(next):]
				}
				if r.Op == '-' {
					l.Number = was
				}
				if r.Op != '+' {
					was += l.Times
				}
				if r.Op != '-' {
					is += l.Times
				}
				if rest = after; !yield(l) {
					return
				}
			}
		}
	}
}

// concealed stands for a line of which it is not known what to hide.
const concealed = "[redacted]"

// conceal takes secrets out of the lines. They are looked for in whole texts: one of
// several lines may be there in part.
func (t *Text) conceal(was, is string, hide func(string) string) {
	before, after := clean(was, hide), clean(is, hide)
	if before == nil && after == nil {
		return
	}
	for i := range t.Hunks {
		h := &t.Hunks[i]
		a, b := h.Was-1, h.Is-1
		for j, r := range h.Runs {
			var out strings.Builder
			for line := range strings.Lines(r.Text) {
				text := strings.TrimSuffix(line, "\n")
				shown := text
				if r.Op != '+' && before != nil {
					shown = before[a]
				}
				if r.Op != '-' && after != nil && shown == text {
					shown = after[b]
				}
				if shown != text {
					t.Hidden++
					if r.Op == '+' {
						t.hidden++
					}
				}
				out.WriteString(shown + line[len(text):])
				if r.Op != '+' {
					a++
				}
				if r.Op != '-' {
					b++
				}
			}
			h.Runs[j].Text = out.String()
		}
	}
}

// clean are the lines of a text without secrets; nil if there are none in it. Where a
// secret has several lines, each is concealed, and no line stays that the text has not
// without secrets.
func clean(text string, hide func(string) string) []string {
	hidden := hide(text)
	if hidden == text {
		return nil
	}
	split := func(s string) []string { return strings.Split(strings.TrimSuffix(s, "\n"), "\n") }
	raw, lines := split(text), split(hidden)
	if len(raw) == len(lines) {
		return lines
	}
	edits := []udiff.Edit{{Start: 0, End: len(text)}}
	if len(raw)+len(lines) <= maxCompared {
		edits = udiff.Lines(text, hidden)
	}
	at, line := 0, 0
	for _, e := range edits {
		line += lineCount(text[at:e.Start])
		for range lineCount(text[e.Start:e.End]) {
			raw[line] = concealed
			line++
		}
		at = e.End
	}
	return raw
}

// texts are the contents of a change, of most bytes at most each.
func texts(c tool.Change, most int64) (before, after content, err error) {
	if before, _, err = read(c.Before, most); err == nil {
		after, _, err = read(c.After, most)
	}
	return before, after, err
}

var (
	errNoText  = errors.New("it is no text")
	errTooLong = errors.New("it is too long to compare")
)

// read is the content of a version, and its SHA-256, also of what is no text; empty for
// one that is not there or has none.
func read(v *tool.Version, most int64) (c content, sum [sha256.Size]byte, err error) {
	if !regular(v) {
		return c, sum, nil
	}
	if v.Size > most {
		return c, sum, errTooLong
	}
	data, err := load(v, most)
	if err != nil {
		return c, sum, err
	}
	sum = sha256.Sum256(data)
	text, encoding, ok := decoded(data)
	if !ok {
		return c, sum, errNoText
	}
	return content{text, encoding}, sum, nil
}
