package session

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/redact"
)

// Log is the log of one running session. It appends events to a store, and shows each event,
// stored or not, to the observers. It is safe for concurrent use.
type Log struct {
	store Store
	id    string
	now   func() time.Time

	mu        sync.Mutex          // guards the fields below
	preamble  []Draft             // drafts of [Log.Begin] that are not recorded yet
	observers map[int]func(Event) // see Observe
	nextID    int                 // key of the next observer

	redactor *redact.Redactor                     // nil: nothing is redacted
	deltas   func(piece string, last bool) string // redacts the pieces of an answer, see [redact.Redactor.Stream]
	lastPart Draft                                // the latest delta; the end of its text may be held back
}

// SetRedactor makes r redact everything that is recorded or shown. Call it before using the log.
func (l *Log) SetRedactor(r *redact.Redactor) { l.redactor, l.deltas = r, r.Stream() }

// NewLog returns the log of the session with the id. The session may be new. now returns the time
// of events that are not stored.
func NewLog(store Store, id string, now func() time.Time) *Log {
	return &Log{store: store, id: id, now: now, observers: map[int]func(Event){}}
}

// ID returns the id of the session.
func (l *Log) ID() string { return l.id }

// Events yields the stored events of the session from the first, see [Store].
func (l *Log) Events(ctx context.Context) iter.Seq2[Event, error] {
	return l.store.Events(ctx, l.id, 0)
}

// Begin sets the first drafts of a new session. The first Append records them before its own, in
// the same transaction, which saves a write to the disk.
func (l *Log) Begin(drafts ...Draft) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.preamble = l.ready(drafts)
}

// Append adds the drafts to the session, sets their Session field and redacts them. When it
// returns their events without an error, they are durable.
func (l *Log) Append(ctx context.Context, drafts ...Draft) ([]Event, error) {
	drafts = l.ready(drafts)
	l.mu.Lock() // also during the store's Append, so that observers see the events in the order of the log
	defer l.mu.Unlock()
	l.endDeltas()
	begun := len(l.preamble)
	if begun > 0 {
		drafts = slices.Concat(l.preamble, drafts)
	}
	events, err := l.store.Append(ctx, drafts...)
	if err != nil {
		return nil, err
	}
	l.preamble = nil
	l.show(events...)
	return events[begun:], nil
}

// ready sets the session of the drafts, and redacts them.
func (l *Log) ready(drafts []Draft) []Draft {
	for i := range drafts {
		drafts[i].Session = l.id
		if l.redactor != nil {
			drafts[i].Body = l.redact(drafts[i])
		}
	}
	return drafts
}

// redact returns the body of an event without secrets. If the arguments of a call held a secret,
// the summary of the call is made anew: it may hold a part of a secret.
func (l *Log) redact(d Draft) json.RawMessage {
	m, parted := (Event{Header: Header{Type: d.Type}, Body: d.Body}).messageWithParts()
	if !parted {
		return l.redactBody(d.Type, d.Body)
	}
	parts := l.redactParts(m.Parts)
	m.Parts = nil
	body, err := json.Marshal(m)
	if err != nil {
		return json.RawMessage("null") // not reached: it was JSON before
	}
	body = l.redactBody(d.Type, body)
	var clean llm.Message
	if json.Unmarshal(body, &clean) != nil || clean.Kind != m.Kind {
		return body
	}
	clean.Parts = parts
	whole, err := json.Marshal(clean)
	if err != nil {
		return body // not reached
	}
	return whole
}

func (l *Log) redactBody(typ Type, original json.RawMessage) json.RawMessage {
	body := l.redactor.JSON(original)
	var m llm.Message
	var call llm.CallData
	if typ != TypeToolCall || bytes.Equal(body, original) || json.Unmarshal(body, &m) != nil || json.Unmarshal(m.Data, &call) != nil {
		return body
	}
	call.Function.Original = nil // it may not be JSON, in which every way to write a secret is recognised
	anew, err := json.Marshal(llm.CallMessage(call))
	if err != nil {
		return body // not reached: it was JSON before
	}
	return l.redactor.JSON(anew)
}

// redactParts returns the parts with the secrets removed from texts. It also removes the provider
// data of a changed text, which the provider would not accept any more, and provider data with a
// secret. Images stay unchanged: the bytes of an image may look like a secret by chance, and
// removing them would destroy it. They are checked earlier, when a result gets the image.
func (l *Log) redactParts(parts []llm.Part) []llm.Part {
	parts = slices.Clone(parts)
	for i := range parts {
		p := &parts[i]
		if clean := l.redactor.Text(p.Text); clean != p.Text {
			p.Text, p.ProviderData = clean, nil
		}
		if p.ProviderData != nil && !bytes.Equal(l.redactor.JSON(p.ProviderData.Data), p.ProviderData.Data) {
			p.ProviderData = nil
		}
	}
	return parts
}

// Emit shows an event that is not stored.
func (l *Log) Emit(d Draft) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.redactor == nil:
	case d.Type == TypeDelta:
		if d = l.redactDelta(d); d.Body == nil {
			return
		}
	default:
		if d.Type == TypeRestart {
			l.deltas("", true) // the pieces are void, and so is the text that was held back
		}
		l.endDeltas()
		d.Body = l.redactor.JSON(d.Body)
	}
	l.emit(d)
}

func (l *Log) emit(d Draft) {
	l.show(Event{
		Header: Header{Session: l.id, Time: l.now().UTC(), Type: d.Type, Turn: d.Turn, Step: d.Step, Call: d.Call},
		Body:   d.Body,
	})
}

// redactDelta redacts a piece of an answer, which may hold only the beginning or the end of a
// secret. The body is nil if the whole piece is held back. The caller holds l.mu.
func (l *Log) redactDelta(d Draft) Draft {
	var delta Delta
	if json.Unmarshal(d.Body, &delta) != nil {
		d.Body = l.redactor.JSON(d.Body)
		return d
	}
	l.lastPart = d
	text := l.deltas(delta.Text, false)
	if text == delta.Text {
		return d
	}
	return withText(d, text)
}

// endDeltas shows the text of deltas that was held back, before the next event. The caller holds
// l.mu.
func (l *Log) endDeltas() {
	if l.deltas == nil {
		return
	}
	if d := withText(l.lastPart, l.deltas("", true)); d.Body != nil {
		l.emit(d)
	}
}

func withText(d Draft, text string) Draft {
	d.Body = nil
	if text != "" {
		d.Body, _ = json.Marshal(Delta{Text: text}) // strings can always be encoded
	}
	return d
}

// Observe calls f for each later event, one at a time, until stop is called. f must not call l.
func (l *Log) Observe(f func(Event)) (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id := l.nextID
	l.nextID++
	l.observers[id] = f
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.observers, id)
	}
}

// show calls the observers. The caller holds l.mu.
func (l *Log) show(events ...Event) {
	for _, e := range events {
		for _, f := range l.observers {
			f(e)
		}
	}
}

// During calls run, and yields the events of the session that happen meanwhile. An error of run
// comes last. If the consumer stops early, During cancels run and waits for its end.
func (l *Log) During(ctx context.Context, run func(context.Context) error) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		events := make(chan Event)
		gone := make(chan struct{}) // closed when the consumer has stopped
		stop := l.Observe(func(e Event) {
			select {
			case events <- e:
			case <-gone:
			}
		})
		var err error
		go func() {
			defer close(events)
			err = run(ctx)
			stop()
		}()
		reading := true
		for e := range events {
			if reading && !yield(e, nil) {
				reading = false
				cancel()
				close(gone)
			}
		}
		if reading && err != nil {
			yield(Event{}, err)
		}
	}
}
