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

	breaks int    // line ends that stand before what comes next
	blank  bool   // white space does
	begun  bool   // something stands in this line, or in this cell
	mark   string // stands before the text that comes next, such as that of a list
	titled bool
	lists  []list
	deeper int    // lists within the last of these
	pre    int    // elements whose white space counts
	opened bool   // the first of them, right here
	cells  int    // of this row
	row    int    // where it begins in what is written
	href   []byte // of the link that the text is in; nil: it is in none
	link   string // that, once its bracket is open

	skip    []byte          // the name of an element that is left out or marked, as written
	skipped element         // the same name
	level   int             // how many elements of that name are open, itself too
	inner   int             // how many elements in it are open of which [page.holds] is true
	how     concealment     // how the page hides it
	hides   bool            // the page hides some text
	marked  bool            // its text is written, marked as hidden by the page
	begins  bool            // none of its text was written yet
	rules   map[string]bool // TAG, .CLASS and #ID that style sheets hide
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
			p.hides = p.hides || p.how > hiddenFromReaders && p.skip != nil && len(bytes.TrimSpace(t.text)) > 0
			switch {
			case p.marked && t.name != elemTitle && t.name != elemTextarea:
				p.hiddenText(t.text)
			case p.skip != nil || t.name == elemTextarea:
			case t.name == elemTitle:
				p.title(t.text)
			default:
				p.text(t.text)
			}
		case rawToken:
			if t.name == elemStyle {
				p.sheet(string(t.text[:min(len(t.text), maxSheet)]))
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
	if p.titled || p.out.seen > 0 {
		return
	}
	p.titled = true
	p.mark = "Title: "
	p.text(text[:min(len(text), maxAttribute)])
	p.force(2)
}

func (p *page) open(t token) {
	n := len(t.attrs)
	closed := n > 0 && t.attrs[n-1] == '/'
	if p.skip != nil && !p.openSkipped(t, closed) {
		return
	}
	if !closed && of[t.name].skipped {
		p.skipIn(t, shown, false)
		return
	}
	if how := p.hidden(t); how > hiddenFromReaders || how == hiddenFromReaders && of[t.name].hideable {
		if !isAmong(t.tag, void) {
			p.skipIn(t, how, how == hiddenBySheet || !of[t.name].hideable)
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
		p.force(2)
		p.mark = "######"[:t.name-elemH1+1] + " "
	case elemBr:
		if p.pre > 0 {
			p.verbatim("\n")
		} else {
			p.block(1)
		}
	case elemHr:
		p.force(2)
		p.write("---")
		p.force(2)
	case elemUl, elemOl, elemMenu:
		p.block(1 + bit(len(p.lists) == 0))
		if len(p.lists) == maxDepth {
			p.deeper++
			break
		}
		p.lists = append(p.lists, list{ordered: t.name == elemOl})
	case elemLi:
		p.force(1)
		p.mark = "- "
		if n := len(p.lists); n > 0 && p.lists[n-1].ordered {
			p.lists[n-1].n++
			p.mark = strconv.Itoa(p.lists[n-1].n) + ". "
		}
	case elemDt, elemDd:
		p.force(1)
		if t.name == elemDd {
			p.mark = "  "
		}
	case elemTr:
		p.endRow()
		p.cells, p.row = 0, p.out.seen
	case elemTable:
		p.block(2)
		p.cells = 0
	case elemTd, elemTh:
		p.endLink()
		switch {
		case p.cells > 0 && p.out.seen > p.row:
			p.breaks, p.blank = 0, false
			p.out.write(" | ")
		case p.cells > 0:
			p.write("| ")
		}
		p.blank, p.begun, p.mark = false, false, ""
		p.cells++
	case elemPre:
		if p.pre == 0 {
			p.force(2)
			p.write("```\n")
			p.opened = true
		}
		p.pre++
	case elemCode, elemKbd, elemSamp:
		if p.pre == 0 {
			p.write("`")
		}
	default:
		p.block(of[t.name].breaks)
	}
}

func (p *page) close(t token) {
	if p.skip != nil && !p.closeSkipped(t) {
		return
	}
	switch name := t.name; name {
	case elemA:
		p.endLink()
	case elemUl, elemOl, elemMenu:
		if p.deeper > 0 {
			p.deeper--
		} else if n := len(p.lists); n > 0 {
			p.lists = p.lists[:n-1]
		}
		p.force(1 + bit(len(p.lists) == 0))
	case elemH1, elemH2, elemH3, elemH4, elemH5, elemH6:
		p.force(2)
	case elemPre:
		if p.pre == 1 {
			p.force(1)
			p.write("```")
			p.force(2)
		}
		p.pre = max(p.pre-1, 0)
	case elemCode, elemKbd, elemSamp:
		if p.pre == 0 && p.begun {
			p.out.write("`")
		}
	case elemTr:
		p.endRow()
	case elemBr, elemHr, elemLi, elemTd, elemTh, elemDt, elemDd:
	default:
		p.block(of[name].breaks)
	}
}

// endRow ends the line of a row, whatever its cells end with.
func (p *page) endRow() {
	p.force(1)
	if p.cells > 0 && p.breaks > 0 {
		p.breaks = 1
	}
}

func bit(b bool) int {
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
		if c := href[i]; !letter(c) && (c < '/' || c > '9') && c != '-' && c != '_' && c != '.' && c != '?' && c != '=' && c != '&' {
			return false
		}
	}
	return true
}

// block asks for line ends before what comes next. Within a link there are none.
func (p *page) block(breaks int) {
	switch {
	case breaks == 0:
	case p.link != "":
		p.blank = true
	case len(p.lists) > 0 && p.begun && p.mark == "":
		p.breaks = max(p.breaks, 1)
	case p.begun && p.mark == "":
		p.breaks = max(p.breaks, breaks)
	}
}

// force asks for line ends also where a block would begin in the line of a mark, and
// takes the place of a mark that nothing followed.
func (p *page) force(breaks int) {
	p.endLink()
	p.mark = ""
	if p.out.seen > 0 {
		p.breaks = max(p.breaks, breaks)
	}
}

// piece is how much text is taken at a time, in bytes: what it becomes is in memory.
const piece = 64 << 10

// text writes text with entities.
func (p *page) text(b []byte) {
	for len(b) > 0 && !p.out.full() {
		n := min(len(b), piece)
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
		p.words(text)
	}
}

// What a byte is in text of which white space is only that.
const (
	ordinary = iota
	blank    // white space
	suspect  // of a character that perhaps nobody sees
)

var kinds = func() (table [256]byte) {
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

// words writes text of which white space is only that.
func (p *page) words(text string) {
	for i := 0; i < len(text); {
		if kinds[text[i]] == blank {
			p.blank = true
			i++
			continue
		}
		start, seen := i, byte(0)
		for ; i < len(text); i++ { // to where there is more than one blank between words
			kind := kinds[text[i]]
			if kind == blank && (text[i] != ' ' || i+1 == len(text) || kinds[text[i+1]] == blank) {
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
	p.due()
	if p.href != nil && p.link == "" {
		if p.link = p.resolve(html.UnescapeString(string(p.href))); p.link == "" {
			p.href = nil
		} else {
			p.out.write("[")
		}
	}
	p.out.write(text)
	p.begun = true
}

// due writes line ends, the indentation of a list, or a blank.
func (p *page) due() {
	switch {
	case p.breaks > 0:
		p.out.write("\n\n"[:p.breaks-bit(p.out.last == '\n')])
		p.out.write(strings.Repeat("  ", max(len(p.lists)-1, 0)))
	case p.blank && p.begun:
		p.out.write(" ")
	}
	p.out.write(p.mark)
	p.breaks, p.blank, p.mark = 0, false, ""
}

// verbatim writes text of which white space counts.
func (p *page) verbatim(text string) {
	if p.breaks > 0 && p.out.last != '\n' {
		p.out.write("\n")
	}
	p.breaks, p.blank, p.begun = 0, false, true
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if p.opened { // which is no line of its own
		text = strings.TrimPrefix(text, "\n")
	}
	p.opened = false
	p.out.write(clean(text))
}

func (p *page) endLink() {
	if p.link != "" {
		p.out.write("](")
		p.out.write(p.link)
		p.out.write(")")
	}
	p.href, p.link = nil, ""
}

// clean leaves out characters that nobody sees, with which a page can tell a model what
// it does not show to a person: controls, overrides of the direction, tags,
// and selectors of variants, of which there is one for each byte.
func clean(text string) string {
	i := 0
	for i < len(text) && kinds[text[i]] != suspect {
		i++
	}
	if i == len(text) || !strings.ContainsFunc(text[i:], unseen) {
		return text
	}
	return strings.Map(func(r rune) rune {
		if unseen(r) {
			return -1
		}
		return r
	}, text)
}

func unseen(r rune) bool {
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
	seen          int // bytes that were written
	last          byte
	buf           []byte
}

// full reports whether more was written than is kept.
func (w *window) full() bool { return w.seen-w.offset > w.limit } // an offset may be as large as a number can be

func (w *window) write(text string) {
	if text == "" {
		return
	}
	from := max(w.offset-w.seen, 0)
	w.last = text[len(text)-1]
	w.seen += len(text)
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

// plain writes text as it is, until the window is full.
func plain(out *window, src []byte) {
	for len(src) > 0 && !out.full() {
		n := min(len(src), piece)
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
