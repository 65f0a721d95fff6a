package tui

import (
	"bytes"
	"os"
	"sync/atomic"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// region knows how high what moves may be on the screen. The renderer draws what it is
// given later, in a goroutine of its own, and rows that are shown above meanwhile have
// to leave room for what still stands there: else some of them are lost.
type region struct {
	draws        func() int64 // how often the renderer has drawn; nil: at once
	lastDraws    int64        // of these, at the last look
	heightBefore int          // how high that was which the renderer had then
	height       int          // how high that is which it was given since
	peak         int          // how high it can be on the screen
}

// setHeight tells of what the renderer is given to draw next.
func (r *region) setHeight(height int) {
	r.height = height
	r.peak = max(r.peak, height)
}

// update finds out what the renderer has drawn. It is called when the renderer has what
// was told of last: if it has drawn since the last look, it was that or what it had then.
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

// aboveMark begins rows that are shown above what moves. It does nothing, and the
// renderer writes nothing like it by itself.
const aboveMark = "\x1b[0;0m"

// printAbove shows rows above what moves.
func printAbove(rows string) tea.Cmd { return tea.Println(aboveMark + rows) }

// drawCounter is a terminal that counts how often the renderer draws.
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

// keepFirstColumn is what the renderer writes, with all that is below erased from the second
// column on, after the row itself: the renderer erases from the first one, and where that
// is in the first row of the screen, as it can be after a resize, tmux takes it for a
// screen that is cleared, and keeps all that stands there in its history, each time.
func keepFirstColumn(p []byte) []byte {
	return bytes.ReplaceAll(p, []byte(ansi.EraseScreenBelow), []byte(ansi.EraseLineRight+ansi.CUF1+ansi.EraseScreenBelow+ansi.CUB1))
}
