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
	kana := []*unicode.RangeTable{unicode.Hiragana, unicode.Katakana, unicode.Han}
	for _, f := range []struct {
		form   Form
		script []*unicode.RangeTable // of which there is much of the first
	}{
		{"gbk", kana[2:]}, {"big5", kana[2:]}, {"shift_jis", kana}, {"euc-jp", kana}, {"euc-kr", []*unicode.RangeTable{unicode.Hangul}},
		{"windows-1251", []*unicode.RangeTable{unicode.Cyrillic}}, {"koi8-r", []*unicode.RangeTable{unicode.Cyrillic}},
	} {
		text, _ := codecs()[f.form].NewDecoder().String(string(part))
		all, fit, first, bad := 0, 0, 0, strings.Count(strings.TrimRight(text, "\uFFFD"), "\uFFFD")
		for _, r := range text {
			if r >= utf8.RuneSelf {
				all++
			}
			if r >= utf8.RuneSelf && unicode.In(r, f.script...) && (r < 0xFF61 || r > 0xFF9F) { // narrow kana are misread bytes
				fit++
				if unicode.Is(f.script[0], r) && !unicode.IsUpper(r) { // nor is text in capitals
					first++
				}
			}
		}
		dense := beside*3 >= high || f.form == "shift_jis" // of which half is ASCII
		if bad == 0 && all >= 4 && fit*3 >= all*2 && first*4 >= fit && dense && (f.script[0] != unicode.Cyrillic || first*2 >= fit) {
			forms = append(forms, f.form)
		}
	}
	return forms
}
