package tool

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"
)

// Call holds the facts about a call that its tool may know.
type Call struct {
	ID string // the host's name for the call, the same as in its log
	// Dir is the absolute path at which relative paths start; empty: none. It is the working
	// directory of the process, too, if the tool asked for files.
	Dir      string
	Locale   string    // language tag such as "de-AT"; empty: the host gave none
	Deadline time.Time // time after which the host no longer waits, as in the context; zero: never
}

type callKey struct{}

// WithCall returns a context that carries call. This package does it for every call; tests do
// it for tools that they call directly.
func WithCall(ctx context.Context, call Call) context.Context {
	return context.WithValue(ctx, callKey{}, call)
}

// CallFrom returns the call that ctx belongs to, or the zero Call.
func CallFrom(ctx context.Context) Call {
	call, _ := ctx.Value(callKey{}).(Call)
	return call
}

// call runs one tool. The result is a JSON object. fault is nil if the tool succeeded.
func (r *registry) call(call Call, name string, args []byte) (result []byte, images []Image, fault *Error) {
	e := r.find(name)
	if e == nil {
		return nil, nil, &Error{CodeUnknownTool, fmt.Errorf("module %s has no tool %.80q", r.name, name)}
	}
	ctx := WithCall(context.Background(), call)
	if !call.Deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, call.Deadline)
		defer cancel()
	}
	// A panic is the author's mistake. It should not end the other calls of a module
	// that keeps state.
	defer func() {
		if p := recover(); p != nil {
			result, images, fault = nil, nil, &Error{CodeFailed, fmt.Errorf("panic: %v", p)}
		}
	}()
	if err := e.enterDir(call.Dir); err != nil {
		return nil, nil, AsError(err)
	}
	out, err := e.run(ctx, args)
	if err != nil {
		return nil, nil, AsError(err)
	}
	text, err := encode(out)
	if err != nil {
		return nil, nil, &Error{CodeFailed, fmt.Errorf("encode the result: %w", err)}
	}
	if !bytes.HasPrefix(text, []byte("{")) {
		text = append(append([]byte(`{"output":`), text...), '}')
	}
	if p, ok := out.(Pictured); ok {
		images = p.Images()
	}
	return text, images, nil
}

// enterDir changes the working directory to dir, for a tool that asked for files: otherwise
// relative paths would start in the directory of an earlier call. A tool without files has no
// working directory.
func (e *entry) enterDir(dir string) error {
	if e.Capabilities.Files == "" || dir == "" {
		return nil
	}
	if err := os.Chdir(dir); err != nil {
		return Denied("working directory %s is not in a granted directory: %w", dir, err)
	}
	return nil
}

// deadlineAfter returns the time in this many milliseconds; zero if it is more than a year
// away.
func deadlineAfter(now time.Time, millis uint64) time.Time {
	const year = 365 * 24 * time.Hour
	if millis > uint64(year/time.Millisecond) {
		return time.Time{}
	}
	return now.Add(time.Duration(millis) * time.Millisecond)
}
