package tool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// Code is the kind of failure of an [Error]. The values are the cases of the variant
// types.error in wit/, in their order.
type Code uint8

// The codes.
const (
	CodeInvalidInput Code = iota // the arguments are wrong
	CodeUnknownTool              // there is no tool of this name; made by this package only
	CodeNotFound                 // a thing that the arguments name does not exist
	CodeDenied                   // a thing that the arguments name may not be used
	CodeIO                       // reading or writing failed
	CodeParse                    // data was read but not understood
	CodeUnavailable              // a service does not answer now
	CodeCancelled                // the caller no longer wants the result
	CodeFailed                   // any other failure
)

// String returns the case's name in wit/.
func (c Code) String() string {
	names := [...]string{"invalid-input", "unknown-tool", "not-found", "denied", "io", "parse", "unavailable", "cancelled", "failed"}
	if int(c) < len(names) {
		return names[c]
	}
	return fmt.Sprintf("code %d", uint8(c))
}

// Error is a failure with a code. Tools make one with the functions below, such as [NotFound].
type Error struct {
	Code Code
	err  error
}

func (e *Error) Error() string { return e.err.Error() }

// Unwrap returns the error without the code.
func (e *Error) Unwrap() error { return e.err }

func errorf(code Code, format string, args []any) error {
	return &Error{Code: code, err: fmt.Errorf(format, args...)}
}

// InvalidInput returns an error for wrong arguments. Its text should explain the correction.
func InvalidInput(format string, args ...any) error { return errorf(CodeInvalidInput, format, args) }

// NotFound returns an error for something that the arguments name and that does not exist.
func NotFound(format string, args ...any) error { return errorf(CodeNotFound, format, args) }

// Denied returns an error for something that may not be used.
func Denied(format string, args ...any) error { return errorf(CodeDenied, format, args) }

// IO returns an error for reading or writing that failed.
func IO(format string, args ...any) error { return errorf(CodeIO, format, args) }

// Parse returns an error for data of the wrong form.
func Parse(format string, args ...any) error { return errorf(CodeParse, format, args) }

// Unavailable returns an error for a service that does not answer but may later.
func Unavailable(format string, args ...any) error { return errorf(CodeUnavailable, format, args) }

// Cancelled returns an error for a tool that stopped because its caller gave up. The text
// stays in the guest: the host knows the reason.
func Cancelled(format string, args ...any) error { return errorf(CodeCancelled, format, args) }

// Failed returns an error for any other failure.
func Failed(format string, args ...any) error { return errorf(CodeFailed, format, args) }

// Coded gives an error a code of the tool's own, so that a model or a script can recognize
// it: 3 to 40 capitals, digits and '_', the first a capital, such as "NOT_UNIQUE". Without
// a code, the host makes one from the kind, such as NOT_FOUND. The text of the error does
// not change: the code is put in front of it only on the way to the host.
//
//	tool.Coded("NOT_UNIQUE", tool.InvalidInput("old_string occurs 3 times; add context"))
//
// Codes that the host uses itself, such as DENIED and all that begin with TOOL_, are not
// for tools: the host treats such a code as text. A code of another form is left out. A nil
// error stays nil.
func Coded(code string, err error) error {
	if err == nil || !validCode(code) {
		return err
	}
	return &coded{code, err}
}

// CodeOf returns the code that [Coded] gave to an error in the chain of err; empty: none.
func CodeOf(err error) string {
	if c, ok := errors.AsType[*coded](err); ok {
		return c.code
	}
	return ""
}

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

// text returns the error as sent to the host: after its code, if it has one. A text that only
// looks as if it began with a code, such as one with the name of a file, gets the code of its
// kind, which it would have anyway.
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

// AsError returns err in the form that the host gets; nil stays nil. If the chain holds an
// [Error], it has that code. Otherwise the code is not-found for fs.ErrNotExist, denied for
// fs.ErrPermission (also when a host function refused), cancelled for context.Canceled, io for
// any other *fs.PathError or *os.LinkError, and failed for all others. The text is always that
// of err.
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
