package exec

//go:wasmimport stockade:tool/exec@0.1.0 run
func hostRun(argvPtr, argvLen, hasDir, dirPtr, dirLen, timeoutMillis, maxOutput, mergeStderr, ret uint32)
