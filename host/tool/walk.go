package tool

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"unicode/utf8"
)

// maxEffort limits the work of one check or repair, in units of about 100 ns, so it takes at
// most a second; a check beyond it ends with errEffort, and a repair changes nothing. A schema
// comes from a module, and can be made so that a check takes longer than anybody waits: with
// references that double at each level, or with a large pattern for each of many values. So the
// walk pays for each step before it, and looks at the context now and then.
const maxEffort = 1 << 23

var errEffort = errors.New("arguments are too large to check against this schema")

type walk struct {
	ctx             context.Context
	effortLeft      int   // remaining units
	err             error // set if the walk has ended without an answer
	tracksEvaluated bool  // see compiler.tracksEvaluated
}

// spend pays for n units, and reports whether the walk may go on.
func (w *walk) spend(n int) bool {
	const interval = 1 << 12 // units between two looks at the context
	before := w.effortLeft
	w.effortLeft -= n
	switch {
	case w.err != nil:
	case w.effortLeft < 0:
		w.err = errEffort
	case before/interval != w.effortLeft/interval:
		w.err = w.ctx.Err()
	}
	return w.err == nil
}

// fault is a part of the arguments that does not fit the schema. The explanation is only built
// when somebody reads it.
type fault struct {
	at           *argPath
	words        func(where string) string // returns the explanation; where describes the place
	alternatives []*fault                  // faults of the first alternatives, none of which fits; else nil
	wrongName    bool                      // a name is missing or unknown
}

// argPath is the place of a value in the arguments.
type argPath struct {
	parent *argPath // place of the array or object around the value; nil at the top
	name   string   // name of a property
	index  int      // index of an item; negative for a property
}

func (s *argPath) item(i int) *argPath           { return &argPath{s, "", i} }
func (s *argPath) property(name string) *argPath { return &argPath{s, name, -1} }

// evaluated holds the properties and items of a value that some schema has accepted, for the
// keywords unevaluatedProperties and unevaluatedItems. Nil collects nothing, because no schema
// has them or only the result of the check matters.
type evaluated struct {
	names map[string]bool
	items map[int]bool
}

// evaluatedCost is the cost of one entry of evaluated, in units of effort.
const evaluatedCost = 4

func (l *evaluated) name(name string) {
	if l != nil {
		l.names[name] = true
	}
}

func (l *evaluated) item(i int) {
	if l != nil {
		l.items[i] = true
	}
}

// overFault is returned when the walk has ended without an answer; nobody reads its text.
var overFault = &fault{words: func(string) string { return "" }}

// check returns nil if the value fits the schema; if w.err is set, its result means nothing. If
// the value fits, it adds the properties and items that the schema has evaluated to outer, which
// may be nil. depth is the number of schemas above.
func (w *walk) check(n *node, value any, at *argPath, depth int, outer *evaluated) *fault {
	if depth > maxDepth {
		w.effortLeft = 0
	}
	if !w.spend(1 + len(n.all) + len(n.any) + len(n.one) + len(n.bounds)) {
		return overFault
	}
	if n.never {
		return &fault{at: at, words: func(where string) string { return where + " is not allowed here" }}
	}
	var seen *evaluated
	if w.tracksEvaluated {
		seen = &evaluated{map[string]bool{}, map[int]bool{}}
		switch value := value.(type) {
		case []any:
			w.spend(evaluatedCost * len(value))
		case map[string]any:
			w.spend(evaluatedCost * len(value))
		}
	}
	if n.ref != nil {
		if f := w.check(n.ref, value, at, depth+1, seen); f != nil {
			return f
		}
	}
	if n.types != nil && !hasType(n.types, value) {
		return wrongType(n, value, at)
	}
	for _, c := range n.choices {
		if ok := w.chosen(c, value); !ok {
			return wrongChoice(c, value, at)
		}
	}
	var f *fault
	switch value := value.(type) {
	case string:
		f = w.text(n, value, at)
	case int64, float64:
		f = number(n, value, at)
	case []any:
		f = w.array(n, value, at, depth, seen)
	case map[string]any:
		f = w.object(n, value, at, depth, seen)
	}
	if f == nil {
		f = w.inPlace(n, value, at, depth, seen)
	}
	if f == nil && w.tracksEvaluated {
		f = w.checkUnevaluated(n, value, at, depth, seen)
	}
	if f == nil && outer != nil {
		if !w.spend(evaluatedCost * (len(seen.names) + len(seen.items))) {
			return overFault
		}
		for name := range seen.names {
			outer.name(name)
		}
		for i := range seen.items {
			outer.item(i)
		}
	}
	return f
}

// inPlace checks a value against allOf and other schemas in n that apply to the value itself.
func (w *walk) inPlace(n *node, value any, at *argPath, depth int, seen *evaluated) *fault {
	for _, sub := range n.all {
		if f := w.check(sub, value, at, depth+1, seen); f != nil {
			return f
		}
	}
	if n.any != nil {
		if fits, faults := w.alternatives(n.any, value, at, depth, seen); fits == 0 {
			return noAlternative(value, at, faults)
		}
	}
	if n.one != nil {
		switch fits, faults := w.alternatives(n.one, value, at, depth, seen); fits {
		case 0:
			return noAlternative(value, at, faults)
		case 1:
		default:
			return &fault{at: at, words: func(where string) string {
				return where + " fits several alternatives of its schema; it must fit exactly one"
			}}
		}
	}
	if n.not != nil && w.check(n.not, value, at, depth+1, nil) == nil {
		return excludedValue(value, at)
	}
	if n.when != nil {
		then := n.then
		if w.check(n.when, value, at, depth+1, seen) != nil {
			then = n.other
		}
		if then != nil {
			return w.check(then, value, at, depth+1, seen)
		}
	}
	return nil
}

// alternatives returns the number of schemas that the value fits, and the faults of the first
// few others. It tries all schemas, because each one may evaluate other properties.
func (w *walk) alternatives(nodes []*node, value any, at *argPath, depth int, seen *evaluated) (fits int, faults []*fault) {
	const maxFaults = 4
	for _, sub := range nodes {
		f := w.check(sub, value, at, depth+1, seen)
		switch {
		case f == nil:
			fits++
		case len(faults) < maxFaults:
			faults = append(faults, &fault{at: f.at, words: f.words}) // without the alternatives within f, which would multiply
		}
	}
	return fits, faults
}

// chosen reports whether the value is in the list; false also if no effort is left. It does not
// convert a text to JSON that is longer than all values of the list.
func (w *walk) chosen(c *choice, value any) bool {
	if s, ok := value.(string); ok && len(s) > c.longest || !w.weigh(value) {
		return false
	}
	return c.keys[string(Marshal(value))]
}

// weigh pays for a walk over the whole value, and reports whether the walk may go on.
func (w *walk) weigh(value any) bool {
	if !w.spend(1) {
		return false
	}
	switch value := value.(type) {
	case string:
		return w.spend(len(value) / 16)
	case []any:
		for _, v := range value {
			if !w.weigh(v) {
				return false
			}
		}
	case map[string]any:
		for k, v := range value {
			if !w.spend(len(k)/16) || !w.weigh(v) {
				return false
			}
		}
	}
	return true
}

// matches reports whether a part of the text matches; false also if no effort is left.
func (w *walk) matches(p *pattern, text string) bool {
	return w.spend(1+(1+len(text))*int(p.Steps())/16) && p.MatchString(text)
}

func (w *walk) text(n *node, text string, at *argPath) *fault {
	if n.length.bounds() {
		if !w.spend(len(text) / 64) {
			return overFault
		}
		if f := countFault(n.length, utf8.RuneCountInString(text), "characters", at); f != nil {
			return f
		}
	}
	if n.pattern != nil && !w.matches(n.pattern, text) {
		return noMatch(n.pattern, text, at)
	}
	return nil
}

func number(n *node, value any, at *argPath) *fault {
	for _, b := range n.bounds {
		if !b.holds(value) {
			return outOfBounds(b, value, at)
		}
	}
	return nil
}

// holds reports whether a number is within the bound. It compares whole numbers with all their
// digits, and other numbers as floats.
func (b bound) holds(value any) bool {
	i, whole := value.(int64)
	limit, wholeLimit := b.limit.(int64)
	if whole && wholeLimit {
		if b.keyword == "multipleOf" {
			return limit != 0 && i%limit == 0
		}
		return b.compares(cmp.Compare(i, limit))
	}
	v, l := float(value), float(b.limit)
	if b.keyword == "multipleOf" {
		_, rest := math.Modf(v / l)
		return rest == 0
	}
	return b.compares(cmp.Compare(v, l))
}

func (b bound) compares(order int) bool {
	switch b.keyword {
	case "minimum":
		return order >= 0
	case "maximum":
		return order <= 0
	case "exclusiveMinimum":
		return order > 0
	}
	return order < 0
}

func (w *walk) array(n *node, values []any, at *argPath, depth int, seen *evaluated) *fault {
	if f := countFault(n.items, len(values), "items", at); f != nil {
		return f
	}
	found := 0
	for i, v := range values {
		here := at.item(i)
		if !w.spend(1) {
			return overFault
		}
		var sub *node
		if i < len(n.prefix) {
			sub = n.prefix[i]
		} else {
			sub = n.rest
		}
		if sub != nil {
			if f := w.check(sub, v, here, depth+1, nil); f != nil {
				return f
			}
			seen.item(i)
		}
		if n.contains != nil && w.check(n.contains, v, here, depth+1, nil) == nil {
			found++
			seen.item(i)
		}
	}
	if n.contains != nil {
		if f := countFault(n.contained, found, "items of the kind that its schema asks for", at); f != nil {
			return f
		}
	}
	if n.unique {
		return w.unique(values, at)
	}
	return nil
}

func (w *walk) unique(values []any, at *argPath) *fault {
	if !w.spend(4*len(values)) || !w.weigh(values) {
		return overFault
	}
	seen := make(map[string]int, len(values))
	for i, v := range values {
		key := string(Marshal(v))
		if first, ok := seen[key]; ok {
			return duplicateItem(first, i, at)
		}
		seen[key] = i
	}
	return nil
}

func (w *walk) object(n *node, values map[string]any, at *argPath, depth int, seen *evaluated) *fault {
	if !w.spend(2*len(values) + len(n.required) + len(n.dependent)) {
		return overFault
	}
	if n.additionalProps != nil && n.additionalProps.never && n.patternProps == nil { // before missing names: a mistyped name is both
		var names []string
		for name := range values {
			if n.props[name] == nil {
				names = append(names, name)
			}
		}
		if names != nil {
			slices.Sort(names)
			return unknownNames(n, names, at)
		}
	}
	for _, name := range n.required {
		if _, ok := values[name]; !ok {
			return missingName(n, name, at)
		}
	}
	if f := countFault(n.properties, len(values), "properties", at); f != nil {
		return f
	}
	if !w.spend(8 * len(values)) { // for sorting, so that the same arguments always give the same error
		return overFault
	}
	for _, name := range sortedKeys(values) {
		if f := w.property(n, name, values[name], at.property(name), depth, seen); f != nil {
			return f
		}
	}
	for _, d := range n.dependent {
		if _, ok := values[d.name]; !ok {
			continue
		}
		if !w.spend(len(d.required)) {
			return overFault
		}
		for _, name := range d.required {
			if _, ok := values[name]; !ok {
				return missingName(n, name, at)
			}
		}
		if d.node != nil {
			if f := w.check(d.node, values, at, depth+1, seen); f != nil {
				return f
			}
		}
	}
	return nil
}

func (w *walk) property(n *node, name string, value any, here *argPath, depth int, seen *evaluated) *fault {
	sub, known := n.props[name]
	if known {
		if f := w.check(sub, value, here, depth+1, nil); f != nil {
			return f
		}
	}
	for i := range n.patternProps {
		m := &n.patternProps[i]
		if !w.matches(&m.pattern, name) {
			continue
		}
		known = true
		if f := w.check(m.node, value, here, depth+1, nil); f != nil {
			return f
		}
	}
	if !known && n.additionalProps != nil {
		known = true
		if f := w.check(n.additionalProps, value, here, depth+1, nil); f != nil {
			return f
		}
	}
	if known {
		seen.name(name)
	}
	if n.propNames != nil {
		return w.check(n.propNames, name, here, depth+1, nil)
	}
	return nil
}

// checkUnevaluated checks the items or properties that no other schema has evaluated.
func (w *walk) checkUnevaluated(n *node, value any, at *argPath, depth int, seen *evaluated) *fault {
	switch values := value.(type) {
	case []any:
		if n.unevaluatedItems == nil || !w.spend(len(values)) {
			return nil
		}
		for i, v := range values {
			if seen.items[i] {
				continue
			}
			if f := w.check(n.unevaluatedItems, v, at.item(i), depth+1, nil); f != nil {
				return f
			}
			seen.item(i)
		}
	case map[string]any:
		if n.unevaluatedProps == nil || !w.spend(10*len(values)) {
			return nil
		}
		for _, name := range sortedKeys(values) {
			if seen.names[name] {
				continue
			}
			if f := w.check(n.unevaluatedProps, values[name], at.property(name), depth+1, nil); f != nil {
				return f
			}
			seen.name(name)
		}
	}
	return nil
}

func float(n any) float64 {
	if i, ok := n.(int64); ok {
		return float64(i)
	}
	return n.(float64)
}

func hasType(types []string, value any) bool {
	kind := jsonType(value)
	return slices.Contains(types, kind) || kind == "integer" && slices.Contains(types, "number")
}
