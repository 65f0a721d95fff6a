package session

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/stockade-dev/stockade/host/visible"
)

// line is the form of [Event.Line].
type line struct {
	Seq     uint64          `json:"seq,omitempty"` // position in the store; absent if the event is not stored
	Session string          `json:"session"`
	Time    time.Time       `json:"time"`
	Type    Type            `json:"type"`
	Turn    int             `json:"turn,omitempty"`
	Step    int             `json:"step,omitempty"`
	Call    string          `json:"call,omitempty"`
	Data    json.RawMessage `json:"data"`
}

// Line returns the event as one line of JSON with a final newline. Every other character that some
// reader takes for a line end is escaped. The form is a documented contract of `--json` and of
// exported sessions.
func (e Event) Line() ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(line{
		Seq: e.Seq, Session: e.Session, Time: e.Time, Type: e.Type, Turn: e.Turn, Step: e.Step, Call: e.Call, Data: e.Body,
	})
	if err != nil {
		return nil, err
	}
	return visible.EscapeJSON(out.Bytes()), nil
}
