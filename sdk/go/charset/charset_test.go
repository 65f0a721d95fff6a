package charset

import (
	"bufio"
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
)

func FuzzEncoding(f *testing.F) {
	for _, seed := range []string{
		"", "abc\n", "\uFEFFa", "\xff\xfea\x00", "\xfe\xff\x00a", "\xff\xfe\x00\x00", "a\x00b\x00c\x00\xfc\x00\r\x00\n\x00", "\x00a\x00b\xd8\x3d\xde\x00\x00\n",
		"gr\xfc\xdfe", "ü\xff", "a\x00",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		e := Of([]byte(raw)).Guess([]byte(raw))
		if e.Form == Binary || e.Form == UTF32 {
			return
		}
		text, ok := e.Decode([]byte(raw))
		if !ok {
			return
		}
		if back, lacks, at := e.Encode(text); string(back) != raw {
			t.Fatalf("%v: %q became %q (%U at %d)", e, raw, back, lacks, at)
		}
	})
}

func TestWhatACallerNames(t *testing.T) {
	const chinese, japanese, korean, russian, french = "你好，世界。这是一个测试文件。\n", "これはテストです。日本語のファイル。\n", "안녕하세요 세계. 이것은 시험입니다.\n", "Привет, мир! Это проверка кодировки.\n", "Décembre, l'été à Noël: déjà vu, façade, hôtel.\n"
	for _, tt := range []struct {
		name, text string
		form       Form
		likely     []Form
	}{
		{"GBK", chinese, "gbk", []Form{"gbk"}},
		{"gb2312", chinese, "gbk", nil}, {"cp936", chinese, "gbk", nil}, {"GB18030", chinese + "😀", "gb18030", nil},
		{"Big5", "這是一個測試檔案，內容是中文。\n", "big5", []Form{"big5"}},
		{"Shift-JIS", japanese, "shift_jis", []Form{"shift_jis"}}, {"sjis", "ソフト表|能\n", "shift_jis", nil}, {"cp932", japanese, "shift_jis", nil},
		{"EUC-JP", japanese, "euc-jp", []Form{"euc-jp"}},
		{"EUC_KR", korean, "euc-kr", []Form{"euc-kr"}}, {"cp949", korean, "euc-kr", nil},
		{"cp1251", russian, "windows-1251", []Form{"windows-1251"}},
		{"koi8-r", russian, "koi8-r", []Form{"koi8-r"}}, {"cp866", russian, "ibm866", nil},
		{"latin-1", french, Windows1252, []Form{}}, {"ISO-8859-15", french + "€", "iso-8859-15", []Form{}}, {"iso 8859-2", "Zażółć gęślą jaźń", "iso-8859-2", nil},
		{"utf-16be", chinese, UTF16BE, nil}, {"UTF-16", chinese, UTF16LE, nil},
	} {
		e, known := Named(tt.name)
		raw, lacks, at := e.Encode([]byte(tt.text))
		text, ok := e.Decode(raw)
		if !known || e.Form != tt.form || at >= 0 || !ok || string(text) != tt.text {
			t.Errorf("%s is %q %v, writes %q (%q at %d), and reads that as %q", tt.name, e.Form, known, raw, lacks, at, text)
		}
		if told := Of(raw).Told(e, raw); told.Form != tt.form {
			t.Errorf("a file in %s is taken for %q", tt.name, told.Form)
		}
		reader, damaged := e.Reader(bufio.NewReader(bytes.NewReader(raw[len(e.Mark):])))
		if all, err := io.ReadAll(reader); e.Form != Windows1252 && (err != nil || string(all) != tt.text || damaged()) {
			t.Errorf("%s is read as %q, %v", tt.name, all, err)
		}
		if tt.likely != nil && !slices.Contains(Likely(raw), append(tt.likely, "")[0]) && len(tt.likely)+len(Likely(raw)) > 0 {
			t.Errorf("text in %s is likely %q", tt.name, Likely(raw))
		}
	}
	for _, name := range []string{"iso-2022-jp", "hz-gb-2312", "utf-7", "cp037", "x-user-defined", "utf-32", "nonsense"} {
		var e Encoding
		if err := e.UnmarshalText([]byte(name)); err == nil || !strings.Contains(err.Error(), "is not known; write one of gbk, ") {
			t.Errorf("%s is known as %q: %v", name, e.Form, err)
		}
	}
	gbk, _ := Named("gbk")
	for raw, want := range map[string]Form{"plain": "gbk", "gr\xc3\xbc\xc3\x9fe, \xe4\xbd\xa0": UTF8, "\xef\xbb\xbfa": UTF8, "\xff\xfea\x00": UTF16LE, "\x00\x01\x02\x03\x04": Binary} {
		if got := Of([]byte(raw)).Told(gbk, []byte(raw)); got.Form != want {
			t.Errorf("%q is told to be gbk and is taken for %q, want %q", raw, got.Form, want)
		}
	}
	for _, bad := range []string{"a\xff\xff", "\x81", "\x81\x39"} {
		if text, ok := gbk.Decode([]byte(bad)); ok {
			t.Errorf("%q is %q in gbk", bad, text)
		}
	}
	if _, lacks, at := gbk.Encode([]byte("a你😀")); lacks != '😀' || at != 4 {
		t.Errorf("gbk lacks %q at %d", lacks, at)
	}
}
