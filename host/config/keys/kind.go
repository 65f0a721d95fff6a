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

// Kind is what values a key takes. Its errors read on from "key: ".
type Kind struct {
	Summary string                      // its name and range, for the sample
	value   func(any) (any, error)      // checks what the TOML decoder returns
	Parse   func(s string) (any, error) // checks what is not from a file; commas are between the entries of a list
}

// Integer is an int from min to max, or from min where max is 0. Unit can be
// empty.
func Integer(min, max int64, unit string) Kind {
	what, accepted := fmt.Sprintf("integer, from %d", min), fmt.Sprintf("a whole number from %d", min)
	if max != 0 {
		what, accepted = fmt.Sprintf("integer, %d to %d", min, max), fmt.Sprintf("%s to %d", accepted, max)
	}
	if unit != "" {
		what, accepted = what+" "+unit, accepted+" ("+unit+")"
	}
	value := func(v any) (any, error) {
		n, ok := v.(int64)
		switch {
		case !ok:
			return nil, wrongType(v, accepted)
		case n < min || max != 0 && n > max:
			return nil, fmt.Errorf("%d is out of range; write %s", n, accepted)
		case int64(int(n)) != n:
			return nil, fmt.Errorf("%d does not fit into the integers of this machine", n)
		}
		return int(n), nil
	}
	return Kind{what, value, func(s string) (any, error) {
		n, err := strconv.ParseInt(s, 10, 64)
		switch {
		case errors.Is(err, strconv.ErrRange):
			return nil, fmt.Errorf("%.40s is out of range; write %s", s, accepted)
		case err != nil:
			return nil, fmt.Errorf("%.40q is not %s", s, accepted)
		}
		return value(n)
	}}
}

// Number is any float64, for files only. A whole number is one, too.
func Number() Kind {
	return Kind{Summary: "number", value: func(v any) (any, error) {
		switch v := v.(type) {
		case float64:
			return v, nil
		case int64:
			return float64(v), nil
		}
		return nil, wrongType(v, "a number")
	}}
}

// Amount is a float64 from 0 to max. A whole number is one, too. Unit can be empty.
func Amount(max float64, unit string) Kind {
	most := strconv.FormatFloat(max, 'f', -1, 64)
	what, accepted := "number, 0 to "+most, "a number from 0 to "+most
	if unit != "" {
		what, accepted = what+" "+unit, accepted+" ("+unit+")"
	}
	value := func(v any) (any, error) {
		if n, ok := v.(int64); ok {
			v = float64(n)
		}
		n, ok := v.(float64)
		switch {
		case !ok:
			return nil, wrongType(v, accepted)
		case !(n >= 0 && n <= max): // nor is it no number
			return nil, fmt.Errorf("%v is out of range; write %s", n, accepted)
		}
		return n, nil
	}
	return Kind{what, value, func(s string) (any, error) {
		n, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return nil, fmt.Errorf("%.40q is not %s", s, accepted)
		}
		return value(n)
	}}
}

// Instant is a [time.Time] of this era, in whole seconds of UTC, for files only: one
// that says how far it is from UTC, so that it is the same everywhere. It is never
// the zero time.
func Instant() Kind {
	const write = "a date and time with its zone, without quotes, such as 2027-01-31T00:00:00Z"
	return Kind{Summary: "date and time", value: func(v any) (any, error) {
		t, ok := v.(time.Time)
		// The decoder names the zone of one that says none date-local, and so on.
		if !ok || strings.HasSuffix(t.Location().String(), "-local") {
			return nil, wrongType(v, write)
		}
		if t = t.UTC().Truncate(time.Second); t.Year() < 1970 || t.Year() > 9999 {
			return nil, errors.New("it is not from 1970 to 9999")
		}
		return t, nil
	}}
}

// Boolean is a bool.
func Boolean() Kind {
	value := func(v any) (any, error) {
		if _, ok := v.(bool); !ok {
			return nil, wrongType(v, "true or false, without quotes")
		}
		return v, nil
	}
	return Kind{"boolean", value, func(s string) (any, error) {
		switch s {
		case "true", "1":
			return true, nil
		case "false", "0":
			return false, nil
		}
		return nil, fmt.Errorf("%.40q is not true or false", s)
	}}
}

// stringKind is a kind of which a file holds a string. Write is what to write where
// it holds something else.
func stringKind(what, write string, parse func(string) (any, error)) Kind {
	return Kind{what, func(v any) (any, error) {
		s, ok := v.(string)
		if !ok {
			return nil, wrongType(v, write)
		}
		return parse(s)
	}, parse}
}

// Duration is a [time.Duration] from min to max, written as Go writes it.
func Duration(min, max time.Duration) Kind {
	within := FormatDuration(min) + " to " + FormatDuration(max)
	accepted := fmt.Sprintf(`a duration from %s, such as "30s" or "2m"`, within)
	return stringKind("duration, "+within, accepted, func(s string) (any, error) {
		d, err := time.ParseDuration(s)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%.40q is not %s", s, accepted)
		case d < min || d > max:
			return nil, fmt.Errorf("%s is out of range; write %s", FormatDuration(d), accepted)
		}
		return d, nil
	})
}

// FormatDuration writes whole seconds as people do: "300s", not "5m0s".
func FormatDuration(d time.Duration) string {
	switch {
	case d >= time.Hour && d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d >= time.Second && d%time.Second == 0:
		return fmt.Sprintf("%ds", d/time.Second)
	}
	return d.String()
}

// Text is a string that passes a check; a nil check is none. Write is what to
// write where it is no string.
func Text(what, write string, check func(string) error) Kind {
	return stringKind(what, write, func(s string) (any, error) {
		if check != nil {
			if err := check(s); err != nil {
				return nil, err
			}
		}
		return s, nil
	})
}

// Choice is one of a few words.
func Choice(words ...string) Kind {
	what := "one of " + quotedList(words)
	return Text(what, what, OneOf(words...))
}

// OneOf is the check of [Choice].
func OneOf(words ...string) func(string) error {
	return func(s string) error {
		if !slices.Contains(words, s) {
			return fmt.Errorf("%.80q is not one of %s", s, quotedList(words))
		}
		return nil
	}
}

// List is a []string of at most so many entries, 0 for any number, which all pass
// a check. What names the entries, and so does the error of the check, which can
// be nil. Example is for a person who writes something else.
func List(what, example string, most int, check func(string) error) Kind {
	all := func(entries []string) (any, error) {
		if most > 0 && len(entries) > most {
			return nil, fmt.Errorf("it has %d entries; at most %d are accepted", len(entries), most)
		}
		for _, e := range entries {
			if check != nil {
				if err := check(e); err != nil {
					return nil, err
				}
			}
		}
		return entries, nil
	}
	return Kind{"list of " + what, func(v any) (any, error) {
		values, ok := v.([]any)
		if !ok {
			return nil, wrongType(v, "a list such as "+example)
		}
		var entries []string
		for i, e := range values {
			s, ok := e.(string)
			if !ok {
				return nil, fmt.Errorf("entry %d is %s; write a list such as %s", i+1, typeName(e), example)
			}
			entries = append(entries, s)
		}
		return all(entries)
	}, func(s string) (any, error) {
		if s == "" {
			return []string(nil), nil
		}
		return all(strings.Split(s, ","))
	}}
}

// Object is a map[string]any, for files only: a table whose keys are for the owner of
// the table of keys to check. Write is what to write where it is something else.
func Object(write string) Kind {
	return Kind{Summary: "table", value: func(v any) (any, error) {
		if _, ok := v.(map[string]any); !ok {
			return nil, wrongType(v, write)
		}
		return v, nil
	}}
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

// Format writes a value that a kind has returned as TOML.
func Format(v any) string {
	switch v := v.(type) {
	case string:
		return quote(v)
	case []string:
		return "[" + quotedList(v) + "]"
	case time.Duration:
		return quote(FormatDuration(v))
	case time.Time:
		return v.UTC().Format(time.RFC3339)
	}
	return fmt.Sprint(v)
}

func quotedList(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = quote(w)
	}
	return strings.Join(out, ", ")
}

// quote writes a TOML basic string.
func quote(s string) string {
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
