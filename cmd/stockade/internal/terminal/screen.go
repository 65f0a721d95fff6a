package terminal

import "sync"

// Screen keeps what is shown in order: while a question is open nothing else
// is printed, so that no output can push it away or look like part of it. The
// zero value shows everything. It is safe for concurrent use.
type Screen struct {
	mu      sync.Mutex
	holding bool
	held    []func()
}

// Show prints, now or when the question that is open has been answered.
func (s *Screen) Show(print func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holding {
		s.held = append(s.held, print)
		return
	}
	print()
}

// Hold holds everything back until the returned function is called. There is
// one question at a time.
func (s *Screen) Hold() (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holding = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.holding = false
		for _, print := range s.held {
			print()
		}
		s.held = nil
	}
}
