package config

//go:wasmimport stockade:tool/config@0.1.0 get
func hostGet(namePtr, nameLen, ret uint32)
