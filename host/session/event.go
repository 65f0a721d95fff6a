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

// Type is the type of an event. Types are part of the documented contract of `--json` and
// of exported sessions: new ones may be added, old ones stay.
type Type string

// The stored types, in the order of a turn.
const (
	TypeSessionStarted   Type = "session.started"
	TypeForked           Type = "session.forked" // copies of another session's events come next
	TypeTurnStarted      Type = "turn.started"
	TypeMessage          Type = "message"       // a canonical message, except calls and results of tools
	TypeToolCall         Type = "tool_call"     // a canonical message: a caller asks for a call
	TypeDecision         Type = "call.decision" // the decision of policy, and the answer of a person
	TypeCallIntended     Type = "call.intended" // durable before the call has any effect
	TypeCallChanges      Type = "call.changes"  // durable before the changes of the call are made
	TypeToolStoreChanges Type = "call.kept"     // changes of the module's store; stands right before the result
	TypeToolResult       Type = "tool_result"   // a canonical message: the result of the call
	TypeStepEnded        Type = "step.ended"    // the model has answered one request
	TypeTurnEnded        Type = "turn.ended"
	TypeRewound          Type = "conversation.rewound" // outside a turn: earlier turns are no part of the conversation any more
	TypeContextReduced   Type = "context.reduced"      // parts of the conversation that later requests leave out
	TypeContextCompacted Type = "context.compacted"    // a summary that replaces a part of the conversation
)

// The types of events that are shown but never stored.
const (
	TypeDelta     Type = "delta"           // a piece of the model's answer
	TypeReasoning Type = "delta.reasoning" // the model is thinking
	TypeWriting   Type = "delta.call"      // the model is writing a call
	TypeRestart   Type = "delta.restart"   // the request is sent again, and the pieces of this step are void
	TypeCallState Type = "call.state"      // a call has entered a state
	TypeProgress  Type = "progress"        // an operation takes time, such as compiling or waiting
	// TypeQuestion is a question that a program may answer, see [Question].
	TypeQuestion Type = "awaiting_permission"
)

// Event is one entry of a session.
type Event struct {
	Header                 // covered by the chain; it stays when the body is deleted
	Body   json.RawMessage // JSON of the Go type that belongs to Type; nil: it was deleted
	// Salt hides a short body from a reader who has only the digest. It is deleted with the body.
	// Nil: the event is not stored, or its body was deleted.
	Salt []byte
}

// Header is the part of an event that is never deleted. It has no names of files and no text
// from a person, a model or a tool.
type Header struct {
	Seq     uint64 // position in the store, from 1; 0 for an event that is not stored
	Session string
	Time    time.Time // time of the append, in UTC
	Type    Type
	Turn    int    // number of the turn in the session, from 1; 0 outside a turn
	Step    int    // number of the step in the turn, from 1; 0 outside a step
	Call    string // id of the call; empty: the event belongs to none

	Digest      [32]byte // salted digest of the body, see [BodyDigest]
	Prev        [32]byte // Hash of the preceding event in the store; zero for the first
	SessionPrev [32]byte // Hash of the preceding event in the session; zero for the first
	Hash        [32]byte // hash of all fields above, see [Header.ComputeHash]
}

// SaltBytes is the number of bytes of a salt.
const SaltBytes = 16

// Draft is an event that is not in the store yet. A nil or empty body is stored as null, because
// an event without a body is one whose body was deleted.
type Draft struct {
	Session string
	Type    Type
	Turn    int
	Step    int
	Call    string
	Body    json.RawMessage
	// Preimages are contents of files whose SHA-256 is in the body. They are not part of the
	// event. The store keeps them while it has room, see [Store.Preimage].
	Preimages [][]byte
}

// Limits of the preimages of a draft, in bytes; a draft beyond them is refused.
const (
	MaxPreimageBytes  = 16 << 20 // bytes of each preimage
	MaxPreimagesBytes = 64 << 20 // bytes of all preimages of a draft together
)

// NewDraft returns a draft. body must have the Go type for typ. The log sets the session.
func NewDraft(typ Type, turn, step int, call string, body any) Draft {
	data, err := json.Marshal(body)
	if err != nil {
		panic(err) // not reached: bodies are our own types, and JSON in them is valid
	}
	return Draft{Type: typ, Turn: turn, Step: step, Call: call, Body: data}
}

// BodyDigest returns the salted digest of a body: SHA-256 over "stockade body 1\n", the salt and
// the body. The salt has a fixed length, so the end of the salt cannot be read as the beginning of
// the body. See RATIONALE, "Why does the chain cover a salted digest of the body, and not the
// body?"
func BodyDigest(salt, body []byte) [32]byte {
	h := sha256.New()
	h.Write([]byte("stockade body 1\n"))
	h.Write(salt)
	h.Write(body)
	return [32]byte(h.Sum(nil))
}

// ComputeHash returns the hash of the header, which is a link of the chain: SHA-256 over "stockade
// event 1\n" and the fields in the order below. Strings have their lengths, so that no two headers
// share an encoding. This format never changes; a new one gets another first line. See RATIONALE,
// "Why two links in each event?"
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

// Seal makes an event of a draft: it sets its position, its time, its links and its hashes. prev
// and sessionPrev are the hashes of the preceding events in the store and in the session; zero:
// there is none. Stores call Seal in their transaction.
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

// idAlphabet is Crockford's base 32 in lower case. It has no i, l, o or u, so that ids can be
// read aloud and typed.
const idAlphabet = "0123456789abcdefghjkmnpqrstvwxyz"

// NewID returns a new id of a session. Its first ten characters are the time, so that ids sort by
// age, and its other ten are random.
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

// ValidID reports whether id has the form of an id from [NewID].
func ValidID(id string) bool { return len(id) == 20 && strings.Trim(id, idAlphabet) == "" }

// ForDisplay returns the event for people and programs: without the images and the provider data
// of its message. The log has both.
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

// messageWithParts returns the message of the event; ok is false if there is no message, or if it
// has no parts. Most messages have none, and are not decoded to find out.
func (e Event) messageWithParts() (m llm.Message, ok bool) {
	if !bytes.Contains(e.Body, []byte(`"parts":[`)) {
		return llm.Message{}, false
	}
	m, ok = e.Message()
	return m, ok && len(m.Parts) > 0
}

// Message returns the canonical message in the body; ok is false if there is none, or if the
// body was deleted.
func (e Event) Message() (m llm.Message, ok bool) {
	switch e.Type {
	case TypeMessage, TypeToolCall, TypeToolResult:
		if e.Body == nil || json.Unmarshal(e.Body, &m) != nil {
			return llm.Message{}, false
		}
		return m, true
	}
	return llm.Message{}, false
}
