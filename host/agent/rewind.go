package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/session"
)

// Rewind takes the conversation back to before the turn with a number: the next request begins as
// that turn found it. The log keeps everything, and gets an event. changed are the files that
// later turns have changed and that stay so; the model is told, because it does not know any
// more. No turn may be running.
func (a *Agent) Rewind(ctx context.Context, number int, changed []string) error {
	if !slices.ContainsFunc(a.conversation.starts, func(s turnStart) bool { return s.turn == number }) {
		return fmt.Errorf("the conversation has no turn %d", number)
	}
	t := &turn{a: a}
	drafts := []session.Draft{t.draft(session.TypeRewound, "", session.Rewound{Turn: number})}
	if more := len(changed) - maxNamedFiles; more > 0 {
		changed = append(slices.Clone(changed[:maxNamedFiles]), fmt.Sprintf("and %d more", more))
	}
	if len(changed) > 0 {
		text := "[The person has taken the conversation back to here. Files that were changed since are as they are now; read them again before you rely on them:\n" + strings.Join(changed, "\n") + "]"
		drafts = append(drafts, t.draft(session.TypeMessage, "", llm.BriefMessage("rewind", text)))
	}
	return t.record(ctx, drafts...)
}

// maxNamedFiles limits the files that the model is told of; the others are counted.
const maxNamedFiles = 20

// turnStart is the position of a conversation at the start of a turn. A rewind makes the messages of
// that time from the present ones and the changes: a copy in each start would need much memory.
type turnStart struct {
	position
	changes int // length of Conversation.changes
}

// rewind makes the conversation what it was before a turn. What the session has spent and done
// stays.
func (c *Conversation) rewind(turn int) {
	c.endStep()
	n := slices.IndexFunc(c.starts, func(s turnStart) bool { return s.turn >= turn })
	if n < 0 || turn < 1 {
		return
	}
	start := c.starts[n]
	c.messages, c.about = slices.Clone(c.messages), slices.Clone(c.about) // the request before has the others
	for _, was := range slices.Backward(c.changes[start.changes:]) {
		if was.at < 0 {
			c.messages, c.about = slices.Clone(was.messages), slices.Clone(was.about)
		} else {
			c.messages[was.at], c.about[was.at] = was.messages[0], was.about[0]
		}
	}
	now := c.turn
	c.position = start.position
	if end := slices.IndexFunc(c.about, func(a about) bool { return a.number > c.numbered }); end >= 0 {
		c.messages, c.about = c.messages[:end], c.about[:end]
	}
	c.turn, c.starts, c.changes = now, c.starts[:n], c.changes[:start.changes]
}
