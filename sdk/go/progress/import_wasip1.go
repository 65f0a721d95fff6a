package progress

//go:wasmimport stockade:tool/progress@0.1.0 report
func hostReport(done uint64, hasTotal uint32, total uint64, notePtr, noteLen uint32)

//go:wasmimport stockade:tool/progress@0.1.0 cancelled
func hostCancelled() uint32
