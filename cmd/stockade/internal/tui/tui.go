// Package tui is the terminal of a chat, and of one turn, for a person who looks at
// it: what is done scrolls away above, and below it stands what moves — the calls
// that run, a question, what waits to be sent, and the line that is being typed.
//
// It draws below the text of the shell, and not on a screen of its own: what was said
// stays when the program has ended. See RATIONALE, "Why bubbletea, and not on the
// alternate screen?"
package tui

import (
	"bytes"
	"context"
	"io"
	"os"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/editor"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/transcript"
	"github.com/stockade-dev/stockade/host/session"
)

// Options say what the terminal shows.
type Options struct {
	In, Out *os.File // the terminal
	Env     []string // of the program
	Color   bool
	// Reflows says that the terminal breaks long rows when it becomes narrower.
	Reflows bool
	// Editor is where prompts are typed. Nil: the terminal shows First and what comes
	// of it, and ends.
	Editor *editor.Editor
	// Transcript makes rows of the events.
	Transcript *transcript.Transcript
	// Prompts are the prompts that are there from the start.
	Prompts []string
	// Do carries out what was typed, and reports whether the person leaves, and whether
	// it has failed. It is called for one line at a time, in a goroutine of its own, and
	// calls [UI.Event] for what happens.
	Do func(ctx context.Context, typed string) (leave, failed bool)
	// Stop stops what Do carries out.
	Stop func()
	// LeaveHint is shown to who is about to leave: how to come back.
	LeaveHint string
}

// UI is the terminal. Its methods but Run, which is called once, are safe for
// concurrent use.
type UI struct {
	events chan any      // what happens, in its order
	ended  chan struct{} // closed when nothing is shown any more
}

// New returns a terminal that shows nothing yet.
func New() *UI {
	return &UI{events: make(chan any, backlog), ended: make(chan struct{})}
}

const (
	// backlog is how much may have happened that is not shown yet. Who makes it
	// happen waits then.
	backlog = 1024
	// pace is how long what happens is gathered before it is shown: an answer that
	// comes letter by letter is drawn a hundred times a second and not ten thousand.
	pace = 10 * time.Millisecond
)

// Run shows the terminal until the person leaves. When ctx ends it returns the cause,
// once Do has returned.
func (u *UI) Run(ctx context.Context, o Options) error {
	m := newModel(o)
	colors := colorprofile.ASCII
	if o.Color {
		colors = colorprofile.ANSI
	}
	out := &drawCounter{File: o.Out}
	m.region.draws = out.times.Load
	in := &keyReader{File: o.In, in: o.In, pastes: make(chan string, 256)} // more than one piece can hold
	program := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(in), tea.WithFilter(in.filter), tea.WithOutput(out), tea.WithEnvironment(o.Env), tea.WithoutSignalHandler(),
		tea.WithFPS(120),             // for as short a time what has scrolled stands below, too
		tea.WithColorProfile(colors)) // else it would ask tmux, a program of PATH
	in.send = program.Send
	work, stop := context.WithCancelCause(ctx)
	var busy sync.WaitGroup
	busy.Go(func() {
		for typed := range m.typed {
			leave, failed := o.Do(work, typed)
			u.send(lineDone{leave, failed})
		}
	})
	go u.pump(program)
	_, err := program.Run()
	close(u.ended)
	stop(context.Cause(ctx))
	close(m.typed)
	busy.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// send hands on something that has happened; after the end it is dropped.
func (u *UI) send(what any) {
	select {
	case u.events <- what:
	case <-u.ended:
	}
}

// pump hands to the program, at a pace, what has happened.
func (u *UI) pump(program *tea.Program) {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for {
		var batch []any
		select {
		case first := <-u.events:
			batch = append(batch, first)
		case <-u.ended:
			return
		}
		for more := true; more; {
			select {
			case next := <-u.events:
				batch = append(batch, next)
			default:
				more = false
			}
		}
		program.Send(happened(batch))
		<-tick.C
	}
}

// Event shows an event of the session.
func (u *UI) Event(e session.Event) { u.send(e) }

// SkipCall counts a call of which no event is shown.
func (u *UI) SkipCall() { u.send(callSkipped{}) }

// Rows returns a writer whose lines are shown in the order in which they come. What
// is written has to be fit for a terminal.
func (u *UI) Rows() io.Writer { return &lineWriter{ui: u} }

// lineWriter gathers what is written to whole lines.
type lineWriter struct {
	ui   *UI
	mu   sync.Mutex
	part []byte
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.part = append(w.part, p...)
	if end := bytes.LastIndexByte(w.part, '\n'); end >= 0 {
		w.ui.send(textLines(w.part[:end]))
		w.part = append([]byte(nil), w.part[end+1:]...)
	}
	return len(p), nil
}
