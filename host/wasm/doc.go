// Package wasm reads the binary form of WebAssembly modules without an
// engine: it says what a file is before anything is compiled, and it changes
// custom sections.
//
// A module is a list of sections ([Section]), each with an id and a payload.
// [Decode] walks them once and keeps facts ([Module]): types, imports, exports,
// limits of memories and tables, how many globals, segments and function
// bodies there are and how large the largest is. It does not keep or check the
// instructions of function bodies; an engine validates those when it compiles.
//
// Every input is hostile. Decode never panics, reads each byte at most a few
// times, and allocates in proportion to the input (see the Max constants, and
// the note at [Decode]). What it returns aliases the input: do not change the
// bytes while a Module is in use.
//
// [Classify] tells from the imports and exports who the module was built for
// ([Shape]): this host, another kind of plugin, a WASI command, or nobody
// known. All are recognised, so that a person learns what a file is; which of
// them run is not said here.
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
// A component has another format, with core modules inside. [DecodeComponent] reads
// as much of it as says what it is: names, and where the modules are.
//
// The binary format is chapter 5 of the WebAssembly core specification
// (https://webassembly.github.io/spec/core/binary/). What is understood is
// release 2.0 with shared and 64-bit memories, exceptions, tail calls and extended
// constant expressions; [Module.CheckExtensions] names what of these a module uses, and
// types and instructions of later proposals are refused by name.
//
// Modules for tests are assembled with package wasmtest.
package wasm
