package redact

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf16"

	"github.com/stockade-dev/stockade/host/shellword"
)

// forms returns the texts in which a value may appear, each once.
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
	// As a flag to be copied has it, also as text in JSON.
	for _, word := range []string{shellword.EscapeANSIC(value), shellword.EscapeSingle(value)} {
		add(word)
		add(strings.ReplaceAll(word, `\`, `\\`))
	}
	return out
}

// base64Forms are the two alphabets at the three places that a value can have
// in what is encoded together with it. Of a character that holds bits of what
// is before or behind the value too, nothing is known; it stays, with six bits
// or fewer of the value's first and last byte in it. Where the encoded text ends
// with the value, its end is known.
func base64Forms(value string, add func(string)) {
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		for before := range 3 {
			whole := append(make([]byte, before), value...)
			first := (before*8 + 5) / 6 // the first character that is all the value's
			add(enc.EncodeToString(whole)[first:])
			add(enc.WithPadding(base64.NoPadding).EncodeToString(whole)[first:])
			add(enc.EncodeToString(whole)[first : len(whole)*8/6])
		}
	}
}

// percentForms are what different encoders leave as it is, in both cases of
// hex.
func percentForms(value string, add func(string)) {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	for _, e := range []struct {
		kept string
		plus bool // for a space
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
		{letters + "-_.~!$&'()*+,;=:@/?[]#%", false}, // only what can be no part of a URL
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

// jsonForms are the string literals of different encoders, without the quotes,
// and these as text in JSON once and twice more: a result is text in an
// envelope, which is text in an event.
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

// diffForms are the lines of a value as a diff adds them, removes them or has them around
// a change, with what JSON makes of that. A value of one line is found in a diff as it is.
func diffForms(value string, add func(string)) {
	lines := strings.TrimRight(value, "\n") // behind the last line stands whatever comes next
	if !strings.Contains(lines, "\n") {
		return
	}
	for _, mark := range []string{"+", "-", " "} {
		marked := strings.ReplaceAll(lines, "\n", "\n"+mark)
		add(marked)
		jsonForms(marked, add)
	}
}

// ascii writes what is beyond ASCII as escapes.
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
