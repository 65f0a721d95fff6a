package tui

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/prompt"
)

// question is one that a person is asked.
type question struct {
	prompt     *prompt.Prompt
	answer     chan prompt.Choice // takes one
	quiet      time.Time          // since when nothing else was typed
	expanded   bool               // more of it was shown
	invalidKey bool               // the last key was no answer
	heldKey    *tea.KeyPressMsg   // a key that is an answer if no other follows at once
	since      time.Time          // when that was pressed
}

// withdrawn is a question that nobody waits for any more.
type withdrawn struct{ q *question }

// answerDelay is how long a question has to be on the screen, with nothing else being
// typed, before a key answers it: a person who is typing does not see it at once.
const answerDelay = 500 * time.Millisecond

// keyHold is how long a key is held, because another may follow: the first letter of a
// word that somebody begins to type is no answer.
const keyHold = 250 * time.Millisecond

// Ask implements prompt.Asker: it shows a question and waits for its answer.
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

// ask shows a question.
func (m *model) ask(q *question) {
	m.openQuestion = q
	q.quiet = m.now()
	if m.restoredText != "" && m.o.Editor.Value() == m.restoredText { // it was set aside for the one before, and nobody has gone on with it
		m.setAside()
	}
}

// closeQuestion takes the question away, and gives back what was set aside for it.
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

// setAside keeps what is being typed until the question is answered.
func (m *model) setAside() {
	m.asideText += m.o.Editor.Value()
	m.o.Editor.Clear()
}

// isDrafting reports whether something is being typed.
func (m *model) isDrafting() bool { return m.o.Editor != nil && !m.o.Editor.Empty() }

// pressInQuestion is a key while a question is open. It reports whether the key is not for the
// editor. What was begun there goes on there, until it is sent or set aside.
func (m *model) pressInQuestion(msg tea.KeyPressMsg) (taken bool, cmd tea.Cmd) {
	q, key := m.openQuestion, msg.String()
	first := q.heldKey
	q.heldKey = nil
	if first != nil && !m.isDrafting() { // else something was pasted since
		switch {
		case key == "enter": // a habit
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

// answerHeldKey takes a key that was held for what it says, unless something was pasted since.
func (m *model) answerHeldKey() {
	if q := m.openQuestion; q != nil && q.heldKey != nil && m.now().Sub(q.since) >= keyHold {
		key := q.heldKey.String()
		if q.heldKey = nil; !m.isDrafting() {
			m.choose(key)
		}
	}
}

// choose answers the question with a key, or shows more of it.
func (m *model) choose(key string) {
	q := m.openQuestion
	choice, ok := q.prompt.Answer(m.questionView(), key)
	if q.invalidKey = !ok; q.invalidKey {
		return
	}
	if rows := q.prompt.Expand(m.questionView(), choice); rows != nil {
		m.print(rows...)
		q.expanded, q.quiet = true, m.now() // they offer more keys, and are to be seen first
		return
	}
	q.answer <- choice // what came of it, the call says
	m.closeQuestion(q)
}

// questionView is where a question is shown: above the line that is typed.
func (m *model) questionView() prompt.View {
	room := m.height - 2 - len(m.queued())
	if m.o.Editor != nil {
		room -= 2
	}
	return prompt.View{Width: m.width, Height: room, Color: m.o.Color}
}
