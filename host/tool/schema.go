package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
)

// Limits on the arguments of one call; more is refused. maxArgsDepth and maxArgsValues also
// hold for any other JSON, see [CheckJSON].
const (
	maxArgsBytes  = 8 << 20
	maxArgsDepth  = 64      // levels; a recursive validator would need an unusual stack for many more
	maxArgsValues = 1 << 18 // half the number of tokens; a value takes a hundred bytes however short it is
)

// Schema is the JSON Schema of the arguments of one tool. It is safe for concurrent use.
type Schema struct {
	compiled func() (*compiledSchema, error)
}

type compiledSchema struct {
	root            *node
	tracksEvaluated bool // see compiler.tracksEvaluated
}

// CompileSchema compiles the JSON Schema of a tool's arguments, of draft 7 or 2020-12. Its type
// must be "object". References to other documents are an error: a schema must not make the
// host read anything.
func CompileSchema(schema json.RawMessage) (*Schema, error) {
	return newPatterns().schema(schema)
}

// schema compiles one of several schemas whose patterns share the limits of p.
func (p *patterns) schema(schema json.RawMessage) (*Schema, error) {
	c, err := compileSchema(schema, p)
	return &Schema{func() (*compiledSchema, error) { return c, err }}, err
}

// lazySchema returns a schema that is compiled at its first use: most processes call few of
// their tools. The caller has compiled it before. If it turns out to be invalid, Check refuses
// all arguments.
func lazySchema(schema json.RawMessage) *Schema {
	return &Schema{sync.OnceValues(func() (*compiledSchema, error) { return compileSchema(schema, newPatterns()) })}
}

func compileSchema(schema json.RawMessage, p *patterns) (*compiledSchema, error) {
	if len(bytes.TrimSpace(schema)) == 0 {
		return nil, errors.New("is missing; a tool without arguments has {\"type\":\"object\",\"properties\":{}}")
	}
	if err := CheckJSON(schema); err != nil {
		return nil, err
	}
	_, root, err := decode(schema)
	if err != nil {
		return nil, fmt.Errorf("is not a JSON Schema: %w", err)
	}
	top, _ := root.(map[string]any)
	if top["type"] != "object" {
		return nil, fmt.Errorf("has type %.80s; arguments are an \"object\"", Marshal(top["type"]))
	}
	draft, _ := top["$schema"].(string)
	c := &compiler{root: root, nodes: map[uintptr]*node{}, patterns: p, before2019: strings.Contains(draft, "//json-schema.org/draft-0")}
	n, err := c.node(root)
	if err != nil {
		text := err.Error()
		if limit := 1000; len(text) > limit { // the end names the fault and its place
			text = "... " + strings.ToValidUTF8(text[len(text)-limit:], "")
		}
		return nil, fmt.Errorf("is not a supported JSON Schema: %s", text)
	}
	left := map[*node]bool{}
	for _, n := range c.nodes {
		if err := n.checkEnds(left); err != nil {
			return nil, err
		}
	}
	return &compiledSchema{n, c.tracksEvaluated}, nil
}

// HasProperty reports whether "properties" of the schema lists the argument.
func (s *Schema) HasProperty(name string) bool {
	c, err := s.compiled()
	return err == nil && c.root.props[name] != nil
}

// Properties returns the sorted names of the arguments that the schema lists.
func (s *Schema) Properties() []string {
	c, err := s.compiled()
	if err != nil {
		return nil
	}
	return sortedKeys(c.root.props)
}

// AllowsUnlisted reports whether the schema may accept arguments that it does not list: it
// returns false for "additionalProperties": false, whatever "patternProperties" allows.
func (s *Schema) AllowsUnlisted() bool {
	c, err := s.compiled()
	return err != nil || c.root.additionalProps == nil || !c.root.additionalProps.never
}

// IsString reports whether the schema lists the argument with the only type "string".
func (s *Schema) IsString(name string) bool {
	c, err := s.compiled()
	if err != nil || c.root.props[name] == nil {
		return false
	}
	return slices.Equal(c.root.props[name].types, []string{"string"})
}

// Check returns the arguments in canonical form, or an error that tells the model how to
// correct them. The canonical form is a compact object with sorted keys. An argument with a
// list of values gets the upper and lower case of that list. Empty args become {}.
func (s *Schema) Check(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
	c, err := s.compiled()
	if err != nil {
		return nil, fmt.Errorf("the tool cannot be called: its schema %w", err)
	}
	if len(args) > maxArgsBytes {
		return nil, fmt.Errorf("arguments have %d bytes, more than the limit of %d", len(args), maxArgsBytes)
	}
	if len(bytes.TrimSpace(args)) == 0 {
		args = json.RawMessage("{}") // Several models send nothing for a tool without arguments.
	}
	if err := CheckJSON(args); err != nil {
		return nil, fmt.Errorf("the argument object %w", err)
	}
	all, plain, err := decode(args)
	if err != nil {
		return nil, err
	}
	obj, ok := all.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("arguments are %s; send a JSON object%w", valueWords(plain), ErrWrongNames)
	}
	for name, value := range obj {
		if match := c.root.props[name].matchFold(value); match != "" {
			obj[name], plain.(map[string]any)[name] = match, match
		}
	}
	if err := c.check(ctx, plain); err != nil {
		return nil, err
	}
	return Marshal(obj), nil
}

// Validate returns an error unless data is a JSON object that fits the schema just as it is.
func (s *Schema) Validate(ctx context.Context, data json.RawMessage) error {
	c, err := s.compiled()
	if err == nil {
		err = CheckJSON(data)
	}
	if err != nil {
		return err
	}
	_, plain, err := decode(data)
	if err == nil {
		err = c.check(ctx, plain)
	}
	return err
}

func (c *compiledSchema) check(ctx context.Context, plain any) error {
	w := &walk{ctx: ctx, effortLeft: maxEffort, tracksEvaluated: c.tracksEvaluated}
	fault := w.check(c.root, plain, &argPath{}, 0, nil)
	switch {
	case w.err != nil:
		return w.err
	case fault != nil && (fault.wrongName || fault.alternatives != nil):
		return fmt.Errorf("%s%w", fault, ErrWrongNames)
	case fault != nil:
		return errors.New(fault.String())
	}
	return nil
}

// ErrWrongNames is wrapped by an error of [Schema.Check] if the caller seems not to know the
// arguments: they are no object, or one is missing, unknown, or fits no alternative. It has no
// text of its own.
var ErrWrongNames = errors.New("")

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// decode parses valid JSON. all has the numbers as json.Number; plain is a copy with numbers
// that can be compared, see plainNumbers.
func decode(data []byte) (all, plain any, err error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(&all); err != nil {
		return nil, nil, err
	}
	plain, err = plainNumbers(all)
	return all, plain, err
}

// plainNumbers replaces each json.Number by an int64, or by a float64 if it is not a whole
// number or too large. The guest gets integers with all their digits: only this copy, which is
// checked, is rounded. A number beyond every float is an error.
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
		if f == math.Trunc(f) && math.Abs(f) < 1<<63 {
			return int64(f), nil
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

// CheckJSON returns an error unless data is exactly one JSON value that repeats no key within
// an object, has at most maxArgsDepth levels and fewer than 2*maxArgsValues tokens: keys, values
// without parts, and brackets. It does not recurse.
//
// Duplicate keys are refused because two parsers may pick different ones: the policy would
// decide on the first and the guest act on the second.
func CheckJSON(data []byte) error {
	type level struct {
		keys  map[string]bool // nil in an array
		isKey bool
	}
	var stack []level
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	values, tokens := 0, 0
	for {
		tok, err := dec.Token()
		if tokens++; tokens > 2*maxArgsValues { // in an object a value takes two tokens, for the key or for its end
			return fmt.Errorf("holds more than %d values", maxArgsValues)
		}
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
