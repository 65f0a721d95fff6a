package tool

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/stockade-dev/stockade/sdk/go/lines"
)

// Limits on a schema, far beyond the needs of schemas in use, see RATIONALE, "Why do we check
// arguments ourselves?" A schema beyond them is refused.
const (
	maxNodes = 1 << 14 // number of schemas within a schema, without true and false
	maxDepth = 1024    // levels of schemas, also through references; also limits a check of arguments

	maxPatternBytes = 16 << 10 // bytes of one pattern
	maxProgram      = 10_000   // instructions of one compiled pattern
)

// patterns holds the compiled patterns of one manifest or one schema, by their source. They
// share limits, because a manifest has room for thousands.
type patterns struct {
	compiled    map[string]*lines.Pattern
	sourceLeft  int // remaining bytes of source
	programLeft int // remaining instructions, each of which takes some 200 bytes and as many nanoseconds
}

func newPatterns() *patterns {
	return &patterns{compiled: map[string]*lines.Pattern{}, sourceLeft: 64 << 10, programLeft: 100_000}
}

// Costs of expensive parts of a pattern, in bytes of source: three bytes for a class of
// Unicode become 13 KB, and a range that ignores case takes milliseconds.
const (
	classBytes = 200
	foldBytes  = 4 << 10
)

// compile compiles a pattern, at most once. One beyond a limit is an error.
func (p *patterns) compile(source string) (*lines.Pattern, error) {
	if pattern := p.compiled[source]; pattern != nil {
		return pattern, nil
	}
	if len(source) > maxPatternBytes {
		return nil, fmt.Errorf("has %d bytes, more than the limit of %d", len(source), maxPatternBytes)
	}
	classes, folds := lines.Heavy(source)
	if p.sourceLeft -= len(source) + classBytes*classes + foldBytes*folds; p.sourceLeft < 0 {
		return nil, errors.New("is too much: the patterns of one module are too large together; let the tools check some values themselves")
	}
	pattern, err := lines.Compile(source, max(1, min(maxProgram, p.programLeft)))
	if errors.Is(err, lines.ErrTooLarge) {
		return nil, fmt.Errorf("%.80q is too large, by itself or with the module's other patterns; repeat less, or say minLength and maxLength", source)
	}
	if err != nil {
		return nil, err
	}
	p.programLeft -= int(pattern.Steps())
	p.compiled[source] = pattern
	return pattern, nil
}

// node is one compiled schema. A missing keyword, also as a nil field, accepts every value.
type node struct {
	never bool     // the schema false, which accepts no value
	ref   *node    // $ref
	types []string // nil: all

	choices []*choice // enum and const; a value must be in each
	bounds  []bound   // minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf

	length, items, properties, contained interval // minLength and maxLength, minItems and so on

	pattern *pattern

	all, any, one          []*node // allOf, anyOf, oneOf
	not, when, then, other *node   // not, if, then, else

	prefix                           []*node // prefixItems: one schema for each of the first items
	rest, contains, unevaluatedItems *node   // rest: items, for those after prefix
	unique                           bool    // uniqueItems

	props                                        map[string]*node
	patternProps                                 []patternProp
	additionalProps, propNames, unevaluatedProps *node
	required                                     []string
	dependent                                    []dependent
}

// interval limits a number of things, both ends included.
type interval struct{ least, most int }

// bounds reports whether the interval excludes some number.
func (i interval) bounds() bool { return i != interval{0, math.MaxInt} }

// newNode returns a schema that accepts every value.
func newNode() *node {
	all := interval{0, math.MaxInt}
	return &node{length: all, items: all, properties: all, contained: interval{1, math.MaxInt}}
}

type bound struct {
	keyword string
	limit   any // an int64 or a float64
}

// matchFold returns the string in the node's only enum or const that equals a value except for
// upper and lower case. It is empty if the value itself is in the list, or none or several
// match.
func (n *node) matchFold(value any) string {
	text, ok := value.(string)
	if n == nil || !ok || len(n.choices) != 1 || len(text) > n.choices[0].longest {
		return ""
	}
	match := ""
	for _, v := range n.choices[0].values {
		word, _ := v.(string)
		switch {
		case word == text, strings.EqualFold(word, text) && match != "":
			return ""
		case strings.EqualFold(word, text):
			match = word
		}
	}
	return match
}

// choice is a list of values, one of which is required.
type choice struct {
	values  []any
	keys    map[string]bool // the values as JSON in canonical form
	longest int             // bytes of the longest of keys
}

// pattern is a compiled pattern and its source, which errors show.
type pattern struct {
	source string
	*lines.Pattern
}

// patternProp is the schema of the properties whose names match a pattern.
type patternProp struct {
	pattern
	node *node
}

// dependent holds the requirements of an object that has the property name.
type dependent struct {
	name     string
	required []string // names of other properties
	node     *node    // for the object; nil: no requirement
}

// compiler compiles a schema. It finds a map that it has compiled by its address, so it
// compiles each map once, however many references there are to it.
type compiler struct {
	root     any
	nodes    map[uintptr]*node
	patterns *patterns
	depth    int // level of the schema that is being compiled; 1: the root

	before2019      bool // the draft is older than 2019-09
	tracksEvaluated bool // some schema has unevaluatedItems or unevaluatedProperties
}

func (c *compiler) node(schema any) (*node, error) {
	s, ok := schema.(map[string]any)
	if !ok {
		all, ok := schema.(bool)
		if !ok {
			return nil, errors.New("is not a schema: an object, true or false")
		}
		n := newNode()
		n.never = !all
		return n, nil
	}
	id := reflect.ValueOf(s).Pointer()
	if n := c.nodes[id]; n != nil {
		return n, nil
	}
	if len(c.nodes) == maxNodes {
		return nil, fmt.Errorf("is one of more than %d schemas", maxNodes)
	}
	if c.depth++; c.depth > maxDepth {
		return nil, fmt.Errorf("is more than %d schemas deep", maxDepth)
	}
	defer func() { c.depth-- }()
	n := newNode()
	c.nodes[id] = n
	ref, ok := s["$ref"]
	if ok && c.before2019 { // $ref makes older drafts ignore all other keywords
		return n, c.keyword(n, "$ref", ref)
	}
	_, tuple := s["items"].([]any)
	for _, k := range sortedKeys(s) { // sorted, so that the same schema always gives the same error
		if k == "additionalItems" && !tuple {
			continue
		}
		if err := c.keyword(n, k, s[k]); err != nil {
			return nil, fmt.Errorf("%.80q: %w", k, err)
		}
	}
	return n, nil
}

// keyword compiles one keyword. It refuses some that are not supported. It ignores unknown ones
// and others that do not restrict values, as the specification requires.
func (c *compiler) keyword(n *node, k string, v any) (err error) {
	switch k {
	case "$id":
		if c.depth > 1 {
			return errors.New("stands below the top, which is not supported")
		}
	case "$dynamicRef", "$recursiveRef":
		return errors.New("is not supported; use $ref")
	case "$ref":
		n.ref, err = c.reference(v)
	case "$defs", "definitions":
		_, err = c.nodeMap(v)
	case "type":
		n.types, err = parseTypes(v)
	case "enum":
		err = n.addChoice(v)
	case "const":
		err = n.addChoice([]any{v})
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf":
		if kind := jsonType(v); kind != "integer" && kind != "number" {
			return errors.New("is not a number")
		}
		n.bounds = append(n.bounds, bound{k, v})
	case "minLength":
		n.length.least, err = parseCount(v)
	case "maxLength":
		n.length.most, err = parseCount(v)
	case "minItems":
		n.items.least, err = parseCount(v)
	case "maxItems":
		n.items.most, err = parseCount(v)
	case "minProperties":
		n.properties.least, err = parseCount(v)
	case "maxProperties":
		n.properties.most, err = parseCount(v)
	case "minContains":
		n.contained.least, err = parseCount(v)
	case "maxContains":
		n.contained.most, err = parseCount(v)
	case "pattern":
		n.pattern, err = c.pattern(v)
	case "allOf":
		n.all, err = c.nodeList(v)
	case "anyOf":
		n.any, err = c.nodeList(v)
	case "oneOf":
		n.one, err = c.nodeList(v)
	case "not":
		n.not, err = c.node(v)
	case "if":
		n.when, err = c.node(v)
	case "then":
		n.then, err = c.node(v)
	case "else":
		n.other, err = c.node(v)
	case "prefixItems":
		n.prefix, err = c.nodeList(v)
	case "items":
		if _, ok := v.([]any); ok { // a schema for each place, before the draft 2020-12
			n.prefix, err = c.nodeList(v)
		} else {
			n.rest, err = c.node(v)
		}
	case "additionalItems":
		n.rest, err = c.node(v)
	case "contains":
		n.contains, err = c.node(v)
	case "unevaluatedItems":
		c.tracksEvaluated = true
		n.unevaluatedItems, err = c.node(v)
	case "uniqueItems":
		var ok bool
		if n.unique, ok = v.(bool); !ok {
			return errors.New("is not true or false")
		}
	case "properties":
		n.props, err = c.nodeMap(v)
	case "patternProperties":
		n.patternProps, err = c.patternProps(v)
	case "additionalProperties":
		n.additionalProps, err = c.node(v)
	case "propertyNames":
		n.propNames, err = c.node(v)
	case "unevaluatedProperties":
		c.tracksEvaluated = true
		n.unevaluatedProps, err = c.node(v)
	case "required":
		n.required, err = parseStrings(v)
	case "dependentRequired", "dependentSchemas", "dependencies":
		err = c.dependent(n, v)
	}
	return err
}

func (c *compiler) nodeList(v any) ([]*node, error) {
	schemas, ok := v.([]any)
	if !ok {
		return nil, errors.New("is not a list of schemas")
	}
	nodes := make([]*node, len(schemas))
	for i, s := range schemas {
		var err error
		if nodes[i], err = c.node(s); err != nil {
			return nil, fmt.Errorf("%d: %w", i, err)
		}
	}
	return nodes, nil
}

func (c *compiler) nodeMap(v any) (map[string]*node, error) {
	schemas, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("is not an object of schemas")
	}
	nodes := make(map[string]*node, len(schemas))
	for _, name := range sortedKeys(schemas) {
		var err error
		if nodes[name], err = c.node(schemas[name]); err != nil {
			return nil, fmt.Errorf("%.80q: %w", name, err)
		}
	}
	return nodes, nil
}

func (c *compiler) pattern(v any) (*pattern, error) {
	source, ok := v.(string)
	if !ok {
		return nil, errors.New("is not a string")
	}
	compiled, err := c.patterns.compile(source)
	return &pattern{source, compiled}, err
}

func (c *compiler) patternProps(v any) ([]patternProp, error) {
	nodes, err := c.nodeMap(v)
	if err != nil {
		return nil, err
	}
	var out []patternProp
	for _, source := range sortedKeys(nodes) {
		p, err := c.pattern(source)
		if err != nil {
			return nil, fmt.Errorf("%.80q: %w", source, err)
		}
		out = append(out, patternProp{*p, nodes[source]})
	}
	return out, nil
}

func (c *compiler) dependent(n *node, v any) error {
	m, ok := v.(map[string]any)
	if !ok {
		return errors.New("is not an object")
	}
	for _, name := range sortedKeys(m) {
		d := dependent{name: name}
		var err error
		if _, ok := m[name].([]any); ok {
			d.required, err = parseStrings(m[name])
		} else {
			d.node, err = c.node(m[name])
		}
		if err != nil {
			return fmt.Errorf("%.80q: %w", name, err)
		}
		n.dependent = append(n.dependent, d)
	}
	return nil
}

// reference compiles the schema that "#" or "#/a/b" refers to.
func (c *compiler) reference(v any) (*node, error) {
	ref, _ := v.(string)
	bad := fmt.Errorf("is %.80q; a reference is # or #/... and names a schema in the same document", ref)
	fragment, ok := strings.CutPrefix(ref, "#")
	if !ok || fragment != "" && fragment[0] != '/' {
		return nil, bad
	}
	fragment, err := url.PathUnescape(fragment)
	if err != nil {
		return nil, bad
	}
	at := c.root
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
		return c.node(at)
	}
	return nil, bad
}

func parseTypes(v any) ([]string, error) {
	if name, ok := v.(string); ok {
		v = []any{name}
	}
	names, err := parseStrings(v)
	for _, name := range names {
		if typeArticles[name] == "" {
			return nil, fmt.Errorf("is %.40q; the types are array, boolean, integer, null, number, object and string", name)
		}
	}
	return names, err
}

// parseCount returns a value, which must be a whole number from 0.
func parseCount(v any) (int, error) {
	n, ok := v.(int64)
	if !ok || n < 0 {
		return 0, errors.New("is not a whole number from 0")
	}
	return int(min(n, math.MaxInt)), nil
}

func parseStrings(v any) ([]string, error) {
	list, ok := v.([]any)
	out := make([]string, len(list))
	for i, e := range list {
		if out[i], ok = e.(string); !ok {
			break
		}
	}
	if !ok {
		return nil, errors.New("is not a list of strings")
	}
	return out, nil
}

// addChoice adds a choice of v, which must be a list. It stores the values as JSON, so that a
// lookup takes the same time in a long list.
func (n *node) addChoice(v any) error {
	values, ok := v.([]any)
	if !ok {
		return errors.New("is not a list")
	}
	c := &choice{values: values, keys: make(map[string]bool, len(values))}
	for _, v := range values {
		key := string(Marshal(v))
		c.keys[key] = true
		c.longest = max(c.longest, len(key))
	}
	n.choices = append(n.choices, c)
	return nil
}

// checkEnds returns an error if a check could go on without end: a schema must not refer to
// itself for the same value. left holds the nodes that were entered; the value is true after
// the node was left.
func (n *node) checkEnds(left map[*node]bool) error {
	if n == nil {
		return nil
	}
	if done, entered := left[n]; entered {
		if done {
			return nil
		}
		return errors.New("refers to itself without end")
	}
	left[n] = false
	next := slices.Concat([]*node{n.ref, n.not, n.when, n.then, n.other}, n.all, n.any, n.one)
	for _, d := range n.dependent {
		next = append(next, d.node)
	}
	for _, sub := range next {
		if err := sub.checkEnds(left); err != nil {
			return err
		}
	}
	left[n] = true
	return nil
}
