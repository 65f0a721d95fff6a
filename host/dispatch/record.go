package dispatch

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/redact"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

// intend records that the call is about to run, and the rights that its grant gives.
func (p *pending) intend(ctx context.Context, grant policy.Grant, entry *tool.Entry) error {
	limits := grant.Limits()
	body := session.Intent{
		Tool: entry.Name, Caller: string(p.call.Caller), Module: entry.Module.Name, Digest: entry.Module.Digest,
		ArgsDigest: fmt.Sprintf("%x", p.call.ArgsDigest()), Cwd: p.call.Cwd, Mounts: []string{},
		Secrets: tool.SecretNames(grant.Secrets()), Exec: grant.MayExec(), Network: grant.NetworkRules(), Rehearsal: grant.Rehearsal(), TimeoutMS: limits.Timeout.Milliseconds(), MemoryBytes: limits.MemoryBytes, Fuel: limits.Fuel, Lines: p.movedLines,
	}
	mounts := grant.Mounts()
	if exec, ok := grant.Exec(); ok {
		body.Tier, body.Changes, mounts = &exec.Tier, exec.Changes, exec.Mounts // include the mounts of the guest
	}
	for _, m := range mounts {
		body.Mounts = append(body.Mounts, m.String())
	}
	_, err := p.record(ctx, session.TypeCallIntended, body)
	return err
}

// finish records the result of the call, and returns it, redacted and with notes.
func (p *pending) finish(ctx context.Context, result tool.Result) (tool.Result, error) {
	result = p.redact(result)
	result.AddNote(p.lineShiftNote)
	storeChanges := p.storeChanges(result)
	for _, draft := range storeChanges {
		p.sideEffects.hashes = map[string][sha256.Size]byte{"store of " + p.call.Tool: sha256.Sum256(draft.Body)}
	}
	result = p.d.repeats.count(p.call, p.sideEffects, result)
	if result.Err == nil {
		result.Usage.OutputBytes = len(result.Output)
	}
	if result.Usage.Start.IsZero() {
		result.Usage.Start = time.Now()
	}
	result.LimitMessage = p.limit
	message := llm.ResultMessage(p.call.ID, p.requestedName, result)
	if p.call.Turn == 0 {
		message = message.WithoutImages() // no model reads this result; a caller that shows the images to one records them itself
	}
	drafts := append(storeChanges, p.draft(session.TypeToolResult, message))
	events, err := p.append(ctx, append(drafts, p.undoBrief(result)...)...)
	for _, e := range events {
		p.d.stores.Fold(e)
	}
	return result, err
}

// redact returns the result without secrets. Every result passes through it.
func (p *pending) redact(result tool.Result) tool.Result {
	r := p.d.opts.Redact
	if r == nil {
		return result
	}
	result.RawOutput = r.Text(result.RawOutput)
	if result.Err == nil {
		result.Output, result.Note = r.JSON(result.Output), r.Text(result.Note)
		return withoutSecretImages(r, result)
	}
	clean := *result.Err
	for _, hint := range []*tool.Hint{&clean.Hint, &clean.AllowHint} {
		*hint = slices.Clone(*hint)
		for i := range *hint {
			part := &(*hint)[i]
			part.Words, part.Key = r.Text(part.Words), r.Text(part.Key)
		}
	}
	for _, text := range []*string{&clean.Message, &clean.Stdout, &clean.Stderr, &clean.Rule, &clean.Allow} {
		*text = r.Text(*text)
	}
	if clean.Denial != nil {
		clean.Denial = r.JSON(clean.Denial)
	}
	result.Err = &clean
	return result
}

// withoutSecretImages returns the result without the images whose bytes hold a secret, as in a
// comment that a camera or an editor has written. The pixels are not examined.
func withoutSecretImages(r *redact.Redactor, result tool.Result) tool.Result {
	images := slices.DeleteFunc(slices.Clone(result.Images), func(i tool.Image) bool { return r.Finds(i.Data) })
	if n := len(result.Images) - len(images); n > 0 {
		result.AddNote(fmt.Sprintf("images left out because their bytes hold a known secret: %d", n))
	}
	result.Images = images
	return result
}

// hostFault returns the result for the model when the host is at fault. It has no details of the
// error, which only the person gets.
func hostFault(name string) tool.Result {
	return tool.Failed(tool.CodeHost, tool.InternalError, "%s could not run: the host has a problem, which the user is told", name)
}

// record appends one event of this call to the log, and returns it. It does so even if ctx has
// ended: no call goes unrecorded.
func (p *pending) record(ctx context.Context, typ session.Type, body any) (session.Event, error) {
	events, err := p.append(ctx, p.draft(typ, body))
	if err != nil {
		return session.Event{}, err
	}
	return events[0], nil
}

// append is record for several events. It writes the queued drafts before them, and does not
// return their events.
func (p *pending) append(ctx context.Context, drafts ...session.Draft) ([]session.Event, error) {
	drafts, first := append(p.queuedDrafts, drafts...), len(p.queuedDrafts)
	p.queuedDrafts = nil
	events, err := p.d.opts.Log.Append(context.WithoutCancel(ctx), drafts...)
	if err != nil {
		return nil, fmt.Errorf("record %s: %w", drafts[0].Type, err)
	}
	return events[first:], nil
}

func (p *pending) draft(typ session.Type, body any) session.Draft {
	return session.NewDraft(typ, p.call.Turn, p.call.Step, p.call.ID, body)
}

// report shows progress of the tool, or holds it while the call is rehearsed. The output of a
// process is never held.
func (p *pending) report(r tool.Progress) {
	if p.rehearsing && r.Output == "" { // only the person sees the output of a process
		p.hold(r)
		return
	}
	p.show(session.TypeProgress, r)
}

func (p *pending) show(typ session.Type, body any) { p.d.opts.Log.Emit(p.draft(typ, body)) }
