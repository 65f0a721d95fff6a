package dispatch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/stockade-dev/stockade/host/git"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

// rehearse returns a grant to run the call before its decision. Until then its changes
// stay on a stage, and its progress is held back.
func (p *pending) rehearse(decision policy.Decision) (policy.Grant, error) {
	grant, err := decision.Rehearse()
	if err != nil {
		return grant, &refusal{tool.Failed(tool.CodeInvalidArgs, tool.ValidationFailed, "%v", err)}
	}
	p.rehearsing = true
	return grant, nil
}

// Limits for the progress that is held for one rehearsed call. Further progress is dropped.
const (
	maxHeld      = 256      // messages
	maxHeldBytes = 64 << 10 // bytes of all messages
)

func (p *pending) hold(progress tool.Progress) {
	if p.heldBytes += len(progress.Message); len(p.held) < maxHeld && p.heldBytes <= maxHeldBytes {
		p.held = append(p.held, progress)
	}
}

// reportHeld ends the rehearsal, and shows the progress that was held.
func (p *pending) reportHeld() {
	p.rehearsing = false
	for _, progress := range p.held {
		p.report(progress)
	}
	p.held = nil
}

// collectChanges returns the result, the changes of the call on its stage, and the git
// directories among them. If the changes cannot be listed, or would mislead git, the result is
// a failure. A failed call has no changes, nor one with [git.Negligible] changes.
func (p *pending) collectChanges(ctx context.Context, grant policy.Grant, entry *tool.Entry, result tool.Result, staged policy.Staged) (tool.Result, []tool.Change, []*git.Dir) {
	if staged == nil || result.Err != nil {
		return result, nil, nil
	}
	changes, err := staged.Changes(ctx)
	if err == nil && git.Negligible(changes) {
		return result, nil, nil
	}
	if encoding := entry.Content.Encoding(p.call.Args); encoding != "" {
		for _, c := range changes {
			for _, v := range []*tool.Version{c.Before, c.After} {
				if v != nil {
					v.Encoding = encoding
				}
			}
		}
	}
	var dirs []*git.Dir
	if err == nil {
		dirs, err = git.Check(ctx, changes, p.call.Cwd)
	}
	if err != nil {
		result = p.uncommittedResult(ctx, grant, err)
		result.Usage = p.usage
		return result, nil, nil
	}
	return result, changes, dirs
}

// unapprovedProgramWarning returns a warning if the call has made an executable, and has read
// caches that calls without approval have written; otherwise it is empty.
func unapprovedProgramWarning(staged policy.Staged, changes []tool.Change) string {
	if staged == nil || !staged.SawUnapproved() {
		return ""
	}
	for _, c := range changes {
		if c.After != nil && c.After.Mode.Perm()&0o111 != 0 && c.After.IsProgram() {
			return fmt.Sprintf("%q is a program, and parts of it may come from a cache that commands without a yes have written", c.Path)
		}
	}
	return ""
}

// questionAbout returns the question about a call that has run on a stage. If the call ran a
// command, the question has the last lines of its output, and a warning if the exit code is not
// 0. It also warns of a new program that may come from a cache that calls without approval have
// written.
func (p *pending) questionAbout(decision policy.Decision, result tool.Result, staged policy.Staged, changes []tool.Change) policy.Question {
	question := decision.Question()
	question.Failed = result.Err != nil
	var output struct { // of tools that run a command
		Code   int    `json:"exit_code"`
		Output string `json:"output"`
		Stderr string `json:"stderr"` // if the call asked for it separately
	}
	if question.Command != "" && json.Unmarshal(result.Output, &output) == nil {
		question.Output = lastLines(output.Output)
		if output.Stderr != "" {
			question.Output = strings.TrimPrefix(question.Output+"\non standard error:\n"+lastLines(output.Stderr), "\n")
		}
		if output.Code != 0 {
			question.Warn(fmt.Sprintf("the command has ended with exit code %d", output.Code))
		}
	}
	question.Warn(unapprovedProgramWarning(staged, changes))
	return question
}

// maxEndLine limits a line of output in a question, in bytes; a longer line is cut.
const maxEndLine = 200

// lastLines returns the final [policy.OutputLines] lines of an output, long ones cut. If lines
// are left out, their number is on a line before the others.
func lastLines(output string) string {
	lines := strings.Split(strings.TrimRight(output, "\n"), "\n")
	more := len(lines) - policy.OutputLines
	if more > 0 {
		lines = slices.Concat([]string{fmt.Sprintf("... %d lines before", more)}, lines[more:])
	}
	for i, l := range lines {
		if len(l) > maxEndLine {
			lines[i] = strings.ToValidUTF8(l[:maxEndLine], "") + " ..."
		}
	}
	return strings.Join(lines, "\n")
}

// recordChanges records the changes that are about to be made, with the contents before them,
// and returns the record. It returns a refusal if they cannot be made any more, for example
// because somebody else has changed the files.
func (p *pending) recordChanges(ctx context.Context, grant policy.Grant, staged policy.Staged, changes []tool.Change, dirs []*git.Dir) (session.Changes, error) {
	if p.state == stateAwaitingPermission {
		p.enter(stateExecuting) // the permission was for this
	}
	body, images, err := p.describeChanges(ctx, changes, dirs...)
	if errors.Is(err, policy.ErrChanged) && staged.Refresh(ctx) {
		body, images, err = p.describeChanges(ctx, changes, dirs...)
	}
	if err != nil {
		return body, &refusal{p.uncommittedResult(ctx, grant, err)}
	}
	draft := p.draft(session.TypeCallChanges, body)
	draft.Preimages = images
	_, err = p.append(ctx, draft)
	return body, err
}

// commit makes the changes, or returns a refusal. Files that are left over are only a warning.
func (p *pending) commit(ctx context.Context, grant policy.Grant, staged policy.Staged) error {
	err := staged.Commit(ctx, grant)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, policy.ErrUntidy): // also if it was cancelled since
		p.report(tool.Progress{Level: "warn", Message: err.Error()})
		return nil
	}
	return &refusal{p.uncommittedResult(ctx, grant, err)}
}

// noteMade tells the freedom of the chat which files the call has made. What an undo puts back
// may be the person's.
func (p *pending) noteMade(files []session.Change) {
	for _, f := range files {
		before, after := cmp.Or(f.Before, &session.Version{}).SHA256, cmp.Or(f.After, &session.Version{}).SHA256
		if p.hostTool != nil {
			after = ""
		}
		p.d.opts.Policy.Freedom().Note(f.Kind, f.Path, f.From, before, after)
	}
}

const notKept = "nothing of what the call changed is kept, unless the error names what is left behind"

// uncommittedResult returns the result of a call whose changes were not made because of err.
func (p *pending) uncommittedResult(ctx context.Context, grant policy.Grant, err error) tool.Result {
	var r tool.Result
	switch {
	case errors.Is(err, policy.ErrChanged):
		r = tool.Failed(tool.CodeFilesChanged, tool.ValidationFailed, "%s has changed nothing: %v", p.call.Tool, err)
		r.Err.Hint = tool.Advise("somebody else changed files during the call; look at them again, then repeat the call")
	case ctx.Err() != nil:
		r = tool.Failed(tool.CodeCancelled, tool.InternalError, "%s was cancelled before its changes were made", p.call.Tool)
	case errors.Is(err, context.DeadlineExceeded):
		r = tool.Failed(tool.CodeTimeout, tool.InternalError, "%s timed out while its changes were compared or written: %v", p.call.Tool, err)
		r.Err.Hint = tool.Advise(notKept + "; change less in one call").And(grant.LimitHint(policy.TimeoutKey, uint64(grant.Limits().Timeout)))
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		r = tool.Failed(tool.CodeNoSpace, tool.IOError, "%s: there is no room for its changes: %v", p.call.Tool, err)
		r.Err.Hint = tool.Advise(notKept + "; the disk is full: make room, or tell the person")
	case errors.As(err, new(*git.IntegrityError)):
		r = tool.Failed(tool.CodeNotKept, tool.ValidationFailed, "%s has changed nothing: git would be misled by %v", p.call.Tool, err)
		r.Err.Hint = tool.Advise("an object of git has another content than its name says; git fsck tells more where it was made")
	default:
		r = tool.Failed(tool.CodeNotKept, tool.IOError, "%s: its changes could not be made: %v", p.call.Tool, err)
		r.Err.Hint = tool.Advise(notKept)
	}
	return r
}

// drop removes the stage of the call. The outcome of the call is certain by now: if
// something cannot be removed, the person gets a warning, and the result stays the same.
func (p *pending) drop(staged policy.Staged) {
	if err := staged.Drop(); err != nil {
		p.rehearsing = false
		p.report(tool.Progress{Level: "warn", Message: fmt.Sprintf("what the call had staged could not be removed: %v", err)})
	}
}
