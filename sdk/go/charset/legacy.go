package charset

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
)

// names are examples of names that [Named] knows, for errors.
const names = "gbk, gb18030, big5, shift_jis, euc-jp, euc-kr, windows-1251, koi8-r, iso-8859-2, utf-16le"

// aliases are names from Windows and Python that package htmlindex lacks.
var aliases = map[string]string{"cp932": "shift_jis", "cp936": "gbk", "cp949": "euc-kr", "cp950": "big5", "latin-1": "latin1"}

// Named returns the encoding of a name, such as web pages use, with the mark for new files. An
// empty name returns the zero value and true.
func Named(name string) (e Encoding, known bool) {
	name = strings.NewReplacer("_", "-", " ", "-").Replace(strings.ToLower(name))
	if name == "" {
		return Encoding{}, true
	}
	c, err := htmlindex.Get(cmp.Or(aliases[name], name))
	if err != nil {
		return Encoding{}, false
	}
	form, _ := htmlindex.Name(c)
	switch form {
	case "iso-2022-jp", "replacement", "x-user-defined": // they would hide ASCII in other text
		return Encoding{}, false
	}
	marks := map[Form]string{UTF16LE: "\xff\xfe", UTF16BE: "\xfe\xff"}
	return Encoding{Form(form), marks[Form(form)]}, true
}

// UnmarshalText parses a name as [Named] does. An unknown name is an error.
func (e *Encoding) UnmarshalText(name []byte) error {
	is, known := Named(string(name))
	if !known {
		return fmt.Errorf("encoding %q is not known; write one of %s, or leave it out for UTF-8", name, names)
	}
	*e = is
	return nil
}

// codec returns the converter of a form. It is nil for UTF-8 and Windows-1252, which need
// none, and for files that are no text.
func codec(form Form) encoding.Encoding {
	if form == UTF8 || form == Windows1252 {
		return nil
	}
	c, _ := htmlindex.Get(string(form))
	return c
}

// Likely returns the encodings in which a part of a file, if it is not UTF-8, is text of one
// script. It needs at least four characters beyond ASCII, and returns none for Western text.
func Likely(part []byte) (forms []Form) {
	// In Western text a letter beyond ASCII rarely has another one beside it.
	runs := bytes.FieldsFunc(part, func(r rune) bool { return r < utf8.RuneSelf })
	high := len(bytes.Join(runs, nil))
	isDense := (high-len(runs))*3 >= high
	for _, f := range []struct {
		form    Form
		script  *unicode.RangeTable
		percent int // least share of the script among the characters beyond ASCII
	}{
		{"gbk", unicode.Han, 66}, {"big5", unicode.Han, 66}, {"shift_jis", unicode.Hiragana, 25}, {"euc-jp", unicode.Hiragana, 25},
		{"euc-kr", unicode.Hangul, 66}, {"windows-1251", unicode.Cyrillic, 50}, {"koi8-r", unicode.Cyrillic, 50},
	} {
		text, _ := codec(f.form).NewDecoder().String(string(part))
		text = strings.TrimRight(text, "\uFFFD") // a character that is cut off
		beyond, fit := 0, 0
		for _, r := range text {
			if r >= utf8.RuneSelf {
				beyond++
			}
			if unicode.Is(f.script, r) && !unicode.IsUpper(r) { // Russian in the wrong encoding is in capitals
				fit++
			}
		}
		halfASCII := f.form == "shift_jis" // the second byte of a character may be ASCII
		if !strings.Contains(text, "\uFFFD") && beyond >= 4 && fit*100 >= beyond*f.percent && (isDense || halfASCII) {
			forms = append(forms, f.form)
		}
	}
	return forms
}
