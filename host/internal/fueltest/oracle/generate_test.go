package oracle

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stockade-dev/stockade/host/wasm"
)

// TestGenerateMakesValidModulesOfAllKinds has enough seeds that every instruction is
// executed, so that it also runs the whole interpreter.
func TestGenerateMakesValidModulesOfAllKinds(t *testing.T) {
	const seeds, runs = 10_000, 4_000
	var ended, trapped, limited, started, long int
	traps := make(map[Trap]int)
	written, executed := make(map[uint32]int), make(map[uint32]int)
	for n := range uint64(seeds) {
		data := Config{TailCalls: n%2 == 0}.Generate(Seed(n))
		if _, err := wasm.Decode(data); err != nil {
			t.Fatalf("seed %d: %v", n, err)
		}
		m, err := decode(data)
		if err != nil {
			t.Fatalf("seed %d: %v", n, err)
		}
		for _, f := range m.funcs {
			for _, in := range f.code {
				written[in.op]++
			}
		}
		if n >= runs {
			continue
		}
		out, err := Run(data, Options{MaxSteps: 100_000, MaxDepth: 200})
		if err != nil {
			t.Fatalf("seed %d: %v", n, err)
		}
		for op := range out.Ops {
			executed[op]++
		}
		switch {
		case out.Limit != LimitNone:
			limited++
		case out.Trap != TrapNone:
			trapped++
			traps[out.Trap]++
		default:
			ended++
		}
		if m.start >= 0 {
			started++
		}
		if out.Steps >= 1000 {
			long++
		}
	}
	t.Logf("%d ended, %d trapped (%v), %d did not end, %d made a thousand steps or more", ended, trapped, traps, limited, long)
	for what, share := range map[string]struct{ got, least int }{
		"end":                   {ended, 50},
		"trap":                  {trapped, 15},
		"run into a limit":      {limited, 1},
		"have a start":          {started, 5},
		"make a thousand steps": {long, 10},
	} {
		if share.got*100 < share.least*runs {
			t.Errorf("%d of %d modules %s, less than %d %%", share.got, runs, what, share.least)
		}
	}
	for _, trap := range []Trap{TrapUnreachable, TrapDivideZero, TrapOverflow, TrapConversion, TrapMemory, TrapTable, TrapSignature} {
		if traps[trap] == 0 {
			t.Errorf("no module traps with %q", trap)
		}
	}
	for _, op := range allInstructions() {
		if written[op] == 0 {
			t.Errorf("no module has instruction %#x", op)
		}
		if executed[op] == 0 && !isFree(op) {
			t.Errorf("no module executes instruction %#x", op)
		}
	}
}

// allInstructions returns the instructions that Generate must use.
func allInstructions() (out []uint32) {
	add := func(from, to uint32) {
		for op := from; op <= to; op++ {
			out = append(out, op)
		}
	}
	add(opUnreachable, opElse)
	add(opEnd, opReturnCallIndirect)
	add(opDrop, opSelectTyped)
	add(opLocalGet, opTableSet)
	add(opI32Load, opI64Extend32S)
	add(opRefNull, opRefFunc)
	add(opTruncSat, opTableFill)
	for _, list := range vectorSigs {
		for _, s := range list {
			out = append(out, s.op)
		}
	}
	for _, a := range slices.Concat(loads, stores) {
		out = append(out, a.op)
	}
	return out
}

func TestGenerateTakesAnyBytes(t *testing.T) {
	data := Seed(6)
	for n := range len(data) {
		module := Generate(data[:n])
		if !bytes.Equal(module, Generate(bytes.Clone(data[:n]))) {
			t.Fatalf("the same %d bytes give different modules", n)
		}
		if out, err := Run(module, Options{MaxSteps: 1000}); err != nil || n == 0 && out.Trap != TrapNone {
			t.Fatalf("%d bytes: %+v, %v", n, out, err)
		}
	}
	for b := range 256 {
		if _, err := Run(Generate(bytes.Repeat([]byte{byte(b)}, 3000)), Options{MaxSteps: 1000}); err != nil {
			t.Errorf("bytes %#x: %v", b, err)
		}
	}
}

func TestGenerateKeepsToTheFeatures(t *testing.T) {
	for n := range uint64(500) {
		m, err := decode(Generate(Seed(n)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range m.funcs {
			for _, in := range f.code {
				if in.op == opReturnCall || in.op == opReturnCallIndirect {
					t.Fatalf("seed %d has a tail call", n)
				}
			}
		}
	}
}

func FuzzGenerate(f *testing.F) {
	f.Add([]byte(nil), false)
	for n := range uint64(20) {
		f.Add(Seed(n), n%2 == 0)
	}
	f.Fuzz(func(t *testing.T, data []byte, tailCalls bool) {
		module := Config{TailCalls: tailCalls}.Generate(data)
		out, err := Run(module, Options{MaxSteps: 20_000, MaxDepth: 100, MaxBulk: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		sum := uint64(0)
		for _, n := range out.Ops {
			sum += n
		}
		if sum != out.Steps {
			t.Errorf("the counts of instructions make %d, but there were %d steps", sum, out.Steps)
		}
	})
}
