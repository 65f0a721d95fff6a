package abi

// The two names tell the host's two needs apart, and keep the component
// adapter, which looks for the plain name, from calling into the Go runtime
// before it has started.

//go:wasmexport cabi_export_realloc
func exportRealloc(old, oldSize, align, size uint32) uint32 {
	return Realloc(old, oldSize, align, size)
}

//go:wasmexport cabi_import_realloc
func importRealloc(old, oldSize, align, size uint32) uint32 {
	return Realloc(old, oldSize, align, size)
}
