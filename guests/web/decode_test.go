package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestEncodings(t *testing.T) {
	const meta = `<meta http-equiv=content-type content="text/html; charset=ISO-8859-1">`
	for name, c := range map[string]struct {
		body, declared string
		html           bool
		want, encoding string
		unknown        bool
	}{
		"UTF-8":                               {"grün", "utf-8", false, "grün", "", false},
		"nobody says, and it is UTF-8":        {"grün", "", false, "grün", "", false},
		"nobody says, and it is not":          {"gr\xfcn \x80", "", false, "grün €", "windows-1252", false},
		"Latin-1 is Windows-1252":             {"gr\xfcn \x80", "ISO-8859-1", false, "grün €", "windows-1252", false},
		"Latin-9":                             {"\xa4 \xbc\xfc", "iso-8859-15", false, "€ Œü", "iso-8859-15", false},
		"in quotes":                           {"gr\xfcn", ` "latin1"`, false, "grün", "windows-1252", false},
		"a mark of UTF-8 wins":                {"\xef\xbb\xbfgrün", "latin1", false, "grün", "", false},
		"a mark of UTF-16":                    {"\xff\xfeg\x00\xfc\x00=\xd8\x42\xde", "", false, "gü🙂", "utf-16le", false},
		"a mark of UTF-16, the other way":     {"\xfe\xff\x00g\x00\xfc", "utf-8", false, "gü", "utf-16be", false},
		"UTF-16 that the header names":        {"g\x00\xfc\x00", "UTF-16LE", false, "gü", "utf-16le", false},
		"half a character of UTF-16":          {"g\x00\xfc", "utf-16", false, "g", "utf-16le", false},
		"half a pair":                         {"\xff\xfe=\xd8g\x00", "", false, "\uFFFDg", "utf-16le", false},
		"what the page says":                  {"<meta charset='windows-1252'>\xfc", "", true, "<meta charset='windows-1252'>ü", "windows-1252", false},
		"what the page says, as it used to":   {meta + "\xfc", "", true, meta + "ü", "windows-1252", false},
		"the header wins over the page":       {meta + "ü", "utf-8", true, meta + "ü", "", false},
		"a page cannot say UTF-16":            {"<meta charset=utf-16>ü", "", true, "<meta charset=utf-16>ü", "", false},
		"plain text says nothing":             {meta + "ü", "", false, meta + "ü", "", false},
		"what is not read here":               {"a\x82\xa0", "Shift_JIS", false, "a\x82\xa0", "shift_jis", true},
		"a name that is meant for others":     {"a", "x\x1b[31m" + strings.Repeat("y", 99), false, "a", "x[31m" + strings.Repeat("y", 34), true},
		"a character that the end cuts":       {"gr\xc3", "", false, "gr\xc3", "", false},
		"a word that is far from the head":    {strings.Repeat(" ", 1024) + "<meta charset=latin1>ü", "", true, strings.Repeat(" ", 1024) + "<meta charset=latin1>ü", "", false},
		"a byte that Windows-1252 leaves":     {"\x81", "cp1252", false, "\u0081", "windows-1252", false},
		"a tag that is no meta in the head":   {"<link charset=latin1>ü", "", true, "<link charset=latin1>ü", "", false},
		"an encoding behind something else":   {"<meta name=x content=y><meta charset=latin1>\xfc", "", true, "<meta name=x content=y><meta charset=latin1>ü", "windows-1252", false},
		"nothing":                             {"", "", true, "", "", false},
		"the parameter with others behind it": {"\xfc", "latin1 ", false, "ü", "windows-1252", false},
	} {
		text, encoding, known, cut := decode([]byte(c.body), c.declared, c.html)
		if string(text) != c.want || encoding != c.encoding || known == c.unknown || cut {
			t.Errorf("%s: %q, %q, known %v, cut %v", name, text, encoding, known, cut)
		}
	}
	if text, _, _, cut := decode(bytes.Repeat([]byte{0x80}, maxBody), "latin1", false); !cut || len(text) > maxBody || len(text) < maxBody-4 {
		t.Errorf("%d bytes, cut %v", len(text), cut)
	}
}
