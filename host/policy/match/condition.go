// Package match compares the arguments of a call with what rules say about them.
//
// A [Condition] is about one argument. Whether it holds is a [Truth], because the
// words of a call do not always tell. [Arguments] are those of one call, decoded
// once for all rules. An [Index] finds the rules whose conditions could hold. The
// work that all this takes is counted: [Work] is the account of one decision.
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

// Kind says how a [Condition] compares an argument with its value.
type Kind string

// The kinds. Except for Is, a kind is written before the argument, with a
// colon: path:path=/work/**.
const (
	Equal    Kind = ""        // equal: text to the letter, anything else as JSON
	Path     Kind = "path"    // a path under a pattern, see [NewCondition]
	Hostname Kind = "host"    // a host, or a URL with one: NAME, or *.NAME
	Words    Kind = "words"   // a command, by its literal words
	Pattern  Kind = "pattern" // a regular expression (RE2) over the whole value
	OneOf    Kind = "one_of"  // a JSON array of texts, of which it is one
	Maximum  Kind = "maximum" // a number, which it does not exceed
)

var kinds = []Kind{Path, Hostname, Words, Pattern, OneOf, Maximum}

// Condition narrows a rule to calls with a certain argument. It is made by
// [NewCondition] or [ParseCondition] only; the zero value holds for no call.
type Condition struct {
	arg   string
	kind  Kind
	value string
	not   bool

	path      paths.Pattern
	host      network.Pattern
	words     command.Pattern
	re        *regexp.Regexp
	steps     int // that re can take for a byte
	oneOf     []string
	max       float64
	canonical string // the value of Is as plain JSON
}

// NewCondition makes a condition on an argument: the name of one, or a JSON
// pointer ("/edits/0/path") into the arguments, in which a "*" stands for every
// element or member. not turns it around.
//
// A path pattern is absolute; "*" stands for any letters of one segment, a
// segment "**" for any number of segments; ?, [, ], {, } and \ are refused. Words are separated as bash does, "*"
// is any one word, and "..." at the end any more. Everything is compared
// with case, but hosts; what is no text is compared by its value, not by how it
// is spelled. An argument whose name differs from arg in case alone may be it.
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

// Time and memory of a pattern grow with its program and with what it is held
// against. A longer value is not known to match, nor not to.
const (
	maxPattern = 4096     // bytes
	maxProgram = 2000     // instructions
	maxMatched = 64 << 10 // bytes
)

// compilePattern compiles a pattern over the whole of a value. What does not
// compile without what we put around it is none: "a)|(?:b" would be.
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

// ParseCondition reads ARGUMENT=VALUE, KIND:ARGUMENT=VALUE, or either after a
// "!", which turns it around. The value is taken as it is, up to the end. An
// argument whose name holds a colon or begins with "!" is written as a JSON
// pointer.
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

// Arg is the argument: a name or a JSON pointer.
func (c Condition) Arg() string { return c.arg }

// TopArg is the argument itself: of a JSON pointer, its first step. It fails where
// that is any argument.
func (c Condition) TopArg() (string, bool) {
	pointer, ok := strings.CutPrefix(c.arg, "/")
	if !ok {
		return c.arg, true
	}
	step, _, _ := strings.Cut(pointer, "/")
	return unescape(step), step != "*"
}

// Kind says how the argument is compared.
func (c Condition) Kind() Kind { return c.kind }

// Value is what it is compared with, as it is written.
func (c Condition) Value() string { return c.value }

// Not reports whether the condition is turned around.
func (c Condition) Not() bool { return c.not }

// Words are the pattern of a condition of the kind [Words].
func (c Condition) Words() command.Pattern { return c.words }

// String gives the form that [ParseCondition] reads.
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

// InWords says what the condition means, for a person.
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

// Truth is the answer of a condition. What cannot be told from the words of a
// call never allows, and never escapes a rule that denies: it asks.
type Truth int

// The answers. The smaller is the safer one for a rule that allows.
const (
	No Truth = iota
	Unsure
	Yes
)

func (t Truth) inverted() Truth { return Yes - t }

// Holds answers for a call. strict is how a rule that allows reads it: each of
// several values has to fit, and a command or a path has to be one that is
// certain. Any other rule is met by any of them.
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
		// What is turned around is read the other way: a rule that denies all
		// but one command wants to be certain that it is that one.
		t := c.compareOne(&values[i], args, strict != c.not)
		if c.not {
			t = t.inverted()
		}
		if values[i].caseDiffers {
			t = min(t, Unsure) // whether the tool takes it for the argument is not known
		}
		if strict {
			out = min(out, t)
		} else {
			out = max(out, t)
		}
	}
	return out
}

// missing: an argument that is not there is nothing that a rule could have
// meant, but for a path, which is the working directory then.
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

// compareOne compares one value. What is of another type than the condition speaks of
// does not fit it; where that would be to escape it, nobody can tell what the
// tool makes of it.
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

// command: a rule that allows wants the one command that is literal. Any other
// rule looks into every part of the line for its program, and where the line
// may hold more than is seen, is unsure.
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
