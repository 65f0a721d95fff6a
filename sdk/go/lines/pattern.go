package lines

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// Pattern is a compiled expression. It is safe for concurrent use.
type Pattern struct {
	re        *regexp.Regexp
	steps     uint64   // instructions of the program
	needles   []needle // a matching line contains at least one needle; nil: none is known
	isLiteral bool     // set if every line with the needle matches
}

// ErrTooLarge is returned for an expression that compiles to more instructions than the limit.
var ErrTooLarge = errors.New("the expression is too large")

// Compile compiles an RE2 expression, in the form of package regexp. limit is the largest
// number of instructions, which is also the cost of matching a character; 0 or less: no limit.
// The error is that of the expression, or [ErrTooLarge].
func Compile(expr string, limit int) (*Pattern, error) {
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, err
	}
	// Repetitions of repetitions take hundreds of megabytes to compile.
	if limit > 0 && size(tree, uint64(limit)) > uint64(limit) {
		return nil, ErrTooLarge
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, err
	}
	if limit > 0 && len(prog.Inst) > limit {
		return nil, ErrTooLarge
	}
	p := &Pattern{steps: uint64(len(prog.Inst))}
	if p.re, err = regexp.Compile(expr); err != nil {
		return nil, err
	}
	p.needles, p.isLiteral = findNeedles(tree)
	return p, nil
}

// Heavy counts the parts that make even a short expression large to parse. classes are Unicode
// classes, each with some hundred ranges. folds are ranges without regard to case, which may
// be large and need a lookup for every character.
func Heavy(expr string) (classes, folds int) {
	ignoresCase := false
	for i := range len(expr) - 1 {
		switch next := expr[i+1]; {
		case expr[i] == '(' && next == '?':
			flags := expr[i+2:]
			end := strings.IndexFunc(flags, func(r rune) bool { return r != '-' && (r < 'A' || 'z' < r) })
			ignoresCase = ignoresCase || strings.Contains(flags[:max(end, 0)], "i")
		case expr[i] == '\\' && next|0x20 == 'p':
			classes++
		}
	}
	for i := range len(expr) - 1 {
		// A range that ends with an escape can be large.
		if next := expr[i+1]; ignoresCase && expr[i] == '-' && (next >= utf8.RuneSelf || next == '\\') {
			folds++
		}
	}
	return classes, folds
}

// size returns the least number of instructions that an expression compiles to. If that is
// more than limit, it may return any larger number than limit.
func size(re *syntax.Regexp, limit uint64) uint64 {
	n := uint64(0)
	for _, sub := range re.Sub {
		if n += size(sub, limit); n > limit {
			return n
		}
	}
	switch re.Op {
	case syntax.OpLiteral:
		return uint64(len(re.Rune))
	case syntax.OpEmptyMatch:
		return 0
	case syntax.OpCapture:
		return n + 2
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest:
		return n + 1
	case syntax.OpConcat:
		return n
	case syntax.OpAlternate:
		return n + uint64(len(re.Sub)) - 1
	case syntax.OpRepeat: // at most 1000 times, so there is no overflow
		if re.Max < 0 {
			return n*uint64(max(re.Min, 1)) + 1
		}
		return n*uint64(re.Max) + uint64(re.Max-re.Min)
	}
	return 1
}

// Steps returns the number of instructions of the pattern.
func (p *Pattern) Steps() uint64 { return p.steps }

// MatchString reports whether the text holds a match. It takes at most some nanoseconds for
// each byte and each of Steps.
func (p *Pattern) MatchString(text string) bool { return p.re.MatchString(text) }

// Needs returns the number of texts that a scan searches for before it matches lines; 0: it
// matches every line.
func (p *Pattern) Needs() int { return len(p.needles) }

// maxSteps limits the steps between two calls of Check. They take some tens of milliseconds.
const maxSteps = 4 << 20

// match reports whether a line matches. It calls check now and then, and ends with its error:
// a long line with a large expression can take minutes.
func (p *Pattern) match(line []byte, check func() error) (bool, error) {
	steps := max(p.steps, leastSteps)
	if uint64(len(line))*steps <= maxSteps {
		return p.re.Match(line), nil
	}
	c := &checkedReader{r: bytes.NewReader(line), every: max(maxSteps/steps, 1), check: check}
	matches := p.re.MatchReader(c)
	return matches, c.err
}

// checkedReader is a reader that ends at the first error of check.
type checkedReader struct {
	r           *bytes.Reader
	every, seen uint64 // characters between two checks, and characters that were read
	check       func() error
	err         error // the error of check
}

func (c *checkedReader) ReadRune() (rune, int, error) {
	if c.seen++; c.seen%c.every == 0 {
		if c.err = c.check(); c.err != nil {
			return 0, 0, io.EOF
		}
	}
	return c.r.ReadRune()
}

// Cut returns at most max characters of a line as valid UTF-8. more reports whether the line
// has more. The result may share memory with the line.
func Cut(line []byte, max int) (text []byte, more bool) {
	end := len(line)
	if len(line) > max { // a character has at least one byte
		end = 0
		for n := 0; end < len(line); n++ {
			if n == max {
				more = true
				break
			}
			_, width := utf8.DecodeRune(line[end:])
			end += width
		}
	}
	line = line[:end]
	if !utf8.Valid(line) {
		line = bytes.ToValidUTF8(line, []byte("\uFFFD"))
	}
	return line, more
}
