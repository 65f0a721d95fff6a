package paths

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// component is one name of a path, in all forms that some file system treats as the same name.
type component struct {
	given string    // the name as it is written
	forms [2]string // folded; the second is without a Windows stream (":..."), and empty without one
	short string    // part of a Windows short name before "~1"; empty: it is no short name
}

// components appends the components of a path.
func components(out []component, name string) []component {
	for part := range strings.SplitSeq(name, "/") {
		if part != "" {
			out = append(out, componentOf(part))
		}
	}
	return out
}

func componentOf(name string) component {
	c := component{given: name}
	if simple(name) {
		c.forms[0] = name
		return c
	}
	c.forms[0] = fold(name)
	if file, _, ok := strings.Cut(c.forms[0], ":"); ok {
		c.forms[1] = trimmed(file)
	}
	file, _, _ := strings.Cut(c.forms[0], ".")
	if i := strings.LastIndexByte(file, '~'); i > 0 && i+1 < len(file) && strings.Trim(file[i+1:], "0123456789") == "" {
		c.short = file[:i]
	}
	return c
}

// simple reports whether a name has only one form. Most names do.
func simple(name string) bool {
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '_' || c == '-':
		case c == '.' && i+1 < len(name):
		default:
			return false
		}
	}
	return true
}

// fold returns the form in which names are compared: without case, compatibility forms,
// composed accents and invisible characters, and without the dots and blanks at the end that
// Windows drops.
func fold(name string) string {
	if strings.IndexFunc(name, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
		return trimmed(strings.ToLower(name))
	}
	name = strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
			return -1
		}
		return r
	}, norm.NFKD.String(name))
	return trimmed(norm.NFKD.String(strings.ToLower(strings.ToUpper(name))))
}

func trimmed(name string) string { return strings.TrimRight(name, ". ") }

// isHarmless reports whether the name, the last of a path, marks a file without a secret.
func (c component) isHarmless() bool {
	return harmless(c.forms[0]) && (c.forms[1] == "" || harmless(c.forms[1]))
}

func harmless(form string) bool {
	for _, end := range []string{".example", ".sample", ".template", ".pub", "-example", "-sample", "_example", "_sample"} {
		if strings.HasSuffix(form, end) {
			return true
		}
	}
	return false
}

// original returns the component without the additions of people and programs to the name of a
// backup, such as "~", ".bak", "-old", ".1", ".2026-01-31" or "#" on both sides. backup
// reports whether there were any.
func (c *component) original() (_ component, backup bool) {
	out := component{given: c.given}
	for i, form := range c.forms {
		name, swap := withoutEnds(form)
		out.forms[i] = name
		backup = backup || len(name) != len(form)
		if hidden, ok := strings.CutPrefix(name, "."); ok && swap && c.forms[1] == "" {
			out.forms[1] = hidden // the editor has added the dot
			break
		}
	}
	return out, backup
}

// withoutEnds returns a name without the additions for a backup. swap reports whether it is
// the name of an editor's swap file.
func withoutEnds(name string) (_ string, swap bool) {
	if strings.HasPrefix(name, "#") && strings.HasSuffix(name, "#") && len(name) > 2 {
		name = name[1 : len(name)-1]
	} else if strings.HasPrefix(name, ".#") && len(name) > 2 {
		name = name[2:]
	}
	for {
		at := len(name) - 1
		for at > 0 && !separates(name[at]) {
			at--
		}
		if at <= 0 {
			return name, swap
		}
		switch end := name[at+1:]; {
		case len(end) == 3 && end[:2] == "sw" && 'a' <= end[2] && end[2] <= 'z':
			swap = true
		case !number(end) && !backupEnds[end]:
			return name, swap
		}
		if name = trimmed(name[:at]); name == "" {
			return name, swap
		}
	}
}

// separates reports whether c can stand before an ending for backups.
func separates(c byte) bool { return c == '.' || c == '-' || c == '_' || c == '~' || c == ' ' }

var backupEnds = map[string]bool{
	"": true, "bak": true, "bck": true, "bk": true, "bkp": true, "backup": true, "old": true, "orig": true, "original": true,
	"save": true, "saved": true, "copy": true, "prev": true, "previous": true, "new": true, "tmp": true, "temp": true,
	"dpkg": true, "ucf": true, "rpmsave": true, "rpmnew": true, "rpmorig": true, "pacsave": true, "pacnew": true,
}

// number reports whether an ending is a number, a date or a time, maybe in brackets.
func number(end string) bool {
	if len(end) > 2 && end[0] == '(' && end[len(end)-1] == ')' {
		end = end[1 : len(end)-1]
	}
	return end != "" && '0' <= end[0] && end[0] <= '9' && strings.Trim(end, "0123456789tz:") == ""
}

// part is one name of a pattern.
type part struct {
	text   string // folded, without the star
	star   byte   // 0: none; '<': any characters before text; '>': any after text
	short6 string // first six characters, or fewer, of a Windows short name for the part
}

// anyNames is the text of a part that matches any number of names.
const anyNames = "**"

func partOf(text string) part {
	p := part{text: text}
	switch {
	case text == anyNames:
		return p
	case strings.HasPrefix(text, "*"):
		return part{text: fold(text[1:]), star: '<'}
	case strings.HasSuffix(text, "*"):
		p.text, p.star = strings.ToLower(text[:len(text)-1]), '>'
	default:
		p.text = fold(text)
	}
	base, _, _ := strings.Cut(strings.TrimLeft(p.text, "."), ".")
	p.short6 = base[:min(len(base), 6)]
	return p
}

// is reports whether the part may match the name.
func (c *component) is(p part) bool {
	if c.short != "" && c.short == p.short6 {
		return true
	}
	return p.fits(c.forms[0]) || c.forms[1] != "" && p.fits(c.forms[1])
}

func (p part) fits(form string) bool {
	switch p.star {
	case '<':
		return strings.HasSuffix(form, p.text)
	case '>':
		return strings.HasPrefix(form, p.text)
	}
	return form == p.text
}

// specialEntry is a [Special] with its parsed pattern.
type specialEntry struct {
	Special
	parts []part
}

// index holds the entries of the list, by the first names of their patterns.
type index struct {
	byName     map[string][]*specialEntry // entries without a star, by the folded name
	byShort    map[string][]*specialEntry // the same entries and those in byStart, by short6
	byEnd      [256][]*specialEntry       // entries with a star at the beginning, by the last byte
	byStart    [256][]*specialEntry       // entries with a star at the end, by the first byte
	repository []*specialEntry            // closed entries below .git, in the order of the list
}

var specialIndex = sync.OnceValue(func() *index {
	x := &index{byName: map[string][]*specialEntry{}, byShort: map[string][]*specialEntry{}}
	for _, s := range specials {
		e := &specialEntry{Special: s}
		for text := range strings.SplitSeq(s.Pattern, "/") {
			e.parts = append(e.parts, partOf(text))
		}
		first := e.parts[0]
		switch first.star {
		case '<':
			end := first.text[len(first.text)-1]
			x.byEnd[end] = append(x.byEnd[end], e)
		case '>':
			x.byStart[first.text[0]] = append(x.byStart[first.text[0]], e)
			x.byShort[first.short6] = append(x.byShort[first.short6], e)
		default:
			x.byName[first.text] = append(x.byName[first.text], e)
			x.byShort[first.short6] = append(x.byShort[first.short6], e)
		}
		if first.text == gitDir && len(e.parts) > 1 && e.Care == Closed {
			x.repository = append(x.repository, e)
		}
	}
	return x
})

// entries returns the entries whose pattern could begin with the name. last is set for the
// last name of a path: patterns with a star consist of one name.
func (c *component) entries(last bool) []*specialEntry {
	x := specialIndex()
	out := x.byName[c.forms[0]]
	more := c.forms[1] != "" || c.short != ""
	if !last && !more {
		return out
	}
	out = out[:len(out):len(out)]
	if c.forms[1] != "" {
		out = append(out, x.byName[c.forms[1]]...)
	}
	if c.short != "" {
		out = append(out, x.byShort[c.short]...)
	}
	if !last {
		return out
	}
	for _, form := range c.forms {
		if form == "" {
			continue
		}
		for _, stars := range [][]*specialEntry{x.byStart[form[0]], x.byEnd[form[len(form)-1]]} {
			for _, e := range stars {
				if e.parts[0].fits(form) {
					out = append(out, e)
				}
			}
		}
	}
	return out
}
