package provider

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"io"
	"sync"

	"github.com/stockade-dev/stockade/host/llm"
)

// Pieces holds the body of a request in pieces. Pieces are cached from one request to the next, so
// that unchanged messages are not encoded again.
type Pieces [][]byte

// EncodeEntries returns the wire forms of entries, separated by commas, as [llm.Entry.Encode]
// returns them for version and translate.
func EncodeEntries(entries []*llm.Entry, version string, translate func(*llm.Entry) []byte) Pieces {
	out := make(Pieces, 0, 2*len(entries))
	for _, e := range entries {
		out = out.Add(e.Encode(version, translate))
	}
	return out
}

var comma = []byte(",")

// Add appends an element of a list, after a comma if necessary. An empty element is left out.
func (p Pieces) Add(element []byte) Pieces {
	if len(element) == 0 {
		return p
	}
	if len(p) > 0 {
		p = append(p, comma)
	}
	return append(p, element)
}

// Len returns the number of bytes of all pieces.
func (p Pieces) Len() (n int64) {
	for _, b := range p {
		n += int64(len(b))
	}
	return n
}

// reader reads the pieces in turn.
type reader struct {
	pieces Pieces
	at     int // offset of the next byte in pieces[0]
}

func (r *reader) Read(p []byte) (int, error) {
	total := 0
	for len(r.pieces) > 0 && total < len(p) {
		n := copy(p[total:], r.pieces[0][r.at:])
		total, r.at = total+n, r.at+n
		if r.at == len(r.pieces[0]) {
			r.pieces, r.at = r.pieces[1:], 0
		}
	}
	if total == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return total, nil
}

// Placeholder returns a random text that no request can contain: see [Pieces.SpliceInto].
var Placeholder = sync.OnceValue(func() string { return "messages-" + rand.Text() })

// SpliceInto returns body with the pieces in the place of message, whose text is [Placeholder] and
// which body holds as json.Marshal encodes it.
func (p Pieces) SpliceInto(body []byte, message any) Pieces {
	written, _ := json.Marshal(message) // body holds the same bytes
	head, tail, _ := bytes.Cut(body, written)
	return append(append(Pieces{head}, p...), tail)
}
