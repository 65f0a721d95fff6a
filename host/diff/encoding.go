package diff

import (
	"bytes"
	"cmp"
	"strings"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/sdk/go/charset"
)

const windows1252 = "Windows-1252"

// encodingNames holds names of encodings for people, in place of those of package charset.
var encodingNames = map[charset.Form]string{
	charset.UTF16LE: "UTF-16, little-endian", charset.UTF16BE: "UTF-16, big-endian", charset.Windows1252: windows1252,
}

// decodeText returns the content of a file as UTF-8 without its byte order mark, and the name
// of its encoding; empty for plain UTF-8. told is the encoding to assume if the bytes do not
// determine one. ok is false if the file is not text, or cannot be decoded.
func decodeText(data []byte, told string) (text, encoding string, ok bool) {
	named, _ := charset.Named(told)
	e := charset.Of(data).Told(named, data)
	raw, ok := e.Decode(data)
	if !ok && named.Form != "" {
		return decodeText(data, "")
	}
	wide := e.Form == charset.UTF16LE || e.Form == charset.UTF16BE
	if !ok || !utf8.Valid(raw) || wide && holdsASCII(data[len(e.Mark):]) || !wide && bytes.IndexByte(data, 0) >= 0 {
		return "", "", false
	}
	encoding = cmp.Or(encodingNames[e.Form], charset.Encoding{Form: e.Form}.String())
	if e.Mark != "" {
		encoding = cmp.Or(encoding, "UTF-8") + " with a byte order mark"
	}
	return string(raw), encoding, true
}

// hiddenShellChars returns those of ` | \ that a shell would see in the bytes of a file, but
// that are not in its text: some encodings use them for parts of other characters. Data with a
// zero byte hides none.
func hiddenShellChars(data []byte, text string) (out string) {
	for _, c := range []string{"`", "|", `\`} {
		if bytes.IndexByte(data, 0) < 0 && bytes.Count(data, []byte(c)) > strings.Count(text, c) {
			out += c
		}
	}
	return out
}

// Bytes that are declared as UTF-16 count as ASCII if a line of at least leastLine bytes is
// ASCII, or leastRun bytes in a row are characters common in programs. Asian texts rarely
// match.
const (
	leastLine = 4
	leastRun  = 8
)

// holdsASCII reports whether bytes with a UTF-16 mark contain ASCII, or no zero byte, which
// every line end has in UTF-16. A program that does not know UTF-16 could run such bytes.
func holdsASCII(data []byte) bool {
	other := func(r rune) bool { return r != '\t' && (r < ' ' || r > '~') }
	for line := range bytes.Lines(data) {
		line = bytes.TrimRight(line, "\r\n")
		if len(line) >= leastLine && bytes.IndexFunc(line, other) < 0 {
			return true
		}
	}
	run := 0
	for _, b := range data {
		if run++; (b < 'a' || b > 'z') && strings.IndexByte(" \t\"#$'()./0123456789;=_|-", b) < 0 {
			run = 0
		}
		if run == leastRun {
			return true
		}
	}
	return len(data) > 0 && bytes.IndexByte(data, 0) < 0
}
