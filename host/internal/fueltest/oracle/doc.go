// Package oracle predicts the outcome of a module, for tests of code that rewrites or
// runs modules: it generates modules from bytes, and executes them one instruction at a
// time, counting.
//
// [Generate] turns any bytes into a valid module, such as those of a fuzzing engine or of
// [Seed]. The modules use all of WebAssembly 2.0 apart from most vector instructions,
// branch and trap in awkward places, and mostly end soon:
//
//	module := oracle.Generate(oracle.Seed(7))
//
// [Run] is a reference interpreter: plain, slow, and independent of the engine
// and of every other decoder of function bodies, so that none can share its
// mistakes. A test runs the same module elsewhere and compares:
//
//	want, err := oracle.Run(module, oracle.Options{MaxSteps: 1 << 20, MaxDepth: 500})
//	// if want.Limit is set, the run did not end: take the next module
//	// run it elsewhere
//	if diff := want.Diff(oracle.Observed{...}); diff != "" {
//		t.Error(diff)
//	}
//	// compare the fuel with want.Steps, want.FunctionEntries, want.Bulk
//
// The bits of a NaN, which the specification leaves open, never get into an integer or
// into memory, and [Value.Equal] takes all NaNs as equal.
//
// The interpreter relies on valid modules, which [Generate] makes. For an invalid module,
// or an unknown instruction, it returns an error at best and a wrong outcome at worst.
//
// Modules avoid the differences between wazero 1.12 and the specification: wazero does
// not trap when an active element segment is out of bounds, does not drop active data
// segments, takes passive segments of externref for empty, and knows no padded opcodes
// after a prefix.
package oracle
