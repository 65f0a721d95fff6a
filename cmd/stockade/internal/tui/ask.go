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
	expanded   bool               // "?" was pressed: more of the question is shown
	invalidKey bool               // the last key is not an answer of this question
	why        *editor.Editor     // line for the reason of a no; nil: it is not open
	whyChoice  prompt.Choice      // the no that the reason is for
}

// heldKey is a letter that waits, because it may be the beginning of a word.
type heldKey struct {
	tea.KeyPressMsg
	since time.Time // time when it was last pressed
	times int       // number of times that it was pressed, without another key between
	stray bool      // it is dropped if no other key follows; otherwise it answers the question
}

// withdrawn is the message that nobody waits for the answer to q any longer.
type withdrawn struct{ q *question }

const (
	// answerDelay is the time for which a question must be on the screen, without keys for the
	// editor, before a key answers it: a person who is typing does not notice the question at
	// once.
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
	// maxReplayed limits the repetitions of a held key that go to the editor: more come from a
	// key that is held down.
	maxReplayed = 3
)

// Ask implements prompt.Asker: it shows a question and waits for the answer.
func (u *UI) Ask(ctx context.Context, p *prompt.Prompt) (prompt.Choice, error) {
	q := &question{prompt: p, answer: make(chan prompt.Choice, 1)}
	u.send(q)
	select {
	case c := <-q.answer:
		return c, nil
	case <-ctx.Done():
		u.send(withdrawn{q})
		return prompt.Choice{}, context.Cause(ctx)
	case <-u.ended:
		return prompt.Choice{}, context.Canceled
	}
}

// announceDelay is the time for which a question of a chat waits, without a key, before the
// terminal calls a person who looks elsewhere.
const announceDelay = 2 * time.Second

// What the terminal gets when a question waits, and when it is answered: a bell, a notification,
// and a title, which the old one then replaces if the terminal has kept it.
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
	m.dropHeld()
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
	m.dropHeld()
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

// dropHeld makes sure that the held key, if there is one, answers no question: it was pressed
// for another one, or for none.
func (m *model) dropHeld() {
	if m.held != nil {
		m.held.stray = true
	}
}

// dropEarlyAnswer removes a draft that is only the key of an answer, once or more: it was pressed
// for a question that was expected. If it was typed just now, it may be the beginning of a word.
func (m *model) dropEarlyAnswer(q *question) {
	if m.held != nil || !m.isDrafting() {
		return
	}
	draft := m.o.Editor.Value()
	first, size := utf8.DecodeRuneInString(draft)
	_, answers := q.prompt.Answer(m.questionView(), draft[:size])
	if times := len(draft) / size; answers && draft == strings.Repeat(draft[:size], times) {
		m.o.Editor.Clear()
		m.held = &heldKey{KeyPressMsg: tea.KeyPressMsg{Code: first, Text: draft[:size]}, since: m.lastTyped, times: times, stray: true}
		m.lastKey, m.lastAnswered = draft[:size], m.now()
	}
}

// hold holds a key until keyHold has passed, or another key follows.
func (m *model) hold(msg tea.KeyPressMsg, stray bool) {
	m.held = &heldKey{KeyPressMsg: msg, since: m.now(), times: 1, stray: stray}
}

// pressAfterHeld handles a key that follows a held one: both are the beginning of a word, and
// go to the editor. taken is true if nothing else is to be done about the key.
func (m *model) pressAfterHeld(msg tea.KeyPressMsg) (taken bool, cmd tea.Cmd) {
	first := m.held
	m.held = nil
	switch {
	case first == nil || m.isDrafting(): // the second: something was pasted since
		return false, nil
	case first.stray && m.now().Sub(first.since) >= keyHold:
		m.lastAnswered = m.now()
		return false, nil
	case msg.Text != "" && msg.Text == first.Text: // it is held down, or hit twice
		first.since, first.times, first.stray = m.now(), first.times+1, true
		m.held = first
		return true, nil
	case msg.String() == "enter": // people press Enter from habit
		if !first.stray {
			m.choose(first.String())
		}
		return true, nil
	case msg.Text == "":
		return false, nil
	}
	if m.openQuestion != nil {
		m.openQuestion.quiet = m.now()
	}
	if first.times <= maxReplayed {
		for range first.times {
			cmd = tea.Batch(cmd, m.edit(first.KeyPressMsg))
		}
	}
	return m.o.Editor == nil, cmd
}

// isRhythm reports whether a key, while no question is open, is that of the last answer again,
// and not the beginning of a prompt unless another key follows.
func (m *model) isRhythm(msg tea.KeyPressMsg) bool {
	return m.o.Editor != nil && !m.isDrafting() && msg.Text != "" && msg.String() == m.lastKey && m.now().Sub(m.lastAnswered) < rhythm
}

// pressInQuestion handles a key while a question is open. taken is false if the key is for the
// editor. Text that is being typed stays in the editor until it is sent or set aside.
func (m *model) pressInQuestion(msg tea.KeyPressMsg) (taken bool, cmd tea.Cmd) {
	q, key := m.openQuestion, msg.String()
	if q.why != nil {
		return true, m.pressInReason(msg)
	}
	seen := m.now().Sub(q.quiet) >= q.guard
	_, answers := q.prompt.Answer(m.questionView(), key)
	switch {
	case m.isDrafting() && key == "esc":
		m.setAside()
		q.quiet = m.now()
		return true, nil
	case m.isDrafting() && key == "enter" && m.now().Sub(q.shown) < q.guard: // it was meant for what was there before
		q.quiet = m.now()
		return true, nil
	case m.isDrafting():
		q.quiet = m.now()
		return m.o.Editor == nil, nil
	case !seen && answers && msg.Text != "":
		m.hold(msg, true)
		return true, nil
	case !seen:
		q.quiet = m.now()
		return m.o.Editor == nil || q.expanded, nil
	case msg.Text != "" && key != "?":
		m.hold(msg, false)
		return true, nil
	}
	m.choose(key)
	return true, nil
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
	first := m.held
	if first == nil || m.now().Sub(first.since) < keyHold {
		return
	}
	m.held = nil
	switch {
	case first.stray:
		m.lastAnswered = m.now()
	case m.openQuestion != nil && !m.isDrafting(): // otherwise something was pasted since
		m.choose(first.String())
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
