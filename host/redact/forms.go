package redact

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf16"

	"github.com/stockade-dev/stockade/host/shellword"
)

// forms returns the texts in which a value may appear, each once. Texts shorter than
// [MinBytes] are left out.
func forms(value string) [][]byte {
	seen := map[string]bool{}
	var out [][]byte
	add := func(form string) {
		if len(form) >= MinBytes && !seen[form] {
			seen[form] = true
			out = append(out, []byte(form))
		}
	}
	add(value)
	add(hex.EncodeToString([]byte(value)))
	add(strings.ToUpper(hex.EncodeToString([]byte(value))))
	base64Forms(value, add)
	percentForms(value, add)
	jsonForms(value, add)
	diffForms(value, add)
	// Quoted for a shell, as in a command to be copied; also as text in JSON.
	for _, word := range []string{shellword.EscapeANSIC(value), shellword.EscapeSingle(value)} {
		add(word)
		add(strings.ReplaceAll(word, `\`, `\\`))
	}
	return out
}

// base64Forms adds the value in both alphabets, at the three offsets that it can have within a
// longer encoded text. A character at its edge also holds bits of the neighbouring bytes: it
// is unknown and stays, with at most six bits of the value's first or last byte. If the
// encoded text ends with the value, its end is known.
func base64Forms(value string, add func(string)) {
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		for before := range 3 {
			whole := append(make([]byte, before), value...)
			first := (before*8 + 5) / 6 // the first character with bits of the value only
			add(enc.EncodeToString(whole)[first:])
			add(enc.WithPadding(base64.NoPadding).EncodeToString(whole)[first:])
			add(enc.EncodeToString(whole)[first : len(whole)*8/6])
		}
	}
}

// percentForms adds the value as percent-encoded by different encoders, in upper and lower
// hex. They differ in the characters that they do not encode.
func percentForms(value string, add func(string)) {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	for _, e := range []struct {
		kept string // characters that are not encoded
		plus bool   // set if a space becomes a plus sign
	}{
		{"", false},                                  // everything is encoded
		{letters, false},                             //
		{letters + "-_.~", false},                    // RFC 3986
		{letters + "-_.~", true},                     // Go's QueryEscape, Python's quote_plus
		{letters + "-_.~/", false},                   // Python's quote
		{letters + "-_.~$&+=:@", false},              // Go's PathEscape
		{letters + "-_.!~*'()", false},               // encodeURIComponent
		{letters + "-_.!~*'();/?:@&=+$,#", false},    // encodeURI
		{letters + "-_.*", true},                     // forms of HTML
		{letters + "-_.~!$&'()*+,;=:@/?[]#%", false}, // only characters that cannot be in a URL are encoded
		{letters + "-_.~!$&'()*+,;=:@/?[]#%", true},  //
	} {
		for _, format := range []string{"%%%02X", "%%%02x"} {
			var b strings.Builder
			for i := range len(value) {
				switch c := value[i]; {
				case c == ' ' && e.plus:
					b.WriteByte('+')
				case strings.IndexByte(e.kept, c) >= 0:
					b.WriteByte(c)
				default:
					fmt.Fprintf(&b, format, c)
				}
			}
			add(b.String())
		}
	}
}

// jsonForms adds the string literals of different encoders, without quotes, and each literal
// escaped as text in JSON once and twice more: a result is text in an envelope, and the
// envelope is text in an event.
func jsonForms(value string, add func(string)) {
	for _, html := range []bool{false, true} {
		quoted := string(quote(value, html))
		text := quoted[1 : len(quoted)-1]
		slashes := strings.ReplaceAll(text, "/", `\/`)
		for _, literal := range []string{text, slashes, ascii(text, `\u%04x`), ascii(text, `\u%04X`), ascii(slashes, `\u%04x`)} {
			for range 3 {
				add(literal)
				literal = strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(literal)
			}
		}
	}
}

// diffForms adds a value of several lines with the marks of added, removed and surrounding
// lines of a diff, also as text in JSON. A value of one line is found in a diff anyway.
func diffForms(value string, add func(string)) {
	lines := strings.TrimRight(value, "\n") // any text can follow the last line
	if !strings.Contains(lines, "\n") {
		return
	}
	for _, mark := range []string{"+", "-", " "} {
		marked := strings.ReplaceAll(lines, "\n", "\n"+mark)
		add(marked)
		jsonForms(marked, add)
	}
}

// ascii replaces characters beyond ASCII by escapes; format is that of a UTF-16 unit.
func ascii(text, format string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r < 0x80:
			b.WriteRune(r)
		case r >= 0x10000:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, format+format, high, low)
		default:
			fmt.Fprintf(&b, format, r)
		}
	}
	return b.String()
}
