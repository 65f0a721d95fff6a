package toolpage

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/tool"
)

func TestArgumentsAsATable(t *testing.T) {
	for name, tt := range map[string]struct {
		schema string
		want   []Argument
		whole  bool
	}{
		"none": {`{"type":"object","properties":{}}`, nil, true},
		"in the order of the schema": {`{"type":"object","required":["b"],"properties":{"b":{"type":"string","description":"B."},"a":{"type":"integer"}}}`,
			[]Argument{{Name: "b", Type: "string", Required: true, About: "B."}, {Name: "a", Type: "integer"}}, true},
		"with their defaults and ranges": {`{"type":"object","properties":{"n":{"type":"integer","minimum":1,"maximum":9,"default":3,"description":"How many."},"s":{"type":"string","default":".","enum":["." ,".."]},"e":{"type":"string","default":""}}}`,
			[]Argument{{Name: "n", Type: "integer", Default: "3", About: "How many (1 to 9)."}, {Name: "s", Type: "string", Default: ".", About: "., .."}, {Name: "e", Type: "string", Default: `""`}}, true},
		"a range that the author has named": {`{"type":"object","properties":{"n":{"type":"number","maximum":9,"description":"How many, at most 9."}}}`,
			[]Argument{{Name: "n", Type: "number", About: "How many, at most 9."}}, true},
		"lists and objects": {`{"type":"object","properties":{"l":{"type":"array","items":{"type":"array","items":{"type":"object","required":["x"],"properties":{"x":{},"y":{}}}}},"n":{"type":["string","null"]},"any":{}}}`,
			[]Argument{{Name: "l", Type: "list of list of {x, y?}"}, {Name: "n", Type: "string or null"}, {Name: "any", Type: "any"}}, true},
		"one that says more":             {`{"type":"object","properties":{"a":{"type":"string"}},"anyOf":[{"required":["a"]}]}`, []Argument{{Name: "a", Type: "string"}}, false},
		"one without arguments":          {`{"type":"object","$ref":"#/$defs/x"}`, nil, false},
		"an argument that is a bare yes": {`{"type":"object","properties":{"a":true}}`, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, whole := Arguments(json.RawMessage(tt.schema))
			if diff := cmp.Diff(tt.want, got); diff != "" || whole != tt.whole {
				t.Errorf("whole is %v (-want +got):\n%s", whole, diff)
			}
		})
	}
}

// A command can be copied, whatever the author of a tool has written.
func TestCommandsAreTheCall(t *testing.T) {
	const schema = `{"type":"object","properties":{"path":{"type":"string"},"n":{"type":"integer"},"any":{},"l":{"type":"array"}}}`
	for name, tt := range map[string]struct{ args, want string }{
		"no arguments":                    {`{}`, `call`},
		"a text and a number":             {`{"path":"a b","n":3}`, `call path='a b' n=3`},
		"a number that is a text":         {`{"path":"3"}`, `call path=3`},
		"a list":                          {`{"l":["a","b"]}`, `call l='["a","b"]'`},
		"a text where anything can stand": {`{"any":"3"}`, `call '{"any":"3"}'`},
		"no text where one should stand":  {`{"path":3}`, `call '{"path":3}'`},
		"lines":                           {`{"path":"a\nb"}`, `call path=$'a\nb'`},
		"a name with a command":           {`{"x;rm -rf ~;":1}`, `call '{"x;rm -rf ~;":1}'`},
		"a name that is a flag":           {`{"-C":"/"}`, `call '{"-C":"/"}'`},
		"a value with a command":          {`{"path":"';rm -rf ~;'"}`, `call path=''\'';rm -rf ~;'\'''`},
		"what does not show":              {"{\"path\":\"a\u202eb\"}", `call path=$'a\xe2\x80\xaeb'`},
		"a NUL":                           {`{"path":"a\u0000b"}`, `call '{"path":"a\u0000b"}'`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Command("call", json.RawMessage(schema), json.RawMessage(tt.args)); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestPartsFitAndAreVisible(t *testing.T) {
	spec := tool.Spec{
		Definition: tool.Definition{Name: "t", Parameters: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string","description":"` + strings.Repeat("word ", 40) + `\u001b[31m"}}}`)},
		Doc: &tool.Doc{
			Errors:   []string{"NOT_UNIQUE: " + strings.Repeat("word ", 40), "NO_MATCH: \x1b[2J\nit does not occur"},
			Limits:   []string{strings.Repeat("word ", 40), "a\nb"},
			Examples: []tool.Example{{Args: json.RawMessage(`{"path":"x"}`), Text: "does\n    stockade call it " + strings.Repeat("word ", 40)}},
		},
	}
	var titles []string
	for _, part := range Parts(spec, "stockade call t", 60) {
		titles = append(titles, part.Title)
		for line := range strings.Lines(part.Text) {
			if len(line) > 60 || strings.ContainsAny(line, "\x1b\r") {
				t.Errorf("%s: %q", part.Title, line)
			}
			if part.Title == "Examples" && !strings.HasPrefix(line, "    # ") && line != "    stockade call t path=x\n" {
				t.Errorf("a line that is no comment: %q", line)
			}
		}
	}
	if diff := cmp.Diff([]string{"Arguments", "Examples", "Limits", "Errors"}, titles); diff != "" {
		t.Error(diff)
	}
}
