package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"
)

// Errors of stores.
var (
	// ErrNoSession is returned if no session has the id, or an id with the given beginning.
	ErrNoSession = errors.New("no such session")
	// ErrAmbiguous is returned if the ids of several sessions have the given beginning.
	ErrAmbiguous = errors.New("several ids begin like this")
	// ErrNoPreimage is returned for a content that the store never got, or that was deleted, or
	// had to make room for newer ones.
	ErrNoPreimage = errors.New("the content is not kept")
	// ErrNewer is returned if a newer version of the program has written the store.
	ErrNewer = errors.New("the store was written by a newer version of stockade")
)

// Info summarizes a session. Its JSON is a documented contract, see `session list --json`.
type Info struct {
	ID        string    `json:"id"`
	Title     string    `json:"title"` // first line of the first prompt, at most 80 characters; empty: there is none
	Started   time.Time `json:"started"`
	Last      time.Time `json:"last"`  // time of the latest event
	Turns     int       `json:"turns"` // number of turns that have begun
	Calls     int       `json:"calls"` // number of calls that were asked for, whether they ran or not
	Events    int       `json:"events"`
	Workspace string    `json:"workspace,omitempty"` // the session's first directory; empty: not recorded, or its body was deleted
	OpenCalls int       `json:"-"`                   // number of calls that were intended and have no result
	// Conversation is set if the session is one with a model, even if it has no turn yet. Of an old
	// session without turns it is set if there are several calls.
	Conversation bool `json:"-"`
}

// OpenCall is a call that was intended and has no result. Its JSON is a documented contract, see
// `audit verify --json`.
type OpenCall struct {
	Session string    `json:"session"`
	Turn    int       `json:"-"`
	Step    int       `json:"-"`
	Call    string    `json:"call"`
	Time    time.Time `json:"-"`    // time of the intent
	Name    string    `json:"tool"` // name of the tool; empty: the body was deleted
}

// Store keeps events. Implementations are safe for concurrent use, also by several processes, and
// pass the suite in sessiontest.
type Store interface {
	// Append seals all drafts in order, or none. When it returns, their events are durable: no
	// crash of the process or the machine loses them.
	Append(ctx context.Context, drafts ...Draft) ([]Event, error)
	// Events yields the events of a session with Seq > after, in order. An error ends the
	// sequence. An unknown session yields nothing.
	Events(ctx context.Context, session string, after uint64) iter.Seq2[Event, error]
	// All yields every event of the store, in order of Seq.
	All(ctx context.Context) iter.Seq2[Event, error]
	// Sessions lists the sessions. The session with the latest event comes first.
	Sessions(ctx context.Context) ([]Info, error)
	// Resolve returns the id that begins with prefix. "last" stands for the session with the
	// latest event; an empty prefix fits none. The error wraps ErrNoSession or ErrAmbiguous if
	// there is not exactly one.
	Resolve(ctx context.Context, prefix string) (string, error)
	// OpenCalls lists the calls that were intended and have no result.
	OpenCalls(ctx context.Context) ([]OpenCall, error)
	// Preimage returns the content with the SHA-256 that was stored with an event of the
	// session. The error is ErrNoPreimage if the store does not have it: the oldest preimages of
	// all sessions make room for new ones. After any other error the content cannot be used.
	Preimage(ctx context.Context, session string, sum [32]byte) ([]byte, error)
	// DeleteBodies permanently removes the bodies, salts and preimages of a session. The headers
	// stay, and the chain still verifies.
	DeleteBodies(ctx context.Context, session string) error
	Close() error
}

// Report is the result of a verification.
type Report struct {
	Events  uint64   // number of verified events
	Deleted uint64   // number of Events whose body was deleted
	Head    [32]byte // Hash of the last event; zero: there is none
	// OpenCalls are the calls without a result: they are still running, a crash ended them, or the
	// events of their results were removed.
	OpenCalls []OpenCall
}

// ChainError is returned for an event that differs from the written one, or that is out of place.
type ChainError struct {
	Seq     uint64 // Seq of the first event that is wrong
	Problem string
}

func (e *ChainError) Error() string { return fmt.Sprintf("event %d: %s", e.Seq, e.Problem) }

// VerifyStore checks every event of a store, and both links of each. The error is a *ChainError if
// an event was changed, moved, added or removed. Events that are missing at the end cannot be
// noticed; compare Head with an earlier one.
func VerifyStore(events iter.Seq2[Event, error]) (Report, error) {
	return verify(events, true)
}

// VerifySession checks the events of one session, which may be exported, like VerifyStore but
// without the links between sessions.
func VerifySession(events iter.Seq2[Event, error]) (Report, error) {
	return verify(events, false)
}

func verify(events iter.Seq2[Event, error], whole bool) (r Report, err error) {
	c := chain{wholeStore: whole, sessions: map[string]sessionHead{}}
	open := map[[2]string]Event{} // intended calls without a result, by session and call
	defer func() { r.OpenCalls = openCalls(open) }()
	for e, err := range events {
		if err == nil {
			err = c.check(e)
		}
		if err != nil {
			return r, err
		}
		if e.Body == nil {
			r.Deleted++
		}
		r.Events++
		r.Head = e.Hash
		switch call := [2]string{e.Session, e.Call}; e.Type {
		case TypeCallIntended:
			open[call] = e
		case TypeToolResult:
			delete(open, call)
		}
	}
	return r, nil
}

// VerifyEach yields the events of a session from its first, and checks the order, the hash and the
// body of each. For an event that differs from the written one it yields a *ChainError, which ends
// the sequence. Events that are missing at the end cannot be noticed. A check takes some
// microseconds for an event, less than reading it.
func VerifyEach(events iter.Seq2[Event, error]) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		c := chain{sessions: map[string]sessionHead{}}
		for e, err := range events {
			if err == nil {
				err = c.check(e)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// chain is the state of the verification of a chain.
type chain struct {
	wholeStore bool                   // the events are those of a whole store, not of one session
	seq        uint64                 // Seq of the previous event
	prev       [32]byte               // Hash of the previous event
	sessions   map[string]sessionHead // previous event of each session
}

// sessionHead describes the previous event of a session.
type sessionHead struct {
	hash    [32]byte
	hasBody bool
}

// check returns a *ChainError if e was changed or does not follow the previous event.
func (c *chain) check(e Event) error {
	last := c.sessions[e.Session]
	switch {
	case c.wholeStore && e.Seq != c.seq+1:
		return &ChainError{c.seq + 1, fmt.Sprintf("is missing: event %d follows event %d", e.Seq, c.seq)}
	case e.Seq <= c.seq:
		return &ChainError{e.Seq, "is out of order"}
	case c.wholeStore && e.Prev != c.prev:
		return &ChainError{e.Seq, "does not follow the event before it"}
	case e.SessionPrev != last.hash:
		return &ChainError{e.Seq, "does not follow the event before it in its session"}
	case e.ComputeHash() != e.Hash:
		return &ChainError{e.Seq, "was changed after it was written"}
	case e.Body == nil && last.hasBody: // the bodies of a session are deleted together
		return &ChainError{e.Seq, "has lost its body, and an event before it has not"}
	case e.Body != nil && (len(e.Salt) != SaltBytes || BodyDigest(e.Salt, e.Body) != e.Digest):
		return &ChainError{e.Seq, "has a body that is not the one that was written"}
	}
	c.seq, c.prev = e.Seq, e.Hash
	c.sessions[e.Session] = sessionHead{e.Hash, e.Body != nil}
	return nil
}

func openCalls(intents map[[2]string]Event) []OpenCall {
	var out []OpenCall
	for _, e := range slices.SortedFunc(maps.Values(intents), func(a, b Event) int { return cmp.Compare(a.Seq, b.Seq) }) {
		var intent Intent
		_ = json.Unmarshal(e.Body, &intent) // a deleted body has no name
		out = append(out, OpenCall{Session: e.Session, Turn: e.Turn, Step: e.Step, Call: e.Call, Time: e.Time, Name: intent.Tool})
	}
	return out
}
