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

// maxArgsBytes bounds the arguments of one call.
const maxArgsBytes = 8 << 20

// maxArgsDepth bounds how deep arguments may nest, well under the depth at
// which a recursive validator would need an unusual stack.
const maxArgsDepth = 64

// maxArgsValues bounds how many values arguments hold, each of which takes a
// hundred bytes however short it is.
const maxArgsValues = 1 << 18

// Schema checks the arguments of one tool. It is safe for concurrent use.
type Schema struct {
	compiled func() (*compiledSchema, error)
}

type compiledSchema struct {
	root            *node
	tracksEvaluated bool
}

// CompileSchema prepares the JSON Schema of a tool's arguments, as drafts 7 and
// 2020-12 have it. References to other documents are refused: a schema must not
// make the host read anything.
func CompileSchema(schema json.RawMessage) (*Schema, error) {
	return newPatterns().schema(schema)
}

// schema compiles one of several schemas whose patterns count together.
func (p *patterns) schema(schema json.RawMessage) (*Schema, error) {
	c, err := compileSchema(schema, p)
	return &Schema{func() (*compiledSchema, error) { return c, err }}, err
}

// lazySchema is a schema that has been compiled before, and is again when it
// is needed: most processes call few of their tools. If it is none after all no
// arguments fit it.
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
		if most := 1000; len(text) > most { // the end says what is wrong, and where
			text = "... " + strings.ToValidUTF8(text[len(text)-most:], "")
		}
		return nil, fmt.Errorf("is not a JSON Schema that tools may have: %s", text)
	}
	left := map[*node]bool{}
	for _, n := range c.nodes {
		if err := n.checkEnds(left); err != nil {
			return nil, err
		}
	}
	return &compiledSchema{n, c.tracksEvaluated}, nil
}

// HasProperty reports whether the schema names the argument.
func (s *Schema) HasProperty(name string) bool {
	c, err := s.compiled()
	return err == nil && c.root.props[name] != nil
}

// Properties names the arguments that the schema lists.
func (s *Schema) Properties() []string {
	c, err := s.compiled()
	if err != nil {
		return nil
	}
	return sortedKeys(c.root.props)
}

// AllowsUnlisted reports whether the schema leaves it open which arguments there are beside those
// that it lists.
func (s *Schema) AllowsUnlisted() bool {
	c, err := s.compiled()
	return err != nil || c.root.additionalProps == nil || !c.root.additionalProps.never
}

// IsString reports whether the argument holds a string and nothing else.
func (s *Schema) IsString(name string) bool {
	c, err := s.compiled()
	if err != nil || c.root.props[name] == nil {
		return false
	}
	return slices.Equal(c.root.props[name].types, []string{"string"})
}

// Check returns the arguments in canonical form (an object, compact, no
// duplicate keys; a word of a list as that has it, however it was in capitals) or an error that tells the model what to change.
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
		if own := c.root.props[name].matchFold(value); own != "" {
			obj[name], plain.(map[string]any)[name] = own, own
		}
	}
	w := &walk{ctx: ctx, effortLeft: maxEffort, tracksEvaluated: c.tracksEvaluated}
	fault := w.check(c.root, plain, &argPath{}, 0, nil)
	switch {
	case w.err != nil:
		return nil, w.err
	case fault != nil && (fault.wrongName || fault.alternatives != nil):
		return nil, fmt.Errorf("%s%w", fault, ErrWrongNames)
	case fault != nil:
		return nil, errors.New(fault.String())
	}
	return Marshal(obj), nil
}

// ErrWrongNames is wrapped by the error of [Schema.Check] where the caller does not know the
// arguments: one is missing, or none of the tool's. It has no words of its own.
var ErrWrongNames = errors.New("")

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// decode reads a JSON value that has been checked, as it is and with numbers
// that can be compared.
func decode(data []byte) (all, plain any, err error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(&all); err != nil {
		return nil, nil, err
	}
	plain, err = plainNumbers(all)
	return all, plain, err
}

// plainNumbers turns each json.Number into the number that it stands for: an
// int64, or a float64 for what is no whole number or too large. Integers keep
// their digits in what the guest gets: only the copy that is checked is rounded.
// A number beyond every float is refused.
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

// CheckJSON refuses text that is not one JSON value, repeats a key of one
// object, nests deeper than maxArgsDepth or holds more than maxArgsValues,
// without recursing itself.
// Duplicate keys are refused because two parsers may pick different ones: the
// policy would decide on the first and the guest act on the second.
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
		if tokens++; tokens > 2*maxArgsValues { // of an object, each value has a key or an end
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
