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

// maxDepth is how deep lists nest, as far as they are told apart.
const maxDepth = 16

// page writes what a person would read of an HTML document: headings, lists, tables
// and links as in Markdown, and text in between. Nothing of it depends on how deep the
// document nests.
type page struct {
	out  *window
	base *url.URL // of the links; nil: they are left out

	breaks       int    // line ends that stand before what comes next
	pendingBlank bool   // white space does
	lineStarted  bool   // something stands in this line, or in this cell
	pendingMark  string // stands before the text that comes next, such as that of a list
	hasTitle     bool
	lists        []list
	ignoredLists int    // lists within the last of these
	pre          int    // elements whose white space counts
	preOpened    bool   // the first of them, right here
	cells        int    // of this row
	row          int    // where it begins in what is written
	href         []byte // of the link that the text is in; nil: it is in none
	openLink     string // that, once its bracket is open

	skipTag        []byte          // the name of an element that is left out or marked, as written
	skipElement    element         // the same name
	skipDepth      int             // how many elements of that name are open, itself too
	innerDepth     int             // how many elements in it are open of which [page.nests] is true
	skipReason     concealment     // how the page hides it
	hidesText      bool            // the page hides some text
	markHidden     bool            // its text is written, marked as hidden by the page
	bracketPending bool            // none of its text was written yet
	rules          map[string]bool // TAG, .CLASS and #ID that style sheets hide
}

type list struct {
	ordered bool
	n       int
}

// render writes a document, until the window is full.
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

// maxAttribute is how long an attribute or a title may be to be looked at, in bytes.
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

// endRow ends the line of a row, whatever its cells end with.
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

// resolve is the URL of a link in its shortest form: below the page's own server
// without that. It is "" for what is no page of its own.
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

// plainPath reports whether a link is in its shortest form already, as most are.
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

// requestBreaks asks for line ends before what comes next. Within a link there are none.
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

// forceBreaks asks for line ends also where a block would begin in the line of a mark, and
// takes the place of a mark that nothing followed.
func (p *page) forceBreaks(breaks int) {
	p.endLink()
	p.pendingMark = ""
	if p.out.written > 0 {
		p.breaks = max(p.breaks, breaks)
	}
}

// chunkBytes is how much text is taken at a time, in bytes: what it becomes is in memory.
const chunkBytes = 64 << 10

// text writes text with entities.
func (p *page) text(b []byte) {
	for len(b) > 0 && !p.out.full() {
		n := min(len(b), chunkBytes)
		if n < len(b) { // not through an entity
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

// What a byte is in text of which white space is only that.
const (
	ordinary = iota
	blank    // white space
	suspect  // of a character that perhaps nobody sees
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

// writeWords writes text of which white space is only that.
func (p *page) writeWords(text string) {
	for i := 0; i < len(text); {
		if byteKinds[text[i]] == blank {
			p.pendingBlank = true
			i++
			continue
		}
		start, seen := i, byte(0)
		for ; i < len(text); i++ { // to where there is more than one blank between words
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

// write writes text after what is due before it.
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

// writePending writes line ends, the indentation of a list, or a blank.
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

// verbatim writes text of which white space counts.
func (p *page) verbatim(text string) {
	if p.breaks > 0 && p.out.last != '\n' {
		p.out.write("\n")
	}
	p.breaks, p.pendingBlank, p.lineStarted = 0, false, true
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if p.preOpened { // which is no line of its own
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

// clean leaves out characters that nobody sees, with which a page can tell a model what
// it does not show to a person: controls, overrides of the direction, tags,
// and selectors of variants, of which there is one for each byte.
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

// window keeps a part of what is written to it: so many bytes from an offset on.
type window struct {
	offset, limit int
	written       int // bytes that were written
	last          byte
	buf           []byte
}

// full reports whether more was written than is kept.
func (w *window) full() bool { return w.written-w.offset > w.limit } // an offset may be as large as a number can be

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
	// A little more is kept than is asked for, to know where it can be cut.
	w.buf = append(w.buf, text[:min(len(text), max(w.limit+utf8.UTFMax-len(w.buf), 0))]...)
}

// text is what was kept, from one character to another, and where what follows begins;
// 0 if nothing does. It is cut at the end of a line or of a word, if there is one near
// the end.
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

// writePlain writes text as it is, until the window is full.
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

// isOneOf reports whether a media type is one of those, or ends in +SUFFIX of one.
func isOneOf(mediaType string, types ...string) bool {
	return slices.ContainsFunc(types, func(t string) bool {
		return mediaType == t || strings.HasPrefix(t, "+") && strings.HasSuffix(mediaType, t) || strings.HasSuffix(t, "/") && strings.HasPrefix(mediaType, t)
	})
}
