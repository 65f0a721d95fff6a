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

// Text is the difference between two versions of one file.
type Text struct {
	Change         tool.Change
	Notes          []string // remarks on the whole file, in our own words
	Hunks          []Hunk   // nil: no line differs, or Err is set
	Added, Removed int      // numbers of lines
	Hidden         int      // number of lines in Hunks in which a secret is replaced
	Err            error    // reason for showing nothing; nil: all is shown

	hiddenAdded int // number of added lines in Hidden
}

// Hunk is a hunk of a diff: lines that differ, with unchanged lines around them.
type Hunk struct {
	OldStart, NewStart int // numbers of the first lines before and after, from 1 on
	OldEnd, NewEnd     int // numbers of the last lines, plus 1
	Runs               []Run
}

// Run is consecutive lines of one kind.
type Run struct {
	Op   byte   // '-' for removed lines, '+' for added ones, ' ' for unchanged ones
	Text string // the lines, with their newlines
}

// Line is one or several equal lines in a row.
type Line struct {
	Op     byte   // as in Run; 0: no line of a file, see [ParseUnified]
	Number int    // number of the first line: of a removed line in the old file, of others in the new one
	Text   string // without a newline
	NoEnd  bool   // it is the last line of a file, without a newline at its end
	Count  int    // number of equal lines
}

// content is a text as UTF-8, with the results of [decodeText] and [hiddenShellChars].
type content struct{ text, encoding, shellChars string }

// fitsEncodingOf reports whether c is empty, or has only ASCII and so fits the encoding of
// other, which is Windows-1252.
func (c content) fitsEncodingOf(other content) bool {
	ascii := strings.IndexFunc(c.text, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
	return c == content{} || c.encoding == "" && ascii && other.encoding == windows1252
}

// compare returns the difference between two contents of a file. CRLF equals LF unless a
// version has both; a change of line endings is noted. hide replaces secrets; nil: there are
// none.
func compare(c tool.Change, before, after content, hide func(string) string) *Text {
	t := &Text{Change: c}
	if before == after {
		return t
	}
	note := func(format string, args ...any) { t.Notes = append(t.Notes, fmt.Sprintf(format, args...)) }
	was, wasEnds := normalizeLineEnds(before.text)
	is, isEnds := normalizeLineEnds(after.text)
	switch {
	case wasEnds == "" && isEnds == "CRLF":
		note("its lines end in %s", isEnds)
	case wasEnds != "" && isEnds != "" && wasEnds != isEnds:
		note("line endings change from %s to %s", wasEnds, isEnds)
	}
	if wasEnds == mixed || isEnds == mixed { // show the line endings, too
		was, is = before.text, after.text
	}
	switch encoding := cmp.Or(after.encoding, before.encoding); {
	case before.encoding != after.encoding && !before.fitsEncodingOf(after) && !after.fitsEncodingOf(before):
		note("the encoding changes from %s to %s", cmp.Or(before.encoding, "UTF-8"), cmp.Or(after.encoding, "UTF-8"))
	case encoding != "":
		note("it is in %s", encoding)
	}
	if after.shellChars != "" {
		note("programs that do not know the encoding see %q inside of characters", after.shellChars)
	}
	if was == is {
		if len(t.Notes) > 0 {
			t.Notes = []string{strings.Join(t.Notes, "; ") + ", and nothing else"}
		}
		return t
	}
	t.findHunks(was, is)
	if hide != nil {
		t.hideSecrets(was, is, hide)
	}
	return t
}

// mixed is the line ending of a text that has both LF and CRLF.
const mixed = "a mix of both"

// normalizeLineEnds returns a text with LF for CRLF, and its line ending; empty if the text
// has none. A text with mixed line endings is returned unchanged.
func normalizeLineEnds(text string) (without, end string) {
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

// maxCompared limits the number of lines of both texts together, up to which they are compared
// line by line. With more, all lines count as removed and added.
const maxCompared = 1 << 20

func (t *Text) findHunks(was, is string) {
	edits := []udiff.Edit{{Start: 0, End: len(was), New: is}}
	if was != "" && is != "" && lineCount(was)+lineCount(is) <= maxCompared {
		edits = udiff.Lines(was, is)
	}
	at, last := 0, &Hunk{OldEnd: 1, NewEnd: 1}
	add := func(op byte, text string) {
		n := lineCount(text)
		switch op {
		case '-':
			t.Removed, last.OldEnd = t.Removed+n, last.OldEnd+n
		case '+':
			t.Added, last.NewEnd = t.Added+n, last.NewEnd+n
		default:
			last.OldEnd, last.NewEnd = last.OldEnd+n, last.NewEnd+n
		}
		if n > 0 {
			last.Runs = append(last.Runs, Run{op, text})
		}
	}
	for _, e := range edits {
		between := was[at:e.Start]
		n := lineCount(between)
		if len(t.Hunks) == 0 || n > 2*contextLines {
			far := max(n-contextLines, 0)
			first, is := last.OldEnd+far, last.NewEnd+far
			if len(t.Hunks) > 0 {
				add(' ', firstLines(between, contextLines))
			}
			t.Hunks = append(t.Hunks, Hunk{OldStart: first, NewStart: is, OldEnd: first, NewEnd: is})
			last = &t.Hunks[len(t.Hunks)-1]
			between = between[len(firstLines(between, far)):]
		}
		add(' ', between)
		add('-', was[e.Start:e.End])
		add('+', e.New)
		at = e.End
	}
	add(' ', firstLines(was[at:], contextLines))
}

// Bytes counts the bytes of all lines of the hunks.
func (t *Text) Bytes() (n int) {
	for _, h := range t.Hunks {
		for _, r := range h.Runs {
			n += len(r.Text)
		}
	}
	return n
}

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

// Lines returns the lines of a hunk. Equal lines in a row are one [Line].
func (h Hunk) Lines() iter.Seq[Line] {
	return func(yield func(Line) bool) {
		was, is := h.OldStart, h.NewStart
		for _, r := range h.Runs {
			for rest := r.Text; rest != ""; {
				text, after, ended := strings.Cut(rest, "\n")
				l := Line{Op: r.Op, Number: is, Text: text, NoEnd: !ended, Count: 1}
				for next := text + "\n"; ended && strings.HasPrefix(after, next); l.Count++ {
					after = after[len(next):]
				}
				if r.Op == '-' {
					l.Number = was
				}
				if r.Op != '+' {
					was += l.Count
				}
				if r.Op != '-' {
					is += l.Count
				}
				if rest = after; !yield(l) {
					return
				}
			}
		}
	}
}

// redactedLine replaces a line if the place of the secret within the line is not known.
const redactedLine = "[redacted]"

// hideSecrets replaces secrets in the lines. It looks for them in the whole texts, because a
// hunk may have only some lines of a secret.
func (t *Text) hideSecrets(was, is string, hide func(string) string) {
	before, after := redactLines(was, hide), redactLines(is, hide)
	if before == nil && after == nil {
		return
	}
	for i := range t.Hunks {
		h := &t.Hunks[i]
		a, b := h.OldStart-1, h.NewStart-1
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
						t.hiddenAdded++
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

// redactLines returns the lines of a text with hidden secrets; nil if hide finds none. If
// hiding changes the number of lines, all lines that differ are replaced as a whole.
func redactLines(text string, hide func(string) string) []string {
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
			raw[line] = redactedLine
			line++
		}
		at = e.End
	}
	return raw
}

func readBoth(c tool.Change, limit int64) (before, after content, err error) {
	if before, _, err = read(c.Before, limit); err == nil {
		after, _, err = read(c.After, limit)
	}
	return before, after, err
}

var errNoText = errors.New("it is no text")

// read returns the content of a version, and the SHA-256 of its bytes. Both are empty if v is
// nil or not a regular file. The error is [tool.ErrTooLong] for more than limit bytes. For a file
// that is not text it returns the SHA-256 and errNoText.
func read(v *tool.Version, limit int64) (c content, sum [sha256.Size]byte, err error) {
	if !v.IsFile() {
		return c, sum, nil
	}
	data, err := v.Content(limit)
	if err != nil {
		return c, sum, err
	}
	sum = sha256.Sum256(data)
	text, encoding, ok := decodeText(data, v.Encoding)
	if !ok {
		return c, sum, errNoText
	}
	return content{text, encoding, hiddenShellChars(data, text)}, sum, nil
}
