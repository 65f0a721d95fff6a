package tui

import (
	"bytes"
	"os"
	"sync/atomic"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// region tracks the height of the moving part on the screen. The renderer draws later, in
// its own goroutine. Rows that are printed above meanwhile have to leave room for the
// part that is still drawn, or some of them are lost. Heights are in rows.
type region struct {
	draws        func() int64 // number of draws of the renderer so far; nil: it draws at once
	lastDraws    int64        // draws at the last update
	heightBefore int          // height that the renderer had at the last update
	height       int          // height that the renderer was given since
	peak         int          // largest height that may be on the screen now
}

// setHeight records the height of the next drawing.
func (r *region) setHeight(height int) {
	r.height = height
	r.peak = max(r.peak, height)
}

// update finds out which drawing is on the screen. Call it when the renderer has the
// drawing of the last setHeight: if the renderer has drawn since the last update, it drew
// that one or the one before.
func (r *region) update() {
	drawn := r.lastDraws + 1
	if r.draws != nil {
		drawn = r.draws()
	}
	if drawn > r.lastDraws {
		r.peak = max(r.heightBefore, r.height)
	}
	r.lastDraws, r.heightBefore = drawn, r.height
}

// aboveMark marks rows that are printed above the moving part. The terminal ignores it,
// and the renderer does not write it on its own.
const aboveMark = "\x1b[0;0m"

// printAbove returns a command that prints rows above the moving part.
func printAbove(rows string) tea.Cmd { return tea.Println(aboveMark + rows) }

// drawCounter is a terminal that counts the draws of the renderer.
type drawCounter struct {
	*os.File
	times atomic.Int64
}

func (d *drawCounter) Write(p []byte) (int, error) {
	if _, err := d.File.Write(keepFirstColumn(p)); err != nil {
		return 0, err
	}
	if !bytes.Contains(p, []byte(aboveMark)) {
		d.times.Add(1)
	}
	return len(p), nil
}

// keepFirstColumn changes output of the renderer: it erases the screen below from the
// second column on, after erasing the rest of the row. The renderer erases from the first
// column. If that is in the first row of the screen, which happens after a resize, tmux
// takes it for a cleared screen and copies the whole screen to its history, each time.
func keepFirstColumn(p []byte) []byte {
	return bytes.ReplaceAll(p, []byte(ansi.EraseScreenBelow), []byte(ansi.EraseLineRight+ansi.CUF1+ansi.EraseScreenBelow+ansi.CUB1))
}
