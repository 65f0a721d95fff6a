package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tetratelabs/wazero/sys"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/redact"
	"github.com/stockade-dev/stockade/host/sandbox/abi"
	"github.com/stockade-dev/stockade/host/sandbox/admit"
	"github.com/stockade-dev/stockade/host/sandbox/dialect"
	"github.com/stockade-dev/stockade/host/sandbox/hostmod"
	"github.com/stockade-dev/stockade/host/sandbox/meter"
	"github.com/stockade-dev/stockade/host/sandbox/wasi/preview1"
	"github.com/stockade-dev/stockade/host/tool"
)

var errTimeout = errors.New("the call ran out of time")

// memoryError: the memory of a guest at its start (size) is over a limit. Both are in bytes.
type memoryError struct {
	size, limit uint64
	key         string // setting of the limit
}

func (e *memoryError) Error() string {
	return fmt.Sprintf("the module starts with %d KiB of memory, more than %s has left of its %d KiB", e.size>>10, e.key, e.limit>>10)
}

// hostError marks an error that no guest has caused.
type hostError struct{ err error }

func (e *hostError) Error() string { return e.err.Error() }
func (e *hostError) Unwrap() error { return e.err }

// callOutcome holds everything about a call that has ended.
type callOutcome struct {
	ctx     context.Context
	call    tool.Call
	limits  policy.Limits
	inst    *instance // lacks fields if it could not be instantiated
	host    *hostmod.World
	redact  *redact.Redactor
	printed string // see dialect.Guest.Printed
	out     *abi.Output
	toolErr *abi.ToolError
	err     error // set if there is neither out nor toolErr
}

// judge returns the result of a call. A fault of the guest becomes a failed result for the
// model, a fault of the host an error.
func judge(v callOutcome) (tool.Result, error) {
	var hostErr *hostError
	switch {
	case errors.As(v.err, &hostErr), errors.Is(v.err, hostmod.ErrPanic), errors.Is(v.err, preview1.ErrPanic):
		return tool.Result{}, fmt.Errorf("run %s: %w", v.call.Tool, v.err)
	case v.host.TimedOut != nil:
		return commandTimeoutResult(v), nil
	case errors.Is(v.err, meter.ErrExhausted):
		return outOfFuelResult(v), nil
	case v.err != nil && (v.ctx.Err() != nil || endedByDeadline(v.err)):
		return stoppedResult(v), nil
	case v.err != nil:
		return crashResult(v), nil
	case v.toolErr != nil:
		r := toolErrorResult(v.toolErr, v.limits.OutputBytes)
		if m, ok := outOfMemoryResult(v); ok && r.Err.ExitCode != nil { // allocators exit when they get no memory
			r.Err.Code, r.Err.Type, r.Err.Hint = m.Err.Code, m.Err.Type, m.Err.Hint
			r.Err.Message = fmt.Sprintf("%s (%s)", m.Err.Message, r.Err.Message)
		}
		return r, nil
	}
	raw, wrong := toolOutput(v.out)
	if wrong != "" {
		r := tool.Failed(tool.CodeBadABI, tool.ParseError, "%s returned a result that %s", v.call.Tool, wrong)
		r.Err.Hint = tool.Advise("this is a fault of the module; report it to its author")
		r.Err.Stdout, r.Err.Stderr = v.printed, v.inst.output.text()
		return r, nil
	}
	images, note := toolImages(v.out)
	return tool.Result{Output: tool.Shorten(v.redact.JSON(raw), v.limits.OutputBytes), Images: images, Note: v.redact.Text(note)}, nil
}

// endedByDeadline reports whether err is from the deadline of the call. An exit error does not
// count: a guest can exit with the codes that the engine uses for deadlines.
func endedByDeadline(err error) bool {
	var exit *sys.ExitError
	return errors.Is(err, context.DeadlineExceeded) && !errors.As(err, &exit)
}

func commandTimeoutResult(v callOutcome) tool.Result {
	r := tool.Failed(tool.CodeTimeout, tool.InternalError, "%s timed out after %s; the command and all its children were killed",
		v.call.Tool, v.limits.ExecTimeout)
	r.Err.Stdout, r.Err.Stderr = toValidUTF8(v.host.TimedOut.Stdout), toValidUTF8(v.host.TimedOut.Stderr)
	r.Err.Hint = tool.Advise("run a shorter command; no command may have more time")
	if v.limits.ExecTimeout < v.limits.ExecTimeoutMax {
		r.Err.Hint = tool.Advise("ask for more time with timeout_seconds (at most %d), or run a shorter command",
			int(v.limits.ExecTimeoutMax.Seconds()))
	}
	return r
}

func stoppedResult(v callOutcome) tool.Result {
	if cause := context.Cause(v.ctx); cause != nil && !errors.Is(cause, errTimeout) {
		return tool.Failed(tool.CodeCancelled, tool.InternalError, "%s was cancelled%s", v.call.Tool, v.fuelUsedText(" after"))
	}
	r := tool.Failed(tool.CodeTimeout, tool.InternalError, "%s timed out after %s%s", v.call.Tool, v.limits.Timeout, v.fuelUsedText(" and"))
	r.Err.Stdout, r.Err.Stderr = v.printed, v.inst.output.text()
	r.Err.Hint = tool.Advise("narrow the call").And(v.host.Grant.LimitHint(policy.TimeoutKey, uint64(v.limits.Timeout)))
	return r
}

// fuelUsedText returns word and the fuel that the guest has used; "": it has used none.
func (v callOutcome) fuelUsedText(word string) string {
	if v.inst.account.Used() == 0 {
		return ""
	}
	return fmt.Sprintf("%s %d units of fuel", word, v.inst.account.Used())
}

func outOfFuelResult(v callOutcome) tool.Result {
	budget := v.inst.account.ExhaustedBudget()
	whose := map[string]string{
		meter.CallFuelKey:     "of a call",
		policy.ToolFuelKey:    "of one tool in a session",
		policy.SessionFuelKey: "of a session",
	}[budget.Key()]
	before := ""
	advice := "narrow the call"
	if budget.Key() != meter.CallFuelKey {
		before, advice = ", most of which was used before", "start a new session"
	}
	r := tool.Failed(tool.CodeFuel, tool.InternalError, "%s ran out of fuel: it used %d units, and the limit %s is %d%s",
		v.call.Tool, v.inst.account.Used(), whose, budget.Limit(), before)
	r.Err.Stdout, r.Err.Stderr = v.printed, v.inst.output.text()
	r.Err.Hint = tool.Advise("%s", advice).And(v.host.Grant.LimitHint(budget.Key(), budget.Limit()))
	return r
}

func crashResult(v callOutcome) tool.Result {
	var (
		start *memoryError
		kept  *dialect.MemoryError
		fault *abi.Fault
		exit  *sys.ExitError
	)
	r, full := outOfMemoryResult(v)
	switch {
	case errors.As(v.err, &start):
		r = tool.Failed(tool.CodeMemory, tool.InternalError, "%s cannot run: %v", v.call.Tool, start)
		now := start.limit
		if start.key == policy.MemoryKey {
			now = v.limits.MemoryBytes // also where less was mapped
		}
		r.Err.Hint = tool.Advise("call a module that needs less").And(v.host.Grant.LimitHint(start.key, now))
	case errors.As(v.err, &kept):
		r = tool.Failed(tool.CodeMemory, tool.InternalError, "%s needs %v", v.call.Tool, kept)
		r.Err.Hint = tool.Advise("narrow the call").And(v.host.Grant.LimitHint(kept.Key, kept.Limit))
	case full:
	case errors.Is(v.err, meter.ErrDepth):
		r = tool.Failed(tool.CodeTrap, tool.InternalError, "%s crashed: its calls are nested too deeply, for about %d MiB of stack",
			v.call.Tool, admit.MaxDepth*16>>20)
		r.Err.Hint = tool.Advise("the crash stayed inside the sandbox; other arguments, less deeply nested ones, may work")
	case errors.As(v.err, &fault):
		r = tool.Failed(tool.CodeBadABI, tool.InternalError, "%s: %s", v.call.Tool, fault)
		r.Err.Hint = tool.Advise("this is a fault of the module; report it to its author")
	case errors.Is(v.err, hostmod.ErrHostCalls):
		r = tool.Failed(tool.CodeTrap, tool.InternalError, "%s was stopped: more than %d calls into the host", v.call.Tool, v.limits.HostCalls)
		r.Err.Hint = tool.Advise("narrow the call; if that does not help, this is a fault of the module")
	case errors.As(v.err, &exit):
		r = tool.Failed(tool.CodeTrap, tool.InternalError, "%s ended itself with exit code %d instead of returning a result", v.call.Tool, exit.ExitCode())
		code := int(exit.ExitCode())
		r.Err.ExitCode = &code
		r.Err.Hint = tool.Advise("stderr may say why; other arguments may work")
	default:
		r = tool.Failed(tool.CodeTrap, tool.InternalError, "%s crashed: %s", v.call.Tool, firstLine(v.err.Error()))
		r.Err.Hint = tool.Advise("the crash stayed inside the sandbox; other arguments may work")
	}
	r.Err.Stdout, r.Err.Stderr = v.printed, v.inst.output.text()
	return r
}

// outOfMemoryResult returns the failure of a guest that was denied memory. ok is false if
// none was denied.
func outOfMemoryResult(v callOutcome) (r tool.Result, ok bool) {
	memory := cmp.Or(v.inst.memory, &memory{})
	switch {
	case memory.overLimit:
		r = tool.Failed(tool.CodeMemory, tool.InternalError, "%s needs more than its memory limit of %d MiB; it had %d MiB",
			v.call.Tool, v.limits.MemoryBytes>>20, memory.peak>>20)
		r.Err.Hint = tool.Advise("narrow the call").And(v.host.Grant.LimitHint(policy.MemoryKey, v.limits.MemoryBytes))
	case memory.overQuota:
		r = tool.Failed(tool.CodeMemory, tool.InternalError, "%s needs more memory than is left: all calls together may have %d MiB, and it had %d MiB of them",
			v.call.Tool, memory.quota.Limit()>>20, memory.peak>>20)
		r.Err.Hint = tool.Advise("call fewer tools at the same time").And(v.host.Grant.LimitHint(memory.quota.Key(), memory.quota.Limit()))
	default:
		return r, false
	}
	return r, true
}

// toolErrorResult returns the result for an error that the tool itself reported. Its message
// is cut to limit bytes.
func toolErrorResult(e *abi.ToolError, limit int) tool.Result {
	types := map[abi.ErrorCase]struct {
		code tool.Code
		typ  tool.ErrorType
	}{
		abi.InvalidInput: {tool.CodeInvalidArgs, tool.ValidationFailed},
		abi.UnknownTool:  {tool.CodeUnknownTool, tool.NotFound},
		abi.NotFound:     {tool.CodeNotFound, tool.NotFound},
		abi.Denied:       {tool.CodeDenied, tool.PermissionDenied},
		abi.IO:           {tool.CodeIO, tool.IOError},
		abi.Parse:        {tool.CodeParse, tool.ParseError},
		abi.Unavailable:  {tool.CodeUnavailable, tool.IOError},
		abi.Cancelled:    {tool.CodeCancelled, tool.InternalError},
		abi.Failed:       {tool.CodeFailed, tool.InternalError},
	}
	t, message := types[e.Case], e.Message
	switch {
	case e.Native:
		t.code, message = tool.CutCode(message, t.code)
	case !t.code.FromHost(): // other dialects do not use our codes
		t.code = tool.CodeFailed
	}
	if message == "" {
		message = "the tool gave up without saying why"
	}
	if len(message) > limit {
		message = strings.ToValidUTF8(message[:limit], "") + " ..."
	}
	r := tool.Failed(t.code, t.typ, "%s", message)
	r.Err.ExitCode, r.Err.Stdout, r.Err.Stderr = e.ExitCode, e.Stdout, e.Stderr
	return r
}

// loadErrorResult returns a failed result if err is a refusal of the module, or if the call
// was cancelled. Otherwise it returns the error: for example Options.Permit does not permit
// the module, or the host could not read or compile it.
func loadErrorResult(ctx context.Context, name string, err error) (tool.Result, error) {
	refused, ok := errors.AsType[*admit.RefusedError](err)
	switch {
	case ok:
		r := tool.Failed(tool.CodeNotAdmitted, tool.ValidationFailed, "%s cannot run: %v", name, refused)
		r.Err.Hint = tool.ActionHint(tool.HintModule, "")
		if _, ok := errors.AsType[*admit.LargeError](err); ok {
			r.Err.Hint = tool.ActionHint(tool.HintLarge, "")
		}
		return r, nil
	case ctx.Err() != nil:
		return tool.Failed(tool.CodeCancelled, tool.InternalError, "%s was cancelled", name), nil
	}
	return tool.Result{}, fmt.Errorf("run %s: %w", name, err)
}

func toValidUTF8(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
