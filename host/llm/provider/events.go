package provider

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/stockade-dev/stockade/host/llm"
)

// maxLineBytes limits one line and one event: more than the largest reply that
// [llm.Assembler] takes as one call.
const maxLineBytes = 8 << 20

// stream reads the events of an answer: of an event stream, of a stream with a JSON value in
// each line, or of a body that is JSON, from a server that does not stream. A line of data that
// is JSON is an event at once: some servers write no empty line behind it, as
// https://html.spec.whatwg.org/multipage/server-sent-events.html wants.
type stream struct {
	c      *Client
	lines  bool
	in     *bufio.Reader
	err    error         // what follows the events that have come
	seen   bool          // there was a line with data
	cr     bool          // the last line ended in CR, whose LF may follow
	event  []byte        // the lines of data of an event that has more than one
	values *json.Decoder // of a body that is JSON
	junk   []byte        // the first lines that are not part of a stream
}

// done is the end of an answer in the server's words: [DONE], or the end of a body that is JSON.
type done struct {
	half *llm.ProviderError // the error if no whole answer has come
}

func (*done) Error() string { return "the answer has ended without a reason" }

func (x *Exchange) newStream(body io.Reader) *stream {
	limited := http.MaxBytesReader(nil, io.NopCloser(body), x.c.MaxStreamBytes)
	return &stream{c: x.c, lines: x.Lines, in: bufio.NewReaderSize(limited, 32<<10)}
}

// next is the data of the next event that has any. An error comes behind the last of them.
func (e *stream) next() ([]byte, error) {
	for e.err == nil {
		if value := json.RawMessage(nil); e.values != nil {
			if e.values.More() && e.values.Decode(&value) == nil {
				return value, nil
			}
			return nil, &done{e.c.notAStream(e.junk)}
		}
		line, err := e.line()
		text := bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))) // a byte order mark
		if !e.seen && !e.lines && len(e.junk) == 0 && len(text) > 0 && (text[0] == '{' || text[0] == '[') {
			e.err = e.unstreamed(text, err)
			continue
		}
		data := e.take(text, err != nil)
		switch {
		case string(data) == "[DONE]":
			data, err = nil, &done{e.c.EndedEarly(nil)}
		case len(e.event) > maxLineBytes:
			err = e.c.TooLarge("an event of more than " + mebibytes(maxLineBytes))
		case !e.seen && (errors.Is(err, io.EOF) && len(e.junk) > 0 || len(e.junk) == maxErrorBytes):
			err = e.c.notAStream(e.junk) // however long it goes on
		}
		if e.err = err; data != nil {
			return data, nil
		}
	}
	return nil, e.err
}

// line reads one line, without its end: CR, LF, or both. With an error it returns what there
// was of it.
func (e *stream) line() (line []byte, err error) {
	for {
		c, err := e.in.ReadByte()
		if err != nil {
			return line, err
		}
		rest := e.cr && c == '\n'
		switch e.cr = c == '\r'; {
		case rest: // of the end of the line before
		case c == '\r', c == '\n':
			return line, nil
		case len(line) == maxLineBytes:
			return nil, e.c.TooLarge("a line of more than " + mebibytes(maxLineBytes))
		default:
			line = append(line, c)
		}
	}
}

// take is the data that is whole with a line; cut tells that the end of the line did not come.
func (e *stream) take(text []byte, cut bool) (data []byte) {
	field, value, _ := bytes.Cut(text, []byte(":"))
	value = bytes.TrimSpace(value)
	switch {
	case e.lines && len(text) > 0 && (text[0] == '{' || e.seen):
		field, value = []byte("data"), text
	case e.lines && len(text) > 0:
		field = []byte("?")
	}
	switch string(field) {
	case "data":
		if len(value) == 0 {
			break
		}
		e.seen = e.seen || !cut
		if e.event == nil && (json.Valid(value) || string(value) == "[DONE]" || e.lines && !cut) {
			return value
		}
		e.event = append(append(e.event, value...), '\n')
	case "": // a comment, or the end of an event
		if len(text) == 0 && !cut {
			data, e.event = e.event, nil
		}
	case "event", "id", "retry":
	default:
		if !e.seen {
			text = append(text, '\n')
			e.junk = append(e.junk, text[:min(len(text), maxErrorBytes-len(e.junk))]...)
		}
	}
	if cut && json.Valid(e.event) { // else it is half an event, which is none
		data = e.event
	}
	return bytes.TrimSpace(data)
}

// unstreamed reads the rest of a body that is JSON and no event stream. Its value is an event,
// and so is each element of a list. What it returns comes instead of them.
func (e *stream) unstreamed(begin []byte, err error) error {
	var rest []byte
	if err == nil {
		rest, err = io.ReadAll(io.LimitReader(e.in, maxLineBytes))
	}
	body := append(append(begin, '\n'), rest...)
	var value json.RawMessage
	e.values = json.NewDecoder(bytes.NewReader(body))
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return err
	case len(body) > maxLineBytes:
		return e.c.TooLarge("an answer of more than " + mebibytes(maxLineBytes))
	case errors.Is(e.values.Decode(&value), io.ErrUnexpectedEOF):
		return e.c.EndedEarly(nil)
	case !json.Valid(body) || parseBody(body).Message != "":
		return e.c.notAStream(body)
	}
	e.junk, e.values = body, json.NewDecoder(bytes.NewReader(body))
	if value[0] == '[' {
		_, _ = e.values.Token()
	}
	return nil
}
