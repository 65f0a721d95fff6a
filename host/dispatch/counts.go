package dispatch

import "sync"

// counts holds the number of calls of each tool in a session. A call is counted before its
// decision, so that of two calls at the same time only one can be the final one that a limit
// allows. A call that its decision refuses before it runs is subtracted again; another call may
// have been refused in between because of it, which is the strict side. A call that is refused
// after its decision, for example by its rate limit, stays counted.
type counts struct {
	mu     sync.Mutex
	byTool map[string]int
}

// reserve counts a call, and returns the number of calls before it.
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
