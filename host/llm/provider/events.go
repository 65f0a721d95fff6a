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

// maxLineBytes limits one line and one event, which are an error beyond: more than the largest
// reply that [llm.Assembler] takes as one call.
const maxLineBytes = 8 << 20

// stream reads the events of an answer. The answer is an event stream
// (https://html.spec.whatwg.org/multipage/server-sent-events.html), a stream with a JSON value in
// each line, or, from a server that does not stream, JSON. A line of data that is JSON is an event
// at once, because some servers leave out the empty line behind it.
type stream struct {
	c         *Client
	jsonLines bool // each line is one JSON value
	in        *bufio.Reader
	err       error             // error that next returns after the events in values
	seen      bool              // there was a line with data
	cr        bool              // the preceding line ended in CR; an LF that follows belongs to it
	event     []byte            // data of the current event, if it has more than one line
	values    []json.RawMessage // events of a JSON body that next has not returned yet
	junk      []byte            // first lines of an answer that is not a stream
}

// markedEnd is the error for an answer whose end the server marks: with [DONE], or with the end
// of a JSON body. Such an answer may be complete.
type markedEnd struct {
	incomplete *llm.ProviderError // the error if the answer is not complete
}

func (*markedEnd) Error() string { return "the answer has ended without a reason" }

func (x *Exchange) newStream(body io.Reader) *stream {
	limited := http.MaxBytesReader(nil, io.NopCloser(body), x.c.MaxStreamBytes)
	return &stream{c: x.c, jsonLines: x.JSONLines, in: bufio.NewReaderSize(limited, 32<<10)}
}

// next returns the data of the next event with data. After the last event it returns an error.
func (e *stream) next() ([]byte, error) {
	for len(e.values) > 0 || e.err == nil {
		if len(e.values) > 0 {
			value := e.values[0]
			e.values = e.values[1:]
			return value, nil
		}
		line, err := e.line()
		text := bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))) // a byte order mark
		if !e.seen && !e.jsonLines && len(e.junk) == 0 && len(text) > 0 && (text[0] == '{' || text[0] == '[') {
			e.err = e.readJSONBody(text, err)
			continue
		}
		data := e.parseLine(text, err != nil)
		switch {
		case string(data) == "[DONE]":
			data, err = nil, &markedEnd{e.c.EndedEarly(nil)}
		case len(e.event) > maxLineBytes:
			err = e.c.TooLarge("an event of more than " + mebibytes(maxLineBytes))
		case !e.seen && (errors.Is(err, io.EOF) && len(e.junk) > 0 || len(e.junk) == maxErrorBytes):
			err = e.c.notAStream(e.junk) // a body without an end is read only up to this limit
		}
		if e.err = err; data != nil {
			return data, nil
		}
	}
	return nil, e.err
}

// line reads one line, which ends in CR, LF or both. With an error it returns what it has read.
func (e *stream) line() (line []byte, err error) {
	for {
		c, err := e.in.ReadByte()
		if err != nil {
			return line, err
		}
		rest := e.cr && c == '\n' // the second half of the preceding line end
		switch e.cr = c == '\r'; {
		case rest:
		case c == '\r', c == '\n':
			return line, nil
		case len(line) == maxLineBytes:
			return nil, e.c.TooLarge("a line of more than " + mebibytes(maxLineBytes))
		default:
			line = append(line, c)
		}
	}
}

// parseLine parses one line, and returns the data of an event if the line completes one; else nil.
// cut is set if the answer ends within the line.
func (e *stream) parseLine(text []byte, cut bool) (data []byte) {
	field, value, _ := bytes.Cut(text, []byte(":"))
	value = bytes.TrimSpace(value)
	switch {
	case e.jsonLines && len(text) > 0 && (text[0] == '{' || e.seen):
		field, value = []byte("data"), text
	case e.jsonLines && len(text) > 0:
		field = []byte("?")
	}
	switch string(field) {
	case "data":
		if len(value) == 0 {
			break
		}
		e.seen = e.seen || !cut
		if e.event == nil && (json.Valid(value) || string(value) == "[DONE]" || e.jsonLines && !cut) {
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
	if cut && json.Valid(e.event) { // half an event is dropped
		data = e.event
	}
	return bytes.TrimSpace(data)
}

// readJSONBody reads the rest of a JSON body. Each element of a list is an event; any other
// value is one event. It returns the error that follows the events.
func (e *stream) readJSONBody(begin []byte, err error) error {
	var rest []byte
	if err == nil {
		rest, err = io.ReadAll(io.LimitReader(e.in, maxLineBytes))
	}
	body := append(append(begin, '\n'), rest...)
	var value json.RawMessage
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return err
	case len(body) > maxLineBytes:
		return e.c.TooLarge("an answer of more than " + mebibytes(maxLineBytes))
	case errors.Is(json.NewDecoder(bytes.NewReader(body)).Decode(&value), io.ErrUnexpectedEOF):
		return e.c.EndedEarly(nil)
	case !json.Valid(body) || parseErrorBody(body).Message != "":
		return e.c.notAStream(body)
	}
	if json.Unmarshal(body, &e.values) != nil { // no list
		e.values = []json.RawMessage{value}
	}
	return &markedEnd{e.c.notAStream(body)}
}
