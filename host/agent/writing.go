package agent

import (
	"cmp"
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

// writing holds what is shown of the calls of a reply that is arriving, by their index. It is empty
// at first.
type writing map[int]session.CallWriting

// add takes a piece of a call, with the arguments of the call so far. It reports whether the call
// is shown again, and as what.
func (w writing) add(piece llm.CallDelta, arguments []byte) (now session.CallWriting, news bool) {
	shown, known := w[piece.Index]
	if !known && len(w) >= maxWritingCalls {
		return now, false
	}
	if !known {
		shown = session.CallWriting{Number: len(w) + 1}
	}
	now = shown
	now.Tool = cmp.Or(now.Tool, piece.Name) // some servers repeat it
	if now.Subject == "" && len(arguments)-len(piece.Arguments) < maxSubjectBytes {
		if m := subject().FindSubmatch(arguments[:min(len(arguments), maxSubjectBytes)]); m != nil {
			_ = json.Unmarshal(m[1], &now.Subject) // it stays empty
		}
	}
	if news = now != shown || len(arguments)-shown.Bytes >= writingStep; news {
		now.Bytes = len(arguments)
		shown = now
	}
	w[piece.Index] = shown
	return now, news
}
