package jail

import (
	"bytes"
	"sync"
	"time"
)

const (
	maxShown = 64 << 10
	// shownEvery is how often something is shown, at most: a command can write each
	// byte by itself.
	shownEvery = 50 * time.Millisecond
)

// shown shows the beginning of what is written to it while that goes on. Nil shows
// nothing. It is safe for concurrent use.
type shown struct {
	show func(string)

	mu    sync.Mutex
	taken int // of maxShown
	next  []byte
	timer *time.Timer // nil: none runs
	ended bool
}

func (s *shown) Write(p []byte) (int, error) {
	if s == nil {
		return len(p), nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	some := p[:min(len(p), maxShown-s.taken)]
	if s.taken += len(some); len(some) > 0 {
		s.next = append(s.next, some...)
		if s.timer == nil {
			s.timer = time.AfterFunc(shownEvery, s.flush)
		}
	}
	return len(p), nil
}

// flush shows whole lines.
func (s *shown) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer = nil
	s.put(bytes.LastIndexByte(s.next, '\n') + 1)
}

func (s *shown) put(n int) {
	if n > 0 && !s.ended {
		s.show(string(s.next[:n]))
		s.next = s.next[n:]
	}
}

// end shows the rest; what is written after that is not.
func (s *shown) end() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(len(s.next))
	s.ended = true
}
