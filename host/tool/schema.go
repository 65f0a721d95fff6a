package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
)

// MaxArgsBytes bounds the arguments of one call.
const MaxArgsBytes = 8 << 20

// maxArgsDepth bounds how deep arguments may nest, well under the depth at
// which a recursive validator would need an unusual stack.
const maxArgsDepth = 64

// Schema checks the arguments of one tool. It is safe for concurrent use.
type Schema struct {
	compiled func() (*compiledSchema, error)
}

type compiledSchema struct {
	resolved *jsonschema.Resolved
	raw      any // the schema as it was written
	names    []string
	strings  []string // of names, those that hold a string
	closed   bool
}

// CompileSchema prepares the JSON Schema of a tool's arguments. References to
// other documents are refused: a schema must not make the host read anything.
func CompileSchema(schema json.RawMessage) (*Schema, error) {
	s := checkedSchema(schema)
	if _, err := s.compiled(); err != nil {
		return nil, err
	}
	return s, nil
}

// checkedSchema is a schema that has been compiled before, and is again when it
// is needed: most processes call few of their tools. If it is none after all no
// arguments fit it.
func checkedSchema(schema json.RawMessage) *Schema {
	return &Schema{sync.OnceValues(func() (*compiledSchema, error) { return compileSchema(schema) })}
}

func compileSchema(schema json.RawMessage) (*compiledSchema, error) {
	if len(bytes.TrimSpace(schema)) == 0 {
		return nil, errors.New("is missing; a tool without arguments has {\"type\":\"object\",\"properties\":{}}")
	}
	if err := checkDepth(schema); err != nil {
		return nil, err
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(schema, &s); err != nil {
		return nil, fmt.Errorf("is not a JSON Schema: %w", err)
	}
	if s.Type != "object" {
		return nil, fmt.Errorf("has type %q; arguments are an \"object\"", s.Type)
	}
	c := &compiledSchema{}
	if err := json.Unmarshal(schema, &c.raw); err != nil {
		return nil, fmt.Errorf("is not a JSON Schema: %w", err)
	}
	if err := checkRefs(c.raw); err != nil {
		return nil, err
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("is not a JSON Schema: %w", err)
	}
	c.resolved = resolved
	for name, property := range s.Properties {
		c.names = append(c.names, name)
		if property.Type == "string" {
			c.strings = append(c.strings, name)
		}
	}
	slices.Sort(c.names)
	raw := c.raw.(map[string]any) // its type is "object"
	c.closed = raw["additionalProperties"] == false && raw["patternProperties"] == nil
	return c, nil
}

// HasProperty reports whether the schema names the argument.
func (s *Schema) HasProperty(name string) bool {
	c, err := s.compiled()
	return err == nil && slices.Contains(c.names, name)
}

// Properties names the arguments that the schema lists.
func (s *Schema) Properties() []string {
	c, err := s.compiled()
	if err != nil {
		return nil
	}
	return slices.Clone(c.names)
}

// IsString reports whether the argument holds a string and nothing else.
func (s *Schema) IsString(name string) bool {
	c, err := s.compiled()
	return err == nil && slices.Contains(c.strings, name)
}

// Check returns the arguments in canonical form (an object, compact, no
// duplicate keys) or an error that tells the model what to change.
func (s *Schema) Check(args json.RawMessage) (json.RawMessage, error) {
	c, err := s.compiled()
	if err != nil {
		return nil, fmt.Errorf("the tool cannot be called: its schema %w", err)
	}
	if len(args) > MaxArgsBytes {
		return nil, fmt.Errorf("arguments have %d bytes, more than the limit of %d", len(args), MaxArgsBytes)
	}
	if len(bytes.TrimSpace(args)) == 0 {
		args = json.RawMessage("{}") // Several models send nothing for a tool without arguments.
	}
	if err := checkDepth(args); err != nil {
		return nil, fmt.Errorf("the argument object %w", err)
	}
	var all any
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.UseNumber()
	if err := dec.Decode(&all); err != nil {
		return nil, fmt.Errorf("arguments are not a JSON object: %w", err)
	}
	plain, err := plainNumbers(all)
	if err != nil {
		return nil, err
	}
	obj, ok := all.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("arguments are %s; send a JSON object", valueWords(plain))
	}
	if c.closed {
		for _, name := range sortedKeys(obj) {
			if !slices.Contains(c.names, name) { // before what is missing: a mistyped name is both
				return nil, errors.New(unknown(place(name), name, c.names))
			}
		}
	}
	if err := checkEffort(c.raw, plain); err != nil {
		return nil, err
	}
	if err := c.resolved.Validate(plain); err != nil {
		why := explain(c.raw, c.raw, "", plain)
		if why == "" {
			why = "arguments do not fit the schema: " + shortError(err)
		}
		return nil, errors.New(why)
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(obj); err != nil {
		return nil, fmt.Errorf("arguments: %w", err)
	}
	return bytes.TrimSpace(out.Bytes()), nil
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// shortError is the validator's text, which repeats whole values, cut.
func shortError(err error) string {
	const most = 300
	text := strings.TrimPrefix(err.Error(), "validating root: ")
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + " ..."
	}
	return text
}

// plainNumbers turns json.Number, which the validator takes for a string,
// into the number that it stands for. Integers beyond 2^53 keep their digits
// in what the guest gets: only the copy that is validated is rounded. A number
// beyond every float is refused: the validator would take it for 0.
func plainNumbers(v any) (any, error) {
	switch v := v.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i, nil
		}
		f, err := v.Float64()
		if err != nil {
			return nil, fmt.Errorf("the number %.40s is out of range", v)
		}
		return f, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			plain, err := plainNumbers(e)
			if err != nil {
				return nil, err
			}
			out[k] = plain
		}
		return out, nil
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			plain, err := plainNumbers(e)
			if err != nil {
				return nil, err
			}
			out[i] = plain
		}
		return out, nil
	}
	return v, nil
}

// checkDepth refuses text that is not one JSON value, repeats a key of one
// object, or nests deeper than maxArgsDepth, without recursing itself.
// Duplicate keys are refused because two parsers may pick different ones: the
// policy would decide on the first and the guest act on the second.
func checkDepth(data []byte) error {
	type level struct {
		keys  map[string]bool // nil in an array
		isKey bool
	}
	var stack []level
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	values := 0
	for {
		tok, err := dec.Token()
		if err == io.EOF {
			if values != 1 || len(stack) != 0 {
				return errors.New("is not one complete JSON value")
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("is not valid JSON at byte %d: %w", dec.InputOffset(), err)
		}
		top := len(stack) - 1
		if top >= 0 && stack[top].keys != nil && stack[top].isKey {
			if key, ok := tok.(string); ok {
				if stack[top].keys[key] {
					return fmt.Errorf("holds the key %.80q twice", key)
				}
				stack[top].keys[key] = true
				stack[top].isKey = false
				continue
			}
		}
		switch tok {
		case json.Delim('{'), json.Delim('['):
			if len(stack) == maxArgsDepth {
				return fmt.Errorf("nests deeper than %d levels", maxArgsDepth)
			}
			l := level{}
			if tok == json.Delim('{') {
				l = level{keys: map[string]bool{}, isKey: true}
			}
			stack = append(stack, l)
			continue
		case json.Delim('}'), json.Delim(']'):
			stack = stack[:top]
			top--
		}
		// A value has ended.
		if top >= 0 {
			stack[top].isKey = stack[top].keys != nil
		} else {
			values++
		}
	}
}
