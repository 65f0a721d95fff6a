package tool

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func compile(t testing.TB, schema string) *Schema {
	t.Helper()
	s, err := CompileSchema(json.RawMessage(schema))
	if err != nil {
		t.Fatalf("compile %.200s: %v", schema, err)
	}
	return s
}

// readSchema has one argument of each kind that built-in tools have.
const readSchema = `{"type":"object","properties":{
	"path":{"type":"string"},
	"limit":{"type":"integer","minimum":1,"maximum":2000},
	"ratio":{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1,"multipleOf":0.25},
	"hidden":{"type":"boolean"},
	"sort_by":{"type":"string","enum":["name","size","modified"]},
	"level":{"enum":[1,2,null]},
	"id":{"type":"string","pattern":"^task_[0-9]+$"},
	"word":{"type":"string","minLength":2,"maxLength":4},
	"maybe":{"type":["integer","null"]},
	"edits":{"type":"array","minItems":1,"maxItems":3,"items":{"type":"object",
		"properties":{"old":{"type":"string"},"line":{"type":"integer"}},"required":["old"],"additionalProperties":false}}
},"required":["path"],"additionalProperties":false}`

func TestCheckReturnsTheCanonicalForm(t *testing.T) {
	s := compile(t, readSchema)
	for name, c := range map[string]struct{ in, want string }{
		"white space goes and keys are sorted":       {" {\n\"path\" : \"a\", \"hidden\":true } \n", `{"hidden":true,"path":"a"}`},
		"escapes become what they stand for":         {`{"p\u0061th":"m\u0061ke \/ \u00e9"}`, `{"path":"make / é"}`},
		"nothing is escaped for HTML":                {`{"path":"a<b>&c"}`, `{"path":"a<b>&c"}`},
		"half a surrogate becomes U+FFFD":            {`{"path":"\ud800"}`, `{"path":"` + "\ufffd" + `"}`},
		"bytes that are not UTF-8 become U+FFFD":     {"{\"path\":\"\xff\"}", `{"path":"` + "\ufffd" + `"}`},
		"null stays where the schema has it":         {`{"path":"a","maybe":null,"level":null}`, `{"level":null,"maybe":null,"path":"a"}`},
		"a whole number may be written with a point": {`{"path":"a","limit":2.0}`, `{"limit":2.0,"path":"a"}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := s.Check(json.RawMessage(c.in))
			if err != nil || string(got) != c.want {
				t.Fatalf("got %s, %v\nwant %s", got, err, c.want)
			}
			again, err := s.Check(got)
			if err != nil || string(again) != c.want {
				t.Fatalf("the canonical form of the canonical form is %s, %v", again, err)
			}
		})
	}
}

func TestCheckKeepsTheDigitsOfHugeIntegers(t *testing.T) {
	s := compile(t, `{"type":"object","properties":{"n":{"type":"integer"}}}`)
	for _, n := range []string{"9007199254740993", "9223372036854775807", "18446744073709551615", "123456789012345678901234567890", "-0"} {
		got, err := s.Check(json.RawMessage(`{"n":` + n + `}`))
		if err != nil || string(got) != `{"n":`+n+`}` {
			t.Errorf("%s became %s, %v", n, got, err)
		}
	}
}

func TestAToolWithoutArgumentsTakesNothingAtAll(t *testing.T) {
	s := compile(t, `{"type":"object","properties":{},"additionalProperties":false}`)
	for _, in := range []string{"", " \n", "{}", " { } "} {
		if got, err := s.Check(json.RawMessage(in)); err != nil || string(got) != "{}" {
			t.Errorf("%q became %s, %v", in, got, err)
		}
	}
	if _, err := s.Check(json.RawMessage(`{"x":1}`)); err == nil || !strings.Contains(err.Error(), "there are no arguments here") {
		t.Errorf("got %v", err)
	}
}

// The texts are what a model gets to correct itself with: they name the
// argument, what it is and what it must be.
func TestCheckSaysWhatToChange(t *testing.T) {
	s := compile(t, readSchema)
	long := strings.Repeat("x", 1<<20)
	for name, c := range map[string]struct{ in, want string }{
		"a missing argument":              {`{}`, `argument "path" is missing; it wants a string`},
		"a mistyped name":                 {`{"pathh":"a"}`, `unknown argument "pathh" (did you mean "path"?); the arguments are: edits, hidden, id, level, limit, maybe, path, ratio, sort_by, word`},
		"a string for an integer":         {`{"path":"a","limit":"ten"}`, `argument "limit" is the string "ten"; it wants an integer`},
		"a fraction for an integer":       {`{"path":"a","limit":1.5}`, `argument "limit" is the number 1.5; it wants an integer`},
		"a number for a string":           {`{"path":7}`, `argument "path" is the number 7; it wants a string`},
		"an array for a string":           {`{"path":["a"]}`, `argument "path" is an array; it wants a string`},
		"an object for a string":          {`{"path":{"a":1}}`, `argument "path" is an object; it wants a string`},
		"null for a string":               {`{"path":null}`, `argument "path" is null; it wants a string`},
		"a string for a switch":           {`{"path":"a","hidden":"true"}`, `argument "hidden" is the string "true"; it wants true or false`},
		"a string for one of two":         {`{"path":"a","maybe":"x"}`, `argument "maybe" is the string "x"; it wants an integer or null`},
		"a word that is not in the list":  {`{"path":"a","sort_by":"sise"}`, `argument "sort_by" is the string "sise"; it wants one of "name", "size", "modified" (did you mean "size"?)`},
		"a number that is not in it":      {`{"path":"a","level":3}`, `argument "level" is the number 3; it wants one of 1, 2, null`},
		"too small":                       {`{"path":"a","limit":0}`, `argument "limit" is 0; it wants at least 1`},
		"too large":                       {`{"path":"a","limit":2001}`, `argument "limit" is 2001; it wants at most 2000`},
		"on the open lower bound":         {`{"path":"a","ratio":0}`, `argument "ratio" is 0; it wants more than 0`},
		"on the open upper bound":         {`{"path":"a","ratio":1}`, `argument "ratio" is 1; it wants less than 1`},
		"no multiple":                     {`{"path":"a","ratio":0.3}`, `argument "ratio" is 0.3; it wants a multiple of 0.25`},
		"a text in another form":          {`{"path":"a","id":"7"}`, `argument "id" is the string "7"; it wants text that matches the regular expression "^task_[0-9]+$"`},
		"too short":                       {`{"path":"a","word":"é"}`, `argument "word" has 1 characters; it wants at least 2`},
		"too long":                        {`{"path":"a","word":"abcde"}`, `argument "word" has 5 characters; it wants at most 4`},
		"too few":                         {`{"path":"a","edits":[]}`, `argument "edits" has 0 items; it wants at least 1`},
		"too many":                        {`{"path":"a","edits":[{"old":""},{"old":""},{"old":""},{"old":""}]}`, `argument "edits" has 4 items; it wants at most 3`},
		"missing further down":            {`{"path":"a","edits":[{"old":""},{"line":1}]}`, `argument "edits[1].old" is missing; it wants a string`},
		"wrong further down":              {`{"path":"a","edits":[{"old":"","line":"1"}]}`, `argument "edits[0].line" is the string "1"; it wants an integer`},
		"unknown further down":            {`{"path":"a","edits":[{"old":"","lien":1}]}`, `unknown argument "edits[0].lien" (did you mean "line"?); the arguments are: line, old`},
		"a megabyte in the wrong place":   {`{"path":"a","limit":"` + long + `"}`, `argument "limit" is the string "` + long[:60] + `"...; it wants an integer`},
		"a number that no float can hold": {`{"path":"a","ratio":1e400}`, `the number 1e400 is out of range`},
		"the object as text":              {`"{\"path\":\"a\"}"`, `arguments are the string "{\"path\":\"a\"}"; send a JSON object`},
		"null":                            {`null`, `arguments are null; send a JSON object`},
		"an array":                        {`[1]`, `arguments are an array; send a JSON object`},
		"the same key twice":              {`{"path":"a","path":"b"}`, `the argument object holds the key "path" twice`},
		"the same key escaped":            {`{"path":"a","p\u0061th":"b"}`, `the argument object holds the key "path" twice`},
		"the same key as broken UTF-8":    {"{\"\\ud800\":1,\"\xff\":2}", `the argument object holds the key "�" twice`},
		"the same key further down":       {`{"path":"a","edits":[{"old":"a","line":1,"\u006fld":"b"}]}`, `the argument object holds the key "old" twice`},
		"another value behind":            {`{"path":"a"} {}`, `the argument object is not one complete JSON value`},
		"an end too early":                {`{"path":"a"`, `the argument object is not one complete JSON value`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := s.Check(json.RawMessage(c.in))
			if err == nil {
				t.Fatalf("accepted as %.200s", got)
			}
			if err.Error() != c.want {
				t.Errorf("got  %.400s\nwant %.400s", err, c.want)
			}
		})
	}
}

func TestCheckRefusesWhatIsNotJSON(t *testing.T) {
	s := compile(t, `{"type":"object"}`)
	for _, in := range []string{
		`{"a":1}x`, `{"a":1,}`, `{a:1}`, `{'a':1}`, `{"a":01}`, `{"a":NaN}`, `{"a":Infinity}`, `{"a":+1}`, `{"a":1}//`,
		`{"a":"` + "\n" + `"}`, `{"a" 1}`, `{"a":[1 2]}`, `{"a":[1,]}`, `[`, `]`, `}`, `{"a":}`, "\xef\xbb\xbf{}", "{}\x00",
	} {
		if got, err := s.Check(json.RawMessage(in)); err == nil {
			t.Errorf("%q was accepted as %s", in, got)
		}
	}
}

func TestAReasonBeyondOurWordsIsCut(t *testing.T) {
	s := compile(t, `{"type":"object","properties":{"a":{"oneOf":[{"type":"string","maxLength":3},{"type":"integer"}]}}}`)
	_, err := s.Check(json.RawMessage(`{"a":"` + strings.Repeat("x", 1<<20) + `"}`))
	if err == nil || len(err.Error()) > 400 {
		t.Fatalf("the error has %d bytes: %.200v", len(fmt.Sprint(err)), err)
	}
	_, err = s.Check(json.RawMessage(`{"a":{"b":1}}`))
	if err == nil || !strings.Contains(err.Error(), "/properties/a") {
		t.Errorf("the error does not say where: %v", err)
	}
}

func TestASchemaThatIsOpenTakesMore(t *testing.T) {
	for name, schema := range map[string]string{
		"when nothing is said":         `{"type":"object","properties":{"a":{}}}`,
		"when more must be an integer": `{"type":"object","properties":{"a":{}},"additionalProperties":{"type":"integer"}}`,
		"when more must not be a text": `{"type":"object","properties":{"a":{}},"additionalProperties":{"not":{"type":"string"}}}`,
		"when a pattern names it":      `{"type":"object","properties":{"a":{}},"patternProperties":{"^b":{}},"additionalProperties":false}`,
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := compile(t, schema).Check(json.RawMessage(`{"a":1,"b":2}`)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestArgumentsNestUpToTheLimit(t *testing.T) {
	s := compile(t, `{"type":"object"}`)
	nested := func(n int) json.RawMessage { // n levels, the object among them
		return json.RawMessage(`{"a":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + `}`)
	}
	if _, err := s.Check(nested(maxArgsDepth)); err != nil {
		t.Errorf("%d levels: %v", maxArgsDepth, err)
	}
	if _, err := s.Check(nested(maxArgsDepth + 1)); err == nil {
		t.Errorf("%d levels were accepted", maxArgsDepth+1)
	}
	bomb := json.RawMessage(`{"a":` + strings.Repeat("[", MaxArgsBytes/2))
	if _, err := s.Check(bomb); err == nil || !strings.Contains(err.Error(), "nests deeper") {
		t.Errorf("four million levels: %v", err)
	}
}

func TestArgumentsAreBoundedInSize(t *testing.T) {
	s := compile(t, `{"type":"object"}`)
	of := func(n int) json.RawMessage {
		return json.RawMessage(`{"a":"` + strings.Repeat("x", n-len(`{"a":""}`)) + `"}`)
	}
	if got, err := s.Check(of(MaxArgsBytes)); err != nil || len(got) != MaxArgsBytes {
		t.Errorf("%d bytes became %d, %v", MaxArgsBytes, len(got), err)
	}
	if _, err := s.Check(of(MaxArgsBytes + 1)); err == nil {
		t.Errorf("%d bytes were accepted", MaxArgsBytes+1)
	}
}

func TestBigNestedArraysAreChecked(t *testing.T) {
	s := compile(t, `{"type":"object","properties":{"rows":{"type":"array","items":{"type":"array","items":{"type":"integer"}}}}}`)
	row := "[" + strings.Repeat("7,", 99) + "7]"
	all := `{"rows":[` + strings.Repeat(row+",", 199) + row + `]}`
	if got, err := s.Check(json.RawMessage(all)); err != nil || string(got) != all {
		t.Errorf("200 rows of 100: %v", err)
	}
	bad := strings.Replace(all, "7]]", `"7"]]`, 1)
	if _, err := s.Check(json.RawMessage(bad)); err == nil || err.Error() != `argument "rows[199][99]" is the string "7"; it wants an integer` {
		t.Errorf("got %v", err)
	}
}

func TestCompileRefusesSchemas(t *testing.T) {
	for name, c := range map[string]struct{ schema, want string }{
		"that are missing":                   {``, "is missing"},
		"that are not JSON":                  {`{`, "not one complete JSON value"},
		"that are null":                      {`null`, `has type ""`},
		"that are true":                      {`true`, `has type ""`},
		"that are an array":                  {`[]`, "not a JSON Schema"},
		"of a string":                        {`{"type":"string"}`, `has type "string"`},
		"of several types":                   {`{"type":["object","null"]}`, `has type ""`},
		"without a type":                     {`{"properties":{}}`, `has type ""`},
		"with a key twice":                   {`{"type":"object","type":"string"}`, `key "type" twice`},
		"with a key of a property twice":     {`{"type":"object","properties":{"a":{},"\u0061":{}}}`, `key "a" twice`},
		"with a null property":               {`{"type":"object","properties":{"a":null}}`, ""},
		"with a pattern that is none":        {`{"type":"object","properties":{"a":{"pattern":"("}}}`, ""},
		"with a required that is a string":   {`{"type":"object","required":"a"}`, ""},
		"that nest too deep":                 {strings.Repeat(`{"not":`, 100) + `{}` + strings.Repeat(`}`, 100), "nests deeper"},
		"that name another document":         {`{"type":"object","properties":{"a":{"$ref":"https://example.com/s.json"}}}`, "https://example.com/s.json"},
		"that name a file":                   {`{"type":"object","properties":{"a":{"$ref":"file:///etc/passwd"}}}`, "names a schema in the same document"},
		"that name a path":                   {`{"type":"object","properties":{"a":{"$ref":"other.json#/x"}}}`, "names a schema in the same document"},
		"that name nothing":                  {`{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}}}`, "names a schema in the same document"},
		"with a dynamic reference":           {`{"type":"object","properties":{"a":{"$dynamicRef":"#x"}}}`, "$dynamicRef"},
		"with another base further down":     {`{"type":"object","properties":{"a":{"$id":"https://example.com/"}}}`, "$id"},
		"that are a reference to themselves": {`{"type":"object","$ref":"#"}`, "refers to itself without end"},
		"where a property refers to itself":  {`{"type":"object","properties":{"a":{"$ref":"#/properties/a"}}}`, "refers to itself without end"},
		"where two refer to each other": {`{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{
			"x":{"anyOf":[{"type":"string"},{"$ref":"#/$defs/y"}]},"y":{"not":{"$ref":"#/$defs/x"}}}}`, "refers to itself without end"},
		"where a condition refers to itself": {`{"type":"object","$defs":{"x":{"if":{"$ref":"#/$defs/x"}}}}`, "refers to itself without end"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := CompileSchema(json.RawMessage(c.schema))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
		})
	}
}

const treeSchema = `{"type":"object","properties":{"tree":{"$ref":"#/$defs/node"}},"$defs":{
	"node":{"type":"object","properties":{"name":{"type":"string"},"kids":{"type":"array","items":{"$ref":"#/$defs/node"}}},"additionalProperties":false}}}`

func TestARecursiveSchemaIsFollowedDown(t *testing.T) {
	s := compile(t, treeSchema)
	if _, err := s.Check(json.RawMessage(`{"tree":{"name":"a","kids":[{"name":"b","kids":[]}]}}`)); err != nil {
		t.Error(err)
	}
	_, err := s.Check(json.RawMessage(`{"tree":{"kids":[{},{"kids":[{"name":7}]}]}}`))
	if err == nil || err.Error() != `argument "tree.kids[1].kids[0].name" is the number 7; it wants a string` {
		t.Errorf("got %v", err)
	}
}

// Each of these would keep the validator busy for longer than anybody waits,
// or overflow its stack, which ends the process.
func TestSchemasCannotKeepTheHostBusy(t *testing.T) {
	doubling := `{"type":"object","properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{`
	for i := range 40 {
		doubling += fmt.Sprintf(`"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	doubling += `"d40":{}}}`
	chain := `{"type":"object","properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{`
	for i := range 900 {
		chain += fmt.Sprintf(`"d%d":{"$ref":"#/$defs/d%d"},`, i, i+1)
	}
	chain += `"d900":{"items":{"$ref":"#/$defs/d0"}}}}`
	enum := `{"type":"object","properties":{"a":{"items":{"enum":[` + strings.Repeat(`"x",`, 50_000) + `"y"]}}}}`
	for name, c := range map[string]struct{ schema, args string }{
		"by references that double": {doubling, `{"a":1}`},
		"by branches that double with depth": {
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/n"}},"$defs":{"n":{"anyOf":[{"items":{"$ref":"#/$defs/n"}},{"items":{"$ref":"#/$defs/n"}}]}}}`,
			`{"a":` + strings.Repeat("[", 60) + strings.Repeat("]", 60) + `}`},
		"by long chains at each level": {chain, `{"a":` + strings.Repeat("[", 60) + strings.Repeat("]", 60) + `}`},
		"by a long list for each item": {enum, `{"a":[` + strings.Repeat(`"z",`, 10_000) + `"y"]}`},
		"by a pattern over a long text": {
			`{"type":"object","properties":{"a":{"pattern":"` + strings.Repeat("(a|b|c)?", 100) + `$"}}}`,
			`{"a":"` + strings.Repeat("x", 4<<20) + `"}`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := compile(t, c.schema).Check(json.RawMessage(c.args))
			if err == nil || err.Error() != errEffort.Error() {
				t.Errorf("got %.300v", err)
			}
		})
	}
}

func TestSchemaNamesItsArguments(t *testing.T) {
	s := compile(t, `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":["string","null"]},"c":true}}`)
	for name, want := range map[string][2]bool{"a": {true, true}, "b": {true, false}, "c": {true, false}, "d": {}, "": {}} {
		if got := [2]bool{s.HasProperty(name), s.IsString(name)}; got != want {
			t.Errorf("%q: got %v, want %v", name, got, want)
		}
	}
}

// FuzzCheck: what is accepted is an object in canonical form that is accepted
// again unchanged, and that every JSON reader reads alike.
func FuzzCheck(f *testing.F) {
	for _, args := range []string{`{}`, `{"path":"a","limit":3}`, `{"path":"\ud800","edits":[{"old":"x"}]}`, `{"a":1e400}`, `{"a":{"b":[1,{"c":null}]}}`, `[[`, `{"a":1,"\u0061":2}`} {
		f.Add(readSchema, args)
		f.Add(treeSchema, args)
		f.Add(`{"type":"object"}`, args)
	}
	f.Fuzz(func(t *testing.T, schema, args string) {
		s, err := CompileSchema(json.RawMessage(schema))
		if err != nil {
			return
		}
		got, err := s.Check(json.RawMessage(args))
		if err != nil {
			if len(err.Error()) > 8<<10 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		var obj map[string]any
		if err := json.Unmarshal(got, &obj); err != nil {
			t.Fatalf("%q is not an object: %v", got, err)
		}
		again, err := s.Check(got)
		if err != nil || string(again) != string(got) {
			t.Errorf("%q became %q, %v", got, again, err)
		}
	})
}
