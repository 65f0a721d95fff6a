package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/humanize"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/sdk/go/patch"
)

// mainArgs returns the most important arguments of a call in one visible line.
func mainArgs(f llm.FunctionData) string {
	name, arguments := f.Name, json.RawMessage(f.Arguments)
	var a struct {
		Path, Pattern, Command, Content *string
		Patch, Operation, URL, Query    *string
		Method, Revision                string
		Raw, Staged                     bool
		LineStart                       int     `json:"line_start"`
		LineEnd                         int     `json:"line_end"`
		Old                             *string `json:"old_string"`
		New                             *string `json:"new_string"`
		All                             bool    `json:"replace_all"`
		Filter                          string  `json:"file_filter"`
		Offset, Limit                   int
	}
	if json.Unmarshal(arguments, &a) == nil {
		switch {
		case name == "add_task" && a.Content != nil:
			return command(*a.Content)
		case name == "bash" && a.Command != nil:
			return " " + command(*a.Command)
		case name == "file_read" && a.Path != nil:
			out := inline(*a.Path)
			switch {
			case a.Offset < 0:
				out += ", the last " + humanize.Plural(-max(a.Offset, -math.MaxInt32), "line")
			case a.Offset > 0:
				out += fmt.Sprintf(", from line %d", a.Offset)
			}
			if a.Raw {
				out += ", raw"
			}
			return out
		case name == "http_fetch" && a.URL != nil && (a.Method == "" || a.Method == "GET"):
			return inline(*a.URL)
		case name == "http_fetch" && a.URL != nil:
			return inline(a.Method) + " " + inline(*a.URL)
		case name == "web_search" && a.Query != nil:
			return `"` + inline(*a.Query) + `"`
		case name == "git" && a.Operation != nil:
			out := inline(*a.Operation)
			if a.Staged {
				out += " staged"
			}
			if a.Revision != "" {
				out += " " + inline(a.Revision)
			}
			if a.Path != nil {
				out += " " + inline(*a.Path)
			}
			return out
		case name == "file_edit" && a.Path != nil && a.Old != nil && a.New != nil:
			out := inline(*a.Path) + "  " + quotedWord(*a.Old) + " → " + quotedWord(*a.New)
			if a.All {
				out += ", all"
			}
			return out
		case name == "replace_lines" && a.Path != nil && a.LineEnd > a.LineStart:
			return fmt.Sprintf("%s, lines %d to %d", inline(*a.Path), a.LineStart, a.LineEnd)
		case name == "replace_lines" && a.Path != nil:
			return fmt.Sprintf("%s, line %d", inline(*a.Path), a.LineStart)
		case name == "insert_lines" && a.Path != nil:
			return fmt.Sprintf("%s, before line %d", inline(*a.Path), a.LineStart)
		case name == "apply_patch" && a.Patch != nil:
			return patchedFiles(*a.Patch)
		case name == "filesystem" && a.Path != nil && a.Operation != nil:
			return inline(*a.Operation) + " " + inline(*a.Path)
		case (name == "grep" || name == "glob") && a.Pattern != nil:
			out := quotedWord(*a.Pattern)
			if a.Filter != "" {
				out += " in " + inline(a.Filter)
			}
			if a.Path != nil && *a.Path != "." {
				out += " in " + inline(*a.Path)
			}
			return out
		case (name == "ls" || name == "file_write") && a.Path != nil:
			return inline(*a.Path)
		}
	}
	return otherArgs(arguments)
}

// readsFile reports whether the call returns a file's content, which a person need not see.
func (c *call) readsFile() bool {
	var a struct{ Operation string }
	return c.name == "file_read" || c.name == "filesystem" && json.Unmarshal([]byte(c.function.Arguments), &a) == nil && a.Operation == "read"
}

func patchedFiles(text string) string {
	files, err := patch.Parse(text)
	if err != nil {
		return quotedWord(text)
	}
	var names []string
	for _, f := range files[:min(len(files), maxPatched)] {
		names = append(names, inline(f.Path))
	}
	if more := len(files) - maxPatched; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// maxPatched limits the names in the list of a patch's files; the others are counted.
const maxPatched = 5

// command returns the first line of a command, with the number of further lines.
func command(text string) string {
	first, rest, _ := strings.Cut(strings.TrimSpace(text), "\n")
	out := inline(first)
	if n := len(linesOf(rest)); n > 0 {
		out += "  (and " + humanize.Plural(n, "more line") + ")"
	}
	return out
}

// quotedWord returns a text of others in quotation marks, cut to 32 characters.
func quotedWord(text string) string { return `"` + inline(llm.Truncate(text, 32)) + `"` }

// otherArgs returns the arguments of any call in one line, in their order. Long ones are cut,
// and after some 200 characters the others are left out.
func otherArgs(arguments json.RawMessage) string {
	var out []string
	length := 0
	for name, value := range fieldsOf(arguments) {
		text := terminal.Line(llm.Truncate(name, 40)) + "=" + inline(llm.Truncate(oneValue(value), 80))
		if out, length = append(out, text), length+len(text); length > maxLine {
			break
		}
	}
	if out == nil && len(bytes.TrimSpace(arguments)) > 0 && string(bytes.TrimSpace(arguments)) != "{}" {
		return inline(llm.Truncate(string(arguments), maxLine))
	}
	return strings.Join(out, " ")
}

// oneValue returns a value for a person: a single word as it is, other text in quotation marks
// but without escapes, everything else as JSON without needless escapes.
func oneValue(value json.RawMessage) string {
	var s string
	if json.Unmarshal(value, &s) == nil {
		if s != "" && !strings.ContainsAny(s, " \t\n\"=") {
			return s
		}
		return `"` + s + `"`
	}
	return humanize.JSON(value)
}

// fieldsOf yields the names and values of a JSON object in their order; nothing if object is
// another value, or invalid.
func fieldsOf(object json.RawMessage) func(yield func(string, json.RawMessage) bool) {
	return func(yield func(string, json.RawMessage) bool) {
		if !json.Valid(object) {
			return
		}
		dec := json.NewDecoder(bytes.NewReader(object))
		if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
			return
		}
		for dec.More() {
			name, err := dec.Token()
			if err != nil {
				return
			}
			var value json.RawMessage
			if dec.Decode(&value) != nil || !yield(fmt.Sprint(name), value) {
				return
			}
		}
	}
}
