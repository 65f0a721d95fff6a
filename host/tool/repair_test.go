package tool

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// repairSchema has arguments whose values can mean only one thing, and others.
const repairSchema = `{"type":"object","$defs":{"count":{"type":"integer"}},"properties":{
	"path":{"type":"string"},"n":{"type":"integer"},"x":{"type":"number"},"b":{"type":"boolean"},
	"null":{"type":["integer","null"]},"few":{"enum":["a",null]},"fewer":{"enum":["a"]},"free":{},
	"ref":{"$ref":"#/$defs/count"},"all":{"allOf":[{"type":"integer"},{"minimum":3}]},
	"any":{"anyOf":[{"type":"integer"},{"type":"null"}]},"one":{"oneOf":[{"type":"integer"},{"type":"boolean"}]},
	"either":{"type":["integer","boolean"]},"text":{"type":["string","integer"]},"listed":{"type":["string","array"]},"digits":{"enum":["1",2]},
	"half":{"anyOf":[{"type":"object","properties":{"k":{"const":1},"v":{"type":"integer"}},"required":["k"]},{"type":"object","properties":{"k":{"const":2},"v":{"type":"string"}},"required":["k"]}]},
	"list":{"type":"array","items":{"type":"integer"}},
	"deep":{"type":"object","properties":{"path":{"type":"string"},"n":{"type":"integer"},"list":{"type":"array","items":{"$ref":"#/properties/deep"}}},"required":["path"]},
	"more":{"type":"object","additionalProperties":{"type":"integer"}}
},"required":["path"],"additionalProperties":false}`

func TestArgumentsAreRepairedWhereTheyMeanOneThing(t *testing.T) {
	s := compile(t, repairSchema)
	for name, c := range map[string]struct{ in, want string }{ // without the path; no want: unchanged
		"null for what can be left out":       {`"n":null,"b":null,"fewer":null,"deep":null`, ``},
		"null that is allowed":                {`"null":null,"few":null,"free":null,"any":null`, "-"},
		"null of an object within":            {`"deep":{"path":"a","n":null}`, `"deep":{"path":"a"}`},
		"null that an object within needs":    {`"deep":{"path":null}`, "-"},
		"null of a list":                      {`"list":[null]`, "-"},
		"null of a name that nobody knows":    {`"no":null`, "-"},
		"a whole number with a point":         {`"n":5.0`, `"n":5`},
		"a whole number with an exponent":     {`"n":1e1`, `"n":10`},
		"a fraction that is whole":            {`"n":1.5E+1`, `"n":15`},
		"a fraction":                          {`"n":5.5`, "-"},
		"a number with a point":               {`"x":5.0`, "-"},
		"nothing below nothing":               {`"n":-0`, `"n":0`},
		"nothing below nothing with a point":  {`"n":-0.0`, `"n":0`},
		"a whole number beyond floats":        {`"n":9007199254740993.0`, "-"},
		"digits beyond floats":                {`"n":"9007199254740993"`, `"n":9007199254740993`},
		"almost a whole number":               {`"n":"5.00000000000000000001"`, "-"},
		"a power that floats round":           {`"n":"99999999999999e4"`, "-"},
		"a fraction beyond floats":            {`"n":9007199254740993.4`, "-"},
		"digits beyond 63 bits":               {`"n":"18446744073709551615"`, "-"},
		"a power beyond 64 bits":              {`"n":1e20`, "-"},
		"an exponent without end":             {`"n":"0e9999999"`, "-"},
		"a fraction without end":              {`"n":1e-9999999`, "-"},
		"a number as text":                    {`"n":"5","x":"5.5"`, `"n":5,"x":5.5`},
		"a number as text with a point":       {`"n":"5.0","x":"5.0"`, `"n":5,"x":5.0`},
		"a number as text with blanks":        {`"n":" 5\n"`, `"n":5`},
		"a fraction as text for an integer":   {`"n":"5.5"`, "-"},
		"texts that are no number of JSON":    {`"n":"0x10","x":"NaN"`, "-"},
		"more texts that are none":            {`"n":"1_000","x":"+5"`, "-"},
		"still more":                          {`"n":"007","x":"Infinity"`, "-"},
		"a number with a unit":                {`"n":"5s","x":""`, "-"},
		"a number out of range":               {`"x":"1e400"`, "-"},
		"digits of another script":            {`"n":"٥"`, "-"},
		"a truth as text":                     {`"b":"true"`, `"b":true`},
		"a truth in capitals":                 {`"b":" FALSE "`, `"b":false`},
		"a truth with a letter like one":      {`"b":"fal` + "ſ" + `e"`, "-"},
		"words for a truth":                   {`"b":"yes"`, "-"},
		"a number for a truth":                {`"b":1`, "-"},
		"a truth for a number":                {`"n":true`, "-"},
		"a number for a text":                 {`"path":2024`, "-"},
		"a truth for a text":                  {`"path":true`, "-"},
		"a text stays one":                    {`"path":"5","free":"5"`, "-"},
		"a text of JSON stays one":            {`"path":"{\"path\":\"a\"}"`, "-"},
		"an object as text":                   {`"deep":"{\"path\":\"a\",\"n\":\"5\"}"`, `"deep":{"path":"a","n":5}`},
		"a list as text":                      {`"list":"[1,\"2\"]"`, `"list":[1,2]`},
		"a list as text for an object":        {`"deep":"[1]"`, "-"},
		"an object as text twice":             {`"deep":"\"{}\""`, "-"},
		"an object as text with a key twice":  {`"deep":"{\"path\":\"a\",\"path\":\"b\"}"`, "-"},
		"an object as text that ends early":   {`"deep":"{\"path\":\"a\""`, "-"},
		"a text for a list":                   {`"list":"1"`, "-"},
		"items":                               {`"list":["1",2.0,"x"]`, `"list":[1,2,"x"]`},
		"items of objects":                    {`"deep":{"path":"a","list":[{"path":"b","n":"1"}]}`, `"deep":{"path":"a","list":[{"path":"b","n":1}]}`},
		"values under any name":               {`"more":{"a":"1"}`, `"more":{"a":1}`},
		"a reference":                         {`"ref":"5"`, `"ref":5`},
		"what holds together":                 {`"all":"5"`, `"all":5`},
		"an alternative beside null":          {`"any":"5"`, `"any":5`},
		"an alternative with a point":         {`"any":5.0`, `"any":5`},
		"one of two types":                    {`"either":"5","one":"true"`, "-"},
		"a type beside null":                  {`"null":"5"`, `"null":5`},
		"one of two types that fits":          {`"text":"5","listed":"[1]"`, "-"},
		"a word of a list that fits":          {`"digits":"1"`, "-"},
		"a word of a list that does not":      {`"digits":"2"`, "-"},
		"an alternative that is told by more": {`"half":{"k":1,"v":"2"}`, "-"},
		"an alternative that fits":            {`"half":{"k":2,"v":"2"}`, "-"},
		"beside what is wrong":                {`"n":"5","no":1`, `"n":5,"no":1`},
	} {
		t.Run(name, func(t *testing.T) {
			if c.want == "-" {
				c.want = c.in
			}
			whole := func(args string) string {
				if strings.Contains(args, `"path":`) && strings.HasPrefix(args, `"path"`) {
					return "{" + args + "}"
				}
				return strings.TrimSuffix(`{"path":"a",`+args, ",") + "}"
			}
			in := whole(c.in)
			got := string(s.Repair(t.Context(), json.RawMessage(in)))
			if c.want == c.in && got != in {
				t.Errorf("it became %s", got)
			}
			if c.want != c.in && !reflect.DeepEqual(numbersOf(t, got), numbersOf(t, whole(c.want))) {
				t.Errorf("got %s, want %s", got, whole(c.want))
			}
		})
	}
	for in, want := range map[string]string{
		`null`: `{}`, `""`: `{}`, `"{\"path\":\"a\",\"n\":\"1\"}"`: `{"n":1,"path":"a"}`,
		`" "`: `" "`, `[]`: `[]`, `0`: `0`, `{"path":"a","n":"1","n":"2"}`: `{"path":"a","n":"1","n":"2"}`, `{"n":"1"`: `{"n":"1"`,
		`{"path":null}`: `{"path":null}`,
	} {
		if got := string(s.Repair(t.Context(), json.RawMessage(in))); got != want {
			t.Errorf("%s became %s, want %s", in, got, want)
		}
	}
}

// numbersOf decodes arguments, and keeps all digits of numbers.
func numbersOf(t testing.TB, args string) any {
	all, _, err := decode([]byte(args))
	if err != nil {
		t.Fatalf("%s: %v", args, err)
	}
	return all
}

// A schema can be made so that a repair takes longer than anybody waits, like a check.
func TestRepairingIsBounded(t *testing.T) {
	doubling := `{"type":"object","properties":{"a":{"$ref":"#/$defs/0"}},"$defs":{`
	for i := range 40 {
		next := `{"type":"integer"}`
		if i < 39 {
			next = strings.ReplaceAll(`{"anyOf":[{"$ref":"#/$defs/N"},{"$ref":"#/$defs/N"}]}`, "N", string(Marshal(i+1)))
		}
		doubling += string(Marshal(string(Marshal(i)))) + ":" + next + ","
	}
	s := compile(t, strings.TrimSuffix(doubling, ",")+"}}")
	nested := `{}`
	for len(nested) < 1<<20 {
		nested = `{"a":` + string(Marshal(nested)) + `}`
	}
	tree := compile(t, `{"type":"object","properties":{"a":{"$ref":"#"}}}`)
	for _, c := range []struct {
		schema *Schema
		args   string
	}{
		{s, `{"a":"x"}`}, {s, `{"a":"5"}`}, {tree, nested}, {tree, strings.Repeat(`{"a":`, 65) + `{}` + strings.Repeat(`}`, 65)},
		{compile(t, `{"type":"object","additionalProperties":{"type":"integer"}}`), `{"a":` + strings.Repeat(" ", maxArgsBytes) + `"5"}`},
	} {
		got := c.schema.Repair(t.Context(), json.RawMessage(c.args))
		if c.schema != tree && string(got) != c.args {
			t.Errorf("%.80s became %.80s", c.args, got)
		}
	}
}
