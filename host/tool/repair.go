package tool

import (
	"context"
	"encoding/json"
	"math/big"
	"slices"
	"strings"
)

// Repair returns the arguments with values in the types that the schema asks for, where
// another type can mean one thing only:
//
//   - null for an argument that may be left out, and does not take null, is left out
//   - 5.0 and 1e1 for an integer are 5 and 10
//   - "5" for a number and "true" for a boolean are 5 and true
//   - 5 for a string is "5", if it is a whole number of at most 15 digits
//   - the text of an object or an array is that object or array
//   - null and "" for all arguments are {}
//
// A value that fits the schema means the same afterwards. Where several types are allowed,
// only one of them may be meant. All else stays, for [Schema.Check] to refuse.
func (s *Schema) Repair(ctx context.Context, args json.RawMessage) json.RawMessage {
	c, err := s.compiled()
	if err != nil || len(args) > maxArgsBytes || CheckJSON(args) != nil {
		return args
	}
	was, _, err := decode(args)
	if err != nil {
		return args
	}
	w := &walk{ctx: ctx, left: maxEffort, leftovers: c.leftovers}
	var repaired any = map[string]any{}
	if was != nil && was != "" {
		repaired = w.repair(c.root, was, 0)
	}
	out := Marshal(repaired)
	if w.err != nil || string(out) == string(Marshal(was)) {
		return args
	}
	return out
}

// repair returns the value, which may hold json.Number, as the schema asks for it. The
// value itself stays as it was.
func (w *walk) repair(n *node, value any, depth int) any {
	if n == nil || depth > maxDepth || !w.spend(1+len(n.types)+len(n.all)) {
		return value
	}
	if n.ref != nil {
		value = w.repair(n.ref, value, depth+1)
	}
	for _, sub := range n.all {
		value = w.repair(sub, value, depth+1)
	}
	value = w.alternative(n.one, w.alternative(n.any, value, depth), depth)
	value = w.typed(n.types, value)
	switch v := value.(type) {
	case map[string]any:
		if !w.spend(2 * len(v)) {
			return value
		}
		out := make(map[string]any, len(v))
		for name, e := range v {
			sub := n.named[name]
			if e == nil && sub != nil && !slices.Contains(n.required, name) && !w.fits(sub, nil, depth+1) {
				continue
			}
			if sub == nil && n.matching == nil {
				sub = n.more
			}
			out[name] = w.repair(sub, e, depth+1)
		}
		return out
	case []any:
		if !w.spend(len(v)) {
			return value
		}
		out := make([]any, len(v))
		for i, e := range v {
			sub := n.rest
			if i < len(n.prefix) {
				sub = n.prefix[i]
			}
			out[i] = w.repair(sub, e, depth+1)
		}
		return out
	}
	return value
}

// alternative repairs the value for the alternatives that it fits, or else for those that
// it could fit, if all of them come to one value.
func (w *walk) alternative(subs []*node, value any, depth int) any {
	fitting := slices.DeleteFunc(slices.Clone(subs), func(sub *node) bool { return !w.fits(sub, value, depth+1) })
	if len(fitting) > 0 {
		subs = fitting
	}
	var found []any
	for _, sub := range subs {
		if v := w.repair(sub, value, depth+1); w.fits(sub, v, depth+1) {
			found = append(found, v)
		}
	}
	return agreed(found, value)
}

// agreed is the value that all that was found has in common, or else the value that was.
func agreed(found []any, was any) any {
	for _, v := range found {
		if string(Marshal(v)) != string(Marshal(found[0])) {
			return was
		}
	}
	if len(found) == 0 {
		return was
	}
	return found[0]
}

func (w *walk) fits(n *node, value any, depth int) bool {
	if !w.weigh(value) {
		return false
	}
	plain, err := plainNumbers(value)
	return err == nil && w.check(n, plain, &spot{}, depth, nil) == nil
}

// typed is the value in the one type that it can mean.
func (w *walk) typed(types []string, value any) any {
	plain := value
	if number, ok := value.(json.Number); ok {
		plain, _ = plainNumbers(number)
		if whole, ok := wholeNumber(number.String()); ok && slices.Contains(types, "integer") && !slices.Contains(types, "number") {
			return whole
		}
	}
	if types == nil || hasType(types, plain) {
		return value
	}
	var found []any
	for _, name := range types {
		if v := w.as(name, value); v != nil {
			found = append(found, v)
		}
	}
	return agreed(found, value)
}

// as is the value in another type; nil if it does not mean one of that.
func (w *walk) as(name string, value any) any {
	const maxDigits = 15 // no program that reads numbers as floats has changed one of these
	if number, ok := value.(json.Number); ok && name == "string" && len(strings.TrimPrefix(number.String(), "-")) <= maxDigits {
		if strings.Trim(number.String(), "-0123456789") == "" {
			return number.String()
		}
	}
	text, ok := value.(string)
	if text = strings.Trim(text, " \t\r\n"); !ok || text == "" {
		return nil
	}
	switch lower := strings.ToLower(text); {
	case name == "boolean" && (lower == "true" || lower == "false"):
		return lower == "true"
	case name == "integer":
		if whole, ok := wholeNumber(text); ok {
			return whole
		}
	case name == "number" && isNumeral(text):
		if _, err := json.Number(text).Float64(); err == nil {
			return json.Number(text)
		}
	case name == "object" && text[0] == '{', name == "array" && text[0] == '[':
		if w.spend(len(text)/4) && CheckJSON([]byte(text)) == nil {
			if v, _, err := decode([]byte(text)); err == nil {
				return v
			}
		}
	}
	return nil
}

// isNumeral reports whether a text is a number of JSON, and not a long one.
func isNumeral(text string) bool {
	const most = 64
	return text != "" && len(text) <= most && strings.IndexByte("-0123456789", text[0]) >= 0 && json.Valid([]byte(text))
}

// wholeNumber is a numeral without a point and an exponent, if it is a whole number of 64
// bits.
func wholeNumber(text string) (json.Number, bool) {
	const maxExponent = len("-999") // a power of ten takes as many digits
	if _, exponent, _ := strings.Cut(strings.ToLower(text), "e"); !isNumeral(text) || len(exponent) > maxExponent {
		return "", false
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok || !r.IsInt() || !r.Num().IsInt64() && !r.Num().IsUint64() {
		return "", false
	}
	return json.Number(r.Num().String()), true
}
