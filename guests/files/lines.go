package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"math/bits"
	"unsafe"

	"github.com/stockade-dev/stockade/sdk/go/lines"
)

const (
	// binaryProbe is the number of first bytes that decide whether a file is binary.
	binaryProbe  = lines.BinaryProbe
	maxShownLine = 2000 // limits the characters of a line in file_read (not with raw) and grep; the rest is cut
)

// readerBytes is the number of bytes of a file that are read at a time.
const readerBytes = 256 << 10

// lineReader reads lines of any length in bounded memory.
type lineReader struct {
	r    *bufio.Reader
	max  int // number of bytes of a line that are kept
	line []byte
}

func newLineReader(r *bufio.Reader, max int) *lineReader { return &lineReader{r: r, max: max} }

// next returns the next line and its full length in bytes, both without its ending, and the
// ending, empty if there is none. line is valid until the next call; of a longer line it holds
// only the first max bytes, and a CR at its end may count as text. After the last line the error
// is io.EOF.
func (r *lineReader) next() (line []byte, length int, ending string, err error) {
	r.line = r.line[:0]
	for {
		part, err := r.r.ReadSlice('\n')
		length += len(part)
		if room := r.max + 2 - len(r.line); room > 0 { // 2 for the ending
			r.line = append(r.line, part[:min(room, len(part))]...)
		}
		switch {
		case err == bufio.ErrBufferFull:
			continue
		case err == io.EOF && length == 0:
			return nil, 0, "", io.EOF
		case err != nil && err != io.EOF:
			return nil, 0, "", err
		}
		if bytes.HasSuffix(part, []byte("\n")) {
			length, ending = length-1, "\n"
			if length > 0 && length <= len(r.line) && r.line[length-1] == '\r' {
				length, ending = length-1, "\r\n"
			}
		}
		return r.line[:min(len(r.line), length, r.max)], length, ending, nil
	}
}

// skip reads over at most limit lines, and returns the number of skipped lines. It searches
// only for line feeds, so that it reaches the end of a large file fast.
func (r *lineReader) skip(ctx context.Context, limit int) (skipped int, err error) {
	partial := 0 // 1 within a line
	for skipped < limit {
		if err := ctx.Err(); err != nil {
			return skipped, err
		}
		if _, err := r.r.Peek(1); err == io.EOF {
			return skipped + partial, nil
		} else if err != nil {
			return skipped, err
		}
		block, _ := r.r.Peek(r.r.Buffered())
		n := countLines(block)
		if n > limit-skipped {
			n = limit - skipped
			block = block[:offsetAfterLines(block, 0, n)]
		}
		if skipped += n; block[len(block)-1] == '\n' {
			partial = 0
		} else if partial = 1; skipped == limit {
			block = block[:bytes.LastIndexByte(block, '\n')+1]
		}
		_, _ = r.r.Discard(len(block)) // never fails: they are in the buffer
	}
	return skipped, nil
}

// countLines counts line feeds, eight bytes at a time. Without vector instructions,
// bytes.Count looks at single bytes.
func countLines(text []byte) (n int) {
	const ones, low = 0x0101010101010101, 0x7f7f7f7f7f7f7f7f
	words := unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(text))), len(text)/8) // the order of their bytes does not matter
	for _, x := range words {
		x ^= '\n' * ones
		n += bits.OnesCount64(^((x&low + low) | x | low)) // one bit for each byte that is zero
	}
	for _, b := range text[len(words)*8:] {
		if b == '\n' {
			n++
		}
	}
	return n
}

// cut returns at most max characters of a line as valid UTF-8; more: there were more.
func cut(line []byte, max int) (text string, more bool) {
	part, more := lines.Cut(line, max)
	return string(part), more
}
