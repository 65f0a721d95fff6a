package tui

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/markdown"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/session"
)

// What the program is told, beside keys and sizes.
type (
	happened      []any                        // the following, in their order
	textLines     string                       // lines to be shown
	callSkipped   struct{}                     // a call that is not shown
	lineDone      struct{ leave, failed bool } // what was typed is carried out
	flushed       struct{}                     // the rows that were under way are on the screen
	leaveTimedOut struct{}                     // the terminal does not answer any more
	tick          struct{}                     // time has passed
)

// leaveTimeout is how long a terminal has for the answer to a last question when the
// person leaves. Terminals answer in order: with it, the answers to what the renderer
// has asked are here, and not in the shell.
const leaveTimeout = 200 * time.Millisecond

// tickInterval is how often what moves is drawn.
const tickInterval = 100 * time.Millisecond

// model is the state of the terminal. It is used by the goroutine of the program
// alone.
type model struct {
	o             Options
	width, height int
	shrunk        time.Time // when the terminal became smaller last
	now           func() time.Time
	scroll        func(rows string) tea.Cmd // shows rows above what moves

	typed   chan string // to who carries it out
	queue   []string    // what was typed while something else was carried out
	busy    bool
	since   time.Time // when that began, or something was last heard of it
	ticking bool
	ticks   int

	pendingRows    []string // finished rows that are not on the screen yet
	flushing       bool     // some are under way
	flushingRows   int      // as many rows: what moves leaves them room meanwhile
	leaving        bool     // when all of out is on the screen
	leaveRequested bool     // the terminal was asked for the last time
	region         region

	answer        *markdown.Stream // that is being given; nil: none
	lastRowBlank  bool             // the row above is an empty one
	lastRowEchoed bool             // it is what was typed

	drawnWidths []int // how wide the rows are that stand above the cursor

	openQuestion  *question // that waits for its answer
	asideText     string    // what was being typed when it came
	restoredText  string    // what was set aside for the last one, and is in the editor again
	warnedCtrlC   bool      // that Ctrl-C leaves
	warnedCtrlD   bool      // that Ctrl-D does not, while something goes on
	suspended     bool      // the shell has the terminal, or is about to
	stoppingSince time.Time // since when what goes on is being stopped; zero: it is not
}

func newModel(o Options) *model {
	return &model{o: o, now: time.Now, scroll: printAbove, typed: make(chan string, 1), queue: o.Prompts, width: 80, height: 24, lastRowBlank: true}
}

// Init implements tea.Model.
func (m *model) Init() tea.Cmd {
	return m.next()
}

// Update implements tea.Model.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmds []tea.Cmd
	m.region.update()
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.reflow(msg.Width)
		if msg.Width < m.width || msg.Height < m.height {
			m.shrunk = m.now()
		}
		m.width, m.height = max(msg.Width, 1), max(msg.Height, 1)
		cmds = append(cmds, m.edit(msg))
	case happened:
		for _, what := range msg {
			cmds = append(cmds, m.handle(what))
		}
	case flushed:
		m.flushing, m.flushingRows = false, 0
	case uv.PrimaryDeviceAttributesEvent, leaveTimedOut:
		if m.leaveRequested {
			return m, tea.Quit
		}
	case tea.SuspendMsg: // it is over
		m.suspended = false
	case tick:
		m.ticks++
		m.ticking = false
		m.answerHeldKey()
	case tea.KeyPressMsg:
		cmds = append(cmds, m.key(msg))
	default:
		cmds = append(cmds, m.edit(msg))
	}
	return m, tea.Batch(append(cmds, m.flush(), m.nextTick())...)
}

// reflow follows a terminal that has become narrower and has broken the rows that were
// drawn: the renderer goes up by as many as it knows of.
func (m *model) reflow(width int) {
	more := 0
	for _, columns := range m.drawnWidths {
		more += max(columns-1, 0) / max(width, 1)
	}
	if m.o.Reflows && width < m.width && more > 0 {
		fmt.Fprint(m.o.Out, ansi.CursorUp(more))
	}
}

// handle shows one thing that has happened.
func (m *model) handle(what any) tea.Cmd {
	switch what := what.(type) {
	case session.Event:
		m.event(what)
	case textLines:
		m.endAnswer()
		m.print(strings.Split(string(what), "\n")...)
	case callSkipped:
		m.o.Transcript.SkipCall()
	case *question:
		m.ask(what)
	case withdrawn:
		m.closeQuestion(what.q)
	case lineDone:
		m.endAnswer()
		m.busy, m.stoppingSince, m.warnedCtrlD = false, time.Time{}, false
		if what.leave {
			m.leaving, m.queue = true, nil
		}
		if what.failed {
			m.restoreQueue()
		}
		return m.next()
	}
	return nil
}

// event shows an event of the session.
func (m *model) event(e session.Event) {
	m.since = m.now()
	if m.lastRowEchoed {
		m.gap()
	}
	for _, part := range m.o.Transcript.Show(e) {
		switch {
		case part.Restart:
			m.endAnswer()
		case part.Answer != "":
			if m.answer == nil {
				m.gap()
				m.answer = markdown.New(markdown.Options{Width: m.room, Color: m.o.Color})
			}
			m.print(m.answer.Add(part.Answer)...)
		default:
			m.endAnswer()
			if m.lastRowBlank && len(part.Rows) > 0 && part.Rows[0] == "" {
				part.Rows = part.Rows[1:]
			}
			m.print(part.Rows...)
		}
	}
	if e.Type == session.TypeStepEnded {
		m.endAnswer()
	}
}

// endAnswer shows the rest of the answer.
func (m *model) endAnswer() {
	if m.answer == nil {
		return
	}
	m.print(m.answer.End()...)
	m.answer = nil
	m.gap()
}

// room is how wide a row may be. The last column stays free: what a terminal does
// after it differs.
func (m *model) room() int { return max(m.width-1, 1) }

// print adds finished rows.
func (m *model) print(rows ...string) {
	for _, row := range rows {
		m.pendingRows = append(m.pendingRows, row)
		m.lastRowBlank, m.lastRowEchoed = row == "", false
	}
}

// gap parts two things by an empty row.
func (m *model) gap() {
	if !m.lastRowBlank {
		m.print("")
	}
}

// flush brings finished rows to the screen, above what moves: as many at a time as
// there is room for above that, because the renderer counts on it.
func (m *model) flush() tea.Cmd {
	if m.flushing || len(m.pendingRows) == 0 {
		if m.leaving && !m.flushing && !m.busy && !m.leaveRequested {
			m.leaveRequested = true
			return tea.Batch(tea.Raw(ansi.RequestPrimaryDeviceAttributes), tea.Tick(leaveTimeout, func(time.Time) tea.Msg { return leaveTimedOut{} }))
		}
		return nil
	}
	room := max(m.height-m.region.peak-1, 1)
	var rows []string
	for len(rows) < room && len(m.pendingRows) > 0 {
		broken := strings.Split(hardwrap(m.pendingRows[0], m.room()), "\n")
		n := min(len(broken), room-len(rows))
		rows, m.pendingRows = append(rows, broken[:n]...), m.pendingRows[1:]
		if n < len(broken) {
			m.pendingRows = append(broken[n:], m.pendingRows...)
		}
	}
	m.flushing, m.flushingRows = true, len(rows)
	return tea.Sequence(m.scroll(strings.Join(rows, "\n")), func() tea.Msg { return flushed{} })
}

// next begins what was typed first.
func (m *model) next() tea.Cmd {
	if m.busy || m.leaving {
		return nil
	}
	if len(m.queue) == 0 {
		m.leaving = m.o.Editor == nil
		return nil
	}
	typed := m.queue[0]
	m.queue = m.queue[1:]
	m.busy, m.since, m.warnedCtrlC = true, m.now(), false
	if m.o.Editor != nil {
		m.gap()
		m.print(m.echo(typed)...)
		m.lastRowEchoed = true
	}
	m.typed <- typed // it has room: nothing is carried out now
	return nil
}

// maxEchoedRows is how many rows of a prompt stay on the screen.
const maxEchoedRows = 10

// echo is a prompt as it stays on the screen.
func (m *model) echo(typed string) []string {
	rows := terminal.Fold(strings.TrimRight(typed, "\n"), "> ", "  ", m.room()+1)
	if more := len(rows) - maxEchoedRows; more > 0 {
		rows = append(rows[:maxEchoedRows], fmt.Sprintf("  … %d more rows", more))
	}
	for i, row := range rows {
		rows[i] = terminal.Style(m.o.Color, terminal.Bold, row)
	}
	return rows
}

// nextTick has time pass while something moves.
func (m *model) nextTick() tea.Cmd {
	if !m.busy || m.ticking {
		return nil
	}
	m.ticking = true
	return tea.Tick(tickInterval, func(time.Time) tea.Msg { return tick{} })
}

// key is a key that was pressed.
func (m *model) key(msg tea.KeyPressMsg) tea.Cmd {
	key := msg.String()
	switch {
	case m.leaving:
		return nil
	case m.o.Editor != nil && m.o.Editor.HasPopup() && (key == "ctrl+c" || key == "esc"):
		return m.edit(msg) // closes its list
	case key == "ctrl+c":
		m.interrupt()
		return nil
	case key == "ctrl+z":
		m.suspended = true
		return tea.Suspend
	case m.openQuestion != nil:
		taken, cmd := m.pressInQuestion(msg)
		if !taken {
			m.warnedCtrlC, m.warnedCtrlD = false, false
			cmd = tea.Batch(cmd, m.edit(msg))
		}
		return cmd
	case key == "ctrl+d" && m.o.Editor != nil && m.o.Editor.Empty():
		if m.warnedCtrlD = m.busy; !m.busy {
			m.leaving = true
			m.print(m.o.LeaveHint)
		}
		return nil
	}
	m.warnedCtrlC, m.warnedCtrlD = false, false
	return m.edit(msg)
}

// doublePress is how long Ctrl-C that is pressed again means what it meant the first time.
const doublePress = time.Second

// interrupt stops what is going on, and else what is being typed, and else, the
// second time, the chat.
func (m *model) interrupt() {
	ed := m.o.Editor
	switch {
	case m.busy && !m.stoppingSince.IsZero() && m.now().Sub(m.stoppingSince) < doublePress:
	case m.busy:
		m.o.Stop()
		m.stoppingSince, m.warnedCtrlD = m.now(), false
		m.restoreQueue()
	case ed == nil:
	case !ed.Empty():
		ed.Clear()
	case m.warnedCtrlC:
		m.leaving = true
		m.print(m.o.LeaveHint)
	default:
		m.warnedCtrlC = true
	}
}

// restoreQueue puts what waits into the editor again: it was meant to follow what has not
// come to its end.
func (m *model) restoreQueue() {
	if ed := m.o.Editor; len(m.queue) > 0 && ed != nil {
		ed.SetValue(strings.Join(append(m.queue, ed.Value()), "\n"))
		m.queue = nil
	}
}

// edit hands a message to the editor, and takes what was sent.
func (m *model) edit(msg tea.Msg) tea.Cmd {
	if m.o.Editor == nil {
		return nil
	}
	cmd, sent, ok := m.o.Editor.Update(msg)
	if !ok || strings.TrimSpace(sent) == "" {
		return cmd
	}
	m.queue = append(m.queue, sent)
	return tea.Batch(cmd, m.next())
}
