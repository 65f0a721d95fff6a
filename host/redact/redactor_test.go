package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"unicode/utf8"
)

// values are secrets of every shape.
var values = []string{
	"ghp_16C7e42F292c6912E7710c838347Ae178B4a", "p@ss word/+%&=?#\"quoted\"\\slash", "abcd", "aaaaaaaa", "1234567890", "grüße-geheim-😀",
	"-----BEGIN KEY-----\nMIIB\tVQ==\n-----END KEY-----\n", `{"type":"service","key":"v<a>l"}`, "redacted", "[redacted]", "nabcd", "x\x01\x1f\x7fy",
	"[]<>{}()*#~|!^` redacted", "%41%42%43", `\u0041bcd`, strings.Repeat("long secret ", 300),
}

// leaks returns the forms of a value that must not be visible. The list is written
// independently of the tested code.
func leaks(v string) map[string]string {
	js, _ := json.Marshal(v)
	var plainJSON bytes.Buffer
	enc := json.NewEncoder(&plainJSON)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v)
	unquoted := func(s string) string { s = strings.TrimSuffix(s, "\n"); return s[1 : len(s)-1] }
	js2, _ := json.Marshal(unquoted(string(js)))
	var percent strings.Builder
	for i := range len(v) {
		fmt.Fprintf(&percent, "%%%02X", v[i])
	}
	out := map[string]string{
		"plain": v, "hex": hex.EncodeToString([]byte(v)), "HEX": fmt.Sprintf("%X", v),
		"query": url.QueryEscape(v), "path": url.PathEscape(v), "percent": percent.String(), "percent lower": strings.ToLower(percent.String()),
		"json": unquoted(string(js)), "json without html": unquoted(plainJSON.String()), "json twice": unquoted(string(js2)),
		"std": base64.StdEncoding.EncodeToString([]byte(v)), "url": base64.URLEncoding.EncodeToString([]byte(v)),
		"raw std": base64.RawStdEncoding.EncodeToString([]byte(v)), "raw url": base64.RawURLEncoding.EncodeToString([]byte(v)),
	}
	for name, enc := range map[string]*base64.Encoding{"std": base64.StdEncoding, "url": base64.URLEncoding} {
		for before := range 3 {
			for behind := range 3 {
				whole := strings.Repeat("?", before) + v + strings.Repeat("!", behind)
				coded := enc.EncodeToString([]byte(whole))
				from, to := (before*8+5)/6, (before+len(v))*8/6
				out[fmt.Sprintf("%s %d before %d behind", name, before, behind)] = coded[from:to]
			}
		}
	}
	if lines := strings.Split(strings.TrimRight(v, "\n"), "\n"); len(lines) > 1 {
		for _, mark := range "+- " {
			diff := ""
			for _, line := range lines {
				diff += string(mark) + line + "\n"
			}
			diff = diff[1 : len(diff)-1]
			literal, _ := json.Marshal(diff)
			out["diff "+string(mark)], out["diff in json "+string(mark)] = diff, unquoted(string(literal))
		}
	}
	return out
}

func redactorOf(values ...string) *Redactor {
	r := new(Redactor)
	for _, v := range values {
		r.Add(v)
	}
	return r
}

// clean reports an error if a text holds a value in some form.
func clean(t *testing.T, what, text string, values ...string) {
	t.Helper()
	for _, v := range values {
		for form, leak := range leaks(v) {
			if len(leak) >= MinBytes && strings.Contains(text, leak) {
				t.Errorf("%s: %.200q holds %.60q as %s", what, text, v, form)
			}
		}
	}
}

func TestNoFormOfASecretIsLeft(t *testing.T) {
	for _, v := range values {
		r := redactorOf(v)
		for form, leak := range leaks(v) {
			for _, text := range []string{leak, "before " + leak + " behind", leak + leak, "\n" + leak + "\n", "a=" + leak + "&" + leak} {
				got := r.Text(text)
				clean(t, form, got, v)
				var out bytes.Buffer
				w := r.Writer(&out)
				for i := range len(text) {
					if n, err := w.Write([]byte{text[i]}); n != 1 || err != nil {
						t.Fatal(n, err)
					}
				}
				if err := w.Flush(); err != nil || out.String() != got {
					t.Errorf("%s of %.40q, byte by byte: got %.80q, %v, want %.80q", form, v, out.String(), err, got)
				}
			}
		}
		for _, text := range []string{"before " + v + " behind"} {
			if got := r.Text(text); !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, " behind") {
				t.Errorf("%.40q: what is around it is lost: %.80q", v, got)
			}
		}
	}
}

func TestTextWithoutSecretsStaysAsItIs(t *testing.T) {
	r := redactorOf("ghp_16C7e42F292c6912E7710c838347Ae178B4a")
	for _, text := range []string{"", "g", "ghp_", "ghp_16C7e42F292c6912E7710c838347Ae178B4", "Z2hwX", "%67%68", "\xff\xfe\x00", strings.Repeat("ghp_16C7", 1000)} {
		if got := r.Text(text); got != text {
			t.Errorf("%.40q became %.40q", text, got)
		}
		var out bytes.Buffer
		w := r.Writer(&out)
		fmt.Fprint(w, text)
		if w.Flush(); out.String() != text {
			t.Errorf("%.40q was written as %.40q", text, out.String())
		}
	}
	if got := new(Redactor).Text("anything"); got != "anything" {
		t.Errorf("a redactor that knows nothing says %q", got)
	}
	if got := redactorOf("abc").Text("abcabc"); got != "abcabc" {
		t.Errorf("three bytes are redacted: %q", got)
	}
}

func TestOverlappingSecretsAreCoveredWhole(t *testing.T) {
	for _, tt := range []struct {
		values     []string
		text, want string
	}{
		{[]string{"abcdef", "defghi"}, "xabcdefghix", "x[redacted]x"},
		{[]string{"abcdefgh", "cdef"}, "abcdefgh cdef", "[redacted] [redacted]"},
		{[]string{"abcdefgh", "cdef"}, "abcdefg", "ab[redacted]g"},
		{[]string{"aaaa"}, "aaaaaaaaab", "[redacted]b"},
		{[]string{"abcd"}, "abcdabcd", "[redacted][redacted]"},
	} {
		if got := redactorOf(tt.values...).Text(tt.text); got != tt.want {
			t.Errorf("%q of %q: got %q, want %q", tt.values, tt.text, got, tt.want)
		}
	}
}

func TestAWriterHoldsBackOnlyWhatMayBeASecret(t *testing.T) {
	var out bytes.Buffer
	w := redactorOf("hunter2-hunter2").Writer(&out)
	for _, tt := range []struct{ write, want string }{
		{"Password for Ada: ", "Password for Ada: "},
		{"hunter", "Password for Ada: "},
		{"s\n", "Password for Ada: hunters\n"},
		{"hunter2-", "Password for Ada: hunters\n"},
		{"hunter2!", "Password for Ada: hunters\n[redacted]!"},
	} {
		fmt.Fprint(w, tt.write)
		if out.String() != tt.want {
			t.Errorf("after %q: %q, want %q", tt.write, out.String(), tt.want)
		}
	}
	// The held bytes are bounded, however long the text is.
	w = redactorOf("aaaaaaaa").Writer(new(bytes.Buffer))
	for range 1000 {
		fmt.Fprint(w, "aaaaaaaaaaaaaaaaaaaaaaaaa")
		if n := len(w.s.s.held); n > 64 {
			t.Fatalf("%d bytes are held", n)
		}
	}
}

func TestAValueThatIsLearntInTheMiddle(t *testing.T) {
	var out bytes.Buffer
	r := redactorOf("first-value")
	w := r.Writer(&out)
	fmt.Fprint(w, "first-val")
	r.Add("first-valley")
	fmt.Fprint(w, "ley and first-")
	fmt.Fprint(w, "value")
	w.Flush()
	if got := out.String(); got != "[redacted] and [redacted]" {
		t.Errorf("got %q", got)
	}
}

func TestErrorsOfTheWriterBelow(t *testing.T) {
	w := redactorOf("abcdef").Writer(failing{})
	if _, err := fmt.Fprint(w, "text"); err == nil {
		t.Error("an error is lost")
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, iotest.ErrTimeout }

func TestJSONKeepsItsShape(t *testing.T) {
	for _, v := range values {
		r := redactorOf(v)
		inner, _ := json.Marshal(map[string]any{"stdout": "x" + v + "y", "n": 1})
		for what, in := range map[string]any{
			"a string": v, "in a string": "a " + v + " b", "a key": map[string]any{v: 1}, "deep": []any{map[string]any{"a": []string{"b", v}}},
			"json in a string": string(inner), "in an error": map[string]any{"error": "cannot use " + v, "other": true},
			"nothing": map[string]any{"a": "b\nabc", "c": 12.50},
		} {
			data, err := json.Marshal(in)
			if err != nil {
				t.Fatal(err)
			}
			out := r.JSON(data)
			if !json.Valid(out) {
				t.Errorf("%s with %.40q: %s is no JSON", what, v, out)
			}
			clean(t, what, string(out), v)
			var back any
			if json.Unmarshal(out, &back) == nil {
				text := fmt.Sprint(back)
				clean(t, what+", decoded", text, v)
			}
			if what == "nothing" && v != "nabcd" && string(out) != string(data) {
				t.Errorf("%s became %s", data, out)
			}
		}
	}
	r := redactorOf("1234567890", "abcdefgh")
	for in, want := range map[string]string{
		`{"pin":1234567890,"other":123}`:          `{"pin":"[redacted]","other":123}`,
		`{"a":"\u0061bcdefgh"}`:                   `{"a":"[redacted]"}`,
		`{"a":"{\"b\":\"abcdefgh\"}"}`:            `{"a":"{\"b\":\"[redacted]\"}"}`,
		`{"a":"\nabcdefgh"}`:                      `{"a":"\n[redacted]"}`,
		`{"a": 1.50, "b" : [true,null,"\u00e4"]}`: `{"a": 1.50, "b" : [true,null,"\u00e4"]}`,
		`not json abcdefgh`:                       `not json [redacted]`,
	} {
		if got := r.JSON([]byte(in)); string(got) != want {
			t.Errorf("%s became %s, want %s", in, got, want)
		}
	}
	// A secret that is JSON can be there without being in a string.
	if got := redactorOf(`{"key":"abcdef"}`).JSON([]byte(`{"output":{"key":"abcdef"}}`)); strings.Contains(string(got), "abcdef") || !json.Valid(got) {
		t.Errorf("got %s", got)
	}
	// An escape and the letters after it must not look like a secret.
	if got := redactorOf("nabcd").JSON([]byte(`{"a":"\nabcd"}`)); string(got) != `{"a":"\u000aabcd"}` {
		t.Errorf("got %s", got)
	}
}

func TestAStreamOfPieces(t *testing.T) {
	stream := redactorOf("tok-12345678").Stream()
	var got []string
	for _, piece := range []string{"the ", "tok", "-1234", "5678", " is ", "tok-"} {
		got = append(got, stream(piece, false))
	}
	got = append(got, stream("", true))
	if want := []string{"the ", "", "", "[redacted]", " is ", "", "tok-"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// FuzzRedactor: the output holds no listed form of the value, for any value and text, in
// one piece or several, as text or as JSON. A text that holds no form stays as it is.
func FuzzRedactor(f *testing.F) {
	for i, v := range values {
		f.Add(v, "before ", " behind", uint8(i))
	}
	f.Fuzz(func(t *testing.T, v, before, behind string, cut uint8) {
		if len(v) < MinBytes || len(v) > 256 || len(before)+len(behind) > 4096 || !utf8.ValidString(v) || strings.ContainsRune(v, 0) {
			return
		}
		r := redactorOf(v)
		found := leaks(v)
		hidden := r.automaton()
		for form, leak := range found {
			if len(leak) < MinBytes {
				continue
			}
			text := before + leak + behind
			got := r.Text(text)
			for _, l := range found {
				if len(l) >= MinBytes && strings.Contains(got, l) && !exhausts(hidden) {
					t.Fatalf("%q as %s: %q holds %q", v, form, got, l)
				}
			}
			var out bytes.Buffer
			w := r.Writer(&out)
			size := int(cut)%7 + 1
			for piece := range slices.Chunk([]byte(text), size) {
				w.Write(piece)
			}
			if w.Flush(); out.String() != got {
				t.Fatalf("%q in pieces of %d is %q, at once %q", text, size, out.String(), got)
			}
			doc, _ := json.Marshal(map[string]string{"k": text})
			clean := r.JSON(doc)
			if !json.Valid(clean) || strings.Contains(string(clean), leak) && !exhausts(hidden) && !strings.Contains(`{"redacted":true}{"k":""}`, leak) {
				t.Fatalf("%s became %s", doc, clean)
			}
		}
		if text := before + behind; !hidden.find([]byte(text)) && r.Text(text) != text {
			t.Fatalf("%q became %q", text, r.Text(text))
		}
	})
}

// exhausts reports whether the value uses so many characters that no marker is left.
func exhausts(a *automaton) bool { return string(a.marker) == "[redacted]" && a.find(a.marker) }

func TestRedactorsAreUsedFromManySides(t *testing.T) {
	r := new(Redactor)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			var out bytes.Buffer
			w := r.Writer(&out)
			for j := range 50 {
				v := fmt.Sprintf("value-%d-%d", i, j)
				r.Add(v)
				fmt.Fprintf(w, "it is %s\n", v)
				if got := r.Text(v); got != "[redacted]" {
					t.Errorf("got %q", got)
				}
			}
			w.Flush()
			if strings.Contains(out.String(), "value-") {
				t.Errorf("got %q", out.String())
			}
		})
	}
	wg.Wait()
}

// BenchmarkRedactor compares with the standard library, which replaces the plain form
// alone. The texts are prose without a secret, and text that almost holds a secret
// everywhere.
func BenchmarkRedactor(b *testing.B) {
	for _, text := range []struct{ name, text string }{
		{"prose", strings.Repeat("The quick brown fox jumps over the lazy dog, 1234567890 times.\n", 1<<14)},
		{"near misses", strings.Repeat("ghp_16C7e42F292c6912E7710c838347Ae178B4", 1<<14)},
	} {
		for _, n := range []int{1, 16} {
			var known, pairs []string
			for i := range n {
				known = append(known, fmt.Sprintf("ghp_16C7e42F292c6912E7710c838347Ae178B4a%d", i))
				for _, form := range forms(known[i]) {
					pairs = append(pairs, string(form), "[redacted]")
				}
			}
			r, replacer := redactorOf(known...), strings.NewReplacer(pairs...)
			b.Run(fmt.Sprintf("%s/%d/redactor", text.name, n), func(b *testing.B) {
				b.SetBytes(int64(len(text.text)))
				for b.Loop() {
					r.Text(text.text)
				}
			})
			b.Run(fmt.Sprintf("%s/%d/replacer", text.name, n), func(b *testing.B) {
				b.SetBytes(int64(len(text.text)))
				for b.Loop() {
					replacer.Replace(text.text)
				}
			})
		}
	}
}

// Code that cuts a text relies on Longest: no form is longer.
func TestNoFormIsLongerThanTheLongest(t *testing.T) {
	var none *Redactor
	r := new(Redactor)
	if none.Longest() != 0 || r.Longest() != 0 {
		t.Errorf("who knows nothing looks for %d, %d bytes", none.Longest(), r.Longest())
	}
	longest := 0
	for _, value := range []string{"plain-value", "\"quoted\"\n/é", "x\x01😀"} {
		r.Add(value)
		for _, form := range forms(value) {
			longest = max(longest, len(form))
		}
		if r.Longest() != longest {
			t.Errorf("with %q it is %d, want %d", value, r.Longest(), longest)
		}
	}
}

func TestAKeyBehindASchemeIsKnownByItself(t *testing.T) {
	r := redactorOf("Bot 0123456789abcdefgh", "session=abcdefghijklmnop", "word=1234", "a password")
	for text, want := range map[string]bool{
		"Bot 0123456789abcdefgh": true, "x0123456789abcdefgh": true, "abcdefghijklmnop": true, "session=x": false, "1234": false, "password": false, "a password": true,
	} {
		if clean := r.Text(text); (clean != text) != want {
			t.Errorf("%q became %q", text, clean)
		}
	}
}

// A value with a context is redacted in that context only, in whatever pieces the text
// comes.
func TestPlaces(t *testing.T) {
	r := new(Redactor)
	r.AddContextValues(ContextValue{"://me:", "pw", "@h"}, ContextValue{"://me:pw@h", "ost", ""}, ContextValue{"key=", "pw", ""}, ContextValue{"", "", "x"}, ContextValue{"me:", "pw@", ""}, ContextValue{"a", "key", "=pw"})
	for text, want := range map[string]string{
		"pw me:pw key:pw":             "pw me:pw key:pw",
		"https://me:pw@h/x, key=pw.":  "https://me:[redacted]h/x, key=[redacted].",
		"https://me:pw@host/x":        "https://me:[redacted]h[redacted]/x",
		"https://me:pw@hos":           "https://me:[redacted]hos",
		"akey=pw":                     "a[redacted]=[redacted]",
		"://me:p ://me:pw ://me:pw@h": "://me:p ://me:pw ://me:[redacted]h",
	} {
		if got := r.Text(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
		for size := 1; size < len(text); size++ {
			var out bytes.Buffer
			w := r.Writer(redactorOf("unknown").Writer(&out))
			for piece := range slices.Chunk([]byte(text), size) {
				w.Write(piece)
			}
			if w.Flush(); out.String() != want {
				t.Errorf("%q in pieces of %d is %q", text, size, out.String())
			}
		}
	}
	if !r.Finds([]byte("x key=pw")) || r.Finds([]byte("pw")) {
		t.Error("it finds something else")
	}
}
