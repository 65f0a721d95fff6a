package abi

import "unsafe"

// address returns the address of b. The garbage collector does not move heap objects.
func address(b []byte) uint32 { return uint32(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }
