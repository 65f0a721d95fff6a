package hostmod

import (
	"fmt"

	"github.com/stockade-dev/stockade/host/sandbox/abi"
	"github.com/stockade-dev/stockade/host/sandbox/meter"
	"github.com/stockade-dev/stockade/host/tool"
)

// MaxLogMessage is the number of bytes after which a log message is cut.
const MaxLogMessage = 4 << 10

var levels = []string{"trace", "debug", "info", "warn", "error"}

// logLog is log.log. Messages beyond the call's LogBytes are dropped, with one warning.
func logLog(g *guest) error {
	level := g.u32(0)
	if int(level) >= len(levels) {
		return &abi.Fault{What: fmt.Sprintf("level: discriminant %d", level)}
	}
	text, err := g.mem.Head("message", g.u32(1), g.u32(2), MaxLogMessage, g.redactor())
	if err != nil {
		return err
	}
	g.world.Log(g.account, int(level), text)
	return nil
}

// Log reports a log message of the guest. The text was cut to [MaxLogMessage] bytes and has no
// secrets. The level is 0 (trace) to 4 (error). A nil World drops the message.
func (w *World) Log(account *meter.Account, level int, text string) {
	if w == nil || w.Report == nil || w.logBytes < 0 {
		return
	}
	w.logBytes += len(text) + 1
	if w.logBytes > w.Grant.Limits().LogBytes {
		w.logBytes = -1
		account.WithoutTurn(func() {
			w.Report(tool.Progress{Level: "warn", Message: "the tool logs more than its limit; the rest is dropped"})
		})
		return
	}
	account.WithoutTurn(func() { w.Report(tool.Progress{Level: levels[level], Message: text}) })
}
