package main

import (
	"bufio"
	"bytes"
	"io"

	"github.com/stockade-dev/stockade/sdk/go/lines"
)

const (
	// binaryProbe is how much of a file decides whether it is binary.
	binaryProbe = lines.BinaryProbe
	// maxShownLine is how many characters of a line are shown.
	maxShownLine = 2000
)

// trimBOM leaves out the byte order mark that some editors put at the start of
// UTF-8 text. It is part of the file but not of its first line.
func trimBOM(text []byte) []byte { return bytes.TrimPrefix(text, []byte("\uFEFF")) }

// isBinary reports whether the beginning of a file holds a NUL byte.
func isBinary(head []byte) bool {
	return bytes.IndexByte(head[:min(len(head), binaryProbe)], 0) >= 0
}

// lineReader reads lines of any length in bounded memory.
type lineReader struct {
	r    *bufio.Reader
	max  int // bytes of a line that are kept
	line []byte
}

func newLineReader(r io.Reader, max int) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, 64<<10), max: max}
}

// head returns the beginning of the file, before anything was read.
func (r *lineReader) head() []byte {
	head, _ := r.r.Peek(binaryProbe)
	return head
}

// next returns the next line without its ending, valid until the next call,
// and how many bytes it has. When that is more than max, the line is only the
// beginning. At the end of the file the error is io.EOF.
func (r *lineReader) next() (line []byte, length int, err error) {
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
			return nil, 0, io.EOF
		case err != nil && err != io.EOF:
			return nil, 0, err
		}
		if bytes.HasSuffix(part, []byte("\n")) {
			length--
			if length > 0 && length <= len(r.line) && r.line[length-1] == '\r' {
				length--
			}
		}
		return r.line[:min(len(r.line), length, r.max)], length, nil
	}
}

// cut returns at most max characters of a line as valid UTF-8, and whether
// there were more.
func cut(line []byte, max int) (text string, more bool) {
	part, more := lines.Cut(line, max)
	return string(part), more
}
