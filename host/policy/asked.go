package policy

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/stockade-dev/stockade/host/tool"
)

// AnswerExpires is how long a question can be answered. It outlasts a lunch and
// not a night, after which nobody remembers what the question was about.
const AnswerExpires = time.Hour

// Put makes the question one that can be answered: of this session, asked at
// this moment. Its ID covers both, and all that would run.
func (q Question) Put(session string, at time.Time) Question {
	q.Session, q.Asked = session, at
	q.ID = q.digest()
	return q
}

// Settles returns nil if the answer is to this very question, in time. An
// answer to any other call, to the same call of another session, or from
// yesterday allows nothing.
func (q Question) Settles(a Answer, now time.Time) error {
	switch {
	case q.Asked.IsZero():
		return errors.New("the question was never put")
	case a.Question != q.digest():
		return errors.New("the answer is to another question")
	case now.Before(q.Asked) || now.Sub(q.Asked) > AnswerExpires:
		return fmt.Errorf("the question was not answered within %s", AnswerExpires)
	}
	return nil
}

// digest identifies what was asked. Each string is preceded by its length, so
// no two questions share an encoding.
func (q Question) digest() (id [32]byte) {
	h := sha256.New()
	var n [8]byte
	put := func(v uint64) {
		binary.BigEndian.PutUint64(n[:], v)
		h.Write(n[:])
	}
	for _, list := range [][]string{
		{q.Session, q.Call.ID, q.Tool, string(q.Call.Args), string(q.Call.Caller), q.Call.Cwd, q.Module, q.Command, q.Dir, q.Changes},
		q.Paths, q.Network, tool.SecretNames(q.Secrets),
	} {
		put(uint64(len(list)))
		for _, s := range list {
			put(uint64(len(s)))
			h.Write([]byte(s))
		}
	}
	put(uint64(q.Call.Turn))
	put(uint64(q.Call.Step))
	put(uint64(q.Asked.UnixNano()))
	return [32]byte(h.Sum(nil))
}
