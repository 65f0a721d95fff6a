package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// ErrorType is the class of a failure, for the model.
type ErrorType string

const (
	NotFound         ErrorType = "not_found"
	ValidationFailed ErrorType = "validation_failed"
	PermissionDenied ErrorType = "permission_denied"
	IOError          ErrorType = "io_error"
	ParseError       ErrorType = "parse_error"
	InternalError    ErrorType = "internal_error"
)

// Code names one failure exactly. Codes are part of the documented contract. Tools can have
// their own codes, see [CutCode].
type Code string

const (
	CodeUnknownTool  Code = "UNKNOWN_TOOL"
	CodeInvalidArgs  Code = "INVALID_ARGUMENTS"
	CodeUnseen       Code = "CONTENT_NOT_SEEN" // the conversation has not seen the content of the file to edit
	CodeLinesMoved   Code = "LINES_MOVED"      // another call of the step changed or may have moved the lines
	CodeDenied       Code = "DENIED"
	CodeFilesChanged Code = "FILES_CHANGED"       // somebody else has changed the files that the call would change
	CodeNotKept      Code = "CHANGES_NOT_KEPT"    // the call's changes could not be written, or would mislead git
	CodeNoSpace      Code = "NO_SPACE"            // no room for the changes of the call; tools give it, too
	CodeFailed       Code = "TOOL_FAILED"         // the tool itself reports a failure
	CodeTrap         Code = "TOOL_TRAP"           // the guest crashed, exited without a result, or made too many host calls
	CodeFuel         Code = "TOOL_FUEL_EXHAUSTED" // the guest used up its fuel, a measure of its steps
	CodeTimeout      Code = "TOOL_TIMEOUT"        // the call took longer than its limit of wall-clock time
	CodeMemory       Code = "TOOL_MEMORY"         // the guest needs more memory than it may have
	CodeCancelled    Code = "TOOL_CANCELLED"      // the caller gave up; a tool can report it, too
	CodeBadABI       Code = "TOOL_BAD_ABI"        // the guest broke the ABI, for instance lied about a length
	CodeNotAdmitted  Code = "MODULE_REFUSED"      // the module may not run: no WebAssembly, too large, and so on
	CodeRateLimited  Code = "RATE_LIMITED"        // the tool may not be called so often; tools give it, too
	CodeInterrupted  Code = "INTERRUPTED"         // no result was recorded, mostly because the host's process ended
	CodeLimitReached Code = "LIMIT_REACHED"       // not run: the model made too many calls in one reply
	CodeHost         Code = "HOST_FAULT"          // the host itself is at fault

	// Codes that tools give if they have no code of their own.
	CodeNotFound    Code = "NOT_FOUND"
	CodeIO          Code = "IO_ERROR"
	CodeParse       Code = "PARSE_ERROR"
	CodeUnavailable Code = "UNAVAILABLE"
)

// Error is a failure that a model can read.
type Error struct {
	Message  string
	Code     Code
	Type     ErrorType // empty: InternalError
	Hint     Hint      // advice on the next step; may be nil
	ExitCode *int      // exit code of the guest; nil: it gave none
	Stdout   string
	Stderr   string
	// Of a denial: Rule is the rule that decided. If a question was answered no, Allow is a
	// rule that would allow the call. If the policy denies the call without a question,
	// AllowHint is advice on a change that would allow it. Each may be empty.
	Rule      string
	Allow     string
	AllowHint Hint
	Denial    json.RawMessage // denial as JSON, see policy.Explanation; nil for any other failure
}

// Error returns the message, followed by AllowHint if there is one.
func (e *Error) Error() string {
	if e.AllowHint == nil {
		return e.Message
	}
	return e.Message + "; " + e.AllowHint.String()
}

// Usage is the cost of a call.
type Usage struct {
	Duration        time.Duration
	OutputBytes     int    // bytes of Result.Output; 0 for a failure
	FuelUsed        uint64 // units of fuel; 0 if no guest ran
	PeakMemoryBytes uint64 // of the guest's memory, and of its data in the host; 0 if no guest ran
	Start           time.Time
	Network         []Traffic // by host; nil if there was no request
}

// Traffic is the exchange of a call with one host.
type Traffic struct {
	Host          string `json:"host"` // PROTOCOL://HOST:PORT; "others" for hosts beyond a limit
	Requests      int    `json:"requests"`
	SentBytes     int64  `json:"sent_bytes"`        // bytes of URLs, headers and bodies
	ReceivedBytes int64  `json:"received_bytes"`    // bytes of bodies, before decompression; for a command all bytes
	Refused       int    `json:"refused,omitempty"` // number of refused requests
}

// Result is the outcome of a call: Output, or Err if it failed.
type Result struct {
	// Output is the result of the tool: one JSON object.
	Output json.RawMessage
	Err    *Error
	Unsent []string // fields of Output that the model is not sent, see [Content.Unsent]
	Images []Image  // for a model that accepts images, beside the output; nil for a failure
	// Note is a remark of the host, for example on files that were not read, or on a model
	// that repeats itself; may be empty.
	Note string
	// RawOutput is the output of a command as written, for the log; empty: as in Output.
	RawOutput string
	// Repeats is the number of steps of this turn, this one included, in which the model's
	// same call had the same result in the same state of the files, and no other result
	// between; 0: not counted.
	Repeats int
	Usage   Usage
	// PersonSays is the reason of a person for a denial, in the person's words. The caller passes
	// it on as such; it is no part of the result. Empty: none was given.
	PersonSays   string
	LimitMessage string // tells the model that the loop stops at a limit; empty: the loop goes on
}

// Ran reports whether the code of a tool has run.
func (r Result) Ran() bool { return r.Usage.FuelUsed > 0 }

// AddNote adds a line to the note, unless the line is empty.
func (r *Result) AddNote(note string) {
	if note != "" && r.Note != "" {
		r.Note += "\n"
	}
	r.Note += note
}

// Failed returns the result of a failure. The message is formatted as by [fmt.Sprintf].
func Failed(code Code, typ ErrorType, format string, args ...any) Result {
	return Result{Err: &Error{Message: fmt.Sprintf(format, args...), Code: code, Type: typ}}
}

// Text returns an output of plain text: {"output": text}.
func Text(text string) json.RawMessage {
	return Marshal(struct {
		Output string `json:"output"`
	}{text})
}

type metadata struct {
	ExecutionMS int64     `json:"execution_time_ms"`
	DataBytes   int       `json:"data_size_bytes"`
	Timestamp   int64     `json:"timestamp"` // start of the call, milliseconds since 1970
	Fuel        uint64    `json:"fuel_used"`
	PeakMemory  uint64    `json:"peak_memory_bytes"`
	Network     []Traffic `json:"network,omitempty"`
}

type successEnvelope struct {
	Success      bool            `json:"tool_success"`
	Result       json.RawMessage `json:"result"`
	Images       []ImageInfo     `json:"images,omitempty"`
	Note         string          `json:"note,omitempty"`
	LimitReached bool            `json:"limit_reached,omitempty"`
	LimitMessage string          `json:"limit_message,omitempty"`
	Metadata     metadata        `json:"metadata"`
}

type failureEnvelope struct {
	Success      bool            `json:"tool_success"`
	Error        string          `json:"error"`
	Code         Code            `json:"error_code"`
	Type         ErrorType       `json:"error_type"`
	Hint         string          `json:"hint,omitempty"`
	Note         string          `json:"note,omitempty"`
	Rule         string          `json:"rule,omitempty"`
	Allow        string          `json:"allow,omitempty"`
	Denial       json.RawMessage `json:"denial,omitempty"`
	ExitCode     *int            `json:"exit_code"`
	Stdout       string          `json:"stdout"`
	Stderr       string          `json:"stderr"`
	LimitReached bool            `json:"limit_reached,omitempty"`
	LimitMessage string          `json:"limit_message,omitempty"`
	Metadata     metadata        `json:"metadata"`
}

// Envelope returns the result as JSON, with the same fields for every tool: one form for a
// success, one for a failure. The log stores it and `stockade call --json` prints it. A model
// reads the part that [ForModel] returns. It describes images without their data.
func (r Result) Envelope() json.RawMessage {
	meta := metadata{
		ExecutionMS: int64(math.Ceil(r.Usage.Duration.Seconds() * 1000)), // rounded up: 0 is a call that has not run
		DataBytes:   r.Usage.OutputBytes,
		Fuel:        r.Usage.FuelUsed,
		PeakMemory:  r.Usage.PeakMemoryBytes,
		Network:     r.Usage.Network,
	}
	if !r.Usage.Start.IsZero() {
		meta.Timestamp = r.Usage.Start.UnixMilli()
	}
	if r.Err == nil {
		out := r.Output
		if len(out) == 0 || !json.Valid(out) {
			out = Text(string(out))
		}
		var images []ImageInfo
		for _, i := range r.Images {
			images = append(images, i.Info())
		}
		return Marshal(successEnvelope{true, out, images, r.Note, r.LimitMessage != "", r.LimitMessage, meta})
	}
	typ := r.Err.Type
	if typ == "" {
		typ = InternalError
	}
	return Marshal(failureEnvelope{
		Error: r.Err.Error(), Code: r.Err.Code, Type: typ, Hint: r.Err.Hint.String(), Note: r.Note, Rule: r.Err.Rule, Allow: r.Err.Allow, Denial: r.Err.Denial,
		ExitCode: r.Err.ExitCode, Stdout: r.Err.Stdout, Stderr: r.Err.Stderr,
		LimitReached: r.LimitMessage != "", LimitMessage: r.LimitMessage, Metadata: meta,
	})
}

// ForModel returns the part of an envelope that a model is sent. It leaves out most metadata,
// fields of the envelope that are "" or null, and the fields of the result that are in unsent.
// It depends on nothing else, so that the same envelope is always sent in the same form. Text
// that is not an envelope is returned unchanged.
func ForModel(envelope string, unsent []string) string {
	if !strings.HasPrefix(envelope, `{"tool_success":`) {
		return envelope
	}
	sent := filterFields(json.RawMessage(envelope), func(key string, value json.RawMessage) json.RawMessage {
		switch {
		case string(value) == `""`, string(value) == "null":
			return nil
		case key == "metadata":
			return filterFields(value, func(key string, value json.RawMessage) json.RawMessage {
				if key == "execution_time_ms" || key == "network" {
					return value
				}
				return nil
			})
		case key == "result":
			return filterFields(value, func(key string, value json.RawMessage) json.RawMessage {
				if slices.Contains(unsent, key) {
					return nil
				}
				return value
			})
		}
		return value
	})
	return string(sent)
}

// PlainText returns the part of an envelope that a model is sent as text for reading page by
// page: short values first, one on a line, then the output and each other long text below its name.
// Text that is not an envelope is returned unchanged.
func PlainText(envelope string, unsent []string) string {
	sent := ForModel(envelope, unsent)
	of := struct{ Result json.RawMessage }{json.RawMessage(sent)}
	_ = json.Unmarshal([]byte(sent), &of)
	var short, long strings.Builder
	whole := eachField(of.Result, func(key string, value json.RawMessage) bool {
		text := string(value)
		_ = json.Unmarshal(value, &text) // the JSON of a value that is not a string stays
		switch {
		case key == "output":
			long.WriteString(strings.TrimSuffix(text, "\n") + "\n")
		case len(text) > 200, strings.Contains(text, "\n"):
			fmt.Fprintf(&long, "%s:\n%s\n", key, strings.TrimSuffix(text, "\n"))
		case key != "tool_success" && key != "metadata":
			fmt.Fprintf(&short, "%s: %s\n", key, text)
		}
		return true
	})
	if !whole || short.Len()+long.Len() == 0 {
		return sent
	}
	return short.String() + long.String()
}

// filterFields returns an object with the values that keep returns, in the same order, and
// without the fields for which keep returns nil. JSON that is not an object is returned
// unchanged.
func filterFields(object json.RawMessage, keep func(key string, value json.RawMessage) json.RawMessage) json.RawMessage {
	out := []byte("{")
	complete := eachField(object, func(key string, value json.RawMessage) bool {
		if value = keep(key, value); value == nil {
			return true
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, Marshal(key)...), ':'), value...)
		return true
	})
	if !complete {
		return object
	}
	return append(out, '}')
}

// eachField calls f with each field of an object, in their order, until f returns false. It
// returns true if f has accepted all fields; false also if object is not an object.
func eachField(object json.RawMessage, f func(key string, value json.RawMessage) bool) bool {
	dec := json.NewDecoder(bytes.NewReader(object))
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
		return false
	}
	for dec.More() {
		var value json.RawMessage
		name, err := dec.Token()
		if err == nil {
			err = dec.Decode(&value)
		}
		key, ok := name.(string)
		if err != nil || !ok || !f(key, value) {
			return false
		}
	}
	_, err := dec.Token() // the closing brace
	return err == nil && !dec.More()
}

// Marshal returns the JSON of a value; it panics if the value cannot be encoded. It does not
// escape <, > and &, which would only cost tokens.
func Marshal(v any) json.RawMessage {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSpace(buf.Bytes())
}

// Summary describes the result in short, for people. The message of a failure may have several
// lines.
func (r Result) Summary() string {
	if r.Err != nil {
		return fmt.Sprintf("failed (%s): %s", r.Err.Code, r.Err.Error())
	}
	images := ""
	if n := len(r.Images); n > 0 {
		images = fmt.Sprintf(", images: %d", n)
	}
	return fmt.Sprintf("ok, %d bytes in %d ms%s", r.Usage.OutputBytes, r.Usage.Duration.Milliseconds(), images)
}

// Shorten returns an output, which is UTF-8, cut to about limit bytes if it is longer. A
// string field "output" keeps its beginning and its end, with a line between them that counts
// the bytes left out. So does a string field "stderr" beside it, in a quarter of limit. An
// output without "output", or whose other fields leave no room, becomes text and is cut as a
// whole. A cut output gets the field "truncated", and has at most limit*9/8 bytes, or
// [minShortened] bytes if that is more.
func Shorten(output json.RawMessage, limit int) json.RawMessage {
	if len(output) <= limit {
		return output
	}
	fields := fieldsOf(output, limit)
	var text, aside string
	if json.Unmarshal(fields["output"], &text) == nil {
		rest := len(output) - len(fields["output"])
		if errors := fields["stderr"]; json.Unmarshal(errors, &aside) == nil {
			fields["stderr"] = Marshal(headTail(aside, limit/4))
			rest += len(fields["stderr"]) - len(errors)
		}
		if room := limit - rest; room > 0 {
			fields["output"] = Marshal(headTail(text, room))
			fields["truncated"] = json.RawMessage("true")
			if short := Marshal(fields); len(short) <= limit+limit/8 {
				return short
			}
		}
	}
	return Marshal(map[string]any{"output": headTail(string(output), limit), "truncated": true})
}

// fieldsOf returns the fields of an object; nil for other JSON, and if the fields other than
// "output" and "stderr" have more than limit bytes. A tool may return millions of fields, which
// together take thirty times the memory of their text.
func fieldsOf(output json.RawMessage, limit int) map[string]json.RawMessage {
	fields, others := map[string]json.RawMessage{}, 0
	complete := eachField(output, func(key string, value json.RawMessage) bool {
		if key != "output" && key != "stderr" {
			others += len(key) + len(value)
		}
		fields[key] = value
		return others <= limit
	})
	if !complete {
		return nil
	}
	return fields
}

// minShortened is the number of bytes that [Shorten] may need whatever the limit is: minKeep
// bytes at both ends, each written as \u0000 at worst, and the line between them.
const minShortened = 2*minKeep*6 + 128

// minKeep is the least number of bytes that headTail keeps at each end of a text that it cuts.
const minKeep = 32

// Clip returns the first maxBytes bytes of a text and "…"; all of a text that is not longer.
func Clip(text string, maxBytes int) string {
	if len(text) <= maxBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxBytes], "") + "…"
}

// headTail returns the beginning and the end of a text, with a line between them that counts
// the bytes left out; all of a text that fits. limit is the size of the result in bytes as
// JSON, which may need several bytes for one byte of text. At least minKeep bytes stay at each
// end, also beyond limit.
func headTail(text string, limit int) string {
	if len(text) <= 2*minKeep || len(text) <= limit && len(Marshal(text)) <= limit {
		return text
	}
	for keep := max(min(limit, len(text)-1)/2, minKeep); ; keep = max(keep*3/4, minKeep) {
		short := fmt.Sprintf("%s\n... %d of %d bytes left out ...\n%s", strings.ToValidUTF8(text[:keep], ""),
			len(text)-2*keep, len(text), strings.ToValidUTF8(text[len(text)-keep:], ""))
		if keep == minKeep || len(Marshal(short)) <= limit {
			return short
		}
	}
}
