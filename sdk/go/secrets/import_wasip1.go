package secrets

//go:wasmimport stockade:tool/secrets@0.1.0 placeholder
func hostPlaceholder(namePtr, nameLen, ret uint32)
