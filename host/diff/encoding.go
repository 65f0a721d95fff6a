package diff

import (
	"bytes"
	"cmp"
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
	if !ok || !wide && bytes.IndexByte(data, 0) >= 0 || !utf8.Valid(raw) {
		return "", "", false
	}
	encoding = inWords[e.Form]
	if e.Mark != "" {
		encoding = cmp.Or(encoding, "UTF-8") + " with a byte order mark"
	}
	return string(raw), encoding, true
}
