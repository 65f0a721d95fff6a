package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

// maxArtifactsBytes limits the artifacts of a session, in bytes of their envelopes: the newest can
// be read.
const maxArtifactsBytes = 64 << 20

// ErrNoArtifact is returned if a session has no artifact with the name, or has it no more.
var ErrNoArtifact = errors.New("there is no such artifact in this session")

// ReadArtifact returns the whole text of an artifact of a session: of the result of a call, by the
// ID of the call, or of the words of a person in a turn, by [TurnArtifact]. events are those of
// the session. A denied call has no artifact, nor has a call of a person. The error is
// ErrNoArtifact or that of events.
func ReadArtifact(events iter.Seq2[session.Event, error], name string) (text string, _ error) {
	newer, found := 0, false // bytes of the results from the found one on
	for e, err := range events {
		if err != nil {
			return "", err
		}
		m, ok := e.Message()
		switch {
		case !ok, e.Turn == 0: // calls of a person are not the model's to read
		case e.Type == session.TypeToolResult:
			if newer += len(e.Body); e.Call != name {
				continue
			}
			var data llm.ResultData
			var envelope struct {
				Code tool.Code `json:"error_code"`
			}
			if json.Unmarshal(m.Data, &data) == nil && json.Unmarshal([]byte(data.Output), &envelope) == nil {
				text, found, newer = tool.PlainText(data.Output, data.Unsent), envelope.Code != tool.CodeDenied, len(e.Body)
			}
		case isPrompt(m) && TurnArtifact(e.Turn) == name:
			text, found, newer = strings.TrimPrefix(fmt.Sprintf("%s\n\n%s", text, m.Content), "\n\n"), true, 0
		}
	}
	if !found || newer > maxArtifactsBytes {
		return "", ErrNoArtifact
	}
	return text, nil
}
