// Package sandbox runs untrusted WebAssembly modules. It is the only importer
// of wazero.
//
// The stages of one call, each in its own file:
//
//	admit     may this module be compiled? (static checks on its bytes)
//	rewrite   add the limits that the engine lacks
//	compile   to native code, or load that from the cache
//	instance  fresh for each call: files, clocks, memory with a limit
//	call      lower the arguments, run, lift the result
//	fault     whose fault was it, and what does the model read of it
//
// [Sandbox.Run] does nothing without a policy.Grant for exactly this call of
// exactly this module. [Sandbox.Describe] asks an unknown module for its
// manifest with nothing granted, nothing mounted and no host function.
//
// An instance is used for one call and closed, whatever became of it.
package sandbox
