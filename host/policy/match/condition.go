// Package match compares the arguments of a call with the conditions of rules.
//
// A [Condition] is about one argument. It holds, does not hold, or is unsure ([Truth]),
// because the text of a call does not always show the answer. [Arguments] holds the arguments
// of one call, decoded once for all rules. An [Index] finds the rules whose conditions
// could hold. All this work is counted: [Work] is the account of one decision.
package match

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/stockade-dev/stockade/host/policy/command"
	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/policy/paths"
)

// Kind is the way in which a [Condition] compares an argument with its value.
type Kind string

// The kinds. A kind other than Equal is written before the argument, with a colon:
// path:path=/work/**.
const (
	Equal    Kind = ""        // equal: literal text, anything else as JSON
	Path     Kind = "path"    // a path that matches a pattern, see [NewCondition]
	Hostname Kind = "host"    // a host or the host of a URL: NAME, or *.NAME
	Words    Kind = "words"   // a command, by its literal words
	Pattern  Kind = "pattern" // a regular expression (RE2) that matches the whole value
	OneOf    Kind = "one_of"  // an element of a JSON array of texts
	Maximum  Kind = "maximum" // a number that is at most this large
)

var kinds = []Kind{Path, Hostname, Words, Pattern, OneOf, Maximum}

// Condition restricts a rule to calls with a certain argument. Only [NewCondition] and
// [ParseCondition] make one. For the zero value, [Condition.Holds] is always Unsure.
type Condition struct {
	arg   string
	kind  Kind
	value string
	not   bool

	path      paths.Pattern
	host      network.Pattern
	words     command.Pattern
	re        *regexp.Regexp
	steps     int // work units for each byte of a value, for Pattern
	oneOf     []string
	max       float64
	canonical string // the value as canonical JSON, for Equal
}

// NewCondition returns a condition on an argument. arg is its name, or a JSON pointer
// ("/edits/0/path") into the arguments, in which "*" stands for every element or member. not
// inverts the condition.
//
// A path pattern is absolute. In it, "*" stands for any characters of one segment and a
// segment "**" for any number of segments; ?, [, ], {, } and \ are refused. The words of a
// command are separated as in bash; "*" is any one word, and a last "..." any number of words.
// Only hosts are compared without case. A value that is no text is compared as a value, not by
// its spelling. An argument whose name differs from arg only in case may be the argument that
// is meant: then the result is at most Unsure.
func NewCondition(kind Kind, arg, value string, not bool) (Condition, error) {
	c := Condition{arg: arg, kind: kind, value: value, not: not}
	if arg == "" || len(arg) > 256 {
		return Condition{}, fmt.Errorf("condition %.80q names no argument", arg)
	}
	if strings.HasPrefix(arg, "/") && strings.Contains(strings.NewReplacer("~0", "", "~1", "").Replace(arg), "~") {
		return Condition{}, fmt.Errorf("condition on %.80q: in a JSON pointer ~ is written ~0, and / is ~1", arg)
	}
	var err error
	switch kind {
	case Equal:
		c.canonical = canonicalJSON([]byte(value))
	case Path:
		c.path, err = paths.ParsePattern(value)
	case Hostname:
		if c.host, err = network.ParsePattern(value); err == nil {
			c.value = c.host.String()
		}
	case Words:
		c.words, err = command.ParsePattern(value)
	case Pattern:
		c.re, c.steps, err = compilePattern(value)
	case OneOf:
		if err = json.Unmarshal([]byte(value), &c.oneOf); err != nil || value == "null" {
			err = fmt.Errorf(`%.80q is not a list such as ["a","b"]`, value)
		}
	case Maximum:
		if c.max, err = strconv.ParseFloat(value, 64); err != nil || math.IsNaN(c.max) || math.IsInf(c.max, 0) {
			err = fmt.Errorf("%.80q is not a number", value)
		}
	default:
		err = fmt.Errorf("there is no kind %.80q", kind)
	}
	if err != nil {
		return Condition{}, fmt.Errorf("condition on %s: %w", arg, err)
	}
	return c, nil
}

// Limits of patterns: their time and memory grow with the program and the value. A larger pattern or
// program is an error; a longer value makes the condition Unsure.
const (
	maxPattern = 4096     // bytes of a pattern
	maxProgram = 2000     // instructions of its program
	maxMatched = 64 << 10 // bytes of a value that is matched
)

// compilePattern compiles a pattern that has to match a whole value. It must compile on its
// own, too, without the text around it: "a)|(?:b" is an error. steps is the number of
// instructions.
func compilePattern(s string) (re *regexp.Regexp, steps int, err error) {
	if len(s) > maxPattern {
		return nil, 0, fmt.Errorf("the pattern has more than %d bytes", maxPattern)
	}
	tree, err := syntax.Parse(s, syntax.Perl)
	if err != nil {
		return nil, 0, err
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, 0, err
	}
	if len(program.Inst) > maxProgram {
		return nil, 0, fmt.Errorf("the pattern %.40q is too large: its repetitions multiply", s)
	}
	re, err = regexp.Compile(`\A(?:` + s + `)\z`)
	return re, len(program.Inst), err
}

// ParseCondition parses ARGUMENT=VALUE or KIND:ARGUMENT=VALUE. A leading "!" inverts the
// condition. The value ends with the text. An argument whose name holds a colon or begins with
// "!" is written as a JSON pointer.
func ParseCondition(s string) (Condition, error) {
	rest, not := strings.CutPrefix(s, "!")
	arg, value, ok := strings.Cut(rest, "=")
	if !ok || arg == "" {
		return Condition{}, fmt.Errorf("condition %.80q: want ARGUMENT=VALUE, or KIND:ARGUMENT=VALUE with one of the kinds %v", s, kinds)
	}
	kind := Equal
	if word, name, ok := strings.Cut(arg, ":"); ok && !strings.HasPrefix(arg, "/") {
		kind, arg = Kind(word), name
		if !slices.Contains(kinds, kind) {
			return Condition{}, fmt.Errorf("condition %.80q: there is no kind %.40q; the kinds are %v", s, word, kinds)
		}
	}
	return NewCondition(kind, arg, value, not)
}

// Arg returns the argument: a name or a JSON pointer.
func (c Condition) Arg() string { return c.arg }

// TopArg returns the name of the argument or, for a JSON pointer, its first step. The result
// is false if that step stands for any argument.
func (c Condition) TopArg() (string, bool) {
	pointer, ok := strings.CutPrefix(c.arg, "/")
	if !ok {
		return c.arg, true
	}
	step, _, _ := strings.Cut(pointer, "/")
	return unescape(step), step != "*"
}

// Kind returns the kind of comparison.
func (c Condition) Kind() Kind { return c.kind }

// Value returns the value that the argument is compared with, as it is written.
func (c Condition) Value() string { return c.value }

// Not reports whether the condition is inverted.
func (c Condition) Not() bool { return c.not }

// Words returns the pattern of a condition of the kind [Words].
func (c Condition) Words() command.Pattern { return c.words }

// String returns the form that [ParseCondition] parses.
func (c Condition) String() string {
	not, kind := "", ""
	if c.not {
		not = "!"
	}
	if c.kind != Equal {
		kind = string(c.kind) + ":"
	}
	return not + kind + c.arg + "=" + c.value
}

// InWords returns the meaning of the condition, for a person.
func (c Condition) InWords() string {
	is := "is"
	if c.not {
		is = "is not"
	}
	what := map[Kind]string{
		Equal: "%q", Path: "a path under the pattern %q", Hostname: "the host %q", Words: "the command %q",
		Pattern: "all of the pattern %q", OneOf: "one of %s", Maximum: "at most %s",
	}[c.kind]
	return fmt.Sprintf("%s %s "+what, c.arg, is, c.value)
}

// Truth is the result of a condition. Unsure means that the text of a call does not show
// whether the condition holds. It never allows, and makes a rule that denies ask.
type Truth int

// The results. The smaller is the safer one for a rule that allows.
const (
	No Truth = iota
	Unsure
	Yes
)

func (t Truth) inverted() Truth { return Yes - t }

// Holds returns the result for a call. strict is set for a rule that allows: then each of
// several values must fit, and a command or a path must be certain. For any other rule one
// fitting value is enough.
func (c *Condition) Holds(args *Arguments, strict bool) Truth {
	if c.arg == "" {
		return Unsure
	}
	found := args.values(c.arg)
	values := found.values
	switch {
	case found.unknown:
		return Unsure
	case values == nil:
		return c.missing(args, strict)
	case strict && found.lacks:
		return No
	}
	out := No
	if strict {
		out = Yes
	}
	for i := range values {
		if !args.work.take(c.cost(&values[i])) {
			return Unsure
		}
		// An inverted condition is read the other way: a rule that denies all but one
		// command has to be certain that it is that command.
		t := c.compareOne(&values[i], args, strict != c.not)
		if c.not {
			t = t.inverted()
		}
		if values[i].caseDiffers {
			t = min(t, Unsure) // the tool may or may not take it for the argument
		}
		if strict {
			out = min(out, t)
		} else {
			out = max(out, t)
		}
	}
	return out
}

// missing returns the result for an argument that does not exist: No. In a rule that does not
// allow, a missing path stands for the working directory.
func (c *Condition) missing(args *Arguments, strict bool) Truth {
	if c.kind != Path || strict {
		return No
	}
	name, sure := paths.Clean("", args.cwd)
	switch {
	case !sure:
		return Unsure
	case c.path.Match(name) != c.not:
		return Yes
	}
	return No
}

// compareOne compares one value. A value of another type than the condition expects is at most
// Unsure: the tool may convert it.
func (c *Condition) compareOne(v *value, args *Arguments, strict bool) Truth {
	other := Unsure
	if strict {
		other = No
	}
	truthOf := func(b bool) Truth {
		if b {
			return Yes
		}
		return No
	}
	switch c.kind {
	case Equal:
		return truthOf(v.text == c.value || !v.isText && v.text == c.canonical)
	case Pattern:
		if len(v.text) > maxMatched {
			return Unsure
		}
		if holds := c.re.MatchString(v.text); holds || v.isText || !strings.HasPrefix(v.text, "{") && !strings.HasPrefix(v.text, "[") {
			return truthOf(holds)
		}
		return other
	case OneOf:
		if !v.isText {
			return other
		}
		return truthOf(slices.Contains(c.oneOf, v.text))
	case Maximum:
		n, err := strconv.ParseFloat(v.text, 64)
		if v.isText || err != nil {
			return other
		}
		return truthOf(n <= c.max)
	}
	if !v.isText {
		return Unsure
	}
	switch c.kind {
	case Path:
		name, sure := v.path(args.cwd)
		matches := c.path.Match(name)
		if name == "" || !sure && (strict || !matches) {
			return Unsure
		}
		return truthOf(matches)
	case Hostname:
		name, ok := v.host()
		if !ok {
			return Unsure
		}
		return truthOf(c.host.Match(name))
	case Words:
		return c.command(v.command(), strict)
	}
	return Unsure
}

// command compares a command. A rule that allows needs a line that is one literal command. Any
// other rule searches every command of the line, and is Unsure if the line may start further
// programs.
func (c *Condition) command(line *command.Line, strict bool) Truth {
	if strict {
		switch {
		case !line.Literal:
			return Unsure
		case c.words.Match(line.Commands[0], false):
			return Yes
		}
		return No
	}
	for _, words := range line.Commands {
		if c.words.Match(words, true) {
			return Yes
		}
	}
	if !line.StartsOneProgram() {
		return Unsure
	}
	return No
}
