package main

import "strings"

// element is an HTML element that this package knows; zero: any other element.
type element uint8

// The elements, in the order of elementNames.
const (
	elemA element = iota + 1
	elemBase
	elemBr
	elemCode
	elemDd
	elemDt
	elemH1
	elemH2
	elemH3
	elemH4
	elemH5
	elemH6
	elemHr
	elemImg
	elemKbd
	elemLi
	elemMenu
	elemMeta
	elemOl
	elemPre
	elemSamp
	elemTable
	elemTd
	elemTextarea
	elemTh
	elemTitle
	elemTr
	elemUl
)

var elemStyle = elementOf([]byte("style"))

var elementNames = strings.Fields("a base br code dd dt h1 h2 h3 h4 h5 h6 hr img kbd li menu meta ol pre samp table td textarea th title tr ul " +
	// Elements without a constant, which only have properties.
	"address article aside audio blockquote body button canvas caption center details dialog div dl fieldset figcaption figure footer form header " +
	"iframe link main nav noembed noframes object option p script section select span style summary svg tbody template tfoot thead video xmp")

// properties control the rendering of an element.
type properties struct {
	raw      bool // no tags are in its text, as in script
	skipped  bool // its content is left out: it is not text for people
	hideable bool // it always has an end tag, so an attribute can hide exactly its content
	breaks   int  // line ends before and after the element, unless page.open has a case for it
}

var propertiesOf = func() (table [128]properties) {
	set := func(names string, change func(*properties)) {
		for _, name := range strings.Fields(names) {
			change(&table[elementOf([]byte(name))])
		}
	}
	set("script style textarea title xmp iframe noembed noframes", func(p *properties) { p.raw = true })
	set("nav svg template select button canvas audio video object dialog", func(p *properties) { p.skipped = true })
	set("a article aside details div figure footer form header main ol section span table ul", func(p *properties) { p.hideable = true })
	set("p blockquote table figure article section header footer main aside dl details fieldset", func(p *properties) { p.breaks = 2 })
	set("div form address center summary figcaption caption option thead tbody tfoot body", func(p *properties) { p.breaks = 1 })
	return table
}()

// elementTable is a hash table of the elements by name, with free places. A map would
// take several times as long.
var elementTable = func() (table [512]element) {
	for i, name := range elementNames {
		h := hashOf([]byte(name))
		for table[h] != 0 {
			h = (h + 1) % len(table)
		}
		table[h] = element(i + 1)
	}
	return table
}()

// hashOf returns a hash below 512.
func hashOf(name []byte) int {
	h := len(name)
	for _, c := range name {
		h = h*33 ^ int(c)
	}
	return h & 511
}

// elementOf returns the element with a name, given in lower case; 0: an unknown element.
func elementOf(name []byte) element {
	if len(name) == 0 {
		return 0
	}
	for h := hashOf(name); elementTable[h] != 0; h = (h + 1) % len(elementTable) {
		if e := elementTable[h]; elementNames[e-1] == string(name) {
			return e
		}
	}
	return 0
}

// String returns the name of an element; empty for 0.
func (e element) String() string {
	if e == 0 {
		return ""
	}
	return elementNames[e-1]
}
