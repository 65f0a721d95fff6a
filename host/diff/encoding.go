package diff

import (
	"bytes"
	"cmp"
	"strings"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/sdk/go/charset"
)

const windows = "Windows-1252"

// inWords are the encodings of files that are shown; plain UTF-8 is not named.
var inWords = map[charset.Form]string{
	charset.UTF16LE: "UTF-16, little-endian", charset.UTF16BE: "UTF-16, big-endian", charset.Windows1252: windows,
}

// decoded is a file as UTF-8, without its byte order mark, and what its encoding is; that
// is empty for plain UTF-8. It is false for what is no text, or could not be turned round.
func decoded(data []byte) (text, encoding string, ok bool) {
	e := charset.Of(data).Guess(data)
	raw, ok := e.Decode(data)
	wide := e.Form == charset.UTF16LE || e.Form == charset.UTF16BE
	if !ok || !utf8.Valid(raw) || wide && hasLines(data[len(e.Mark):]) || !wide && bytes.IndexByte(data, 0) >= 0 {
		return "", "", false
	}
	encoding = inWords[e.Form]
	if e.Mark != "" {
		encoding = cmp.Or(encoding, "UTF-8") + " with a byte order mark"
	}
	return string(raw), encoding, true
}

// How many bytes are taken for ASCII where they should be UTF-16: a whole line, and some in a
// row of those that most programs are written with. In texts of Asia both are rare.
const (
	leastLine = 4
	leastRun  = 8
)

// hasLines reports whether bytes that a mark calls UTF-16 hold ASCII, or no byte 0, which
// each end of a line has: then they are what a program that knows no UTF-16 runs.
func hasLines(data []byte) bool {
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
