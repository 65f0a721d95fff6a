package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Run describes a call of a module that does not list tools itself. Its texts are templates:
// {NAME} is replaced by the argument NAME of a call, {args} by all arguments as JSON, {cwd} by
// the working directory of the call, and {{ by the brace {. A string is inserted as it is, any
// other value as JSON. An argument that the call does not have, or that is null, is missing,
// and replaced by nothing.
type Run struct {
	// Args are templates of the arguments of a command, without its name. A template with a
	// missing argument is left out, together with an option right before: a text that begins
	// with '-' and has no '=' and no {NAME}. If a template is only {NAME} and the argument is
	// an array, each of its values becomes an argument. A value from the call at the beginning
	// of a template must not begin with '-', unless "--" comes somewhere before: otherwise the
	// model could choose an option.
	Args []string `json:"args,omitempty"`
	// Stdin is the template of the standard input of a command, and Input that of the input of
	// a plugin. An empty Input is {args}, or {input} if the only argument is the string input.
	Stdin string `json:"stdin,omitempty"`
	Input string `json:"input,omitempty"`
	// Env holds the templates of the environment variables of a command, by their names. A
	// variable with a missing argument is left out. PWD is always the working directory.
	Env      map[string]string `json:"env,omitempty"`
	Function string            `json:"function,omitempty"` // export of a plugin to call; empty: the name of the tool
}

// Limits on a Run and on its calls. Beyond them the tool or the call is refused.
const (
	maxRunTexts = 128 // templates in Args, and as many in Env

	maxArguments     = 4096             // arguments of a command
	maxArgumentBytes = 1 << 20          // bytes of arguments and environment together, as in other systems
	maxInputBytes    = 2 * maxArgsBytes // bytes of the standard input, or of the input of a plugin
)

var envRE = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`) })

// check checks all templates against the schema of the arguments.
func (r *Run) check(schema *Schema) error {
	if len(r.Args) > maxRunTexts || len(r.Env) > maxRunTexts {
		return fmt.Errorf("%d arguments and %d variables, more than the limit of %d", len(r.Args), len(r.Env), maxRunTexts)
	}
	for _, arg := range r.Args {
		if err := checkTemplate(arg, schema); err != nil {
			return fmt.Errorf("args: %w", err)
		}
	}
	for _, name := range sortedKeys(r.Env) {
		switch {
		case !envRE().MatchString(name):
			return fmt.Errorf("env: %.80q is not 1 to 64 letters, digits or '_'", name)
		case name == "PWD":
			return errors.New("env: PWD is the working directory of the call and cannot be set")
		}
		if err := checkTemplate(r.Env[name], schema); err != nil {
			return fmt.Errorf("env: %s: %w", name, err)
		}
	}
	if err := checkTemplate(r.Stdin, schema); err != nil {
		return fmt.Errorf("stdin: %w", err)
	}
	if err := checkTemplate(r.Input, schema); err != nil {
		return fmt.Errorf("input: %w", err)
	}
	return nil
}

// checkTemplate checks that a template names only parameters of the schema, args and cwd.
func checkTemplate(text string, schema *Schema) error {
	pieces, err := parseTemplate(text)
	if err != nil {
		return err
	}
	for _, p := range pieces {
		switch known := schema.HasProperty(p.name); {
		case p.name == "":
		case known && (p.name == "args" || p.name == "cwd"):
			return fmt.Errorf("{%s} has a meaning of its own; give the parameter of that name another name", p.name)
		case !known && p.name != "args" && p.name != "cwd":
			return fmt.Errorf("{%.80s} is not a parameter of the tool; for a brace, say {{", p.name)
		}
	}
	return nil
}

// UsesArgument reports whether a template contains {name} or {args}; an empty Input does not.
func (r *Run) UsesArgument(name string) bool {
	texts := append([]string{r.Stdin, r.Input}, r.Args...)
	for _, text := range r.Env {
		texts = append(texts, text)
	}
	return slices.ContainsFunc(texts, func(text string) bool {
		pieces, err := parseTemplate(text)
		return err == nil && slices.ContainsFunc(pieces, func(p piece) bool { return p.name == name || p.name == "args" })
	})
}

// piece is a part of a template: a name in braces (an argument, args or cwd), or literal text.
type piece struct{ name, text string }

func parseTemplate(text string) (pieces []piece, _ error) {
	if strings.ContainsRune(text, 0) {
		return nil, errors.New("it holds a NUL byte")
	}
	for text != "" {
		plain, rest, found := strings.Cut(text, "{")
		if found && strings.HasPrefix(rest, "{") {
			plain, rest, found = plain+"{", rest[1:], false
		}
		if plain != "" {
			pieces = append(pieces, piece{text: plain})
		}
		if text = rest; !found {
			continue
		}
		name, rest, closed := strings.Cut(text, "}")
		if !closed || name == "" {
			return nil, fmt.Errorf("%.80q has a brace without {NAME}; for a brace, say {{", "{"+text)
		}
		pieces, text = append(pieces, piece{name: name}), rest
	}
	return pieces, nil
}

// Expand returns r with its templates filled in by the arguments of a call, which fit the
// schema. Its errors tell the model how to correct the call.
func (r *Run) Expand(args json.RawMessage, cwd string) (Run, error) {
	e := expansion{all: args, cwd: cwd}
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.UseNumber()
	if err := dec.Decode(&e.values); err != nil {
		return Run{}, fmt.Errorf("read the arguments: %w", err)
	}
	out := Run{Function: r.Function}
	var err error
	if out.Args, err = e.arguments(r.Args); err != nil {
		return Run{}, err
	}
	for _, name := range sortedKeys(r.Env) {
		value, all, err := e.text(r.Env[name], maxArgumentBytes)
		if err == nil && strings.ContainsRune(value, 0) {
			err = errNUL
		}
		if err != nil {
			return Run{}, fmt.Errorf("the environment variable %s: %w", name, err)
		}
		if !all {
			continue
		}
		if err := e.count(name, value); err != nil {
			return Run{}, err
		}
		if out.Env == nil {
			out.Env = map[string]string{}
		}
		out.Env[name] = value
	}
	if out.Stdin, _, err = e.text(r.Stdin, maxInputBytes); err != nil {
		return Run{}, fmt.Errorf("the standard input: %w", err)
	}
	input := r.Input
	if input == "" {
		input = "{args}"
		if _, ok := e.values["input"].(string); ok && len(e.values) == 1 {
			input = "{input}"
		}
	}
	if out.Input, _, err = e.text(input, maxInputBytes); err != nil {
		return Run{}, fmt.Errorf("the input: %w", err)
	}
	return out, nil
}

type expansion struct {
	all    json.RawMessage // all arguments
	cwd    string
	values map[string]any // arguments by their names

	size int // bytes of command arguments and environment so far, at most maxArgumentBytes
}

var (
	errNUL   = errors.New("it holds a NUL byte, which no program could read")
	errLarge = fmt.Errorf("arguments and environment have more than %d KiB; pass less, or large texts as a file", maxArgumentBytes>>10)
)

// count adds an argument, or name and value of a variable, to size; errLarge beyond the limit.
func (e *expansion) count(parts ...string) error {
	for _, p := range parts {
		e.size += len(p) + 1
	}
	if e.size > maxArgumentBytes {
		return errLarge
	}
	return nil
}

// value returns the text for a name in braces, and false if the argument is missing.
func (e *expansion) value(name string) (string, bool) {
	switch name {
	case "args":
		return string(e.all), true
	case "cwd":
		return e.cwd, true
	}
	return valueText(e.values[name])
}

// valueText returns a value as text, and false for null.
func valueText(v any) (string, bool) {
	switch v := v.(type) {
	case nil:
		return "", false
	case string:
		return v, true
	}
	return string(Marshal(v)), true
}

// text expands a template to at most limit bytes; more are an error. The second result is
// false if an argument is missing.
func (e *expansion) text(template string, limit int) (string, bool, error) {
	pieces, err := parseTemplate(template)
	if err != nil {
		return "", false, err
	}
	var out strings.Builder
	all := true
	for _, p := range pieces {
		s := p.text
		if p.name != "" {
			var there bool
			s, there = e.value(p.name)
			all = all && there
		}
		if out.Len()+len(s) > limit {
			return "", false, fmt.Errorf("it has more than %d KiB", limit>>10)
		}
		out.WriteString(s)
	}
	return out.String(), all, nil
}

func (e *expansion) arguments(texts []string) ([]string, error) {
	var out []string
	option := false // the last argument is an option, which goes if its value is missing
	ended := false  // "--" came before: the values that follow may begin with '-'
	add := func(s string, names ...string) error {
		if strings.ContainsRune(s, 0) {
			return fmt.Errorf("the argument %.80q: %w", strings.Join(names, ", "), errNUL)
		}
		if len(names) > 0 && strings.HasPrefix(s, "-") && !ended {
			return fmt.Errorf("the argument %.80q begins with '-' here (%.40q), where the program could take it for an option, which only "+
				"the description of the tool may choose; write it another way, such as ./NAME for a file", strings.Join(names, ", "), s)
		}
		if len(out) == maxArguments {
			return fmt.Errorf("the program would get more than %d arguments; pass fewer", maxArguments)
		}
		out, option = append(out, s), false
		return e.count(s)
	}
	leave := func() {
		if option {
			out = out[:len(out)-1]
		}
		option = false
	}
	for _, text := range texts {
		pieces, err := parseTemplate(text)
		if err != nil {
			return nil, err
		}
		if len(pieces) == 1 && pieces[0].name != "" {
			if list, ok := e.values[pieces[0].name].([]any); ok {
				for _, v := range list {
					if s, there := valueText(v); there {
						if err := add(s, pieces[0].name); err != nil {
							return nil, err
						}
					}
				}
				leave() // removes the option of an empty list
				continue
			}
		}
		s, all, err := e.text(text, maxArgumentBytes)
		if err != nil {
			return nil, err
		}
		if !all {
			leave()
			continue
		}
		if err := add(s, leadingNames(pieces)...); err != nil {
			return nil, err
		}
		if isLiteral(pieces) {
			ended = ended || s == "--"
			option = len(s) > 1 && s[0] == '-' && !strings.Contains(s, "=") && !ended
		}
	}
	return out, nil
}

// Warnings describes the templates in Args before the first "--" that refuse a value which
// begins with '-', or let the model choose an option.
func (r *Run) Warnings() (out []string) {
	for _, text := range r.Args {
		pieces, err := parseTemplate(text)
		switch names := slices.DeleteFunc(leadingNames(pieces), func(name string) bool { return name == "args" || name == "cwd" }); {
		case err != nil || text == "--":
			return out
		case len(names) > 0:
			out = append(out, fmt.Sprintf("no \"--\" stands before {%s} in args: a value that begins with '-' is refused there", names[0]))
		case len(pieces) > 1 && strings.Trim(pieces[0].text, "-") == "":
			out = append(out, fmt.Sprintf("%q in args lets the model choose an option", text))
		}
	}
	return out
}

// leadingNames returns the names in braces before the first literal text of a template.
func leadingNames(pieces []piece) (names []string) {
	for _, p := range pieces {
		if p.name == "" {
			break
		}
		names = append(names, p.name)
	}
	return names
}

// isLiteral reports whether a template contains no values from a call.
func isLiteral(pieces []piece) bool {
	for _, p := range pieces {
		if p.name != "" {
			return false
		}
	}
	return true
}
