package hostmod

import "github.com/stockade-dev/stockade/host/tool"

const (
	maxNote    = 200
	maxReports = 10_000 // of one call; the rest is dropped
)

// progressReport is progress.report.
func progressReport(g *guest) error {
	done, total := g.stack[0], g.stack[2]
	hasTotal, err := g.option("total", 1)
	if err != nil {
		return err
	}
	note, err := g.mem.Prefix("note", g.u32(3), g.u32(4), maxNote, g.redactor())
	if err != nil {
		return err
	}
	if c := g.world; c != nil && c.Report != nil && c.reports < maxReports {
		c.reports++
		var known *uint64
		if hasTotal {
			known = &total
		}
		g.account.Away(func() { c.Report(tool.Progress{Done: done, Total: known, Message: note}) })
	}
	return nil
}

// progressCancelled is progress.cancelled.
func progressCancelled(g *guest) error {
	g.stack[0] = 0
	if g.ctx.Err() != nil {
		g.stack[0] = 1
	}
	return nil
}
