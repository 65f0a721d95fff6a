package jail

import (
	"fmt"
	"sync"

	"github.com/stockade-dev/stockade/host/redact"
	"github.com/stockade-dev/stockade/host/visible"
)

// outputBuffer stores the head and the tail of an output and, with a screen, of the text that
// a terminal shows for that output.
type outputBuffer struct {
	*headTail
	screen     *visible.Screen // writes to clean; nil: no screen
	clean      *redact.Writer  // removes secrets, whose parts the screen can join; writes to screenText
	screenText *headTail       // the text that a terminal shows
}

func (k *outputBuffer) Write(p []byte) (int, error) {
	if k.screen != nil {
		_, _ = k.screen.Write(p)
	}
	return k.headTail.Write(p)
}

// finish ends the output. It returns the buffer of the text that a terminal shows or, without
// a screen, of the output itself.
func (k *outputBuffer) finish() *headTail {
	if k.screen == nil {
		return k.headTail
	}
	k.screen.Flush()
	_ = k.clean.Flush()
	return k.screenText
}

// headTail stores the beginning and the end of its input, each up to half of a limit; the
// middle is dropped. It never blocks the writer, and is safe for concurrent use.
type headTail struct {
	mu    sync.Mutex // guards the fields below
	half  int        // half of the limit, in bytes
	head  []byte
	tail  []byte // a ring when it is full
	at    int    // index in tail of its oldest byte
	total int64  // bytes written, including dropped ones
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

func (h *headTail) isCut() bool {
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
