package jail

import (
	"fmt"
	"sync"

	"github.com/stockade-dev/stockade/host/redact"
	"github.com/stockade-dev/stockade/host/visible"
)

// kept holds the head and tail of an output and, with a screen, of the text that a terminal shows.
type kept struct {
	*headTail
	screen *visible.Screen // writes to clean; may be nil
	clean  *redact.Writer  // writes to shown: the screen can join the parts of a secret
	shown  *headTail
}

func (k *kept) Write(p []byte) (int, error) {
	if k.screen != nil {
		_, _ = k.screen.Write(p)
	}
	return k.headTail.Write(p)
}

// show ends the output. It returns the text that a terminal shows; without a screen, the output.
func (k *kept) show() *headTail {
	if k.screen == nil {
		return k.headTail
	}
	k.screen.Flush()
	_ = k.clean.Flush()
	return k.shown
}

// headTail keeps the first and the last half of its limit of what is written
// to it, and never blocks the writer. It is safe for concurrent use.
type headTail struct {
	mu    sync.Mutex
	half  int
	head  []byte
	tail  []byte // a ring once it is full
	at    int    // where the ring begins
	total int64
}

func newHeadTail(limit int) *headTail { return &headTail{half: max(limit/2, 1)} }

func (h *headTail) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(p)
	h.total += int64(len(p))
	if room := h.half - len(h.head); room > 0 {
		room = min(room, len(p))
		h.head = append(h.head, p[:room]...)
		p = p[room:]
	}
	if over := len(p) - h.half; over > 0 {
		p = p[over:]
	}
	if room := h.half - len(h.tail); room > 0 {
		room = min(room, len(p))
		h.tail = append(h.tail, p[:room]...)
		p = p[room:]
	}
	for len(p) > 0 {
		k := copy(h.tail[h.at:], p)
		h.at = (h.at + k) % h.half
		p = p[k:]
	}
	return n, nil
}

func (h *headTail) cut() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.total > int64(len(h.head)+len(h.tail))
}

func (h *headTail) bytes() []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := append([]byte(nil), h.head...)
	if lost := h.total - int64(len(h.head)+len(h.tail)); lost > 0 {
		out = fmt.Appendf(out, "\n... %d bytes left out ...\n", lost)
	}
	out = append(out, h.tail[h.at:]...)
	return append(out, h.tail[:h.at]...)
}
