package abi

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/tetratelabs/wazero/api"

	"github.com/stockade-dev/stockade/host/redact"
)

// Fault is the error of a guest that broke the ABI. What describes the violation.
type Fault struct{ What string }

func (f *Fault) Error() string { return "the module broke the ABI: " + f.What }

func faultf(format string, args ...any) *Fault { return &Fault{fmt.Sprintf(format, args...)} }

// Memory is a guest's linear memory. Slices of it must not be kept across a call into the
// guest, because the guest may grow and move its memory.
type Memory struct {
	mem    api.Memory
	copied *uint64 // number of bytes copied so far
}

// MemoryOf returns the memory of a module, or a Fault if it exports none.
func MemoryOf(mod api.Module) (Memory, error) {
	mem := mod.ExportedMemory(ExportMemory)
	if mem == nil {
		return Memory{}, faultf("no memory is exported as %q", ExportMemory)
	}
	return Memory{mem, new(uint64)}, nil
}

// BytesCopied returns the number of bytes copied between the guest and the host so far.
func (m Memory) BytesCopied() uint64 { return *m.copied }

// view returns n bytes at ptr without a copy, or a Fault that calls the bytes what.
func (m Memory) view(what string, ptr, n uint32) ([]byte, error) {
	b, ok := m.mem.Read(ptr, n)
	if !ok {
		return nil, faultf("%s: %d bytes at %#x lie outside the %d bytes of memory", what, n, ptr, m.mem.Size())
	}
	return b, nil
}

// aligned does the same as view. A ptr that is not a multiple of align is a Fault.
func (m Memory) aligned(what string, ptr, n, align uint32) ([]byte, error) {
	if ptr%align != 0 {
		return nil, faultf("%s: the pointer %#x is not a multiple of %d", what, ptr, align)
	}
	return m.view(what, ptr, n)
}

// View returns n bytes at ptr without a copy, or a Fault that calls the bytes what. The caller
// must read each byte only once, and before the guest runs again: the guest may change the
// bytes.
func (m Memory) View(what string, ptr, n uint32) ([]byte, error) { return m.view(what, ptr, n) }

// viewLimited does the same as view, and adds n to BytesCopied. More than limit bytes are a
// Fault. The limit may be negative: replacing bad UTF-8 can overdraw a budget.
func (m Memory) viewLimited(what string, ptr, n uint32, limit int) ([]byte, error) {
	if limit = max(limit, 0); uint64(n) > uint64(limit) {
		return nil, faultf("%s: %d bytes, more than the limit of %d", what, n, limit)
	}
	*m.copied += uint64(n)
	return m.view(what, ptr, n)
}

// Bytes copies n bytes at ptr out of the guest. It returns a Fault if n is larger than limit.
func (m Memory) Bytes(what string, ptr, n uint32, limit int) ([]byte, error) {
	b, err := m.viewLimited(what, ptr, n, limit)
	return bytes.Clone(b), err
}

// String copies a string of n bytes out of the guest; more than limit bytes are a Fault. It
// replaces bytes that are not UTF-8, so that later code need not check them. That can make the
// string longer than n bytes.
func (m Memory) String(what string, ptr, n uint32, limit int) (string, error) {
	b, err := m.viewLimited(what, ptr, n, limit)
	return strings.ToValidUTF8(string(b), "\uFFFD"), err
}

// Head copies a string that may be cut: at most limit bytes of it, without secrets, and " ..."
// behind them if more were cut. No part of a secret is left at the cut.
func (m Memory) Head(what string, ptr, n uint32, limit int, known *redact.Redactor) (string, error) {
	b, err := m.view(what, ptr, n)
	*m.copied += uint64(min(len(b), limit))
	return Head(b, limit, known), err
}

// Head does the same as [Memory.Head] with bytes that were already copied out of the guest.
func Head(b []byte, limit int, known *redact.Redactor) string {
	head, whole := known.Head(b, limit)
	text := strings.ToValidUTF8(string(head), "\uFFFD")
	if !whole {
		text += " ..."
	}
	return text
}

func pair(b []byte) (ptr, n uint32) {
	return binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
}

// stringAt copies the string whose pointer and length are in b.
func (m Memory) stringAt(what string, b []byte, limit int) (string, error) {
	ptr, n := pair(b)
	return m.String(what, ptr, n, limit)
}

// Strings copies a list of n strings out of the guest. It is a Fault if they have more than
// limit bytes together, or if n is larger than an eighth of limit.
func (m Memory) Strings(what string, ptr, n uint32, limit int) ([]string, error) {
	if uint64(n)*8 > uint64(limit) {
		return nil, faultf("%s: %d elements, more than the limit", what, n)
	}
	list, err := m.aligned(what, ptr, n*8, 4)
	if err != nil {
		return nil, err
	}
	out := make([]string, n)
	for i := range out {
		if out[i], err = m.stringAt(what, list[i*8:], limit); err != nil {
			return nil, err
		}
		limit -= len(out[i])
	}
	return out, nil
}

// Put copies data into the guest, to ptr, which must be a multiple of align; else it is a
// Fault.
func (m Memory) Put(what string, ptr uint32, data []byte, align uint32) error {
	b, err := m.aligned(what, ptr, uint32(len(data)), align)
	if err != nil {
		return err
	}
	*m.copied += uint64(len(data))
	copy(b, data)
	return nil
}

// Allocator allocates memory with the guest's own function. The host must never grow a
// guest's memory itself: the guest treats pages that it did not ask for as its own.
type Allocator struct{ realloc api.Function }

// AllocatorOf returns the first of the named exports that exists, or a Fault if there is none.
func AllocatorOf(mod api.Module, names []string) (Allocator, error) {
	for _, name := range names {
		if f := mod.ExportedFunction(name); f != nil {
			return Allocator{f}, nil
		}
	}
	return Allocator{}, faultf("none of %s is exported", strings.Join(names, ", "))
}

// Lower copies data into memory that the guest allocates. It returns the address; 0: no data.
func (a Allocator) Lower(ctx context.Context, mod api.Module, data []byte, align uint32) (ptr uint32, err error) {
	if len(data) > 1<<31-1 {
		return 0, errors.New("more than 2 GiB")
	}
	if len(data) == 0 {
		return 0, nil
	}
	out, err := a.realloc.Call(ctx, 0, 0, uint64(align), uint64(len(data)))
	if err != nil {
		return 0, err
	}
	if len(out) != 1 {
		return 0, faultf("realloc returns %d values", len(out))
	}
	ptr = api.DecodeU32(out[0])
	if ptr == 0 || ptr%align != 0 {
		return 0, faultf("realloc gave the pointer %#x for %d bytes aligned to %d", ptr, len(data), align)
	}
	mem, err := MemoryOf(mod)
	if err != nil {
		return 0, err
	}
	return ptr, mem.Put("realloc", ptr, data, align)
}
