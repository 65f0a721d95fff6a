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
	// firstOffset is where the memory begins for a plugin, to which 0 means nothing.
	firstOffset = 64
	// arenaBytes is the memory of most calls, used again by the next one.
	arenaBytes = 64 << 10
	// maxArenaBytes keeps offsets and lengths within 32 bits, whatever the limit of the call is.
	maxArenaBytes = 1 << 31
	// blockBytes is what the host notes of a block, which counts as memory too.
	blockBytes = uint64(unsafe.Sizeof(block{}))
)

// arena is the memory of one call that a plugin shares with its host: blocks that it
// allocates, and reads and writes through host functions. The host keeps its records of the
// blocks elsewhere, where no plugin can write.
//
// A plugin may read and write all that was allocated, beyond its blocks and after it has freed
// them: nothing of other calls is there. Freed blocks are used again only if there is no room
// behind the last block, since plugins have come to rely on this.
//
// An arena begins with memory that calls before it have used. If it needs more, it moves once,
// into address space that is reserved up to its limit. There it grows in place, and the system
// gets the memory back when the call has ended. The garbage collector, which would let many
// times as much pile up, has no part in this.
type arena struct {
	mem    []byte     // the allocated bytes, a multiple of eight; zeros behind them
	blocks []block    // by their place in mem
	free   [33]uint32 // the first block of each list of free ones, as its index plus 1

	first                  arenaStart
	memRegion, blockRegion *linear.Memory          // where mem and blocks have moved to; nil: they have not moved
	limit                  uint64                  // of the memory of the call, in bytes
	reserveHostBytes       func(more uint64) error // takes bytes of the quota for the guest, until it ends
	quotaTaken             uint64                  // bytes that were taken
}

// arenaStart is the memory that an arena begins with: empty, and zeros.
type arenaStart struct {
	mem    []byte
	blocks []block
}

// block is an allocated or a freed block.
type block struct {
	at, size uint32 // offset in mem and length, both multiples of eight
	used     uint32 // the length that was asked for; 0: it is free
	next     uint32 // the next free block in its list, as its index plus 1
}

var arenas = sync.Pool{New: func() any {
	return &arena{first: arenaStart{make([]byte, 0, arenaBytes), make([]block, 0, arenaBlocks)}}
}}

const arenaBlocks = 128

// newArena returns an empty arena with a limit in bytes. It has to be released.
func newArena(limit uint64, keep func(more uint64) error) (*arena, error) {
	a := arenas.Get().(*arena)
	a.mem, a.blocks, a.limit, a.reserveHostBytes = a.first.mem, a.first.blocks, min(limit, maxArenaBytes), keep
	if err := a.takeQuota(arenaBytes + arenaBlocks*blockBytes); err != nil {
		a.release()
		return nil, err
	}
	return a, nil
}

// release ends an arena. None of its memory may be used any more.
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

// alloc allocates a block of n bytes, which are zero if they were not used before.
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

// grow makes room for size bytes more.
func (a *arena) grow(size uint64) error {
	had, need := uint64(cap(a.mem)), uint64(len(a.mem))+size
	want := max(need, min(2*had, a.limit))
	if a.growRegion(&a.memRegion, had, want) != nil {
		want = need // perhaps that is there
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

// growBlocks doubles the room for blocks.
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

// growRegion takes the quota for a growth from had to want bytes. If the data has not moved yet, it
// also reserves address space, and takes all of want, since the first memory stays taken, too.
func (a *arena) growRegion(at **linear.Memory, had, want uint64) error {
	if *at == nil {
		had = 0
	}
	if want > a.limit {
		return &dialect.MemoryError{Limit: a.limit, Key: policy.MemoryKey}
	}
	if err := a.takeQuota(want - had); err != nil || *at != nil {
		return err
	}
	var err error
	*at, err = linear.Reserve(a.limit)
	return err
}

// Free blocks stand in lists by their size: in list c those of 2^c bytes and more, but
// fewer than twice that.

// reusable takes a free block of at least so many bytes out of its list, or returns -1.
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

// freeBlock frees the block at an offset. At another offset there is nothing to free.
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

// length is that of the block at an offset; 0: no block begins there.
func (a *arena) length(offset uint64) uint64 {
	if i := a.find(offset); i >= 0 {
		return uint64(a.blocks[i].used)
	}
	return 0
}

// find returns the index of the block at an offset, or -1.
func (a *arena) find(offset uint64) int {
	i, ok := slices.BinarySearchFunc(a.blocks, offset-firstOffset, func(b block, at uint64) int { return cmp.Compare(uint64(b.at), at) })
	if !ok || a.blocks[i].used == 0 {
		return -1
	}
	return i
}

// view returns n bytes at an offset, which stay the plugin's.
func (a *arena) view(offset, n uint64) ([]byte, bool) {
	at, size := offset-firstOffset, uint64(len(a.mem))
	if n > size || at > size-n {
		return nil, false
	}
	return a.mem[at : at+n : at+n], true
}
