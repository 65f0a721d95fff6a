package selftest

import (
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/selftest/machine"
	"github.com/stockade-dev/stockade/host/tool"
	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

const (
	page     = 64 << 10
	minusOne = ^uint32(0) // -1, the result of a failed memory.grow
)

func memoryAttacks() []Attack {
	allocator := func(body []byte) Guest { return Guest{Code: w.Tool(w.ToolOptions{Realloc: body})} }
	return append([]Attack{
		limitAttack("large-minimum", "Ask for 512 MiB of memory from the start.", Guest{machineOptions: &machine.Options{Pages: 512 << 20 / page}}, nil,
			tool.CodeMemory, "more than tool_memory"),
		limitAttack("data-outside", "Have initial data put outside the memory.",
			Guest{machineOptions: &machine.Options{Data: []w.Segment{{Offset: 0xffff_0000, Bytes: []byte("x")}}}}, nil, tool.CodeTrap, "crashed"),
		limitAttack("load-outside", "Read at the end of the address space.", Guest{}, func(s *script) { s.add("load", uint32(0xffff_fffc)) },
			tool.CodeTrap, "out of bounds"),
		limitAttack("load-behind-end", "Read the bytes that follow the memory.", Guest{}, func(s *script) { s.add("load", machine.Pages*page-2) },
			tool.CodeTrap, "out of bounds"),
		limitAttack("store-outside", "Write beyond the memory.", Guest{}, func(s *script) { s.add("store", machine.Pages*page, 1) },
			tool.CodeTrap, "out of bounds"),
		limitAttack("fill-outside", "Fill memory beyond its end.", Guest{}, func(s *script) { s.add("fill", machine.ImageBase, 1, uint32(0xffff_0000)) },
			tool.CodeTrap, "out of bounds"),
		limitAttack("allocator-outside", "Answer with an address outside the memory when the host asks for some.", allocator(w.I32Const(-16)), nil,
			tool.CodeBadABI, "realloc").forKinds(native),
		limitAttack("allocator-null", "Answer with no address when the host asks for memory.", allocator(w.I32Const(0)), nil, tool.CodeBadABI, "realloc").forKinds(native),
		{Name: "grow-beyond-limit", Description: "Grow the memory beyond the limit of the call, at once and page by page.", run: growBeyondLimit},
		{Name: "table-grow", Description: "Grow a table to twenty million elements.", run: tableGrow(1, 20_000_000)},
		{Name: "table-grow-slowly", Description: "Grow a table to five million elements, piece by piece.", run: tableGrow(50, 100_000)},
		{Name: "references", Description: "Have the engine make more than a million references to a function.", run: references},
		{Name: "memory-of-all-calls", kinds: reactors, Description: "Use more memory in two calls at the same time than all calls may have.", run: memoryOfAllCalls},
		{Name: "memory-kept", Description: "Use up the memory of all calls for good by crashing with it.", run: memoryKept},
	}, pluginMemoryAttacks()...)
}

// growBeyondLimit never writes to the memory it grows.
func growBeyondLimit(t *trial) (string, error) {
	const limit = 16 << 20
	s := &script{}
	first := s.add("memory.grow", 4*limit/page)
	var steps []*call
	for range 40 {
		steps = append(steps, s.add("memory.grow", 1<<20/page))
	}
	size := s.add("memory.size")
	o, err := t.runScript(Guest{Limits: policy.Limits{MemoryBytes: limit}}, s)
	if err != nil {
		return "", err
	}
	if o.Result.Err != nil {
		return "", newUntried("the guest ended early: %s", o.Result.Err.Message)
	}
	r, err := readReport(o.Result.Output)
	if err != nil {
		return "", err
	}
	has, peak := int(r.resultOf(size))*page, o.Result.Usage.PeakMemoryBytes
	switch {
	case r.callCount(size) == 0:
		return "", newUntried("the guest did not get to the end")
	case has > limit || peak > limit || r.resultOf(first) != minusOne || r.resultOf(steps[len(steps)-1]) != minusOne:
		return "", fmt.Errorf("it has %d MiB", has>>20)
	case r.resultOf(steps[0]) == minusOne:
		return "", newUntried("no memory at all")
	}
	t.detail = fmt.Sprintf("it has %.1f MiB", float64(has)/(1<<20))
	return fmt.Sprintf("memory: the limit of %d MiB of the call (memory.grow says -1)", limit>>20), nil
}

// tableGrow grows a table times times by that many elements.
func tableGrow(times, by int) func(t *trial) (string, error) {
	return func(t *trial) (string, error) {
		const most = 1_100_000
		s := &script{}
		var grow *call
		for range times {
			grow = s.add("table.grow", by)
		}
		size := s.add("table.size")
		r, err := t.runReport(Guest{}, s)
		switch {
		case err != nil:
			return "", err
		case r.resultOf(grow) != minusOne || r.resultOf(size) > most:
			return "", fmt.Errorf("the table has %d elements", r.resultOf(size))
		}
		return fmt.Sprintf("memory: a table of %d elements (table.grow says -1)", r.resultOf(size)), nil
	}
}

// requireFew fails if a statistic of the host grows by most or more while run runs, three
// times in a row. Allocations for attacks that run at the same time are not that high
// three times.
func requireFew(of func(*runtime.MemStats) uint64, most uint64, run func() error) error {
	var before, after runtime.MemStats
	var made uint64
	for range 3 {
		runtime.ReadMemStats(&before)
		err := run()
		runtime.ReadMemStats(&after)
		if made = of(&after) - of(&before); err != nil || made < most {
			return err
		}
	}
	return fmt.Errorf("the host has made %d, and %d are many", made, most)
}

// references makes more than a million references. The engine would allocate 48 bytes for
// each.
func references(t *trial) (string, error) {
	const times, most = 1_300_000, 1_000_000
	err := requireFew(func(m *runtime.MemStats) uint64 { return m.Mallocs }, most, func() error {
		s := &script{}
		c := s.add("ref.func")
		s.repeat(c, times-1)
		_, err := t.runToEnd(Guest{}, s, c, times)
		return err
	})
	return "memory: a reference to a function is made once", err
}

// sharedMemory is the limit on the memory of all guests together, in bytes.
const sharedMemory = 24 << 20

// sharedBytes returns a memory limit close to bytes that no other attack uses at the same
// time.
func (t *trial) sharedBytes(bytes uint64) uint64 { return bytes + uint64(t.kind) }

// memoryOfAllCalls makes one guest wait with its memory until another has asked for as
// much.
func memoryOfAllCalls(t *trial) (string, error) {
	const more = 16 << 20
	asks := &script{}
	grown := asks.add("memory.grow", more/page)
	asks.log("grown")
	second := &script{}
	alsoGrown := second.add("memory.grow", more/page)
	r, other, err := t.reportBoth(Guest{SharedMemoryBytes: t.sharedBytes(sharedMemory)}, asks, second)
	switch {
	case err != nil:
		return "", err
	case r.resultOf(grown) == minusOne:
		return "", newUntried("the first guest does not get its memory")
	case other.resultOf(alsoGrown) != minusOne:
		return "", fmt.Errorf("two guests have %d MiB each, and all together may have %d", more>>20, sharedMemory>>20)
	}
	return fmt.Sprintf("memory: the %d MiB of all calls together (memory.grow says -1)", sharedMemory>>20), nil
}

// runToCrash runs a script that gets memory of the shared limit and then ends in a trap.
func (t *trial) runToCrash(g Guest, s *script) error {
	o, err := t.runScript(g, s)
	if err != nil {
		return err
	}
	switch e := o.Result.Err; {
	case e == nil || e.Code != tool.CodeTrap && e.Code != tool.CodeMemory:
		return newUntried("the guest did not crash")
	case !strings.Contains(e.Message, "unreachable"):
		return fmt.Errorf("a guest does not get the memory that others have left: %s", e.Message)
	}
	return nil
}

// memoryKept checks that the memory of a guest that crashed is free again.
func memoryKept(t *trial) (string, error) {
	const more = 12 << 20
	alone := t.sharedBytes(sharedMemory + page)
	for range 6 {
		s := &script{}
		s.add("memory.grow", more/page)
		s.add("store", machine.Pages*page+more-4, 1) // inside only if the memory has grown
		s.add("trap")
		if err := t.runToCrash(Guest{SharedMemoryBytes: alone}, s); err != nil {
			return "", err
		}
	}
	s := &script{}
	grow := s.add("memory.grow", more/page)
	r, err := t.runReport(Guest{SharedMemoryBytes: alone}, s)
	if err == nil && r.resultOf(grow) == minusOne {
		err = errors.New("a guest does not get the memory that others have left")
	}
	return "memory: what a call had comes back when it has ended", err
}
