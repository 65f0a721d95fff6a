package redact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// JSON returns a JSON value without secrets, of the same shape. Every string is decoded
// before it is redacted, and a string that holds JSON is redacted as JSON in turn. A number
// that is a secret becomes a string. Data that is not JSON is redacted as text.
func (r *Redactor) JSON(data json.RawMessage) json.RawMessage {
	a := r.automaton()
	if a == nil || len(data) == 0 {
		return data
	}
	// Escapes may spell a secret in a way that is not among its forms.
	if !a.find(data) && bytes.IndexByte(data, '\\') < 0 {
		return data
	}
	if !json.Valid(data) {
		return json.RawMessage(r.Text(string(data)))
	}
	out := r.walk(a, data, maxNested)
	if a.find(out) {
		// The secret is itself JSON, such as the key file of a service, in the middle
		// of other JSON.
		return json.RawMessage(`{"redacted":true}`)
	}
	return out
}

// maxNested limits the levels of JSON in strings that are redacted as JSON. JSON at deeper
// levels is redacted as text.
const maxNested = 8

// walk returns valid JSON with its strings and numbers redacted. depth is the number of
// further levels of JSON in strings.
func (r *Redactor) walk(a *automaton, data []byte, depth int) []byte {
	out := make([]byte, 0, len(data))
	for i := 0; i < len(data); {
		switch c := data[i]; {
		case c == '"':
			end := i + 1
			for data[end] != '"' {
				if data[end] == '\\' {
					end++
				}
				end++
			}
			out = append(out, r.literal(a, data[i:end+1], depth)...)
			i = end + 1
		case c == '-' || '0' <= c && c <= '9':
			end := i
			for end < len(data) && bytes.IndexByte([]byte("+-.eE0123456789"), data[end]) >= 0 {
				end++
			}
			if number := data[i:end]; a.find(number) {
				out = append(out, quote(r.Text(string(number)), false)...)
			} else {
				out = append(out, number...)
			}
			i = end
		default:
			out = append(out, c)
			i++
		}
	}
	return out
}

// literal redacts a string literal with its quotes. A literal without a secret is returned
// unchanged.
func (r *Redactor) literal(a *automaton, literal []byte, depth int) []byte {
	escaped := bytes.IndexByte(literal, '\\') >= 0
	if !escaped && !a.find(literal) {
		return literal
	}
	var text string
	if json.Unmarshal(literal, &text) != nil {
		return quote(r.Text(string(literal)), false)
	}
	var clean string
	if inner := bytes.TrimLeft([]byte(text), " \t\r\n"); depth > 0 && len(inner) > 0 && (inner[0] == '{' || inner[0] == '[') && json.Valid(inner) {
		clean = string(r.walk(a, []byte(text), depth-1))
	} else {
		clean = r.Text(text)
	}
	if clean = r.Text(clean); clean != text {
		literal = quote(clean, false)
	}
	if a.find(literal) { // an escape and the next letters form a secret, as \n and "ext" form "next"
		literal = quoteHard(clean)
	}
	return literal
}

// quoteHard is like quote, but writes every escape in its long form, \u and four digits.
func quoteHard(text string) []byte {
	out := []byte{'"'}
	for _, r := range text {
		if r < ' ' || r == '"' || r == '\\' || r == 0x7f {
			out = fmt.Appendf(out, `\u%04x`, r)
		} else {
			out = utf8.AppendRune(out, r)
		}
	}
	return append(out, '"')
}

// quote returns a text as a JSON string. html is set to escape also <, > and &.
func quote(text string, html bool) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(html)
	if err := enc.Encode(text); err != nil {
		panic(err) // a string always encodes
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}
