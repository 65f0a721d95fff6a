package prompt

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
)

// contextFor is how many lines around each difference are shown before all of it is.
const contextFor = 1

// span is a run of lines of what host/diff says of changes: of the differences of one
// file, or of lines around them.
type span struct {
	from, to string // the names of the file; empty: none of this is a difference
	told     string // what is said of its change in short
	lines    []line
}

// line is one line, with its sign, and its number in the file: of a line that is gone
// in the former, of any other in the new one.
type line struct {
	sign   byte // 0: it is none of a difference
	number int
	text   string
	far    bool // from every difference
}

var hunkStart = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@$`) })

// spans reads what host/diff says. How many lines a difference has is said before
// them, so that none of them can pass for anything else. What it cannot read stays as
// it is.
func spans(text string) []span {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	var out []span
	plain := func(text string) {
		if len(out) == 0 || out[len(out)-1].from != "" {
			out = append(out, span{})
		}
		s := &out[len(out)-1]
		s.lines = append(s.lines, line{text: text})
	}
	for i := 0; i < len(lines); {
		from, isFrom := strings.CutPrefix(lines[i], "--- ")
		start := i + 2 // of the hunks, behind what is said of all of the file
		for start < len(lines) && strings.HasPrefix(lines[start], `\ `) {
			start++
		}
		if !isFrom || start >= len(lines) || !strings.HasPrefix(lines[i+1], "+++ ") || !hunkStart().MatchString(lines[start]) {
			plain(lines[i])
			i++
			continue
		}
		s := span{from: from, to: lines[i+1][len("+++ "):]}
		for _, note := range lines[i+2 : start] {
			s.lines = append(s.lines, line{sign: '\\', text: note})
		}
		i = start
		for whole := true; whole && i < len(lines); {
			hunk := hunkStart().FindStringSubmatch(lines[i])
			if hunk == nil {
				break
			}
			var read []line
			read, whole = hunkLines(hunk, lines[i+1:])
			s.lines = append(s.lines, read...)
			if last := len(s.lines) - 1; last >= 0 && s.lines[last].sign == '\\' && from == "/dev/null" {
				s.lines[last].far = true // of a new file, nobody has asked
			}
			i += 1 + len(read)
		}
		out = append(out, s)
	}
	return named(out)
}

// hunkLines are the lines of one hunk, and whether all of them are there.
func hunkLines(start []string, lines []string) (out []line, whole bool) {
	number := func(i int) int {
		if start[i] == "" {
			return 1
		}
		n, _ := strconv.Atoi(start[i])
		return n
	}
	was, wasLeft, is, isLeft := number(1), number(2), number(3), number(4)
	for _, text := range lines {
		l := line{text: strings.TrimPrefix(text, " ")}
		if text != "" {
			l.sign, l.text = text[0], text[1:]
		}
		switch {
		case l.sign == '\\': // no newline at the end of the file
			l.text = text
		case wasLeft <= 0 && isLeft <= 0:
			return near(out), true
		case l.sign == '-' && wasLeft > 0:
			l.number, was, wasLeft = was, was+1, wasLeft-1
		case l.sign == '+' && isLeft > 0:
			l.number, is, isLeft = is, is+1, isLeft-1
		case l.sign == ' ' && wasLeft > 0 && isLeft > 0:
			l.number, was, wasLeft, is, isLeft = is, was+1, wasLeft-1, is+1, isLeft-1
		default:
			return near(out), false
		}
		out = append(out, l)
	}
	return near(out), wasLeft <= 0 && isLeft <= 0
}

// near finds the lines that are far from every difference.
func near(lines []line) []line {
	for i := range lines {
		lines[i].far = true
		for j := max(0, i-contextFor); j <= min(len(lines)-1, i+contextFor); j++ {
			if lines[j].sign != ' ' {
				lines[i].far = false
			}
		}
	}
	return lines
}

// counts are how many lines of a file come and go.
func (s span) counts() string {
	come, goes := 0, 0
	for _, l := range s.lines {
		switch l.sign {
		case '+':
			come++
		case '-':
			goes++
		}
	}
	return fmt.Sprintf("+%d -%d", come, goes)
}

// order is where it stands among others: a file that is new or gone comes last.
func (s span) order() int {
	if s.from == "/dev/null" || s.to == "/dev/null" {
		return 1
	}
	return 0
}

// name is what the file is called, as host/diff writes it.
func (s span) name() string {
	if name, ok := strings.CutPrefix(s.to, "b/"); ok {
		return name
	}
	return strings.TrimPrefix(s.from, "a/")
}

// around is how much is shown of what is around differences.
type around int

const (
	nothing around = iota
	aLine          // or as many as contextFor
	everything
)

// rows are the lines behind bars. Of the differences of a file the numbers stand before
// them.
func (s span) rows(width int, context around) (rows []row) {
	if s.from == "" {
		var texts []string
		for _, l := range s.lines {
			texts = append(texts, l.text)
		}
		return gutter(texts, width)
	}
	digits := 1
	for _, l := range s.lines {
		digits = max(digits, len(strconv.Itoa(l.number)))
	}
	tabs := s.tabs()
	for i := 0; i < len(s.lines); i++ {
		l := s.lines[i]
		if l.far && context < everything || l.sign == ' ' && context < aLine {
			continue
		}
		end := i + 1
		for end < len(s.lines) && s.lines[end].sign == l.sign && s.lines[end].text == l.text && !s.lines[end].far {
			end++
		}
		text := l.text
		if tabs {
			rest := strings.TrimLeft(text, "\t")
			text = strings.Repeat("    ", len(text)-len(rest)) + rest
		}
		words := fmt.Sprintf("%*d %c ", digits, l.number, l.sign)
		if l.sign == '\\' {
			words = strings.Repeat(" ", digits+3)
		}
		rows = append(rows, rowsOf(words, text, signStyle(l.sign), width)...)
		if more := end - i - 1; more >= repeated {
			rows = append(rows, notes(width, "the line above %d times more", more)...)
			i = end - 1
		}
	}
	return rows
}

// tabs reports whether tabs are all that indents lines: blanks in their place cannot be
// taken for others then.
func (s span) tabs() bool {
	for _, l := range s.lines {
		if strings.HasPrefix(strings.TrimLeft(l.text, "\t"), " ") {
			return false
		}
	}
	return true
}

// signStyle is the colour of a line of a diff.
func signStyle(sign byte) string {
	switch sign {
	case '+':
		return terminal.Green
	case '-':
		return terminal.Red
	}
	return ""
}

// named gives each file whose differences are shown the line that tells of its change in
// short, where there is one, and takes that line away from where all of them stand.
func named(all []span) []span {
	if len(all) == 0 || all[0].from != "" {
		return all
	}
	var short []line
	for i, l := range all[0].lines {
		if l.text == "" { // behind it, they are told at length
			short = append(short, all[0].lines[i:]...)
			break
		}
		j := slices.IndexFunc(all, func(s span) bool { return s.from != "" && s.told == "" && tellsOf(l.text, s.name()) })
		if j < 0 {
			short = append(short, l)
			continue
		}
		all[j].told = l.text
	}
	if len(short) == 0 {
		return all[1:]
	}
	all[0].lines = short
	return all
}

// tellsOf reports whether a line is about the file of that name: a name is one word there.
func tellsOf(line, name string) bool {
	_, rest, _ := strings.Cut(line, " ")
	return rest == name || strings.HasPrefix(rest, name+" ")
}

// title names the file, and says what becomes of it in short.
func (s span) title() string { return cmp.Or(s.told, s.name()) }

// plainChange is a line about one change in which nothing can deceive: no blank, quote
// or letter beyond ASCII stands in a name.
var plainChange = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z]+( [a-z]+)? [A-Za-z0-9._/+@~-]+( from [A-Za-z0-9._/+@~-]+)?( \([a-z0-9, -]+\))*$`)
})

// alone is the one line that tells of all changes, and how many lines come and go, if
// it may stand in a row of ours.
func alone(all []span) (told, counts string) {
	switch {
	case len(all) != 1:
		return "", ""
	case all[0].from != "":
		told, counts = all[0].title(), all[0].counts()
	case len(all[0].lines) == 1:
		told = all[0].lines[0].text
	}
	if !plainChange().MatchString(told) {
		return "", ""
	}
	return told, counts
}
