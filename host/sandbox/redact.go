package sandbox

import (
	"encoding/json"

	"github.com/stockade-dev/stockade/host/sandbox/abi"
)

// Redactor takes secrets out of text; secret.Redactor is one. A piece of a
// secret is not known for one any more, so it is asked in front of every cut.
type Redactor interface {
	abi.Redactor
	// JSON returns the same value without secrets.
	JSON(data json.RawMessage) json.RawMessage
	// Stream returns a function for a text that comes in pieces; what it holds
	// back comes with the last one.
	Stream() func(piece string, last bool) string
}

// nothing is a Redactor that knows no secret.
type nothing struct{}

func (nothing) Head(text []byte, limit int) ([]byte, bool) {
	return text[:min(len(text), limit)], len(text) <= limit
}
func (nothing) JSON(data json.RawMessage) json.RawMessage { return data }
func (nothing) Stream() func(string, bool) string {
	return func(piece string, _ bool) string { return piece }
}
