package tui

import (
	"bytes"
	"os"
	"sync/atomic"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// region tracks the height of the moving part on the screen, in rows. The renderer draws
// later, in its own goroutine. Rows that are printed above meanwhile have to leave room for
// the part as it is still drawn, or some of them are lost.
type region struct {
	draws        func() int64 // returns the number of times that the renderer has drawn; nil: it draws at once
	lastDraws    int64        // result of draws at the last update
	heightBefore int          // height that was set at the last update
	height       int          // height that was set last
	peak         int          // largest height that the part may have on the screen now
}

// update notes that the renderer has the height that was set last. If the renderer has
// drawn since the last update, it drew that height or the one before.
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

// aboveMark marks rows that are printed above the moving part. The terminal ignores it, and
// the renderer itself never writes it.
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

// keepFirstColumn changes output of the renderer: instead of erasing the screen from the first
// column down, it erases the rest of the row and then the screen from the second column down.
// In the first row, where a resize can lead, tmux takes the renderer's way for clearing the
// screen, and copies all of it to its history each time.
func keepFirstColumn(p []byte) []byte {
	return bytes.ReplaceAll(p, []byte(ansi.EraseScreenBelow), []byte(ansi.EraseLineRight+ansi.CUF1+ansi.EraseScreenBelow+ansi.CUB1))
}
