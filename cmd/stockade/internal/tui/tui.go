// Package tui is the terminal of a chat, and of a single turn, for a person. Finished
// rows scroll away at the top. Below them is the moving part: the running calls, a
// question, the queued texts, and the line being typed.
//
// It draws below the text of the shell and not on a screen of its own: the conversation
// stays on the screen after the program has ended. See RATIONALE, "Why bubbletea, and not
// on the alternate screen?"
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

// Options configure a [UI].
type Options struct {
	In, Out *os.File // the terminal
	Env     []string // environment of the program
	Color   bool
	Reflows bool // set if the terminal breaks long rows when it becomes narrower
	// Editor is the editor for prompts. If it is nil, the terminal carries out Prompts, shows
	// their results, and ends.
	Editor     *editor.Editor
	Transcript *transcript.Transcript // turns events into rows
	Prompts    []string               // texts that are carried out first, before anything is typed
	// Do carries out a typed text. leave is set if the person wants to leave, and failed if
	// the text could not be carried out. It is called for one text at a time, in its own
	// goroutine, and calls [UI.Event] for each event. It and the functions below must not be nil.
	Do        func(ctx context.Context, typed string) (leave, failed bool)
	Steers    func(typed string) bool // reports whether a text that is sent during a turn is for [UI.TakeQueued]
	NextMode  func()                  // changes the mode of the chat, for Shift-Tab
	Mode      func() string           // text about the mode, below the editor; empty: none is shown
	Stop      func()                  // stops a running Do
	LeaveHint func() string           // returns a text after the end that says how to come back
}

// UI is the terminal. Its methods are safe for concurrent use, except Run, which may be
// called only once.
type UI struct {
	events chan any      // messages that wait for the program, in their order
	ended  chan struct{} // closed when the terminal no longer shows anything
}

// New returns a terminal, which shows nothing before Run.
func New() *UI {
	return &UI{events: make(chan any, backlog), ended: make(chan struct{})}
}

const (
	// backlog limits the messages that wait to be shown; the sender of a further one blocks.
	backlog = 1024
	// pace is the time for which messages are collected before they are shown together: an
	// answer that arrives letter by letter is drawn a hundred times a second at most.
	pace = 10 * time.Millisecond
)

// Run shows the terminal until the person leaves. If ctx ends, Run waits for Do to return, and
// its error is the cause of ctx.
func (u *UI) Run(ctx context.Context, o Options) error {
	m := newModel(o)
	colors := colorprofile.ASCII
	if o.Color {
		colors = colorprofile.ANSI
	}
	out := &drawCounter{File: o.Out}
	m.region.draws = out.times.Load
	in := &keyReader{File: o.In, in: o.In, pastes: make(chan string, 256)} // more than one read can hold
	program := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(in), tea.WithFilter(in.filter), tea.WithOutput(out), tea.WithEnvironment(o.Env), tea.WithoutSignalHandler(),
		tea.WithFPS(120),             // finished rows stay in the moving part for a shorter time
		tea.WithColorProfile(colors)) // otherwise it would start tmux, a program from PATH
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

// send queues a message; after the end of Run it drops the message.
func (u *UI) send(what any) {
	select {
	case u.events <- what:
	case <-u.ended:
	}
}

// pump passes queued messages to the program in batches, one in each pace.
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
		for len(u.events) > 0 { // nobody else receives
			batch = append(batch, <-u.events)
		}
		program.Send(happened(batch))
		<-tick.C
	}
}

func (u *UI) Event(e session.Event) { u.send(e) }

// BeginSession shows the later events with the transcript of another session.
func (u *UI) BeginSession(t *transcript.Transcript) {
	u.send(func(m *model) { m.o.Transcript = t })
}

// SkipCall counts a call that is not shown, so that later calls get the right numbers.
func (u *UI) SkipCall() { u.send(func(m *model) { m.o.Transcript.SkipCall() }) }

// TakeQueued returns the texts at the beginning of the queue that steer the running Do, and
// removes them from the queue: they are sent.
func (u *UI) TakeQueued() []string {
	taken := make(chan []string, 1)
	u.send(func(m *model) { taken <- m.takeQueued() })
	select {
	case texts := <-taken:
		return texts
	case <-u.ended:
		return nil
	}
}

// Rows returns a writer whose lines are shown among the finished rows. The text must be safe
// for a terminal.
func (u *UI) Rows() io.Writer { return &lineWriter{ui: u} }

// lineWriter collects written text into whole lines.
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
