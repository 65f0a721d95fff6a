package tool

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"unicode/utf8"
)

// A schema comes from a module, and can be made so that checking arguments
// takes longer than anybody waits: references that double at each level, a
// large pattern for each of many values. So each step is paid for before it is
// taken, and an end of the context is seen. A unit is about 100 ns, so a check
// takes a second at most.
const maxEffort = 1 << 23

var errEffort = errors.New("arguments are too large to check against this schema")

// walk is one check of arguments.
type walk struct {
	ctx             context.Context
	effortLeft      int
	err             error // the walk is over without an answer
	tracksEvaluated bool
}

// spend pays for n units, and reports whether the walk goes on.
func (w *walk) spend(n int) bool {
	const interval = 1 << 12 // between two looks at the context
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

// fault is what does not fit, and why in words. Nothing is put into words
// before it is known that somebody reads them.
type fault struct {
	at           *argPath
	words        func(where string) string
	alternatives []*fault // the first of those that did not fit either
	wrongName    bool     // a name is missing, or nobody knows it
}

// argPath is a place in the arguments.
type argPath struct {
	parent *argPath // nil at the top
	name   string
	index  int // of an item, or below 0
}

func (s *argPath) item(i int) *argPath           { return &argPath{s, "", i} }
func (s *argPath) property(name string) *argPath { return &argPath{s, name, -1} }

// evaluated is what of an array or object has been looked at by some schema that
// held, for those who ask about the rest. It is nil where nobody does.
type evaluated struct {
	names map[string]bool
	items map[int]bool
}

// evaluatedCost is what one entry takes.
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

// overFault ends a walk that may not go on; nobody reads the fault.
var overFault = &fault{words: func(string) string { return "" }}

// check returns nil if the value fits the schema.
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
	var own *evaluated
	if w.tracksEvaluated {
		own = &evaluated{map[string]bool{}, map[int]bool{}}
		switch value := value.(type) {
		case []any:
			w.spend(evaluatedCost * len(value))
		case map[string]any:
			w.spend(evaluatedCost * len(value))
		}
	}
	if n.ref != nil {
		if f := w.check(n.ref, value, at, depth+1, own); f != nil {
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
		f = w.array(n, value, at, depth, own)
	case map[string]any:
		f = w.object(n, value, at, depth, own)
	}
	if f == nil {
		f = w.inPlace(n, value, at, depth, own)
	}
	if f == nil && w.tracksEvaluated {
		f = w.checkUnevaluated(n, value, at, depth, own)
	}
	if f == nil && outer != nil {
		if !w.spend(evaluatedCost * (len(own.names) + len(own.items))) {
			return overFault
		}
		for name := range own.names {
			outer.name(name)
		}
		for i := range own.items {
			outer.item(i)
		}
	}
	return f
}

// inPlace checks against the schemas that are about the same value.
func (w *walk) inPlace(n *node, value any, at *argPath, depth int, own *evaluated) *fault {
	for _, sub := range n.all {
		if f := w.check(sub, value, at, depth+1, own); f != nil {
			return f
		}
	}
	if n.any != nil {
		if fits, faults := w.alternatives(n.any, value, at, depth, own); fits == 0 {
			return noAlternative(value, at, faults)
		}
	}
	if n.one != nil {
		switch fits, faults := w.alternatives(n.one, value, at, depth, own); fits {
		case 0:
			return noAlternative(value, at, faults)
		case 1:
		default:
			return &fault{at: at, words: func(where string) string {
				return where + " fits several of the alternatives that the schema has for it; it must fit one only"
			}}
		}
	}
	if n.not != nil && w.check(n.not, value, at, depth+1, nil) == nil {
		return excludedValue(value, at)
	}
	if n.when != nil {
		then := n.then
		if w.check(n.when, value, at, depth+1, own) != nil {
			then = n.other
		}
		if then != nil {
			return w.check(then, value, at, depth+1, own)
		}
	}
	return nil
}

// alternatives counts those that fit; each is tried, for what it looks at. Of
// those that do not, the first few say why.
func (w *walk) alternatives(nodes []*node, value any, at *argPath, depth int, own *evaluated) (fits int, faults []*fault) {
	const most = 4
	for _, sub := range nodes {
		f := w.check(sub, value, at, depth+1, own)
		switch {
		case f == nil:
			fits++
		case len(faults) < most:
			faults = append(faults, &fault{at: f.at, words: f.words}) // not why those within did not fit: they would multiply
		}
	}
	return fits, faults
}

// chosen reports whether the value is in the list. A text that is longer than
// all that is there is not made into JSON.
func (w *walk) chosen(c *choice, value any) bool {
	if s, ok := value.(string); ok && len(s) > c.longest || !w.weigh(value) {
		return false
	}
	return c.keys[string(Marshal(value))]
}

// weigh pays for a walk over the whole value.
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

// matches reports whether a pattern is found in the text.
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

// holds compares whole numbers with all their digits, and others as floats.
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

func (w *walk) array(n *node, values []any, at *argPath, depth int, own *evaluated) *fault {
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
			own.item(i)
		}
		if n.contains != nil && w.check(n.contains, v, here, depth+1, nil) == nil {
			found++
			own.item(i)
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

func (w *walk) object(n *node, values map[string]any, at *argPath, depth int, own *evaluated) *fault {
	if !w.spend(2*len(values) + len(n.required) + len(n.dependent)) {
		return overFault
	}
	if n.additionalProps != nil && n.additionalProps.never && n.patternProps == nil { // before what is missing: a mistyped name is both
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
	if !w.spend(8 * len(values)) { // for the order, which makes the same error of the same arguments
		return overFault
	}
	for _, name := range sortedKeys(values) {
		if f := w.property(n, name, values[name], at.property(name), depth, own); f != nil {
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
			if f := w.check(d.node, values, at, depth+1, own); f != nil {
				return f
			}
		}
	}
	return nil
}

func (w *walk) property(n *node, name string, value any, here *argPath, depth int, own *evaluated) *fault {
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
		own.name(name)
	}
	if n.propNames != nil {
		return w.check(n.propNames, name, here, depth+1, nil)
	}
	return nil
}

// checkUnevaluated checks what no other schema has looked at.
func (w *walk) checkUnevaluated(n *node, value any, at *argPath, depth int, own *evaluated) *fault {
	switch values := value.(type) {
	case []any:
		if n.unevaluatedItems == nil || !w.spend(len(values)) {
			return nil
		}
		for i, v := range values {
			if own.items[i] {
				continue
			}
			if f := w.check(n.unevaluatedItems, v, at.item(i), depth+1, nil); f != nil {
				return f
			}
			own.item(i)
		}
	case map[string]any:
		if n.unevaluatedProps == nil || !w.spend(10*len(values)) {
			return nil
		}
		for _, name := range sortedKeys(values) {
			if own.names[name] {
				continue
			}
			if f := w.check(n.unevaluatedProps, values[name], at.property(name), depth+1, nil); f != nil {
				return f
			}
			own.name(name)
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
