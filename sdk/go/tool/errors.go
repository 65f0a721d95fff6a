package tool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// Code says what kind of failure an [Error] is. The values are the cases of
// the variant types.error in wit/, in their order.
type Code uint8

// The codes.
const (
	CodeInvalidInput Code = iota // the arguments are wrong
	CodeUnknownTool              // no tool of this name; made by this package only
	CodeNotFound                 // what the arguments name does not exist
	CodeDenied                   // it exists but may not be used
	CodeIO                       // reading or writing failed
	CodeParse                    // something was read but not understood
	CodeUnavailable              // a service does not answer; later it may
	CodeCancelled                // the caller no longer wants the result
	CodeFailed                   // all else
)

// String returns the case's name in wit/.
func (c Code) String() string {
	names := [...]string{"invalid-input", "unknown-tool", "not-found", "denied", "io", "parse", "unavailable", "cancelled", "failed"}
	if int(c) < len(names) {
		return names[c]
	}
	return fmt.Sprintf("code %d", uint8(c))
}

// Error is a failure with a code. Tools make one with the functions below.
type Error struct {
	Code Code
	err  error
}

func (e *Error) Error() string { return e.err.Error() }

// Unwrap returns the error that the code was put on.
func (e *Error) Unwrap() error { return e.err }

func errorf(code Code, format string, args []any) error {
	return &Error{Code: code, err: fmt.Errorf(format, args...)}
}

// InvalidInput says that the arguments are wrong and how to correct them.
func InvalidInput(format string, args ...any) error { return errorf(CodeInvalidInput, format, args) }

// NotFound says that what the arguments name does not exist.
func NotFound(format string, args ...any) error { return errorf(CodeNotFound, format, args) }

// Denied says that something may not be used.
func Denied(format string, args ...any) error { return errorf(CodeDenied, format, args) }

// IO says that reading or writing failed.
func IO(format string, args ...any) error { return errorf(CodeIO, format, args) }

// Parse says that data is not what it should be.
func Parse(format string, args ...any) error { return errorf(CodeParse, format, args) }

// Unavailable says that a service does not answer, and that it may later.
func Unavailable(format string, args ...any) error { return errorf(CodeUnavailable, format, args) }

// Cancelled says that the tool stopped because its caller gave up. The text
// stays in the guest: the host knows why.
func Cancelled(format string, args ...any) error { return errorf(CodeCancelled, format, args) }

// Failed says that the tool could not do its work for any other reason.
func Failed(format string, args ...any) error { return errorf(CodeFailed, format, args) }

// Coded gives an error a code of the tool's own, with which a model or a script
// tells it from the others of its kind: 3 to 40 capitals, digits and '_', the
// first a capital, such as "NOT_UNIQUE". Without one the host makes a code of the
// kind, such as NOT_FOUND. The text of the error stays as it is: the code stands
// before it only on its way to the host.
//
//	tool.Coded("NOT_UNIQUE", tool.InvalidInput("old_string occurs 3 times; add context"))
//
// Codes with which the host says what it has found itself, such as DENIED and all
// that begin with TOOL_, are not a tool's to give: the host leaves one of those in
// the text. A code of another form is left out. A nil error stays nil.
func Coded(code string, err error) error {
	if err == nil || !validCode(code) {
		return err
	}
	return &coded{code, err}
}

// CodeOf is the code that [Coded] gave to an error in the chain of err; empty if
// none has one.
func CodeOf(err error) string {
	if c, ok := errors.AsType[*coded](err); ok {
		return c.code
	}
	return ""
}

// coded is an error with a code of the tool's own.
type coded struct {
	code string
	err  error
}

func (c *coded) Error() string { return c.err.Error() }
func (c *coded) Unwrap() error { return c.err }

func validCode(s string) bool {
	const allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
	return len(s) >= 3 && len(s) <= 40 && s[0] >= 'A' && s[0] <= 'Z' && strings.Trim(s, allowed) == ""
}

// text is the error as the host gets it: behind the code, if it has one. A text
// that only looks as if it began with a code, as one with the name of a file may,
// gets the one of its kind, which is the code that it would have anyway.
func (e *Error) text() string {
	text, code := e.Error(), CodeOf(e.err)
	if first, _, ok := strings.Cut(text, ": "); code == "" && ok && validCode(first) && int(e.Code) < len(kindCodes) {
		code = kindCodes[e.Code]
	}
	if code == "" {
		return text
	}
	return code + ": " + text
}

// kindCodes are the codes that the host gives to the kinds of errors.
var kindCodes = [...]string{
	CodeInvalidInput: "INVALID_ARGUMENTS", CodeUnknownTool: "UNKNOWN_TOOL", CodeNotFound: "NOT_FOUND", CodeDenied: "DENIED", CodeIO: "IO_ERROR",
	CodeParse: "PARSE_ERROR", CodeUnavailable: "UNAVAILABLE", CodeCancelled: "TOOL_CANCELLED", CodeFailed: "TOOL_FAILED",
}

// AsError returns err as the host gets it; nil stays nil. An [Error] anywhere
// in the chain gives the code. Otherwise fs.ErrNotExist is not-found,
// fs.ErrPermission is denied (also when a host function refused),
// context.Canceled is cancelled, any other *fs.PathError or *os.LinkError is
// io, and all else is failed. The text is always that of err.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	if e, ok := err.(*Error); ok && e != nil && e.err != nil {
		return e
	}
	code := CodeFailed
	if e, ok := errors.AsType[*Error](err); ok && e != nil {
		code = e.Code
	} else if errors.Is(err, fs.ErrNotExist) {
		code = CodeNotFound
	} else if errors.Is(err, fs.ErrPermission) || outsideGrants(err) {
		code = CodeDenied
	} else if errors.Is(err, context.Canceled) {
		code = CodeCancelled
	} else if isFileError(err) {
		code = CodeIO
	}
	return &Error{Code: code, err: err}
}

func isFileError(err error) bool {
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return true
	}
	_, ok := errors.AsType[*os.LinkError](err)
	return ok
}
