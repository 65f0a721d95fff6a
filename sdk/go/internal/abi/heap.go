// Package abi implements the memory side of the canonical ABI for a guest written in Go:
// the blocks of linear memory that the host and the guest exchange, and the layout of the
// values in them.
//
// A block is a run of bytes with an address. The host allocates blocks with [Realloc] to pass
// strings and lists in; the guest allocates them with a [Frame] to pass values out. A
// package-level map holds every block until its owner takes or frees it, for two reasons:
//
//   - An address that crosses the border is a plain number. A slice that is
//     reachable through nothing else may be collected, and since Go 1.25 a small
//     slice may even lie on a stack that goes away when the function returns.
//   - Nothing but the Go runtime may grow the memory, so that all blocks, the
//     host's too, must come from the Go heap.
//
// The package compiles natively for tests; addresses are made up there.
//
// The layouts follow the [canonical ABI] for the interfaces in wit/.
//
// [canonical ABI]: https://github.com/WebAssembly/component-model/blob/main/design/mvp/CanonicalABI.md
package abi

import (
	"fmt"
	"sync"
	"unsafe"
)

// maxAlign is the largest alignment of the canonical ABI, that of a u64, in bytes.
const maxAlign = 8

var heap = struct {
	// The lock matters although WebAssembly has one thread: a goroutine may
	// be parked by the garbage collector in the middle of a map operation.
	sync.Mutex
	blocks map[uint32][]byte // blocks of at least one byte, by address
	frames map[uint32]*Frame // frames that [Post] frees, by the address of the returned value
}{blocks: map[uint32][]byte{}, frames: map[uint32]*Frame{}}

// alloc allocates a block of size zero bytes, aligned to maxAlign. size must not be 0.
func alloc(size uint32) (ptr uint32, b []byte) {
	// Words rather than bytes: the Go allocator packs small byte slices without alignment.
	words := make([]uint64, (uint64(size)+maxAlign-1)/maxAlign)
	b = unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), size)
	heap.Lock()
	defer heap.Unlock()
	ptr = address(b)
	heap.blocks[ptr] = b
	return ptr, b
}

// free frees the block at ptr, if there is one.
func free(ptr uint32) {
	heap.Lock()
	defer heap.Unlock()
	delete(heap.blocks, ptr)
}

// blockAt returns the first size bytes of the block at ptr, shared with the host. It panics if
// no such block exists: then the host broke the ABI.
func blockAt(ptr, size uint32) []byte {
	if size == 0 {
		return nil
	}
	heap.Lock()
	defer heap.Unlock()
	b := heap.blocks[ptr]
	if uint64(size) > uint64(len(b)) {
		panic(fmt.Sprintf("abi: the host passed %d bytes at %#x, where realloc gave %d", size, ptr, len(b)))
	}
	return b[:size:size]
}

// Realloc is cabi_realloc: it allocates a block of size bytes and moves the first oldSize
// bytes of the block at old to it, if oldSize is not 0. A block of 0 bytes has a non-zero
// address that must not be read. It panics, which traps, if the alignment is not one of the
// canonical ABI.
func Realloc(old, oldSize, align, size uint32) uint32 {
	if align == 0 || align > maxAlign || align&(align-1) != 0 {
		panic(fmt.Sprintf("abi: alignment %d", align))
	}
	kept := Take(old, oldSize)
	if size == 0 {
		return align
	}
	ptr, b := alloc(size)
	copy(b, kept)
	return ptr
}

// Take returns the first size bytes of the block at ptr, which now belong to the caller: the
// block is freed. Nothing is copied.
func Take(ptr, size uint32) []byte {
	b := blockAt(ptr, size)
	if b != nil {
		free(ptr)
	}
	return b
}

// Live returns the number of blocks. Tests use it to find leaks.
func Live() int {
	heap.Lock()
	defer heap.Unlock()
	return len(heap.blocks)
}
