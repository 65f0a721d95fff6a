// Package charset detects the encoding of text files, and converts text to UTF-8 and back:
// a file is shown and edited as UTF-8, and written in its own encoding.
//
// An encoding is detected by the byte order mark, by the pattern of NUL bytes in Western text,
// and by bytes that are not UTF-8. A caller can name an encoding that cannot be detected: see
// [Named]. The tools that edit files and the host that shows their changes use this package.
package charset

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/transform"

	"github.com/stockade-dev/stockade/sdk/go/lines"
)

// Form is the form in which characters are written as bytes.
type Form string

// The forms. Latin-1 is read as Windows-1252, which has the same letters and gives every
// byte a meaning. UTF-32 is detected, but not converted.
const (
	UTF8        Form = "utf-8"
	UTF16LE     Form = "utf-16le"
	UTF16BE     Form = "utf-16be"
	Windows1252 Form = "windows-1252"
	UTF32       Form = "utf-32"
	Binary      Form = "binary"
)

// Encoding is the form of a file, and its byte order mark. Mark is empty if the file has none.
// The zero value is no encoding.
type Encoding struct {
	Form Form
	Mark string
}

// String returns the name of the encoding; empty for UTF-8 without a mark, which needs no
// mention.
func (e Encoding) String() string {
	switch {
	case e.Mark != "":
		return string(e.Form) + " with a byte order mark"
	case e.Form == UTF8:
		return ""
	}
	return string(e.Form)
}

// isWide reports whether the form is UTF-16, with more than one byte for a line feed.
func (e Encoding) isWide() bool { return e.Form == UTF16LE || e.Form == UTF16BE }

// Of detects the encoding by the first bytes of a file. It does not detect Windows-1252: see
// [Encoding.Guess].
func Of(head []byte) Encoding {
	for _, e := range []Encoding{
		{UTF32, "\xff\xfe\x00\x00"}, {UTF32, "\x00\x00\xfe\xff"},
		{UTF8, "\uFEFF"}, {UTF16LE, "\xff\xfe"}, {UTF16BE, "\xfe\xff"},
	} {
		if bytes.HasPrefix(head, []byte(e.Mark)) {
			return e
		}
	}
	if !lines.IsBinary(head) {
		return Encoding{Form: UTF8}
	}
	head = head[:min(len(head), lines.BinaryProbe)]
	for _, f := range []struct {
		form  Form
		bytes int
		rune  func([]byte) rune
	}{
		{UTF16LE, 2, func(b []byte) rune { return rune(binary.LittleEndian.Uint16(b)) }},
		{UTF16BE, 2, func(b []byte) rune { return rune(binary.BigEndian.Uint16(b)) }},
		{UTF32, 4, func(b []byte) rune { return rune(binary.LittleEndian.Uint32(b)) }},
		{UTF32, 4, func(b []byte) rune { return rune(binary.BigEndian.Uint32(b)) }},
	} {
		if looksWide(head, f.bytes, f.rune) {
			return Encoding{Form: f.form}
		}
	}
	return Encoding{Form: Binary}
}

// looksWide reports whether the units of size bytes, at least four units, are text, at least
// half of it ASCII. Few other files have so many NUL bytes in the right places and no control
// characters.
func looksWide(head []byte, size int, runeOf func([]byte) rune) bool {
	const few = 4
	if len(head)%size != 0 || len(head) < few*size {
		return false
	}
	ascii, all := 0, 0
	for ; len(head) >= size; head = head[size:] {
		r := runeOf(head)
		switch {
		case r < 0 || r > unicode.MaxRune || r == 0xFFFE || r == 0xFFFF || unicode.IsControl(r) && r != '\t' && r != '\n' && r != '\r' && r != '\f':
			return false
		case r < utf8.RuneSelf:
			ascii++
		}
		all++
	}
	return ascii*2 >= all
}

// Guess replaces UTF-8 by Windows-1252 if a part of the file has more bytes that are not UTF-8
// than characters beyond ASCII that are. With fewer, the file is damaged UTF-8. Any other
// encoding stays.
func (e Encoding) Guess(part []byte) Encoding {
	if e != (Encoding{Form: UTF8}) || utf8.Valid(part) {
		return e
	}
	good, bad := 0, 0
	for len(part) > 0 {
		r, n := utf8.DecodeRune(part)
		switch {
		case r == utf8.RuneError && n == 1 && !utf8.FullRune(part): // cut off by the end of the part
		case r == utf8.RuneError && n == 1:
			bad++
		case n > 1:
			good++
		}
		part = part[n:]
	}
	if bad > good {
		e.Form = Windows1252
	}
	return e
}

// Told returns the encoding that a caller has named. If named is zero, or the file itself
// shows its encoding, it returns the result of [Encoding.Guess]. part is a part of the file.
func (e Encoding) Told(named Encoding, part []byte) Encoding {
	_, whole, err := encoding.UTF8Validator.Transform(make([]byte, len(part)), part, false)
	isUTF8 := err != encoding.ErrInvalidUTF8 // the last character may be cut off
	isASCII := bytes.IndexFunc(part[:whole], func(r rune) bool { return r >= utf8.RuneSelf }) < 0
	switch {
	case named.Form == "" || e.Mark != "":
	case e.Form == Binary && named.isWide(), e.Form == UTF8 && (!isUTF8 || isASCII && !named.isWide()):
		return Encoding{Form: named.Form}
	}
	return e.Guess(part)
}

// Decode converts a whole file to UTF-8, without its mark. The result is false if Encode would
// not return the same bytes.
func (e Encoding) Decode(raw []byte) ([]byte, bool) {
	raw = raw[len(e.Mark):]
	if e.Form == Windows1252 {
		return AppendWindows1252(make([]byte, 0, len(raw)+len(raw)/8), raw), true
	}
	c := codec(e.Form)
	if c == nil {
		return raw, true
	}
	text, err := c.NewDecoder().Bytes(raw)
	if err != nil {
		return nil, false
	}
	back, err := c.NewEncoder().Bytes(text)
	return text, err == nil && bytes.Equal(raw, back)
}

// Encode converts text to the encoding of the file, with its mark. If the encoding lacks a
// character, lacks is the first such character and at its position in text; otherwise at is
// -1.
func (e Encoding) Encode(text []byte) (raw []byte, lacks rune, at int) {
	if e == (Encoding{Form: UTF8}) || e == (Encoding{}) {
		return text, 0, -1
	}
	raw = append(make([]byte, 0, len(e.Mark)+len(text)+len(text)/8), e.Mark...)
	switch c := codec(e.Form); {
	case e.Form == Windows1252:
		for i, r := range string(text) {
			b, ok := windowsByte(r)
			if !ok {
				return nil, r, i
			}
			raw = append(raw, b)
		}
	case c == nil:
		raw = append(raw, text...)
	default:
		var err error
		if raw, at, err = transform.Append(c.NewEncoder(), raw, text); err != nil {
			lacks, _ = utf8.DecodeRune(text[at:])
			return nil, lacks, at
		}
	}
	return raw, 0, -1
}

// Reader returns the rest of a file, after its mark, as UTF-8. Windows-1252 is not converted.
// damaged reports whether the text so far had bytes for which [Encoding.Decode] fails.
func (e Encoding) Reader(r *bufio.Reader) (text *bufio.Reader, damaged func() bool) {
	c := codec(e.Form)
	if c == nil {
		return r, func() bool { return false }
	}
	d := &decoder{r: c.NewDecoder().Reader(r)}
	return bufio.NewReaderSize(d, r.Size()), func() bool { return d.lossy }
}

type decoder struct {
	r     io.Reader
	lossy bool // set if it has read bytes that are no text in its encoding
}

func (d *decoder) Read(p []byte) (int, error) {
	n, err := d.r.Read(p)
	d.lossy = d.lossy || bytes.ContainsRune(p[:n], utf8.RuneError)
	return n, err
}

// AppendWindows1252 appends Windows-1252 text as UTF-8. A byte without a character stands for
// the character of Latin-1.
func AppendWindows1252(out, raw []byte) []byte {
	for _, b := range raw {
		r := charmap.Windows1252.DecodeByte(b)
		if r == utf8.RuneError {
			r = rune(b)
		}
		out = utf8.AppendRune(out, r)
	}
	return out
}

func windowsByte(r rune) (byte, bool) {
	if b, ok := charmap.Windows1252.EncodeRune(r); ok {
		return b, true
	}
	return byte(r), r >= 0x80 && r < 0xA0 && charmap.Windows1252.DecodeByte(byte(r)) == utf8.RuneError
}
