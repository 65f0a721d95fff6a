// Package wasm reads the binary form of WebAssembly modules without an engine: it tells the kind
// of a file before anything is compiled, and it changes custom sections.
//
// A module is a list of sections ([Section]), each with an id and a payload. [Decode] walks them
// once and returns facts ([Module]): types, imports, exports, limits of memories and tables, the
// numbers of globals, segments and function bodies, and the size of the largest body. It neither
// returns nor checks the instructions of function bodies, which engines validate.
//
// Every input is hostile. Decode never panics, reads each byte at most a few times, and allocates
// in proportion to the input (see the Max constants, and the note at [Decode]). The results
// alias the input: do not change the bytes while a Module is in use.
//
// [Classify] derives from the imports and exports the host that a module was built for
// ([Shape]): this host, a host of other plugins, a WASI command, or none that is known. It
// recognises them all, so that a person learns the kind of a file; package sandbox decides which
// run.
//
//	m, err := wasm.Decode(data)
//	if err != nil {
//		return err // errors.Is(err, wasm.ErrComponent), errors.AsType[*wasm.FormatError](err), ...
//	}
//	if shape := wasm.Classify(m); shape.Kind != wasm.Native {
//		return fmt.Errorf("%s is %s", path, shape)
//	}
//	manifest, ok := wasm.CustomSection(m, wasm.ManifestSection)
//
// A component has another format, with core modules inside, see [DecodeComponent].
//
// The binary format is chapter 5 of the WebAssembly core specification
// (https://webassembly.github.io/spec/core/binary/). The package reads release 2.0 with shared
// and 64-bit memories, exceptions, tail calls and extended constant expressions; if a module uses
// one of these, [Module.CheckExtensions] names it. Types and instructions of most other proposals
// are refused by name.
//
// Modules for tests are assembled with package wasmtest.
package wasm
