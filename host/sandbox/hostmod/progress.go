package hostmod

import (
	"github.com/stockade-dev/stockade/host/sandbox/meter"
	"github.com/stockade-dev/stockade/host/tool"
)

// MaxNote is the number of bytes after which the note of a progress report is cut.
const MaxNote = 200

const maxReports = 10_000 // progress reports of one call; later ones are dropped

// progressReport is progress.report.
func progressReport(g *guest) error {
	var total *uint64
	if g.option("total", 1) {
		total = new(g.stack[2])
	}
	if g.err != nil {
		return g.err
	}
	note, err := g.mem.Head("note", g.u32(3), g.u32(4), MaxNote, g.redactor())
	if err != nil {
		return err
	}
	g.world.Progress(g.account, g.stack[0], total, note)
	return nil
}

// Progress reports the progress of the guest: done of total, which is nil if the guest does
// not know it. The note was cut to [MaxNote] bytes and has no secrets. A nil World drops the
// report.
func (w *World) Progress(account *meter.Account, done uint64, total *uint64, note string) {
	if w != nil && w.Report != nil && w.reports < maxReports {
		w.reports++
		account.WithoutTurn(func() { w.Report(tool.Progress{Done: done, Total: total, Message: note}) })
	}
}

// progressCancelled is progress.cancelled.
func progressCancelled(g *guest) error {
	g.stack[0] = 0
	if g.ctx.Err() != nil {
		g.stack[0] = 1
	}
	return nil
}
