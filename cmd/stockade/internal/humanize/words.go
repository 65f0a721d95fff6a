// Package humanize formats sizes, numbers, durations, tool names and JSON for people, and
// shortens long text.
package humanize

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/stockade-dev/stockade/host/tool"
)

// Bytes formats a size: 950 B, 1.5 KiB, 2.0 MiB.
func Bytes(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}

// Count formats a number with about three digits: 950, 12.3 k, 4.5 M.
func Count(n uint64) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	value := float64(n) / 1000
	units := "kMGT"
	for len(units) > 1 && value >= 1000 {
		value /= 1000
		units = units[1:]
	}
	return fmt.Sprintf("%.1f %c", value, units[0])
}

// Exact formats a number with all its digits, in groups: 2,310.
func Exact(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Duration formats a duration: 12 ms, 3.4 s, 2 min 5 s.
func Duration(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Truncate(100*time.Millisecond).Seconds())
	}
	return fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second)
}

// Dollars formats a price with about two significant digits: $0.0042, $0.31, $12.50.
func Dollars(d float64) string {
	places := 2
	for least := 0.1; places < 6 && d > 0 && d < least; least /= 10 {
		places++
	}
	return fmt.Sprintf("$%.*f", places, d)
}

// Plural returns the number and the noun, with an "s" unless n is 1.
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Clip cuts a line to n characters and appends " ..." if it was longer.
func Clip(s string, n int) string {
	runes := 0
	for i := range s {
		if runes == n {
			return s[:i] + " ..."
		}
		runes++
	}
	return s
}

// ToolName returns the name of a tool for a row of ours. A name that no tool can have is
// quoted in ASCII, cut to 60 characters.
func ToolName(name string) string {
	const most = 60
	if tool.ValidName(name) {
		return name
	}
	quoted := strconv.QuoteToASCII(name)
	if len(quoted) > most {
		return quoted[:most] + `..."`
	}
	return quoted
}

// JSON returns a value in one line without needless escapes. Text that is not JSON is
// returned unchanged.
func JSON(value json.RawMessage) string {
	var v any
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.UseNumber()
	if dec.Decode(&v) != nil || dec.More() {
		return string(value)
	}
	return string(tool.Marshal(v))
}
