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

// Log is one running session: it appends to a store and shows each event,
// stored or not, to whoever observes. It is safe for concurrent use.
type Log struct {
	store Store
	id    string
	now   func() time.Time

	mu        sync.Mutex
	preamble  []Draft // what is recorded before all else, and with it
	observers map[int]func(Event)
	nextID    int

	redactor *redact.Redactor
	deltas   func(piece string, last bool) string
	lastPart Draft // the delta that was redacted last
}

// SetRedactor makes everything that is recorded and shown from now on pass through
// r. It is called before the log is used.
func (l *Log) SetRedactor(r *redact.Redactor) { l.redactor, l.deltas = r, r.Stream() }

// NewLog returns the log of the session with that id, which may be new.
func NewLog(store Store, id string, now func() time.Time) *Log {
	return &Log{store: store, id: id, now: now, observers: map[int]func(Event){}}
}

// ID is the id of the session.
func (l *Log) ID() string { return l.id }

// Begin makes the drafts the first of a new session. They are recorded by the first
// Append, so that they need no write to the disk of their own.
func (l *Log) Begin(drafts ...Draft) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.preamble = l.ready(drafts)
}

// Append makes the drafts part of the session. When it returns they are
// durable. Their Session field is filled in.
func (l *Log) Append(ctx context.Context, drafts ...Draft) ([]Event, error) {
	drafts = l.ready(drafts)
	l.mu.Lock() // over the store too: observers see the events in the order of the log
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

// ready are drafts of this session without secrets.
func (l *Log) ready(drafts []Draft) []Draft {
	for i := range drafts {
		drafts[i].Session = l.id
		if l.redactor != nil {
			drafts[i].Body = l.redact(drafts[i])
		}
	}
	return drafts
}

// redact takes secrets out of an event. The summary of a call whose arguments hold
// one is made anew: it cuts them, and a piece of a secret is not known for one.
func (l *Log) redact(d Draft) json.RawMessage {
	m, parted := (Event{Header: Header{Type: d.Type}, Body: d.Body}).messageWithParts()
	if !parted {
		return l.redactBody(d.Type, d.Body)
	}
	parts := l.redactParts(m.Parts)
	m.Parts = nil
	body, err := json.Marshal(m)
	if err != nil {
		return json.RawMessage("null") // not reached: it was JSON
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

func (l *Log) redactBody(typ Type, was json.RawMessage) json.RawMessage {
	body := l.redactor.JSON(was)
	var m llm.Message
	var call llm.CallData
	if typ != TypeToolCall || bytes.Equal(body, was) || json.Unmarshal(body, &m) != nil || json.Unmarshal(m.Data, &call) != nil {
		return body
	}
	call.Function.Original = nil // its text is not always JSON, in which a secret is found however it is written
	anew, err := json.Marshal(llm.CallMessage(call))
	if err != nil {
		return body // not reached: it was JSON
	}
	return l.redactor.JSON(anew)
}

// redactParts takes secrets out of texts, with what was kept of them, which the provider
// would no more take for its own. Images stay as they are: where the text of one happens to look like a
// secret, it would be an image no more. Whoever makes a part of what a tool returns looks at
// its bytes before.
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
			l.deltas("", true) // void, like the pieces before it
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

// redactDelta redacts a piece of an answer, in which a secret may begin or end.
// There is no body if all of it is held back. The lock is held.
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

// endDeltas shows what was held back of an answer, before the event that comes
// behind it. The lock is held.
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
		d.Body, _ = json.Marshal(Delta{Text: text}) // a string always encodes
	}
	return d
}

// Observe calls f for each event from now on, one at a time, until the
// returned function is called. f must not call the log.
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

// show is called with the lock held.
func (l *Log) show(events ...Event) {
	for _, e := range events {
		for _, f := range l.observers {
			f(e)
		}
	}
}

// During runs something and yields the events of the session that happen meanwhile, as
// they happen; the error of run comes last. A consumer that stops early cancels run, and
// is waited for until that has returned.
func (l *Log) During(ctx context.Context, run func(context.Context) error) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		events := make(chan Event)
		gone := make(chan struct{}) // closed when nobody reads any more
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
