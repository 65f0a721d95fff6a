package tool

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Repair converts arguments to the types of the schema if their values can mean only one
// thing. It leaves out null for an optional property that does not accept null. 5.0 and 1e1
// become the integers 5 and 10. Where the schema has only one type beside null, a string
// becomes the number, boolean, object or array that it spells. null and "" in the place of all
// arguments become {}. Arguments that fit the schema keep their meaning. Everything else
// stays, for [Schema.Check] to refuse.
func (s *Schema) Repair(ctx context.Context, args json.RawMessage) json.RawMessage {
	c, err := s.compiled()
	if err != nil || len(args) > maxArgsBytes || CheckJSON(args) != nil {
		return args
	}
	was, _, err := decode(args)
	w, repaired := &walk{ctx: ctx, effortLeft: maxEffort, tracksEvaluated: c.tracksEvaluated}, any(map[string]any{})
	if was != nil && was != "" {
		repaired = w.repair(c.root, was, 0)
	}
	if out := Marshal(repaired); err == nil && w.err == nil && string(out) != string(Marshal(was)) {
		return out
	}
	return args
}

// repair converts a value to the types of a schema, see [Schema.Repair]. Numbers are
// json.Number. depth is the number of schemas above.
func (w *walk) repair(n *node, value any, depth int) any {
	if n == nil || depth > maxDepth || !w.spend(1+len(n.all)+len(n.any)+len(n.one)) {
		return value
	}
	subs := append([]*node{n.ref}, n.all...)
	for _, some := range [][]*node{n.any, n.one} { // only if there is one schema beside {"type": "null"}
		some = slices.DeleteFunc(slices.Clone(some), func(sub *node) bool { return slices.Equal(sub.types, []string{"null"}) })
		if len(some) == 1 {
			subs = append(subs, some[0])
		}
	}
	for _, sub := range subs {
		value = w.repair(sub, value, depth+1)
	}
	if types := slices.DeleteFunc(slices.Clone(n.types), func(typ string) bool { return typ == "null" }); len(types) == 1 {
		value = w.convert(types[0], value)
	}
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, e := range v {
			sub := n.props[name]
			if !w.spend(1) || e == nil && sub != nil && !slices.Contains(n.required, name) && w.check(sub, nil, &argPath{}, depth, nil) != nil {
				continue
			}
			if sub == nil && n.patternProps == nil {
				sub = n.additionalProps
			}
			out[name] = w.repair(sub, e, depth+1)
		}
		return out
	case []any:
		out := slices.Clone(v)
		for i := len(n.prefix); i < len(v) && w.spend(2); i++ {
			out[i] = w.repair(n.rest, v[i], depth+1)
		}
		return out
	}
	return value
}

// convert converts a value to a type, or returns it unchanged if its meaning could change.
func (w *walk) convert(typ string, value any) any {
	text, _ := value.(string)
	if number, ok := value.(json.Number); ok {
		text = number.String()
	}
	text = strings.Trim(text, " \t\r\n")
	if typ == "boolean" {
		text = strings.ToLower(text)
	}
	if typ == "string" || !w.spend(len(text)) || CheckJSON([]byte(text)) != nil {
		return value
	}
	all, plain, err := decode([]byte(text))
	if err != nil || !hasType([]string{typ}, plain) {
		return value
	}
	if i, fits := plain.(int64); typ == "integer" {
		// A float loses digits beyond 2^53 and very small fractions.
		inFloat := len(text) > 16 || i <= -1<<53 || i >= 1<<53 || i == 0 && strings.ContainsAny(text, "eE")
		if !fits || inFloat && strings.Trim(text, "-0123456789") != "" {
			return value
		}
		return json.Number(strconv.FormatInt(i, 10))
	}
	return all
}
