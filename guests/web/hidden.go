package main

import (
	"bytes"
	"html"
	"slices"
	"strconv"
	"strings"
)

// Limits on the style sheets of a page; what exceeds them is ignored.
const (
	maxSheet = 64 << 10 // bytes of each style sheet
	maxRules = 1000     // selectors, in all sheets together; the rule that exceeds it is still read
)

type concealment int

const (
	shown             concealment = iota
	hiddenFromReaders             // hidden from screen readers by aria-hidden, but people see it
	hiddenBySheet                 // hidden by a style sheet
	hiddenByPage                  // hidden by the element's own attributes
)

// concealmentOf returns the way in which a tag or an earlier style sheet hides the element.
func (p *page) concealmentOf(t token) (how concealment) {
	if p.hiddenByRule("", t.tag) {
		how = hiddenBySheet
	}
	a := attributes{src: t.attrs}
	for a.next() {
		switch {
		case hasName(a.name, "hidden"), hasName(a.name, "style") && conceals(html.UnescapeString(string(a.value))):
			return hiddenByPage
		case hasName(a.name, "id") && p.hiddenByRule("#", a.value), hasName(a.name, "class") && p.hiddenByRule(".", a.value):
			how = hiddenBySheet
		case how == shown && hasName(a.name, "aria-hidden") && bytes.EqualFold(a.value, []byte("true")):
			how = hiddenFromReaders
		}
	}
	return how
}

// hiddenByRule reports whether a style sheet hides one of the names. White space separates the
// names, and case does not matter. mark is the character before a name in a selector: "." for
// classes, "#" for IDs, or nothing for elements.
func (p *page) hiddenByRule(mark string, names []byte) bool {
	return len(p.rules) > 0 && slices.ContainsFunc(strings.Fields(strings.ToLower(html.UnescapeString(string(names)))), func(name string) bool { return p.rules[mark+name] })
}

// readSheet records the elements, classes and IDs that a style sheet hides by a rule for them
// alone, such as p or .note; p.note counts as .note. It ignores rules in conditional blocks,
// such as for a kind of device, and rules for the whole page, which scripts show later.
func (p *page) readSheet(text string) {
	depth, start := 0, 0
	selectors := ""
	text = stripComments(text)
	for i := range len(text) {
		switch c := text[i]; {
		case c == '{' && depth == 0 && unconditional(text[start:i]), c == '}' && depth == 0:
			start = i + 1
		case c == '{':
			if depth++; depth == 1 {
				selectors, start = text[start:i], i+1
			}
		case c == ';' && depth == 0:
			start = i + 1
		case c == '}':
			if depth--; depth > 0 || len(p.rules) >= maxRules {
				continue
			}
			if body := text[start:i]; !strings.Contains(body, "{") && conceals(body) {
				for selector := range strings.SplitSeq(selectors, ",") {
					selector = strings.TrimSpace(selector)
					at := max(strings.IndexAny(selector, ".#"), 0)
					if selector == "" || isAmong([]byte(selector), " html body ") || strings.ContainsAny(selector[at+1:], ".#") || strings.ContainsAny(selector, ":[>+~ \t\n*@") {
						continue
					}
					p.rules[strings.ToLower(selector[at:])] = true
				}
			}
			start = i + 1
		}
	}
}

// unconditional reports whether a block of CSS rules is one of @media or @layer, without
// "print" or a parenthesis in front: such rules are taken to apply on every screen. before is
// the text between the previous rule and the block.
func unconditional(before string) bool {
	before = strings.ToLower(strings.TrimSpace(before))
	return (strings.HasPrefix(before, "@media") || strings.HasPrefix(before, "@layer")) && !strings.Contains(before, "print") && !strings.Contains(before, "(")
}

// conceals reports whether CSS declarations hide an element. Of overflow, background and color
// the last counts, but color:transparent always hides; any other one that hides counts even if
// a later one shows the element. A backslash hides, since a CSS escape can disguise a word.
func conceals(style string) bool {
	color, back := "-", ""
	var hides, tiny, clipped bool
	for decl := range strings.SplitSeq(strings.ToLower(stripComments(style)), ";") {
		key, value, _ := strings.Cut(strings.Join(strings.Fields(decl), ""), ":")
		value = strings.TrimSuffix(value, "!important")
		n, err := strconv.ParseFloat(strings.TrimRight(value, "abcdefghijklmnopqrstuvwxyz%"), 64)
		switch key {
		case "display", "visibility":
			hides = hides || value == "none" || value == "hidden" || value == "collapse"
		case "opacity", "font-size":
			hides = hides || err == nil && n < 0.02
		case "left", "right", "top", "bottom", "text-indent", "margin-left", "margin-top":
			hides = hides || err == nil && n <= -500 // off the screen
		case "clip", "clip-path", "transform":
			hides = hides || slices.ContainsFunc([]string{"rect(0", "rect(1px", "inset(50%", "inset(100%", "scale(0)"}, func(s string) bool { return strings.HasPrefix(value, s) })
		case "width", "height", "max-width", "max-height":
			tiny = tiny || err == nil && n <= 1 && !strings.HasSuffix(value, "em")
		case "overflow":
			clipped = value == "hidden" || value == "clip"
		case "color":
			color = plainColor.Replace(value)
			hides = hides || color == "transparent"
		case "background", "background-color":
			back = plainColor.Replace(value)
		}
	}
	return hides || tiny && clipped || color == back || strings.Contains(style, `\`)
}

var plainColor = strings.NewReplacer("#ffffff", "#fff", "white", "#fff", "rgb(255,255,255)", "#fff", "#000000", "#000", "black", "#000", "rgb(0,0,0)", "#000")

func stripComments(css string) string {
	if !strings.Contains(css, "/*") {
		return css
	}
	var b strings.Builder
	for css != "" {
		before, comment, _ := strings.Cut(css, "/*")
		b.WriteString(before)
		_, css, _ = strings.Cut(comment, "*/")
	}
	return b.String()
}

// isAmong reports whether a tag, in upper or lower case, is in a list. Each entry of the list
// is in lower case and has blanks on both sides.
func isAmong(tag []byte, list string) bool {
	return strings.Contains(list, " "+strings.ToLower(string(tag))+" ")
}

// voidElements lists the elements without content.
const voidElements = " area base br col embed hr img input link meta param source track wbr "

// impliedEnds lists the start tags that end an open element, by the name of that element; its
// end tag may be missing.
var impliedEnds = map[string]string{
	"li": " li ", "dt": " dt dd ", "dd": " dt dd ", "tr": " tr ", "td": " td th tr ", "th": " td th tr ",
	"p": " h1 h2 h3 h4 h5 h6 hr ul ol menu pre li dt dd tr td th address article aside blockquote details div dl fieldset figcaption figure footer form header main p section table ",
}

// skipIn begins to leave out an element or, if marked is set, to mark its text.
func (p *page) skipIn(t token, how concealment, marked bool) {
	p.skipTag, p.skipElement, p.skipDepth, p.innerDepth, p.skipReason, p.markHidden, p.bracketPending = t.tag, t.name, 1, 0, how, marked, marked
}

// nests reports whether an element with this name is counted in innerDepth while it is open
// inside the skipped element. As long as one is open, no end tag ends the skipped element.
func (p *page) nests(name element) bool {
	return name == elemTable || !propertiesOf[p.skipElement].hideable && (propertiesOf[name].hideable && name != elemA || isAmong([]byte(name.String()), " menu dl "))
}

// openSkipped handles a start tag inside a skipped or marked element. ended reports whether
// the tag has ended that element, which ends at the same place as in a browser, or later.
func (p *page) openSkipped(t token, closed bool) (ended bool) {
	skip := strings.ToLower(string(p.skipTag))
	switch {
	case (p.innerDepth == 0 || skip == "p") && isAmong(t.tag, impliedEnds[skip]):
		p.endSkip()
		return true
	case bytes.EqualFold(t.tag, p.skipTag) && !(closed && propertiesOf[t.name].skipped):
		p.skipDepth++
	case p.nests(t.name):
		p.innerDepth++
	}
	p.pendingBlank = p.pendingBlank || p.markHidden
	return false
}

// closeSkipped handles an end tag inside a skipped or marked element. ended reports whether
// the tag has also ended the element around that element.
func (p *page) closeSkipped(t token) (ended bool) {
	switch {
	case p.innerDepth > 0:
		p.innerDepth -= boolToInt(p.nests(t.name))
	case bytes.EqualFold(t.tag, p.skipTag):
		p.skipDepth--
	case isAmong(t.tag, " ul ol menu dl table tr ") && impliedEnds[strings.ToLower(string(p.skipTag))] != "":
		p.skipDepth, ended = 0, true
	}
	p.pendingBlank = p.pendingBlank || p.markHidden
	if p.skipDepth == 0 {
		p.endSkip()
	}
	return ended
}

func (p *page) endSkip() {
	if p.markHidden {
		p.pendingBlank = false
		if !p.bracketPending {
			p.out.write("]")
		}
		p.requestBreaks(propertiesOf[p.skipElement].breaks)
	}
	p.skipTag, p.markHidden = nil, false
}

var bracketReplacer = strings.NewReplacer("[", "(", "]", ")")

// hiddenText writes text that the page hides, in brackets that the text cannot close.
func (p *page) hiddenText(text []byte) {
	plain := bracketReplacer.Replace(html.UnescapeString(string(text)))
	if p.bracketPending && strings.TrimSpace(plain) != "" {
		p.write("[hidden text: ")
		p.bracketPending, p.pendingBlank = false, false
	}
	if !p.bracketPending {
		p.writeWords(plain)
	}
}
