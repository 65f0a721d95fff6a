package agent

import (
	"encoding/json"
	"regexp"
	"sync"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/session"
)

const (
	maxWritingCalls = 32      // number of calls of one reply that are shown while they arrive
	maxSubjectBytes = 4 << 10 // bytes of arguments in which the subject is looked for
	writingStep     = 4 << 10 // bytes of arguments after which a call is shown again
)

// subject matches the first argument that tells what a call is about. Inside of another argument,
// its quotes would be escaped.
var subject = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`"(?:path|command|url|pattern)"\s*:\s*("(?:[^"\\]|\\.)*")`)
})

// writing holds the calls of a reply that is arriving, by their index. The zero value is an empty
// reply.
type writing map[int]*writingCall

type writingCall struct {
	shown session.CallWriting // state that is shown
	bytes int                 // bytes of arguments so far
	head  string              // beginning of the arguments; empty once the subject is known
}

// add takes the pieces of calls, and returns the calls to show again.
func (w writing) add(pieces []llm.CallDelta) (out []session.CallWriting) {
	for _, d := range pieces {
		c := w[d.Index]
		if c == nil {
			if len(w) >= maxWritingCalls {
				continue
			}
			c = &writingCall{shown: session.CallWriting{Number: len(w) + 1}}
			w[d.Index] = c
		}
		now := c.shown
		now.Tool += d.Name
		c.bytes += len(d.Arguments)
		if now.Subject == "" && len(c.head) < maxSubjectBytes {
			c.head += d.Arguments[:min(len(d.Arguments), maxSubjectBytes-len(c.head))]
			if m := subject().FindStringSubmatch(c.head); m != nil && json.Unmarshal([]byte(m[1]), &now.Subject) == nil {
				c.head = ""
			}
		}
		if now != c.shown || c.bytes-c.shown.Bytes >= writingStep {
			now.Bytes = c.bytes
			c.shown = now
			out = append(out, now)
		}
	}
	return out
}
