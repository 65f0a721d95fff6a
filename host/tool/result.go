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

// ErrorType sorts failures for the model.
type ErrorType string

// The error types of the envelope.
const (
	NotFound         ErrorType = "not_found"
	ValidationFailed ErrorType = "validation_failed"
	PermissionDenied ErrorType = "permission_denied"
	IOError          ErrorType = "io_error"
	ParseError       ErrorType = "parse_error"
	InternalError    ErrorType = "internal_error"
)

// Code names one failure exactly. Codes are part of the documented contract. A tool can
// have codes of its own, see [CutCode].
type Code string

// The codes.
const (
	CodeUnknownTool  Code = "UNKNOWN_TOOL"
	CodeInvalidArgs  Code = "INVALID_ARGUMENTS"
	CodeUnseen       Code = "CONTENT_NOT_SEEN" // the model would change a file that it has not read
	CodeLinesMoved   Code = "LINES_MOVED"      // an earlier call of the step changed the lines that the model counts
	CodeDenied       Code = "DENIED"
	CodeFilesChanged Code = "FILES_CHANGED"    // what the call would change is not any more what it has seen
	CodeNotKept      Code = "CHANGES_NOT_KEPT" // what the call changed could not be written
	CodeNoSpace      Code = "NO_SPACE"         // there was no room for what the call changed; also a tool's, of what it writes itself
	CodeFailed       Code = "TOOL_FAILED"      // the tool itself says that it failed
	CodeTrap         Code = "TOOL_TRAP"        // the guest trapped or exited
	CodeFuel         Code = "TOOL_FUEL_EXHAUSTED"
	CodeTimeout      Code = "TOOL_TIMEOUT"   // wall-clock deadline
	CodeMemory       Code = "TOOL_MEMORY"    // memory limit
	CodeCancelled    Code = "TOOL_CANCELLED" // the caller gave up
	CodeBadABI       Code = "TOOL_BAD_ABI"   // the guest broke the ABI, for instance lied about a length
	CodeNotAdmitted  Code = "MODULE_REFUSED" // the module may not run: not WebAssembly, too large, wrong imports
	CodeRateLimited  Code = "RATE_LIMITED"   // it would be called more often than its tool bears
	CodeInterrupted  Code = "INTERRUPTED"    // the process ended during the call
	CodeLimitReached Code = "LIMIT_REACHED"  // the loop stopped
	CodeHost         Code = "HOST_FAULT"     // our own fault

	// A tool says so that has no code of its own for it.
	CodeNotFound    Code = "NOT_FOUND"
	CodeIO          Code = "IO_ERROR"
	CodeParse       Code = "PARSE_ERROR"
	CodeUnavailable Code = "UNAVAILABLE"
)

// Error is a failure that the model can read. The zero Type is InternalError.
type Error struct {
	Message  string
	Code     Code
	Type     ErrorType
	Hint     Hint // what to do next
	ExitCode *int // of a process, if one ran
	Stdout   string
	Stderr   string
	// A denial says which rule decided, which one would allow the call, and what
	// else would.
	Rule      string
	Allow     string
	AllowHint Hint
	// Denial is the same as data, with the layer: see policy.Explanation.
	Denial json.RawMessage
}

// Error is the message, and behind it what would allow a call that was denied.
func (e *Error) Error() string {
	if e.AllowHint == nil {
		return e.Message
	}
	return e.Message + "; " + e.AllowHint.String()
}

// Usage is what a call cost.
type Usage struct {
	Duration        time.Duration
	OutputBytes     int    // size of the result as the model gets it
	FuelUsed        uint64 // units of fuel; 0 when no guest ran
	PeakMemoryBytes uint64 // linear memory; 0 when no guest ran
	Start           time.Time
	Network         []Traffic // by host; nil when none was asked for
}

// Traffic is what a call has exchanged with one host.
type Traffic struct {
	Host          string `json:"host"` // PROTOCOL://HOST:PORT
	Requests      int    `json:"requests"`
	SentBytes     int64  `json:"sent_bytes"`
	ReceivedBytes int64  `json:"received_bytes"` // of bodies, as they came
	Refused       int    `json:"refused,omitempty"`
}

// Result is what came of a call: Output, or Err.
type Result struct {
	// Output is the tool's own result: one JSON object.
	Output json.RawMessage
	Err    *Error
	// Unsent are fields of Output that the model is not sent, see [Content.Unsent].
	Unsent []string
	// Images are what the model sees beside the output, if it takes images; nil of a
	// failure.
	Images []Image
	// Note is what the host adds: what a success leaves out, such as files that
	// were not read, or that the model goes round in a circle. Empty where there
	// is nothing to add.
	Note string
	// RawOutput is what a command wrote, where the result has what a terminal shows of it. It is
	// for the log.
	RawOutput string
	// Repeats is how often the model has made this very call in this turn and come
	// to this very result, this time counted; 0 where nobody counts.
	Repeats int
	Usage   Usage
	// LimitMessage tells the model that the loop stops here. Empty: it does not.
	LimitMessage string
}

// Ran reports whether the code of a tool has run.
func (r Result) Ran() bool { return r.Usage.FuelUsed > 0 }

// AddNote adds to what the host says of it, on a line of its own; nothing if that is empty.
func (r *Result) AddNote(note string) {
	if note != "" && r.Note != "" {
		r.Note += "\n"
	}
	r.Note += note
}

// Failed makes the result of a failure.
func Failed(code Code, typ ErrorType, format string, args ...any) Result {
	return Result{Err: &Error{Message: fmt.Sprintf(format, args...), Code: code, Type: typ}}
}

// Text makes an output of plain text: {"output": text}.
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

// Envelope wraps the result, once, for every tool and every failure: it is
// what the log keeps and what `stockade call --json` prints, and what the model reads
// but for what it cannot use, see [ForModel].
// It says which images there are, and has not their data.
func (r Result) Envelope() json.RawMessage {
	meta := metadata{
		ExecutionMS: int64(math.Ceil(r.Usage.Duration.Seconds() * 1000)), // 0 is a call that has not run
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

// ForModel is an envelope as it is sent to a model: without what a model can do nothing
// with, which are most metadata, what a process has not written, and the fields of a
// result that are unsent. The same envelope is always sent in the same form. What is no
// envelope is sent as it is.
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

// filterFields is an object with those of its fields for which keep returns a value, in their
// order; what is no object stays as it is.
func filterFields(object json.RawMessage, keep func(key string, value json.RawMessage) json.RawMessage) json.RawMessage {
	out := []byte("{")
	whole := eachField(object, func(key string, value json.RawMessage) bool {
		if value = keep(key, value); value == nil {
			return true
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, Marshal(key)...), ':'), value...)
		return true
	})
	if !whole {
		return object
	}
	return append(out, '}')
}

// eachField calls f with the fields of an object, in their order, until it says no. It
// reports whether that was all that there is.
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
	_, err := dec.Token() // of its end
	return err == nil && !dec.More()
}

// Marshal encodes a value that always can be, such as one that was JSON before. It
// escapes no <, > and &, which would only cost tokens.
func Marshal(v any) json.RawMessage {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSpace(buf.Bytes())
}

// Summary is the result in one line, for people.
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

// Shorten returns the output, which is UTF-8, cut to about limit bytes if it is
// longer: a text field "output" keeps its head and its tail around a line that
// says what was cut, and so does a text field "stderr", in a quarter of the room; an
// output without the first becomes text and is cut as a whole.
// The result is at most an eighth longer than limit, or [minShortened] bytes if
// that is more.
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

// fieldsOf returns the fields of an object, nil if there is more than limit
// beside the outputs. A tool may return millions of them, which together take
// thirty times the memory of their text.
func fieldsOf(output json.RawMessage, limit int) map[string]json.RawMessage {
	fields, others := map[string]json.RawMessage{}, 0
	whole := eachField(output, func(key string, value json.RawMessage) bool {
		if key != "output" && key != "stderr" {
			others += len(key) + len(value)
		}
		fields[key] = value
		return others <= limit
	})
	if !whole {
		return nil
	}
	return fields
}

// minShortened is what [Shorten] may need whatever the limit: the fewest bytes
// that are kept at both ends, each written as \u0000 at worst, and the line
// between them.
const minShortened = 2*minKeep*6 + 128

const minKeep = 32

// headTail keeps the beginning and the end of text and says between them how
// much is missing. limit bounds the bytes of the text as JSON, which may need
// several for one; at least minKeep bytes stay at each end.
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
