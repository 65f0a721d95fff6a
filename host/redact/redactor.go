package redact

import (
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
)

// MinBytes is the smallest length of a value that is redacted, in bytes. A shorter value would
// match ordinary text.
const MinBytes = 4

// Redactor replaces secrets in text. It knows the values that were added, each in these forms:
//
//   - as it is;
//   - in hex, lower or upper case;
//   - in base64, in either alphabet, padded or not, also as a part of a longer
//     encoded text;
//   - percent-encoded as by the usual encoders, in lower or upper hex;
//   - as a JSON string, also escaped as text in JSON up to twice more;
//   - as lines of a diff, if it has several lines, also in JSON.
//
// It does not know a part of a value, a value with other text in between (base64 that is
// broken into lines), one form inside another except for JSON, or any unusual encoding. A
// value shorter than [MinBytes] is not redacted.
//
// The time is linear in the text, whatever its content and however many values are known.
// The zero value and nil know no secret. It is safe for concurrent use. See RATIONALE, "Why
// a redactor of our own?"
type Redactor struct {
	a atomic.Pointer[automaton]

	mu       sync.Mutex
	values   map[string]bool
	patterns []pattern
}

// Add adds a secret value; one shorter than [MinBytes] is ignored. The part after the first
// space, and that after the first "=", is added, too, if it has at least 16 bytes: the value
// may be a scheme and a key, or a cookie.
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

// add adds a value in all its forms. r.mu is held.
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

// ContextValue is a value that is secret only between these two texts, and only in this form.
// It can be shorter than [MinBytes].
type ContextValue struct{ Before, Value, After string }

// AddContextValues adds values that are secret only in their contexts. The texts around them
// are not replaced.
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

// automaton returns the current automaton; nil: no value is known yet.
func (r *Redactor) automaton() *automaton {
	if r == nil {
		return nil
	}
	return r.a.Load()
}

// Finds reports whether a text holds a secret.
func (r *Redactor) Finds(text []byte) bool {
	a := r.automaton()
	return a != nil && a.find(text)
}

// Text returns the text without secrets.
func (r *Redactor) Text(text string) string {
	a := r.automaton()
	if a == nil || !a.find([]byte(text)) {
		return text
	}
	return string((&scanner{a: a}).feed(nil, []byte(text), true))
}

// Head returns the beginning of a text without secrets, at most limit bytes, and whether it is
// the whole text. It reads at most [Redactor.Longest] bytes beyond limit, so that no piece of
// a secret is left at the cut. Its length does not depend on the text after that: otherwise
// the author of the text could learn the beginning of a secret.
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

// Longest returns the length of the longest form of a value, in bytes; 0: no value is known.
// Code that cuts a text must redact this many bytes beyond the cut.
func (r *Redactor) Longest() int {
	if a := r.automaton(); a != nil {
		return a.longest
	}
	return 0
}

// Stream returns a function that takes a text in pieces and returns it in other pieces,
// without secrets, even those that are split between pieces. It holds back bytes that may be
// the beginning of a secret, until the last piece. One goroutine at a time may use it.
func (r *Redactor) Stream() func(piece string, last bool) string {
	s := stream{r: r}
	return func(piece string, last bool) string { return string(s.feed([]byte(piece), last)) }
}

// stream is a scanner that takes up new values of its Redactor between pieces.
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
		// The held bytes are scanned again: they may be the beginning of a new value.
		// The marker of an open run is already written.
		held := s.s.held
		if len(s.s.runs) > 0 && s.s.open {
			held = held[s.s.runs[0].end:]
		}
		s.s = scanner{a: a}
		out = s.s.feed(out, held, false)
	}
	return s.s.feed(out, piece, last)
}

// Writer redacts text on its way to another writer.
type Writer struct {
	w  io.Writer
	mu sync.Mutex
	s  stream
}

// Writer returns a writer on top of w. It holds back bytes that may be the beginning of a
// secret, fewer than the longest form of a value has, until more is written or Flush is
// called. It is safe for concurrent use.
func (r *Redactor) Writer(w io.Writer) *Writer { return &Writer{w: w, s: stream{r: r}} }

// Write implements io.Writer. Bytes that are held back count as written.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(p), w.pass(w.s.feed(p, false))
}

// Flush writes the bytes that are held back. If it writes to another Writer, it flushes that
// one, too. A secret that is split by a flush is not found.
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
