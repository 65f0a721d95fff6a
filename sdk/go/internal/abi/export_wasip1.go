package abi

// The host uses different names for arguments of exports and results of imports. The plain
// name cabi_realloc is missing on purpose: the component adapter would call it before the
// Go runtime has started.

//go:wasmexport cabi_export_realloc
func exportRealloc(old, oldSize, align, size uint32) uint32 {
	return Realloc(old, oldSize, align, size)
}

//go:wasmexport cabi_import_realloc
func importRealloc(old, oldSize, align, size uint32) uint32 {
	return Realloc(old, oldSize, align, size)
}
