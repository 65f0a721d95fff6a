package selftest

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/tool"

	"github.com/stockade-dev/stockade/host/sandbox/wasi"
	"github.com/stockade-dev/stockade/host/selftest/machine"
)

// trial is one attack while it is carried out.
type trial struct {
	*scratch

	ctx    context.Context
	target Target
	kind   Kind   // of the guests
	detail string // of the result

	before         map[string]string // what the host looked like
	allowedChanges []string          // directories in which the guest may change things
	pipe           int               // the end of a FIFO in the workspace that a program outside reads
}

func newTrial(ctx context.Context, target Target, kind Kind, dir string) (*trial, error) {
	s, err := newScratch(dir)
	if err != nil {
		return nil, err
	}
	t := &trial{scratch: s, ctx: ctx, target: target, kind: kind}
	return t, t.noteState()
}

// noteState notes what the host looks like. An attack that plants something, or may
// change something, calls it again, with the directories for that.
func (t *trial) noteState(changes ...string) (err error) {
	t.allowedChanges = changes
	t.before, err = t.state(changes...)
	return err
}

// checkUnchanged compares the host with what it looked like.
func (t *trial) checkUnchanged() error {
	after, err := t.state(t.allowedChanges...)
	if err != nil {
		return fmt.Errorf("look at the host: %w", err)
	}
	return diffStates(t.before, after)
}

// grace is how long a target may take to notice that its context has ended.
const grace = 2 * time.Second

// run runs a guest. Whatever it was after, it must not have put the host at
// fault, have been stopped only by us, or say the canary.
func (t *trial) run(g Guest) (Outcome, error) { return t.runContext(t.ctx, g) }

// runContext is run with a context that the attack may end.
func (t *trial) runContext(ctx context.Context, g Guest) (Outcome, error) {
	g = t.withModule(g)
	ended := make(chan Outcome, 1)
	go func() { ended <- t.target.Run(ctx, g) }()
	var o Outcome
	select {
	case o = <-ended:
	case <-t.ctx.Done():
		select {
		case o = <-ended:
		case <-time.After(grace): // its goroutine is lost
			return o, fmt.Errorf("it could not be stopped: %w", context.Cause(t.ctx))
		}
	}
	// The target may have looked at the clock before the context has.
	if end, ok := t.ctx.Deadline(); ok && !time.Now().Before(end) {
		<-t.ctx.Done()
	}
	switch {
	case t.ctx.Err() != nil:
		return o, context.Cause(t.ctx)
	case o.Err != nil:
		return o, fmt.Errorf("it put the host at fault: %w", o.Err)
	case t.leaked(o):
		return o, errors.New("the guest got what it was not granted")
	}
	return o, nil
}

// leaked reports whether the canary, or the value of a secret, is anywhere in what a
// guest says.
func (t *trial) leaked(o Outcome) bool {
	all := string(o.Result.Output) + o.Transcript.Text
	if e := o.Result.Err; e != nil {
		all += e.Message + e.Stdout + e.Stderr
	}
	return slices.ContainsFunc([]string{t.canary, secretValue}, func(text string) bool {
		return strings.Contains(all, text) || strings.Contains(all, hex.EncodeToString([]byte(text)))
	})
}

// runScript has the machine carry out a script, with what g grants.
func (t *trial) runScript(g Guest, s *script) (Outcome, error) {
	return t.run(g.withScript(s))
}

// withScript is the guest with a script.
func (g Guest) withScript(s *script) Guest {
	g.Args = s.arguments(g.Command)
	return g
}

// withModule is a guest of the kind that is tried, which is the machine if it has no code.
func (t *trial) withModule(g Guest) Guest {
	g.Kind = t.kind
	switch {
	case g.Code != nil:
	case g.machineOptions != nil:
		own := *g.machineOptions
		own.Kind = t.kind
		g.Code = machine.Module(own)
	default:
		g.Code = machine.PlainModule(t.kind)
	}
	if g.Args == nil {
		g.Args = []byte("{}")
	}
	return g
}

// runReport has the machine carry out a script to its end.
func (t *trial) runReport(g Guest, s *script) (report, error) {
	o, err := t.runScript(g, s)
	if err != nil {
		return nil, err
	}
	if o.Result.Err != nil {
		return nil, newUntried("the guest ended early: %s: %s", o.Result.Err.Code, o.Result.Err.Message)
	}
	return readReport(o.Result.Output)
}

// runChecked is report, with the refusals of the script, see [report.check].
func (t *trial) runChecked(g Guest, s *script) (report, []wasi.Errno, error) {
	r, err := t.runReport(g, s)
	if err != nil {
		return nil, nil, err
	}
	refusals, err := r.check(s)
	return r, refusals, err
}

// runRefused is how an attack ends whose script holds what has to be refused.
func (t *trial) runRefused(g Guest, s *script, by string) (string, error) {
	_, refusals, err := t.runChecked(g, s)
	return fmt.Sprintf("%s (%s)", by, joinErrnos(refusals)), err
}

// runToEnd has the machine carry out a script in which a call is made so often.
func (t *trial) runToEnd(g Guest, s *script, c *call, times int) (Outcome, error) {
	o, err := t.runScript(g, s)
	if err != nil {
		return o, err
	}
	if r, err := readReport(o.Result.Output); err != nil || r.callCount(c) != times {
		return o, newUntried("the guest did not get to the end")
	}
	return o, nil
}

// reportWhile is report, with something that is done when the guest says that it
// has come so far, while it waits.
func (t *trial) reportWhile(g Guest, s *script, do func() error) (report, error) {
	var once sync.Once
	done := newUntried("the first guest did not run")
	g.OnProgress = func(tool.Progress) { once.Do(func() { done = do() }) }
	r, err := t.runReport(g, s)
	return r, errors.Join(err, done)
}

// workspaceGuest is a grant for the workspace.
func (t *trial) workspaceGuest(write bool) Guest {
	g := Guest{Files: tool.FilesRead, Mounts: []policy.Mount{{Host: t.hostPath("ws"), Write: write}}}
	if write {
		g.Files = tool.FilesWrite
	}
	return g
}

// stoppedBy says what ended a call, and fails unless that was one of the codes,
// in words that hold says.
func stoppedBy(o Outcome, says string, codes ...tool.Code) (string, error) {
	e := o.Result.Err
	if e == nil {
		return "", errors.New("it worked: the guest went on to the end")
	}
	for _, c := range codes {
		if e.Code == c {
			if !strings.Contains(e.Message+"; "+e.Hint.String(), says) {
				return "", newUntried("something else stopped it: %s: %s", e.Code, e.Message)
			}
			return mechanism(e), nil
		}
	}
	return "", newUntried("something else stopped it: %s: %s", e.Code, e.Message)
}

// mechanism is what stopped a call, in a few words.
func mechanism(e *tool.Error) string {
	message := e.Message
	short := func(sep string) string {
		if _, rest, ok := strings.Cut(message, sep); ok {
			message = rest
		}
		return clip(message, 120)
	}
	switch e.Code {
	case tool.CodeFuel:
		return "fuel: the budget " + short("and the limit ")
	case tool.CodeTimeout:
		return "deadline: " + short(" timed out after ")
	case tool.CodeMemory:
		return "memory: " + short(" needs ")
	case tool.CodeBadABI:
		return "abi: " + short("the module broke the ABI: ")
	case tool.CodeCancelled:
		return "cancelled: " + short(toolName+" ")
	case tool.CodeTrap:
		return "trap: " + strings.TrimPrefix(short(toolName+" "), "crashed: ")
	case tool.CodeNotAdmitted:
		if strings.Contains(message, "it was not compiled") {
			return "compile child: " + short("bytes that took ")
		}
		return "admission: " + short("module "+toolName+": ")
	}
	return strings.ToLower(string(e.Code)) + ": " + clip(message, 120)
}

func clip(s string, n int) string {
	if s, _, _ = strings.Cut(s, "; if it is yours"); len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + " ..."
}
