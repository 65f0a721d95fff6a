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

// Errors that callers tell apart.
var (
	// ErrNoSession is returned for an id, or the beginning of one, that no session has.
	ErrNoSession = errors.New("no such session")
	// ErrAmbiguous is returned for the beginning of an id that several sessions share.
	ErrAmbiguous = errors.New("several sessions begin so")
	// ErrNoPreimage is returned for a content that was not given to the store, was
	// deleted, or has made room for newer ones.
	ErrNoPreimage = errors.New("the content is not kept")
	// ErrNewer is returned by a store that a newer version of the program has written.
	ErrNewer = errors.New("the store was written by a newer version of stockade")
)

// Info sums a session up.
type Info struct {
	ID        string
	Started   time.Time
	Last      time.Time
	Events    int
	Turns     int
	Calls     int
	Title     string // first line of the first prompt; empty when there is none
	OpenCalls int    // calls that were intended and have no result
	// Workspace is the directory in which it began; empty when its first body
	// does not say, or has been deleted.
	Workspace string
}

// OpenCall is a call that was intended and has no result.
type OpenCall struct {
	Session string
	Turn    int
	Step    int
	Call    string
	Time    time.Time // of the intent
	Name    string    // the tool, when the body is still there
}

// Store keeps events. Implementations are safe for concurrent use, also by
// several processes at once, and pass the suite in sessiontest.
type Store interface {
	// Append seals the drafts in order, all or none, and returns when they are
	// durable: neither a crash of the process nor of the machine loses them.
	Append(ctx context.Context, drafts ...Draft) ([]Event, error)
	// Events yields the events of a session in order, those with Seq > after.
	// An error ends the sequence. An unknown session yields nothing.
	Events(ctx context.Context, session string, after uint64) iter.Seq2[Event, error]
	// All yields every event of the store in order of Seq.
	All(ctx context.Context) iter.Seq2[Event, error]
	// Sessions lists the sessions, newest activity first.
	Sessions(ctx context.Context) ([]Info, error)
	// Resolve completes the beginning of an id; "last" is the session with the
	// newest activity. ErrNoSession, ErrAmbiguous.
	Resolve(ctx context.Context, prefix string) (string, error)
	// OpenCalls lists the calls without a result.
	OpenCalls(ctx context.Context) ([]OpenCall, error)
	// Preimage returns the content with that SHA-256 which came with an event of the
	// session. The oldest images of all sessions make room for new ones. ErrNoImage;
	// any other error says that what is kept cannot be used.
	Preimage(ctx context.Context, session string, sum [32]byte) ([]byte, error)
	// DeleteBodies removes the bodies, salts and images of a session for good. The
	// headers stay, and the chain still verifies.
	DeleteBodies(ctx context.Context, session string) error
	Close() error
}

// Report says what a verification found.
type Report struct {
	Events  uint64 // verified
	Deleted uint64 // of these, events whose body has been deleted
	Head    [32]byte
	// OpenCalls are the calls without a result: they still run, a crash ended them, or
	// the events behind them were removed.
	OpenCalls []OpenCall
}

// ChainError says where a chain is broken.
type ChainError struct {
	Seq     uint64 // of the first event that is not as it was written
	Problem string
}

func (e *ChainError) Error() string { return fmt.Sprintf("event %d: %s", e.Seq, e.Problem) }

// VerifyStore checks every event of a store and both links of each. The
// error is a *ChainError when an event was changed, moved, added or removed.
// Events missing from the end cannot be seen from within; compare Head with
// one noted earlier.
func VerifyStore(events iter.Seq2[Event, error]) (Report, error) {
	return verify(events, true)
}

// VerifySession checks the events of one session, which may be an export that
// has left its store.
func VerifySession(events iter.Seq2[Event, error]) (Report, error) {
	return verify(events, false)
}

func verify(events iter.Seq2[Event, error], whole bool) (r Report, err error) {
	c := chain{wholeStore: whole, sessions: map[string]sessionHead{}}
	open := map[[2]string]Event{} // intents, by session and call
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

// VerifyEach yields the events of a session from its first, and checks the order, the hash and
// the body of each. One that is not as it was written is a *ChainError, which ends the
// sequence. Events that are missing from the end cannot be noticed. A check takes some
// microseconds for an event, less than to read it.
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

// chain is the state of the check of a chain.
type chain struct {
	wholeStore bool // the chain is that of a store, not of some of its sessions
	seq        uint64
	prev       [32]byte
	sessions   map[string]sessionHead
}

// sessionHead is the last event of a session: its hash, and whether its body is there.
type sessionHead struct {
	hash    [32]byte
	hasBody bool
}

// check returns a *ChainError if the next event is not as it was written.
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
	case e.Body == nil && last.hasBody: // the bodies of a session are removed together
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
		_ = json.Unmarshal(e.Body, &intent) // deleted: no name
		out = append(out, OpenCall{Session: e.Session, Turn: e.Turn, Step: e.Step, Call: e.Call, Time: e.Time, Name: intent.Tool})
	}
	return out
}
