package extism

import (
	"cmp"
	"math/bits"
	"slices"
	"sync"
	"unsafe"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/sandbox/dialect"
	"github.com/stockade-dev/stockade/host/sandbox/linear"
)

const (
	firstOffset = 64       // offset of the first byte for a plugin; 0 stands for no block
	arenaBytes  = 64 << 10 // memory that suffices for most calls; later calls reuse it
	// maxArenaBytes limits an arena if the limit of the call is higher: offsets have 32 bits.
	maxArenaBytes = 1 << 31
	blockBytes    = uint64(unsafe.Sizeof(block{})) // size of the record of a block, which counts as memory too
)

// arena is the memory of one call that a plugin shares with its host. The plugin allocates
// blocks in it, and reads and writes them through host functions. The records of the blocks
// lie elsewhere, where no plugin can write.
//
// A plugin may access all bytes that were allocated, also outside of its blocks and after
// freeing them: there is nothing of other calls. Freed blocks are reused only if there is no
// room behind the last block, because plugins rely on that.
//
// An arena begins with memory that earlier calls have used. If it needs more, it moves once,
// into address space that is reserved up to its limit. There it grows in place, and the
// system gets the memory back at the end of the call. The garbage collector, which would let
// several times as much pile up, has no part in it.
type arena struct {
	mem    []byte     // the allocated bytes, a multiple of eight; zeros behind them
	blocks []block    // sorted by their place in mem
	free   [33]uint32 // first block of each list of free blocks, as its index plus 1

	first                  arenaStart
	memRegion, blockRegion *linear.Memory          // regions to which mem and blocks have moved; nil: they have not
	limit                  uint64                  // bytes that the arena may have; more is a dialect.MemoryError
	reserveHostBytes       func(more uint64) error // ReserveHostBytes of the dialect.Guest
	quotaTaken             uint64                  // bytes counted with reserveHostBytes so far
}

// arenaStart is the memory with which an arena begins. Both slices have the length 0. The
// bytes of mem up to its capacity are zeros.
type arenaStart struct {
	mem    []byte
	blocks []block
}

type block struct {
	at, size uint32 // offset in mem and length; both are multiples of eight
	used     uint32 // requested length in bytes; 0: the block is free
	next     uint32 // next free block in its list, as its index plus 1
}

var arenas = sync.Pool{New: func() any {
	return &arena{first: arenaStart{make([]byte, 0, arenaBytes), make([]block, 0, arenaBlocks)}}
}}

const arenaBlocks = 128 // records of blocks with which an arena begins

// newArena returns an empty arena. limit is the limit of the call in bytes, and keep counts
// bytes like reserveHostBytes. The caller has to release the arena.
func newArena(limit uint64, keep func(more uint64) error) (*arena, error) {
	a := arenas.Get().(*arena)
	a.mem, a.blocks, a.limit, a.reserveHostBytes = a.first.mem, a.first.blocks, min(limit, maxArenaBytes), keep
	if err := a.takeQuota(arenaBytes + arenaBlocks*blockBytes); err != nil {
		a.release()
		return nil, err
	}
	return a, nil
}

// release ends an arena. Its memory must not be used afterwards.
func (a *arena) release() {
	if a.memRegion == nil {
		clear(a.mem)
	}
	for _, m := range []*linear.Memory{a.memRegion, a.blockRegion} {
		if m != nil {
			m.Close()
		}
	}
	*a = arena{first: a.first}
	arenas.Put(a)
}

// reset frees all blocks.
func (a *arena) reset() {
	clear(a.mem)
	a.mem, a.blocks, a.free = a.mem[:0], a.blocks[:0], [33]uint32{}
}

func (a *arena) takeQuota(more uint64) error {
	if err := a.reserveHostBytes(more); err != nil {
		return err
	}
	a.quotaTaken += more
	return nil
}

// alloc allocates a block of n bytes, which are zeros unless a freed block is reused. The
// offset of 0 bytes is 0. The error is a dialect.MemoryError.
func (a *arena) alloc(n uint64) (offset uint64, err error) {
	if n == 0 {
		return 0, nil
	}
	if n > maxArenaBytes {
		return 0, &dialect.MemoryError{Limit: a.limit, Key: policy.MemoryKey}
	}
	size := (n + 7) &^ 7
	if uint64(len(a.mem))+size > uint64(cap(a.mem)) {
		if i := a.reusable(size); i >= 0 {
			b := &a.blocks[i]
			b.used = uint32(n)
			return uint64(b.at) + firstOffset, nil
		}
		if err := a.grow(size); err != nil {
			return 0, err
		}
	}
	if len(a.blocks) == cap(a.blocks) {
		if err := a.growBlocks(); err != nil {
			return 0, err
		}
	}
	at := len(a.mem)
	a.mem = a.mem[:uint64(at)+size]
	a.blocks = append(a.blocks, block{at: uint32(at), size: uint32(size), used: uint32(n)})
	return uint64(at) + firstOffset, nil
}

// grow makes room for size more bytes.
func (a *arena) grow(size uint64) error {
	had, need := uint64(cap(a.mem)), uint64(len(a.mem))+size
	want := max(need, min(2*had, a.limit))
	if a.growRegion(&a.memRegion, had, want) != nil {
		want = need // less may be available
		if err := a.growRegion(&a.memRegion, had, want); err != nil {
			return err
		}
	}
	mem := a.memRegion.Bytes()[:len(a.mem):want]
	if unsafe.SliceData(mem) != unsafe.SliceData(a.mem) {
		copy(mem, a.mem)
		clear(a.mem)
	}
	a.mem = mem
	return nil
}

func (a *arena) growBlocks() error {
	had := uint64(cap(a.blocks))
	if err := a.growRegion(&a.blockRegion, had*blockBytes, 2*had*blockBytes); err != nil {
		return err
	}
	blocks := unsafe.Slice((*block)(unsafe.Pointer(unsafe.SliceData(a.blockRegion.Bytes()))), 2*had)
	if unsafe.SliceData(blocks) != unsafe.SliceData(a.blocks) {
		copy(blocks, a.blocks)
	}
	a.blocks = blocks[:len(a.blocks)]
	return nil
}

// growRegion takes the quota for growing a region from had to want bytes. The first time, when
// *at is nil, it also reserves address space and stores it in *at, to which the caller moves
// the data. Then it takes the quota for all of want, because the memory with which the arena
// began stays counted. If want exceeds the limit, the error is a [dialect.MemoryError].
func (a *arena) growRegion(at **linear.Memory, had, want uint64) error {
	if want > a.limit {
		return &dialect.MemoryError{Limit: a.limit, Key: policy.MemoryKey}
	}
	if *at != nil {
		return a.takeQuota(want - had)
	}
	region, err := linear.Reserve(a.limit)
	if err != nil {
		return err
	}
	if err := a.takeQuota(want); err != nil {
		region.Close()
		return err
	}
	*at = region
	return nil
}

// Free blocks are in lists by size: list c has blocks of 2^c bytes and more, but less than
// 2^(c+1).

// reusable removes a free block of size bytes or more from its list. It returns the index; -1:
// none.
func (a *arena) reusable(size uint64) int {
	exact := bits.Len64(size) - 1
	for _, class := range []int{exact, bits.Len64(size - 1)} {
		head := a.free[class]
		if head == 0 || uint64(a.blocks[head-1].size) < size {
			continue
		}
		a.free[class] = a.blocks[head-1].next
		return int(head - 1)
	}
	return -1
}

// freeBlock frees the block that begins at an offset, if there is one.
func (a *arena) freeBlock(offset uint64) {
	i := a.find(offset)
	if i < 0 {
		return
	}
	b := &a.blocks[i]
	class := bits.Len32(b.size) - 1
	b.used, b.next = 0, a.free[class]
	a.free[class] = uint32(i) + 1
}

// length returns the length of the block at an offset; 0: no block begins there.
func (a *arena) length(offset uint64) uint64 {
	if i := a.find(offset); i >= 0 {
		return uint64(a.blocks[i].used)
	}
	return 0
}

// find returns the index of the block that begins at an offset; -1: none.
func (a *arena) find(offset uint64) int {
	i, ok := slices.BinarySearchFunc(a.blocks, offset-firstOffset, func(b block, at uint64) int { return cmp.Compare(uint64(b.at), at) })
	if !ok || a.blocks[i].used == 0 {
		return -1
	}
	return i
}

// view returns n bytes at an offset without a copy; false: they are outside of the memory.
func (a *arena) view(offset, n uint64) ([]byte, bool) {
	at, size := offset-firstOffset, uint64(len(a.mem))
	if n > size || at > size-n {
		return nil, false
	}
	return a.mem[at : at+n : at+n], true
}
