package tool

import (
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"strconv"
	"strings"
)

// A schema comes from a module, and can be made so that a validator never
// returns: a reference to itself overflows the stack, which no Go program
// survives, and references that double at each level take longer than anybody
// waits. The validator offers no bound of its own. So a schema without end is
// refused when it is compiled, and before arguments are validated the visits
// that this takes are counted, up to a bound.
const (
	maxEffort      = 1 << 20 // visits of a schema to a value; about a second at worst
	maxEffortDepth = 1024
)

var errEffort = errors.New("arguments are too large to check against this schema")

// Keywords whose value is a schema, an array of schemas, or an object of
// schemas, sorted by what they are applied to.
var (
	inPlace     = []string{"not", "if", "then", "else", "allOf", "anyOf", "oneOf"}
	inPlaceMaps = []string{"dependentSchemas", "dependencies"}
	ofChildren  = []string{
		"items", "prefixItems", "additionalItems", "unevaluatedItems", "contains",
		"additionalProperties", "unevaluatedProperties", "propertyNames", "contentSchema",
	}
	ofChildrenMaps = []string{"properties", "patternProperties", "$defs", "definitions"}
)

// subschemas lists the schemas under the keywords.
func subschemas(s map[string]any, keywords, maps []string) []any {
	var out []any
	for _, k := range keywords {
		switch v := s[k].(type) {
		case map[string]any, bool:
			out = append(out, v)
		case []any:
			out = append(out, v...)
		}
	}
	for _, k := range maps {
		if m, ok := s[k].(map[string]any); ok {
			for _, v := range m {
				out = append(out, v)
			}
		}
	}
	return out
}

// checkRefs refuses what the count below cannot follow: a reference that is not
// a place in this schema, and one that leads back to itself without going down
// into the value.
func checkRefs(root any) error {
	const entered, left = 1, 2
	state := map[uintptr]int{}
	var walk func(schema any) error // of everything
	var ends func(schema any, depth int) error
	ends = func(schema any, depth int) error {
		s, ok := schema.(map[string]any)
		if !ok {
			return nil
		}
		id := reflect.ValueOf(s).Pointer()
		if state[id] == left {
			return nil
		}
		if state[id] == entered || depth > maxEffortDepth {
			return errors.New("refers to itself without end")
		}
		state[id] = entered
		next := subschemas(s, inPlace, inPlaceMaps)
		if ref, ok := s["$ref"].(string); ok {
			target, err := resolveRef(root, ref)
			if err != nil {
				return err
			}
			next = append(next, target)
		}
		for _, n := range next {
			if err := ends(n, depth+1); err != nil {
				return err
			}
		}
		state[id] = left
		return nil
	}
	top := true
	walk = func(schema any) error {
		s, ok := schema.(map[string]any)
		if !ok {
			return nil
		}
		for _, k := range []string{"$dynamicRef", "$recursiveRef"} {
			if _, ok := s[k]; ok {
				return fmt.Errorf("has a %s, which is not supported; use $ref", k)
			}
		}
		if _, ok := s["$id"]; ok && !top {
			return errors.New("has an $id below its top")
		}
		top = false
		if err := ends(s, 0); err != nil {
			return err
		}
		for _, sub := range append(subschemas(s, inPlace, inPlaceMaps), subschemas(s, ofChildren, ofChildrenMaps)...) {
			if err := walk(sub); err != nil {
				return err
			}
		}
		return nil
	}
	return walk(root)
}

// resolveRef finds the schema that "#" or "#/a/b" names.
func resolveRef(root any, ref string) (any, error) {
	bad := fmt.Errorf("has the $ref %.80q; a reference is # or #/... and names a schema in the same document", ref)
	fragment, ok := strings.CutPrefix(ref, "#")
	if !ok || fragment != "" && fragment[0] != '/' {
		return nil, bad
	}
	fragment, err := url.PathUnescape(fragment)
	if err != nil {
		return nil, bad
	}
	at := root
	for i, key := range strings.Split(fragment, "/") {
		if i == 0 {
			continue // before the first slash
		}
		key = strings.ReplaceAll(strings.ReplaceAll(key, "~1", "/"), "~0", "~")
		switch v := at.(type) {
		case map[string]any:
			at = v[key]
		case []any:
			n, err := strconv.Atoi(key)
			if err != nil || n < 0 || n >= len(v) {
				return nil, bad
			}
			at = v[n]
		default:
			return nil, bad
		}
	}
	switch at.(type) {
	case map[string]any, bool:
		return at, nil
	}
	return nil, bad
}

// effort counts what validating costs at most: every branch is taken.
type effort struct {
	root any
	left int
}

func checkEffort(schema, value any) error {
	e := &effort{root: schema, left: maxEffort}
	if err := e.visit(schema, value, 0); err != nil {
		return err
	}
	if e.left < 0 {
		return errEffort
	}
	return nil
}

func (e *effort) visit(schema, value any, depth int) error {
	s, _ := schema.(map[string]any)
	e.left -= 1 + len(s)
	if e.left < 0 || depth > maxEffortDepth {
		return errEffort
	}
	for _, k := range []string{"enum", "required"} {
		if list, ok := s[k].([]any); ok {
			e.left -= len(list)
		}
	}
	if ref, ok := s["$ref"].(string); ok {
		target, err := resolveRef(e.root, ref)
		if err == nil {
			err = e.visit(target, value, depth+1)
		}
		if err != nil {
			return err
		}
	}
	for _, sub := range subschemas(s, inPlace, inPlaceMaps) {
		if err := e.visit(sub, value, depth+1); err != nil {
			return err
		}
	}
	switch value := value.(type) {
	case string:
		e.left -= len(value) / 64
		if pattern, ok := s["pattern"].(string); ok {
			e.left -= len(value) * len(pattern) / 256
		}
	case []any:
		return e.items(s, value, depth)
	case map[string]any:
		return e.properties(s, value, depth)
	}
	return nil
}

func (e *effort) items(s map[string]any, values []any, depth int) error {
	all := subschemas(s, []string{"additionalItems", "unevaluatedItems", "contains"}, nil)
	each, _ := s["items"].([]any) // one schema for each place, in draft 7
	if each == nil {
		each, _ = s["prefixItems"].([]any)
		all = append(all, subschemas(s, []string{"items"}, nil)...)
	}
	e.left -= len(values)
	for i, v := range values {
		if i < len(each) {
			if err := e.visit(each[i], v, depth+1); err != nil {
				return err
			}
		}
		for _, sub := range all {
			if err := e.visit(sub, v, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *effort) properties(s map[string]any, values map[string]any, depth int) error {
	named, _ := s["properties"].(map[string]any)
	patterns, _ := s["patternProperties"].(map[string]any)
	rest := subschemas(s, []string{"additionalProperties", "unevaluatedProperties"}, []string{"patternProperties"})
	names := subschemas(s, []string{"propertyNames"}, nil)
	e.left -= len(named) + len(values)*(1+len(patterns))
	for k, v := range values {
		if sub, ok := named[k]; ok {
			if err := e.visit(sub, v, depth+1); err != nil {
				return err
			}
		}
		for _, sub := range rest {
			if err := e.visit(sub, v, depth+1); err != nil {
				return err
			}
		}
		for _, sub := range names {
			if err := e.visit(sub, k, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}
