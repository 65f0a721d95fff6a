package prompt

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
)

// imitation matches text that looks like a question, a note or a message of ours.
var imitation = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?im)\[[a-z?]\]\d|\[\?\]|^ {4,5}[|│:~!] |^stockade: |\bwants to (?:run|keep)\b|\bjail tier \d|<(?:tab>|newline>|\d+ blanks>|U\+|0x)|\d rows are folded|\d times more\b`)
})

// spoofCheck looks for text that a person cannot see or may misread. It has one warning for
// each kind of finding, in plain ASCII.
type spoofCheck struct {
	found []string
	seen  map[string]bool
}

// check looks through one text of others.
func (s *spoofCheck) check(text string) {
	var shown terminal.Escaper
	for i, r := range text {
		c := text[i:]
		if _, n := utf8.DecodeRuneInString(c); n < len(c) {
			c = c[:n]
		}
		switch code := shown.Visible(c); {
		case code != c && strings.HasPrefix(code, "<0x"):
			s.addFinding("bytes", "it holds bytes that are not text; they are written like %s", code)
		case code != c:
			s.addFinding("hidden", "it holds characters that are invisible, or change how others are shown; they are written like %s", code)
		case unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko):
			s.addFinding("order", "it holds letters that are written from right to left: around them the order on the screen may not be the order of the text")
		}
	}
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !isStyledASCII(r) }) {
		if looksSpoofed(word) {
			s.addFinding("letters", "it holds letters that look like others: %s", escaped(word))
		}
	}
	if imitation().MatchString(text) {
		s.addFinding("imitation", "it holds text that looks like this program's own; text behind a bar is never ours")
	}
}

func (s *spoofCheck) addFinding(kind, format string, args ...any) {
	if s.seen[kind] {
		return
	}
	if s.seen == nil {
		s.seen = map[string]bool{}
	}
	s.seen[kind] = true
	s.found = append(s.found, fmt.Sprintf(format, args...))
}

// lookalikeLetters are letters of other scripts that look like Latin letters. A word that has
// only such letters is reported, as is a word that mixes scripts.
const lookalikeLetters = "аеорсухіјѕһԁԛԝѵгАВЕКМНОРСТУХІЈЅԌΑΒΕΖΗΙΚΜΝΟΡΤΥΧαινορτυχօսոցհզ"

// looksSpoofed reports whether a word mixes Latin letters with those of a script that has
// look-alikes, or consists of look-alikes only.
func looksSpoofed(word string) bool {
	latin, foreign, lookalikes, letters := false, false, 0, 0
	for _, r := range word {
		switch {
		case isStyledASCII(r):
			return true
		case unicode.Is(unicode.Latin, r):
			latin = true
		case unicode.In(r, unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee, unicode.Coptic, unicode.Lisu):
			foreign = true
		}
		if unicode.IsLetter(r) {
			letters++
		}
		if strings.ContainsRune(lookalikeLetters, r) {
			lookalikes++
		}
	}
	// A single look-alike letter is a normal word in many languages.
	return latin && foreign || lookalikes > 1 && lookalikes == letters
}

// isStyledASCII reports whether r is a styled form of an ASCII character: full-width,
// mathematical, in a circle or in brackets.
func isStyledASCII(r rune) bool {
	return r >= 0xFF01 && r <= 0xFF5E || r >= 0x1D400 && r <= 0x1D7FF || r >= 0x249C && r <= 0x24E9
}

// escaped returns a word in ASCII, cut to fit into a line.
func escaped(word string) string {
	var b strings.Builder
	for _, r := range word {
		if b.Len() > 40 {
			return b.String() + "..."
		}
		if r < 0x80 {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "<U+%04X>", r)
		}
	}
	return b.String()
}
