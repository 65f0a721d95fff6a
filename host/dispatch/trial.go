package dispatch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"maps"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/tool"
)

// Trier is a [Runner] that can run a call on the changes of other calls, which nobody has
// decided about.
type Trier interface {
	// Try is Run for a rehearsal, without progress. The call sees the changes of on, which
	// Try has returned for an earlier call, and adds its own; nil: there are none. After an
	// error or a failed result nothing is staged, and on has ended.
	Try(ctx context.Context, grant policy.Grant, mod *tool.Module, call tool.Call, on policy.Staged) (tool.Result, policy.Staged, error)
}

// trial is the question about a call that was tried on the changes of the calls before it in
// its step, and the answer.
type trial struct {
	*pending                 // of the trial
	question policy.Question // as it was put
	answer   policy.Answer
	err      error // reason why there is no answer that counts
}

// answers returns the answer if it holds for question, which the call puts when it runs after
// all. A yes holds if nothing differs from what the person has seen. A no always holds.
func (t *trial) answers(session string, question policy.Question) (policy.Answer, bool) {
	if t == nil || t.err != nil {
		return policy.Answer{}, false
	}
	return t.answer, !t.answer.Allow || question.Pose(session, t.question.AskedAt).ID == t.question.ID && question.Changes.ShowsAll() &&
		question.Reason == t.question.Reason && question.Warning == t.question.Warning // the calls before may have made a path special
}

// maxTriedBytes limits the contents held for the questions of a step; a call with more asks alone.
const maxTriedBytes = 8 << 20

// trials is the state of [Dispatcher.tryTogether].
type trials struct {
	d        *Dispatcher
	runner   Trier
	staged   policy.Staged // the changes of all calls so far; nil: there are none
	seen     *seenFiles
	contents map[string]heldVersion // what the calls so far have made of each changed path
	held     int64                  // bytes of all versions
}

// tryTogether tries the first calls that only change files and would be asked about, each on the
// changes of those before it, and asks about them together; nil: there are fewer than two. Nothing
// is changed: each call then runs as usual, and the answer holds for the very changes it is about.
func (d *Dispatcher) tryTogether(ctx context.Context, calls []tool.Call) []*trial {
	runner, can := d.opts.Runner.(Trier)
	n := 0
	for n < len(calls) && d.onlyEditsFiles(calls[n].Tool) {
		n++
	}
	if !can || n < 2 {
		return nil
	}
	t := &trials{d: d, runner: runner, seen: d.seenFiles.clone(), contents: map[string]heldVersion{}}
	var tried []*trial
	for _, call := range calls[:n] {
		q := &trial{pending: d.newPending(call)}
		q.seen = t.seen
		var err error
		if q.question, err = contain(func() (policy.Question, error) { return t.try(ctx, q.pending) }); err != nil {
			break
		}
		defer q.question.Changes.Close()
		tried = append(tried, q)
	}
	if t.staged != nil { // the questions hold what they show
		d.newPending(calls[0]).drop(t.staged)
	}
	if len(tried) < 2 {
		return nil
	}
	askTogether(ctx, tried)
	return tried
}

// onlyEditsFiles reports whether the tool is a built-in one that changes files and does nothing else.
func (d *Dispatcher) onlyEditsFiles(name string) bool {
	entry, ok := d.catalog.Load().Find(name)
	if !ok {
		return false
	}
	c := entry.Capabilities
	return c.Files == tool.FilesWrite && c.Exec == "" && !c.Store && c.Network == tool.NetworkNone && len(c.Secrets) == 0 && entry.Module.Origin == tool.OriginBuiltin
}

// errNotTried is the error of a call that has to be asked about by itself.
var errNotTried = errors.New("it is asked about by itself")

// try runs a call on the changes so far, and returns the question about its own changes. After
// an error further calls cannot be tried. A call that is tried is not counted.
func (t *trials) try(ctx context.Context, p *pending) (question policy.Question, err error) {
	entry, err := p.check(ctx)
	if err != nil {
		return question, err
	}
	facts := policy.Facts{EarlierCalls: t.d.counts.reserve(entry.Name), Files: NamedFiles(t.d.opts.Policy, p.call, entry)}
	t.d.counts.release(entry.Name)
	decision := t.d.opts.Policy.Decide(p.call, entry, facts)
	if _, denied := t.d.denials.find(p.call); denied || !decision.AsksOnlyForChanges() {
		return question, errNotTried
	}
	grant, err := p.rehearse(decision)
	if err == nil {
		err = p.intend(ctx, grant, entry)
	}
	if err != nil {
		return question, err
	}
	result, staged, err := t.runner.Try(ctx, grant.WithBudgets(t.d.fuel.budgets(entry.Name)...), entry.Module, p.call, t.staged)
	if t.staged = staged; err != nil {
		return question, err
	}
	result, all, dirs := p.collectChanges(ctx, grant, entry, result, staged)
	changes, ok := t.ownChanges(all)
	if !ok || len(dirs) > 0 {
		return question, errNotTried
	}
	decision, _ = decision.DecideShownChanges(ctx, changes)
	question = p.questionAbout(decision.WithDiff(ctx, changes), result, staged, changes)
	if !decision.AsksOnlyForChanges() || !question.Changes.ShowsAll() {
		question.Changes.Close()
		return question, errNotTried
	}
	question.Tried = true
	t.seen.note(p.call, entry, result)
	return question.Pose(t.d.opts.SessionID, time.Now()), nil
}

// ownChanges returns the changes of the newest call: those of all calls so far without those
// that were there before. ok is false if they cannot be told apart, or are too large to be held.
func (t *trials) ownChanges(all []tool.Change) (own []tool.Change, ok bool) {
	missing := len(t.contents) // paths that earlier calls have changed
	for _, c := range all {
		earlier, was := t.contents[c.Path]
		switch {
		case c.Kind != tool.DirectoryCreated && (c.Kind != tool.Created && c.Kind != tool.Modified || !c.After.IsFile() || c.Before != nil && !c.Before.IsFile()):
			return nil, false
		case was:
			missing--
			c.Kind, c.Before = tool.Modified, earlier.Version
		case c.Before != nil:
			c.Before = t.hold(c.Before).Version
		}
		after := t.hold(c.After)
		if c.After = after.Version; !was || after.sum != earlier.sum || after.Mode != earlier.Mode {
			own, t.contents[c.Path] = append(own, c), after
		}
	}
	return own, len(own) > 0 && missing == 0 && t.held <= maxTriedBytes
}

// heldVersion is a version that can be read after the end of the stage.
type heldVersion struct {
	*tool.Version
	sum [sha256.Size]byte // of a file
}

// hold reads a version into memory. t.held is above maxTriedBytes if that fails or is too much.
func (t *trials) hold(v *tool.Version) heldVersion {
	if t.held += v.Size; t.held > maxTriedBytes || !v.Mode.IsRegular() {
		return heldVersion{Version: v}
	}
	content, err := v.Content(maxTriedBytes)
	if err != nil || int64(len(content)) != v.Size {
		t.held = maxTriedBytes + 1
	}
	held := *v
	held.Open = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
	return heldVersion{&held, sha256.Sum256(content)}
}

// askTogether puts all questions before the first is answered, and waits for the answers.
func askTogether(ctx context.Context, tried []*trial) {
	all := make(chan struct{})
	for _, q := range tried {
		q.allAsked = all
		go func() {
			defer close(q.done)
			defer q.letNextStart()
			q.answer, q.err = q.await(ctx, q.question)
			if q.err == nil && q.answer.Allow {
				q.err = q.question.CheckAnswer(q.answer, time.Now())
			}
			q.answer.Question = q.question.ID
		}()
		<-q.nextMayStart
	}
	close(all)
	for _, q := range tried {
		<-q.done
	}
}

// clone returns a copy that does not change with s.
func (s *seenFiles) clone() *seenFiles {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &seenFiles{files: maps.Clone(s.files)}
}
