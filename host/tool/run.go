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

// Run says how a tool is run whose module knows no tools. In its texts, {NAME} stands
// for the argument NAME of a call, {args} for all of them as JSON, {cwd} for the working
// directory of the call, and {{ for a brace. A string stands there as it is, everything
// else as JSON. One that the call does not have, or that is null, is nothing.
type Run struct {
	// Args are the arguments of a command, behind its name. One in which an argument
	// stands that the call does not have is left out, and with it the option right before
	// it: a text that begins with '-', without '=' or {NAME}. One that is nothing but an
	// argument which is an array becomes as many.
	//
	// What a call puts at the beginning of one must not begin with '-', as that could be
	// an option that the model has chosen, unless "--" stands somewhere before it.
	Args []string `json:"args,omitempty"`
	// Stdin is what a command reads, and Input what a plugin does. Without it that is the
	// argument input if the call has no other and it is a string, or else {args}.
	Stdin string `json:"stdin,omitempty"`
	Input string `json:"input,omitempty"`
	// Env are the environment variables of a command. One in which an argument stands
	// that the call does not have is left out. PWD is the working directory always.
	Env map[string]string `json:"env,omitempty"`
	// Function is the export of a plugin that is called.
	Function string `json:"function,omitempty"`
}

// What a run may hold, and what a call may make of it.
const (
	maxRunTexts = 128 // arguments, and as many variables

	maxArguments     = 4096
	maxArgumentBytes = 1 << 20 // of arguments and environment together, as on other systems
	maxInputBytes    = 2 * maxArgsBytes
)

var envRE = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`) })

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
			return errors.New("env: PWD is the working directory of the call, and nothing else")
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

// checkTemplate holds a text against the parameters.
func checkTemplate(text string, schema *Schema) error {
	pieces, err := parseTemplate(text)
	if err != nil {
		return err
	}
	for _, p := range pieces {
		switch known := schema.HasProperty(p.name); {
		case p.name == "":
		case known && (p.name == "args" || p.name == "cwd"):
			return fmt.Errorf("{%s} can be the argument or not; give the parameter another name", p.name)
		case !known && p.name != "args" && p.name != "cwd":
			return fmt.Errorf("{%.80s} is not a parameter of the tool; for a brace, say {{", p.name)
		}
	}
	return nil
}

// UsesArgument reports whether the argument of that name, or all of them, stand in a text.
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

// piece is a part of a text: the name of what stands there, or what it says itself.
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

// Expand puts the arguments of a call, which fit the schema, into the texts. Its errors
// tell the model what to change.
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

// expansion is one call as texts see it.
type expansion struct {
	all    json.RawMessage
	cwd    string
	values map[string]any

	size int // of arguments and environment so far
}

var (
	errNUL   = errors.New("it holds a NUL byte, which no program could read")
	errLarge = fmt.Errorf("arguments and environment have more than %d KiB; pass less, or large texts as a file", maxArgumentBytes>>10)
)

// count counts an argument, or a variable, as a program gets it.
func (e *expansion) count(parts ...string) error {
	for _, p := range parts {
		e.size += len(p) + 1
	}
	if e.size > maxArgumentBytes {
		return errLarge
	}
	return nil
}

// value is what stands for a name, and whether there is something.
func (e *expansion) value(name string) (string, bool) {
	switch name {
	case "args":
		return string(e.all), true
	case "cwd":
		return e.cwd, true
	}
	return valueText(e.values[name])
}

func valueText(v any) (string, bool) {
	switch v := v.(type) {
	case nil:
		return "", false
	case string:
		return v, true
	}
	return string(Marshal(v)), true
}

// text is a text with what stands in it, and whether all of that is there.
func (e *expansion) text(text string, most int) (string, bool, error) {
	pieces, err := parseTemplate(text)
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
		if out.Len()+len(s) > most {
			return "", false, fmt.Errorf("it has more than %d KiB", most>>10)
		}
		out.WriteString(s)
	}
	return out.String(), all, nil
}

// arguments makes the arguments of a command.
func (e *expansion) arguments(texts []string) ([]string, error) {
	var out []string
	option := false // the last argument is an option, and goes where its value is not there
	ended := false  // "--" is there: what follows may begin with '-'
	add := func(s string, names ...string) error {
		if strings.ContainsRune(s, 0) {
			return fmt.Errorf("the argument %.80q: %w", strings.Join(names, ", "), errNUL)
		}
		if len(names) > 0 && strings.HasPrefix(s, "-") && !ended {
			return fmt.Errorf("the argument %.80q begins with '-' here (%.40q), where the program could take it for an option, which only "+
				"whoever has described the tool may choose; write it another way, such as ./NAME for a file", strings.Join(names, ", "), s)
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
				leave() // the list was empty, if the option is still the last
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

// Warnings say where an argument of a call could be taken for an option, a sentence for
// each place.
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

// leadingNames names what stands at the beginning of a text before it says something itself.
func leadingNames(pieces []piece) (names []string) {
	for _, p := range pieces {
		if p.name == "" {
			break
		}
		names = append(names, p.name)
	}
	return names
}

// isLiteral reports whether nothing stands in a text that comes from a call.
func isLiteral(pieces []piece) bool {
	for _, p := range pieces {
		if p.name != "" {
			return false
		}
	}
	return true
}
