// Package toolpage writes the page about a tool for a person: its arguments as a table,
// calls to copy, its limits and its errors, from the manifest of its module. The terminal
// and the pages of the help use the same text.
//
// The author of the module has written the text. A caller that shows the text of a stranger
// puts it behind a bar.
package toolpage

import (
	"encoding/json"
	"strings"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/table"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/shellword"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/visible"
)

// Part is a section of the page of a tool. Text is visible text.
type Part struct{ Title, Text string }

// Parts returns the sections of the page of a tool, except its description; empty sections are
// left out. A line has at most columns columns, except commands to copy. command is the
// beginning of a call's command line, such as "stockade call grep".
func Parts(spec tool.Spec, command string, columns int) (out []Part) {
	args, whole := Arguments(spec.Parameters)
	text := indentTable(argumentTable(args), columns)
	switch {
	case !whole:
		text += WrapText("", "The schema says more than that: `tool info --schema` prints it.", columns)
	case len(args) == 0:
		text = "It takes none.\n"
	}
	out = append(out, Part{"Arguments", text})
	if spec.Doc == nil {
		return out
	}
	for _, p := range []Part{
		{"Examples", examples(spec, command, columns)},
		{"Limits", list(spec.Doc.Limits, columns)},
		{"Errors", indentTable(errorTable(spec.Doc.Errors), columns)},
	} {
		if p.Text != "" {
			out = append(out, p)
		}
	}
	return out
}

// indent stands before tables and commands, as in Markdown.
const indent = "    "

func argumentTable(args []Argument) *table.Table {
	if len(args) == 0 {
		return nil
	}
	t := table.New(table.Fixed("NAME"), table.Text("TYPE"), table.Text("DEFAULT"), table.Text("WHAT IT IS"))
	for _, a := range args {
		given := a.Default
		if a.Required {
			given = "required"
		}
		t.Row(a.Name, a.Type, given, a.About)
	}
	return t
}

func errorTable(errors []string) *table.Table {
	if len(errors) == 0 {
		return nil
	}
	t := table.New(table.Fixed(""), table.Text(""))
	for _, line := range errors {
		code, text, _ := strings.Cut(line, ": ")
		t.Row(code, text)
	}
	return t
}

// examples returns the example calls as commands, each below its description.
func examples(spec tool.Spec, command string, columns int) string {
	var out strings.Builder
	for i, ex := range spec.Doc.Examples {
		if i > 0 {
			out.WriteString("\n")
		}
		out.WriteString(WrapText(indent+"# ", terminal.Line(ex.Text), columns))
		out.WriteString(indent + Command(command, spec.Parameters, ex.Args) + "\n")
	}
	return out.String()
}

// Command returns a call as a command line. Its arguments are written as NAME=VALUE if this
// means the same as the JSON, and otherwise as JSON. If the JSON cannot be a word of a shell,
// only the JSON is returned.
func Command(command string, parameters, args json.RawMessage) string {
	if words, ok := pairs(parameters, args); ok {
		return strings.Join(append([]string{command}, words...), " ")
	}
	object := string(visible.EscapeJSON(args))
	if word, ok := shellword.Quote(object); ok {
		return command + " " + word
	}
	return object
}

// pairs returns arguments as NAME=VALUE. ok is false if a value would be read as another type,
// or a name as a flag.
func pairs(parameters, args json.RawMessage) (words []string, ok bool) {
	var top struct {
		Properties map[string]struct {
			Type any `json:"type"`
		} `json:"properties"`
	}
	_ = json.Unmarshal(parameters, &top) // fields that it does not contain stay unknown
	names, values := ordered(args)
	for _, name := range names {
		value := string(values[name])
		isText := strings.HasPrefix(value, `"`)
		if isText && json.Unmarshal(values[name], &value) != nil {
			return nil, false
		}
		word, quoted := shellword.Quote(value)
		if !quoted || !tool.ValidName(name) || strings.HasPrefix(name, "-") || isText != (top.Properties[name].Type == "string") {
			return nil, false
		}
		words = append(words, name+"="+word)
	}
	return words, true
}

func list(lines []string, columns int) string {
	var out strings.Builder
	for _, line := range lines {
		first := "- "
		for _, row := range terminal.Wrap(terminal.Line(line), columns-1-len(first)) {
			out.WriteString(first + row + "\n")
			first = "  "
		}
	}
	return out.String()
}

// WrapText breaks a text into rows of at most columns columns, each behind the prefix before.
func WrapText(before, text string, columns int) string {
	var out strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		for _, row := range terminal.Wrap(terminal.Line(line), columns-1-len(before)) {
			out.WriteString(before + row + "\n")
		}
	}
	return out.String()
}

// indentTable returns a table whose lines begin with [indent]; "" if t is nil.
func indentTable(t *table.Table, columns int) string {
	if t == nil {
		return ""
	}
	var out, rows strings.Builder
	_ = t.Write(&rows, columns-len(indent)) // to memory
	for line := range strings.Lines(rows.String()) {
		out.WriteString(indent + line)
	}
	return out.String()
}
