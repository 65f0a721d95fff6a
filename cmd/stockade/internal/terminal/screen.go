package terminal

import "sync"

// Screen keeps output in order: while a question is open, other output is held back, so
// that it cannot push the question away or look like part of it. The zero value shows
// everything. Screen is safe for concurrent use.
type Screen struct {
	mu      sync.Mutex
	holding bool
	held    []func()
}

// Show calls print: now, or after the open question was answered.
func (s *Screen) Show(print func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holding {
		s.held = append(s.held, print)
		return
	}
	print()
}

// Hold holds output back until the caller calls done. Only one caller may hold it at a time.
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
