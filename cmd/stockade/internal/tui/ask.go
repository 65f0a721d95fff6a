package tui

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/prompt"
)

// question is a question to the person, with the state of its display.
type question struct {
	prompt     *prompt.Prompt
	answer     chan prompt.Choice // where the answer goes; it has room for one
	quiet      time.Time          // time when a key last went to the editor, or when new rows were last shown
	expanded   bool               // "?" was pressed: more of the question is shown
	invalidKey bool               // the last key is not an answer of this question
	heldKey    *tea.KeyPressMsg   // a key that will answer unless another key follows at once; nil: none
	since      time.Time          // time when heldKey was pressed
}

// withdrawn is the message that nobody waits for the answer to q any longer.
type withdrawn struct{ q *question }

// answerDelay is the time for which a question must be on the screen, without keys for the
// editor, before a key answers it: a person who is typing does not notice the question at
// once.
const answerDelay = 500 * time.Millisecond

// keyHold is the time for which a key is held because another key may follow: the first letter
// of a word is not an answer.
const keyHold = 250 * time.Millisecond

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

// ask opens a question. A text that was set aside for the last question is set aside again,
// unless it was edited since.
func (m *model) ask(q *question) {
	m.openQuestion = q
	q.quiet = m.now()
	if m.restoredText != "" && m.o.Editor.Value() == m.restoredText { // the last question set the text aside, and it was not edited since
		m.setAside()
	}
}

// closeQuestion removes the question and restores the text that was set aside. It does nothing
// if q is not the open question.
func (m *model) closeQuestion(q *question) {
	if m.openQuestion != q {
		return
	}
	m.openQuestion = nil
	m.restoredText = ""
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

// pressInQuestion handles a key while a question is open. taken is false if the key is for the
// editor. Text that is being typed stays in the editor until it is sent or set aside.
func (m *model) pressInQuestion(msg tea.KeyPressMsg) (taken bool, cmd tea.Cmd) {
	q, key := m.openQuestion, msg.String()
	first := q.heldKey
	q.heldKey = nil
	if first != nil && !m.isDrafting() { // otherwise something was pasted since
		switch {
		case key == "enter": // people press Enter from habit
			m.choose(first.String())
			return true, nil
		case msg.Text == "":
			return true, nil
		}
		q.quiet = m.now()
		return m.o.Editor == nil, m.edit(*first)
	}
	seen := m.now().Sub(q.quiet) >= answerDelay
	switch {
	case m.isDrafting() && key == "esc":
		m.setAside()
		q.quiet = m.now()
		return true, nil
	case m.isDrafting() || !seen:
		q.quiet = m.now()
		return m.o.Editor == nil || q.expanded && !m.isDrafting(), nil
	case msg.Text != "" && key != "?":
		q.heldKey, q.since = &msg, m.now()
		return true, nil
	}
	m.choose(key)
	return true, nil
}

// answerHeldKey answers with the held key after keyHold, unless something was pasted since.
func (m *model) answerHeldKey() {
	if q := m.openQuestion; q != nil && q.heldKey != nil && m.now().Sub(q.since) >= keyHold {
		key := q.heldKey.String()
		if q.heldKey = nil; !m.isDrafting() {
			m.choose(key)
		}
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
		q.expanded, q.quiet = true, m.now() // the new rows offer more keys, and must be seen first
		return
	}
	q.answer <- choice // the row of the call shows the answer
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
