package main

import (
	"bytes"
	"html"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDepth limits the levels of nested lists. The entries of deeper lists are rendered like
// those of the deepest level.
const maxDepth = 16

// page renders the text of an HTML document: headings, lists, tables and links as in Markdown,
// and text between them. Hidden text is left out, or marked as hidden. The memory of page does
// not depend on how deep the document nests.
type page struct {
	out  *window
	base *url.URL // for resolving links; nil: only their text is written

	breaks       int    // line ends due before the next text
	pendingBlank bool   // a blank is due before the next text
	lineStarted  bool   // the present line or table cell has some text
	pendingMark  string // due before the next text, such as the mark of a list entry
	hasTitle     bool
	lists        []list
	ignoredLists int    // number of open lists that are nested deeper than maxDepth
	pre          int    // number of open elements pre, whose white space is kept
	preOpened    bool   // the outermost pre has just begun
	cells        int    // number of cells in the present table row
	row          int    // offset of the present table row in the output
	href         []byte // URL of the link around the text, as written; nil: there is none
	openLink     string // resolved URL of the link whose "[" is written; empty: none is open

	skipTag        []byte          // name of the element that is left out or marked, as written; nil: there is none
	skipElement    element         // the element whose name is skipTag; 0: an element that this package does not know
	skipDepth      int             // number of open elements with the same name, including the skipped element
	innerDepth     int             // number of open elements in it for which [page.nests] is true
	skipReason     concealment     // way the page hides this element; shown: skipped for its name, like nav
	hidesText      bool            // some text of the page is hidden from people
	markHidden     bool            // the element is not skipped: its text is written, marked as hidden
	bracketPending bool            // the "[hidden text: " before the marked text is not written yet
	rules          map[string]bool // selectors TAG, .CLASS and #ID that style sheets hide
}

type list struct {
	ordered bool
	n       int
}

// render writes a document until its end, or until the window is full.
func (p *page) render(src []byte) {
	s := scanner{src: src}
	p.rules = map[string]bool{}
	for !p.out.full() {
		t := s.next()
		switch t.kind {
		case endToken:
			p.endLink()
			return
		case textToken:
			p.hidesText = p.hidesText || p.skipReason > hiddenFromReaders && p.skipTag != nil && len(bytes.TrimSpace(t.text)) > 0
			switch {
			case p.markHidden && t.name != elemTitle && t.name != elemTextarea:
				p.hiddenText(t.text)
			case p.skipTag != nil || t.name == elemTextarea:
			case t.name == elemTitle:
				p.title(t.text)
			default:
				p.text(t.text)
			}
		case rawToken:
			if t.name == elemStyle {
				p.readSheet(string(t.text[:min(len(t.text), maxSheet)]))
			}
		case openToken:
			p.open(t)
		case closeToken:
			p.close(t)
		}
	}
}

// maxAttribute limits the bytes of a title, a URL, an alternative text or, in the answers of
// DuckDuckGo only, a list of classes. A longer URL or alternative text is ignored; a longer
// title or list of classes is cut.
const maxAttribute = 1000

func (p *page) title(text []byte) {
	if p.hasTitle || p.out.written > 0 {
		return
	}
	p.hasTitle = true
	p.pendingMark = "Title: "
	p.text(text[:min(len(text), maxAttribute)])
	p.forceBreaks(2)
}

func (p *page) open(t token) {
	n := len(t.attrs)
	closed := n > 0 && t.attrs[n-1] == '/'
	if p.skipTag != nil && !p.openSkipped(t, closed) {
		return
	}
	if !closed && propertiesOf[t.name].skipped {
		p.skipIn(t, shown, false)
		return
	}
	if how := p.concealmentOf(t); how > hiddenFromReaders || how == hiddenFromReaders && propertiesOf[t.name].hideable {
		if !isAmong(t.tag, voidElements) {
			p.skipIn(t, how, how == hiddenBySheet || !propertiesOf[t.name].hideable)
		}
		return
	}
	switch t.name {
	case elemA:
		p.endLink()
		if href, ok := t.attribute("href"); ok && len(href) <= maxAttribute {
			p.href = href
		}
	case elemBase:
		if href, ok := t.attribute("href"); ok && p.base != nil && len(href) <= maxAttribute {
			if u, err := p.base.Parse(strings.TrimSpace(html.UnescapeString(string(href)))); err == nil && u.Host != "" {
				p.base = u
			}
		}
	case elemImg:
		if alt, ok := t.attribute("alt"); ok && len(bytes.TrimSpace(alt)) > 0 && len(alt) <= maxAttribute {
			if p.href != nil {
				p.text(alt)
				break
			}
			p.write("[image: ")
			p.text(alt)
			p.out.write("]")
		}
	case elemH1, elemH2, elemH3, elemH4, elemH5, elemH6:
		p.forceBreaks(2)
		p.pendingMark = "######"[:t.name-elemH1+1] + " "
	case elemBr:
		if p.pre > 0 {
			p.verbatim("\n")
		} else {
			p.requestBreaks(1)
		}
	case elemHr:
		p.forceBreaks(2)
		p.write("---")
		p.forceBreaks(2)
	case elemUl, elemOl, elemMenu:
		p.requestBreaks(1 + boolToInt(len(p.lists) == 0))
		if len(p.lists) == maxDepth {
			p.ignoredLists++
			break
		}
		p.lists = append(p.lists, list{ordered: t.name == elemOl})
	case elemLi:
		p.forceBreaks(1)
		p.pendingMark = "- "
		if n := len(p.lists); n > 0 && p.lists[n-1].ordered {
			p.lists[n-1].n++
			p.pendingMark = strconv.Itoa(p.lists[n-1].n) + ". "
		}
	case elemDt, elemDd:
		p.forceBreaks(1)
		if t.name == elemDd {
			p.pendingMark = "  "
		}
	case elemTr:
		p.endRow()
		p.cells, p.row = 0, p.out.written
	case elemTable:
		p.requestBreaks(2)
		p.cells = 0
	case elemTd, elemTh:
		p.endLink()
		switch {
		case p.cells > 0 && p.out.written > p.row:
			p.breaks, p.pendingBlank = 0, false
			p.out.write(" | ")
		case p.cells > 0:
			p.write("| ")
		}
		p.pendingBlank, p.lineStarted, p.pendingMark = false, false, ""
		p.cells++
	case elemPre:
		if p.pre == 0 {
			p.forceBreaks(2)
			p.write("```\n")
			p.preOpened = true
		}
		p.pre++
	case elemCode, elemKbd, elemSamp:
		if p.pre == 0 {
			p.write("`")
		}
	default:
		p.requestBreaks(propertiesOf[t.name].breaks)
	}
}

func (p *page) close(t token) {
	if p.skipTag != nil && !p.closeSkipped(t) {
		return
	}
	switch name := t.name; name {
	case elemA:
		p.endLink()
	case elemUl, elemOl, elemMenu:
		if p.ignoredLists > 0 {
			p.ignoredLists--
		} else if n := len(p.lists); n > 0 {
			p.lists = p.lists[:n-1]
		}
		p.forceBreaks(1 + boolToInt(len(p.lists) == 0))
	case elemH1, elemH2, elemH3, elemH4, elemH5, elemH6:
		p.forceBreaks(2)
	case elemPre:
		if p.pre == 1 {
			p.forceBreaks(1)
			p.write("```")
			p.forceBreaks(2)
		}
		p.pre = max(p.pre-1, 0)
	case elemCode, elemKbd, elemSamp:
		if p.pre == 0 && p.lineStarted {
			p.out.write("`")
		}
	case elemTr:
		p.endRow()
	case elemBr, elemHr, elemLi, elemTd, elemTh, elemDt, elemDd:
	default:
		p.requestBreaks(propertiesOf[name].breaks)
	}
}

// endRow ends the line of a table row, even if the last cell is still open.
func (p *page) endRow() {
	p.forceBreaks(1)
	if p.cells > 0 && p.breaks > 0 {
		p.breaks = 1
	}
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// resolve returns the URL of a link in its shortest form: on the page's own server only the
// part from the path on. It returns "" for a link within the page, for other schemes than http
// and https, and for a faulty or very long link.
func (p *page) resolve(href string) string {
	if p.base != nil && plainPath(href) {
		return href
	}
	href = strings.TrimSpace(href)
	if p.base == nil || href == "" || href[0] == '#' {
		return ""
	}
	u, err := p.base.Parse(href)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return ""
	}
	u.User = nil
	if u.Scheme == p.base.Scheme && u.Host == p.base.Host {
		u.Scheme, u.Host = "", ""
		if u.Path == "" {
			u.Path = "/"
		}
	}
	text := u.String()
	if strings.ContainsAny(text, "()") {
		text = strings.ReplaceAll(strings.ReplaceAll(text, "(", "%28"), ")", "%29")
	}
	if len(text) > maxAttribute {
		return ""
	}
	return text
}

// plainPath reports whether a link is surely in its shortest form already, as most links are.
func plainPath(href string) bool {
	if len(href) < 2 || href[0] != '/' || href[1] == '/' || strings.Contains(href, "/.") {
		return false
	}
	for i := range len(href) {
		if c := href[i]; !isLetter(c) && (c < '/' || c > '9') && c != '-' && c != '_' && c != '.' && c != '?' && c != '=' && c != '&' {
			return false
		}
	}
	return true
}

// requestBreaks asks for line ends before the next text, if the present line has text; in a
// list, for one. Within a link they become a blank.
func (p *page) requestBreaks(breaks int) {
	switch {
	case breaks == 0:
	case p.openLink != "":
		p.pendingBlank = true
	case len(p.lists) > 0 && p.lineStarted && p.pendingMark == "":
		p.breaks = max(p.breaks, 1)
	case p.lineStarted && p.pendingMark == "":
		p.breaks = max(p.breaks, breaks)
	}
}

// forceBreaks asks for line ends even in a line that has only a mark, and drops a mark that
// has no text yet.
func (p *page) forceBreaks(breaks int) {
	p.endLink()
	p.pendingMark = ""
	if p.out.written > 0 {
		p.breaks = max(p.breaks, breaks)
	}
}

// chunkBytes is the number of bytes of a text that are converted at a time, to limit memory.
const chunkBytes = 64 << 10

// text writes text, and replaces its entities by their characters.
func (p *page) text(b []byte) {
	for len(b) > 0 && !p.out.full() {
		n := min(len(b), chunkBytes)
		if n < len(b) { // do not cut within an entity
			if i := bytes.LastIndexAny(b[:n], " \n<>&"); i > 0 {
				n = i
			} else {
				n = wholeRunes(b[:n])
			}
		}
		text := string(b[:n])
		if strings.Contains(text, "&") {
			text = html.UnescapeString(text)
		}
		b = b[n:]
		if p.pre > 0 {
			p.verbatim(text)
			continue
		}
		p.writeWords(text)
	}
}

// Kinds of bytes in text whose white space is collapsed.
const (
	ordinary = iota
	blank    // the byte is white space
	suspect  // the byte is part of a character that may be invisible
)

var byteKinds = func() (table [256]byte) {
	for c := range table {
		switch {
		case c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f':
			table[c] = blank
		case c < ' ' || c >= 0x7f:
			table[c] = suspect
		}
	}
	return table
}()

// writeWords writes text and collapses its white space.
func (p *page) writeWords(text string) {
	for i := 0; i < len(text); {
		if byteKinds[text[i]] == blank {
			p.pendingBlank = true
			i++
			continue
		}
		start, seen := i, byte(0)
		for ; i < len(text); i++ { // up to white space that is more than a single blank
			kind := byteKinds[text[i]]
			if kind == blank && (text[i] != ' ' || i+1 == len(text) || byteKinds[text[i+1]] == blank) {
				break
			}
			seen |= kind &^ blank
		}
		word := text[start:i]
		if seen != 0 {
			word = clean(word)
		}
		if word != "" {
			p.write(word)
		}
	}
}

// write writes text, and before it all that is pending: line ends or a blank, a mark such as
// that of a list entry, and the opening bracket of a link.
func (p *page) write(text string) {
	p.writePending()
	if p.href != nil && p.openLink == "" {
		if p.openLink = p.resolve(html.UnescapeString(string(p.href))); p.openLink == "" {
			p.href = nil
		} else {
			p.out.write("[")
		}
	}
	p.out.write(text)
	p.lineStarted = true
}

// writePending writes the pending line ends, with the indentation of a list, or the pending
// blank, and then the pending mark.
func (p *page) writePending() {
	switch {
	case p.breaks > 0:
		p.out.write("\n\n"[:p.breaks-boolToInt(p.out.last == '\n')])
		p.out.write(strings.Repeat("  ", max(len(p.lists)-1, 0)))
	case p.pendingBlank && p.lineStarted:
		p.out.write(" ")
	}
	p.out.write(p.pendingMark)
	p.breaks, p.pendingBlank, p.pendingMark = 0, false, ""
}

// verbatim writes text with its white space.
func (p *page) verbatim(text string) {
	if p.breaks > 0 && p.out.last != '\n' {
		p.out.write("\n")
	}
	p.breaks, p.pendingBlank, p.lineStarted = 0, false, true
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if p.preOpened { // HTML ignores a line feed right after <pre>
		text = strings.TrimPrefix(text, "\n")
	}
	p.preOpened = false
	p.out.write(clean(text))
}

func (p *page) endLink() {
	if p.openLink != "" {
		p.out.write("](")
		p.out.write(p.openLink)
		p.out.write(")")
	}
	p.href, p.openLink = nil, ""
}

// clean removes most invisible characters, by which a page can tell a model something that
// people do not see: controls except newline and tab, zero-width spaces, direction overrides,
// tag characters, and the variation selectors from U+E0100 on, which can stand for bytes.
func clean(text string) string {
	i := 0
	for i < len(text) && byteKinds[text[i]] != suspect {
		i++
	}
	if i == len(text) || !strings.ContainsFunc(text[i:], isInvisible) {
		return text
	}
	return strings.Map(func(r rune) rune {
		if isInvisible(r) {
			return -1
		}
		return r
	}, text)
}

func isInvisible(r rune) bool {
	switch {
	case r < ' ':
		return r != '\n' && r != '\t'
	case r < 0x7f:
		return false
	}
	return r <= 0x9f || r == 0x200b || r >= 0x202a && r <= 0x202e || r >= 0x2060 && r <= 0x206f || r == 0xfeff || r >= 0xe0000 && r <= 0xe0fff
}

// window keeps a part of the text that is written to it, limit bytes from offset on, and drops
// the rest.
type window struct {
	offset, limit int
	written       int // number of bytes that were written so far
	last          byte
	buf           []byte
}

// full reports whether text was written behind the end of the window. Text before its offset
// does not count.
func (w *window) full() bool { return w.written-w.offset > w.limit } // a sum could overflow, as the offset may be any int

func (w *window) write(text string) {
	if text == "" {
		return
	}
	from := max(w.offset-w.written, 0)
	w.last = text[len(text)-1]
	w.written += len(text)
	if from >= len(text) {
		return
	}
	text = text[from:]
	// A few bytes more than limit are kept, to find the end of the last character.
	w.buf = append(w.buf, text[:min(len(text), max(w.limit+utf8.UTFMax-len(w.buf), 0))]...)
}

// text returns the kept text in whole characters, and the offset of the text after it; 0:
// nothing follows. If text follows, the kept text is cut at the end of a line or of a word, if
// one is near.
func (w *window) text() (text string, next int) {
	start := 0
	for start < len(w.buf) && start < utf8.UTFMax && !utf8.RuneStart(w.buf[start]) {
		start++
	}
	b := w.buf
	if w.full() {
		b = b[:min(len(b), w.limit)]
		for n := 0; n < utf8.UTFMax && len(b) > start && !utf8.RuneStart(w.buf[len(b)]); n++ {
			b = b[:len(b)-1]
		}
		const near = 500
		for _, end := range []byte("\n ") {
			if i := bytes.LastIndexByte(b, end); i > 0 && i >= len(b)-near {
				b = b[:i+1]
				break
			}
		}
		next = w.offset + len(b)
	}
	return strings.ToValidUTF8(string(b[min(start, len(b)):]), "\uFFFD"), next
}

// writePlain writes plain text until its end, or until the window is full.
func writePlain(out *window, src []byte) {
	for len(src) > 0 && !out.full() {
		n := min(len(src), chunkBytes)
		if n < len(src) {
			n = wholeRunes(src[:n])
		}
		text := clean(string(src[:n]))
		if !utf8.ValidString(text) {
			text = strings.ToValidUTF8(text, "\uFFFD")
		}
		out.write(text)
		src = src[n:]
	}
}

// isOneOf reports whether a media type is in a list. An entry that ends in a slash matches as
// a prefix, and an entry that begins with a + as a suffix.
func isOneOf(mediaType string, types ...string) bool {
	return slices.ContainsFunc(types, func(t string) bool {
		return mediaType == t || strings.HasPrefix(t, "+") && strings.HasSuffix(mediaType, t) || strings.HasSuffix(t, "/") && strings.HasPrefix(mediaType, t)
	})
}
