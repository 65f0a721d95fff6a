package keys

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Kind is what values a key takes. Errors read on from "key: ".
type Kind interface {
	// FromTOML checks a value as the TOML decoder returns it.
	FromTOML(v any) (any, error)
	// String names the kind and its range for the sample.
	String() string
}

// wrongType says what a TOML value is and what was wanted.
func wrongType(v any, want string) error {
	return fmt.Errorf("it is %s; write %s", typeName(v), want)
}

func typeName(v any) string {
	switch v.(type) {
	case string:
		return "a string"
	case int64:
		return "an integer"
	case float64:
		return "a float"
	case bool:
		return "a boolean"
	case time.Time:
		return "a date or time"
	case map[string]any:
		return "a table"
	case []any, []map[string]any:
		return "an array"
	}
	return "of an unknown type"
}

// Integer is an int from Min to Max, or from Min where Max is 0. Unit can be
// empty. Else is said where it is out of range.
type Integer struct {
	Min, Max   int64
	Unit, Else string
}

func (k Integer) String() string { return strings.TrimSpace("integer, " + k.bounds() + " " + k.Unit) }

func (k Integer) bounds() string {
	if k.Max == 0 {
		return fmt.Sprintf("from %d", k.Min)
	}
	return fmt.Sprintf("%d to %d", k.Min, k.Max)
}

func (k Integer) accepted() string {
	s := "a whole number from " + strings.TrimPrefix(k.bounds(), "from ")
	if k.Unit != "" {
		s += " (" + k.Unit + ")"
	}
	if k.Else != "" {
		s += "; " + k.Else
	}
	return s
}

// FromTOML implements [Kind].
func (k Integer) FromTOML(v any) (any, error) {
	n, ok := v.(int64)
	if !ok {
		return nil, wrongType(v, k.accepted())
	}
	if n < k.Min || k.Max != 0 && n > k.Max {
		return nil, fmt.Errorf("%d is out of range; write %s", n, k.accepted())
	}
	if int64(int(n)) != n {
		return nil, fmt.Errorf("%d does not fit into the integers of this machine", n)
	}
	return int(n), nil
}

// Parse checks a value that is not from a file.
func (k Integer) Parse(text string) (any, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		if errors.Is(err, strconv.ErrRange) {
			return nil, fmt.Errorf("%.40s is out of range; write %s", text, k.accepted())
		}
		return nil, fmt.Errorf("%.40q is not %s", text, k.accepted())
	}
	return k.FromTOML(n)
}

// Number is any float64. A whole number is one, too.
type Number struct{}

func (Number) String() string { return "number" }

// FromTOML implements [Kind].
func (Number) FromTOML(v any) (any, error) {
	switch v := v.(type) {
	case float64:
		return v, nil
	case int64:
		return float64(v), nil
	}
	return nil, wrongType(v, "a number")
}

// Duration is a [time.Duration] from Min to Max, written as Go writes it.
type Duration struct{ Min, Max time.Duration }

func (k Duration) String() string {
	return fmt.Sprintf("duration, %s to %s", Short(k.Min), Short(k.Max))
}

func (k Duration) accepted() string {
	return fmt.Sprintf(`a duration from %s to %s, such as "30s" or "2m"`, Short(k.Min), Short(k.Max))
}

// FromTOML implements [Kind].
func (k Duration) FromTOML(v any) (any, error) {
	s, ok := v.(string)
	if !ok {
		return nil, wrongType(v, k.accepted())
	}
	return k.Parse(s)
}

// Parse checks a value that is not from a file.
func (k Duration) Parse(text string) (any, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return nil, fmt.Errorf("%.40q is not %s", text, k.accepted())
	}
	if d < k.Min || d > k.Max {
		return nil, fmt.Errorf("%s is out of range; write %s", Short(d), k.accepted())
	}
	return d, nil
}

// Short writes whole seconds as people do: "300s", not "5m0s".
func Short(d time.Duration) string {
	switch {
	case d >= time.Hour && d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d >= time.Second && d%time.Second == 0:
		return fmt.Sprintf("%ds", d/time.Second)
	}
	return d.String()
}

// Boolean is a bool.
type Boolean struct{}

func (Boolean) String() string { return "boolean" }

// FromTOML implements [Kind].
func (Boolean) FromTOML(v any) (any, error) {
	b, ok := v.(bool)
	if !ok {
		return nil, wrongType(v, "true or false, without quotes")
	}
	return b, nil
}

// Parse checks a value that is not from a file.
func (Boolean) Parse(text string) (any, error) {
	switch text {
	case "true", "1":
		return true, nil
	case "false", "0":
		return false, nil
	}
	return nil, fmt.Errorf("%.40q is not true or false", text)
}

// Text is a string.
type Text struct {
	What  string             // it is, for the sample
	Write string             // where it is no string at all: what to write; empty: "a string in quotes"
	Check func(string) error // nil: any will do
}

func (k Text) String() string { return k.What }

// FromTOML implements [Kind].
func (k Text) FromTOML(v any) (any, error) {
	s, ok := v.(string)
	switch {
	case ok:
		return k.Parse(s)
	case k.Write != "":
		return nil, wrongType(v, k.Write)
	}
	return nil, wrongType(v, "a string in quotes")
}

// Parse checks a value that is not from a file.
func (k Text) Parse(s string) (any, error) {
	if k.Check != nil {
		if err := k.Check(s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Choice is one of a few words.
func Choice(words ...string) Text {
	list := quoted(words)
	return Text{What: "one of " + list, Write: "one of " + list, Check: func(s string) error {
		if !slices.Contains(words, s) {
			return fmt.Errorf("%.80q is not one of %s", s, list)
		}
		return nil
	}}
}

// List is a []string.
type List struct {
	What    string             // its entries are, for the sample
	Example string             // as TOML, where it is no list of strings
	Most    int                // entries; 0 is no bound
	Check   func(string) error // of each entry, which the error names; nil: any will do
}

func (k List) String() string { return "list of " + k.What }

// FromTOML implements [Kind].
func (k List) FromTOML(v any) (any, error) {
	values, ok := v.([]any)
	if !ok {
		return nil, wrongType(v, "a list such as "+k.Example)
	}
	entries := make([]string, len(values))
	for i, e := range values {
		if entries[i], ok = e.(string); !ok {
			return nil, fmt.Errorf("entry %d is %s; write a list such as %s", i+1, typeName(e), k.Example)
		}
	}
	return k.check(entries)
}

// Parse checks a value that is not from a file. Commas are between entries.
func (k List) Parse(s string) (any, error) {
	if s == "" {
		return []string(nil), nil
	}
	return k.check(strings.Split(s, ","))
}

func (k List) check(entries []string) (any, error) {
	if k.Most > 0 && len(entries) > k.Most {
		return nil, fmt.Errorf("it has %d entries; at most %d are accepted", len(entries), k.Most)
	}
	for _, e := range entries {
		if k.Check != nil {
			if err := k.Check(e); err != nil {
				return nil, err
			}
		}
	}
	if len(entries) == 0 {
		return []string(nil), nil
	}
	return entries, nil
}

// Format writes a value that a kind has returned as TOML.
func Format(v any) string {
	switch v := v.(type) {
	case string:
		return Quote(v)
	case []string:
		return "[" + quoted(v) + "]"
	case time.Duration:
		return Quote(Short(v))
	}
	return fmt.Sprint(v)
}

func quoted(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = Quote(w)
	}
	return strings.Join(out, ", ")
}

// Quote writes a TOML basic string.
func Quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case unicode.IsControl(r):
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
