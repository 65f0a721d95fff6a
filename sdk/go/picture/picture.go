// Package picture identifies an image by its structure, never by a name: its format, its
// size, and whether it is complete. It reads headers and decodes no pixels, so it
// needs little time and no further memory.
//
// A guest uses it on files that it has read, and the host to check the images of a guest.
package picture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// Limits of an image on the servers of models, in bytes and in pixels. Anthropic's refuses an image of more than 5 MiB of
// base64, which are 3.75 MiB, and one of more than 8000 pixels a side:
// https://docs.claude.com/en/docs/build-with-claude/vision. OpenAI's and Google's accept
// more.
const (
	MaxBytes = 5 << 20 / 4 * 3
	MaxSide  = 8000
)

// Info describes an image.
type Info struct {
	Mime          string // image/png, image/jpeg, image/gif or image/webp
	Width, Height int    // pixels
}

// String returns a short description, such as "image/png, 640x480".
func (i Info) String() string { return fmt.Sprintf("%s, %dx%d", i.Mime, i.Width, i.Height) }

// The errors for bytes that are no usable image.
var (
	ErrUnknown = errors.New("is not a PNG, JPEG, GIF or WebP image")
	ErrBroken  = errors.New("is cut short or damaged")
	ErrLarge   = errors.New("is too large")
)

var formats = []struct {
	mime  string
	is    func(head []byte) bool
	sizes func(data []byte) (width, height int, ok bool)
}{
	{"image/png", begins("\x89PNG\r\n\x1a\n"), sizesOfPNG},
	{"image/jpeg", begins("\xff\xd8\xff"), sizesOfJPEG},
	{"image/gif", func(head []byte) bool { return begins("GIF87a")(head) || begins("GIF89a")(head) }, sizesOfGIF},
	{"image/webp", func(head []byte) bool {
		return len(head) >= 12 && begins("RIFF")(head) && string(head[8:12]) == "WEBP"
	}, sizesOfWebP},
}

func begins(magic string) func([]byte) bool {
	return func(head []byte) bool { return bytes.HasPrefix(head, []byte(magic)) }
}

// Mime returns the format of an image, by its first [HeadBytes] bytes; empty: none of the
// four.
func Mime(head []byte) string {
	for _, f := range formats {
		if f.is(head) {
			return f.mime
		}
	}
	return ""
}

// HeadBytes is the number of bytes that [Mime] reads.
const HeadBytes = 12

// Look identifies an image. The error wraps ErrUnknown, ErrBroken or ErrLarge; with ErrLarge
// the Info holds the facts that are known.
func Look(data []byte) (Info, error) {
	for _, f := range formats {
		if !f.is(data) {
			continue
		}
		info := Info{Mime: f.mime}
		if len(data) > MaxBytes {
			return info, TooLarge(int64(len(data)))
		}
		var ok bool
		if info.Width, info.Height, ok = f.sizes(data); !ok || info.Width <= 0 || info.Height <= 0 {
			return Info{Mime: f.mime}, fmt.Errorf("begins as %s and %w", f.mime, ErrBroken)
		}
		if max(info.Width, info.Height) > MaxSide {
			return info, fmt.Errorf("%w: %dx%d pixels, and models take %d a side", ErrLarge, info.Width, info.Height, MaxSide)
		}
		return info, nil
	}
	return Info{}, ErrUnknown
}

// TooLarge returns the error for an image of n bytes, more than [MaxBytes].
func TooLarge(n int64) error {
	return fmt.Errorf("%w: %d bytes, and models take %d", ErrLarge, n, MaxBytes)
}

// sizesOfPNG reads all chunks; the end chunk must follow the sizes.
func sizesOfPNG(data []byte) (width, height int, ok bool) {
	const header = 8 + 8 + 13 + 4 // the mark, and the chunk with the sizes
	if len(data) < header || string(data[12:16]) != "IHDR" {
		return 0, 0, false
	}
	w, h := binary.BigEndian.Uint32(data[16:]), binary.BigEndian.Uint32(data[20:])
	if w > 1<<31-1 || h > 1<<31-1 {
		return 0, 0, false
	}
	for rest := data[8:]; len(rest) >= 12; {
		n := uint64(binary.BigEndian.Uint32(rest)) + 12
		if n > uint64(len(rest)) {
			break
		}
		if string(rest[4:8]) == "IEND" {
			return int(w), int(h), true
		}
		rest = rest[n:]
	}
	return 0, 0, false
}

// sizesOfJPEG reads the segments up to the frame, which the end marker must follow.
func sizesOfJPEG(data []byte) (width, height int, ok bool) {
	for rest := data[2:]; len(rest) >= 4; {
		if rest[0] != 0xff {
			return 0, 0, false
		}
		kind := rest[1]
		switch {
		case kind == 0xff: // padding
			rest = rest[1:]
			continue
		case kind == 0x01, kind >= 0xd0 && kind <= 0xd8: // segments without a length
			rest = rest[2:]
			continue
		}
		n := int(binary.BigEndian.Uint16(rest[2:])) + 2
		if n < 4 || n > len(rest) {
			return 0, 0, false
		}
		if kind >= 0xc0 && kind <= 0xcf && kind != 0xc4 && kind != 0xc8 && kind != 0xcc {
			if n < 9 || !bytes.Contains(rest[n:], []byte{0xff, 0xd9}) {
				return 0, 0, false
			}
			return int(binary.BigEndian.Uint16(rest[7:])), int(binary.BigEndian.Uint16(rest[5:])), true
		}
		if kind == 0xd9 || kind == 0xda { // the end, or the beginning of the pixels
			return 0, 0, false
		}
		rest = rest[n:]
	}
	return 0, 0, false
}

// sizesOfGIF reads all blocks; the end block must be there.
func sizesOfGIF(data []byte) (width, height int, ok bool) {
	if len(data) < 13 {
		return 0, 0, false
	}
	width, height = int(binary.LittleEndian.Uint16(data[6:])), int(binary.LittleEndian.Uint16(data[8:]))
	at := 13 + colors(data[10])
	for at < len(data) {
		kind := data[at]
		switch kind {
		case ';':
			return width, height, true
		case '!':
			at += 2
		case ',':
			if at+9 >= len(data) {
				return 0, 0, false
			}
			at += 10 + colors(data[at+9]) + 1
		default:
			return 0, 0, false
		}
		for at < len(data) && data[at] != 0 { // pieces, each after its length
			at += int(data[at]) + 1
		}
		at++
	}
	return 0, 0, false
}

// colors returns the size of a table of colors in bytes, by the flags that precede it.
func colors(flags byte) int {
	if flags&0x80 == 0 {
		return 0
	}
	return 3 << (flags&7 + 1)
}

// sizesOfWebP reads the first chunk, which holds the sizes.
func sizesOfWebP(data []byte) (width, height int, ok bool) {
	const header = 30 // of the longest of the three kinds
	if len(data) < 25 || uint64(binary.LittleEndian.Uint32(data[4:]))+8 > uint64(len(data)) {
		return 0, 0, false
	}
	switch body := data[20:]; string(data[12:16]) {
	case "VP8 ":
		if len(data) >= header && string(body[3:6]) == "\x9d\x01\x2a" {
			return int(binary.LittleEndian.Uint16(body[6:]) & 0x3fff), int(binary.LittleEndian.Uint16(body[8:]) & 0x3fff), true
		}
	case "VP8L":
		if body[0] == 0x2f {
			bits := binary.LittleEndian.Uint32(body[1:])
			return int(bits&0x3fff) + 1, int(bits>>14&0x3fff) + 1, true
		}
	case "VP8X":
		if len(data) >= header {
			return int(body[4]) | int(body[5])<<8 | int(body[6])<<16 + 1, int(body[7]) | int(body[8])<<8 | int(body[9])<<16 + 1, true
		}
	}
	return 0, 0, false
}
