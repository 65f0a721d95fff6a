package tui

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/editor"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/prompt"
)

// question is a question to the person, with the state of its display.
type question struct {
	prompt     *prompt.Prompt
	answer     chan prompt.Choice // where the answer goes; it has room for one
	shown      time.Time          // time when it, or its newest rows, were shown
	quiet      time.Time          // time when a key last went to the editor, or shown
	guard      time.Duration      // time after quiet in which no key answers
	expanded   bool               // more of it was shown
	invalidKey bool               // the last key is not an answer of this question
	why        *editor.Editor     // line for the reason of a no; nil: it is not open
	whyChoice  prompt.Choice      // the no that the reason is for
}

// heldText is a letter that waits, because it may be the beginning of a word. The zero value is
// none.
type heldText struct {
	text  string    // the letter, as often as it was pressed without another key between
	since time.Time // time when it was last pressed
	stray bool      // it is dropped if no other key follows; otherwise it answers the question
}

const (
	// answerDelay is the time for which a question must be on the screen, without keys for the
	// editor, before a key answers it: who is typing does not notice the question at once.
	answerDelay = 500 * time.Millisecond
	// sameAgainDelay is answerDelay for a question about the tool of the question before, both
	// without a warning: the person knows what is coming.
	sameAgainDelay = 250 * time.Millisecond
	// keyHold is the time for which a key is held because another key may follow: the first
	// letter of a word is not an answer.
	keyHold = 250 * time.Millisecond
	// rhythm is the time after an answer in which the same key alone is dropped: the person
	// answers a row of questions, and no prompt begins.
	rhythm = 2 * time.Second
	// maxTyped limits a held letter with its repetitions that goes to the editor, in bytes: more come
	// from a key that is held down.
	maxTyped = 4
)

// Ask implements prompt.Asker: it shows a question and waits for the answer.
func (u *UI) Ask(ctx context.Context, p *prompt.Prompt) (prompt.Choice, error) {
	q := &question{prompt: p, answer: make(chan prompt.Choice, 1)}
	u.send(q)
	select {
	case c := <-q.answer:
		return c, nil
	case <-ctx.Done():
		u.send(func(m *model) { m.closeQuestion(q) })
		return prompt.Choice{}, context.Cause(ctx)
	case <-u.ended:
		return prompt.Choice{}, context.Canceled
	}
}

// announceDelay is the time for which a question of a chat waits, without a key, before the
// terminal calls a person who looks elsewhere.
const announceDelay = 2 * time.Second

// What the terminal gets when a question waits: a bell, a notification and a title. When none waits
// any more, it gets the title "Stockade", or the old one back if the terminal has kept that.
const (
	waitingTitle  = "Stockade: a question waits"
	callPerson    = "\a\x1b]9;" + waitingTitle + "\a\x1b[22;2t\x1b]2;" + waitingTitle + "\a"
	endCallPerson = "\x1b]2;Stockade\a\x1b[23;2t"
)

// announce returns a command that calls the person to an open question, or takes the call back;
// nil: neither is due.
func (m *model) announce() tea.Cmd {
	q := m.openQuestion
	switch {
	case q == nil && m.announced:
		m.announced = false
		return tea.Raw(endCallPerson)
	case q != nil && !m.announced && m.o.Editor != nil && m.now().Sub(q.quiet) >= announceDelay:
		m.announced = true
		return tea.Raw(callPerson)
	}
	return nil
}

// ask opens a question. A text that was set aside for the last question is set aside again,
// unless it was edited since.
func (m *model) ask(q *question) {
	if c, unseen := q.prompt.Unseen(m.questionView()); unseen {
		q.answer <- c
		return
	}
	m.openQuestion = q
	q.shown, q.guard = m.now(), answerDelay
	q.quiet = q.shown
	subject := q.prompt.Subject(m.questionView())
	if subject != "" && subject == m.lastSubject {
		q.guard = sameAgainDelay
	}
	m.lastSubject = subject
	m.held.stray = true // it was pressed for another question, or for none
	m.dropEarlyAnswer(q)
	if m.restoredText != "" && m.o.Editor.Value() == m.restoredText { // the last question set the text aside, and it was not edited since
		m.setAside()
	}
}

// closeQuestion removes the question and restores the text that was set aside, with a reason that
// was not sent. It does nothing if q is not the open question.
func (m *model) closeQuestion(q *question) {
	if m.openQuestion != q {
		return
	}
	m.openQuestion = nil
	m.held.stray = true
	m.restoredText = ""
	if q.why != nil && m.o.Editor != nil {
		m.asideText = strings.Trim(m.asideText+"\n"+q.why.Value(), "\n")
	}
	if m.asideText != "" {
		m.restoredText = m.asideText + m.o.Editor.Value()
		m.o.Editor.SetValue(m.restoredText)
		m.asideText = ""
	}
}

// setAside moves the text out of the editor until the question was answered.
func (m *model) setAside() {
	m.asideText += m.o.Editor.Value()
	m.o.Editor.Clear()
}

// isDrafting reports whether the editor has text.
func (m *model) isDrafting() bool { return m.o.Editor != nil && !m.o.Editor.Empty() }

// dropEarlyAnswer removes a draft that is only the key of an answer, once or more: it was pressed
// for a question that was expected. If another key follows at once, it is the beginning of a word.
func (m *model) dropEarlyAnswer(q *question) {
	if !m.isDrafting() {
		return
	}
	draft := m.o.Editor.Value()
	_, size := utf8.DecodeRuneInString(draft)
	if _, answers := q.prompt.Answer(m.questionView(), draft[:size]); answers && strings.Trim(draft, draft[:size]) == "" {
		m.o.Editor.Clear()
		m.hold(draft, true)
	}
}

// hold holds a letter until keyHold has passed, or another key follows.
func (m *model) hold(text string, stray bool) { m.held = heldText{text, m.now(), stray} }

// key handles a pressed key. If it follows a held letter, both are the beginning of a word, and go
// to the editor.
func (m *model) key(msg tea.KeyPressMsg) (cmd tea.Cmd) {
	m.endHold()
	first := m.held
	m.held = heldText{}
	switch {
	case first.text == "" || m.isDrafting(): // the second: something was pasted since
	case msg.Text != "" && strings.HasPrefix(first.text, msg.Text): // it is held down, or hit twice
		m.hold(first.text+msg.Text, true)
		return nil
	case msg.String() == "enter": // people press Enter from habit
		if !first.stray {
			m.choose(first.text)
		}
		return nil
	case msg.Text != "":
		if m.openQuestion != nil {
			m.openQuestion.quiet = m.now()
		}
		if len(first.text) <= maxTyped {
			cmd = m.edit(tea.PasteMsg{Content: first.text})
		}
	}
	return tea.Batch(cmd, m.press(msg))
}

// pressInQuestion handles a key while a question is open. taken is false if the key is for the
// editor. Text that is being typed stays in the editor until it is sent or set aside.
func (m *model) pressInQuestion(msg tea.KeyPressMsg) (taken bool) {
	q, key := m.openQuestion, msg.String()
	drafting, seen := m.isDrafting(), m.now().Sub(q.quiet) >= q.guard
	_, answers := q.prompt.Answer(m.questionView(), key)
	switch {
	case !drafting && seen && (msg.Text == "" || key == "?"):
		m.choose(key)
		return true
	case !drafting && (seen || answers) && msg.Text != "":
		m.hold(msg.Text, !seen)
		return true
	case !drafting && q.expanded: // somebody reads
		taken = true
	case drafting && key == "esc":
		m.setAside()
		taken = true
	case drafting && key == "enter": // within the guard, it was meant for what was there before
		taken = m.now().Sub(q.shown) < q.guard
	}
	q.quiet = m.now()
	return taken
}

// pressInReason handles a key while the person types the reason for a no.
func (m *model) pressInReason(msg tea.KeyPressMsg) tea.Cmd {
	q := m.openQuestion
	if msg.String() == "esc" {
		q.why, q.quiet = nil, m.now()
		return nil
	}
	cmd, reason, sent := q.why.Update(msg)
	if choice, ok := q.whyChoice.Because(reason); sent && ok {
		q.why = nil
		m.answerWith(choice)
	}
	return cmd
}

// endHold answers the question with the held key after keyHold, or drops the key.
func (m *model) endHold() {
	held := m.held
	if held.text == "" || m.now().Sub(held.since) < keyHold {
		return
	}
	m.held = heldText{}
	switch {
	case held.stray:
		m.lastAnswered = m.now()
	case !m.isDrafting(): // otherwise something was pasted since
		m.choose(held.text)
	}
}

// choose answers the open question by a key, or shows more of the question.
func (m *model) choose(key string) {
	q := m.openQuestion
	choice, ok := q.prompt.Answer(m.questionView(), key)
	if q.invalidKey = !ok; q.invalidKey {
		return
	}
	if rows := q.prompt.Expand(m.questionView(), choice); rows != nil {
		m.print(rows...)
		q.expanded, q.quiet, q.guard = true, m.now(), answerDelay // the new rows offer more keys, and must be seen first
		return
	}
	if m.lastKey = key; choice.AsksWhy() {
		q.why, q.whyChoice = editor.New(editor.Options{Color: m.o.Color, Hint: "your words for the model"}), choice
		return
	}
	m.answerWith(choice)
}

// answerWith answers the open question. The row of the call shows the answer.
func (m *model) answerWith(c prompt.Choice) {
	q := m.openQuestion
	m.lastAnswered = m.now()
	q.answer <- c
	m.closeQuestion(q)
}

// questionView returns the room that a question has: the rows above the editor.
func (m *model) questionView() prompt.View {
	room := m.height - 2 - len(m.queued())
	if m.o.Editor != nil {
		room -= 2
	}
	return prompt.View{Width: m.width, Height: room, Color: m.o.Color}
}
