package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
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
			got, err := s.Check(t.Context(), json.RawMessage(c.in))
			if err != nil || string(got) != c.want {
				t.Fatalf("got %s, %v\nwant %s", got, err, c.want)
			}
			again, err := s.Check(t.Context(), got)
			if err != nil || string(again) != c.want {
				t.Fatalf("the canonical form of the canonical form is %s, %v", again, err)
			}
		})
	}
}

func TestCheckKeepsTheDigitsOfHugeIntegers(t *testing.T) {
	s := compile(t, `{"type":"object","properties":{"n":{"type":"integer"}}}`)
	for _, n := range []string{"9007199254740993", "9223372036854775807", "18446744073709551615", "123456789012345678901234567890", "-0"} {
		got, err := s.Check(t.Context(), json.RawMessage(`{"n":`+n+`}`))
		if err != nil || string(got) != `{"n":`+n+`}` {
			t.Errorf("%s became %s, %v", n, got, err)
		}
	}
}

func TestAToolWithoutArgumentsTakesNothingAtAll(t *testing.T) {
	s := compile(t, `{"type":"object","properties":{},"additionalProperties":false}`)
	for _, in := range []string{"", " \n", "{}", " { } "} {
		if got, err := s.Check(t.Context(), json.RawMessage(in)); err != nil || string(got) != "{}" {
			t.Errorf("%q became %s, %v", in, got, err)
		}
	}
	if _, err := s.Check(t.Context(), json.RawMessage(`{"x":1}`)); err == nil || !strings.Contains(err.Error(), "there are no arguments here") {
		t.Errorf("got %v", err)
	}
}

// A word of a list is accepted if it differs only in upper and lower case.
func TestAWordOfAListIsTakenAsItIsMeant(t *testing.T) {
	s := compile(t, `{"type":"object","properties":{
		"method":{"type":"string","enum":["GET","POST"]},"status":{"type":"string","enum":["pending","completed"]},
		"both":{"type":"string","enum":["a","A","b"]},"of":{"type":"object","properties":{"method":{"enum":["GET"]}},"required":["method"]}}}`)
	for in, want := range map[string]string{
		`{"method":"post"}`:        `{"method":"POST"}`,
		`{"method":"Get"}`:         `{"method":"GET"}`,
		`{"status":"Completed"}`:   `{"status":"completed"}`,
		`{"both":"a"}`:             `{"both":"a"}`,
		`{"both":"B"}`:             `{"both":"b"}`,
		`{"method":"put"}`:         `argument "method" is the string "put"; it wants one of "GET", "POST"`,
		`{"status":"Done"}`:        `argument "status" is the string "Done"; it wants one of "pending", "completed" (did you mean "completed"?)`,
		`{"status":"not started"}`: `argument "status" is the string "not started"; it wants one of "pending", "completed" (did you mean "pending"?)`,
		`{"of":{"method":"get"}}`:  `argument "of.method" is the string "get"; it wants "GET"`,
		`{"of":{}}`:                `argument "of.method" is missing; it wants "GET"`,
	} {
		got, err := s.Check(t.Context(), json.RawMessage(in))
		if err != nil {
			got = json.RawMessage(err.Error())
		}
		if !strings.HasPrefix(string(got), want) || err == nil && string(got) != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
		if errors.Is(err, ErrWrongNames) != strings.Contains(want, "is missing") {
			t.Errorf("%s: %v is about names, or it is not", in, err)
		}
	}
	for _, in := range []string{`{}`, `{"path":"a","pth":"b"}`, `[]`} {
		if _, err := compile(t, readSchema).Check(t.Context(), json.RawMessage(in)); !errors.Is(err, ErrWrongNames) {
			t.Errorf("%s: got %v, which is not about names", in, err)
		}
	}
}

// With these texts a model corrects itself: they name the argument, its value, and the values
// that it may have.
func TestCheckSaysWhatToChange(t *testing.T) {
	s := compile(t, readSchema)
	long := strings.Repeat("x", 1<<20)
	for name, c := range map[string]struct{ in, want string }{
		"a missing argument":              {`{}`, `argument "path" is missing; it wants a string`},
		"a mistyped name":                 {`{"pathh":"a"}`, `unknown argument "pathh" (did you mean "path"?); the arguments are: edits, hidden, id, level, limit, maybe, path, ratio, sort_by, word`},
		"a name of another system":        {`{"file_path":"a"}`, `unknown argument "file_path" (it is called "path" here); the arguments are: edits, hidden, id, level, limit, maybe, path, ratio, sort_by, word`},
		"a foreign name of no argument":   {`{"old_str":"a"}`, `unknown argument "old_str"; the arguments are: edits, hidden, id, level, limit, maybe, path, ratio, sort_by, word`},
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
		"several wrong names":             {`{"old_str":"a","pathh":"a"}`, `unknown argument "old_str", argument "pathh" (did you mean "path"?); the arguments are: edits, hidden, id, level, limit, maybe, path, ratio, sort_by, word`},
		"more of them than anybody reads": {`{"a1":1,"a2":1,"a3":1,"a4":1,"a5":1}`, `unknown argument "a1", argument "a2", argument "a3", argument "a4", ...; the arguments are: edits, hidden, id, level, limit, maybe, path, ratio, sort_by, word`},
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
			got, err := s.Check(t.Context(), json.RawMessage(c.in))
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
		if got, err := s.Check(t.Context(), json.RawMessage(in)); err == nil {
			t.Errorf("%q was accepted as %s", in, got)
		}
	}
}

func TestAReasonBeyondOurWordsIsCut(t *testing.T) {
	s := compile(t, `{"type":"object","properties":{"a":{"oneOf":[{"type":"string","maxLength":3},{"type":"integer"}]}}}`)
	_, err := s.Check(t.Context(), json.RawMessage(`{"a":"`+strings.Repeat("x", 1<<20)+`"}`))
	if err == nil || len(err.Error()) > 400 {
		t.Fatalf("the error has %d bytes: %.200v", len(fmt.Sprint(err)), err)
	}
	_, err = s.Check(t.Context(), json.RawMessage(`{"a":{"b":1}}`))
	want := `argument "a" is an object, which fits no alternative of its schema; 1: argument "a" is an object; it wants a string; 2: argument "a" is an object; it wants an integer`
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
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
			if _, err := compile(t, schema).Check(t.Context(), json.RawMessage(`{"a":1,"b":2}`)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestArgumentsNestUpToTheLimit(t *testing.T) {
	s := compile(t, `{"type":"object"}`)
	nested := func(n int) json.RawMessage { // n levels, including the object
		return json.RawMessage(`{"a":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + `}`)
	}
	if _, err := s.Check(t.Context(), nested(maxArgsDepth)); err != nil {
		t.Errorf("%d levels: %v", maxArgsDepth, err)
	}
	if _, err := s.Check(t.Context(), nested(maxArgsDepth+1)); err == nil {
		t.Errorf("%d levels were accepted", maxArgsDepth+1)
	}
	bomb := json.RawMessage(`{"a":` + strings.Repeat("[", maxArgsBytes/2))
	if _, err := s.Check(t.Context(), bomb); err == nil || !strings.Contains(err.Error(), "nests deeper") {
		t.Errorf("four million levels: %v", err)
	}
}

func TestArgumentsAreBoundedInSize(t *testing.T) {
	s := compile(t, `{"type":"object"}`)
	of := func(n int) json.RawMessage {
		return json.RawMessage(`{"a":"` + strings.Repeat("x", n-len(`{"a":""}`)) + `"}`)
	}
	if got, err := s.Check(t.Context(), of(maxArgsBytes)); err != nil || len(got) != maxArgsBytes {
		t.Errorf("%d bytes became %d, %v", maxArgsBytes, len(got), err)
	}
	if _, err := s.Check(t.Context(), of(maxArgsBytes+1)); err == nil {
		t.Errorf("%d bytes were accepted", maxArgsBytes+1)
	}
}

func TestBigNestedArraysAreChecked(t *testing.T) {
	s := compile(t, `{"type":"object","properties":{"rows":{"type":"array","items":{"type":"array","items":{"type":"integer"}}}}}`)
	row := "[" + strings.Repeat("7,", 99) + "7]"
	all := `{"rows":[` + strings.Repeat(row+",", 199) + row + `]}`
	if got, err := s.Check(t.Context(), json.RawMessage(all)); err != nil || string(got) != all {
		t.Errorf("200 rows of 100: %v", err)
	}
	bad := strings.Replace(all, "7]]", `"7"]]`, 1)
	if _, err := s.Check(t.Context(), json.RawMessage(bad)); err == nil || err.Error() != `argument "rows[199][99]" is the string "7"; it wants an integer` {
		t.Errorf("got %v", err)
	}
}

func TestCompileRefusesSchemas(t *testing.T) {
	for name, c := range map[string]struct{ schema, want string }{
		"that are missing":                   {``, "is missing"},
		"that are not JSON":                  {`{`, "not one complete JSON value"},
		"that are null":                      {`null`, `has type null`},
		"that are true":                      {`true`, `has type null`},
		"that are an array":                  {`[]`, "has type null"},
		"of a string":                        {`{"type":"string"}`, `has type "string"`},
		"of several types":                   {`{"type":["object","null"]}`, `has type ["object","null"]`},
		"without a type":                     {`{"properties":{}}`, `has type null`},
		"with a key twice":                   {`{"type":"object","type":"string"}`, `key "type" twice`},
		"with a key of a property twice":     {`{"type":"object","properties":{"a":{},"\u0061":{}}}`, `key "a" twice`},
		"with a null property":               {`{"type":"object","properties":{"a":null}}`, `"properties": "a": is not a schema`},
		"with a pattern that is none":        {`{"type":"object","properties":{"a":{"pattern":"("}}}`, `"properties": "a": "pattern": error parsing regexp`},
		"with a required that is a string":   {`{"type":"object","required":"a"}`, `"required": is not a list of strings`},
		"that nest too deep":                 {strings.Repeat(`{"not":`, 100) + `{}` + strings.Repeat(`}`, 100), "nests deeper"},
		"that name another document":         {`{"type":"object","properties":{"a":{"$ref":"https://example.com/s.json"}}}`, "https://example.com/s.json"},
		"that name a file":                   {`{"type":"object","properties":{"a":{"$ref":"file:///etc/passwd"}}}`, "names a schema in the same document"},
		"that name a path":                   {`{"type":"object","properties":{"a":{"$ref":"other.json#/x"}}}`, "names a schema in the same document"},
		"that name nothing":                  {`{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}}}`, "names a schema in the same document"},
		"with a dynamic reference":           {`{"type":"object","properties":{"a":{"$dynamicRef":"#x"}}}`, "$dynamicRef"},
		"with a required number":             {`{"type":"object","required":[1]}`, `"required": is not a list of strings`},
		"with a type that is none":           {`{"type":"object","properties":{"a":{"type":"text"}}}`, `"type": is "text"; the types are`},
		"with a minimum that is a text":      {`{"type":"object","properties":{"a":{"minimum":"1"}}}`, `"minimum": is not a number`},
		"with half a character":              {`{"type":"object","properties":{"a":{"minLength":0.5}}}`, `"minLength": is not a whole number`},
		"with an anyOf that is a schema":     {`{"type":"object","anyOf":{}}`, `"anyOf": is not a list of schemas`},
		"with properties in a list":          {`{"type":"object","properties":[]}`, `"properties": is not an object of schemas`},
		"with an enum of one value":          {`{"type":"object","properties":{"a":{"enum":"x"}}}`, `"enum": is not a list`},
		"with a number beyond floats":        {`{"type":"object","properties":{"a":{"maximum":1e400}}}`, `out of range`},
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
	if _, err := s.Check(t.Context(), json.RawMessage(`{"tree":{"name":"a","kids":[{"name":"b","kids":[]}]}}`)); err != nil {
		t.Error(err)
	}
	_, err := s.Check(t.Context(), json.RawMessage(`{"tree":{"kids":[{},{"kids":[{"name":7}]}]}}`))
	if err == nil || err.Error() != `argument "tree.kids[1].kids[0].name" is the number 7; it wants a string` {
		t.Errorf("got %v", err)
	}
}

// Without limits each of these would keep the validator busy for longer than anybody waits,
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
	list := func(item string, n int) string { return `{"a":[` + strings.Repeat(item+",", n-1) + item + `]}` }
	nested := `{"a":` + strings.Repeat("[", 60) + strings.Repeat("]", 60) + `}`
	for name, c := range map[string]struct{ schema, args string }{
		"by references that double": {doubling, `{"a":1}`},
		"by branches that double with depth": {
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/n"}},"$defs":{"n":{"anyOf":[{"items":{"$ref":"#/$defs/n"}},{"items":{"$ref":"#/$defs/n"}}]}}}`, nested},
		"by long chains at each level": {chain, nested},
		"by alternatives that each are about all items": {
			`{"type":"object","properties":{"a":{"anyOf":[` + strings.Repeat(`{"uniqueItems":true,"maxItems":0},{"enum":[[]]},{"contains":false},`, 200) + `false]}}}`,
			list("0", 100_000)},
		"by alternatives of alternatives of items": {
			`{"type":"object","properties":{"a":{"contains":{"$ref":"#/$defs/n0"}}},"$defs":{` + fours(9) + `"n9":false}}`, list("0", 100)},
		"by a pattern over a long text": {
			`{"type":"object","properties":{"a":{"pattern":"` + strings.Repeat("(a|b|c)?", 100) + `$"}}}`,
			`{"a":"` + strings.Repeat("x", 4<<20) + `"}`},
		"by a large pattern over many texts": {
			`{"type":"object","properties":{"a":{"items":{"pattern":"(x?){900}"}}}}`, list(`"`+strings.Repeat("x", 100)+`"`, 10_000)},
		"by many patterns over many names": {
			`{"type":"object","patternProperties":{` + patternNames(2000) + `"z":{}}}`, `{` + manyNames(20_000) + `"a":0}`},
		"by what others have looked at": {
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/n"}},"unevaluatedProperties":false,"$defs":{"n":{"allOf":[` + strings.Repeat(`{"items":true},`, 500) + `{}]}}}`,
			list("0", 50_000)},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := compile(t, c.schema).Check(t.Context(), json.RawMessage(c.args))
			if !errors.Is(err, errEffort) {
				t.Errorf("got %.300v", err)
			}
		})
	}
}

// fours returns n schemas, each of which contains the next one four times.
func fours(n int) string {
	var b strings.Builder
	for i := range n {
		next := fmt.Sprintf(`{"$ref":"#/$defs/n%d"}`, i+1)
		fmt.Fprintf(&b, `"n%d":{"anyOf":[%s,%s,%s,%s]},`, i, next, next, next, next)
	}
	return b.String()
}

// An error explains the outermost alternatives, and not those within them.
func TestReasonsDoNotMultiply(t *testing.T) {
	s := compile(t, `{"type":"object","properties":{"a":{"$ref":"#/$defs/n0"}},"$defs":{`+fours(8)+`"n8":{"type":"string"}}}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := s.Check(t.Context(), json.RawMessage(`{"a":0}`))
	runtime.ReadMemStats(&after)
	if err == nil || len(err.Error()) > 1000 || strings.Count(err.Error(), "fits no alternative") != 5 {
		t.Errorf("got %v", err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
		t.Errorf("%d MB were allocated", took>>20)
	}
}

func patternNames(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"^x%d$":{},`, i)
	}
	return b.String()
}

func manyNames(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"n%d":0,`, i)
	}
	return b.String()
}

// The size of a pattern is known before it is compiled: the test counts the bytes that are
// allocated on the way to the answer.
func TestCompilingIsBounded(t *testing.T) {
	property := func(format string, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"p%d":`+format+`,`, i, i)
		}
		return `{"type":"object","properties":{` + b.String() + `"a":{}}}`
	}
	one := func(pattern string) string {
		return fmt.Sprintf(`{"type":"object","properties":{"a":{"pattern":%q}}}`, pattern)
	}
	for name, c := range map[string]struct{ schema, want string }{
		"a repetition that multiplies":        {one(strings.Repeat("(x{1000})", 20)), "too large"},
		"many repetitions in one pattern":     {one(strings.Repeat("(x{0,1000})", 1400)), "too large"},
		"many patterns":                       {property(`{"pattern":"x{1000}%d"}`, 5000), "too large"},
		"many patterns of names":              {property(`{"patternProperties":{"x{1000}%d":{}}}`, 5000), "too large"},
		"a pattern longer than one may be":    {one(strings.Repeat("x", maxPatternBytes+1)), "more than the limit"},
		"long patterns, together":             {property(`{"pattern":"`+strings.Repeat("[xy]", 500)+`%d"}`, 100), "too large together"},
		"classes of Unicode, together":        {property(`{"pattern":"`+strings.Repeat(`\\pL`, 100)+`%d"}`, 100), "too large together"},
		"ranges that ignore case, together":   {property(`{"pattern":"(?i)[\\x{1}-\\x{1D7FF}]%d"}`, 1000), "too large together"},
		"more schemas than one may have":      {`{"type":"object","allOf":[` + strings.Repeat("{},", maxNodes) + `{}]}`, "more than"},
		"an enum with as many values as fit":  {property(`{"enum":["%d"`+strings.Repeat(`,"x"`, 60_000)+`]}`, 1), ""},
		"a deep schema that is full of text":  {strings.Repeat(`{"type":"object","not":`, 60) + `{"description":"` + strings.Repeat("x", 200_000) + `"}` + strings.Repeat("}", 60), ""},
		"a long name above many other names":  {`{"type":"object","properties":{"` + strings.Repeat("k", 100_000) + `":` + property(`{"not":{"const":%d}}`, 5000) + `}}`, ""},
		"a chain of references to references": {`{"type":"object","$defs":{` + chainOf(5000) + `"a5000":{}}}`, "schemas deep"},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := CompileSchema(json.RawMessage(c.schema))
			runtime.ReadMemStats(&after)
			if fmt.Sprint(err) != "<nil>" == (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %.300v, want %q", err, c.want)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 80<<20 {
				t.Errorf("%d MB were allocated", took>>20)
			} else {
				t.Logf("%d MB", took>>20)
			}
			if err != nil && len(err.Error()) > 8<<10 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
		})
	}
}

func chainOf(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"a%d":{"items":{"$ref":"#/$defs/a%d"}},`, i, i+1)
	}
	return b.String()
}

// The patterns of a manifest share limits, and equal ones count once.
func TestThePatternsOfAManifestCountTogether(t *testing.T) {
	manifest := func(pattern func(i int) string) error {
		m := Manifest{ABI: "stockade:tool@0.1.0", Name: "m"}
		for i := range maxToolsPerModule {
			m.Tools = append(m.Tools, Spec{Definition: Definition{Name: fmt.Sprintf("t%d", i), Description: "d",
				Parameters: json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{"a":{"pattern":%q}}}`, pattern(i)))}})
		}
		_, err := ParseManifest(Marshal(m))
		return err
	}
	if err := manifest(func(int) string { return "^(x{900})$" }); err != nil {
		t.Errorf("one pattern in each tool: %v", err)
	}
	if err := manifest(func(i int) string { return fmt.Sprintf("^%d(x{900})$", i) }); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("another pattern in each tool: %v", err)
	}
}

// Schemas of real tools are far from the limits: here are the largest patterns that
// generators write, and more of them than one tool has.
func TestRealSchemasAreFarFromTheLimits(t *testing.T) {
	v6 := `(([0-9a-fA-F]{1,4}:){7,7}[0-9a-fA-F]{1,4}|([0-9a-fA-F]{1,4}:){1,7}:|([0-9a-fA-F]{1,4}:){1,6}:[0-9a-fA-F]{1,4}|` +
		`([0-9a-fA-F]{1,4}:){1,5}(:[0-9a-fA-F]{1,4}){1,2}|([0-9a-fA-F]{1,4}:){1,4}(:[0-9a-fA-F]{1,4}){1,3}|([0-9a-fA-F]{1,4}:){1,3}(:[0-9a-fA-F]{1,4}){1,4}|` +
		`([0-9a-fA-F]{1,4}:){1,2}(:[0-9a-fA-F]{1,4}){1,5}|[0-9a-fA-F]{1,4}:((:[0-9a-fA-F]{1,4}){1,6})|:((:[0-9a-fA-F]{1,4}){1,7}|:))`
	date := `((\d\d[2468][048]|\d\d[13579][26]|\d\d0[48]|[02468][048]00|[13579][26]00)-02-29|\d{4}-((0[13578]|1[02])-(0[1-9]|[12]\d|3[01])|(0[469]|11)-(0[1-9]|[12]\d|30)|(02)-(0[1-9]|1\d|2[0-8])))` +
		`T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z)`
	uuid := `^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-8][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}|00000000-0000-0000-0000-000000000000)$`
	p := newPatterns()
	for i := range 20 { // each a different one
		for _, source := range []string{v6, date, uuid, `^[\w.-]{1,1000}$`, `^[\p{L}\p{Z}\p{N}_.:/=+\-@]*$`} {
			if _, err := p.compile(fmt.Sprintf("%s|%d", source, i)); err != nil {
				t.Fatalf("%d times: %v", i, err)
			}
		}
	}
	var all strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&all, `"property_%d":{"type":["string","null"],"description":"One of many.","minLength":1,"enum":["a","b",null]},`, i)
	}
	compile(t, `{"type":"object","properties":{`+all.String()+`"a":{}},"additionalProperties":false}`)
}

func TestCheckEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := compile(t, readSchema).Check(ctx, json.RawMessage(`{"path":"a"}`)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestArgumentsAreBoundedInNumber(t *testing.T) {
	s := compile(t, `{"type":"object"}`)
	if _, err := s.Check(t.Context(), json.RawMessage(`{"a":[`+strings.Repeat("0,", 200_000)+`0]}`)); err != nil {
		t.Error(err)
	}
	if _, err := s.Check(t.Context(), json.RawMessage(`{"a":[`+strings.Repeat("0,", 4_000_000)+`0]}`)); err == nil || !strings.Contains(err.Error(), "holds more than 262144 values") {
		t.Errorf("got %v", err)
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

// FuzzCheck checks that accepted arguments are an object in canonical form, that they are
// accepted again unchanged, and that all JSON readers read them alike.
func FuzzCheck(f *testing.F) {
	for _, args := range []string{`{}`, `{"path":"a","limit":3}`, `{"path":"5","limit":5.0,"maybe":null,"level":null}`, `{"edits":"[{\"old\":\"x\",\"line\":\"1\"}]"}`, `{"path":"\ud800","edits":[{"old":"x"}]}`, `{"a":1e400}`, `{"a":{"b":[1,{"c":null}]}}`, `[[`, `{"a":1,"\u0061":2}`} {
		f.Add(readSchema, args)
		f.Add(treeSchema, args)
		f.Add(repairSchema, args)
		f.Add(`{"type":"object"}`, args)
	}
	f.Add(repairSchema, `{"path":"5","n":5.0,"x":1e1,"null":null,"few":null,"free":"5","any":null,"one":true,"either":5,"text":"5","listed":"[1]","half":{"k":2,"v":"2"},"deep":{"path":"{}","list":[]},"more":{"a":2.0}}`)
	f.Fuzz(func(t *testing.T, schema, args string) {
		s, err := CompileSchema(json.RawMessage(schema))
		if err != nil {
			return
		}
		got, err := s.Check(t.Context(), json.RawMessage(args))
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
		again, err := s.Check(t.Context(), got)
		if err != nil || string(again) != string(got) {
			t.Errorf("%q became %q, %v", got, again, err)
		}
		// A repair keeps the meaning of arguments that fit.
		repaired := s.Repair(t.Context(), json.RawMessage(args))
		_, was, err := decode([]byte(args))
		_, is, errNow := decode(repaired)
		if len(bytes.TrimSpace([]byte(args))) > 0 && (err != nil || errNow != nil || string(Marshal(is)) != string(Marshal(was))) {
			t.Errorf("%q was repaired to %q", args, repaired)
		}
	})
}
