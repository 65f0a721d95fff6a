package diff

import (
	"bytes"
	"encoding/binary"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// decoded is a file as UTF-8, without its byte order mark, and what its encoding is; that
// is empty for plain UTF-8. It is false for what is no text, or could not be turned round.
// The tools that edit files tell encodings by the same signs.
func decoded(data []byte) (text, encoding string, ok bool) {
	const marked = " with a byte order mark"
	switch rest, isUTF8 := bytes.CutPrefix(data, []byte("\uFEFF")); {
	case bytes.HasPrefix(data, []byte("\xff\xfe\x00\x00")): // UTF-32
		return "", "", false
	case bytes.HasPrefix(data, []byte("\xff\xfe")):
		text, _, ok = wide(data[2:], binary.LittleEndian)
		return text, "UTF-16, little-endian" + marked, ok
	case bytes.HasPrefix(data, []byte("\xfe\xff")):
		text, _, ok = wide(data[2:], binary.BigEndian)
		return text, "UTF-16, big-endian" + marked, ok
	case bytes.IndexByte(data, 0) >= 0:
		if text, plain, ok := wide(data, binary.LittleEndian); ok && plain {
			return text, "UTF-16, little-endian", true
		}
		text, plain, ok := wide(data, binary.BigEndian)
		return text, "UTF-16, big-endian", ok && plain
	case !utf8.Valid(data):
		return readWindows(data)
	case isUTF8:
		return string(rest), "UTF-8" + marked, true
	}
	return string(data), "", true
}

// wide reads UTF-16, and reports whether it is text of Western languages, which few other
// files look like.
func wide(data []byte, order binary.ByteOrder) (text string, plain, ok bool) {
	if len(data)%2 != 0 {
		return "", false, false
	}
	units := make([]uint16, 0, len(data)/2)
	ascii, controls := 0, 0
	for ; len(data) > 0; data = data[2:] {
		u := order.Uint16(data)
		switch {
		case unicode.IsControl(rune(u)) && !strings.ContainsRune("\t\n\r\f", rune(u)) || u >= 0xFFFE:
			controls++
		case u < utf8.RuneSelf:
			ascii++
		}
		units = append(units, u)
	}
	runes := utf16.Decode(units)
	const few = 4
	plain = len(units) >= few && controls == 0 && ascii*2 >= len(units)
	return string(runes), plain, len(utf16.Encode(runes)) == len(units) && !bytes.ContainsRune([]byte(string(runes)), unicode.ReplacementChar)
}

// readWindows reads bytes of which most beyond ASCII are no UTF-8.
func readWindows(data []byte) (text, encoding string, ok bool) {
	good, bad := 0, 0
	var b strings.Builder
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			bad++
		case n > 1:
			good++
		}
		i += n
	}
	for _, c := range data {
		if c >= 0x80 && c < 0xA0 {
			b.WriteRune(beyondLatin1[c-0x80])
		} else {
			b.WriteRune(rune(c))
		}
	}
	return b.String(), windows, bad > good
}

const windows = "Windows-1252"

// beyondLatin1 are its characters of the bytes 0x80 to 0x9F; where it has none, those of Latin-1.
var beyondLatin1 = []rune("€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ")
