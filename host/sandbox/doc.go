// Package sandbox runs untrusted WebAssembly modules. Only it and the packages below it import
// wazero; tests and measurements do as well.
//
// A call passes through these steps, each in a file or a package of its own:
//
//	admit      decides whether a module may be compiled (package)
//	load       loads a module once for all its callers
//	compile    loads native code from the cache, or compiles it into the cache
//	spawn      runs a child that compiles, and explains its failures
//	child      is the child: it limits itself, compiles and exits
//	prebuilt   unpacks native code that is part of the program
//	codecache  stores native code on disk, and checks it before use (package)
//	snapshot   holds the state of an initialised module, with which calls begin
//	slot       reuses an instance after resetting it to the snapshot
//	instance   is the guest of one call: files, clocks, memory with a limit
//	dialect    knows one kind of module, and lowers and lifts its values (packages)
//	call       runs the call in its dialect
//	fault      decides whose fault a failure was, and words it for the model
//
// [Sandbox.Run] does nothing without a policy.Grant for exactly this call of
// exactly this module. [Sandbox.Describe] asks an unknown module for its
// manifest, with nothing granted, nothing mounted and no host function.
//
// No call sees the state that an earlier call left in an instance. This process compiles no
// module of a stranger: it only loads the code that a child has compiled within its limits.
package sandbox
