package main

import (
	"encoding/binary"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stockade-dev/stockade/sdk/go/charset"
	"github.com/stockade-dev/stockade/sdk/go/tool"
)

// wide writes text in UTF-16, or in UTF-32.
func wide(order binary.AppendByteOrder, size int, text string) string {
	var out []byte
	for _, r := range text {
		if size == 4 {
			out = order.AppendUint32(out, uint32(r))
			continue
		}
		for _, u := range utf16.AppendRune(nil, r) {
			out = order.AppendUint16(out, u)
		}
	}
	return string(out)
}

var (
	little, big = binary.LittleEndian, binary.BigEndian
	prose       = "eins\r\nzwei 😀 ü€\r\ndrei\r\n"
)

// Every tool that edits finds text as UTF-8, and leaves the encoding, the byte order
// mark and the line endings as they are.
func TestEditsKeepTheEncoding(t *testing.T) {
	lf := func(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }
	latin := strings.NewReplacer("😀 ", "", "ü", "\xfc", "€", "\x80")
	encodings := map[string]struct {
		write func(text string) string
		said  string
	}{
		"UTF-8":                      {func(s string) string { return s }, ""},
		"UTF-8, LF":                  {lf, ""},
		"UTF-8 with a mark":          {func(s string) string { return "\uFEFF" + s }, "utf-8 with a byte order mark"},
		"UTF-16 LE with a mark":      {func(s string) string { return "\xff\xfe" + wide(little, 2, s) }, "utf-16le with a byte order mark"},
		"UTF-16 BE with a mark":      {func(s string) string { return "\xfe\xff" + wide(big, 2, s) }, "utf-16be with a byte order mark"},
		"UTF-16 LE, by its NULs":     {func(s string) string { return wide(little, 2, s) }, "utf-16le"},
		"UTF-16 BE, by its NULs, LF": {func(s string) string { return wide(big, 2, lf(s)) }, "utf-16be"},
		"Windows-1252":               {latin.Replace, "windows-1252"},
	}
	tools := map[string]struct {
		call func(t *testing.T, sha string) string
		want string
	}{
		"file_edit": {func(t *testing.T, sha string) string {
			return works(t, fileEdit, editArgs{Path: "f", OldString: "drei\n", NewString: "drei ÿ\nvier\n", ExpectedSHA256: sha}).SHA256
		}, "eins\r\nzwei 😀 ü€\r\ndrei ÿ\r\nvier\r\n"},
		"replace_lines": {func(t *testing.T, sha string) string {
			return works(t, replaceLines, replaceArgs{Path: "f", LineStart: 1, LineEnd: 1, NewContent: "ÿ\nvier", ExpectedSHA256: sha}).SHA256
		}, "ÿ\r\nvier\r\nzwei 😀 ü€\r\ndrei\r\n"},
		"insert_lines": {func(t *testing.T, sha string) string {
			return works(t, insertLines, insertArgs{Path: "f", LineStart: 1, NewContent: "ÿ\nvier\n", ExpectedSHA256: sha}).SHA256
		}, "ÿ\r\nvier\r\neins\r\nzwei 😀 ü€\r\ndrei\r\n"},
		"apply_patch": {func(t *testing.T, sha string) string {
			text := "*** Begin Patch\n*** Update File: f\n@@\n-eins\n+ÿ\n@@\n drei\n+vier\n*** End Patch"
			return works(t, applyPatch, patchArgs{Patch: text, ExpectedSHA256: map[string]string{"f": sha}}).SHA256["f"]
		}, "ÿ\r\nzwei 😀 ü€\r\ndrei\r\nvier\r\n"},
	}
	for name, e := range encodings {
		for toolName, tt := range tools {
			t.Run(toolName+" of "+name, func(t *testing.T) {
				tree(t, map[string]string{"f": e.write(prose)})
				read := works(t, fileRead, readArgs{Path: "f", Offset: 2, Limit: 1})
				if read.Encoding != e.said || !strings.HasPrefix(read.Output, "2: zwei ") || !strings.Contains(read.Output, "ü€\n[1 more line") {
					t.Errorf("it is read as %+v", read)
				}
				if said := strings.Contains(read.Output, "edits keep that"); said != (e.said != "" && !strings.HasPrefix(e.said, "utf-8")) {
					t.Errorf("the last line says %q", read.Output)
				}
				sha := tt.call(t, read.SHA256)
				want := e.write(tt.want)
				if e.said == "windows-1252" {
					want = strings.ReplaceAll(want, "ÿ", "\xff")
				}
				if got := content(t, "f"); got != want || sha != hashOf([]byte(got)) {
					t.Errorf("got %q, want %q", got, want)
				}
			})
		}
	}
}

func TestWhatCannotBeEncodedIsRefused(t *testing.T) {
	const latin, latinWant = "gr\xfc\xdfe\nfertig\n", "gr\xfc\xdfe\nfertig\n"
	tree(t, map[string]string{
		"latin": latin, "half": "\xff\xfea\x00b", "lone": "\xff\xfe" + "\x00\xd8a\x00", "bin": "\x7fELF\x02\x01\x00\x00\x00\x00\x00\x00",
		"numbers": wide(little, 2, "\x01\x02\x03\x04\x05"), "utf32": "\xff\xfe\x00\x00" + wide(little, 4, "abc"), "utf32be": wide(big, 4, "abc def"),
	})
	for name, code := range map[string]string{"half": "UNKNOWN_ENCODING", "lone": "UNKNOWN_ENCODING", "bin": "BINARY_FILE", "numbers": "BINARY_FILE", "utf32": "UNKNOWN_ENCODING", "utf32be": "UNKNOWN_ENCODING"} {
		_, err := insertLines(t.Context(), insertArgs{Path: name, LineStart: 1, NewContent: "x"})
		if tool.CodeOf(err) != code {
			t.Errorf("an edit of %s: %v", name, err)
		}
	}
	for _, name := range []string{"half", "lone"} {
		if out := works(t, fileRead, readArgs{Path: name, Offset: 1, Limit: 9}); !strings.HasPrefix(out.Output, "1: ") || !strings.Contains(out.Output, "\uFFFD") ||
			!strings.Contains(out.Output, "[the file is damaged: it looks like utf-16le with a byte order mark and holds bytes that do not fit it, so no tool edits it") {
			t.Errorf("%s is read as %q", name, out.Output)
		}
	}
	fails(t, fileEdit, editArgs{Path: "latin", OldString: "fertig", NewString: "fertig\n→ weiter"}, tool.CodeInvalidInput,
		"latin is windows-1252, which has no '→' (U+2192) as line 3 would need", "convert the file to UTF-8")
	if got := content(t, "latin"); got != latinWant {
		t.Errorf("a refused edit changed the file to %q", got)
	}
}

func TestLongTextInUTF16(t *testing.T) {
	text := "x" + strings.Repeat("😀ü", 5000) + "\n" // a pair lies across the end of every block
	tree(t, map[string]string{"f": "\xfe\xff" + wide(big, 2, text+"end\n")})
	if out := works(t, fileRead, readArgs{Path: "f", Offset: 1, Limit: 9, Raw: true}); out.Output != text+"end\n" {
		t.Errorf("read %d bytes of %d", len(out.Output), len(text))
	}
	if out := works(t, fileRead, readArgs{Path: "f", Offset: -1, Limit: 9}); !strings.HasPrefix(out.Output, "2: end\n") {
		t.Errorf("the last line is %q", out.Output)
	}
}

// Every tool reads, searches, edits and writes a file in the encoding that its caller names.
func TestANamedEncodingIsKept(t *testing.T) {
	for name, text := range map[string]string{
		"gbk": "你好\n世界\n", "GB2312": "你好\n世界\n", "gb18030": "你好😀\n世界\n", "big5": "這是\n功能\n", "Shift-JIS": "表示\nソフト\n", "euc-jp": "これは\nテスト\n",
		"EUC_KR": "안녕\n세계\n", "cp1251": "Привет\nмир\n", "koi8-r": "Привет\nмир\n", "iso-8859-2": "Zażółć\ngęślą\n", "windows-1252": "façade\ngrün\n", "utf-16le": "你好\n世界\n", "utf-16be": "Привет\nмир\n",
	} {
		enc := encodingOf(name)
		raw := func(text string) string {
			out, _, at := charset.Encoding{Form: enc.Form}.Encode([]byte(text))
			if at >= 0 {
				t.Fatalf("%s lacks a character of %q", name, text)
			}
			return string(out)
		}
		first, second, _ := strings.Cut(strings.TrimSuffix(text, "\n"), "\n")
		tree(t, map[string]string{"f": raw(text), "utf8": text, "ascii": "a\n"})
		if out := works(t, fileRead, readArgs{Path: "f", Offset: 2, Limit: 1, Encoding: enc}); !strings.HasPrefix(out.Output, "2: "+second) || out.Lines != 2 || out.Encoding != string(enc.Form) {
			t.Errorf("%s is read as %+v", name, out)
		}
		if out := works(t, fileRead, readArgs{Path: "utf8", Limit: 9, Encoding: enc}); !strings.HasPrefix(out.Output, "1: "+first) {
			t.Errorf("UTF-8 is read as %s: %+v", name, out)
		}
		if out := works(t, grep, grepArgs{Pattern: "^" + second + "$", Encoding: enc, MaxResults: 9}); out.Output != "f:2: "+second+"\nutf8:2: "+second {
			t.Errorf("in %s grep finds %+v", name, out)
		}
		works(t, fileEdit, editArgs{Path: "f", OldString: first + "\n", NewString: second + "\n", Encoding: enc})
		works(t, replaceLines, replaceArgs{Path: "f", LineStart: 2, LineEnd: 2, NewContent: first, Encoding: enc})
		works(t, insertLines, insertArgs{Path: "f", LineStart: 3, NewContent: second, Encoding: enc})
		works(t, applyPatch, patchArgs{Patch: patchOf("*** Update File: f\n@@\n " + first + "\n-" + second + "\n+" + first).Patch, Encoding: enc})
		if got, want := content(t, "f"), raw(second+"\n"+first+"\n"+first+"\n"); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
		mark := ""
		if strings.HasPrefix(name, "utf-16") {
			mark = "\uFEFF"
		} else {
			works(t, fileEdit, editArgs{Path: "ascii", OldString: "a", NewString: first, Encoding: enc})
			if got := content(t, "ascii"); got != raw(first+"\n") {
				t.Errorf("%s: ASCII becomes %q", name, got)
			}
		}
		works(t, fileWrite, writeArgs{Path: "new", Content: text, Encoding: enc})
		works(t, applyPatch, patchArgs{Patch: patchOf("*** Add File: added\n+" + first).Patch, Encoding: enc})
		if content(t, "new") != raw(mark+text) || content(t, "added") != raw(mark+first+"\n") {
			t.Errorf("%s: new files are %q, %q", name, content(t, "new"), content(t, "added"))
		}
	}
}

func encodingOf(name string) charset.Encoding {
	e, _ := charset.Named(name)
	return e
}

// Without the name of an encoding, no tool writes a guess. With a name, no byte is lost.
func TestAnEncodingIsNotGuessed(t *testing.T) {
	tree(t, map[string]string{"sjis": "\x82\xb1\x82\xea\x82\xcd\x83\x65\x83\x58\x83\x67\x81\x42\n|\n", "damaged": "\xc4\xe3\xba\xc3\xff\xff\n", "cut": "\xc4\xe3\xba\xc3\xc4"})
	for _, tt := range []struct {
		err  error
		says string
	}{
		{errOf(fileEdit(t.Context(), editArgs{Path: "sjis", OldString: "|", NewString: "x"})), "or shift_jis"},
		{errOf(insertLines(t.Context(), insertArgs{Path: "sjis", LineStart: 1, NewContent: "x"})), "say which with encoding"},
		{errOf(fileEdit(t.Context(), editArgs{Path: "damaged", OldString: "\n", NewString: "x", Encoding: encodingOf("gbk")})), "looks like gbk and holds bytes that do not fit it"},
		{errOf(fileEdit(t.Context(), editArgs{Path: "cut", OldString: "a", NewString: "x", Encoding: encodingOf("gbk")})), "holds bytes that do not fit it"},
		{errOf(fileEdit(t.Context(), editArgs{Path: "sjis", OldString: "|", NewString: "한", Encoding: encodingOf("sjis")})), "sjis is shift_jis, which has no '한' (U+D55C) as line 2 would need"},
	} {
		if tt.err == nil || !strings.Contains(tt.err.Error(), tt.says) {
			t.Errorf("%v, want %q", tt.err, tt.says)
		}
	}
	if out := works(t, grep, grepArgs{Pattern: "テスト", Path: "sjis"}); !strings.Contains(out.Hint, "or shift_jis") {
		t.Errorf("grep says %+v", out)
	}
	if out := works(t, fileRead, readArgs{Path: "damaged", Encoding: encodingOf("gbk"), Limit: 5}); !strings.Contains(out.Output, "the file is damaged: it looks like gbk") {
		t.Errorf("read %+v", out)
	}
	works(t, fileEdit, editArgs{Path: "sjis", OldString: "|", NewString: "x", Encoding: encodingOf("windows-1252")}) // as the caller says
}
