package llm

import (
	"encoding/json"
	"testing"
)

func TestArgumentsAreRepairedWhereTheyCanMeanOneThingOnly(t *testing.T) {
	for name, c := range map[string]struct{ args, want string }{
		"JSON stays as it is":                {` {"a" : 1.0, "b":"\u00e9"} `, ` {"a" : 1.0, "b":"\u00e9"} `},
		"a line end and a tab in a string":   {"{\"content\":\"one\n\ttwo \\\" \\\\\"}", `{"content":"one\u000a\u0009two \" \\"}`},
		"a comma behind the last value":      {`{"a":[1,2, ],"b":"x,}", }`, `{"a":[1,2 ],"b":"x,}" }`},
		"the words of Python":                {`{"a":True,"b":[False,None],"c":"True"}`, `{"a":true,"b":[false,null],"c":"True"}`},
		"an object as text":                  {`"{\"path\":\"a.txt\"}"`, `{"path":"a.txt"}`},
		"an object in a fence":               {"```json\n{\"path\":\"a\"}\n```", `{"path":"a"}`},
		"an empty object before it":          {`{}{"path":"a"}`, `{"path":"a"}`},
		"several of them":                    {"\"```\\n{\\\"a\\\":None,}\\n```\"", `{"a":null}`},
		"the end is missing":                 {`{"content":"half of a fi`, `{"content":"half of a fi`},
		"only the brace is missing":          {`{"path":"a"`, `{"path":"a"`},
		"two objects":                        {`{"path":"a"}{"path":"b"}`, `{"path":"a"}{"path":"b"}`},
		"single quotes":                      {`{'path':'a'}`, `{'path':'a'}`},
		"an escape that JSON does not know":  {`{"pattern":"\d+"}`, `{"pattern":"\d+"}`},
		"names without quotes":               {`{path:"a"}`, `{path:"a"}`},
		"no object":                          {`[1,]`, `[1,]`},
		"a text that only holds such a word": {`Trueish`, `Trueish`},
		"a comma alone in a list":            {`{"a":[,]}`, `{"a":[]}`},
		"a comma with nothing after the key": {`{"a":,}`, `{"a":,}`},
		"a call in words":                    {`read the file`, `read the file`},
		"a line end before the string ends":  {"{\"a\":\"b\\\n\"}", "{\"a\":\"b\\\n\"}"},
	} {
		if got := repairArguments(c.args); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

func FuzzRepaired(f *testing.F) {
	f.Add("{\"a\":\"\n\",\"b\":True,}")
	f.Add("```json\n{}{\"a\":None}\n```")
	f.Fuzz(func(t *testing.T, args string) {
		got := repairArguments(args)
		if got != args && !isObject(got) {
			t.Errorf("%q has become %q", args, got)
		}
		if json.Valid([]byte(args)) && got != args {
			var text string
			if json.Unmarshal([]byte(args), &text) != nil {
				t.Errorf("%q was JSON, and has become %q", args, got)
			}
		}
	})
}
