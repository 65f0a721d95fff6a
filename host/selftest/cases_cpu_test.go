package selftest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/selftest/machine"
	"github.com/stockade-dev/stockade/host/tool"
	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// cpuCases concern endless work, and compiling.
func cpuCases() []testCase {
	return []testCase{
		{id: "R01", title: "endless loop", attacks: "endless-loop call-tree bulk-memory-tail ignored-cancel"},
		{id: "R02", title: "endless loop before the call", attacks: "endless-start endless-initialize endless-allocator"},
		{id: "R03", title: "endless recursion; sixteen at the same time are a test of package sandbox", attacks: "recursion mutual-recursion allocator-recursion"},
		{id: "R06", title: "bombs of local variables", attacks: "locals-bomb many-locals locals-sum"},
		{id: "R07", title: "bombs of blocks, branches and loops", attacks: "nested-blocks nested-loops loops-times-locals branches-bomb br-table-bomb large-function compile-time"},
		{id: "R08", title: "too many functions, too large a module, too many data segments", attacks: "many-functions large-module data-segments many-types many-globals many-exports wide-type"},
		{id: "R09", title: "modules that are malformed, or changed at random", attacks: "not-a-module cut-short endless-number count-bomb invalid-code index-outside", also: try(randomModules)},
		{id: "R11", title: "sleep for a year; wait for a million things", attacks: "sleep poll-flood", also: try(longSleeps)},
		{id: "R13", title: "a hundred million calls into the host", attacks: "yield-flood clock-flood host-call-flood fuel-of-files fuel-of-digests", also: try(hundredMillionCalls)},
		{id: "R14", title: "random bytes without end", attacks: "random-flood", also: try(muchRandomness)},
		{id: "R20", title: "a tool that calls a tool that calls a tool", attacks: "allocator-recursion", also: try(noToolCalls),
			open: "no host function calls a tool yet, and a module that wants one is not admitted: when there is one, its depth has to be limited to eight"},
		{id: "R25", title: "many sessions that use all of the processor, and one that does little", also: try(manyHogs)},
	}
}

// randomModules changes bytes of a good module. Each is refused or runs; the host is
// never at fault, and no guest gets anything it was not granted.
func randomModules(t *trial) error {
	const modules = 150
	random := rand.New(rand.NewPCG(9, 9))
	good := machine.PlainModule(machine.Native)
	args := (&script{}).arguments("")
	refused := 0
	for i := range modules {
		bad := slices.Clone(good)
		switch i % 3 {
		case 0: // some bytes
			for range 1 + random.IntN(4) {
				bad[8+random.IntN(len(bad)-8)] = byte(random.Uint32())
			}
		case 1: // cut out a piece
			from := 8 + random.IntN(len(bad)-8)
			bad = append(bad[:from:from], bad[min(len(bad), from+1+random.IntN(9)):]...)
		case 2: // near the front, where the counts are
			bad[8+random.IntN(300)] ^= 1 << random.IntN(8)
		}
		o, err := t.run(Guest{Code: bad, Args: args, Limits: policy.Limits{Timeout: deadline}})
		if err != nil {
			return fmt.Errorf("module %d: %w", i, err)
		}
		if e := o.Result.Err; e != nil && e.Code == tool.CodeNotAdmitted {
			refused++
		}
	}
	if refused < modules/2 {
		return fmt.Errorf("only %d of %d modules were refused", refused, modules)
	}
	return nil
}

// longSleeps waits for a year on both clocks, and for very many events, in valid memory.
func longSleeps(t *trial) error {
	late := Guest{Limits: policy.Limits{Timeout: deadline}}
	for clock := range 2 {
		subscription := make([]byte, 48)
		copy(subscription[16:], le32(uint32(clock)))
		copy(subscription[24:], le64(uint64(365*24*time.Hour)))
		s := &script{}
		in := s.bytes(subscription)
		s.add("poll_oneoff", in.at, machine.BufferBase, 1, machine.StateAt)
		o, err := t.runScript(late, s)
		if err == nil {
			_, err = stoppedBy(o, "timed out", tool.CodeTimeout)
		}
		if err != nil {
			return err
		}
	}
	const many = 1 << 20
	s := &script{}
	grown := s.add("memory.grow", many*(48+32)/page+1)
	poll := s.add("poll_oneoff", machine.Pages*page, machine.Pages*page+many*48, many, machine.StateAt)
	r, err := t.runReport(late, s)
	switch {
	case err != nil:
		return err
	case r.resultOf(grown) == minusOne:
		return newUntried("the memory does not grow")
	case r.errno(poll) == 0:
		return errors.New("a million things were waited for")
	}
	return nil
}

// hundredMillionCalls has no short deadline: fuel ends it.
func hundredMillionCalls(t *trial) error {
	for _, function := range []struct {
		name     string
		operands []any
	}{{"sched_yield", nil}, {"clock_time_get", []any{1, 1, machine.StateAt}}, {"random_get", []any{machine.BufferBase, 1}}} {
		s := &script{}
		s.repeatWhileZero(s.add(function.name, function.operands...), 100_000_000)
		o, err := t.runScript(Guest{Limits: policy.Limits{Fuel: 50_000_000, Timeout: time.Hour}}, s)
		if err == nil {
			_, err = stoppedBy(o, "of a call", tool.CodeFuel)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", function.name, err)
		}
	}
	return nil
}

// muchRandomness pays for every byte.
func muchRandomness(t *trial) error {
	s := &script{}
	s.add("memory.grow", 64<<20/page)
	s.repeatWhileZero(s.add("random_get", machine.Pages*page, 64<<20), 1000)
	o, err := t.runScript(Guest{Limits: policy.Limits{Fuel: 200_000_000, Timeout: time.Hour}}, s)
	if err != nil {
		return err
	}
	_, err = stoppedBy(o, "of a call", tool.CodeFuel)
	return err
}

// noToolCalls: no function that would call a tool can be imported.
func noToolCalls(t *trial) error {
	for _, iface := range []string{"stockade:tool/tools@0.1.0", "stockade:tool/tool@0.1.0", "stockade:tool/call@0.1.0"} {
		for _, name := range []string{"call", "run"} {
			imp := w.Import{Module: iface, Name: name, Params: w.CallParams(), Results: i32x1}
			o, err := t.run(Guest{Code: w.Tool(w.ToolOptions{Imports: []w.Import{imp}})})
			if err == nil {
				_, err = stoppedBy(o, "does not have", tool.CodeNotAdmitted)
			}
			if err != nil {
				return fmt.Errorf("%s.%s: %w", iface, name, err)
			}
		}
	}
	return nil
}

// manyHogs counts the work of others while a short call runs. One lap of a hog takes as
// long as the whole call, which is more than a guest gets at a time from the scheduler of
// Go: if all took turns, every hog would get as far as the call.
func manyHogs(t *trial) error {
	const (
		hogs   = 60
		lap    = int64(4_000_000) // turns of a loop: tens of milliseconds
		little = int64(3_500_000)
		calls  = 5
	)
	ctx, cancel := context.WithCancelCause(t.ctx)
	var (
		laps  atomic.Int64
		begun sync.WaitGroup
		all   sync.WaitGroup
	)
	endless := &script{}
	first := endless.add("burn", lap)
	endless.log("")
	endless.repeat(first, 1<<30)
	begun.Add(hogs)
	for range hogs {
		var once sync.Once
		g := Guest{
			Code: machine.PlainModule(machine.Native), Args: endless.arguments(""),
			Limits:     policy.Limits{Timeout: time.Hour, Fuel: 1 << 50, ToolFuel: 1 << 50, SessionFuel: 1 << 50, LogBytes: 1 << 30, HostCalls: 1 << 40},
			OnProgress: func(tool.Progress) { laps.Add(1); once.Do(begun.Done) },
		}
		all.Go(func() { t.target.Run(ctx, g); once.Do(begun.Done) })
	}
	begun.Wait()
	counts, err := []int64{}, error(nil)
	for range calls {
		s := &script{}
		done := s.add("burn", little)
		before := laps.Load()
		r, callErr := t.runReport(Guest{}, s)
		if callErr == nil && r.callCount(done) != 1 {
			callErr = newUntried("the short call did nothing")
		}
		counts, err = append(counts, laps.Load()-before), errors.Join(err, callErr)
	}
	cancel(errors.New("the hogs are not needed any more"))
	all.Wait()
	slices.Sort(counts)
	median := counts[len(counts)/2]
	t.detail = fmt.Sprintf("laps of %d hogs during a short call: %v", hogs, counts)
	if err == nil && median > hogs/6 {
		err = errors.New(t.detail)
	}
	return err
}
