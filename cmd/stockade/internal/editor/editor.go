// Package editor is the input line of the chat: a component for bubbletea that edits a prompt
// of several lines, keeps a history, inserts a paste in one step and completes names.
//
// The text is a list of pieces. The cursor moves over a piece in one step. A piece is a
// character with its marks, a tab, the end of a line, an invisible character (the screen
// shows its code), or a long paste (the screen shows its size). The editor sends the text
// as it was typed and pasted, and shows visible text only. See RATIONALE, "Why is the
// editor of the chat not that of bubbles?"
package editor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
)

// Limits of a prompt.
const (
	MaxBytes = 1 << 20 // bytes of a prompt; more text is refused, with a notice

	maxShown   = 20_000        // characters on the screen; longer text is folded: only its size is shown
	foldLines  = 5             // lines of a paste; a longer one is folded
	foldChars  = 1000          // characters of a paste; a longer one is folded
	maxRows    = 10            // rows of text on the screen; longer text scrolls
	maxUndo    = 100           // steps of undo; the oldest are forgotten
	undoPieces = 10 * maxShown // pieces in all steps of undo together; more than these are forgotten, too
	maxPastes  = 20            // number of pastes that are folded again when a prompt comes back from the history
	minColumns = 2             // least number of columns for text: enough for a wide character
)

// Options configure an editor. The zero value works.
type Options struct {
	History  string // path of the history file; empty: the history is kept in memory only
	Commands []Command
	// Complete returns the names of a kind that could follow prefix; for paths, names in or below
	// the directory at its beginning. Several goroutines may call it. The editor calls it for the
	// first character of a name, and again when the directory changes.
	Complete func(kind Kind, prefix string) []string
	Color    bool
	Hint     string // text in the empty line; empty: "ask, or /help"
	// Redact removes secrets from an entry before it is added to the history; nil keeps
	// entries as they are.
	Redact func(string) string
}

// Command is a command of the chat, as its help shows it.
type Command struct {
	Name string // name with its slash
	Args string
	What string
	Arg  Kind // kind of the argument, for completion after the command
}

// Editor is a prompt that a person types. Only one goroutine may use it: the one that runs
// Update and View.
type Editor struct {
	opts   Options
	widths ansi.Method // the way in which bubbletea counts columns

	text []piece // never changed in place, because undo keeps old slices
	at   int     // the cursor is before this piece

	undo       []state
	lastAction action // action of the last key
	killed     []piece
	goal       int // column that Up and Down try to keep; -1: the present column of the cursor
	notice     string

	pastes  []string // texts of folded pastes, for folding them again
	history history
	recall  recall
	search  search
	list    completion

	columns int // columns for text at the last View
	rows    []row
	top     int // index of the first row shown
	cursor  tea.Position
}

type state struct {
	text []piece
	at   int
}

// action is the kind of the last key, as far as the effect of the next key depends on it.
type action int

const (
	otherAction action = iota
	typing
	killing
)

// New returns an empty editor.
func New(o Options) *Editor {
	return &Editor{opts: o, history: history{path: o.History}, columns: 80, goal: -1}
}

// Empty reports whether the editor has no text.
func (e *Editor) Empty() bool { return len(e.text) == 0 }

// Value returns the text that would be sent.
func (e *Editor) Value() string { return join(e.text) }

// Clear empties the editor. Undo brings the text back.
func (e *Editor) Clear() { e.SetValue("") }

// SetValue replaces the text and moves the cursor to its end. Pastes of this editor are
// folded again.
func (e *Editor) SetValue(text string) {
	e.search.on = false
	e.list.close()
	e.replace(0, len(e.text), e.load(text))
}

// HasPopup reports whether a list or a search is open. If one is, Esc and Ctrl-C close
// it, and the caller must pass them to [Editor.Update].
func (e *Editor) HasPopup() bool { return e.search.on || e.listed() }

// textStart returns the index of the first piece after the sign "!" of a shell command: 1, or
// 0 if there is no sign.
func (e *Editor) textStart() int {
	if len(e.text) > 0 && e.text[0].text == "!" {
		return 1
	}
	return 0
}

// Update handles a message. The caller runs the returned command. ok is true if the person has
// sent the prompt; then submitted is its text, and the editor is empty.
func (e *Editor) Update(msg tea.Msg) (cmd tea.Cmd, submitted string, ok bool) {
	switch msg := msg.(type) {
	case tea.ModeReportMsg:
		if msg.Mode == ansi.ModeUnicodeCore && msg.Value != ansi.ModeNotRecognized && msg.Value != ansi.ModePermanentlyReset {
			e.measure(ansi.GraphemeWidth)
		}
	case tea.PasteMsg:
		e.notice = ""
		e.paste(msg.Content)
	case namesFound:
		if e.list.requested != "" && msg.seq == e.list.seq { // the last request
			e.list.all = msg.names
			e.filterNames()
		}
	case tea.KeyPressMsg:
		e.notice = ""
		return e.key(msg)
	}
	return nil, "", false
}

// measure sets the way in which columns are counted, and counts those of the text again.
func (e *Editor) measure(widths ansi.Method) {
	e.widths, e.rows = widths, nil
	e.text = slices.Clone(e.text)
	for i, p := range e.text {
		if p.text != "\n" {
			e.text[i].cols = widths.StringWidth(p.show)
		}
	}
}

func (e *Editor) key(k tea.KeyPressMsg) (cmd tea.Cmd, submitted string, ok bool) {
	name := k.Keystroke()
	if k.Text != "" {
		name = "" // an input method can type "up"
	}
	if e.search.on && e.searchKey(name, k.Text) {
		return nil, "", false
	}
	if e.listed() {
		if cmd, done := e.listKey(name); done {
			return cmd, "", false
		}
	}
	before := e.lastAction
	e.lastAction = otherAction
	vertical := false
	switch name {
	case "enter":
		switch {
		case e.at > e.textStart() && e.text[e.at-1].text == `\` && e.lineEnd(e.at) == e.at:
			e.replace(e.at-1, e.at, e.pieces("\n"))
		default:
			submitted, ok = e.submit()
			return nil, submitted, ok
		}
	case "shift+enter", "alt+enter", "ctrl+enter", "ctrl+j":
		if e.hasRoom(1) {
			e.replace(e.at, e.at, e.pieces("\n"))
		}
	case "tab":
		return e.complete(true), "", false
	case "left", "ctrl+b":
		e.move(e.at - 1)
	case "right", "ctrl+f":
		e.move(e.at + 1)
	case "alt+left", "ctrl+left", "alt+b":
		e.move(e.wordLeft(e.at, piece.isWord))
	case "alt+right", "ctrl+right", "alt+f":
		e.move(e.wordRight(e.at, piece.isWord))
	case "home", "ctrl+a":
		e.move(e.lineStart(e.at))
	case "end", "ctrl+e":
		e.move(e.lineEnd(e.at))
	case "ctrl+home", "alt+<":
		e.move(0)
	case "ctrl+end", "alt+>":
		e.move(len(e.text))
	case "up", "ctrl+p":
		vertical = true
		e.vertical(-1)
	case "down", "ctrl+n":
		vertical = true
		e.vertical(1)
	case "backspace", "ctrl+h", "shift+backspace":
		e.replace(max(e.at-1, 0), e.at, nil)
		return e.complete(false), "", false
	case "delete", "ctrl+d":
		e.replace(e.at, min(e.at+1, len(e.text)), nil)
		return e.complete(false), "", false
	case "ctrl+w":
		e.kill(e.wordLeft(e.at, func(p piece) bool { return !p.blank() }), e.at, before)
	case "alt+backspace", "ctrl+backspace":
		e.kill(e.wordLeft(e.at, piece.isWord), e.at, before)
	case "alt+d", "alt+delete", "ctrl+delete":
		e.kill(e.at, e.wordRight(e.at, piece.isWord), before)
	case "ctrl+u":
		from := e.lineStart(e.at)
		switch from {
		case e.textStart():
			from = 0 // also the sign of a shell command
		case e.at:
			from--
		}
		e.kill(from, e.at, before)
	case "ctrl+k":
		to := e.lineEnd(e.at)
		if to == e.at {
			to = min(to+1, len(e.text))
		}
		e.kill(e.at, to, before)
	case "ctrl+y":
		if e.hasRoom(len(join(e.killed))) {
			e.replace(e.at, e.at, e.killed)
		}
	case "ctrl+_", "ctrl+/", "ctrl+shift+-":
		if n := len(e.undo); n > 0 {
			e.text, e.at, e.undo, e.rows = e.undo[n-1].text, e.undo[n-1].at, e.undo[:n-1], nil
		}
		e.recall.on = false
	case "ctrl+r":
		e.search = search{on: true, at: len(e.history.all()), draft: state{e.text, e.at}}
	default:
		if k.Text == "" {
			return nil, "", false
		}
		e.insertTyped(k.Text, before)
		return e.complete(false), "", false
	}
	if !vertical {
		e.goal = -1
	}
	e.list.close()
	return nil, "", false
}

func (e *Editor) move(at int) {
	e.at = min(max(at, e.textStart()), len(e.text))
}

// replace replaces the pieces from up to to, and moves the cursor behind the new ones. It is
// one step of undo.
func (e *Editor) replace(from, to int, with []piece) {
	if from == to && len(with) == 0 {
		return
	}
	e.pushUndo()
	e.splice(from, to, with)
}

func (e *Editor) splice(from, to int, with []piece) {
	e.text = slices.Concat(e.text[:from], with, e.text[to:])
	e.at = max(from+len(with), e.textStart()) // a "!" may now be the first piece
	e.goal, e.rows, e.recall.on = -1, nil, false
}

func (e *Editor) pushUndo() {
	e.undo = append(e.undo, state{e.text, e.at})
	pieces := 0
	for _, s := range e.undo {
		pieces += len(s.text)
	}
	for len(e.undo) > maxUndo || pieces > undoPieces && len(e.undo) > 1 {
		pieces -= len(e.undo[0].text)
		e.undo = slices.Delete(e.undo, 0, 1)
	}
}

// insertTyped inserts typed text. Consecutive characters are one step of undo.
func (e *Editor) insertTyped(text string, before action) {
	text = strings.ToValidUTF8(text, "�")
	if !e.hasRoom(len(text)) {
		return
	}
	if before != typing {
		e.pushUndo()
	}
	e.lastAction = typing
	from := e.at
	if first(text) >= utf8.RuneSelf && from > e.textStart() && e.text[from-1].pasted == 0 && !e.text[from-1].blank() {
		// A mark is combined with the character before it.
		from--
		text = e.text[from].text + text
	}
	e.splice(from, e.at, e.pieces(text))
}

// hasRoom reports whether more further bytes fit into the prompt. If not, it shows a notice.
func (e *Editor) hasRoom(more int) bool {
	size := 0
	for _, p := range e.text {
		size += len(p.text)
	}
	if size+more > MaxBytes {
		e.notice = fmt.Sprintf("not inserted: a prompt has %d KiB at most; name a file with @ instead", MaxBytes>>10)
		return false
	}
	return true
}

// paste inserts pasted text. It never sends the prompt, even if the text ends with a line end.
func (e *Editor) paste(text string) {
	text = strings.ToValidUTF8(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text), "�")
	if text == "" || !e.hasRoom(len(text)) {
		return
	}
	if e.search.on {
		e.endSearch()
	}
	e.list.close()
	e.lastAction = otherAction
	if countLines(text) <= foldLines && utf8.RuneCountInString(text) <= foldChars && len(e.text) < maxShown {
		e.replace(e.at, e.at, e.pieces(text))
		return
	}
	e.pastes = append(e.pastes[max(0, len(e.pastes)-maxPastes+1):], text)
	e.replace(e.at, e.at, []piece{foldText("pasted", text, e.text)})
}

// load splits a text from the history or the caller into pieces, and folds its pastes.
func (e *Editor) load(text string) (out []piece) {
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\r\n", "\n"), "�")
	for text != "" {
		at, paste := len(text), ""
		for _, p := range e.pastes {
			if i := strings.Index(text, p); i >= 0 && (i < at || i == at && len(p) > len(paste)) {
				at, paste = i, p
			}
		}
		if plain := text[:at]; len(out)+len(plain) > maxShown {
			out = append(out, foldText("kept", plain, out))
		} else {
			out = append(out, e.pieces(plain)...)
		}
		if paste != "" {
			out = append(out, foldText("pasted", paste, out))
		}
		text = text[at+len(paste):]
	}
	return out
}

// kill deletes pieces and stores them for Ctrl-Y. The pieces of consecutive kills are stored
// together. before is the action of the last key.
func (e *Editor) kill(from, to int, before action) {
	if from == to {
		return
	}
	taken := e.text[from:to]
	switch {
	case before != killing:
		e.killed = taken
	case to == e.at:
		e.killed = slices.Concat(taken, e.killed)
	default:
		e.killed = slices.Concat(e.killed, taken)
	}
	e.replace(from, to, nil)
	e.lastAction = killing
}

// submit returns the prompt, adds it to the history and empties the editor.
func (e *Editor) submit() (text string, ok bool) {
	text = e.Value()
	if strings.TrimSpace(text) == "" {
		return "", false
	}
	e.text, e.at, e.undo, e.rows, e.top = nil, 0, nil, nil, 0
	e.recall = recall{}
	e.list.close()
	if text[0] != ' ' {
		kept := text
		if e.opts.Redact != nil {
			kept = e.opts.Redact(text)
		}
		if err := e.history.add(kept); err != nil {
			e.notice = err.Error()
		}
	}
	return text, true
}

// vertical moves the cursor by rows, up or down (by is -1 or 1). From the first or last row it
// moves through the history.
func (e *Editor) vertical(by int) {
	rows := e.layout()
	at := rowOf(rows, e.at)
	to := at + by
	if to < 0 || to >= len(rows) {
		e.walkHistory(by)
		return
	}
	if e.goal < 0 {
		e.goal = e.width(rows[at].from, e.at)
	}
	e.at = rows[to].from
	end := rows[to].to
	if to+1 < len(rows) && rows[to+1].from == end {
		end-- // the end of a broken row is the beginning of the next one
	}
	for used := 0; e.at < end; e.at++ {
		if used += min(e.text[e.at].cols, e.columns); used > e.goal {
			break
		}
	}
}

// width returns the number of columns that the pieces from up to to take in a row.
func (e *Editor) width(from, to int) (columns int) {
	for _, p := range e.text[from:to] {
		columns += min(p.cols, e.columns)
	}
	return columns
}

func (e *Editor) layout() []row {
	if e.rows == nil {
		e.rows = layout(e.text, e.textStart(), e.columns)
	}
	return e.rows
}

// View returns the editor in at most width columns and limit rows: the text, and below it
// the list, the search or a notice.
func (e *Editor) View(width, limit int) string {
	const signs = 2
	if columns := max(width-signs-1, minColumns); columns != e.columns { // one column for a cursor behind the last character
		e.columns, e.rows, e.goal = columns, nil, -1
	}
	if e.search.on && limit < 2 {
		e.cursor = tea.Position{X: min(e.search.column(e, width), width-1)}
		return e.search.view(e, width)
	}
	below := e.below(width, limit-1)
	rows := e.layout()
	at := rowOf(rows, e.at)
	n := min(len(rows), maxRows, max(limit-len(below), 1))
	e.top = min(max(e.top, at-n+1), at, len(rows)-n)
	e.cursor = tea.Position{X: signs + e.width(rows[at].from, e.at), Y: at - e.top}

	var out []string
	for i := e.top; i < e.top+n; i++ {
		sign := "  "
		switch {
		case i == 0 && e.textStart() > 0:
			sign = e.style(terminal.Yellow, "! ")
		case i == 0:
			sign = e.style(terminal.Bold, "> ")
		case i == e.top:
			sign = e.style(terminal.Dim, "^ ") // there are rows above
		case i == e.top+n-1 && i < len(rows)-1:
			sign = e.style(terminal.Dim, "v ")
		}
		out = append(out, sign+e.show(rows[i]))
	}
	if len(e.text) == 0 && !e.search.on {
		out[0] += e.style(terminal.Dim, ansi.Truncate(cmp.Or(e.opts.Hint, "ask, or /help"), e.columns, "…"))
	}
	if e.search.on {
		e.cursor = tea.Position{X: min(e.search.column(e, width), width-1), Y: len(out)}
	}
	for _, row := range below {
		out = append(out, e.widths.Truncate(row, width, ""))
	}
	return strings.Join(out, "\n")
}

func (e *Editor) show(r row) string {
	var b strings.Builder
	for _, p := range e.text[r.from:r.to] {
		switch {
		case p.pasted > 0:
			b.WriteString(e.style(terminal.Dim, ansi.Truncate(p.show, e.columns, "…")))
		case p.cols > e.columns:
			b.WriteString(e.widths.Truncate(p.show, e.columns, "…"))
		default:
			b.WriteString(p.show)
		}
	}
	return strings.TrimRight(b.String(), " ")
}

func (e *Editor) style(style, text string) string {
	return terminal.Style(e.opts.Color, style, text)
}

// below returns at most limit rows below the text: the list, the search or the notice.
func (e *Editor) below(width, limit int) []string {
	switch {
	case limit < 1:
		return nil
	case e.search.on:
		return []string{e.search.view(e, width)}
	case e.notice != "":
		return []string{"  " + e.style(terminal.Red, e.widths.Truncate(terminal.Line(e.notice), width-3, "…"))}
	case e.listed():
		return e.list.view(e, width, limit)
	}
	return nil
}

// Cursor returns the position of the cursor, relative to the first row of the last
// [Editor.View].
func (e *Editor) Cursor() *tea.Cursor { return tea.NewCursor(e.cursor.X, e.cursor.Y) }
