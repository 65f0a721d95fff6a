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

// elements are those that mean something to a page.
var elements = strings.Fields("a address article aside audio base blockquote body br button canvas caption center code dd details dialog div dl dt " +
	"embed fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 head header hr html iframe img kbd li link main math menu meta nav noembed noframes object " +
	"ol option p pre samp script section select span style summary svg table tbody td template textarea tfoot th thead title tr ul video xmp")

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
	link   string // what the text is a link to
	inLink bool   // its bracket is open

	skip  string // the element whose content is left out
	level int    // of elements of that name within
}

type list struct {
	ordered bool
	n       int
}

// skipped are elements whose content no person reads as text.
func skipped(name string) bool {
	switch name {
	case "nav", "svg", "template", "select", "button", "canvas", "audio", "video", "object", "dialog":
		return true
	}
	return false
}

// hideable are elements of which an attribute says that they are not shown. Others may
// have no end tag, and then nobody knows what is hidden.
func hideable(name string) bool {
	switch name {
	case "a", "article", "aside", "details", "div", "figure", "footer", "form", "header", "main", "ol", "section", "span", "table", "ul":
		return true
	}
	return false
}

// render writes a document, until the window is full.
func (p *page) render(src []byte) {
	s := scanner{src: src}
	for !p.out.full() {
		t := s.next()
		switch t.kind {
		case endToken:
			p.endLink()
			return
		case textToken:
			switch {
			case p.skip != "" || t.name == "textarea":
			case t.name == "title":
				p.title(t.text)
			default:
				p.text(t.text)
			}
		case openToken:
			p.open(t)
		case closeToken:
			p.close(t.name)
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
	closed := bytes.HasSuffix(t.attrs, []byte("/"))
	if p.skip != "" {
		if t.name == p.skip && !closed {
			p.level++
		}
		return
	}
	if !closed && (skipped(t.name) || hideable(t.name) && hidden(t)) {
		p.skip, p.level = t.name, 1
		return
	}
	switch t.name {
	case "a":
		p.endLink()
		if href, ok := t.attribute("href"); ok && len(href) <= maxAttribute {
			p.link = p.resolve(html.UnescapeString(string(href)))
		}
	case "base":
		if href, ok := t.attribute("href"); ok && p.base != nil && len(href) <= maxAttribute {
			if u, err := p.base.Parse(strings.TrimSpace(html.UnescapeString(string(href)))); err == nil && u.Host != "" {
				p.base = u
			}
		}
	case "img":
		if alt, ok := t.attribute("alt"); ok && len(bytes.TrimSpace(alt)) > 0 && len(alt) <= maxAttribute {
			if p.link != "" {
				p.text(alt)
				break
			}
			p.write("[image: ")
			p.text(alt)
			p.out.write("]")
		}
	case "h1", "h2", "h3", "h4", "h5", "h6":
		p.force(2)
		p.mark = "######"[:t.name[1]-'0'] + " "
	case "br":
		if p.pre > 0 {
			p.verbatim("\n")
		} else {
			p.block(1)
		}
	case "hr":
		p.force(2)
		p.write("---")
		p.force(2)
	case "ul", "ol", "menu":
		p.block(1 + bit(len(p.lists) == 0))
		if len(p.lists) == maxDepth {
			p.deeper++
			break
		}
		p.lists = append(p.lists, list{ordered: t.name == "ol"})
	case "li":
		p.force(1)
		p.mark = "- "
		if n := len(p.lists); n > 0 && p.lists[n-1].ordered {
			p.lists[n-1].n++
			p.mark = strconv.Itoa(p.lists[n-1].n) + ". "
		}
	case "dt", "dd":
		p.force(1)
		if t.name == "dd" {
			p.mark = "  "
		}
	case "tr":
		p.endRow()
		p.cells, p.row = 0, p.out.seen
	case "table":
		p.block(2)
		p.cells = 0
	case "td", "th":
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
	case "pre":
		if p.pre == 0 {
			p.force(2)
			p.write("```\n")
			p.opened = true
		}
		p.pre++
	case "code", "kbd", "samp":
		if p.pre == 0 {
			p.write("`")
		}
	default:
		p.block(breaksAt(t.name))
	}
}

func (p *page) close(name string) {
	if p.skip != "" {
		if name == p.skip {
			if p.level--; p.level == 0 {
				p.skip = ""
			}
		}
		return
	}
	switch name {
	case "a":
		p.endLink()
	case "ul", "ol", "menu":
		if p.deeper > 0 {
			p.deeper--
		} else if n := len(p.lists); n > 0 {
			p.lists = p.lists[:n-1]
		}
		p.force(1 + bit(len(p.lists) == 0))
	case "h1", "h2", "h3", "h4", "h5", "h6":
		p.force(2)
	case "pre":
		if p.pre == 1 {
			p.force(1)
			p.write("```")
			p.force(2)
		}
		p.pre = max(p.pre-1, 0)
	case "code", "kbd", "samp":
		if p.pre == 0 && p.begun {
			p.out.write("`")
		}
	case "tr":
		p.endRow()
	case "br", "hr", "li", "td", "th", "dt", "dd":
	default:
		p.block(breaksAt(name))
	}
}

// endRow ends the line of a row, whatever its cells end with.
func (p *page) endRow() {
	p.force(1)
	if p.cells > 0 && p.breaks > 0 {
		p.breaks = 1
	}
}

// breaksAt is how many line ends stand where a block begins and ends.
func breaksAt(name string) int {
	switch name {
	case "p", "blockquote", "table", "figure", "article", "section", "header", "footer", "main", "aside", "dl", "details", "fieldset":
		return 2
	case "div", "form", "address", "center", "summary", "figcaption", "caption", "option", "thead", "tbody", "tfoot", "body":
		return 1
	}
	return 0
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// hidden reports whether a tag says that what is in the element is not shown.
func hidden(t token) bool {
	if len(t.attrs) < len(" hidden") {
		return false
	}
	a := attributes{src: t.attrs}
	for a.next() {
		switch {
		case bytes.EqualFold(a.name, []byte("hidden")):
			return true
		case bytes.EqualFold(a.name, []byte("aria-hidden")):
			if bytes.EqualFold(a.value, []byte("true")) {
				return true
			}
		case bytes.EqualFold(a.name, []byte("style")):
			style := strings.ToLower(strings.Join(strings.Fields(string(a.value[:min(len(a.value), maxAttribute)])), ""))
			if strings.Contains(style, "display:none") || strings.Contains(style, "visibility:hidden") {
				return true
			}
		}
	}
	return false
}

// resolve is the URL of a link in its shortest form: below the page's own server
// without that. It is "" for what is no page of its own.
func (p *page) resolve(href string) string {
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
	text := strings.NewReplacer("(", "%28", ")", "%29").Replace(u.String())
	if len(text) > maxAttribute {
		return ""
	}
	return text
}

// block asks for line ends before what comes next. Within a link there are none.
func (p *page) block(breaks int) {
	switch {
	case breaks == 0:
	case p.inLink:
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
				for n > 0 && !utf8.RuneStart(b[n]) {
					n--
				}
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

// words writes text of which white space is only that.
func (p *page) words(text string) {
	for text != "" {
		n := strings.IndexFunc(text, func(r rune) bool { return r > ' ' })
		if n != 0 {
			p.blank = true
			if n < 0 {
				return
			}
			text = text[n:]
		}
		end := strings.IndexAny(text, " \n\t\r\f")
		if end < 0 {
			end = len(text)
		}
		if word := clean(text[:end]); word != "" {
			p.write(word)
		}
		text = text[end:]
	}
}

// write writes text after what is due before it.
func (p *page) write(text string) {
	p.due()
	if p.link != "" && !p.inLink {
		p.inLink = true
		p.out.write("[")
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
	if p.inLink {
		p.out.write("](" + p.link + ")")
	}
	p.link, p.inLink = "", false
}

// clean leaves out characters that nobody sees, with which a page can tell a model what
// it does not show to a person: controls, overrides of the direction, and tags.
func clean(text string) string {
	unseen := func(r rune) bool {
		switch {
		case r < ' ':
			return r != '\n' && r != '\t'
		case r < 0x7f:
			return false
		}
		return r <= 0x9f || r == 0x200b || r >= 0x202a && r <= 0x202e || r >= 0x2060 && r <= 0x2069 || r == 0xfeff ||
			r >= 0xe0000 && r <= 0xe007f
	}
	if !strings.ContainsFunc(text, unseen) {
		return text
	}
	return strings.Map(func(r rune) rune {
		if unseen(r) {
			return -1
		}
		return r
	}, text)
}

// window keeps a part of what is written to it: so many bytes from an offset on.
type window struct {
	offset, limit int
	seen          int // bytes that were written
	last          byte
	buf           []byte
}

// full reports whether more was written than is kept.
func (w *window) full() bool { return w.seen > w.offset+w.limit }

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
		for n < len(src) && n > 0 && !utf8.RuneStart(src[n]) {
			n--
		}
		if n == 0 {
			n = min(len(src), piece)
		}
		out.write(clean(strings.ToValidUTF8(string(src[:n]), "\uFFFD")))
		src = src[n:]
	}
}

// isOneOf reports whether a media type is one of those, or ends in +SUFFIX of one.
func isOneOf(mediaType string, types ...string) bool {
	return slices.ContainsFunc(types, func(t string) bool {
		return mediaType == t || strings.HasPrefix(t, "+") && strings.HasSuffix(mediaType, t) || strings.HasSuffix(t, "/") && strings.HasPrefix(mediaType, t)
	})
}
