// Package wasmtest assembles WebAssembly modules in Go source, so that tests, and the attacks of
// package selftest, need no compiler and the repository no binaries.
//
// [Builder] is a small assembler: add imports, functions, data; take [Builder.Bytes].
// Instructions are functions that return their bytes, named as in the text
// format. A function body is a list of them, and the final end is added:
//
//	b := wasmtest.New()
//	b.Memory(1, 2)
//	b.ExportMemory("memory")
//	b.Func("double", []wasmtest.ValType{wasmtest.I32}, []wasmtest.ValType{wasmtest.I32}, nil,
//		wasmtest.LocalGet(0), wasmtest.LocalGet(0), wasmtest.I32Add())
//	module := b.Bytes()
//
// [Tool] assembles a module with the native ABI of /wit whose call function
// has any body, and [Hostile] is a list of such modules that attack their host:
//
//	wasmtest.Tool(wasmtest.ToolOptions{Call: wasmtest.Spin()})
//	wasmtest.Tool(wasmtest.ToolOptions{Call: wasmtest.ReturnOK(`{"n":1}`)})
//
// [Bombs] is a list of modules that are made to overwhelm a host that reads or compiles
// them, from known shapes ("nested loops x locals") in several sizes.
//
// Nothing is validated: a test of a decoder or of an engine needs modules
// that are wrong. Mistakes in the use of the builder itself panic.
package wasmtest
