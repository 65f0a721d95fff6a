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

// Messages to the program, apart from keys and sizes.
type (
	happened      []any                        // several messages, or functions of a model, in their order
	textLines     string                       // text whose lines are shown
	lineDone      struct{ leave, failed bool } // the text that was being carried out is done
	flushed       struct{}                     // the rows that are being flushed have reached the screen
	leaveTimedOut struct{}                     // the terminal has not answered in leaveTimeout
	tick          struct{}                     // tickInterval has passed
)

// leaveTimeout limits the time for which a leaving program waits for the terminal's answer to
// a last question. Terminals answer in order: after this answer, all answers to earlier
// questions of the renderer have arrived, and none of them ends up in the shell.
const leaveTimeout = 200 * time.Millisecond

// tickInterval is the time between two drawings of moving things, such as the spinner.
const tickInterval = 100 * time.Millisecond

// model is the state of the terminal. Only the goroutine of the program uses it.
type model struct {
	o             Options
	width, height int
	shrunk        time.Time // time when the terminal last became smaller
	now           func() time.Time
	scroll        func(rows string) tea.Cmd // returns a command that shows rows above the moving part

	typed   chan string // the text that Do carries out next; it has room for one
	queue   []string    // texts that wait, because another text is being carried out
	busy    bool        // Do is running
	inTurn  bool        // Do is running a turn
	since   time.Time   // time when Do began, or of its last event
	ticking bool        // a tick has been scheduled
	ticks   int         // number of ticks so far

	pendingRows    []string // finished rows that have not reached the screen yet
	flushing       bool     // the renderer is bringing some of pendingRows to the screen
	flushingRows   int      // number of these rows; the moving part leaves room for them
	leaving        bool     // the program ends as soon as pendingRows is on the screen
	leaveRequested bool     // the terminal was asked the last question, see leaveTimeout
	region         region

	answer        *markdown.Stream // answer that the model is giving; nil: none
	lastRowBlank  bool             // the last finished row is empty
	lastRowEchoed bool             // the last finished row repeats the typed text

	drawnWidths []int // widths of the drawn rows above the cursor

	announced     bool      // see announce
	openQuestion  *question // question that waits for an answer; nil: none
	held          heldText  // letter that waits for another key
	lastSubject   string    // subject of the question before, see prompt.Subject
	lastKey       string    // key of the last answer
	lastAnswered  time.Time // time of the last answer, or of the last key that was dropped after it
	asideText     string    // text of the editor that was set aside for openQuestion
	restoredText  string    // text that was set aside for the last question, and is in the editor again
	warnedCtrlC   bool      // the notice that Ctrl-C leaves is shown
	warnedCtrlD   bool      // the notice that Ctrl-D does not leave now is shown
	suspended     bool      // the shell has the terminal, or is about to get it
	stoppingSince time.Time // time of the request to stop Do; zero: none
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
	case tea.SuspendMsg: // the program goes on
		m.suspended = false
	case tick:
		m.ticks++
		m.ticking = false
		m.endHold()
	case tea.KeyPressMsg:
		cmds = append(cmds, m.key(msg))
	default:
		cmds = append(cmds, m.edit(msg))
	}
	return m, tea.Batch(append(cmds, m.announce(), m.flush(), m.nextTick())...)
}

// reflow moves the cursor up after the terminal became narrower and broke the drawn rows into
// more rows: the renderer moves it up only by the number of rows that it drew.
func (m *model) reflow(width int) {
	more := 0
	for _, columns := range m.drawnWidths {
		more += max(columns-1, 0) / max(width, 1)
	}
	if m.o.Reflows && width < m.width && more > 0 {
		fmt.Fprint(m.o.Out, ansi.CursorUp(more))
	}
}

// handle handles one message, other than a key or a size.
func (m *model) handle(what any) tea.Cmd {
	switch what := what.(type) {
	case session.Event:
		m.event(what)
	case textLines:
		m.endAnswer()
		m.print(strings.Split(string(what), "\n")...)
	case func(*model):
		what(m)
	case *question:
		m.ask(what)
	case lineDone:
		m.endAnswer()
		m.busy, m.inTurn, m.stoppingSince, m.warnedCtrlD = false, false, time.Time{}, false
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
	m.inTurn = m.inTurn || e.Type == session.TypeTurnStarted
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

// endAnswer shows the rest of the model's answer as finished rows.
func (m *model) endAnswer() {
	if m.answer == nil {
		return
	}
	m.print(m.answer.End()...)
	m.answer = nil
	m.gap()
}

// room returns the largest width of a row. The last column stays free: terminals differ
// in what they do after it.
func (m *model) room() int { return max(m.width-1, 1) }

// print appends finished rows.
func (m *model) print(rows ...string) {
	for _, row := range rows {
		m.pendingRows = append(m.pendingRows, row)
		m.lastRowBlank, m.lastRowEchoed = row == "", false
	}
}

// gap appends an empty row, unless the last finished row is empty.
func (m *model) gap() {
	if !m.lastRowBlank {
		m.print("")
	}
}

// flush returns a command that brings finished rows to the screen, above the moving part; not
// more at a time than there is room for, because the renderer relies on it.
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
		broken := strings.Split(ansi.Hardwrap(m.pendingRows[0], m.room(), true), "\n") // the row was made for an earlier width
		n := min(len(broken), room-len(rows))
		rows, m.pendingRows = append(rows, broken[:n]...), m.pendingRows[1:]
		if n < len(broken) {
			m.pendingRows = append(broken[n:], m.pendingRows...)
		}
	}
	m.flushing, m.flushingRows = true, len(rows)
	return tea.Sequence(m.scroll(strings.Join(rows, "\n")), func() tea.Msg { return flushed{} })
}

// next gives the oldest queued text to Do, if Do is not busy.
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
	m.typed <- typed // it has room: Do is not running
	return nil
}

// maxEchoedRows limits the rows of a sent prompt on the screen; further rows are counted.
const maxEchoedRows = 10

// echo returns the rows of a sent prompt that stay on the screen.
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

// nextTick schedules a tick if Do is running or a key is held, and no tick is scheduled.
func (m *model) nextTick() tea.Cmd {
	if !m.busy && m.held.text == "" || m.ticking {
		return nil
	}
	m.ticking = true
	return tea.Tick(tickInterval, func(time.Time) tea.Msg { return tick{} })
}

// press handles a pressed key when none is held.
func (m *model) press(msg tea.KeyPressMsg) tea.Cmd {
	key := msg.String()
	switch {
	case m.leaving:
		return nil
	case m.o.Editor != nil && m.o.Editor.HasPopup() && (key == "ctrl+c" || key == "esc"):
		return m.edit(msg) // closes the list
	case key == "ctrl+c":
		m.interrupt()
		return nil
	case key == "shift+tab" && m.o.Editor != nil && !m.o.Editor.HasPopup():
		m.o.NextMode() // it answers nothing, and neither does a key before it: that was dropped
		return nil
	case key == "ctrl+z":
		m.suspended = true
		return tea.Suspend
	case m.openQuestion != nil && m.openQuestion.why != nil:
		return m.pressInReason(msg)
	case m.openQuestion != nil:
		if m.pressInQuestion(msg) {
			return nil
		}
	case key == "esc" && len(m.queue) > 0 && m.o.Editor != nil && m.o.Editor.Empty(): // takes back the newest text
		last := len(m.queue) - 1
		m.o.Editor.SetValue(m.queue[last])
		m.queue = m.queue[:last]
		return nil
	case m.o.Editor != nil && !m.isDrafting() && msg.Text != "" && key == m.lastKey && m.now().Sub(m.lastAnswered) < rhythm:
		m.hold(msg.Text, true)
		return nil
	case key == "ctrl+d" && m.o.Editor != nil && m.o.Editor.Empty():
		if m.warnedCtrlD = m.busy; !m.busy {
			m.leaving = true
			m.print(m.o.LeaveHint())
		}
		return nil
	}
	m.warnedCtrlC, m.warnedCtrlD = false, false
	return m.edit(msg)
}

// doublePress is the time within which a second Ctrl-C counts as the same press as the first.
const doublePress = time.Second

// interrupt handles Ctrl-C. It stops Do, or else clears the editor. If there is nothing to
// stop or clear, the first Ctrl-C shows a notice and the second leaves the chat.
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
		m.print(m.o.LeaveHint())
	default:
		m.warnedCtrlC = true
	}
}

// steers reports whether a queued text is for the running turn.
func (m *model) steers(typed string) bool { return m.inTurn && m.o.Steers(typed) }

// takeQueued removes the texts that steer Do from the beginning of the queue, and returns them.
func (m *model) takeQueued() []string {
	n := 0
	for n < len(m.queue) && m.steers(m.queue[n]) {
		n++
	}
	defer func() { m.queue = m.queue[n:] }()
	return m.queue[:n:n]
}

// restoreQueue moves the queued texts back to the editor: the person meant them to follow a
// text that was stopped.
func (m *model) restoreQueue() {
	if ed := m.o.Editor; len(m.queue) > 0 && ed != nil {
		ed.SetValue(strings.Join(append(m.queue, ed.Value()), "\n"))
		m.queue = nil
	}
}

// edit passes a message to the editor, and queues the text that the person has sent.
func (m *model) edit(msg tea.Msg) tea.Cmd {
	if _, pasted := msg.(tea.PasteMsg); pasted && m.openQuestion != nil && m.openQuestion.why != nil {
		cmd, _, _ := m.openQuestion.why.Update(msg)
		return cmd
	}
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
