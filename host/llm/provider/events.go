package provider

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
)

// maxLineBytes bounds one event: more than the largest reply that
// [llm.Assembler] takes as one call.
const maxLineBytes = 8 << 20

// stream reads a server's stream line by line and passes on what a library can
// read: lines with data, each whole and at most maxLineBytes long.
//
// Libraries read what this gives them. On their own they would buffer a line of any
// length, drop a last line without an end, count comments against a limit, or
// lose an error event that has other lines around it.
type stream struct {
	c     *Client
	lines bool
	in    *bufio.Reader
	out   []byte // lines that have not been read from us yet
	err   error  // what follows out
	begun bool   // the first line has been seen
	seen  bool   // there was a line with data
	junk  []byte // the first lines that are not part of a stream
}

func (x *Exchange) newStream(body io.Reader) *stream {
	limited := http.MaxBytesReader(nil, io.NopCloser(body), x.c.MaxStreamBytes)
	return &stream{c: x.c, lines: x.Lines, in: bufio.NewReaderSize(limited, 32<<10)}
}

// Read gives the stream to a library.
func (e *stream) Read(p []byte) (int, error) {
	for len(e.out) == 0 {
		data, err := e.next()
		if err != nil {
			return 0, err
		}
		e.out = append(e.out[:0], "data: "...)
		if rest, found := bytes.CutPrefix(data, []byte(`{"error":`)); found {
			// With a space it is the same JSON, but go-openai hands it on to
			// us instead of interpreting it.
			e.out = append(e.out, `{ "error":`...)
			data = rest
		}
		e.out = append(append(e.out, data...), '\n')
	}
	n := copy(p, e.out)
	e.out = e.out[n:]
	return n, nil
}

// next is the data of the next line that has any. An error comes behind the last of them.
func (e *stream) next() ([]byte, error) {
	for e.err == nil {
		line, err := e.line()
		if limit, ok := errors.AsType[*http.MaxBytesError](err); ok {
			err = e.c.TooLarge("more than " + mebibytes(limit.Limit))
		}
		data := e.take(line, err != nil)
		if err == nil && len(e.junk) == maxErrorBytes && !e.seen {
			err = io.EOF // it is no event stream, however long it goes on
		}
		if errors.Is(err, io.EOF) && !e.seen && len(e.junk) > 0 {
			err = e.c.notAStream(e.junk)
		}
		if e.err = err; data != nil {
			return data, nil
		}
	}
	return nil, e.err
}

// line reads one line. With an error it returns what there was of it.
func (e *stream) line() ([]byte, error) {
	var line []byte
	for {
		part, err := e.in.ReadSlice('\n')
		if len(line)+len(part) > maxLineBytes {
			return nil, e.c.TooLarge("a line of more than " + mebibytes(maxLineBytes))
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// take is the data of one line, if it has any; cut tells that its end did not come.
func (e *stream) take(line []byte, cut bool) []byte {
	if !e.begun {
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf")) // a byte order mark
		e.begun = true
	}
	text := bytes.TrimSpace(line)
	field, value, _ := bytes.Cut(text, []byte(":"))
	value = bytes.TrimSpace(value)
	switch {
	case e.lines && len(text) > 0 && (text[0] == '{' || e.seen):
		field, value = []byte("data"), text
	case e.lines:
		field = []byte("?")
	}
	switch string(field) {
	case "data":
		if len(value) == 0 || cut && !json.Valid(value) && string(value) != "[DONE]" {
			return nil // half an event is none
		}
		e.seen = true
		return value
	case "", "event", "id", "retry": // an empty field is an empty line or a comment
	default:
		if !e.seen {
			e.junk = append(e.junk, line[:min(len(line), maxErrorBytes-len(e.junk))]...)
		}
	}
	return nil
}
