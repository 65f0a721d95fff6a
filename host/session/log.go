package session

import (
	"context"
	"sync"
	"time"
)

// Log is one running session: it appends to a store and shows each event,
// stored or not, to whoever observes. It is safe for concurrent use.
type Log struct {
	store Store
	id    string
	now   func() time.Time

	mu        sync.Mutex
	observers map[int]func(Event)
	nextID    int
}

// NewLog returns the log of the session with that id, which may be new.
func NewLog(store Store, id string, now func() time.Time) *Log {
	return &Log{store: store, id: id, now: now, observers: map[int]func(Event){}}
}

// ID is the id of the session.
func (l *Log) ID() string { return l.id }

// Append makes the drafts part of the session. When it returns they are
// durable. Their Session field is filled in.
func (l *Log) Append(ctx context.Context, drafts ...Draft) ([]Event, error) {
	for i := range drafts {
		drafts[i].Session = l.id
	}
	l.mu.Lock() // over the store too: observers see the events in the order of the log
	defer l.mu.Unlock()
	events, err := l.store.Append(ctx, drafts...)
	if err != nil {
		return nil, err
	}
	l.show(events...)
	return events, nil
}

// Emit shows an event that is not stored.
func (l *Log) Emit(d Draft) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.show(Event{
		Header: Header{Session: l.id, Time: l.now().UTC(), Type: d.Type, Turn: d.Turn, Step: d.Step, Call: d.Call},
		Body:   d.Body,
	})
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
