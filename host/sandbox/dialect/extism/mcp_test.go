package extism

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/sandbox/abi"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm"
)

func newListing(kind wasm.ShapeKind) *listing {
	return &listing{Manifest: tool.Manifest{ABI: abis[kind], Name: "probe", Inferred: true}}
}

// deep returns JSON that nests a number of levels.
func deep(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }

func TestListedTools(t *testing.T) {
	many := strings.Repeat(`{"name":"t","description":"d"},`, maxListed)
	for name, c := range map[string]struct {
		answer string
		tools  string // their names
		says   string // in the notes, or the fault
		fault  bool
	}{
		"what hyper-mcp's Rust derives": {`{"tools":[{"name":"add","description":"Adds.","inputSchema":{"$schema":"http://json-schema.org/draft-07/schema#","title":"Args",
			"type":"object","required":["a"],"properties":{"a":{"type":"integer","format":"uint32","minimum":0.0},"b":{"type":["number","null"],"format":"double","nullable":true,"default":null},
			"c":{"$ref":"#/definitions/C"}},"definitions":{"C":{"type":"string","enum":["x","y"]}},"additionalProperties":false}}]}`, "add", "", false},
		"what mcp.run's servlets write":     {`{"tools":[{"name":"fetch","description":"Fetches.","inputSchema":{"type":"object","properties":{"url":{"type":"string","format":"uri"}},"required":["url"]}}]}`, "fetch", "", false},
		"a schema without a type":           {`{"tools":[{"name":"a","description":"d","inputSchema":{ "properties":{}}},{"name":"b","description":"d","inputSchema":{}}]}`, "a b", "", false},
		"no schema":                         {`{"tools":[{"name":"a","description":"d"},{"name":"b","description":"d","inputSchema":null}]}`, "a b", "", false},
		"a schema of an array":              {`{"tools":[{"name":"a","description":"d","inputSchema":{"type":"array"}},{"name":"b","description":"d"}]}`, "b", "arguments are an", false},
		"a schema that is none":             {`{"tools":[{"name":"a","description":"d","inputSchema":"x"},{"name":"b","description":"d"}]}`, "b", "left out", false},
		"a schema that nests too deeply":    {`{"tools":[{"name":"a","description":"d","inputSchema":` + deep(200) + `},{"name":"b","description":"d"}]}`, "b", "nests deeper", false},
		"a reference to elsewhere":          {`{"tools":[{"name":"a","description":"d","inputSchema":{"type":"object","$ref":"https://x.example/"}},{"name":"b","description":"d"}]}`, "b", "left out", false},
		"names that cannot be called":       {`{"tools":[{"name":"a b","description":"d"},{"name":"","description":"d"},{"name":"b","description":"d"}]}`, "b", "letters, digits", false},
		"two tools of a name":               {`{"tools":[{"name":"a","description":"d"},{"name":"a","description":"e"}]}`, "a", "two are named", false},
		"no description, but a title":       {`{"tools":[{"name":"a","title":"T"},{"name":"b"}]}`, "a b", "", false},
		"a description that is too long":    {`{"tools":[{"name":"a","description":"` + strings.Repeat("é", 8<<10) + `"}]}`, "a", "", false},
		"fields that are of another type":   {`{"tools":[{"name":1},{"name":"b","description":"d","annotations":7}]}`, "b", "left out", false},
		"more than it lists at a time":      {`{"tools":[{"name":"a","description":"d"}],"nextCursor":"2"}`, "a", "others are left out", false},
		"no tools":                          {`{"tools":[]}`, "", "", false},
		"not even a list":                   {`{}`, "", "", false},
		"an object for a list":              {`{"tools":{}}`, "", "no list", true},
		"nothing":                           {``, "", "not JSON", true},
		"a list that is cut":                {`{"tools":[{"name":"a"`, "", "not JSON", true},
		"more tools than are looked at":     {`{"tools":[` + many + `{"name":"t"}]}`, "", "more than 1024", true},
		"more bytes than are looked at":     {strings.Repeat(" ", maxListBytes) + `{}`, "", "limit", true},
		"text that is not UTF-8":            {"{\"tools\":[{\"name\":\"a\",\"description\":\"\xff\"}]}", "a", "", false},
		"a schema that is written two ways": {`{"tools":[{"name":"a","description":"d","inputSchema":{"type":"object","type":"object"}},{"name":"b","description":"d"}]}`, "b", "twice", false},
	} {
		t.Run(name, func(t *testing.T) {
			l := newListing(wasm.HyperMCPv2)
			err := l.read(t.Context(), []byte(c.answer))
			var names []string
			for _, s := range l.Tools {
				names = append(names, s.Name)
			}
			said := strings.Join(l.allNotes(), "\n")
			if broken, ok := errors.AsType[*abi.Fault](err); ok {
				said = broken.What
			}
			if (err != nil) != c.fault || !c.fault && strings.Join(names, " ") != c.tools || !strings.Contains(said, c.says) || c.says == "" && said != "" {
				t.Errorf("tools %q; %q; %v", names, said, err)
			}
			listed(t, l)
		})
	}
}

// listed fails the test if a listing is no valid manifest, unless it has no tool.
func listed(t *testing.T, l *listing) {
	t.Helper()
	text, err := json.Marshal(l.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tool.ParseManifest(text); err != nil && len(l.Tools) > 0 {
		t.Error(err)
	}
	notes := l.allNotes()
	if len(notes) > maxNotes+1 || len(strings.Join(notes, "")) > (maxNotes+1)*400 {
		t.Errorf("%d notes: %.200q", len(notes), notes)
	}
}

func TestAListingIsBounded(t *testing.T) {
	l := newListing(wasm.HyperMCPv1)
	var tools []string
	for i := range 300 {
		tools = append(tools, `{"name":"t`+strings.Repeat("x", i%50)+string(rune('A'+i/50))+`","description":"`+strings.Repeat("d", 4000)+`"},{"name":" "}`)
	}
	if err := l.read(t.Context(), []byte(`{"tools":[`+strings.Join(tools, ",")+`]}`)); err != nil {
		t.Fatal(err)
	}
	if n := len(l.Tools); n < 50 || n > maxTools {
		t.Errorf("%d tools", n)
	}
	listed(t, l)
	if said := l.allNotes(); len(said) != maxNotes+1 || !strings.HasPrefix(said[maxNotes], "and ") {
		t.Errorf("%q", said)
	}
}

func text(s string) abi.Content { return abi.Content{Kind: abi.ContentText, Text: s} }

func TestResultsOfCalls(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		want   *abi.Output // nil: a fault
		failed bool
		says   string
	}{
		"a text":                   {`{"content":[{"type":"text","text":"hi"}]}`, &abi.Output{Content: []abi.Content{text("hi")}}, false, ""},
		"a structured value too":   {`{"content":[{"type":"text","text":"{}"}],"structuredContent":{"a":1}}`, &abi.Output{Content: []abi.Content{text("{}")}, Structured: `{"a":1}`}, false, ""},
		"a structured null":        {`{"content":[],"structuredContent":null,"isError":null}`, &abi.Output{}, false, ""},
		"a failure":                {`{"isError":true,"content":[{"type":"text","text":"no"}],"structuredContent":{"a":1}}`, &abi.Output{Content: []abi.Content{text("no")}}, true, ""},
		"an image and a sound":     {`{"content":[{"type":"image","data":"AAAA","mimeType":"image/png"},{"type":"audio","data":"","mimeType":"audio/wav"}]}`, &abi.Output{Content: []abi.Content{{Kind: abi.ContentImage, Mime: "image/png", Data: []byte{0, 0, 0}}, text("[audio audio/wav]")}}, false, ""},
		"images that are none":     {`{"content":[{"type":"image","data":7,"mimeType":"image/png"},{"type":"image","data":"?","mimeType":"image/png"},{"type":"image"}]}`, &abi.Output{Content: []abi.Content{{Kind: abi.ContentImage, Mime: "image/png"}, {Kind: abi.ContentImage, Mime: "image/png"}, {Kind: abi.ContentImage}}}, false, ""},
		"resources":                {`{"content":[{"type":"resource","resource":{"uri":"a:b","text":"t"}},{"type":"resource","resource":{"uri":"c:d","blob":"AA","mimeType":"x/y"}},{"type":"resource_link","uri":"e:f","name":"n"}]}`, &abi.Output{Content: []abi.Content{text("a:b\nt"), {Kind: abi.ContentResource, Text: "c:d", Mime: "x/y"}, {Kind: abi.ContentResource, Text: "e:f", Title: "n"}}}, false, ""},
		"a piece of nothing":       {`{"content":[{}]}`, &abi.Output{Content: []abi.Content{text("")}}, false, ""},
		"no pieces":                {`{}`, &abi.Output{}, false, ""},
		"nothing":                  {``, nil, false, "not JSON"},
		"a list":                   {`[]`, nil, false, "not JSON"},
		"pieces that are no list":  {`{"content":"hi"}`, nil, false, "no list"},
		"a piece that is a number": {`{"content":[1]}`, nil, false, "piece"},
		"too many pieces":          {`{"content":[` + strings.Repeat(`{},`, maxContents) + `{}]}`, nil, false, "more than 1024"},
		"text that is not UTF-8":   {"{\"content\":[{\"type\":\"text\",\"text\":\"\xff\"}]}", nil, false, "not text"},
		"nested too deeply":        {`{"content":[` + deep(20_000) + `]}`, nil, false, "not JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			out, failed, err := readResult([]byte(c.answer))
			_, broken := errors.AsType[*abi.Fault](err)
			switch {
			case (err != nil) != (c.want == nil), err != nil && (!broken || !strings.Contains(err.Error(), c.says)):
				t.Errorf("%+v, %v", out, err)
			case err == nil && (failed != c.failed || !cmp.Equal(out, c.want)):
				t.Errorf("%v: %s", failed, cmp.Diff(c.want, out))
			}
		})
	}
}

// FuzzAnswers: any answer of a plugin is a manifest, a result or a fault.
func FuzzAnswers(f *testing.F) {
	for _, seed := range []string{
		`{"tools":[{"name":"a","description":"d","inputSchema":{"type":"object"}}]}`,
		`{"tools":[{"name":"a","inputSchema":{ }},{"name":"a"},{}],"nextCursor":"x"}`,
		`{"content":[{"type":"resource","resource":{"uri":"a:b"}},{"type":"image"}],"structuredContent":[1],"isError":true}`,
		`{"tools":[{"inputSchema":{}`, "{", "[]", "null", "\xff",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		l := newListing(wasm.HyperMCPv2)
		err := l.read(t.Context(), answer)
		if _, ok := errors.AsType[*abi.Fault](err); err != nil && !ok {
			t.Fatal(err)
		}
		listed(t, l)
		out, _, err := readResult(answer)
		if _, ok := errors.AsType[*abi.Fault](err); err != nil && !ok {
			t.Fatal(err)
		}
		if err == nil && (len(out.Content) > maxContents || out.Structured != "" && !json.Valid([]byte(out.Structured))) {
			t.Fatalf("%+v", out)
		}
		for _, c := range outputOf(answer).Content {
			if !utf8.ValidString(c.Text) {
				t.Fatalf("%q", c.Text)
			}
		}
	})
}
