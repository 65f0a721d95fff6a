// Package oracle says what a module does, for tests of whatever rewrites or
// runs modules: it makes modules from bytes, and executes them one instruction
// at a time, counting.
//
// [Generate] turns any bytes into a valid module, as a fuzzing engine or
// [Seed] delivers them. The modules use all of WebAssembly 2.0 apart from most
// vector instructions, branch and trap where it hurts, and mostly end soon:
//
//	module := oracle.Generate(oracle.Seed(7))
//
// [Run] is a reference interpreter: plain, slow, and independent of the engine
// and of every other decoder of function bodies, so that none can share its
// mistakes. A test runs the same module elsewhere and compares:
//
//	want, err := oracle.Run(module, oracle.Options{MaxSteps: 1 << 20, MaxDepth: 500})
//	// if want.Limit says that it did not end: the next module
//	// run it elsewhere
//	if diff := want.Differs(oracle.Observed{...}); diff != "" {
//		t.Error(diff)
//	}
//	// compare the fuel with want.Steps, want.Entered, want.Bulk
//
// What the modules leave to chance by the specification (the bits of a NaN)
// never gets into an integer or into memory, and [Value.Equal] takes all NaNs
// for the same one.
//
// The interpreter takes validity for granted, as [Generate] delivers it. An
// invalid module, or one with an instruction that it does not know, gives an
// error at best and a wrong outcome at worst.
//
// Modules keep away from where wazero 1.12 departs from the specification: it
// does not trap when an active element segment is out of bounds, does not drop
// active data segments, takes passive segments of externref for empty, and
// knows no opcodes after a prefix that are longer than they need to be.
package oracle
