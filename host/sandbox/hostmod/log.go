package hostmod

import (
	"fmt"

	"github.com/stockade-dev/stockade/host/sandbox/abi"
	"github.com/stockade-dev/stockade/host/tool"
)

const maxLogMessage = 4 << 10

var levels = []string{"trace", "debug", "info", "warn", "error"}

// logLog is log.log. Beyond the call's limit messages are dropped, and that is
// said once.
func logLog(g *guest) error {
	level := g.u32(0)
	if int(level) >= len(levels) {
		return &abi.Fault{What: fmt.Sprintf("level: discriminant %d", level)}
	}
	text, err := g.mem.Prefix("message", g.u32(1), g.u32(2), maxLogMessage, g.redactor())
	if err != nil {
		return err
	}
	c := g.world
	if c == nil || c.Report == nil || c.logBytes < 0 {
		return nil
	}
	c.logBytes += len(text) + 1
	if c.logBytes > c.Grant.Limits().LogBytes {
		c.logBytes = -1
		g.account.Away(func() {
			c.Report(tool.Progress{Level: "warn", Message: "the tool logs more than its limit; the rest is dropped"})
		})
		return nil
	}
	g.account.Away(func() { c.Report(tool.Progress{Level: levels[level], Message: text}) })
	return nil
}
