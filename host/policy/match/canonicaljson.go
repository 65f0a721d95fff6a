package match

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// canonicalJSON writes a value as there is one way to write it: 1e3, 1000.0 and
// 1000 are one number, and neither blanks nor the order of members mean
// anything. No digit is rounded away. What is no JSON stands for itself.
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

// canonicalNumber writes a number of JSON without an exponent, or where that would
// be long, with the shortest.
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
