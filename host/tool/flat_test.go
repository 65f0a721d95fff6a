package tool

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestAFlatListOfParametersBecomesASchema(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"none": {`{}`, `{"type":"object","properties":{}}`},
		"the flags become a sorted list": {
			`{"path":{"type":"string","required":true},"command":{"type":"string","description":"What","required":true},"limit":{"type":"integer","required":false},"all":{"type":"boolean"}}`,
			`{"type":"object","properties":{"all":{"type":"boolean"},"command":{"description":"What","type":"string"},"limit":{"type":"integer"},"path":{"type":"string"}},"required":["command","path"],"additionalProperties":false}`,
		},
		"nothing is required": {`{"a":{"type":"string"}}`, `{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`},
		"a list stays with the parameter": {
			`{"edit":{"type":"object","properties":{"old":{"type":"string"}},"required":["old"]}}`,
			`{"type":"object","properties":{"edit":{"properties":{"old":{"type":"string"}},"required":["old"],"type":"object"}},"additionalProperties":false}`,
		},
		"a parameter called required": {
			`{"required":{"type":"string","required":true}}`,
			`{"type":"object","properties":{"required":{"type":"string"}},"required":["required"],"additionalProperties":false}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var parameters map[string]json.RawMessage
			if err := json.Unmarshal([]byte(c.in), &parameters); err != nil {
				t.Fatal(err)
			}
			got, err := FlatSchema(parameters)
			if err != nil || string(got) != c.want {
				t.Errorf("got %s, %v\nwant %s", got, err, c.want)
			}
		})
	}
}

func TestAFlatListThatIsNoneIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"no object":             {`"string"`, `is not an object such as`},
		"null":                  {`null`, `is not an object such as`},
		"a list":                {`[]`, `is not an object such as`},
		"not JSON":              {`{"type":`, `is not one complete JSON value`},
		"a flag that is a word": {`{"type":"string","required":"true"}`, `"required" is "true"; it can be true or false`},
		"a flag twice":          {`{"required":true,"required":false}`, `holds the key "required" twice`},
		"an unknown type":       {`{"type":"text"}`, `is not a supported JSON Schema`},
		"a list that is none":   {`{"type":"object","required":[1]}`, `is not a supported JSON Schema`},
		"another document":      {`{"$ref":"https://example.org/schema"}`, `a reference is # or #/`},
		"too deep":              {strings.Repeat(`{"not":`, 70) + `{}` + strings.Repeat(`}`, 70), `nests deeper than 64 levels`},
		"too deep with the rest": {
			strings.Repeat(`{"not":`, 63) + `{}` + strings.Repeat(`}`, 63), `nests deeper than 64 levels`},
		"too large": {`{"description":"` + strings.Repeat("x", MaxManifestBytes) + `"}`, `more than the limit of`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := FlatSchema(map[string]json.RawMessage{"p": json.RawMessage(c.in)})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %.100s, %.200v; want an error with %s", got, err, c.want)
			}
		})
	}
}

func FuzzFlatSchema(f *testing.F) {
	f.Add(`{"path":{"type":"string","required":true},"n":{"type":"integer","minimum":1}}`)
	f.Add(`{"edit":{"type":"object","required":["old"]}}`)
	f.Add(`{"p":{"required":"true"},"q":null}`)
	f.Fuzz(func(t *testing.T, text string) {
		var parameters map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &parameters) != nil {
			return
		}
		schema, err := FlatSchema(parameters)
		if err != nil {
			return
		}
		s, err := CompileSchema(schema)
		if err != nil {
			t.Fatalf("%s became %s: %v", text, schema, err)
		}
		for name := range parameters {
			if !s.HasProperty(name) && json.Valid([]byte(text)) && !strings.Contains(text, `\`) {
				t.Fatalf("%s became %s, without %q", text, schema, name)
			}
		}
	})
}
