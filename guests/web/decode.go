package main

import (
	"bytes"
	"html"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxBody limits the bytes of a body, and those of its text as UTF-8; the rest is cut.
const maxBody = 8 << 20

// decode converts a body to UTF-8. declared is the encoding in the answer's headers; if it is
// empty, or the body begins with a byte order mark, the body decides. encoding is the name of
// the body's encoding; "" for UTF-8, in which bytes that are not valid are kept. If the
// encoding is not known, known is false and the body is returned as it is: the markup, and
// text in ASCII, are the same in most encodings. cut reports whether text was left out.
func decode(body []byte, declared string, isHTML bool) (text []byte, encoding string, known, cut bool) {
	label := strings.ToLower(strings.Trim(declared, " \t\"'"))
	switch {
	case bytes.HasPrefix(body, []byte("\xef\xbb\xbf")):
		return body[3:], "", true, false
	case bytes.HasPrefix(body, []byte("\xfe\xff")):
		label, body = "utf-16be", body[2:]
	case bytes.HasPrefix(body, []byte("\xff\xfe")):
		label, body = "utf-16le", body[2:]
	case label == "" && isHTML:
		if label = metaCharset(body[:min(len(body), 1024)]); strings.HasPrefix(label, "utf-16") {
			label = "utf-8" // in UTF-16, the tag could not have been read as ASCII
		}
	}
	switch label {
	case "", "utf-8", "utf8", "us-ascii", "ascii":
		if label == "" && !utf8.Valid(body[:wholeRunes(body)]) {
			text, cut = fromTable(body, &windows1252)
			return text, "windows-1252", true, cut
		}
		return body, "", true, false
	case "iso-8859-1", "latin1", "iso8859-1", "l1", "windows-1252", "cp1252", "x-cp1252": // browsers take all of these for windows-1252
		text, cut = fromTable(body, &windows1252)
		return text, "windows-1252", true, cut
	case "iso-8859-15", "latin9", "latin-9":
		text, cut = fromTable(body, &latin9)
		return text, label, true, cut
	case "utf-16", "utf-16le":
		text, cut = fromUTF16(body, false)
		return text, "utf-16le", true, cut
	case "utf-16be":
		text, cut = fromUTF16(body, true)
		return text, label, true, cut
	}
	return body, clean(strings.ToValidUTF8(label[:min(len(label), 40)], "")), false, false
}

// wholeRunes returns the length of body up to an incomplete character at its end.
func wholeRunes(body []byte) int {
	for n := 1; n <= min(utf8.UTFMax, len(body)); n++ {
		if c := body[len(body)-n]; utf8.RuneStart(c) {
			if !utf8.FullRune(body[len(body)-n:]) {
				return len(body) - n
			}
			break
		}
	}
	return len(body)
}

// metaCharset returns the encoding that a meta element in the first bytes of a page declares,
// in lower case; empty: there is none.
func metaCharset(head []byte) string {
	s := scanner{src: head}
	for {
		t := s.next()
		switch {
		case t.kind == endToken:
			return ""
		case t.kind != openToken || t.name != elemMeta:
			continue
		}
		if charset, ok := t.attribute("charset"); ok {
			return strings.ToLower(strings.TrimSpace(string(charset)))
		}
		if content, ok := t.attribute("content"); ok {
			if _, charset, ok := strings.Cut(strings.ToLower(html.UnescapeString(string(content))), "charset="); ok {
				charset, _, _ = strings.Cut(strings.Trim(charset, " \"'"), ";")
				return strings.Trim(charset, " \"'")
			}
		}
	}
}

func fromTable(body []byte, upper *[128]rune) (text []byte, cut bool) {
	more := 0
	for _, c := range body {
		if c >= 0x80 {
			more++
		}
	}
	text = make([]byte, 0, min(len(body)+2*more, maxBody))
	for _, c := range body {
		if len(text)+utf8.UTFMax > maxBody {
			return text, true
		}
		if c < 0x80 {
			text = append(text, c)
		} else {
			text = utf8.AppendRune(text, upper[c-0x80])
		}
	}
	return text, false
}

func fromUTF16(body []byte, big bool) (text []byte, cut bool) {
	unit := func(i int) rune {
		if big {
			return rune(body[i])<<8 | rune(body[i+1])
		}
		return rune(body[i+1])<<8 | rune(body[i])
	}
	text = make([]byte, 0, min(len(body)+len(body)/2, maxBody))
	for i := 0; i+1 < len(body); i += 2 {
		if len(text)+utf8.UTFMax > maxBody {
			return text, true
		}
		r := unit(i)
		if utf16.IsSurrogate(r) && i+3 < len(body) {
			if pair := utf16.DecodeRune(r, unit(i+2)); pair != utf8.RuneError {
				r = pair
				i += 2
			}
		}
		text = utf8.AppendRune(text, r) // a lone surrogate becomes U+FFFD
	}
	return text, false
}

// The upper halves of single-byte encodings.
var (
	windows1252 = upperHalf(0x80, "€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ")
	latin9      = latin9Table()
)

// upperHalf returns the characters of the bytes from 0x80 on: those of Latin-1, but from the
// byte at on the characters of other, one for each byte, as far as they go.
func upperHalf(at int, other string) (table [128]rune) {
	for i := range table {
		table[i] = rune(0x80 + i)
	}
	for _, r := range other {
		table[at-0x80] = r
		at++
	}
	return table
}

func latin9Table() [128]rune {
	table := upperHalf(0x80, "")
	for at, r := range map[int]rune{0xa4: '€', 0xa6: 'Š', 0xa8: 'š', 0xb4: 'Ž', 0xb8: 'ž', 0xbc: 'Œ', 0xbd: 'œ', 0xbe: 'Ÿ'} {
		table[at-0x80] = r
	}
	return table
}
