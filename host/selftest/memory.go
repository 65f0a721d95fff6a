package selftest

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/selftest/machine"
	"github.com/stockade-dev/stockade/host/tool"
	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

const (
	page  = 64 << 10
	minus = ^uint32(0) // -1, which says that something does not grow
)

func memoryAttacks() []Attack {
	allocator := func(body []byte) Guest { return Guest{Code: w.Tool(w.ToolOptions{Realloc: body})} }
	var out []Attack
	for _, a := range []endedAttack{
		{"large-minimum", "Ask for 512 MiB of memory from the start.", Guest{Code: w.Tool(w.ToolOptions{MemoryMin: 512 << 20 / page})}, nil,
			tool.CodeMemory, "more than tool_memory"},
		{"data-outside", "Have initial data put outside the memory.",
			Guest{Code: w.Tool(w.ToolOptions{Data: []w.Segment{{Offset: 0xffff_0000, Bytes: []byte("x")}}})}, nil, tool.CodeTrap, "crashed"},
		{"load-outside", "Read at the end of the address space.", Guest{}, func(s *script) { s.add("load", uint32(0xffff_fffc)) },
			tool.CodeTrap, "out of bounds"},
		{"load-behind-end", "Read the bytes that follow the memory.", Guest{}, func(s *script) { s.add("load", machine.Pages*page-2) },
			tool.CodeTrap, "out of bounds"},
		{"store-outside", "Write beyond the memory.", Guest{}, func(s *script) { s.add("store", machine.Pages*page, 1) },
			tool.CodeTrap, "out of bounds"},
		{"fill-outside", "Fill memory beyond its end.", Guest{}, func(s *script) { s.add("fill", machine.ImageBase, 1, uint32(0xffff_0000)) },
			tool.CodeTrap, "out of bounds"},
		{"allocator-outside", "Answer with an address outside the memory when the host asks for some.", allocator(w.I32Const(-16)), nil,
			tool.CodeBadABI, "realloc"},
		{"allocator-null", "Answer with no address when the host asks for memory.", allocator(w.I32Const(0)), nil, tool.CodeBadABI, "realloc"},
	} {
		out = append(out, Attack{Name: a.name, Area: Memory, Tries: a.tries, run: a.run})
	}
	return append(out,
		Attack{Name: "grow-beyond-limit", Area: Memory, Tries: "Grow the memory beyond the limit of the call, at once and page by page.", run: growBeyondLimit},
		Attack{Name: "table-grow", Area: Memory, Tries: "Grow a table to two hundred million elements.", run: tableGrow},
		Attack{Name: "table-grow-slowly", Area: Memory, Tries: "Grow a table to five million elements, piece by piece.", run: tableGrowSlowly},
		Attack{Name: "memory-of-all-calls", Area: Memory, Tries: "Use more memory in two calls at the same time than all calls may have.", run: memoryOfAllCalls},
		Attack{Name: "memory-kept", Area: Memory, Tries: "Use up the memory of all calls for good by crashing with it.", run: memoryKept},
	)
}

// growBeyondLimit never writes to what it asks for.
func growBeyondLimit(t *trial) (string, error) {
	const limit = 16 << 20
	s := &script{}
	first := s.add("memory.grow", 4*limit/page)
	var steps []*call
	for range 40 {
		steps = append(steps, s.add("memory.grow", 1<<20/page))
	}
	size := s.add("memory.size")
	o, err := t.script(Guest{Limits: policy.Limits{MemoryBytes: limit}}, s)
	if err != nil {
		return "", err
	}
	if o.Result.Err != nil {
		return "", notTried("the guest ended early: %s", o.Result.Err.Message)
	}
	r, err := readReport(o.Result.Output)
	if err != nil {
		return "", err
	}
	has, peak := int(r.returned(size))*page, o.Result.Usage.PeakMemoryBytes
	switch {
	case r.times(size) == 0:
		return "", notTried("the guest did not get to the end")
	case has > limit || peak > limit || r.returned(first) != minus || r.returned(steps[len(steps)-1]) != minus:
		return "", fmt.Errorf("it has %d MiB", has>>20)
	case r.returned(steps[0]) == minus:
		return "", notTried("no memory at all")
	}
	t.detail = fmt.Sprintf("it has %.1f MiB", float64(has)/(1<<20))
	return fmt.Sprintf("memory: the limit of %d MiB of the call (memory.grow says -1)", limit>>20), nil
}

func tableGrow(t *trial) (string, error) {
	s := &script{}
	grow := s.add("table.grow", 200_000_000)
	size := s.add("table.size")
	return tableGrown(t, s, grow, size)
}

func tableGrowSlowly(t *trial) (string, error) {
	s := &script{}
	var grow *call
	for range 50 {
		grow = s.add("table.grow", 100_000)
	}
	size := s.add("table.size")
	return tableGrown(t, s, grow, size)
}

func tableGrown(t *trial, s *script, grow, size *call) (string, error) {
	const most = 1_100_000
	r, err := t.report(Guest{}, s)
	switch {
	case err != nil:
		return "", err
	case r.times(size) == 0:
		return "", notTried("the guest did not get to the end")
	case r.returned(grow) != minus || r.returned(size) > most:
		return "", fmt.Errorf("the table has %d elements", r.returned(size))
	}
	return fmt.Sprintf("memory: a table of %d elements (table.grow says -1)", r.returned(size)), nil
}

// all is what the guests below may have together.
const all = 24 << 20

// memoryOfAllCalls has one guest wait with its memory until another has asked
// for as much.
func memoryOfAllCalls(t *trial) (string, error) {
	const more = 16 << 20
	asks := &script{}
	grown := asks.add("memory.grow", more/page)
	asks.log("grown")
	second := &script{}
	alsoGrown := second.add("memory.grow", more/page)
	var (
		once  sync.Once
		inner error
		what  uint32
	)
	ran := false
	r, err := t.report(Guest{Together: all, Said: func(tool.Progress) {
		once.Do(func() {
			ran = true
			var r report
			if r, inner = t.report(Guest{Together: all}, second); inner == nil {
				what = r.returned(alsoGrown)
			}
		})
	}}, asks)
	switch {
	case err != nil:
		return "", err
	case r.returned(grown) == minus:
		return "", notTried("the first guest does not get its memory")
	case !ran:
		return "", notTried("the second guest did not run")
	case inner != nil:
		return "", inner
	case what != minus:
		return "", fmt.Errorf("two guests have %d MiB each, and all together may have %d", more>>20, all>>20)
	}
	return fmt.Sprintf("memory: the %d MiB of all calls together (memory.grow says -1)", all>>20), nil
}

// memoryKept: the memory of a guest that crashed comes back.
func memoryKept(t *trial) (string, error) {
	const more = 12 << 20
	const alone = all + page // attacks run at the same time, and this one wants the memory for itself
	for range 6 {
		s := &script{}
		grow := s.add("memory.grow", more/page)
		s.add("store", machine.Pages*page+more-4, 1) // there only if it has grown
		s.add("trap")
		_ = grow
		o, err := t.script(Guest{Together: alone}, s)
		if err != nil {
			return "", err
		}
		switch e := o.Result.Err; {
		case e == nil || e.Code != tool.CodeTrap && e.Code != tool.CodeMemory:
			return "", notTried("the guest did not crash")
		case !strings.Contains(e.Message, "unreachable"):
			return "", fmt.Errorf("a guest does not get the memory that others have left: %s", e.Message)
		}
	}
	s := &script{}
	grow := s.add("memory.grow", more/page)
	r, err := t.report(Guest{Together: alone}, s)
	if err == nil && r.returned(grow) == minus {
		err = errors.New("a guest does not get the memory that others have left")
	}
	return "memory: what a call had comes back when it has ended", err
}
