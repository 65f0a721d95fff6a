package redact

import (
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
)

// MinBytes is how long a value is at least. A shorter one could not be told from
// ordinary text, so it could not be kept out of it either.
const MinBytes = 4

// Redactor takes secrets out of text. It knows the values that it was told of,
// each in these forms:
//
//   - as it is;
//   - in hex, lower or upper case;
//   - in base64, of either alphabet, padded or not, also as a part of what is
//     encoded;
//   - percent-encoded, as the usual encoders do it, in lower or upper hex;
//   - as a string of JSON, also as text in JSON up to twice more;
//   - as lines of a diff, if it has several, also in JSON.
//
// It does not know a part of a value, a value with something in between (base64
// that is broken into lines), one form inside another but for JSON, nor any
// encoding that somebody makes up. A value of less than [MinBytes] is not
// redacted.
//
// Time is linear in the text, whatever is in it and however many values are
// known. The zero value knows no secret, and neither does a nil one. It is safe
// for concurrent use. See RATIONALE, "Why a redactor of our own?"
type Redactor struct {
	a atomic.Pointer[automaton]

	mu       sync.Mutex
	values   map[string]bool
	patterns []pattern
}

// Add tells of a value. What stands in it behind a space or an "=" is known by
// itself too if it is long: the value may be a scheme and a key, or a cookie.
func (r *Redactor) Add(value string) {
	const long = 16
	if r == nil || len(value) < MinBytes {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(value)
	for _, mark := range []string{" ", "="} {
		if _, rest, ok := strings.Cut(value, mark); ok && len(rest) >= long {
			r.add(rest)
		}
	}
}

// add wants r.mu to be held.
func (r *Redactor) add(value string) {
	if r.values[value] {
		return
	}
	if r.values == nil {
		r.values = map[string]bool{}
	}
	r.values[value] = true
	for _, form := range forms(value) {
		r.patterns = append(r.patterns, pattern{text: form})
	}
	r.a.Store(newAutomaton(r.patterns))
}

// ContextValue is a value that is secret only between two texts, and only in this form. It can be
// shorter than [MinBytes].
type ContextValue struct{ Before, Value, After string }

// AddContextValues adds values that are secret in their places only. The text around them stays.
func (r *Redactor) AddContextValues(places ...ContextValue) {
	if r == nil || len(places) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range places {
		if p.Value != "" {
			r.patterns = append(r.patterns, pattern{[]byte(p.Before + p.Value + p.After), len(p.Before), len(p.After)})
		}
	}
	r.a.Store(newAutomaton(r.patterns))
}

// automaton is nil as long as nothing is known.
func (r *Redactor) automaton() *automaton {
	if r == nil {
		return nil
	}
	return r.a.Load()
}

// Finds reports whether there is a secret in a text.
func (r *Redactor) Finds(text []byte) bool {
	a := r.automaton()
	return a != nil && a.find(text)
}

// Text returns a text without secrets.
func (r *Redactor) Text(text string) string {
	a := r.automaton()
	if a == nil || !a.find([]byte(text)) {
		return text
	}
	return string((&scanner{a: a}).feed(nil, []byte(text), true))
}

// Head returns the beginning of a text without secrets, at most limit bytes,
// and whether that is all of it. It looks beyond what it returns, so that no
// piece of a secret is left that is cut: at most Longest bytes, whatever the
// text is. What it leaves out behind that does not depend on how the text ends;
// it would tell whoever writes the text how a secret begins.
func (r *Redactor) Head(text []byte, limit int) (head []byte, whole bool) {
	a := r.automaton()
	if a == nil {
		return text[:min(len(text), limit)], len(text) <= limit
	}
	seen := text[:min(len(text), limit+a.longest)]
	clean := (&scanner{a: a}).feed(nil, seen, true)
	certain := len(clean)
	if len(seen) < len(text) {
		certain = max(certain-a.longest, 0)
	}
	kept := min(certain, limit)
	return clean[:kept], kept == len(clean) && len(seen) == len(text)
}

// Longest is how many bytes the longest form of a value has; 0 if nothing is
// known. Whoever cuts a text looks so far beyond the cut.
func (r *Redactor) Longest() int {
	if a := r.automaton(); a != nil {
		return a.longest
	}
	return 0
}

// Stream returns a function that is given a text in pieces and returns it in
// others, without secrets, also those that are split between pieces. It holds
// back what may be the beginning of one, and gives it out with the last piece.
// It is used from one goroutine at a time.
func (r *Redactor) Stream() func(piece string, last bool) string {
	s := stream{r: r}
	return func(piece string, last bool) string { return string(s.feed([]byte(piece), last)) }
}

// stream is a scanner that learns of values on the way.
type stream struct {
	r *Redactor
	s scanner
}

func (s *stream) feed(piece []byte, last bool) []byte {
	a := s.r.automaton()
	if a == nil {
		return piece
	}
	var out []byte
	if a != s.s.a {
		// What was held back is looked at again: it may be the beginning of another
		// value. A run that is open has its marker.
		held := s.s.held
		if len(s.s.runs) > 0 && s.s.open {
			held = held[s.s.runs[0].end:]
		}
		s.s = scanner{a: a}
		out = s.s.feed(out, held, false)
	}
	return s.s.feed(out, piece, last)
}

// Writer redacts what is written to it on its way to another writer.
type Writer struct {
	w  io.Writer
	mu sync.Mutex
	s  stream
}

// Writer returns a writer on top of w. It holds back what may be the beginning
// of a secret until that is certain, less than the longest form of one, or
// until Flush. It is safe for concurrent use.
func (r *Redactor) Writer(w io.Writer) *Writer { return &Writer{w: w, s: stream{r: r}} }

// Write implements io.Writer. It counts what is held back as written.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(p), w.pass(w.s.feed(p, false))
}

// Flush writes what is held back, also by a Writer below. A secret that is split by a
// flush is not found.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.pass(w.s.feed(nil, true))
	if below, ok := w.w.(*Writer); ok {
		err = errors.Join(err, below.Flush())
	}
	return err
}

func (w *Writer) pass(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	_, err := w.w.Write(p)
	return err
}
