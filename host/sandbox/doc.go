// Package sandbox runs untrusted WebAssembly modules. It is the only importer
// of wazero.
//
// The stages of one call, each in its own file:
//
//	admit     may this module be compiled? (a package of its own)
//	load      once for all who want the module
//	compile   load native code from the cache, and fill that where it is not
//	spawn     have a child do that, which can be stopped; and what became of it
//	child     the child: limit itself, compile, end
//	prebuilt  native code that is part of the program
//	codecache native code on disk, and whether to believe it (a package of its own)
//	snapshot  what a module knows when it is initialised, with which calls begin
//	slot      an instance that is put back to it after each call
//	instance  the guest of one call: files, clocks, memory with a limit
//	dialect   what is known of a kind of module, which lowers and lifts (packages of their own)
//	call      have the dialect carry out the call
//	fault     whose fault was it, and what does the model read of it
//
// [Sandbox.Run] does nothing without a policy.Grant for exactly this call of
// exactly this module. [Sandbox.Describe] asks an unknown module for its
// manifest with nothing granted, nothing mounted and no host function.
//
// What a call leaves in an instance is never there in the next one. This
// process compiles nothing that a stranger wrote: it only loads what a child
// has compiled within its limits.
package sandbox
