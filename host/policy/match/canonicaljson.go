package match

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// canonicalJSON returns the canonical form of a JSON value: 1e3, 1000.0 and 1000 have the same
// one, and blanks and the order of members do not matter. No digit is rounded away. Text that
// is not JSON is returned unchanged.
func canonicalJSON(raw []byte) string {
	var v any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if dec.Decode(&v) != nil || dec.More() {
		return string(raw)
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if enc.Encode(canonicalNumbers(v)) != nil {
		return string(raw)
	}
	return strings.TrimSuffix(out.String(), "\n")
}

func canonicalNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		return json.Number(canonicalNumber(string(v)))
	case []any:
		for i := range v {
			v[i] = canonicalNumbers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = canonicalNumbers(v[k])
		}
	}
	return v
}

// canonicalNumber writes a JSON number without an exponent or, if that would be long, with the
// fewest digits and an exponent.
func canonicalNumber(s string) string {
	const long = 40
	unsigned := strings.TrimPrefix(s, "-")
	minus := s[:len(s)-len(unsigned)]
	digits, power, _ := strings.Cut(strings.ToLower(unsigned), "e")
	whole, fraction, _ := strings.Cut(digits, ".")
	point, err := strconv.Atoi(power)
	if power != "" && err != nil {
		return s
	}
	digits = strings.TrimLeft(whole+fraction, "0")
	point -= len(fraction)
	short := strings.TrimRight(digits, "0")
	point += len(digits) - len(short)
	switch n := len(short); {
	case n == 0:
		return "0"
	case point > long || point < -long:
		return minus + short + "e" + strconv.Itoa(point)
	case point >= 0:
		return minus + short + strings.Repeat("0", point)
	case n > -point:
		return minus + short[:n+point] + "." + short[n+point:]
	default:
		return minus + "0." + strings.Repeat("0", -point-n) + short
	}
}
