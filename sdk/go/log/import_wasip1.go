package log

//go:wasmimport stockade:tool/log@0.1.0 log
func hostLog(level, messagePtr, messageLen uint32)
