package abi

import (
	"strings"
	"unicode/utf8"
	"unsafe"
)

// Frame owns the blocks that the guest allocates for one call to or from the host: the
// arguments of an import, or the value that an export returns. The zero Frame is ready
// for use, by one goroutine.
type Frame struct{ blocks []uint32 }

// Area allocates a block of size zero bytes, aligned for every type.
func (f *Frame) Area(size uint32) (ptr uint32, r Record) {
	ptr, b := alloc(size)
	f.blocks = append(f.blocks, ptr)
	return ptr, b
}

// Bytes lowers a list<u8>; it copies b.
func (f *Frame) Bytes(b []byte) (ptr, size uint32) {
	if len(b) == 0 {
		return maxAlign, 0
	}
	ptr, r := f.Area(uint32(len(b)))
	copy(r, b)
	return ptr, uint32(len(b))
}

// Text lowers a string. Bytes that are not UTF-8 become U+FFFD, because the host traps on
// them.
func (f *Frame) Text(s string) (ptr, size uint32) {
	if !utf8.ValidString(s) { // faster than ToValidUTF8 alone
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	return f.Bytes(unsafe.Slice(unsafe.StringData(s), len(s)))
}

// Texts lowers consecutive strings: a list<string>, or a list of records of strings.
func (f *Frame) Texts(texts []string) (ptr uint32) {
	if len(texts) == 0 {
		return maxAlign
	}
	ptr, r := f.Area(uint32(len(texts)) * 8)
	for i, s := range texts {
		r.SetPair(uint32(i) * 8)(f.Text(s))
	}
	return ptr
}

// Free frees all blocks of the frame that were not taken.
func (f *Frame) Free() {
	for _, ptr := range f.blocks {
		free(ptr)
	}
	f.blocks = nil
}

// Return stores the frame until the host has read the value at ptr and calls the function
// cabi_post, which is [Post].
func (f *Frame) Return(ptr uint32) uint32 {
	heap.Lock()
	defer heap.Unlock()
	heap.frames[ptr] = f
	return ptr
}

// Post frees the frame of a returned value.
func Post(ptr uint32) {
	heap.Lock()
	f := heap.frames[ptr]
	delete(heap.frames, ptr)
	heap.Unlock()
	if f != nil {
		f.Free()
	}
}
