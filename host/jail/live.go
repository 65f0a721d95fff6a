package jail

import (
	"bytes"
	"sync"
	"time"
)

const (
	maxLiveBytes = 64 << 10 // bytes of a command's output; later output is shown only in the result
	// liveInterval is the time for which output is gathered before it is shown: a command can
	// write each byte separately.
	liveInterval = 50 * time.Millisecond
)

// liveOutput shows the first maxLiveBytes of its input while they arrive. A nil liveOutput
// shows nothing. It is safe for concurrent use.
type liveOutput struct {
	show func(string)

	mu       sync.Mutex  // guards the fields below
	accepted int         // bytes accepted so far, at most maxLiveBytes
	pending  []byte      // bytes that were accepted and not shown yet
	timer    *time.Timer // next flush; nil: none is scheduled
	ended    bool        // nothing more is shown
}

func (s *liveOutput) Write(p []byte) (int, error) {
	if s == nil {
		return len(p), nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	some := p[:min(len(p), maxLiveBytes-s.accepted)]
	if s.accepted += len(some); len(some) > 0 {
		s.pending = append(s.pending, some...)
		if s.timer == nil {
			s.timer = time.AfterFunc(liveInterval, s.flush)
		}
	}
	return len(p), nil
}

// flush shows the complete lines among the pending bytes.
func (s *liveOutput) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer = nil
	s.put(bytes.LastIndexByte(s.pending, '\n') + 1)
}

func (s *liveOutput) put(n int) {
	if n > 0 && !s.ended {
		s.show(string(s.pending[:n]))
		s.pending = s.pending[n:]
	}
}

// end shows the remaining pending bytes. Later writes are not shown.
func (s *liveOutput) end() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(len(s.pending))
	s.ended = true
}
