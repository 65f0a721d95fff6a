package session

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"hash"
	"strings"
	"time"

	"github.com/stockade-dev/stockade/host/llm"
)

// Type says what happened. Types are part of the documented contract of
// `--json` and of exported sessions: new ones may come, old ones stay.
type Type string

// The stored types, in the order in which a turn brings them.
const (
	TypeSessionStarted   Type = "session.started"
	TypeTurnStarted      Type = "turn.started"
	TypeMessage          Type = "message"       // a canonical message but the two below
	TypeToolCall         Type = "tool_call"     // a canonical message: the caller asks for a call
	TypeDecision         Type = "call.decision" // what policy says of it, and who answered if it asked
	TypeCallIntended     Type = "call.intended" // durable before the call has any effect
	TypeCallChanges      Type = "call.changes"  // durable before the changes of the call are made
	TypeToolStoreChanges Type = "call.kept"     // what the call keeps; stands right before its result
	TypeToolResult       Type = "tool_result"   // a canonical message: what came of the call
	TypeStepEnded        Type = "step.ended"
	TypeTurnEnded        Type = "turn.ended"
)

// The types that are shown and never stored.
const (
	TypeDelta     Type = "delta"           // a piece of the model's answer
	TypeReasoning Type = "delta.reasoning" // the model thinks
	TypeRestart   Type = "delta.restart"   // the pieces of this step are void, the request is sent again
	TypeCallState Type = "call.state"      // a call has entered a state
	TypeProgress  Type = "progress"        // something takes time: compiling, waiting
)

// Event is one entry of a session.
type Event struct {
	// Header is what the chain covers. It stays when the body is deleted.
	Header
	// Body is JSON, of the Go type that belongs to the event's type; nil when
	// it has been deleted.
	Body json.RawMessage
	// Salt hides a short body from whoever has only the digest. It is deleted
	// with the body. Nil for an event that is not stored.
	Salt []byte
}

// Header is the part of an event that no deletion takes away. It names no
// file and holds no text from a person, a model or a tool.
type Header struct {
	Seq     uint64 // position in the store, from 1; 0 for an event that is not stored
	Session string
	Time    time.Time
	Type    Type
	Turn    int    // from 1; 0 outside a turn
	Step    int    // from 1 in each turn; 0 outside a step
	Call    string // id of the call that the event belongs to, if any

	Digest      [32]byte // of salt and body
	Prev        [32]byte // Hash of the event before this one in the store; zero for the first
	SessionPrev [32]byte // Hash of the event before this one in the session; zero for the first
	Hash        [32]byte // of everything above
}

// SaltBytes is the length of a salt.
const SaltBytes = 16

// Draft is an event before the store has placed it. A body that is nil or
// empty is stored as null, because an event without a body is one whose body
// has been deleted.
type Draft struct {
	Session string
	Type    Type
	Turn    int
	Step    int
	Call    string
	Body    json.RawMessage
	// Preimages are contents of files of which the body has the SHA-256. They are no
	// part of the event: the store keeps them while it has room, see [Store.Preimage].
	Preimages [][]byte
}

// What the images of a draft may have, in bytes.
const (
	MaxPreimageBytes  = 16 << 20 // each
	MaxPreimagesBytes = 64 << 20 // together
)

// NewDraft is a draft whose body is of the Go type that belongs to the event's type.
// The session is filled in by the log.
func NewDraft(typ Type, turn, step int, call string, body any) Draft {
	data, err := json.Marshal(body)
	if err != nil {
		panic(err) // our own types, and JSON in them that we have made
	}
	return Draft{Type: typ, Turn: turn, Step: step, Call: call, Body: data}
}

// BodyDigest is the salted digest of a body: SHA-256 over
// "stockade body 1\n", the salt and the body. The salt has a fixed length, so
// the two cannot be shifted against each other. See RATIONALE, "Why does the
// chain cover a salted digest of the body, and not the body?"
func BodyDigest(salt, body []byte) [32]byte {
	h := sha256.New()
	h.Write([]byte("stockade body 1\n"))
	h.Write(salt)
	h.Write(body)
	return [32]byte(h.Sum(nil))
}

// ComputeHash is the link of the chain: SHA-256 over "stockade event 1\n" and
// the header's fields in the order below, each string and number written so
// that no two headers share an encoding. The format never changes; another
// one gets another first line. See RATIONALE, "Why two links in each event?"
func (h *Header) ComputeHash() [32]byte {
	d := sha256.New()
	d.Write([]byte("stockade event 1\n"))
	writeUint(d, h.Seq)
	writeString(d, h.Session)
	writeUint(d, uint64(h.Time.UnixNano()))
	writeString(d, string(h.Type))
	writeUint(d, uint64(h.Turn))
	writeUint(d, uint64(h.Step))
	writeString(d, h.Call)
	d.Write(h.Digest[:])
	d.Write(h.Prev[:])
	d.Write(h.SessionPrev[:])
	return [32]byte(d.Sum(nil))
}

func writeUint(d hash.Hash, v uint64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], v)
	d.Write(b[:])
}

func writeString(d hash.Hash, s string) {
	writeUint(d, uint64(len(s)))
	d.Write([]byte(s))
}

// Seal places a draft behind the two events that precede it and fills in
// everything that the chain needs. Stores call it inside their transaction.
func Seal(d Draft, seq uint64, now time.Time, prev, sessionPrev [32]byte) Event {
	if len(d.Body) == 0 {
		d.Body = json.RawMessage("null")
	}
	salt := make([]byte, SaltBytes)
	rand.Read(salt) // never fails: crypto/rand ends the process instead
	e := Event{
		Header: Header{
			Seq: seq, Session: d.Session, Time: now.UTC(), Type: d.Type,
			Turn: d.Turn, Step: d.Step, Call: d.Call,
			Digest: BodyDigest(salt, d.Body), Prev: prev, SessionPrev: sessionPrev,
		},
		Body: d.Body,
		Salt: salt,
	}
	e.Hash = e.ComputeHash()
	return e
}

// idAlphabet is Crockford's base 32 in lower case: no i, l, o or u, so that
// an id can be read out and typed in.
const idAlphabet = "0123456789abcdefghjkmnpqrstvwxyz"

// NewID makes the id of a session: ten characters of time, so that ids sort by
// age, and ten of chance.
func NewID(now time.Time) string {
	var b strings.Builder
	ms := uint64(now.UnixMilli())
	for shift := 45; shift >= 0; shift -= 5 {
		b.WriteByte(idAlphabet[ms>>shift&31])
	}
	var random [10]byte
	rand.Read(random[:])
	for _, r := range random {
		b.WriteByte(idAlphabet[r&31])
	}
	return b.String()
}

// ValidID reports whether id has the form that [NewID] gives.
func ValidID(id string) bool { return len(id) == 20 && strings.Trim(id, idAlphabet) == "" }

// ForDisplay is the event with the images of its message left out, and what a provider
// has kept with it: what people and programs get to see of it. The log has them.
func (e Event) ForDisplay() Event {
	m, ok := e.messageWithParts()
	if !ok {
		return e
	}
	if body, err := json.Marshal(m.ForDisplay()); err == nil {
		e.Body = body
	}
	return e
}

// messageWithParts is the message of the event if it has parts. Most have none, which is found out
// without reading them.
func (e Event) messageWithParts() (llm.Message, bool) {
	if !bytes.Contains(e.Body, []byte(`"parts":[`)) {
		return llm.Message{}, false
	}
	m, ok := e.Message()
	return m, ok && len(m.Parts) > 0
}

// Message returns the canonical message that the event holds, if it is one.
func (e Event) Message() (llm.Message, bool) {
	switch e.Type {
	case TypeMessage, TypeToolCall, TypeToolResult:
		var m llm.Message
		if e.Body == nil || json.Unmarshal(e.Body, &m) != nil {
			return llm.Message{}, false
		}
		return m, true
	}
	return llm.Message{}, false
}
