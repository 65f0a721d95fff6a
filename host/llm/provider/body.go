package provider

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"io"
	"sync"

	"github.com/stockade-dev/stockade/host/llm"
)

// Pieces are the body of a request in pieces, which are kept from one request to the
// next: what was sent before is sent again without a look at it.
type Pieces [][]byte

// EncodeEntries are the wire forms of entries, with commas between.
func EncodeEntries(entries []*llm.Entry, version string, translate func(*llm.Entry) []byte) Pieces {
	out := make(Pieces, 0, 2*len(entries))
	for _, e := range entries {
		out = out.Add(e.Encode(version, translate))
	}
	return out
}

var comma = []byte(",")

// Add appends an element of a list, if it is none of nothing.
func (p Pieces) Add(element []byte) Pieces {
	if len(element) == 0 {
		return p
	}
	if len(p) > 0 {
		p = append(p, comma)
	}
	return append(p, element)
}

// Len is how many bytes they have together.
func (p Pieces) Len() (n int64) {
	for _, b := range p {
		n += int64(len(b))
	}
	return n
}

// reader reads them one after the other.
type reader struct {
	pieces Pieces
	at     int // in the first
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

// Placeholder is a text that no request holds by chance or on purpose: see [Pieces.SpliceInto].
var Placeholder = sync.OnceValue(func() string { return "messages-" + rand.Text() })

// SpliceInto returns a body with the pieces in the place of a message, which has the text [Placeholder].
func (p Pieces) SpliceInto(body []byte, message any) Pieces {
	written, _ := json.Marshal(message) // body holds the same
	head, tail, _ := bytes.Cut(body, written)
	return append(append(Pieces{head}, p...), tail)
}
