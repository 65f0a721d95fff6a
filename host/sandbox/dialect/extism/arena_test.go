package extism

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/stockade-dev/stockade/host/sandbox/dialect"
)

// model is a memory without addresses: the content of each block.
type model map[uint64][]byte

// play runs operations that are encoded in bytes on an arena and on a model. An operation is
// a letter, the number of a block, and a size.
func play(t *testing.T, a *arena, ops []byte) {
	t.Helper()
	blocks := model{}
	var order []uint64
	pick := func(b byte) uint64 {
		if len(order) == 0 {
			return uint64(b)
		}
		return order[int(b)%len(order)]
	}
	fill := byte(0)
	for ; len(ops) >= 3; ops = ops[3:] {
		op, which, size := ops[0]%6, ops[1], uint64(ops[2])
		switch op {
		case 0, 1, 2: // alloc: of some bytes, of some hundred, of some thousand
			n := size << (4 * op)
			offset, err := a.alloc(n)
			if err != nil {
				if _, ok := errors.AsType[*dialect.MemoryError](err); !ok {
					t.Fatal(err)
				}
				continue
			}
			if n == 0 {
				if offset != 0 {
					t.Fatalf("no bytes lie at %#x", offset)
				}
				continue
			}
			if _, ok := blocks[offset]; ok {
				t.Fatalf("the block at %#x was given out twice", offset)
			}
			b, ok := a.view(offset, n)
			if !ok || offset%8 != 0 || offset < firstOffset {
				t.Fatalf("a block of %d bytes at %#x", n, offset)
			}
			fill++
			for i := range b {
				b[i] = fill
			}
			blocks[offset], order = bytes.Repeat([]byte{fill}, int(n)), append(order, offset)
		case 3: // free, also what is free already
			a.freeBlock(pick(which))
			delete(blocks, pick(which))
		case 4: // free what is no block
			a.freeBlock(pick(which) + 1 + size%7)
		case 5:
			if size == 0 {
				a.reset()
				blocks, order = model{}, nil
			}
		}
		if len(ops)%48 > 5 && len(ops) > 5 {
			continue // looking at all is the most of the work
		}
		for offset, want := range blocks {
			if n := a.length(offset); n != uint64(len(want)) {
				t.Fatalf("the block at %#x has %d bytes, want %d", offset, n, len(want))
			}
			if got, ok := a.view(offset, uint64(len(want))); !ok || !bytes.Equal(got, want) {
				t.Fatalf("the block at %#x was written to by another", offset)
			}
			if a.length(offset+8) != 0 && blocks[offset+8] == nil {
				t.Fatalf("a block begins inside of the one at %#x", offset)
			}
		}
		used := uint64(cap(a.mem)) + uint64(cap(a.blocks))*blockBytes
		if a.memRegion != nil { // what it began with is still there
			used += arenaBytes
		}
		if a.blockRegion != nil {
			used += arenaBlocks * blockBytes
		}
		if a.quotaTaken != used {
			t.Fatalf("%d bytes are used and %d held", used, a.quotaTaken)
		}
	}
}

// upTo keeps bytes up to a limit.
func upTo(limit uint64) func(uint64) error {
	return func(more uint64) error {
		if more > limit {
			return &dialect.MemoryError{Limit: limit}
		}
		limit -= more
		return nil
	}
}

func FuzzArena(f *testing.F) {
	f.Add([]byte{0, 0, 8, 0, 0, 9, 3, 0, 0, 0, 0, 8, 3, 1, 0, 3, 1, 0})
	f.Add(bytes.Repeat([]byte{2, 0, 255, 3, 0, 0}, 8))
	f.Add(append(bytes.Repeat([]byte{0, 0, 1}, 200), bytes.Repeat([]byte{3, 7, 0, 1, 0, 3}, 100)...))
	f.Add([]byte{2, 0, 255, 4, 0, 1, 5, 0, 0, 1, 0, 3, 3, 200, 0})
	f.Fuzz(func(t *testing.T, ops []byte) {
		if len(ops) > 3000 {
			return
		}
		a, err := newArena(256<<10, upTo(256<<10))
		if err != nil {
			t.Fatal(err)
		}
		play(t, a, ops)
		a.release()
		next, err := newArena(256<<10, upTo(256<<10))
		if err != nil {
			t.Fatal(err)
		}
		defer next.release()
		offset, err := next.alloc(arenaBytes)
		if err != nil {
			t.Fatal(err)
		}
		if b, _ := next.view(offset, arenaBytes); len(bytes.Trim(b, "\x00")) > 0 {
			t.Fatal("the next call finds what this one has left")
		}
	})
}

func TestOffsets(t *testing.T) {
	a, err := newArena(1<<20, upTo(1<<20))
	if err != nil {
		t.Fatal(err)
	}
	defer a.release()
	one, _ := a.alloc(10)
	two, _ := a.alloc(1)
	for name, c := range map[string]struct {
		offset, n uint64
		ok        bool
		length    uint64
	}{
		"a block":                         {one, 10, true, 10},
		"its rounding":                    {one, 16, true, 10},
		"two blocks":                      {one, 24, true, 10},
		"inside of a block":               {one + 1, 1, true, 0},
		"the last byte":                   {two + 7, 1, true, 0},
		"one byte too many":               {one, 25, false, 10},
		"behind the last byte":            {two + 8, 1, false, 0},
		"nothing behind the last byte":    {two + 8, 0, true, 0},
		"0":                               {0, 1, false, 0},
		"just before the memory":          {firstOffset - 1, 1, false, 0},
		"the last offset of all":          {math.MaxUint64, 1, false, 0},
		"a length that goes round":        {one + 8, math.MaxUint64 - 7, false, 0},
		"an end that goes round":          {math.MaxUint64 - 7, 8, false, 0},
		"an offset of 32 bits that fits":  {one | 1<<32, 1, false, 0},
		"an offset that goes round to it": {one + 1<<63, 1, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b, ok := a.view(c.offset, c.n)
			if ok != c.ok || ok && uint64(len(b)) != c.n || a.length(c.offset) != c.length {
				t.Errorf("%d bytes at %#x: %v, %d; a block of %d", c.n, c.offset, ok, len(b), a.length(c.offset))
			}
			if ok && cap(b) != len(b) {
				t.Error("more can be reached than was asked for")
			}
		})
	}
}

func TestAnArenaIsBounded(t *testing.T) {
	const limit = 1 << 20
	for name, c := range map[string]struct {
		size func(i int) uint64
		free bool
		held uint64 // at most; 0: the limit is reached
	}{
		"one block of all offsets":    {func(int) uint64 { return math.MaxUint64 }, false, 0},
		"one block of 2^63 bytes":     {func(int) uint64 { return 1 << 63 }, false, 0},
		"one block that rounds to 0":  {func(int) uint64 { return math.MaxUint64 - 3 }, false, 0},
		"one block over the limit":    {func(int) uint64 { return limit + 1 }, false, 0},
		"blocks of a byte":            {func(int) uint64 { return 1 }, false, 0},
		"blocks that grow":            {func(i int) uint64 { return uint64(i) }, false, 0},
		"blocks of 5000 bytes":        {func(int) uint64 { return 5000 }, false, 0},
		"blocks that are freed again": {func(i int) uint64 { return uint64(1000 + i%3) }, true, 150 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := newArena(limit, upTo(limit))
			if err != nil {
				t.Fatal(err)
			}
			for i := 1; i <= 100_000; i++ {
				var offset uint64
				if offset, err = a.alloc(c.size(i)); err != nil {
					break
				}
				if c.free {
					a.freeBlock(offset)
				}
			}
			_, over := errors.AsType[*dialect.MemoryError](err)
			if over != (c.held == 0) || a.quotaTaken > limit || c.held > 0 && a.quotaTaken > c.held {
				t.Errorf("%v, with %d bytes", err, a.quotaTaken)
			}
			a.release()
		})
	}
}
