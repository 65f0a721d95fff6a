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
	detail string // for Result.Detail

	before         map[string]string // state of the host before the attack
	allowedChanges []string          // directories in which the guest may change things
	pipe           int               // read end of a FIFO in the workspace, of a program outside
}

func newTrial(ctx context.Context, target Target, kind Kind, dir string) (*trial, error) {
	s, err := newScratch(dir)
	if err != nil {
		return nil, err
	}
	t := &trial{scratch: s, ctx: ctx, target: target, kind: kind}
	return t, t.noteState()
}

// noteState records the state of the host. An attack that plants or may change files
// calls it again, with the directories that may change.
func (t *trial) noteState(changes ...string) (err error) {
	t.allowedChanges = changes
	t.before, err = t.state(changes...)
	return err
}

// checkUnchanged compares the host with its recorded state.
func (t *trial) checkUnchanged() error {
	after, err := t.state(t.allowedChanges...)
	if err != nil {
		return fmt.Errorf("look at the host: %w", err)
	}
	return diffStates(t.before, after)
}

// grace is the time in which a target must notice that its context has ended.
const grace = 2 * time.Second

// run runs a guest. It fails if the host was at fault, if the guest had to be stopped
// from outside, or if the canary is in its output.
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
	// The target may have read the clock before the context has ended.
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

// leaked reports whether the canary, or the value of the secret, is anywhere in the
// output of a guest.
func (t *trial) leaked(o Outcome) bool {
	all := string(o.Result.Output) + o.Transcript.Text
	if e := o.Result.Err; e != nil {
		all += e.Message + e.Stdout + e.Stderr
	}
	return slices.ContainsFunc([]string{t.canary, secretValue}, func(text string) bool {
		return strings.Contains(all, text) || strings.Contains(all, hex.EncodeToString([]byte(text)))
	})
}

// runScript has the machine execute a script, with the grants of g.
func (t *trial) runScript(g Guest, s *script) (Outcome, error) {
	return t.run(g.withScript(s))
}

// withScript returns the guest with a script.
func (g Guest) withScript(s *script) Guest {
	g.Args = s.arguments(g.Command)
	return g
}

// withModule returns the guest with a module of the tried kind: the machine, unless it
// has code.
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

// runStopped runs a guest, and returns what ended its call, see stoppedBy.
func (t *trial) runStopped(g Guest, wantMessage string, codes ...tool.Code) (string, error) {
	o, err := t.run(g)
	if err != nil {
		return "", err
	}
	return stoppedBy(o, wantMessage, codes...)
}

// runReport has the machine execute a script to its end, and returns the report.
func (t *trial) runReport(g Guest, s *script) (report, error) {
	o, err := t.runScript(g, s)
	if err != nil {
		return nil, err
	}
	if o.Result.Err != nil {
		return nil, newUntried("the guest ended early: %s: %s", o.Result.Err.Code, o.Result.Err.Message)
	}
	r, err := readReport(o.Result.Output)
	if err == nil && r.callCount(s.calls[len(s.calls)-1]) == 0 {
		err = newUntried("the guest did not get to the end")
	}
	return r, err
}

// runChecked is runReport, with the refusals of the script, see [report.check].
func (t *trial) runChecked(g Guest, s *script) (report, []wasi.Errno, error) {
	r, err := t.runReport(g, s)
	if err != nil {
		return nil, nil, err
	}
	refusals, err := r.check(s)
	return r, refusals, err
}

// runRefused runs a script whose attacks must be refused, and returns by with the error
// numbers.
func (t *trial) runRefused(g Guest, s *script, by string) (string, error) {
	_, refusals, err := t.runChecked(g, s)
	return fmt.Sprintf("%s (%s)", by, joinErrnos(refusals)), err
}

// runToEnd has the machine execute a script in which a call must be made times times.
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

// reportWhile is runReport; do is called at the first message of the guest, which waits
// meanwhile.
func (t *trial) reportWhile(g Guest, s *script, do func() error) (report, error) {
	var once sync.Once
	done := newUntried("the first guest did not run")
	g.OnProgress = func(tool.Progress) { once.Do(func() { done = do() }) }
	r, err := t.runReport(g, s)
	return r, errors.Join(err, done)
}

// reportBoth runs a second script at the first message of the guest, which waits meanwhile.
func (t *trial) reportBoth(g Guest, first, second *script) (a, b report, err error) {
	a, err = t.reportWhile(g, first, func() (err error) {
		b, err = t.runReport(g, second)
		return err
	})
	return a, b, err
}

// workspaceGuest returns a guest with the workspace mounted.
func (t *trial) workspaceGuest(write bool) Guest {
	g := Guest{Files: tool.FilesRead, Mounts: []policy.Mount{{Host: t.hostPath("ws"), Write: write}}}
	if write {
		g.Files = tool.FilesWrite
	}
	return g
}

// stoppedBy returns what ended a call. It fails unless that was an error with one of the
// codes, whose text contains wantMessage.
func stoppedBy(o Outcome, wantMessage string, codes ...tool.Code) (string, error) {
	e := o.Result.Err
	if e == nil {
		return "", errors.New("it worked: the guest went on to the end")
	}
	for _, c := range codes {
		if e.Code == c {
			if !strings.Contains(e.Message+"; "+e.Hint.String(), wantMessage) {
				return "", newUntried("something else stopped it: %s: %s", e.Code, e.Message)
			}
			return mechanism(e), nil
		}
	}
	return "", newUntried("something else stopped it: %s: %s", e.Code, e.Message)
}

// mechanism returns what stopped a call, in a few words.
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
	s, _, _ = strings.Cut(s, "; if it is yours")
	return tool.Clip(s, n)
}
