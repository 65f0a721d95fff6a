//go:build !wasip1

package abi

var nextAddress uint32 = 0x10000

// address invents an address, because a 64-bit address does not fit. The caller holds the
// lock of heap.
func address(b []byte) uint32 {
	ptr := nextAddress
	nextAddress += (uint32(len(b)) + 2*maxAlign - 1) &^ (maxAlign - 1)
	return ptr
}
