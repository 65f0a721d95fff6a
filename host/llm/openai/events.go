package openai

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

// events reads a server's event stream and passes on only its data lines, each
// whole and at most maxLineBytes long.
//
// go-openai reads what this gives it. On its own it would buffer a line of any
// length, drop a last line without an end, count comments against a limit, and
// lose an error event that has other lines around it.
type events struct {
	fault
	in    *bufio.Reader
	out   []byte // lines that have not been read from us yet
	err   error  // what follows out
	begun bool   // the first line has been seen
	seen  bool   // there was a data line
	junk  []byte // the first lines that are not part of an event stream
}

func newEvents(body io.Reader, maxBytes int64, f fault) *events {
	return &events{fault: f, in: bufio.NewReaderSize(http.MaxBytesReader(nil, io.NopCloser(body), maxBytes), 32<<10)}
}

func (e *events) Read(p []byte) (int, error) {
	for len(e.out) == 0 {
		if e.err != nil {
			return 0, e.err
		}
		line, err := e.line()
		if limit, ok := errors.AsType[*http.MaxBytesError](err); ok {
			err = e.tooLarge("more than " + mebibytes(limit.Limit))
		}
		e.take(line, err != nil)
		if err == nil && len(e.junk) == maxErrorBytes && !e.seen {
			err = io.EOF // it is no event stream, however long it goes on
		}
		if errors.Is(err, io.EOF) && !e.seen && len(e.junk) > 0 {
			err = e.notAStream(e.junk)
		}
		e.err = err
	}
	n := copy(p, e.out)
	e.out = e.out[n:]
	return n, nil
}

// line reads one line. With an error it returns what there was of it.
func (e *events) line() ([]byte, error) {
	var line []byte
	for {
		part, err := e.in.ReadSlice('\n')
		if len(line)+len(part) > maxLineBytes {
			return nil, e.tooLarge("a line of more than " + mebibytes(maxLineBytes))
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// take handles one line; cut tells that its end did not come.
func (e *events) take(line []byte, cut bool) {
	if !e.begun {
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf")) // a byte order mark
		e.begun = true
	}
	text := bytes.TrimSpace(line)
	field, value, _ := bytes.Cut(text, []byte(":"))
	switch string(field) {
	case "data":
		value = bytes.TrimSpace(value)
		if len(value) == 0 {
			return
		}
		if cut && !json.Valid(value) && string(value) != "[DONE]" {
			return // half an event is none
		}
		e.seen = true
		e.out = append(e.out[:0], "data: "...)
		if rest, found := bytes.CutPrefix(value, []byte(`{"error":`)); found {
			// With a space it is the same JSON, but go-openai hands it on to
			// us instead of interpreting it.
			e.out = append(e.out, `{ "error":`...)
			value = rest
		}
		e.out = append(append(e.out, value...), '\n')
	case "", "event", "id", "retry": // an empty field is an empty line or a comment
	default:
		if !e.seen {
			e.junk = append(e.junk, line[:min(len(line), maxErrorBytes-len(e.junk))]...)
		}
	}
}
