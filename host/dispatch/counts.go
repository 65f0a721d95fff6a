package dispatch

import "sync"

// counts is how many calls of each tool a session has made. A call takes its
// place before it is decided, so that of calls at the same time no two are the
// last one, and gives it back if it is refused. A later call that was decided
// meanwhile may have been refused for it, which errs on the narrow side.
type counts struct {
	mu     sync.Mutex
	byTool map[string]int
}

// reserve returns how many calls came before this one.
func (c *counts) reserve(tool string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byTool[tool]++
	return c.byTool[tool] - 1
}

func (c *counts) release(tool string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byTool[tool]--
}
