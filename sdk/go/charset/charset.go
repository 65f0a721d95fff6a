// Package charset tells how the text of a file is encoded, and turns it into UTF-8 and
// back: a file is shown and edited as UTF-8, and is written in the encoding that it has.
//
// An encoding is told by the byte order mark, by the pattern of NUL bytes in text of
// Western languages, and by bytes that are no UTF-8. What these do not tell, a caller can
// name: see [Named]. The tools that edit files and the
// host that shows what they change do that with this package.
package charset

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"slices"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/sdk/go/lines"
)

// Form is how characters are written as bytes.
type Form string

// The forms. Latin-1 is read as Windows-1252, which has the same letters and gives
// every byte a meaning. UTF-32 is told from binary files and goes no further.
const (
	UTF8        Form = "utf-8"
	UTF16LE     Form = "utf-16le"
	UTF16BE     Form = "utf-16be"
	Windows1252 Form = "windows-1252"
	UTF32       Form = "utf-32"
	Binary      Form = "binary"
)

// Encoding is the form of a file, and its byte order mark if it begins with one.
type Encoding struct {
	Form Form
	Mark string
}

// String is empty for plain UTF-8, about which there is nothing to say.
func (e Encoding) String() string {
	switch {
	case e.Mark != "":
		return string(e.Form) + " with a byte order mark"
	case e.Form == UTF8:
		return ""
	}
	return string(e.Form)
}

// isWide reports whether a line feed is more than one byte.
func (e Encoding) isWide() bool { return e.Form == UTF16LE || e.Form == UTF16BE }

// Of tells the encoding by the first bytes of a file, but for Windows-1252:
// see [Encoding.Guess].
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

// looksWide reports whether the units, a few at least, read as text of which half is
// ASCII: few other files have so many NUL bytes in the right places and no control
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

// Guess makes Windows-1252 of what was taken for UTF-8 if most of what is not ASCII in
// a part of the file is no UTF-8. Else some bytes of it are damaged.
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

// Told is the encoding that a caller has named, if the file begins with no mark and a part
// of it is no UTF-8, or nothing but ASCII. Without a name it is that of [Encoding.Guess].
func (e Encoding) Told(told Encoding, part []byte) Encoding {
	ascii := bytes.IndexFunc(part, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 && !told.isWide()
	valid := e == Encoding{Form: UTF8} && !ascii && utf8.Valid(part[:max(0, len(part)-utf8.UTFMax)])
	if told.Form == "" || e.Form != Binary && e != (Encoding{Form: UTF8}) || valid || e.Form == Binary && !told.isWide() {
		return e.Guess(part)
	}
	return Encoding{Form: told.Form}
}

// Decode makes UTF-8 of a whole file, and leaves out its mark. It fails where that could
// not be turned round.
func (e Encoding) Decode(raw []byte) ([]byte, bool) {
	raw = raw[len(e.Mark):]
	switch e.Form {
	case Windows1252:
		return AppendWindows1252(make([]byte, 0, len(raw)+len(raw)/8), raw), true
	case UTF16LE, UTF16BE:
		var out bytes.Buffer
		out.Grow(len(raw)/2 + bytes.MinRead)
		d := wideReader{r: bytes.NewReader(raw), big: e.Form == UTF16BE}
		if _, err := out.ReadFrom(&d); err != nil {
			return nil, false
		}
		return out.Bytes(), !d.lossy
	}
	if l := legacy()[e.Form]; l != nil {
		text, err := l.NewDecoder().Bytes(raw)
		if err == nil {
			var back []byte
			back, err = l.NewEncoder().Bytes(text)
			return text, err == nil && bytes.Equal(raw, back)
		}
		return nil, false
	}
	return raw, true
}

// Encode writes text as the file has it, with its mark. It returns the first character
// that the encoding lacks, and where that is, or -1.
func (e Encoding) Encode(text []byte) (raw []byte, lacks rune, at int) {
	if e == (Encoding{Form: UTF8}) {
		return text, 0, -1
	}
	if l := legacy()[e.Form]; l != nil {
		if raw, err := l.NewEncoder().Bytes(text); err == nil {
			return raw, 0, -1
		}
		for i, r := range string(text) {
			if _, err := l.NewEncoder().String(string(r)); err != nil {
				return nil, r, i
			}
		}
	}
	raw = make([]byte, 0, len(e.Mark)+len(text)+len(text)/8)
	raw = append(raw, e.Mark...)
	if e.Form == UTF8 {
		return append(raw, text...), 0, -1
	}
	for i := 0; i < len(text); {
		r, n := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRune(text[i:])
		}
		switch b, ok := windowsByte(r); {
		case e.Form == Windows1252 && !ok:
			return nil, r, i
		case e.Form == Windows1252:
			raw = append(raw, b)
		case r > 0xFFFF:
			first, second := utf16.EncodeRune(r)
			raw = e.appendUnit(e.appendUnit(raw, first), second)
		default:
			raw = e.appendUnit(raw, r)
		}
		i += n
	}
	return raw, 0, -1
}

func (e Encoding) appendUnit(raw []byte, r rune) []byte {
	if e.Form == UTF16BE {
		return append(raw, byte(r>>8), byte(r))
	}
	return append(raw, byte(r), byte(r>>8))
}

// Reader reads the rest of a file, behind its mark, as UTF-8; but Windows-1252 as it is.
// damaged reports whether, so far, there was something that [Encoding.Decode] fails for.
func (e Encoding) Reader(r *bufio.Reader) (text *bufio.Reader, damaged func() bool) {
	if l := legacy()[e.Form]; l != nil {
		d := &legacyReader{r: l.NewDecoder().Reader(r)}
		return bufio.NewReaderSize(d, r.Size()), func() bool { return d.lossy }
	}
	if !e.isWide() {
		return r, func() bool { return false }
	}
	wide := &wideReader{r: r, big: e.Form == UTF16BE}
	return bufio.NewReaderSize(wide, r.Size()), func() bool { return wide.lossy }
}

// wideReader reads UTF-16 as UTF-8.
type wideReader struct {
	r     io.Reader
	big   bool
	in    [4096]byte
	n     int    // of in, that are not decoded
	out   []byte // decoded, and not read yet
	spare []byte // what out was made of
	done  bool   // the end of r was reached
	lossy bool   // there was something that is no UTF-16
}

func (d *wideReader) Read(p []byte) (int, error) {
	for len(d.out) == 0 {
		if d.done {
			return 0, io.EOF
		}
		n, err := d.r.Read(d.in[d.n:])
		d.n += n
		if err == io.EOF {
			d.done = true
		} else if err != nil {
			return 0, err
		}
		d.decode()
	}
	n := copy(p, d.out)
	d.out = d.out[n:]
	return n, nil
}

// decode takes what was read, but for the beginning of a character.
func (d *wideReader) decode() {
	d.out = d.spare[:0]
	low, high := 0, 1
	if d.big {
		low, high = 1, 0
	}
	unit := func(at int) rune { return rune(d.in[at+low]) | rune(d.in[at+high])<<8 }
	at := 0
	for at+2 <= d.n {
		size := 2
		r := unit(at)
		if r < utf8.RuneSelf { // most of them
			d.out = append(d.out, byte(r))
			at += size
			continue
		}
		if utf16.IsSurrogate(r) {
			second := unicode.ReplacementChar
			if at+4 <= d.n {
				second = unit(at + 2)
			} else if !d.done {
				break
			}
			if r = utf16.DecodeRune(r, second); r != unicode.ReplacementChar {
				size = 4
			} else {
				d.lossy = true
			}
		}
		d.out = utf8.AppendRune(d.out, r)
		at += size
	}
	if d.done && at < d.n { // half of a unit
		d.out, d.lossy, at = utf8.AppendRune(d.out, unicode.ReplacementChar), true, d.n
	}
	d.n = copy(d.in[:], d.in[at:d.n])
	d.spare = d.out
}

// windows are the characters of the bytes 0x80 to 0x9F of Windows-1252. Where it has
// none, the byte is that of Latin-1.
var windows = [32]rune{
	0x20AC, 0x81, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0x8D, 0x017D, 0x8F,
	0x90, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x9D, 0x017E, 0x0178,
}

// AppendWindows1252 decodes text of that form.
func AppendWindows1252(out, raw []byte) []byte {
	for _, b := range raw {
		switch {
		case b < utf8.RuneSelf:
			out = append(out, b)
		case b < 0xA0:
			out = utf8.AppendRune(out, windows[b-0x80])
		default:
			out = utf8.AppendRune(out, rune(b))
		}
	}
	return out
}

func windowsByte(r rune) (byte, bool) {
	if r < 0x80 || r >= 0xA0 && r <= 0xFF {
		return byte(r), true
	}
	i := slices.Index(windows[:], r)
	return byte(0x80 + i), i >= 0
}
