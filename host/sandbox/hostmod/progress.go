package hostmod

import (
	"github.com/stockade-dev/stockade/host/sandbox/meter"
	"github.com/stockade-dev/stockade/host/tool"
)

// MaxNote is how much of a note is kept, in bytes.
const MaxNote = 200

const maxReports = 10_000 // of one call; the rest is dropped

// progressReport is progress.report.
func progressReport(g *guest) error {
	done, total := g.stack[0], g.stack[2]
	hasTotal, err := g.option("total", 1)
	if err != nil {
		return err
	}
	note, err := g.mem.Head("note", g.u32(3), g.u32(4), MaxNote, g.redactor())
	if err != nil {
		return err
	}
	var known *uint64
	if hasTotal {
		known = &total
	}
	g.world.Progress(g.account, done, known, note)
	return nil
}

// Progress takes how far a guest has got, of how much if it knows that, with a note of
// at most [MaxNote] bytes without secrets. Of no world, that is dropped.
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
