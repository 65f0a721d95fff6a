package charset

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	utf16 "golang.org/x/text/encoding/unicode"
)

// Names are some of the names that [Named] knows.
const Names = "gbk, gb18030, big5, shift_jis, euc-jp, euc-kr, windows-1251, koi8-r, iso-8859-2, utf-16le"

// codecs are those of all forms but UTF-8 and Windows-1252. What would hide ASCII in other
// text, such as ISO-2022-JP, is left out.
var codecs = sync.OnceValue(func() map[Form]encoding.Encoding {
	all := map[Form]encoding.Encoding{
		"gbk": simplifiedchinese.GBK, "gb18030": simplifiedchinese.GB18030, "big5": traditionalchinese.Big5,
		"shift_jis": japanese.ShiftJIS, "euc-jp": japanese.EUCJP, "euc-kr": korean.EUCKR,
		UTF16LE: utf16.UTF16(utf16.LittleEndian, utf16.IgnoreBOM), UTF16BE: utf16.UTF16(utf16.BigEndian, utf16.IgnoreBOM),
	}
	for _, e := range charmap.All {
		name := strings.NewReplacer("ibm code page ", "ibm", " ", "-").Replace(strings.ToLower(fmt.Sprint(e)))
		if ascii, err := e.NewDecoder().String("Az~"); err == nil && ascii == "Az~" && name != "x-user-defined" && name != string(Windows1252) {
			all[Form(name)] = e
		}
	}
	return all
})

var aliases = map[string]string{
	"gb2312": "gbk", "cp936": "gbk", "cp950": "big5", "sjis": "shiftjis", "cp932": "shiftjis", "windows31j": "shiftjis", "cp949": "euckr",
	"latin1": "windows1252", "iso88591": "windows1252", "utf16": "utf16le",
}

// Named is the encoding of a name; case, blanks and hyphens do not count. Without a name it
// is the zero value.
func Named(name string) (e Encoding, known bool) {
	bare := func(name string) string {
		return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(name))
	}
	want := bare(name)
	want = cmp.Or(aliases[want], want)
	page := strings.TrimPrefix(strings.TrimPrefix(want, "cp"), "win")
	for _, form := range slices.AppendSeq([]Form{"", UTF8, Windows1252}, maps.Keys(codecs())) {
		if is := bare(string(form)); is == want || page != want && (is == "windows"+page || is == "ibm"+page) {
			return Encoding{Form: form}, true
		}
	}
	return Encoding{}, false
}

// Likely names the encodings in which a part of a file that is no UTF-8 reads as text of one
// script. It needs some characters, and names none for Western text.
func Likely(part []byte) (forms []Form) {
	high, beside := 0, 0 // bytes beyond ASCII, and those behind another one
	for i, b := range part {
		if b >= utf8.RuneSelf {
			high++
			if i > 0 && part[i-1] >= utf8.RuneSelf {
				beside++
			}
		}
	}
	for _, f := range []struct {
		form   Form
		script []*unicode.RangeTable
	}{
		{"gbk", []*unicode.RangeTable{unicode.Han}}, {"big5", []*unicode.RangeTable{unicode.Han}},
		{"shift_jis", []*unicode.RangeTable{unicode.Hiragana, unicode.Katakana, unicode.Han}}, {"euc-jp", []*unicode.RangeTable{unicode.Hiragana, unicode.Katakana, unicode.Han}},
		{"euc-kr", []*unicode.RangeTable{unicode.Hangul}}, {"windows-1251", []*unicode.RangeTable{unicode.Cyrillic}}, {"koi8-r", []*unicode.RangeTable{unicode.Cyrillic}},
	} {
		text, err := codecs()[f.form].NewDecoder().Bytes(part)
		all, fit, first := 0, 0, 0 // characters, those of the script, and those of its first part or in lower case
		for i, r := range string(text) {
			switch {
			case r < utf8.RuneSelf:
				continue
			case r == utf8.RuneError && i < len(text)-2*utf8.UTFMax:
				err = encoding.ErrInvalidUTF8
			case unicode.In(r, f.script...) && (r < 0xFF61 || r > 0xFF9F): // narrow kana are misread bytes
				fit++
				if unicode.Is(f.script[0], r) && !unicode.IsUpper(r) {
					first++
				}
			}
			all++
		}
		if err == nil && all >= 4 && fit*3 >= all*2 && first*4 >= fit && (f.form == "shift_jis" || beside*3 >= high && (f.script[0] != unicode.Cyrillic || first*2 >= fit)) {
			forms = append(forms, f.form)
		}
	}
	return forms
}
