// Package secrets names secrets without seeing them. A tool asks for them with
// tool.UsesSecret.
package secrets

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/stockade-dev/stockade/sdk/go/internal/abi"
)

var (
	// ErrDenied is returned if the module was not granted the secret. It is fs.ErrPermission,
	// too.
	ErrDenied = abi.Sentinel("secret denied", fs.ErrPermission)
	// ErrMissing is returned if the secret was granted but nobody has set its value.
	ErrMissing = errors.New("secret is not set")
)

// Placeholder returns a text that stands for the named secret. The host replaces it by the
// value in requests of package http: only in the header and for the hosts that the secret is
// for. Anywhere else, in a URL, a body, another header or for another host, it is an error. It
// is the whole header, or in Authorization follows "Bearer ", "Basic " or "token "; any other
// text that belongs to the header is part of the secret. Such a request must not have the
// header Range, and the length of its answer is not passed on. Each call of Placeholder
// returns a different text, which means nothing in another call of the tool.
func Placeholder(name string) (string, error) {
	var f abi.Frame
	defer f.Free()
	namePtr, nameLen := f.Text(name)
	// result<string, error> with an error of 12 bytes, whose case is at 4.
	ret, r := f.Area(16)
	hostPlaceholder(namePtr, nameLen, ret)
	if !r.Bool(0) {
		return r.Text(4), nil
	}
	switch r.Case(4) {
	case 0:
		return "", fmt.Errorf("%w: %s", ErrDenied, r.Text(8))
	default:
		return "", fmt.Errorf("%w: %q", ErrMissing, name)
	}
}
