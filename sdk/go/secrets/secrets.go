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
	// ErrDenied: the module was not granted the secret. It is
	// fs.ErrPermission too.
	ErrDenied = abi.Sentinel("secret denied", fs.ErrPermission)
	// ErrMissing: the secret was granted but nobody has set it.
	ErrMissing = errors.New("secret is not set")
)

// Placeholder returns a text that stands for the named secret. The host
// replaces it by the value in the one header that the secret is for, in a
// request that package http sends to a host that the secret is for, and nowhere
// else: in a URL, a body, another header or for another host it is an error. It
// fills the header alone, or in Authorization stands behind "Bearer ", "Basic " or
// "token "; what else belongs to it is part of the secret. Range may not be asked
// for in such a request, and the length of its answer is not told.
// Each call of Placeholder returns another text, which means nothing in another
// call of the tool.
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
