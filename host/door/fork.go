package door

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/stockade-dev/stockade/host/session"
)

// maxForkBytes limits the bodies of the events that a fork copies. They are recorded together.
const maxForkBytes = 256 << 20

// ErrNoTurn is returned by [Door.Fork] if the session has no such turn, or none at all, or the turn
// has not ended: it runs, or a crash has ended it.
var ErrNoTurn = errors.New("the session has no such turn that has ended")

// Fork records a new session that begins with a copy of another one, up to the end of a turn, and
// returns it. Turn 0 copies all up to the end of the last turn that has ended. What files held
// before a change is not copied: only the other session can put it back. That one may be in use,
// and stays as it is. The error may wrap ErrNoTurn, session.ErrNoSession or a
// *session.ChainError.
func (d *Door) Fork(ctx context.Context, id string, turn int) (forkID string, f session.Forked, err error) {
	st, err := d.Store(ctx)
	if err != nil {
		return "", f, err
	}
	var drafts []session.Draft
	whole, size := 0, 0 // drafts up to the end of f.Turn; bytes of all
	for e, err := range resumableEvents(session.VerifyEach(st.Events(ctx, id, 0))) {
		if err != nil {
			return "", f, err
		}
		if e.Type == session.TypeTurnStarted && turn > 0 && e.Turn > turn {
			break
		}
		if size += len(e.Body); size > maxForkBytes {
			return "", f, fmt.Errorf("session %s has more than %d MiB to copy", id, maxForkBytes>>20)
		}
		drafts = append(drafts, session.Draft{Type: e.Type, Turn: e.Turn, Step: e.Step, Call: e.Call, Body: e.Body})
		if e.Type == session.TypeTurnEnded {
			whole, f.Turn, f.Head = len(drafts), e.Turn, fmt.Sprintf("%x", e.Hash)
		}
	}
	var began session.Started
	switch {
	case whole == 0, f.Turn < turn:
		return "", f, fmt.Errorf("session %s: %w", id, ErrNoTurn)
	case drafts[0].Type != session.TypeSessionStarted || json.Unmarshal(drafts[0].Body, &began) != nil:
		return "", f, &session.ChainError{Seq: 1, Problem: "is no start of a session"}
	}
	began.Program = d.opts.Program
	f.From, f.Events = id, whole-1
	log := session.NewLog(st, session.NewID(time.Now()), time.Now)
	log.SetRedactor(d.opts.Redact) // a secret may have become known since
	log.Begin(session.NewDraft(session.TypeSessionStarted, 0, 0, "", began), session.NewDraft(session.TypeForked, 0, 0, "", f))
	if _, err := log.Append(ctx, drafts[1:whole]...); err != nil {
		return "", f, fmt.Errorf("record the fork: %w", err)
	}
	return log.ID(), f, nil
}
