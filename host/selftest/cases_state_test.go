package selftest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/selftest/machine"
	"github.com/stockade-dev/stockade/host/tool"
)

// stateCases concern data left from one call to another, and what a guest sees of the
// machine.
func stateCases() []testCase {
	return []testCase{
		{id: "R12", title: "wait for what a person types", attacks: "standard-input", also: try(waitsForInput)},
		{id: "R22", title: "many calls of one module at the same time", attacks: "running-call memory-left global-left table-left memory-size-left grown-memory-left descriptor-left file-left", also: try(ofEveryKind(manyAtOnce))},
		{id: "R23", title: "guests that crash or end themselves, also inside a call of the host", attacks: "exit exit-while-initializing crash crash-left", also: try(ofEveryKind(everyExitCode))},
		{id: "R24", title: "clocks that are fine enough to time the caches of the processor", also: try(coarseClocks)},
	}
}

// waitsForInput polls standard input, which is at its end.
func waitsForInput(t *trial) error {
	subscription := make([]byte, 48)
	subscription[8] = 1 // readable; the descriptor is 0
	s := &script{}
	in := s.bytes(subscription)
	poll := s.add("poll_oneoff", in.at, machine.BufferBase, 1, machine.StateAt)
	list := s.words(machine.BufferBase, 64)
	n := s.reserve(4)
	read := s.add("fd_read", 0, list.at, 1, n.at)
	r, err := t.runReport(Guest{}, s)
	switch {
	case err != nil:
		return err
	case r.callCount(read) != 1 || r.errno(poll) != 0 || r.errno(read) != 0 || r.u32(n.at) != 0:
		return fmt.Errorf("poll says %s, read %s and %d bytes", r.errno(poll), r.errno(read), r.u32(n.at))
	}
	return nil
}

// manyAtOnce has each of many calls write its own number everywhere and check it at the
// end.
func manyAtOnce(t *trial) error {
	const calls, perCall = 16, 12
	errs := make([]error, calls)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			for n := range perCall {
				mine := uint32(1 + i*perCall + n)
				s := &script{}
				before, state := s.add("load", machine.StateAt), s.add("state.get")
				s.add("store", machine.StateAt, mine)
				s.add("state.set", mine)
				s.add("memory.grow", i%3)
				s.add("burn", int64(200_000))
				after, stateAfter := s.add("load", machine.StateAt), s.add("state.get")
				r, err := t.runReport(Guest{}, s)
				switch {
				case err != nil:
					errs[i] = err
				case r.resultOf(before) != 0 || r.resultOf(state) != 0:
					errs[i] = errors.New("a call sees what another has left")
				case r.resultOf(after) != mine || r.resultOf(stateAfter) != mine:
					errs[i] = errors.New("a call was changed by another")
				}
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// everyExitCode ends guests with codes that have a meaning somewhere.
func everyExitCode(t *trial) error {
	for _, code := range []uint32{0, 1, 2, 125, 126, 127, 128, 137, 255, 256, 0x7fff_ffff, 0x8000_0000, 0xefff_ffff, 0xffff_fffe, minusOne} {
		if code == 0 && t.kind != machine.Native { // 0 is the normal end
			continue
		}
		s := &script{}
		s.log("before") // it has called the host
		s.add("proc_exit", code)
		o, err := t.runScript(Guest{}, s)
		if err == nil {
			_, err = stoppedBy(o, fmt.Sprintf("code %d", code), tool.CodeTrap, tool.CodeFailed)
		}
		if err != nil {
			return fmt.Errorf("exit code %d: %w", code, err)
		}
	}
	return nil
}

// coarseClocks reads the clocks many times: they show milliseconds.
func coarseClocks(t *trial) error {
	const resolution = uint64(time.Millisecond)
	s := &script{}
	const reads = 100
	var all []span
	for i := range reads {
		now := s.reserve(8)
		s.add("clock_time_get", i%2, 1, now.at) // a precision of 1 ns is asked for
		s.add("burn", int64(20_000))
		all = append(all, now)
	}
	for _, clock := range []int{2, 3, 4, 1000} { // of processor time, and unknown ones
		s.add("clock_time_get", clock, 1, machine.StateAt).mustBeRefused(fmt.Sprint("clock ", clock))
	}
	r, err := t.runReport(Guest{Limits: policy.Limits{Timeout: time.Minute}}, s)
	if err != nil {
		return err
	}
	if _, err := r.check(s); err != nil {
		return err
	}
	for i, now := range all {
		at := uint64(r.u32(now.at+4))<<32 | uint64(r.u32(now.at))
		if at == 0 || at%resolution != 0 {
			return fmt.Errorf("reading %d of clock %d: %d ns", i, i%2, at)
		}
	}
	return nil
}
