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
	happened []any                        // the following, in their order
	text     string                       // lines to be shown
	passed   struct{}                     // a call that is not shown
	done     struct{ leave, failed bool } // what was typed is carried out
	flushed  struct{}                     // the rows that were under way are on the screen
	parted   struct{}                     // the terminal does not answer any more
	beat     struct{}                     // time has passed
)

// patience is how long a terminal has for the answer to a last question when the
// person leaves. Terminals answer in order: with it, the answers to what the renderer
// has asked are here, and not in the shell.
const patience = 200 * time.Millisecond

// beatEvery is how often what moves is drawn.
const beatEvery = 100 * time.Millisecond

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
	beating bool
	beats   int

	out      []string // finished rows that are not on the screen yet
	flushing bool     // some are under way
	under    int      // as many rows: what moves leaves them room meanwhile
	leaving  bool     // when all of out is on the screen
	parting  bool     // the terminal was asked for the last time
	region   region

	answer *markdown.Stream // that is being given; nil: none
	blank  bool             // the row above is an empty one
	echoed bool             // it is what was typed

	drawn []int // how wide the rows are that stand above the cursor

	asked  *question // that waits for its answer
	aside  string    // what was being typed when it came
	back   string    // what was set aside for the last one, and is in the editor again
	warned bool      // that Ctrl-C leaves
	told   bool      // that Ctrl-D does not, while something goes on
	away   bool      // the shell has the terminal, or is about to
	stops  time.Time // since when what goes on is being stopped; zero: it is not
}

func newModel(o Options) *model {
	return &model{o: o, now: time.Now, scroll: above, typed: make(chan string, 1), queue: o.First, width: 80, height: 24, blank: true}
}

// Init implements tea.Model.
func (m *model) Init() tea.Cmd {
	return m.next()
}

// Update implements tea.Model.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmds []tea.Cmd
	m.region.look()
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
			cmds = append(cmds, m.happens(what))
		}
	case flushed:
		m.flushing, m.under = false, 0
	case uv.PrimaryDeviceAttributesEvent, parted:
		if m.parting {
			return m, tea.Quit
		}
	case tea.SuspendMsg: // it is over
		m.away = false
	case beat:
		m.beats++
		m.beating = false
		m.settle()
	case tea.KeyPressMsg:
		cmds = append(cmds, m.key(msg))
	default:
		cmds = append(cmds, m.edit(msg))
	}
	return m, tea.Batch(append(cmds, m.flush(), m.keepBeating())...)
}

// reflow follows a terminal that has become narrower and has broken the rows that were
// drawn: the renderer goes up by as many as it knows of.
func (m *model) reflow(width int) {
	more := 0
	for _, columns := range m.drawn {
		more += max(columns-1, 0) / max(width, 1)
	}
	if m.o.Reflows && width < m.width && more > 0 {
		fmt.Fprint(m.o.Out, ansi.CursorUp(more))
	}
}

// happens shows one thing that has happened.
func (m *model) happens(what any) tea.Cmd {
	switch what := what.(type) {
	case session.Event:
		m.event(what)
	case text:
		m.endAnswer()
		m.print(strings.Split(string(what), "\n")...)
	case passed:
		m.o.Transcript.Passed()
	case *question:
		m.ask(what)
	case withdrawn:
		m.answered(what.q)
	case done:
		m.endAnswer()
		m.busy, m.stops, m.told = false, time.Time{}, false
		if what.leave {
			m.leaving, m.queue = true, nil
		}
		if what.failed {
			m.giveBack()
		}
		return m.next()
	}
	return nil
}

// event shows an event of the session.
func (m *model) event(e session.Event) {
	m.since = m.now()
	if m.echoed {
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
			if m.blank && len(part.Rows) > 0 && part.Rows[0] == "" {
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
		m.out = append(m.out, row)
		m.blank, m.echoed = row == "", false
	}
}

// gap parts two things by an empty row.
func (m *model) gap() {
	if !m.blank {
		m.print("")
	}
}

// flush brings finished rows to the screen, above what moves: as many at a time as
// there is room for above that, because the renderer counts on it.
func (m *model) flush() tea.Cmd {
	if m.flushing || len(m.out) == 0 {
		if m.leaving && !m.flushing && !m.busy && !m.parting {
			m.parting = true
			return tea.Batch(tea.Raw(ansi.RequestPrimaryDeviceAttributes), tea.Tick(patience, func(time.Time) tea.Msg { return parted{} }))
		}
		return nil
	}
	room := max(m.height-m.region.peak-1, 1)
	var rows []string
	for len(rows) < room && len(m.out) > 0 {
		broken := strings.Split(fitted(m.out[0], m.room()), "\n")
		n := min(len(broken), room-len(rows))
		rows, m.out = append(rows, broken[:n]...), m.out[1:]
		if n < len(broken) {
			m.out = append(broken[n:], m.out...)
		}
	}
	m.flushing, m.under = true, len(rows)
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
	m.busy, m.since, m.warned = true, m.now(), false
	if m.o.Editor != nil {
		m.gap()
		m.print(m.echo(typed)...)
		m.echoed = true
	}
	m.typed <- typed // it has room: nothing is carried out now
	return nil
}

// mostEchoed is how many rows of a prompt stay on the screen.
const mostEchoed = 10

// echo is a prompt as it stays on the screen.
func (m *model) echo(typed string) []string {
	rows := terminal.Fold(strings.TrimRight(typed, "\n"), "> ", "  ", m.room()+1)
	if more := len(rows) - mostEchoed; more > 0 {
		rows = append(rows[:mostEchoed], fmt.Sprintf("  … %d more rows", more))
	}
	for i, row := range rows {
		rows[i] = terminal.Style(m.o.Color, terminal.Bold, row)
	}
	return rows
}

// keepBeating has time pass while something moves.
func (m *model) keepBeating() tea.Cmd {
	if !m.busy || m.beating {
		return nil
	}
	m.beating = true
	return tea.Tick(beatEvery, func(time.Time) tea.Msg { return beat{} })
}

// key is a key that was pressed.
func (m *model) key(msg tea.KeyPressMsg) tea.Cmd {
	key := msg.String()
	switch {
	case m.leaving:
		return nil
	case m.o.Editor != nil && m.o.Editor.Open() && (key == "ctrl+c" || key == "esc"):
		return m.edit(msg) // closes its list
	case key == "ctrl+c":
		m.interrupt()
		return nil
	case key == "ctrl+z":
		m.away = true
		return tea.Suspend
	case m.asked != nil:
		taken, cmd := m.press(msg)
		if !taken {
			m.warned, m.told = false, false
			cmd = tea.Batch(cmd, m.edit(msg))
		}
		return cmd
	case key == "ctrl+d" && m.o.Editor != nil && m.o.Editor.Empty():
		if m.told = m.busy; !m.busy {
			m.leaving = true
			m.print(m.o.Leaving)
		}
		return nil
	}
	m.warned, m.told = false, false
	return m.edit(msg)
}

// twice is how long Ctrl-C that is pressed again means what it meant the first time.
const twice = time.Second

// interrupt stops what is going on, and else what is being typed, and else, the
// second time, the chat.
func (m *model) interrupt() {
	ed := m.o.Editor
	switch {
	case m.busy && !m.stops.IsZero() && m.now().Sub(m.stops) < twice:
	case m.busy:
		m.o.Stop()
		m.stops, m.told = m.now(), false
		m.giveBack()
	case ed == nil:
	case !ed.Empty():
		ed.Clear()
	case m.warned:
		m.leaving = true
		m.print(m.o.Leaving)
	default:
		m.warned = true
	}
}

// giveBack puts what waits into the editor again: it was meant to follow what has not
// come to its end.
func (m *model) giveBack() {
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
