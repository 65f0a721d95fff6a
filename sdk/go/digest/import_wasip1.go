package digest

import "unsafe"

//go:wasmimport stockade:tool/digest@0.1.0 sha256
func hostSHA256(data unsafe.Pointer, size, ret uint32)

//go:wasmimport stockade:tool/digest@0.1.0 sha1
func hostSHA1(data unsafe.Pointer, size, ret uint32)
