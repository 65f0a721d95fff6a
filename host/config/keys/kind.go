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

// Kind is a type of values, with a range. Its errors continue a text "KEY: ".
type Kind struct {
	Summary string                      // name and range of the kind, for the sample
	value   func(any) (any, error)      // converts and checks a value of the TOML decoder
	Parse   func(s string) (any, error) // converts and checks a flag or a variable; a list has commas
}

// Valid returns a check of texts, whose errors say that a text is not what.
func Valid(valid func(string) bool, what string) func(string) error {
	return func(s string) error {
		if !valid(s) {
			return fmt.Errorf("%.80q is not %s", s, what)
		}
		return nil
	}
}

// Integer is an int from min to max; max 0: no upper bound. unit is for messages; can be
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

// Number is any float64, for files only. A whole number is accepted, too.
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

// Amount is a float64 from 0 to max, or a whole number. unit is for messages; can be empty.
func Amount(max float64, unit string) Kind {
	limit := strconv.FormatFloat(max, 'f', -1, 64)
	what, accepted := "number, 0 to "+limit, "a number from 0 to "+limit
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
		case !(n >= 0 && n <= max): // also NaN
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

// Instant is a [time.Time] from 1970 to 9999, in whole seconds of UTC, for files only. The
// file has to give the offset from UTC, so that the value is the same everywhere. The value is
// never the zero time.
func Instant() Kind {
	const write = "a date and time with its zone, without quotes, such as 2027-01-31T00:00:00Z"
	return Kind{Summary: "date and time", value: func(v any) (any, error) {
		t, ok := v.(time.Time)
		// Without an offset, the decoder names the zone date-local, time-local and so on.
		if !ok || strings.HasSuffix(t.Location().String(), "-local") {
			return nil, wrongType(v, write)
		}
		if t = t.UTC().Truncate(time.Second); t.Year() < 1970 || t.Year() > 9999 {
			return nil, errors.New("it is not from 1970 to 9999")
		}
		return t, nil
	}}
}

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

// stringKind returns a kind whose values are strings in a file. what is its summary. write
// tells what to write instead of a value of another type.
func stringKind(what, write string, parse func(string) (any, error)) Kind {
	return Kind{what, func(v any) (any, error) {
		s, ok := v.(string)
		if !ok {
			return nil, wrongType(v, write)
		}
		return parse(s)
	}, parse}
}

// Duration is a [time.Duration] from min to max, in the notation of Go.
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

// Text is a string that passes check; a nil check accepts any string. what and write are as
// for stringKind.
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

// Choice is one of the given words.
func Choice(words ...string) Kind {
	what := "one of " + quotedList(words)
	return Text(what, what, OneOf(words...))
}

// OneOf returns the check of [Choice].
func OneOf(words ...string) func(string) error {
	return func(s string) error {
		if !slices.Contains(words, s) {
			return fmt.Errorf("%.80q is not one of %s", s, quotedList(words))
		}
		return nil
	}
}

// List is a []string of at most maxEntries entries (0: any number), each of which passes
// check; nil: any strings. what names the entries in messages. An error of check has to name
// the entry. example is shown for values of another type.
func List(what, example string, maxEntries int, check func(string) error) Kind {
	all := func(entries []string) (any, error) {
		if maxEntries > 0 && len(entries) > maxEntries {
			return nil, fmt.Errorf("it has %d entries; at most %d are accepted", len(entries), maxEntries)
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

// Object is a map[string]any, for files only: a TOML table whose keys the caller checks. write
// tells what to write instead of a value of another type.
func Object(write string) Kind {
	return Kind{Summary: "table", value: func(v any) (any, error) {
		if _, ok := v.(map[string]any); !ok {
			return nil, wrongType(v, write)
		}
		return v, nil
	}}
}

// wrongType returns the error of a TOML value of a wrong type. want is advice for the message.
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

// Format returns a value of any kind as TOML.
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
