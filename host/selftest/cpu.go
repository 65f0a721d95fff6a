package selftest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/sandbox/wasi"
	"github.com/stockade-dev/stockade/host/selftest/machine"
	"github.com/stockade-dev/stockade/host/tool"
	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

const (
	// deadline is the time limit of guests that would take far longer.
	deadline = 150 * time.Millisecond
	// deadlineSlack is the time that a guest may go on after its deadline. The aim is a
	// quarter of a second; the rest is for busy machines.
	deadlineSlack = 2 * time.Second
	// loopTurns is a number of turns of a loop that takes seconds, and ends.
	loopTurns = int64(1) << 33
	// recursionDepth is deeper than any stack. A recursion of this depth ends by itself.
	recursionDepth = 1 << 26
)

// limitAttack is an attack of a guest that a limit must end, with a failure of this code
// whose text contains wantMessage. If do is nil, the guest has code of its own.
func limitAttack(name, description string, g Guest, do func(*script), code tool.Code, wantMessage string) Attack {
	return Attack{Name: name, Description: description, run: func(t *trial) (string, error) {
		g := g
		if do != nil {
			s := &script{}
			do(s)
			g = g.withScript(s)
		}
		o, err := t.run(g)
		if err != nil {
			return "", err
		}
		by, err := stoppedBy(o, wantMessage, code)
		if err == nil && code == tool.CodeTimeout {
			over := o.Result.Usage.Duration - g.Limits.Timeout
			if t.detail = fmt.Sprintf("%d ms after the deadline", over.Milliseconds()); over > deadlineSlack {
				return "", fmt.Errorf("it went on for %d ms after the deadline", over.Milliseconds())
			}
		}
		return by, err
	}}
}

// burnCode returns a body with a loop of loopTurns turns. local must be an i64 of its
// function.
func burnCode(local uint32) []byte {
	return code(w.I64Const(loopTurns), w.LocalSet(local),
		w.Loop(w.LocalGet(local), w.I64Const(1), []byte{0x7d}, w.LocalTee(local), []byte{0x50}, w.I32Eqz(), w.BrIf(0)))
}

func addBurn(s *script) { s.add("burn", loopTurns) }

func cpuAttacks() []Attack {
	late := Guest{Limits: policy.Limits{Timeout: deadline}}
	fuel := func(l policy.Limits) Guest { return Guest{Limits: l} }
	burning := func(m *machine.Machine) []byte { return code(w.I64Const(loopTurns), m.Burn()) }
	own := func(o machine.Options) Guest { g := late; g.machineOptions = &o; return g }
	allocates := w.Tool(w.ToolOptions{Realloc: code(w.Call(w.ToolOptions{}.CallFunc()+1), w.I32Const(0)), Edit: func(b *w.Builder) {
		b.Func("", nil, nil, []w.ValType{i64}, burnCode(0))
	}})
	guest := func(code []byte) Guest { g := late; g.Code = code; return g }

	return []Attack{
		limitAttack("endless-loop", "Run a loop that does not end.", late, addBurn, tool.CodeTimeout, "timed out after 150ms"),
		limitAttack("endless-start", "Run a loop in the start function of the module, before any call.", own(machine.Options{Start: burning}), nil, tool.CodeTimeout, "timed out after 150ms"),
		limitAttack("endless-initialize", "Run a loop in _initialize.", own(machine.Options{Initialize: burning}), nil, tool.CodeTimeout, "timed out after 150ms").forKinds(reactors),
		limitAttack("endless-allocator", "Run a loop where the host asks for memory to pass the arguments.", guest(allocates), nil, tool.CodeTimeout, "timed out after 150ms").forKinds(native),
		limitAttack("call-tree", "Call two functions that call two functions, and so on, without a loop.", late,
			func(s *script) { s.add("tree") }, tool.CodeTimeout, "timed out after 150ms"),
		limitAttack("recursion", "Let a function call itself until the stack of the host is full.", Guest{},
			func(s *script) { s.add("recurse.self", recursionDepth) }, tool.CodeTrap, "nested too deeply"),
		limitAttack("mutual-recursion", "Let two functions call each other until the stack of the host is full.", Guest{},
			func(s *script) { s.add("recurse", recursionDepth) }, tool.CodeTrap, "nested too deeply"),
		limitAttack("fuel-of-call", "Use more instructions than the call has.", fuel(policy.Limits{Fuel: 10_000_000}), addBurn, tool.CodeFuel, "of a call"),
		limitAttack("fuel-of-tool", "Use more instructions than all calls of the tool have.", fuel(policy.Limits{ToolFuel: 10_000_000}), addBurn, tool.CodeFuel, "of one tool"),
		limitAttack("fuel-of-session", "Use more instructions than the session has.", fuel(policy.Limits{SessionFuel: 10_000_000}), addBurn, tool.CodeFuel, "of a session"),
		limitAttack("fuel-of-bulk-memory", "Do the work of millions of instructions with few: fill memory.", fuel(policy.Limits{Fuel: 10_000_000}),
			func(s *script) { s.repeatWhileZero(s.add("fill", machine.BufferBase, 1, machine.BufferSize), 200_000) }, tool.CodeFuel, "of a call"),
		limitAttack("fuel-of-files", "Let the host do the work: look up names.", fuel(policy.Limits{Fuel: 10_000_000}),
			func(s *script) {
				p := s.place("none")
				look := s.add("path_filestat_get", rootFD, 0, p.name.at, p.name.n, s.reserve(64).at)
				s.add("store", machine.StateAt, 0) // returns zero, whatever the host returned
				s.repeatWhileZero(look, 500_000)
			}, tool.CodeFuel, "of a call"),
		limitAttack("fuel-of-digests", "Let the host do the work: hash.", fuel(policy.Limits{Fuel: 10_000_000}),
			func(s *script) {
				s.repeatWhileZero(s.add("digest.sha1", machine.BufferBase, machine.BufferSize, machine.StateAt), 500_000)
			}, tool.CodeFuel, "of a call").forKinds(native),
		limitAttack("bulk-memory-tail", "Be in the middle of filling much memory when the time is up.", late,
			func(s *script) {
				const pages = 1024
				s.add("memory.grow", pages)
				s.repeatWhileZero(s.add("fill", machine.ImageBase+machine.ImageBytes+0x200000, 1, (pages-64)<<16), 2000)
			}, tool.CodeTimeout, "timed out after 150ms"),
		limitAttack("random-flood", "Ask for random bytes without end.", late,
			func(s *script) {
				s.repeatWhileZero(s.add("random_get", machine.BufferBase, machine.BufferSize), 500_000)
			}, tool.CodeTimeout, "timed out after 150ms"),
		limitAttack("yield-flood", "Call the host without end, for nothing.", late,
			func(s *script) { s.repeatWhileZero(s.add("sched_yield"), 100_000_000) }, tool.CodeTimeout, "timed out after 150ms"),
		limitAttack("clock-flood", "Ask for the time without end.", late,
			func(s *script) { s.repeatWhileZero(s.add("clock_time_get", 1, 1, machine.StateAt), 100_000_000) }, tool.CodeTimeout, "timed out after 150ms"),
		limitAttack("host-call-flood", "Call the program's own functions more often than a call may.", Guest{Limits: policy.Limits{HostCalls: 1000}},
			func(s *script) { s.repeatWhileZero(s.log("x"), 5000) }, tool.CodeTrap, "calls into the host").forKinds(reactors),
		limitAttack("sleep", "Sleep for a minute.", late, func(s *script) {
			subscription := make([]byte, 48)
			copy(subscription[24:], le64(uint64(time.Minute)))
			in := s.bytes(subscription)
			s.add("poll_oneoff", in.at, machine.BufferBase, 1, machine.StateAt)
		}, tool.CodeTimeout, "timed out after 150ms"),
		{Name: "poll-flood", Description: "Wait for 2^28 events at once.", run: pollFlood},
		{Name: "ignored-cancel", kinds: reactors, Description: "Go on when the person has cancelled the call.", run: ignoredCancel},
	}
}

// pollFlood may be refused with an error number, or end the guest.
func pollFlood(t *trial) (string, error) {
	s := &script{}
	poll := s.add("poll_oneoff", machine.BufferBase, machine.BufferBase, 1<<28, machine.StateAt)
	o, err := t.runScript(Guest{Limits: policy.Limits{Timeout: deadline}}, s)
	if err != nil {
		return "", err
	}
	if o.Result.Err != nil {
		return stoppedBy(o, "", tool.CodeTrap, tool.CodeMemory, tool.CodeTimeout)
	}
	r, err := readReport(o.Result.Output)
	switch {
	case err != nil:
		return "", err
	case r.callCount(poll) != 1:
		return "", newUntried("the guest did not poll")
	case r.errno(poll) == 0:
		return "", errors.New("it worked: 2^28 events were waited for")
	case r.errno(poll) == wasi.ENOSYS:
		return "", newUntried("poll_oneoff: %s", r.errno(poll))
	}
	return fmt.Sprintf("wasi: bounds of the memory (%s)", r.errno(poll)), nil
}

// ignoredCancel cancels the call when the guest says that it is running.
func ignoredCancel(t *trial) (string, error) {
	ctx, cancel := context.WithCancelCause(t.ctx)
	defer cancel(nil)
	s := &script{}
	s.log("running")
	addBurn(s)
	running := false
	g := Guest{OnProgress: func(tool.Progress) {
		running = true
		cancel(errors.New("the person cancels"))
	}}
	o, err := t.runContext(ctx, g.withScript(s))
	switch {
	case err != nil:
		return "", err
	case !running:
		return "", newUntried("the guest did not say that it runs")
	}
	// A deadline would end the guest, too, much later.
	const most = 2_000_000
	by, err := stoppedBy(o, "was cancelled", tool.CodeCancelled)
	if used := o.Result.Usage.FuelUsed; err == nil && used > most {
		return "", fmt.Errorf("it went on for %d units of fuel", used)
	}
	return by, err
}
